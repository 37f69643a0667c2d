"""What a call gave, and how two calls are compared: values, dtypes, shapes, layouts, errors, and what became of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import turnout
from turnout.errors import DTypeError, NoDataError
from turnout.operators import Operator
from turnout.operators.values import flat
from turnout.registry import REGISTRY
from turnout_aten import trees
from turnout_conformance.cases import Vectors, close
from turnout_conformance.making import dtypes_of


class Raised:
    """The error of a call. Two are alike when their classes are."""

    def __init__(self, error: Exception) -> None:
        self.kind = type(error)
        self.text = f"{type(error).__name__}: {error}"

    def __repr__(self) -> str:
        return self.text


def tensors(value: Any) -> list[turnout.Tensor]:
    """The tensors of nested arguments."""
    if isinstance(value, dict):
        value = list(value.values())
    return [t for t in flat(value) if isinstance(t, turnout.Tensor)]


def _ready(device: Any) -> None:
    """What there is to wait for on devices that compute at once."""


def outcome(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> list[Any] | Raised:
    """The results of a call as a list, or the error, which a device may raise only where the host waits for it."""
    try:
        results = flat(call(*args, **kwargs))
        for place in {each.device for each in tensors(results)}:
            getattr(place.backend, "synchronize", _ready)(place)
        return results
    except Exception as error:  # noqa: BLE001 - whichever cpu raises, the other device must raise
        return Raised(error)


def layout(tensor: turnout.Tensor) -> list[int]:
    """The strides that say where elements are."""
    return [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1] if tensor.numel() > 1 else []


def choices(results: list[Any], vectors: Vectors) -> dict[int, Any]:
    """Position of a result -> what its vectors are multiplied by, so that in each of them the first element of at least 0.618 of
    the largest magnitude is positive. `results` are arrays, `vectors` those of `OperatorCase`."""
    found: dict[int, Any] = {}
    shared: Any = None
    for position, axis in vectors:
        if not results[position].size:
            continue  # not computed
        columns = np.moveaxis(results[position], axis, -1)
        sizes = np.abs(columns)
        first = (sizes >= 0.618 * sizes.max(-2, keepdims=True)).argmax(-2)
        chosen = np.take_along_axis(columns, np.expand_dims(first, -2), -2)
        factors = np.conj(chosen) / np.abs(chosen)
        if shared is None:
            shared = factors
        else:
            theirs = np.conj(shared) if axis == -2 else shared
            factors = np.concatenate([theirs, factors[..., theirs.shape[-1] :]], -1)[..., : factors.shape[-1]]
        found[position] = factors if axis == -1 else np.swapaxes(factors, -1, -2)
    return found


def numbers(results: list[Any], vectors: Vectors = ()) -> list[Any]:
    """The results as arrays of NumPy, those of which only directions are determined in one way of many."""
    arrays = [t.detach().cpu().numpy() for t in results]
    factors = choices(arrays, vectors)
    return [a * factors[i] if i in factors else a for i, a in enumerate(arrays)]


def check(
    found: Any, expected: Any, device: str, tolerance: float, *, layouts: bool = True, names: tuple[str, str] = ("", "cpu"),
    vectors: Vectors = (),
) -> None:  # fmt: skip
    """The outcome is the expected one. A result of a dtype that the device has not must be refused. `names` are those of the two
    outcomes in messages, the first is the device's where it is empty. `vectors` are those of `OperatorCase`."""
    first, second = names[0] or device, names[1]
    if isinstance(expected, Raised) or isinstance(found, Raised):
        absent = {t.dtype.name for t in tensors(expected)} - dtypes_of(device)
        if absent and isinstance(found, Raised):
            assert issubclass(found.kind, DTypeError), f"{device} has no {', '.join(sorted(absent))}: {found}"
            return
        assert isinstance(expected, Raised), f"{first} raised {found}\nand {second} gave {expected}"
        assert isinstance(found, Raised), f"{first} gave {found}\nand {second} raised {expected}"
        assert found.kind is expected.kind, f"{first} raised {found}\nand {second} raised {expected}"
        return
    assert len(found) == len(expected), f"{first} gave {len(found)} results, and {second} {len(expected)}"
    for got, want in zip(found, expected, strict=True):
        assert type(got) is type(want), f"{first} gave {got!r}, and {second} {want!r}"
        if not isinstance(want, turnout.Tensor):
            assert got == want
            continue
        assert (got.device.type, got.dtype, got.shape) == (device, want.dtype, want.shape)
        if layouts:
            assert layout(got) == layout(want), f"{first} gave strides {got.stride()}, and {second} {want.stride()}"
    kept = [(g, w) for g, w in zip(found, expected, strict=True) if isinstance(w, turnout.Tensor)]
    values = zip(numbers([g for g, _ in kept], vectors), numbers([w for _, w in kept], vectors), strict=True)
    for (got, want), (a, b) in zip(kept, values, strict=True):
        assert close(np, a, b, tolerance), f"{first} gave {got}\nand {second} gave {want}"


def shown(value: Any) -> str:
    """The values of all tensors in a structure, comparable where nan is among them."""
    return str([t.detach().cpu().tolist() for t in tensors(value)])


def facts(result: Any) -> list[Any]:
    """The shapes, dtypes and layouts of all results."""
    return [(t.shape, t.dtype, layout(t)) for t in tensors(result)]


def promised(op: Operator, args: Any, kwargs: Any) -> list[Any] | None:
    """What meta says of a call's results, without data; None where their shapes depend on values."""
    try:
        return facts(op(*on_meta(args), **on_meta(kwargs)))
    except NoDataError:
        return None


def on_meta(value: Any) -> Any:
    """Arguments with their tensors' shapes, dtypes and strides on meta."""
    return each(value, lambda t: turnout.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta"))


def each(value: Any, change: Callable[[turnout.Tensor], Any]) -> Any:
    """Nested arguments with their tensors changed."""
    return trees.map_leaves(lambda leaf: change(leaf) if isinstance(leaf, turnout.Tensor) else leaf, value)


@contextmanager
def about(*facts: object) -> Iterator[None]:
    """An error says what it is about too."""
    try:
        yield
    except Exception as error:
        error.add_note(f"about: {', '.join(map(str, facts))}")
        raise


def gradients(op: Operator, args: Any, kwargs: Any, vectors: Vectors = ()) -> list[Any]:
    """The gradients of the sum of all results of a call, of every leaf; None for leaves that have none. `vectors` are those of
    `OperatorCase`."""
    leaves = [t for t in tensors([*args, *kwargs.values()]) if t.requires_grad]
    made = tensors(op(*args, **kwargs))
    for position, factors in choices([t.detach().cpu().numpy() for t in made] if vectors else [], vectors).items():
        made[position] = made[position] * turnout.from_numpy(factors).to(made[position].device)
    outputs = [t for t in made if t.requires_grad]
    if not leaves or not outputs:
        return []
    return list(turnout.autograd.grad(outputs, leaves, [turnout.ones_like(t) for t in outputs], allow_unused=True))


# ---- operators


def find(name: str) -> Operator:
    """A standard operator."""
    return REGISTRY.find(f"aten::{name}")


def form(op: Operator, kind: str) -> Operator | None:
    """The in-place or out form of a functional operator: same arguments, other kind."""
    wanted = [(a.name, a.type.canonical) for a in op.schema.arguments]
    for name in (op.name, f"{op.name}_"):
        for other in REGISTRY.packet("aten", name) or ():
            if any("[" in a.type.canonical for a in other.schema.out_arguments):
                continue  # lists of outputs: other tests than those of cases
            outs = {a.name for a in other.schema.out_arguments}
            theirs = [(a.name, a.type.canonical) for a in other.schema.arguments if a.name not in outs]
            if other.schema.kind == kind and theirs == wanted:
                return other
    return None
