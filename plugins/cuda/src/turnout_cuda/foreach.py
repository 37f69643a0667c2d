"""Element-wise operators on lists of tensors, `_foreach_add_` and others: one kernel for all tensors.

What a kernel does not serve, such as tensors of other dtypes or layouts, goes one by one, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout_cuda.lists import Tables
from turnout_cuda.programs import Programs

Table = dict[str, Any]
_CHUNK_THREADS = 256

# Cases of the kernel.
_ADD, _SUB, _MUL, _DIV, _ADDCMUL, _ADDCDIV, _LERP, _SQRT, _NEG, _ABS, _RECIPROCAL = range(11)
_BINARY = {"List": 1, "Scalar": 0, "ScalarList": 0}
_TERNARY = {"Scalar": 2, "ScalarList": 2}
_BETWEEN = {"List": 2, "Scalar": 1, "ScalarList": 1}
_UNARY = {"": 0}
# fmt: off
# Operator -> its case, and its overloads with the number of lists beside the first one.
_ROWS = {
    "add": (_ADD, _BINARY), "sub": (_SUB, _BINARY), "mul": (_MUL, _BINARY), "div": (_DIV, _BINARY),
    "addcmul": (_ADDCMUL, _TERNARY), "addcdiv": (_ADDCDIV, _TERNARY), "lerp": (_LERP, _BETWEEN),
    "sqrt": (_SQRT, _UNARY), "neg": (_NEG, _UNARY), "abs": (_ABS, _UNARY), "reciprocal": (_RECIPROCAL, _UNARY),
}
# fmt: on


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    tables, table = Tables(xp), {}
    for stem, (case, overloads) in _ROWS.items():
        for overload, count in overloads.items():
            for suffix in ("", "_"):
                name = f"_foreach_{stem}{suffix}" + (f".{overload}" if overload else "")
                table[name] = _row(stem + suffix, tables, programs, case, count)
    return table


def element_operators(name: str) -> tuple[str, str]:
    """The packets that a row of this module stands for: of "_foreach_add_.List", "add" and "add_"."""
    stem = name.removeprefix("_foreach_").partition(".")[0].removesuffix("_")
    return stem, f"{stem}_"


def _row(name: str, tables: Tables, programs: Programs, case: int, count: int) -> Any:
    xp, in_place = tables.xp, name.endswith("_")

    def kernel(self_: Sequence[Any], *given: Any) -> Any:
        lists, rest = [self_, *given[:count]], given[count:]
        number: Any = rest[0] if rest else 1
        each = isinstance(number, (list, tuple))
        numbers: Sequence[Any] = number if each else (number,)
        if not all(map(_is_number, numbers)) or (each and len(numbers) != len(self_)):
            return NotImplemented
        columns = tables.columns(lists)
        if columns is None:
            return NotImplemented
        made, column = self_, columns[0]
        if not in_place:
            made = [xp.empty(a.shape, a.dtype) for a in self_]
            column = column._replace(addresses=tuple([a.data.ptr for a in made]))
        found = tables.of([column, *columns], (0,))
        if found is None:
            return NotImplemented
        scalars = xp.asarray([float(n) for n in numbers], "float64") if each else found.doubles
        args = (found.rows, found.blocks, scalars, int(each), case, count, float(numbers[0]))
        programs.start("each_element", column.dtype, (found.grid,), (_CHUNK_THREADS,), args)
        return None if in_place else list(made)

    return kernel


def _is_number(value: Any) -> bool:
    """Whether the kernel takes it as a float; a bool is for the operators of one tensor, some of which refuse it."""
    return value.__class__ in (int, float)
