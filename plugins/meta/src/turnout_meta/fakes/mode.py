"""`FakeMode`: inside it, factories make fake tensors; `from_tensor` makes one of a real tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.config.lock import new_lock
from turnout.devices import device as real_device
from turnout.dtypes import BOOL, FLOAT
from turnout.errors import NoDataError
from turnout.guards import Guard
from turnout.state import StateChange
from turnout_aten.tensor.devices import FAKE_MODE
from turnout_meta.fakes import errors
from turnout_meta.fakes.conversion import Conversions
from turnout_meta.fakes.devices import FAKE, FakeBackend, FakeDevice, FakeGenerator, row_of
from turnout_meta.symbols.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnout.devices import Device
    from turnout.guards import Changes
    from turnout_aten.tensor.tensor import Tensor
    from turnout_meta.backend import MetaArray
    from turnout_meta.symbols.expressions import Assumption

_LOCK = new_lock()


class FakeMode(Guard):
    """Tensors of any device without data: they have a shape, a dtype, strides, a device, gradients, and no elements.

    Inside `with FakeMode() as mode:` factories give fake tensors, on devices that need not be there. `mode.from_tensor(x)` is
    the fake tensor of a real one. Operators compute what their results would look like, and raise the errors that they would
    raise. A size that depends on values is a symbol (`turnout.SymInt`). Fake tensors keep their mode, also outside of the
    block and in other threads.

    Arguments:
        allow_non_fake_inputs: whether operators take real tensors beside fake ones, as if `from_tensor` had been called
        dynamic: whether `from_tensor` makes every size a symbol, except 0 and 1

    Example:
        >>> with turnout.FakeMode():
        ...     x = turnout.ones(1_000_000, 1_000_000, device="cuda")
        >>> (x @ x).shape
        turnout.Size([1000000, 1000000])
        >>> x
        FakeTensor(..., device='cuda:0', size=(1000000, 1000000))
    """

    __unwrapped__ = ("at", "device", "generator", "item")  # what operators ask

    def __init__(self, *, allow_non_fake_inputs: bool = False, dynamic: bool = False) -> None:
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.dynamic = dynamic
        self.sizes = Scope()
        self._devices: dict[tuple[str, int | None], FakeDevice] = {}
        self._backends: dict[str, FakeBackend] = {}
        self._converted = Conversions(self)

    def sets(self) -> Changes:
        return (FAKE_MODE, [self]), StateChange(includes=FAKE, lifts=FAKE).here()

    def from_tensor(self, tensor: Tensor, *, dynamic: Iterable[int] | None = None) -> Tensor:
        """The fake tensor of a real one; the same one each time.

        Shape, strides, dtype, device and `requires_grad` are kept, and tensors that share memory share it as fakes. A tensor
        with a history of gradients becomes a leaf. A fake tensor of this mode is returned as it is. Raises CallError for
        one of another mode, and inside vmap.

        Arguments:
            tensor: the tensor
            dynamic: the dims whose sizes become symbols, except sizes 0 and 1; those of a view are computed from its base

        Example:
            >>> mode = turnout.FakeMode()
            >>> mode.from_tensor(turnout.zeros(2, 3), dynamic=(0,)).shape
            turnout.Size([s0, 3])
        """
        return self._converted.fake(tensor, dynamic)

    @property
    def guards(self) -> list[str]:
        """What sizes of the present inputs have decided, in order: for other inputs the results may be others."""
        return [str(each) for each in self.sizes.decisions if not each.checked]

    @property
    def assumptions(self) -> list[Assumption]:
        """What has to hold for other inputs if results shall be the same expressions: the guards, and what checks have stated.

        Sizes of inputs that are symbols are 2 or more.
        """
        return self.sizes.assumptions()

    # ---- devices and values

    def device(self, wanted: Device | str) -> FakeDevice:
        """The device of this mode that stands for a device of any kind. Raises DeviceError for an unknown type."""
        named = real_device(wanted)
        backend = self._backend(named.type)
        index = named.index
        if backend.indexed and index is None:
            return backend.current_device()
        return self.at(backend, None if index == 0 and not backend.indexed else index)

    def at(self, backend: FakeBackend, index: int | None) -> FakeDevice:
        """The one object for a device of a type and an index."""
        key = backend.device_type, index
        found = self._devices.get(key)
        if found is None:
            with _LOCK:
                found = self._devices.setdefault(key, FakeDevice(*key, backend))
        return found

    def _backend(self, device_type: str) -> FakeBackend:
        found = self._backends.get(device_type)
        if found is None:
            made = FakeBackend(self, row_of(device_type))
            with _LOCK:
                found = self._backends.setdefault(device_type, made)
        return found

    def generator(self, device: Device) -> FakeGenerator:
        """A generator that draws nothing."""
        return FakeGenerator(self.device(device))

    def item(self, array: MetaArray) -> Any:
        """The value of a fake tensor of one element: a symbol for an integer. Raises NoDataError for other dtypes."""
        # differs from torch: PyTorch's `item` is an error unless a setting (capture_scalar_outputs) allows symbols.
        if array.dtype.category in (BOOL, *range(FLOAT, FLOAT + 2)):
            raise NoDataError(errors.no_item(array.dtype))
        return self.sizes.unbacked("item()", None, None)

    def __repr__(self) -> str:
        return f"<FakeMode {id(self):#x}>"
