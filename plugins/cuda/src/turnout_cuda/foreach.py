"""Element-wise operators on lists of tensors, `_foreach_add_` and others: one kernel for all tensors.

What a kernel does not serve, such as tensors of other dtypes or layouts, goes one by one, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout_cuda.lists import Tables
from turnout_cuda.programs import Programs, name_of

Table = dict[str, Any]
_CHUNK_THREADS = 256

# fmt: off
# What the kernel computes, by the number of its case: operator, overloads, case, lists beside the first one.
_ROWS = (
    ("add",     ("List",),                 0, 1), ("sub",     ("List",),                 1, 1),
    ("mul",     ("List",),                 2, 1), ("div",     ("List",),                 3, 1),
    ("addcmul", ("Scalar", "ScalarList"),  4, 2), ("addcdiv", ("Scalar", "ScalarList"),  5, 2),
    ("add",     ("Scalar", "ScalarList"),  6, 0), ("sub",     ("Scalar", "ScalarList"),  7, 0),
    ("mul",     ("Scalar", "ScalarList"),  8, 0), ("div",     ("Scalar", "ScalarList"),  9, 0),
    ("sqrt",    ("",),                    10, 0), ("neg",     ("",),                    11, 0),
    ("abs",     ("",),                    12, 0), ("reciprocal", ("",),                 13, 0),
)
# fmt: on


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    tables, table = Tables(xp), {}
    for stem, overloads, case, count in _ROWS:
        for overload in overloads:
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
        if not all(map(_is_number, numbers)) or (each and len(numbers) != len(self_)) or not tables.serves(lists):
            return NotImplemented
        made = self_ if in_place else [xp.empty(a.shape, a.dtype) for a in self_]
        found = tables.of([made, *lists], (0,))
        if found is None:
            return NotImplemented
        rows, blocks = found
        scalars = xp.asarray([float(n) for n in numbers], "float64") if each else rows.view("float64").reshape(-1)
        args = (rows, blocks, scalars, int(each), case, float(numbers[0]))
        programs.start("each_element", name_of(self_[0]), (len(blocks),), (_CHUNK_THREADS,), args)
        return None if in_place else list(made)

    kernel.__name__ = kernel.__qualname__ = f"each_{name}"
    return kernel


def _is_number(value: Any) -> bool:
    """Whether the kernel takes it as a float; a bool is for the operators of one tensor, some of which refuse it."""
    return value.__class__ in (int, float)
