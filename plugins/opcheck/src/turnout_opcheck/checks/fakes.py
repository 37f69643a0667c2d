"""Shapes without data: on `meta`, the operator must give the shapes, dtypes, strides and devices that it gives with data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import turnout
from turnout import Device, Tensor
from turnout.errors import NoDataError, NoKernelError
from turnout_opcheck import derived
from turnout_opcheck.comparing import layout
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import flat, results, run, share
from turnout_opcheck.report import NotTriedError, Problem, need
from turnout_opcheck.subject import DYNAMIC, Subject, Variant, fresh

META = "meta"


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("device:meta", "turnout-meta")
    if not any(r.type.is_tensor_like for r in subject.schema.returns):
        raise NotTriedError("the operator returns no tensor")
    if any(tag in subject.op.tags for tag in DYNAMIC):
        raise NotTriedError("the sizes of its results depend on data, and meta tensors have only known sizes")
    devices = [a.type.canonical.rstrip("?") == "Device" for a in subject.schema.arguments]
    if not subject.tensors() and not any(devices):
        raise NotTriedError("no argument says on which device the result is")
    with turnout.no_grad():
        for variant in subject.accepted():
            yield from _one(subject, variant, devices)


def on_meta(args: Args, devices: list[bool]) -> Args:
    """The arguments with tensors on meta, of the same shapes, dtypes and strides."""
    made = derived.mapped(args, lambda t: turnout.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=META))
    return tuple(
        [
            turnout.device(META) if d and (v is None or isinstance(v, (str, Device))) else v
            for v, d in zip(made, devices, strict=True)
        ]
    )


def _one(subject: Subject, variant: Variant, devices: list[bool]) -> Iterator[Problem]:
    real = run(subject.op, fresh(variant.args))
    args = on_meta(variant.args, devices)
    try:
        fake = run(subject.op, args)
    except NoDataError as error:
        if "depends on values" in str(error):
            raise NotTriedError("the sizes of its results depend on data, and meta tensors have only known sizes") from None
        fix = "register_fake with a function that computes shapes from shapes"
        yield Problem("values", f"the fake kernel reads the values of a tensor, of which there are none: {error}", fix)
        return
    except Exception as error:  # noqa: BLE001 - a fake kernel may raise anything
        yield _raised(subject, error)
        return
    fix = "return empty tensors from the fake kernel as the kernel returns them"
    first, second = flat(fake), flat(real)
    if len(first) != len(second):
        text = f"the fake kernel gives {len(first)} result{'s' * (len(first) != 1)}, and the kernel {len(second)}"
        yield Problem("count", text, fix)
        return
    for (name, a), b in zip(results(subject.op, fake), second, strict=True):
        told = _differs(a, b)
        if told:
            yield Problem(told.partition(" ")[0], f"the fake kernel gives {name} {told}", fix)
    yield from _aliases(subject, args, fake, real)


def _raised(subject: Subject, error: Exception) -> Problem:
    if isinstance(error, NoKernelError) and "no fake kernel" in str(error):
        return Problem(
            "missing", f"{subject.op.qualified_name} has no fake kernel", "register_fake with a function that computes shapes"
        )
    if isinstance(error, NoKernelError) and "depends on data" in str(error):
        raise NotTriedError("its fake kernel asks for a size that depends on data, which meta tensors have not")
    text = f"the fake kernel raised {type(error).__name__} for arguments that the kernel accepts: {error}"
    return Problem("raised", text, "accept in the fake kernel what the kernel accepts")


def _differs(fake: Any, real: Any) -> str:
    if not isinstance(fake, Tensor) or not isinstance(real, Tensor):
        return "" if type(fake) is type(real) else f"type {type(fake).__name__}, and the kernel {type(real).__name__}"
    if tuple(fake.shape) != tuple(real.shape):
        return f"shape {list(fake.shape)}, and the kernel {list(real.shape)}"
    if fake.dtype is not real.dtype:
        return f"dtype {fake.dtype.name}, and the kernel {real.dtype.name}"
    if layout(fake) != layout(real):
        return f"strides {list(fake.stride())}, and the kernel {list(real.stride())}"
    if fake.device.type != META:
        return f"device {fake.device}, for arguments on {META}"
    return ""


def _aliases(subject: Subject, args: Args, fake: Any, real: Any) -> Iterator[Problem]:
    """A fake result may share memory with an argument only where the schema says so."""
    declared = {name for names in subject.schema.return_aliases for name in names}
    for name, value in results(subject.op, fake):
        for other, tensor in derived.tensors(subject.op, args):
            if isinstance(value, Tensor) and other.partition("[")[0] not in declared and value.numel() and share(value, tensor):
                how = "is" if value is tensor else "shares memory with"
                text = (
                    f"the result {how} {other} in the fake kernel"
                    if name == "the result"
                    else f"{name} {how} {other} in the fake kernel"
                )
                yield Problem("alias", text, f"return a new tensor, such as {other}.new_empty(...)")
