"""Arguments of a call, copied and changed: other layouts, sizes, dtypes and values.

A copy of several tensors that are one object is one object again. Memory around a copy with gaps is filled with a pattern, so
that a write beside the elements is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import turnout
from turnout import Tensor
from turnout.dtypes import BOOL, DType
from turnout.operators import Operator
from turnout_aten.shapes.extents import reach_of

Args = tuple[Any, ...]
Change = Callable[[Tensor], Tensor]
PATTERN = 77


def tensors(op: Operator, args: Args) -> Iterator[tuple[str, Tensor]]:
    """The tensors among the arguments in schema order, with names such as "x" or "xs[1]"."""
    for argument, value in zip(op.schema.arguments, args, strict=True):
        yield from named(argument.name, value)


def named(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors of one value, with their names."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, element in enumerate(value):
            if isinstance(element, Tensor):
                yield f"{name}[{i}]", element


def mapped(args: Args, change: Change) -> Args:
    """The arguments with another tensor in place of each; lists are made anew."""
    made: dict[int, Tensor] = {}
    return tuple([_one(value, change, made) for value in args])


# Not inside `mapped`: a function that calls itself there is a cycle, which keeps the tensors until the collector comes.
def _one(value: Any, change: Change, made: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        if id(value) not in made:
            made[id(value)] = change(value)
        return made[id(value)]
    if type(value) in (list, tuple):
        return type(value)([_one(v, change, made) for v in value])
    return value


def written(op: Operator, args: Args) -> frozenset[int]:
    """The ids of the tensors that the schema lets the operator write."""
    found = zip(op.schema.arguments, args, strict=True)
    return frozenset(id(t) for argument, value in found if argument.is_write for _, t in named("", value))


# ---- copies


def copy(tensor: Tensor) -> Tensor:
    """A copy with the same strides that requires no gradient."""
    with turnout.no_grad():
        plain = tensor.detach()
        return plain.clone() if plain.is_contiguous() else laid_out(plain, plain.stride(), 0)


def remembered(tensor: Tensor) -> Tensor:
    """A copy of a given tensor that the user's code cannot change, requiring a gradient if the tensor does."""
    made = copy(tensor)
    return made.requires_grad_() if tensor.requires_grad and not made.requires_grad else made


def laid_out(tensor: Tensor, strides: tuple[int, ...], offset: int = 1) -> Tensor:
    """A copy with other strides, `offset` elements into a memory that is larger than needed."""
    shape = tuple(tensor.shape)
    if 0 in shape:
        return turnout.empty(shape, dtype=tensor.dtype, device=tensor.device)
    if any(s < 0 for s in strides):
        return tensor.clone()
    span = reach_of(shape, strides)
    room = turnout.full(
        (span + 2 * offset,), PATTERN if tensor.dtype.category != BOOL else True, dtype=tensor.dtype, device=tensor.device
    )
    target, source = room, tensor
    for dim, (n, s) in enumerate(zip(shape, strides, strict=True)):
        if s == 0 and n > 1:
            source = source.narrow(dim, 0, 1)
    target = room.as_strided(tuple(source.shape), strides, offset)
    target.copy_(source)
    return room.as_strided(shape, strides, offset)


def contiguous(tensor: Tensor) -> Tensor:
    """A copy in row-major order."""
    return copy(tensor).contiguous()


def reversed_dims(tensor: Tensor) -> Tensor:
    """A copy whose first dim varies fastest."""
    steps, step = [], 1
    for n in tensor.shape:
        steps.append(step)
        step *= max(n, 1)
    return laid_out(tensor.detach(), tuple(steps), 0) if tensor.ndim > 1 else gaps(tensor)


def gaps(tensor: Tensor) -> Tensor:
    """A copy of which every second element of the memory is unused, behind an offset."""
    steps, step = [], 2
    for n in reversed(tensor.shape):
        steps.append(step)
        step *= max(n, 1) + 1
    return laid_out(tensor.detach(), tuple(reversed(steps)), 1)


def broadcast(tensor: Tensor) -> Tensor:
    """The first element along the first dim, repeated with a stride of 0."""
    if tensor.ndim == 0 or tensor.shape[0] < 2:
        return copy(tensor)
    return copy(tensor.detach().narrow(0, 0, 1)).expand(tuple(tensor.shape))


def other_values(tensor: Tensor) -> Tensor:
    """A copy with its elements in reverse order, which keeps integers valid as indices; one element gets another value."""
    plain = copy(tensor).contiguous()
    if plain.numel() > 1:
        return plain.reshape((-1,)).flip((0,)).reshape(tuple(plain.shape))
    if plain.numel() == 1 and (plain.is_floating_point() or plain.is_complex()):
        return plain * 0.75
    return plain


def unlike(tensor: Tensor) -> Tensor:
    """A copy with floating values of another sum and size, in reverse order."""
    plain = other_values(tensor)
    return plain * 1.375 - 0.25 if plain.is_floating_point() or plain.is_complex() else plain


def negated(tensor: Tensor) -> Tensor:
    """A copy with the sign of floating values changed, and their order reversed."""
    plain = other_values(tensor)
    return plain.neg() if plain.is_floating_point() or plain.is_complex() else plain


def shortened(length: int) -> Change:
    """A copy of which every dim has at most `length` elements."""

    def change(tensor: Tensor) -> Tensor:
        plain = copy(tensor).contiguous()
        for dim, n in enumerate(plain.shape):
            if n > length:
                plain = plain.narrow(dim, 0, length)
        return plain.clone()

    return change


def longer(length: int) -> Change:
    """A copy of which every dim of a length has one element more, its first one again."""

    def change(tensor: Tensor) -> Tensor:
        plain = copy(tensor).contiguous()
        for dim, n in enumerate(plain.shape):
            if n == length:
                plain = turnout.cat([plain, plain.narrow(dim, 0, 1)], dim)
        return plain

    return change


def first_row(tensor: Tensor) -> Tensor:
    """A copy with one element along the first dim: no two dims that were equal stay so."""
    plain = copy(tensor).contiguous()
    return plain.narrow(0, 0, 1).clone() if plain.ndim and plain.shape[0] > 1 else plain


def first_element(tensor: Tensor) -> Tensor:
    """The first element as a tensor of no dims."""
    plain = copy(tensor).contiguous()
    return plain.reshape((-1,))[0].clone() if plain.numel() else plain


def cast(source: DType, target: DType) -> Change:
    """A copy, in the dtype `target` where it was `source`."""

    def change(tensor: Tensor) -> Tensor:
        plain = copy(tensor)
        if plain.dtype is source and source.is_complex and not target.is_complex:
            plain = plain.real.clone()
        return plain.to(target) if plain.dtype in (source, source.to_real()) else plain

    return change


def in_double(tensor: Tensor) -> Tensor:
    """A copy, floating and complex tensors in double precision."""
    plain = copy(tensor)
    if plain.is_complex():
        return plain.to(turnout.complex128)
    return plain.to(turnout.float64) if plain.is_floating_point() else plain
