"""Shapes without data: the operator must give the shapes, dtypes, strides and devices that it gives with data.

It is called with three kinds of arguments: on `meta`, which is another device than that of the given arguments; with fake
tensors, where a size that depends on data is a symbol, whose bounds must contain the real size; and with fake tensors whose sizes
are symbols, of which the fake kernel must not make numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import turnout
from turnout import Device, FakeMode, SymInt, Tensor
from turnout.errors import ArgumentError, DataDependentSizeError, NoDataError, NoKernelError
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import results, run, share
from turnout_opcheck.report import SIZES_AS_THEY_ARE, NotTriedError, Problem, need
from turnout_opcheck.subject import DYNAMIC, Subject, Variant, fresh

META = "meta"


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("device:meta", "turnout-meta")
    if not subject.schema.gives_tensors:
        raise NotTriedError("the operator returns no tensor")
    devices = [a.type.canonical.rstrip("?") == "Device" for a in subject.schema.arguments]
    if not subject.tensors() and not any(devices):
        raise NotTriedError("no argument says on which device the result is")
    with turnout.no_grad():
        for variant in subject.accepted():
            real = run(subject.op, fresh(variant.args))
            if not any(tag in subject.op.tags for tag in DYNAMIC):
                yield from _on_meta(subject, variant, real, devices)
            yield from _in_a_mode(subject, variant, real, dynamic=False)
            yield from _in_a_mode(subject, variant, real, dynamic=True)


# ---- three kinds of calls


def _on_meta(subject: Subject, variant: Variant, real: Any, devices: list[bool]) -> Iterator[Problem]:
    """On another device, with known sizes."""
    args = on_meta(variant.args, devices)
    try:
        fake = run(subject.op, args)
    except NoKernelError as error:
        if "depends on data" not in str(error):
            yield _raised(subject, error, "")
    except Exception as error:  # noqa: BLE001 - a fake kernel may raise anything
        if not (isinstance(error, NoDataError) and (subject.is_composite or "depends on values" in str(error))):
            yield _raised(subject, error, "")
    else:
        yield from _compared(subject, args, fake, real, "", lambda f, r: "" if f.device.type == META else f"arguments on {META}")


def _in_a_mode(subject: Subject, variant: Variant, real: Any, *, dynamic: bool) -> Iterator[Problem]:
    """With fake tensors on the devices of the real ones, whose sizes are known or symbols."""
    mode = FakeMode(dynamic=dynamic)
    args = derived.mapped(variant.args, mode.from_tensor)
    sizes = [
        (name, d, n) for name, t in derived.tensors(subject.op, args) for d, n in enumerate(t.shape) if isinstance(n, SymInt)
    ]
    if dynamic and not sizes:
        return
    when = " for sizes that are symbols" if dynamic else ""
    try:
        with mode:
            fake = run(subject.op, args)
    except Exception as error:  # noqa: BLE001 - a fake kernel may raise anything
        if isinstance(error, NoDataError) and subject.is_composite:
            raise NotTriedError("a part of the composite needs the values of a tensor") from None
        yield _raised(subject, error, when)
        return
    if dynamic:
        yield from _fixed(subject, variant.args, sizes)
    yield from _compared(subject, args, fake, real, when, lambda f, r: "" if f.device == r.device else f"the kernel {r.device}")


def _fixed(subject: Subject, given: Args, sizes: list[tuple[str, int, Any]]) -> Iterator[Problem]:
    """A size of an input of which the fake kernel made a number, though the operator accepts others."""
    # Gaps in memory are numbers, and comparing one with the sizes fixes these.
    dense = all(t.is_contiguous() for _, t in derived.tensors(subject.op, given))
    if not dense or subject.is_composite or any(r.type.is_tensor_list for r in subject.schema.returns):
        return
    for name, dim, size in sizes:
        if size.bounds[0] == size.bounds[1] and _accepts_others(subject, given, int(size)):
            text = f"the fake kernel takes dim {dim} of {name} for {int(size)} always, where a size is a symbol"
            yield Problem("fixed", text, f"{SIZES_AS_THEY_ARE}, without int(), range() and decisions about them")
            return


def _accepts_others(subject: Subject, args: Args, size: int) -> bool:
    """Whether the operator accepts the arguments with one element more in all dims of a length."""
    try:
        run(subject.op, derived.mapped(args, derived.longer(size)))
    except Exception:  # noqa: BLE001 - not accepted
        return False
    return True


def on_meta(args: Args, devices: list[bool]) -> Args:
    """The arguments with tensors on meta, of the same shapes, dtypes and strides."""
    made = derived.mapped(args, lambda t: turnout.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=META))
    return tuple(
        [
            turnout.device(META) if d and (v is None or isinstance(v, (str, Device))) else v
            for v, d in zip(made, devices, strict=True)
        ]
    )


# ---- what a call gives


def _raised(subject: Subject, error: Exception, when: str) -> Problem:
    if isinstance(error, NoDataError):
        fix = "register_fake with a function that computes shapes from shapes"
        return Problem("values", f"the fake kernel reads the values of a tensor, of which there are none: {error}", fix)
    if isinstance(error, NoKernelError) and "no fake kernel" in str(error):
        return Problem(
            "missing", f"{subject.op.qualified_name} has no fake kernel", "register_fake with a function that computes shapes"
        )
    text = f"the fake kernel raised {type(error).__name__} for arguments that the kernel accepts{when and ','}{when}: {error}"
    return Problem("raised", text, "accept in the fake kernel what the kernel accepts")


def _compared(
    subject: Subject, args: Args, fake: Any, real: Any, when: str, elsewhere: Callable[[Tensor, Tensor], str]
) -> Iterator[Problem]:
    """What differs between results without data and real ones. `elsewhere` says why the device of one is wrong."""
    fix = "return empty tensors from the fake kernel as the kernel returns them"
    first, second = flat(fake), flat(real)
    if len(first) != len(second):
        text = f"the fake kernel gives {len(first)} result{'s' * (len(first) != 1)}{when}, and the kernel {len(second)}"
        yield Problem("count", text, fix)
        return
    for (name, a), b in zip(results(subject.op, fake), second, strict=True):
        told = _differs(a, b, elsewhere)
        if told:
            yield Problem(told.partition(" ")[0], f"the fake kernel gives {name} {told}{when}", fix)
    yield from _aliases(subject, args, fake)


def _differs(fake: Any, real: Any, elsewhere: Callable[[Tensor, Tensor], str]) -> str:
    if not isinstance(fake, Tensor) or not isinstance(real, Tensor):
        same = type(fake) is type(real) or (isinstance(fake, SymInt) and type(real) is int)
        return "" if same else f"type {type(fake).__name__}, and the kernel {type(real).__name__}"
    told = f"shape {list(fake.shape)}, and the kernel {list(real.shape)}"
    if fake.ndim != real.ndim or not all(map(_may_be, fake.shape, real.shape)):
        return told
    if fake.dtype is not real.dtype:
        return f"dtype {fake.dtype.name}, and the kernel {real.dtype.name}"
    strides = [_number(s) for s in fake.stride()]
    if real.numel() > 1 and any(n > 1 and s not in (None, t) for n, s, t in zip(real.shape, strides, real.stride(), strict=True)):
        return f"strides {list(fake.stride())}, and the kernel {list(real.stride())}"
    where = elsewhere(fake, real)
    return f"device {fake.device}, for {where}" if where else ""


def _may_be(size: Any, real: int) -> bool:
    """Whether a size of a fake tensor can be the real one. If it depends on data, it is that from then on."""
    if _number(size) is not None:
        return _number(size) == real
    low, high = size.bounds
    if not low <= real <= high:
        return False
    try:
        turnout.check(size == real)
    except (ArgumentError, DataDependentSizeError):
        return False
    return True


def _number(size: Any) -> int | None:
    """A size as a number: that of the present inputs for a symbol. None if it depends on data."""
    return size.hint if isinstance(size, SymInt) else int(size)


def _aliases(subject: Subject, args: Args, fake: Any) -> Iterator[Problem]:
    """A fake result may share memory with an argument only where the schema says so."""
    if subject.is_composite:
        return  # as in `test_schema`
    declared = {name for names in subject.schema.return_aliases for name in names}
    for name, value in results(subject.op, fake):
        for other, tensor in derived.tensors(subject.op, args):
            if isinstance(value, Tensor) and other.partition("[")[0] not in declared and _shares(value, tensor):
                how = "is" if value is tensor else "shares memory with"
                text = (
                    f"the result {how} {other} in the fake kernel"
                    if name == "the result"
                    else f"{name} {how} {other} in the fake kernel"
                )
                yield Problem("alias", text, f"return a new tensor, such as {other}.new_empty(...)")


def _shares(value: Tensor, tensor: Tensor) -> bool:
    return 0 not in [_number(n) for n in value.shape] and share(value, tensor)
