"""Programs that read and write `x[index]` with every kind of index, and what an index selects in plain Python.

`Selection` is the reference: from a shape and the items of an index, the places that `x[index]` names and their shape.
"""

from __future__ import annotations

import math
from itertools import product
from random import Random
from typing import Any, NamedTuple

Shape = tuple[int, ...]


class WrongIndexError(Exception):
    """An index that does not fit."""


class Selection(NamedTuple):
    """What `x[index]` names: flat places in row-major order, their shape, and whether it is a view."""

    places: list[int]
    shape: Shape
    is_view: bool


class Array(NamedTuple):
    """An index tensor: its numbers in row-major order, its shape, and whether they are bools."""

    values: list[Any]
    shape: Shape
    is_mask: bool = False


# ---- the reference


def row_major(shape: Shape) -> list[Shape]:
    """The places of a shape in row-major order."""
    return list(product(*[range(n) for n in shape]))


def broadcast(*shapes: Shape) -> Shape:
    """The common shape."""
    ndim = max((len(s) for s in shapes), default=0)
    full = [(1,) * (ndim - len(s)) + s for s in shapes]
    for lengths in zip(*full, strict=True):
        if len({n for n in lengths if n != 1}) > 1:
            raise WrongIndexError("index tensors do not broadcast")
    return tuple([next((n for n in lengths if n != 1), 1) for lengths in zip(*full, strict=True)])


def _consumes(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return len(item.shape) if isinstance(item, Array) and item.is_mask else 1


def select(shape: Shape, items: tuple[Any, ...]) -> Selection:
    """What the items of an index name in a row-major tensor of that shape. Raises WrongIndexError."""
    missing = len(shape) - sum(_consumes(item) for item in items)
    if missing < 0 or sum(item is Ellipsis for item in items) > 1:
        raise WrongIndexError("too many indices")
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    axes: list[list[int]] = []  # of the view: the offset of each position
    arrays: dict[int, tuple[Shape, list[int]]] = {}  # axis -> shape and values
    offset = dim = 0
    backwards = False

    def take(count: int) -> None:
        nonlocal dim
        for _ in range(count):
            axes.append([i * strides[dim] for i in range(shape[dim])])
            dim += 1

    for item in items:
        if item is None:
            axes.append([0])
        elif item is Ellipsis:
            take(missing)
        elif isinstance(item, bool):
            arrays[len(axes)] = ((1,), [0]) if item else ((0,), [])
            axes.append([0])
        elif isinstance(item, int):
            if not -shape[dim] <= item < shape[dim]:
                raise WrongIndexError("out of range")
            offset += item % shape[dim] * strides[dim]
            dim += 1
        elif isinstance(item, slice):
            if item.step == 0:
                raise WrongIndexError("step")
            backwards = backwards or (item.step or 1) < 0
            axes.append([i * strides[dim] for i in range(*item.indices(shape[dim]))])
            dim += 1
        elif item.is_mask:
            if shape[dim : dim + len(item.shape)] != item.shape:
                raise WrongIndexError("the mask does not fit")
            true = [place for place, value in zip(row_major(item.shape), item.values, strict=True) if value]
            for d in range(len(item.shape)):
                arrays[len(axes)] = ((len(true),), [place[d] for place in true])
                take(1)
        else:
            arrays[len(axes)] = (item.shape, item.values)
            take(1)
    take(len(shape) - dim)
    if not arrays:
        lengths = tuple(map(len, axes))
        places = [offset + sum(axis[i] for axis, i in zip(axes, at, strict=True)) for at in row_major(lengths)]
        return Selection(places, lengths, not backwards)
    return _gathered(axes, arrays, offset)


def _gathered(axes: list[list[int]], arrays: dict[int, tuple[Shape, list[int]]], offset: int) -> Selection:
    chosen = broadcast(*[shape for shape, _ in arrays.values()])
    if 0 not in chosen and any(not axes[axis] for axis in arrays):
        raise WrongIndexError("nothing to select from")
    first, last = min(arrays), max(arrays)
    lead = first if len(arrays) == last - first + 1 else 0
    kept = [axis for axis in range(len(axes)) if axis not in arrays]
    lengths = [len(axes[axis]) for axis in kept]
    shape = (*lengths[:lead], *chosen, *lengths[lead:])
    if 0 in shape:  # nothing is selected, so no index is wrong
        return Selection([], shape, False)
    if any(not -len(axes[axis]) <= v < len(axes[axis]) for axis, (_, values) in arrays.items() for v in values):
        raise WrongIndexError("out of range")
    places = []
    for at in row_major(shape):
        inner = at[lead : lead + len(chosen)]
        outer = at[:lead] + at[lead + len(chosen) :]
        place = offset + sum(axes[axis][i] for axis, i in zip(kept, outer, strict=True))
        for axis, (own, values) in arrays.items():
            own_at = [0 if n == 1 else i for n, i in zip(own, inner[len(inner) - len(own) :], strict=True)]
            position = 0
            for n, i in zip(own, own_at, strict=True):
                position = position * n + i
            place += axes[axis][values[position]]
        places.append(place)
    return Selection(places, shape, False)


# ---- the programs


class Drawn(NamedTuple):
    """An index as it is written, and its items for the reference."""

    text: str
    items: tuple[Any, ...]


class Draw(Random):
    """Draws indices."""

    def __init__(self, seed: int) -> None:
        super().__init__(f"indexing {seed}")

    def chance(self, p: float) -> bool:
        return self.random() < p

    def index(self, shape: Shape) -> Drawn:
        """An index for a tensor of that shape, which mostly fits."""
        parts: list[Drawn] = []
        dim = 0
        while dim < len(shape) or self.chance(0.05):
            if parts and self.chance(0.12):
                break
            kind = self.random()
            if kind < 0.07:
                parts.append(Drawn("None", (None,)))
            elif kind < 0.12 and "..." not in [part.text for part in parts]:
                parts.append(Drawn("...", (Ellipsis,)))
                dim = max(dim, len(shape) - self.randrange(len(shape) + 1))
            elif kind < 0.15:
                parts.append(Drawn(*self.choice([("True", (True,)), ("False", (False,))])))
            else:
                found, taken = self._item(shape[dim:] or (2,))
                parts.append(found)
                dim += taken
        text = ", ".join(part.text for part in parts) or "()"
        if len(parts) != 1:
            return Drawn(text, tuple(item for part in parts for item in part.items))
        (item,) = parts[0].items
        if self.chance(0.2):
            return Drawn(f"{text},", (item,))
        if text.startswith("[[") and len(item.shape) > 1:  # lists in a list alone: a tuple of indices
            return Drawn(text, _rows(item))
        return Drawn(text, (item,))

    def _item(self, shape: Shape) -> tuple[Drawn, int]:
        """An int, a slice or a tensor for the first of these dims, and how many it takes."""
        n = shape[0]
        kind = self.random()
        if kind < 0.25:
            place = self._place(n)
            text = f"t.tensor({place}, dtype=t.{self.choice(INTEGERS)})" if self.chance(0.25) else str(place)
            return Drawn(text, (place,)), 1
        if kind < 0.55:
            return self._slice(n), 1
        if kind < 0.7:
            own = shape[: self.choice([1, 1, 1, 2, 0])]
            if self.chance(0.05):
                own = tuple([k + 1 for k in own])
            values = [self.chance(0.5) for _ in range(math.prod(own))]
            dtype = self.choice(["bool", "bool", "bool", "uint8"])
            return Drawn(self._array(values, own, dtype), (Array(values, own, True) if own else values[0],)), len(own)
        own = tuple([self.choice([1, 2, 2, 2, 3, 3, 0]) for _ in range(self.choice([1, 1, 1, 2, 2, 3]))])
        values = [self._place(n) for _ in range(math.prod(own))]
        dtype = self.choice(["int64", "int64", "int64", "int32"])
        return Drawn(self._array(values, own, dtype), (Array(values, own),)), 1

    def _array(self, values: list[Any], shape: Shape, dtype: str) -> str:
        # PyTorch counts one dim for a mask of several that is written as lists.
        if values and shape and dtype != "uint8" and (dtype != "bool" or len(shape) == 1) and self.chance(0.35):
            return str(_nested(values, shape))
        if len(values) > 0 and self.chance(0.1) and len(shape) == 1:
            return f"t.tensor({values[::-1]}, dtype=t.{dtype}).flip(0)"
        return f"t.tensor({values}, dtype=t.{dtype}).reshape({list(shape)})"

    def _place(self, n: int) -> int:
        if not n or self.chance(0.03):
            return self.choice([n, -n - 1, n + 5])
        return self.randrange(-n, n)

    def _slice(self, n: int) -> Drawn:
        start, stop = [None if self.chance(0.4) else self.randint(-n - 1, n + 1) for _ in range(2)]
        step = self.choice([None, None, None, 1, 2, 2, 3, self.choice([2, 0, -1, -1, -2, -3])])
        texts = ["" if v is None else str(v) for v in (start, stop, step)]
        return Drawn(":".join(texts if step is not None else texts[:2]), (slice(start, stop, step),))


INTEGERS = ("int64", "int64", "int32", "int16", "int8")


def _nested(values: list[Any], shape: Shape) -> Any:
    if len(shape) == 1:
        return list(values)
    step = len(values) // shape[0]
    return [_nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _rows(array: Array) -> tuple[Array, ...]:
    step = len(array.values) // array.shape[0]
    rows = [array.values[i * step : (i + 1) * step] for i in range(array.shape[0])]
    return tuple([Array(row, array.shape[1:], array.is_mask) for row in rows])


class Read(NamedTuple):
    """`name = source[index]`."""

    name: str
    source: str
    index: Drawn

    def __str__(self) -> str:
        return f"{self.name} = {self.source}[{self.index.text}]"


class Write(NamedTuple):
    """`target[index] sign value`, where `value` is a text, and its numbers and shape for the reference."""

    target: str
    index: Drawn
    sign: str
    value: str
    numbers: list[Any]
    shape: Shape

    def __str__(self) -> str:
        return f"{self.target}[{self.index.text}] {self.sign} {self.value}"


SHAPES = [(), (3,), (4,), (0,), (3, 4), (2, 3), (2, 0), (1, 3), (2, 3, 4), (3, 1, 2), (2, 2, 2, 2), (5, 1)]
DTYPES = ["float32", "float32", "float64", "int64", "int64", "int32", "bool", "uint8", "complex64", "float16", "bfloat16"]


class Program:
    """The steps of a seed. `simple` programs have row-major tensors of ints, which the reference follows.

    roots  name -> shape, of the tensors that are made first
    """

    def __init__(self, seed: int, simple: bool = False) -> None:
        self.draw = draw = Draw(seed)
        self.simple = simple
        self.roots: dict[str, Shape] = {}
        self.shapes: dict[str, Shape] = {}
        self.first: list[str] = []
        for name in "xy"[: draw.choice([1, 1, 2])]:
            self._root(name)
        self.steps: list[Read | Write] = [self._step(i) for i in range(draw.randint(2, 5))]

    @property
    def lines(self) -> list[str]:
        return [*self.first, *map(str, self.steps)]

    def _root(self, name: str) -> None:
        draw = self.draw
        shape = self.roots[name] = self.shapes[name] = draw.choice(SHAPES)
        dtype = "int64" if self.simple else draw.choice(DTYPES)
        text = f"t.arange({math.prod(shape)}).reshape({list(shape)})"
        if dtype == "bool":
            text = f"({text} % 3 == 1)"
        elif dtype != "int64":
            text += f".to(t.{dtype})"
        self.first.append(f"{name} = {text}")
        if self.simple or not shape or draw.chance(0.5):
            return
        if draw.chance(0.4):
            self.first.append(f"{name} = {name}.transpose(0, -1)")
            self.shapes[name] = (shape[-1], *shape[1:-1], shape[0]) if len(shape) > 1 else shape
        elif draw.chance(0.4):
            self.first.append(f"{name} = {name}[..., ::2]")
            self.shapes[name] = (*shape[:-1], (shape[-1] + 1) // 2)
        elif draw.chance(0.3):
            self.first.append(f"{name} = {name}.expand(2, {', '.join(map(str, shape))})")
            self.shapes[name] = (2, *shape)

    def _step(self, number: int) -> Read | Write:
        draw = self.draw
        source = draw.choice(sorted(self.shapes))
        index = draw.index(self.shapes[source])
        try:
            chosen = select(self.shapes[source], index.items).shape
        except WrongIndexError:
            chosen = None
        if draw.chance(0.45):
            name = f"r{number}"
            if chosen is not None:
                self.shapes[name] = chosen
            return Read(name, source, index)
        return Write(source, index, draw.choice(["=", "=", "=", "+=", "-=", "*="]), *self._value(chosen or ()))

    def _value(self, chosen: Shape) -> tuple[str, list[Any], Shape]:
        draw = self.draw
        if draw.chance(0.35):
            number: Any = draw.randint(-3, 5)
            if not self.simple:
                number = draw.choice([number, draw.randint(0, 3), 2.5, True, 1j if draw.chance(0.3) else 0.5])
            return str(number), [number], ()
        shape = tuple([n if draw.chance(0.85) else 1 for n in chosen])[draw.choice([0, 0, 0, 1]) :]
        shape = (1,) * draw.choice([0, 0, 0, 1, 2]) + shape
        if draw.chance(0.05):
            shape = (*shape, draw.choice([1, 2, 5]))
        if draw.chance(0.15):
            shape = draw.choice([(), (1,), (1, 1)])
        numbers = [draw.randint(0, 4) for _ in range(math.prod(shape))]
        text = f"t.tensor({numbers}, dtype=t.int64).reshape({list(shape)})"
        if not self.simple:
            text += draw.choice(["", ".to(x.dtype)", ".to(x.dtype)", ".to(x.dtype)", f".to(t.{draw.choice(DTYPES)})"])
        return text, numbers, shape
