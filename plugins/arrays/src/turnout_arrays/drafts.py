"""Drafts: arrays that kernels write, over values that nobody writes. So kernels of this package run on modules without writes.

A `Draft` lives as long as a call. It has a value of the module, and a write gives it another one. A part of a draft reads and
writes the elements of that draft, as a view does. `Drafts(xp)` has the functions of the module for drafts, with NumPy's `out`.
Where values have an attribute `at`, `value.at[index].set(part)` is the value with other elements at an index, as in JAX; where
they have not, a copy is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from itertools import product
from math import prod
from types import ModuleType
from typing import Any

from turnout_arrays.numbers import POSTPONING, real_for

Call = Callable[..., Any]
Ints = tuple[int, ...]

# What a ufunc's `reduce` is called as a function, and its `at` as a method of `value.at[places]`.
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all",
}  # fmt: skip
# What may be written into what: NumPy lets no function write floats into integers, for example.
_KINDS = {"b": 0, "u": 1, "i": 2, "f": 3, "V": 3, "c": 4}
_OF_DTYPES = ("dtype", "promote_types", "can_cast", "result_type")
_UPDATES = {"add": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


def with_part(xp: Any, value: Any, index: Any, part: Any, update: str = "set", ufunc: Any = None) -> Any:
    """The value with `part` at an index, or combined with what is there by a ufunc. Of several for one place the last counts."""
    if hasattr(value, "at"):
        return getattr(value.at[index], update)(part)
    made = xp.asarray(value).copy()
    if ufunc is None:
        made[index] = part
    else:
        ufunc.at(made, index, part)
    return made


class Flags:
    """The flags of a draft, whose elements count as row-major."""

    c_contiguous = forc = True
    f_contiguous = False


class Draft:
    """An array of a call. Without a value it has zeros from the first time that it is read.

    base  the draft that this one is a part of, with `read`, which makes the value of the part from its value, and `write`, which
          makes its value from that and the value of the part
    """

    __slots__ = ("_base", "_read", "_seen", "_value", "_write", "drafts", "dtype", "shape", "version")
    _read: Call
    _write: Call
    _seen: int  # the version of the base from which the value was read
    device = object()  # not a word, as NumPy's is: kernels keep no arrays for others
    flags = Flags()

    def __init__(self, drafts: Drafts, shape: Ints, dtype: Any, value: Any = None) -> None:
        self.drafts, self.shape, self.dtype, self._value = drafts, shape, dtype, value
        self.version = 0
        self._base: Draft | None = None

    # ---- the value

    def value(self) -> Any:
        """The elements, as a value of the module."""
        if self._base is not None:
            self._follow(self._base)
        elif self._value is None:
            self._value = self.drafts.xp.zeros(self.shape, self.dtype)
        return self._value

    def _follow(self, base: Draft) -> None:
        value = base.value()
        if self._seen != base.version:
            self._value, self._seen = self._read(value), base.version
            self.version += 1

    def replace(self, value: Any) -> None:
        """Take another value for all elements."""
        if self._base is not None:
            self._base.replace(self._write(self._base.value(), value))
            self._seen = self._base.version
        self._value = value
        self.version += 1

    def part(self, read: Call, write: Call) -> Draft:
        """A draft of elements of this one."""
        value = read(self.value())
        made = Draft(self.drafts, tuple(value.shape), value.dtype, value)
        made._base, made._read, made._write, made._seen = self, read, write, self.version
        return made

    def fitted(self, value: Any, shape: Ints) -> Any:
        """A value or number in the dtype of this draft, in a shape."""
        xp = self.drafts.xp
        if not hasattr(value, "shape"):
            return xp.full(shape, value, self.dtype)
        if value.dtype != self.dtype:
            value = real_for(self.dtype, value).astype(self.dtype)
        return value if tuple(value.shape) == shape else xp.broadcast_to(value, shape)

    # ---- indices

    def __getitem__(self, index: Any) -> Draft:
        index = bare(index)
        if any(hasattr(each, "dtype") or isinstance(each, list) for each in (index if isinstance(index, tuple) else (index,))):
            return self.drafts.of(self.value()[index])
        xp = self.drafts.xp
        return self.part(lambda value: value[index], lambda value, new: with_part(xp, value, index, new))

    def __setitem__(self, index: Any, new: Any) -> None:
        new = bare(new)
        if index is Ellipsis:
            self.replace(self.fitted(new, self.shape))
            return
        if hasattr(new, "dtype") and new.dtype != self.dtype:
            new = self.fitted(new, tuple(new.shape))
        elif self.dtype.kind == "b" and isinstance(new, (int, float)):
            new = bool(new)  # JAX warns of numbers among truth values
        self.replace(with_part(self.drafts.xp, self.value(), bare(index), new))

    def written(self, made: Any) -> Draft:
        """This draft, after a function wrote its result into it. Raises TypeError for one of a higher kind, as NumPy does."""
        if _KINDS[made.dtype.kind] > _KINDS[self.dtype.kind]:
            raise TypeError(f"cannot write {made.dtype} into {self.dtype}")
        self[...] = made
        return self

    def fill(self, number: Any) -> None:
        self[...] = number

    # ---- other parts

    def reshape(self, *shape: Any) -> Draft:
        to = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return self.part(lambda value: value.reshape(to), lambda value, new: new.reshape(value.shape))

    def transpose(self, *order: int) -> Draft:
        dims = order or tuple(reversed(range(self.ndim)))
        back = tuple([dims.index(d) for d in range(self.ndim)])
        return self.part(lambda value: value.transpose(dims), lambda value, new: new.transpose(back))

    def swapaxes(self, first: int, second: int) -> Draft:
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self.transpose(*order)

    def view(self, dtype: Any) -> Draft:
        return self.part(lambda value: value.view(dtype), lambda value, new: new.view(value.dtype))

    @property
    def T(self) -> Draft:
        return self.transpose()

    def _half(self, name: str) -> Draft:
        other = {"real": lambda value, new: new + 1j * value.imag, "imag": lambda value, new: value.real + 1j * new}[name]
        return self.part(lambda value: getattr(value, name), lambda value, new: other(value, new).astype(value.dtype))

    def _set_half(self, name: str, new: Any) -> None:
        self._half(name)[...] = new

    real = property(lambda self: self._half("real"), lambda self, new: self._set_half("real", new))
    imag = property(lambda self: self._half("imag"), lambda self, new: self._set_half("imag", new))

    # ---- facts

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def strides(self) -> Ints:
        """Those of row-major memory, in bytes."""
        return tuple([self.itemsize * prod(self.shape[d + 1 :]) for d in range(self.ndim)])

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Draft]:
        return (self[i] for i in range(len(self)))

    # ---- what gives other arrays

    def astype(self, dtype: Any, copy: bool = True) -> Draft:
        if not copy and dtype == self.dtype:
            return self
        return self.drafts.of(self.fitted(self.value(), self.shape) if dtype == self.dtype else self.value().astype(dtype))

    def copy(self) -> Draft:
        return self.drafts.of(self.value())

    def argsort(self, axis: int = -1, kind: str | None = None) -> Draft:
        return self.drafts.argsort(self, axis, kind=kind)

    def dot(self, other: Any, out: Any = None) -> Any:
        return self.drafts.matmul(self, other, out=out)

    def argmax(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return self.drafts.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return self.drafts.argmin(self, axis=axis, keepdims=keepdims)

    def __getattr__(self, name: str) -> Any:
        """Any other method: that of the value."""
        if name[:1] == "_":
            raise AttributeError(name)
        return Function(self.drafts, getattr(self.value(), name))


def _operator(name: str) -> Call:
    def run(self: Draft, *others: Any) -> Any:
        return self.drafts.of(getattr(self.value(), name)(*map(bare, others)))

    return run


def _in_place(name: str) -> Call:
    def run(self: Draft, other: Any) -> Draft:
        return self.written(getattr(self.value(), name)(bare(other)))

    return run


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul"):
    setattr(Draft, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Draft, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(Draft, f"__i{_name}__", _in_place(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert", "bool", "int", "float", "complex", "index"):
    setattr(Draft, f"__{_name}__", _operator(f"__{_name}__"))
Draft.__hash__ = object.__hash__  # type: ignore[method-assign]


def bare(given: Any) -> Any:
    """An argument with values in place of drafts, also inside lists and tuples."""
    if given.__class__ is Draft:
        return given.value()
    if given.__class__ is tuple or given.__class__ is list:
        return given.__class__([bare(each) for each in given])
    return given


class Function:
    """A function of an array module, for drafts. NumPy's `out` may stand behind its other arguments."""

    def __init__(self, drafts: Drafts, function: Call) -> None:
        self.drafts, self.function = drafts, function
        self.__name__ = self.__qualname__ = getattr(function, "__name__", "function")
        # For a reduction over an axis: what the module has as a function, where NumPy has a ufunc's `reduce`.
        self.reduction = getattr(drafts.xp, _REDUCTIONS.get(self.__name__, ""), None)

    def __call__(self, *args: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        unsafe = options.pop("casting", "") == "unsafe"
        limit, has_dtype = _taken(self.function)
        if limit < len(args):
            args, out = args[:limit], args[limit]
        if "dtype" in options and not has_dtype:
            dtype = options.pop("dtype")
            args = tuple([a.astype(dtype) if a.__class__ is Draft else a for a in args])
        made = self.function(*map(bare, args), **{name: bare(value) for name, value in options.items()})
        if out is None:
            return self.drafts.of(made)
        if unsafe:
            out[...] = made
            return out
        return out.written(made)

    def reduce(self, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """A ufunc's `reduce`."""
        options = {"keepdims": keepdims} if dtype is None else {"keepdims": keepdims, "dtype": dtype}
        assert self.reduction is not None, f"{self.__name__} is no ufunc that reduces"
        made = self.reduction(bare(x), axis=tuple(axis) if axis.__class__ is list else axis, **options)
        return self.drafts.of(made) if out is None else out.written(made)

    def accumulate(self, x: Draft, axis: int, dtype: Any = None) -> Any:
        """A ufunc's `accumulate`: the module's function, or as many steps as the length has bits."""
        xp, value = self.drafts.xp, bare(x)
        own = getattr(xp, {"sum": "cumsum", "prod": "cumprod"}.get(_REDUCTIONS.get(self.__name__, ""), ""), None)
        if own is not None:
            return self.drafts.of(own(value, axis=axis, dtype=dtype or x.dtype))
        lead, step = (slice(None),) * (axis % x.ndim), 1
        while step < x.shape[axis]:
            combined = self.function(value[(*lead, slice(step, None))], value[(*lead, slice(None, -step))])
            value = xp.concatenate([value[(*lead, slice(None, step))], combined], axis=axis)
            step *= 2
        return self.drafts.of(value)

    def at(self, target: Draft, places: Any, values: Any) -> None:
        """A ufunc's `at`."""
        values = bare(values)
        if hasattr(values, "dtype") and values.dtype != target.dtype:
            values = values.astype(target.dtype)
        update = _UPDATES[self.__name__]
        target.replace(with_part(self.drafts.xp, target.value(), bare(places), values, update, self.function))


class Absent:
    """In place of a function that the module does not have."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(f"the array module has no {self.__name__}")


@cache
def _taken(function: Call) -> tuple[int, bool]:
    """How many positional arguments a function has before an output, and whether it has an argument `dtype`."""
    if isinstance(getattr(function, "nin", None), int):
        return function.nin, False  # type: ignore[attr-defined]
    try:
        found = signature(function).parameters
    except ValueError:  # a builtin that does not say
        return 100, True
    names = [name for name, p in found.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variable = any(p.kind is p.VAR_POSITIONAL for p in found.values())
    return names.index("out") if "out" in names else 100 if variable else len(names), "dtype" in found


class Drafts:
    """An array module of drafts.

    xp  the array module: its arrays are `xp.ndarray`
    """

    ndarray = Draft
    wraps_indices = True  # or leaves out those that are out of range: kernels check them
    expect_indices = None

    def __init__(self, xp: Any, whole: Any = None) -> None:
        self.xp = xp if whole is None else whole
        self._functions = xp

    def of(self, made: Any) -> Any:
        """What a function returned: values as drafts, also those in a tuple."""
        if isinstance(made, (tuple, list)):
            return tuple([self.of(each) for each in made])
        if isinstance(made, self.xp.ndarray) or (hasattr(made, "dtype") and hasattr(made, "reshape")):
            return Draft(self, tuple(made.shape), made.dtype, made)
        return made

    def of_argument(self, given: Any) -> Any:
        """An argument of a kernel: values as drafts, those of a list in a list."""
        return [self.of(each) for each in given] if isinstance(given, (list, tuple)) else self.of(given)

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        found = getattr(self._functions, name, None)
        if found is None:
            made: Any = Absent(name)
        elif isinstance(found, ModuleType):
            made = (Decompositions if name == "linalg" and not hasattr(found, "LinAlgError") else Drafts)(found, self.xp)
        elif isinstance(found, type) or hasattr(found, "dtype") or not callable(found) or name in _OF_DTYPES:
            made = found
        else:
            made = Function(self, found)
        setattr(self, name, made)
        return made

    # ---- NumPy's functions that make arrays to be written, or write

    def empty(self, shape: Any, dtype: Any = float) -> Draft:
        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        return Draft(self, lengths, self.xp.dtype(dtype))

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        if value.__class__ is Draft:
            return value if dtype is None else value.astype(dtype, copy=False)
        return self.of(self.xp.asarray(bare(value), dtype=dtype))

    def ascontiguousarray(self, value: Any) -> Any:
        return self.asarray(value)

    def argsort(self, x: Any, axis: int = -1, kind: str | None = None) -> Any:
        return self.of(self.xp.argsort(bare(x), axis=axis, **({"stable": True} if kind == "stable" else {})))

    def moveaxis(self, x: Any, source: int, to: int) -> Any:
        order = [d for d in range(x.ndim) if d != source % x.ndim]
        order.insert(to % x.ndim, source % x.ndim)
        return x.transpose(*order)

    def swapaxes(self, x: Any, first: int, second: int) -> Any:
        return x.swapaxes(first, second)

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    def copyto(self, target: Draft, source: Any, casting: str = "", where: Any = None) -> None:
        value = target.fitted(bare(source), target.shape)
        target.replace(value if where is None else self.xp.where(bare(where), value, target.value()))

    def put_along_axis(self, target: Draft, places: Draft, values: Any, axis: int) -> None:
        grid: list[Any] = []
        for d, n in enumerate(places.shape):
            grid.append(self.xp.arange(n).reshape((1,) * d + (n,) + (1,) * (places.ndim - d - 1)))
        grid[axis] = places
        target[tuple(grid)] = values

    def ndindex(self, *shape: int) -> Iterator[Ints]:
        return product(*map(range, shape))

    @property
    def lib(self) -> Any:
        return self

    @property
    def stride_tricks(self) -> Any:
        return self

    def as_strided(self, x: Draft, shape: Ints, strides: Ints) -> Draft:
        """A copy of the elements of windows. NumPy's function, which has strides in bytes."""
        places = positions(self.xp, shape, tuple([s // x.itemsize for s in strides]), 0)
        return self.of(x.value().reshape(-1)[places])


POSTPONING.add(Drafts)


class Decompositions(Drafts):
    """The decompositions of a module that gives nan where NumPy raises an error."""

    class LinAlgError(Exception):
        """NumPy's error."""

    def cholesky(self, x: Any) -> Any:
        xp, value = self.xp, bare(x)
        lower = xp.tril(value)
        made = self._functions.cholesky(lower + xp.conj(xp.swapaxes(xp.tril(value, -1), -1, -2)))
        if bool(xp.any(made != made)):
            raise self.LinAlgError
        return self.of(made)


def positions(xp: Any, shape: Ints, strides: Ints, offset: int) -> Any:
    """The places of the elements of a geometry in row-major memory, in its shape. Strides and offset count elements."""
    found = xp.full((1,) * len(shape), offset, xp.int64)
    for d, (length, stride) in enumerate(zip(shape, strides, strict=True)):
        found = found + xp.arange(length).reshape((1,) * d + (length,) + (1,) * (len(shape) - d - 1)) * stride
    return found
