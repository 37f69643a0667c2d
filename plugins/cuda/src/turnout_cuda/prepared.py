"""What a plan of a call starts in place of a row's function: the launches and calls of CuPy that the function would make.

The functions are asked once for each plan. The table of rows is made a second time, for an array module that computes nothing: it
writes down what it is asked for, with sketches for arrays. A sketch says how an array lies, and nothing else, so a function that
looks at values, or does anything with an array that is not written down here, is not prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from turnout.config.lock import new_lock
from turnout.operators.stubs import compile_function
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.rows import Accepts, Row
from turnout_aten.shapes.extents import contiguous_strides
from turnout_cuda.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_MOST = 8  # steps: a function of more of them spends its time elsewhere
_OUT = {"copyto": 0, "reduce": 3}  # the place of the output, where it is not behind the inputs of a ufunc
_NUMBERED = count()


class NotPrepared(Exception):
    """The function does something that is not written down."""


class _Methods(type):
    """The class itself has the methods of arrays, which no sketch has: tables of rows look them up there."""

    def __getattr__(cls, name: str) -> Callable[..., NoReturn]:
        if name.startswith("_"):
            raise AttributeError(name)
        return _refuse


def _refuse(*args: Any, **options: Any) -> NoReturn:
    raise NotPrepared


class Sketch(metaclass=_Methods):
    """An array of which only the layout is there.

    name     what the prepared function calls it, or the array whose elements it has
    whole    whether it is that array; launches, which take addresses, take others, too
    address  that of the array that the plan is made with; 0 for new arrays, which begin at a multiple of any size
    """

    __slots__ = ("address", "dtype", "flags", "itemsize", "name", "ndim", "shape", "size", "strides", "whole")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None, flags: Any = None,
        address: int = 0, whole: bool = True,
    ) -> None:  # fmt: skip
        self.name, self.shape, self.dtype, self.address, self.whole = name, shape, np.dtype(dtype), address, whole
        self.ndim, self.size, self.itemsize = len(shape), prod(shape), self.dtype.itemsize
        self.strides = strides or tuple([step * self.itemsize for step in contiguous_strides(shape)])
        self.flags = _ROW_MAJOR if flags is None else flags

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> NoReturn:
        raise NotPrepared

    def reshape(self, *shape: Any) -> Sketch:
        """The same elements in another shape."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        known = prod([n for n in given if n >= 0])
        if not self.flags.c_contiguous:
            raise NotPrepared
        made = tuple([self.size // known if n < 0 else n for n in given])
        return Sketch(self.name, made, self.dtype, address=self.address, whole=False)

    def __eq__(self, other: object) -> NoReturn:
        raise NotPrepared


class _Flags:
    c_contiguous = True


_ROW_MAJOR = _Flags()


class Later:
    """A number that each call of the prepared function finds."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def _sketch(name: str, value: Any) -> Any:
    """A sketch for an array, also in a list; anything else is what it is."""
    if isinstance(value, (list, tuple)):
        return type(value)([_sketch(f"{name}[{i}]", each) for i, each in enumerate(value)])
    return (
        Sketch(name, value.shape, value.dtype, value.strides, value.flags, value.data.ptr) if hasattr(value, "strides") else value
    )


class Script(Programs):
    """What functions are asked with: programs that are not launched, and `cupy`, whose functions are not called."""

    def __init__(self, programs: Programs) -> None:
        super().__init__(None)
        self.programs = programs
        self.lock = new_lock()
        self._steps: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = []  # (what a result is called, function, arguments)
        self._aligned: dict[str, int] = {}  # arrays of the call that must begin at a multiple of so many bytes
        self._refused = False

    def start(self, name: str, dtype: str, grid: Any, block: Any, args: Any) -> None:
        """Write down a launch."""
        self._note("", (name, dtype), (tuple(grid), tuple(block), tuple(args)), {})

    def aligned(self, size: int, *arrays: Any) -> bool:
        """Whether the arrays begin at a multiple of so many bytes. If so, the function serves only calls where they do."""
        found = all(each.address % size == 0 for each in arrays)
        for each in arrays if found else ():
            if each.address:
                self._aligned[each.name] = max(self._aligned.get(each.name, 1), size)
        return found

    def apart(self, made: Any, *arrays: Any) -> bool:
        """What a plan writes is new. Only pointwise rows are prepared for calls in place, too, and they do not ask."""
        return True

    def found(self, function: Callable[[], Sequence[int]], count: int) -> tuple[Any, ...]:
        """Write down a call that finds so many numbers, each time others."""
        name = f"t{len(self._steps)}"
        self._note(name, function, (), {})
        return tuple([Later(f"{name}[{i}]") for i in range(count)])

    def called(self, name: str, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Write down a call of CuPy's, which has an output, or makes an array."""
        out, at = options.get("out"), _OUT.get(name, getattr(function, "nin", len(args)))
        if out is None and len(args) > at:
            out = args[at]
        if name == "empty":
            out = Sketch(f"t{len(self._steps)}", *_shape_and_dtype(*args, **options))
            self._note(out.name, function, (out.shape, out.dtype), {})
            return out
        if out.__class__ is not Sketch:
            self.refuse()
        self._note("", function, args, options)
        return out

    def _note(self, *step: Any) -> None:
        self._steps.append(step)
        if len(self._steps) > _MOST:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Give up, even where the function catches the error."""
        self._refused = True
        raise NotPrepared

    def of(
        self, function: Callable[..., Any], outs: Sequence[Any], native: Mapping[Any, Any], args: Sequence[Any],
        otherwise: Callable[..., Any] | None = None,
    ) -> Any:  # fmt: skip
        """What serves calls like this one: `Row.prepares`. Those whose arrays begin at other addresses go on to `otherwise`."""
        if any(_is_zero(value) for value in args):  # another call's may be -0.0
            return None
        given = [_sketch(f"a{i}", value) for i, value in enumerate(args)]
        written = [Sketch(f"o{i}", out.shape, native[out.dtype]) for i, out in enumerate(outs)]
        with self.lock:
            self._steps, self._aligned, self._refused = [], {}, False
            made = function(*given, *written)
            steps, aligned, refused = self._steps, self._aligned, self._refused
        if made is NotImplemented:
            return NotImplemented
        results = made if isinstance(made, tuple) else (made,)
        if refused or any(each is not None and all(each is not out for out in written) for each in results):
            return None
        return self._function(steps, len(args), len(outs), aligned, otherwise)

    def _function(
        self, steps: Sequence[Any], inputs: int, outputs: int, aligned: Mapping[str, int], otherwise: Callable[..., Any] | None
    ) -> Any:
        lines, constants = [], []

        def said(value: Any, launched: bool) -> str:
            if value.__class__ is Sketch and not (value.whole or launched):
                raise NotPrepared
            if value.__class__ in (Sketch, Later):
                return str(value.name)
            if value.__class__ is tuple and any(v.__class__ in (Sketch, Later) for v in value):
                return f"({', '.join([said(v, launched) for v in value])},)"
            if not _is_constant(value):
                raise NotPrepared
            constants.append(value)
            return f"c{len(constants) - 1}"

        taken = ", ".join([*[f"a{i}" for i in range(inputs)], *[f"o{i}" for i in range(outputs)]])
        for size in sorted(set(aligned.values())):
            asked = " | ".join([f"{name}.data.ptr" for name, each in aligned.items() if each == size])
            lines.append(f"if ({asked}) % {size}: return OTHERWISE({taken})")
        for result, function, args, options in steps:
            launched = function.__class__ is tuple
            called = "KERNELS[{}]" if launched else "{}"
            given = [said(value, launched) for value in args]
            given += [f"{name}={said(value, launched)}" for name, value in options.items()]
            constants.append(function)
            lines.append(f"{result and f'{result} = '}{called.format(f'c{len(constants) - 1}')}({', '.join(given)})")
        make = _maker("\n".join(lines), taken, len(constants))
        return make(self.programs.kernels, _served(otherwise), *constants)


def _served(otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """A row's function as a plan may call it: what it leaves to others is an error, after which the plan's caller asks them."""

    def call(*args: Any) -> Any:
        made = NotImplemented if otherwise is None else otherwise(*args)
        if made is NotImplemented:
            raise NotPrepared
        return made

    return call


@cache
def _maker(lines: str, taken: str, constants: int) -> Callable[..., Any]:
    """What makes prepared functions of one text: of kernels, the row's function, and the constants that it names."""
    body = "".join(f"        {line}\n" for line in lines.splitlines()) or "        pass\n"
    given = "".join(f", c{i}" for i in range(constants))
    text = f"def make(KERNELS, OTHERWISE{given}):\n    def prepared({taken}):\n{body}    return prepared\n"
    return compile_function(text, "make", f"<launches {next(_NUMBERED)} of plans on cuda>", {"__name__": __name__})


def _shape_and_dtype(shape: Any, dtype: Any = float) -> tuple[tuple[int, ...], Any]:
    return (shape if isinstance(shape, tuple) else (shape,)), dtype


def _is_constant(value: Any) -> bool:
    if value.__class__ is tuple:
        return all(map(_is_constant, value))
    return value is None or isinstance(value, (bool, int, float, str, np.generic, np.dtype, type))


def _is_zero(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_zero(each) for each in value)
    return value.__class__ is float and value == 0


class _Call:
    """A function of CuPy's, which is written down and not called."""

    def __init__(self, script: Script, name: str, function: Any) -> None:
        self._script = script
        self._name = name
        self._function = function

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._function, name)
        return _Call(self._script, name, found) if callable(found) else found

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._script.called(self._name, self._function, args, options)


class Watched:
    """CuPy, of which nothing is called but classes, which are no arrays."""

    ndarray = Sketch

    def __init__(self, cupy: Any, script: Script) -> None:
        self._cupy = cupy
        self._script = script

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cupy, name)
        if _is_constant(found):
            return found
        return _Call(self._script, name, found) if callable(found) else Watched(found, self._script)


def prepared_rows(
    rows: Mapping[str, Any], asked: Mapping[str, Any], script: Script, native: Mapping[Any, Any], below: Collection[str] = ()
) -> dict[str, Any]:
    """Rows with what prepares their plans: `asked` are the same rows, of the script. It has none of those that are not asked.

    A row that prepares plans by itself does so where `asked` leaves a call to others.

    A row that makes its result leaves that to the plan where it is pointwise, or one of those `below` other rows.
    """

    def preparing(function: Callable[..., Any], row: Row) -> Callable[..., Any]:
        def prepares(outs: Any, *args: Any) -> Any:
            made = script.of(function, outs, native, args, row.fn)
            return row.prepares(outs, *args) if made is NotImplemented and row.prepares is not None else made

        return prepares

    made: dict[str, Any] = {}
    for name, value in rows.items():
        if name not in asked or f"aten::{name}" not in STRUCTURED:  # others have no plans
            made[name] = value
            continue
        row, other = (each if isinstance(each, Row) else Row(each) for each in (value, asked[name]))
        if row.allocates and (row.pointwise or name in below):
            row = row.but(allocates="", accepts=Accepts(unless=row.accepts.unless), sizes=row.sizes._replace(simple=None))
        made[name] = row.but(prepares=preparing(other.fn, row))
    return made
