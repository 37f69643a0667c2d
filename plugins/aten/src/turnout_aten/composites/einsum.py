"""einsum: an equation over named dims, computed pairwise by batched matrix products.

Every label gets one dim, in the same order for all operands; a dim that an operand lacks has length 1. A label is summed in the
step after which no remaining operand has it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from turnout.errors import ShapeError, TurnoutError
from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.composites.endings import shortcut
from turnout_aten.kernels.standing import Standing
from turnout_aten.shapes.extents import numel
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_aten.views.kernels import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Call = Callable[..., Any]

ELLIPSIS = "..."
_REMEMBERED = 256  # equations


_OPERATORS = Standing(permute="view", unsqueeze="view", reshape="aten::reshape", view="view", bmm="row")
_BMM = find_operator("aten::bmm")


def _product_at_once(call: Call) -> Call:
    """The product of two plain tensors by `bmm` alone, where all other operators would be views, or copies that nobody sees."""

    def einsum(ks: int, equation: str, tensors: Sequence[Tensor], path: Any) -> Any:
        if len(tensors) == 2 and path is None:
            left, right = tensors
            device, a, b = left.device, left.array, right.array
            backend = device.backend
            plain = left.__class__ is right.__class__ is Tensor and ks is left.keys is right.keys is backend.keys
            ours = plain and backend.view_array is not None and a.__class__ is backend.array_type is b.__class__
            if ours and _OPERATORS(ks):
                try:
                    found = _products[equation, a.shape, b.shape]
                    if found is not None:
                        x, rows, y, columns, shape = found
                        x, y = a.transpose(x).reshape(rows), b.transpose(y).reshape(columns)
                        made = _BMM.cache[ks](ks, wrap(x, device), wrap(y, device))
                        made.array = made.array.reshape(shape)
                        return made
                except (KeyError, TurnoutError):  # the composite kernel says what is wrong
                    pass
        return call(ks, equation, tensors, path)

    return einsum


def _one_product(equation: str, first: tuple[int, ...], second: tuple[int, ...]) -> Any:
    """(order of the dims of the left operand, its shape in the product, those of the right one, the shape of the result).

    None unless every label is in one dim of an operand, has more than one element, is summed only where both operands have it,
    and the product has the result's order. Then memory and strides of the result are those of the product.
    """
    (left, right), output, labels = _parsed(equation, (len(first), len(second)))
    sizes = dict(zip(left, first, strict=True))
    alike = all(sizes.setdefault(label, length) == length for label, length in zip(right, second, strict=True))
    summed = [label for label in labels if label not in output]
    once = len({*left}) == len(left) and len({*right}) == len(right)
    if not (alike and once and min(sizes.values(), default=0) > 1 and summed and {*summed} <= {*left} & {*right}):
        return None
    batch = [label for label in output if label in left and label in right]
    rows = [label for label in output if label not in right]
    columns = [label for label in output if label not in left]
    if output != [*batch, *rows, *columns]:
        return None
    count, height, width, n = (numel([sizes[label] for label in some]) for some in (batch, rows, columns, summed))
    x = tuple([left.index(label) for label in (*batch, *rows, *summed)])
    y = tuple([right.index(label) for label in (*batch, *summed, *columns)])
    return x, (count, height, n), y, (count, n, width), tuple([sizes[label] for label in output])


_products = Remembered(_one_product)


@shortcut(_product_at_once)
def einsum(equation: str, tensors: Sequence[Tensor], *, path: Sequence[int] | None = None) -> Tensor:
    """The sum of products that an equation such as "bij,bjk->bik" describes; `path` lists pairs of positions to contract.

    Without `->` the result has the labels that occur once, in alphabetical order. Raises ShapeError for an equation that
    cannot be read or does not fit the shapes.

    # differs from torch: the result of `einsum` may lie in memory in another order of dims: the product is made in another one.
    """
    if not tensors:
        raise ShapeError("einsum: needs at least one operand")
    if len(tensors) == 2 and path is None:
        made = _as_it_lies(equation, *tensors)
        if made is not None:
            return made
    inputs, output, labels = _parsed(equation, tuple([len(t.array.shape) for t in tensors]))
    _check_sizes(equation, inputs, tensors)
    operands = [_aligned(t, own, labels) for t, own in zip(tensors, inputs, strict=True)]
    kept = len(output)
    for i, j in _steps(path, len(operands)):
        right, left = operands.pop(max(i, j)), operands.pop(min(i, j))
        if i > j:
            left, right = right, left
        done = [d for d in range(kept, len(labels)) if all(o.shape[d] == 1 for o in operands)]
        operands.append(_product(left, right, done))
    made = operands[0]
    rest = tuple(range(kept, len(labels)))
    if len(tensors) == 1 and rest:
        made = aten.sum__dim_IntList(made, rest)
    elif rest:
        made = aten.reshape(made, made.shape[:kept])
    return made


def _as_it_lies(equation: str, left: Tensor, right: Tensor) -> Tensor | None:
    """The product of two operands that are batches of matrices in the order of the equation, and so is the result; else None."""
    a, b = left.array.shape, right.array.shape
    if not len(a) == len(b) == 3:
        return None
    try:
        found = _products[equation, a, b]
    except (KeyError, TypeError, TurnoutError):  # sizes that are not known, and what is an error
        return None
    order = 0, 1, 2
    if found is None or (found[0], found[1], found[2], found[3]) != (order, a, order, b):
        return None
    return aten.bmm(left, right)


def _steps(path: Sequence[int] | None, count: int) -> list[tuple[int, int]]:
    """The positions of the operands to multiply in each step. The product is appended to the remaining operands."""
    if path is None or count < 2:
        # Left to right: the product so far is the last operand and comes first in the product.
        return [(0, 1)] + [(n, 0) for n in range(count - 2, 0, -1)] if count > 1 else []
    if len(path) != 2 * (count - 1):
        raise ShapeError(f"einsum: a path for {count} operands must have {2 * (count - 1)} positions, got {len(path)}")
    steps = list(zip(path[::2], path[1::2], strict=True))
    for left, (i, j) in zip(range(count, 1, -1), steps, strict=True):
        if i == j or not (0 <= i < left and 0 <= j < left):
            raise ShapeError(f"einsum: the path cannot contract operands {i} and {j} of {left}")
    return steps


# ---- the equation


@lru_cache(_REMEMBERED)
def _parsed(equation: str, ranks: tuple[int, ...]) -> tuple[list[list[str]], list[str], list[str]]:
    """`_read`, and all labels, those of the result first. It is remembered, so nobody changes the lists."""
    inputs, output = _read(equation, ranks)
    return inputs, output, [*output, *dict.fromkeys(label for labels in inputs for label in labels if label not in output)]


def _read(equation: str, ranks: tuple[int, ...]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; the dims of an ellipsis are labels "...0", "...1" from the right."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum: {equation!r} is for {len(terms)} operands, got {len(ranks)}")
    written = [_labels(equation, term) for term in terms]
    hidden = 0
    for labels, rank in zip(written, ranks, strict=True):
        named = len(labels) - (ELLIPSIS in labels)
        if rank < named or (rank > named and ELLIPSIS not in labels):
            term = "".join(labels)
            raise ShapeError(f"einsum: {term!r} of {equation!r} does not fit an operand of {rank} dimensions")
        hidden = max(hidden, rank - named)
    inputs = [_spread(labels, rank - len(labels) + (ELLIPSIS in labels)) for labels, rank in zip(written, ranks, strict=True)]
    given = [label for labels in inputs for label in labels]
    if arrow:
        output = _spread(_labels(equation, right), hidden)
        for label in output:
            if output.count(label) > 1 or (label not in given and not label.startswith(ELLIPSIS)):
                why = "twice" if output.count(label) > 1 else "and no operand has it"
                raise ShapeError(f"einsum: the result of {equation!r} has {label!r} {why}")
        return inputs, output
    once = sorted(label for label in set(given) if given.count(label) == 1 and not label.startswith(ELLIPSIS))
    return inputs, [*_spread([ELLIPSIS] if any(ELLIPSIS in w for w in written) else [], hidden), *once]


def _labels(equation: str, term: str) -> list[str]:
    term = term.replace(" ", "")
    labels: list[str] = []
    while term:
        size = 3 if term.startswith(ELLIPSIS) else 1
        label, term = term[:size], term[size:]
        if size == 1 and not (label.isascii() and label.isalpha()):
            raise ShapeError(f"einsum: {label!r} in {equation!r} is not a label; use letters, and one '...' per operand")
        if size == 3 and label in labels:
            raise ShapeError(f"einsum: {equation!r} has two ellipses for one operand")
        labels.append(label)
    return labels


def _spread(labels: list[str], hidden: int) -> list[str]:
    """Labels with the ellipsis replaced by numbered labels, counted from the right."""
    named = [f"{ELLIPSIS}{i}" for i in range(hidden - 1, -1, -1)]
    return [one for label in labels for one in (named if label == ELLIPSIS else [label])]


def _check_sizes(equation: str, inputs: list[list[str]], tensors: Sequence[Tensor]) -> None:
    """Check that each label has one length; length 1 broadcasts between operands."""
    sizes: dict[str, int] = {}
    for labels, tensor in zip(inputs, tensors, strict=True):
        own: dict[str, int] = {}
        for label, length in zip(labels, tensor.shape, strict=True):
            if own.setdefault(label, length) != length:
                raise ShapeError(f"einsum: {label!r} of {equation!r} has two lengths in one operand, {own[label]} and {length}")
            known = sizes.get(label, 1)
            if known != length and 1 not in (known, length):
                raise ShapeError(f"einsum: {label!r} of {equation!r} has two lengths, {known} and {length}")
            sizes[label] = length if known == 1 else known


# ---- operands


def _aligned(tensor: Tensor, own: list[str], labels: list[str]) -> Tensor:
    """Takes diagonals for labels that an operand has twice, then gives the operand one dim per label."""
    own = list(own)
    for label in dict.fromkeys(own):
        while own.count(label) > 1:
            first = own.index(label)
            second = own.index(label, first + 1)
            tensor = aten.diagonal(tensor, 0, first, second)
            own = [*own[:first], *own[first + 1 : second], *own[second + 1 :], label]
    tensor = aten.permute(tensor, [own.index(label) for label in labels if label in own])
    for d, label in enumerate(labels):
        if label not in own:
            tensor = aten.unsqueeze(tensor, d)
    return tensor


def _product(left: Tensor, right: Tensor, done: list[int]) -> Tensor:
    """The product of two aligned operands, summed over the dims `done`, which stay as 1."""
    dims = range(left.ndim)
    for d in done:
        # A label that only one of them has is summed before the product.
        if left.shape[d] != 1 and right.shape[d] == 1:
            left = aten.sum__dim_IntList(left, (d,), True)
        elif left.shape[d] == 1 and right.shape[d] != 1:
            right = aten.sum__dim_IntList(right, (d,), True)
    a, b = left.shape, right.shape
    inner = [d for d in done if a[d] != 1]
    batch = [d for d in dims if d not in done and a[d] != 1 and b[d] != 1]
    rows = [d for d in dims if d not in done and d not in batch and a[d] != 1]
    columns = [d for d in dims if d not in done and d not in batch and d not in rows]
    order = [*batch, *rows, *columns, *done]
    if not inner:
        return aten.mul__Tensor(left, right)
    one = [d for d in dims if d in done and d not in inner]
    x = aten.permute(left, [*batch, *rows, *inner, *columns, *one])
    y = aten.permute(right, [*batch, *inner, *columns, *rows, *one])
    count, n = numel([a[d] for d in batch]), numel([a[d] for d in inner])
    height, width = numel([a[d] for d in rows]), numel([b[d] for d in columns])
    made = aten.bmm(aten.reshape(x, (count, height, n)), aten.reshape(y, (count, n, width)))
    shape = [a[d] if d in batch or d in rows else b[d] if d in columns else 1 for d in order]
    back = [order.index(d) for d in dims]
    return aten.permute(aten.reshape(made, shape), back)
