"""The device of a call, which all its tensors share, and the guard under which the call runs."""

from __future__ import annotations

from turnout.devices import Backend, Device
from turnout.errors import DeviceError
from turnout.errors import calls as texts
from turnout.operators.values import has_keys, named_tensors, tensors_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout.operators import Operator

    Call = Callable[..., Any]


# The tag of operators whose lists of indices, arguments of the type `Tensor?[]`, may be on a device whose scalars mix, like cpu.
INDICES_MIX = "indices_mix"


def one_device(op: Operator, args: tuple[Any, ...]) -> Device | None:
    """The device of a call. Raises DeviceError for two devices.

    Of backends with `scalars_mix`, 0-dim tensors, and the indices of an operator with the tag `indices_mix`, may be elsewhere.
    """
    tensors = named_tensors(op, args)
    if len(tensors) == 1:
        place: Device = tensors[0][1].device
        return place
    mixing = [a.name for a in op.schema.arguments if a.type.canonical == "Tensor?[]"] if INDICES_MIX in op.tags else []
    main = next(((n, t) for n, t in tensors if not _mixes(n, t, mixing)), tensors[0] if tensors else None)
    if main is None:
        return None
    written = [a.name for a in op.schema.arguments if a.is_write]  # these cannot be moved: the write would change the copy
    for name, tensor in tensors:
        if tensor.device != main[1].device and (not _mixes(name, tensor, mixing) or name.partition("[")[0] in written):
            hosts = [b.device_type for b in op.registry.backends.values() if b.scalars_mix]
            both = [(main[0], main[1].device), (name, tensor.device)]
            raise DeviceError(texts.two_devices(op, both, hosts, indices=bool(mixing)))
    place = main[1].device
    return place


def _mixes(name: str, tensor: Any, mixing: list[str]) -> bool:
    return bool((tensor.shape == () or name.partition("[")[0] in mixing) and tensor.device.backend.scalars_mix)


def mixed(op: Operator) -> Call:
    """The callable for a key set with several backends: it moves tensors that may mix to the device of the others."""

    def call_mixed(ks: int, *args: Any) -> Any:
        place = one_device(op, args)
        if place is None:
            generator = next((g.device for g in tensors_in(args)), None)
            wanted = next((a for a in args if isinstance(a, Device)), None)
            raise DeviceError(texts.generator_elsewhere(op, generator, wanted))
        moved = tuple(_move(a, place) for a in args)
        keys = op.registry.keys
        ks = ks & ~keys.backend_mask | keys.backend_bit(place.backend.name)
        return op.lookup(ks)(ks, *moved)

    return call_mixed


def _move(value: Any, place: Device) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_move(v, place) for v in value)
    if has_keys(value) and hasattr(value, "shape") and value.device != place:
        return value.to(place)
    return value


def checked(op: Operator, backend: Backend, call: Call) -> Call:
    """`call` for a backend with several devices: check that the tensors share one, and run under its guard, where the operator
    wants that. Views want neither."""
    if not op.device_check and not op.device_guard:
        return call
    places = [at for at, argument in enumerate(op.schema.arguments) if argument.type.is_tensor_like]

    def call_on_device(ks: int, *args: Any) -> Any:
        place: Device | None = None
        alike = True
        try:  # where all tensors have one device, as nearly always, this saves a dozen frames
            for at in places:
                value = args[at]
                for each in value if value.__class__ is list or value.__class__ is tuple else (value,):
                    if each is not None and each.device is not place:
                        alike, place = place is None, each.device
                        if not alike:
                            break
                if not alike:
                    break
        except AttributeError:  # a number in the place of a tensor
            alike = False
        if place is None or not alike:
            place = one_device(op, args) if op.device_check else next((t.device for _, t in named_tensors(op, args)), None)
        guard = backend.guard(place) if place is not None and op.device_guard else None
        if guard is None:
            return call(ks, *args)
        with guard:
            return call(ks, *args)

    call_on_device.__wrapped__ = call  # type: ignore[attr-defined]  # a function takes any attribute
    return call_on_device
