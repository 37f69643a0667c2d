"""Shortcuts of what ends in a view, or a view of a view: one frame makes and records it, where nothing watches or records more.

`reshape` of an array whose strides allow it is a `view`, and `narrow` a `slice`. What such a kernel finds out depends on shape,
strides and arguments alone, so it is remembered together with the geometry of the view.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from turnout.errors import TurnoutError
from turnout.operators.stubs import compile_function
from turnout.registry import find_operator
from turnout.state import FRESH, STUB_BUILTINS
from turnout_aten.views import geometry
from turnout_aten.views.kernels import Remembered, view_lines, way_lines
from turnout_aten.views.recording import LISTED, argument_names, record_lines, recording_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.views.kernels import ViewKernel

    Call = Callable[..., Any]
    Ints = tuple[int, ...]


def view_at_once(operator: str, kernel: ViewKernel, count: int, arguments: Callable[..., Any]) -> Callable[[Call], Call]:
    """The shortcut of a composite kernel of a tensor and `count` arguments that ends in a view operator with that kernel.

    `arguments(shape, strides, *others)` answers what the view operator is called with behind the tensor. None, or an error, means
    that the composite kernel must run. Strides are in elements.
    """

    def ending(shape: Ints, steps: Ints, itemsize: int, offset: int, others: tuple[Any, ...]) -> Any:
        try:
            args = arguments(shape, tuple([step // itemsize for step in steps]), *others)
            found = None if args is None else kernel.in_one_frame[shape, steps, itemsize, offset, args]
        except TurnoutError:  # the kernel says what is wrong
            return None
        return None if found is None else (args, found)

    given, everything = argument_names(count)
    lines = [
        "def shortcut(call, op, cache, remembered, geometry):",
        "    known = other = NOTHING",
        f"    def make_view({given}):",
        "        nonlocal known, other",
        *("        " + line for line in _head("self.keys is ks")),
        "                kernel = None",
        "                try:",
        f"                    found = remembered[array.shape, array.strides, array.itemsize, self.offset, {everything}]",
        "                    if found is not None:",
        "                        args, found = found",
        "                        kernel = cache.get(ks)",
        "                        if kernel is known and cache.get(ks & BELOW_ADINPLACEORVIEW) is geometry:",
        *("                            " + line for line in way_lines("array")),
        "                        elif kernel is not None:",
        "                            found = None",
        "                            if kernel is not known and kernel is not other:",
        "                                if getattr(kernel, 'records', None) is op: known = kernel",
        "                                else: other = kernel",  # it does more than record
        "                except (BufferError, OverflowError, TypeError, ValueError):",  # a size that is not known is no key
        "                    kernel = None",
        "                if kernel is not None:",
        "                    if found is None: return kernel(ks, self, *args)",
        *("                    " + line for line in _tail()),
        f"        return call({given})",
        "    return make_view",
    ]

    def around(call: Call) -> Call:
        op = find_operator(operator)
        names = {**recording_names(), "__builtins__": STUB_BUILTINS, "FRESH": FRESH, "NOTHING": object()}
        text = "\n".join(lines) + "\n"
        shortcut = compile_function(text, "shortcut", f"<shortcut to {operator}, {count} arguments>", names)
        made: Call = shortcut(call, op, op.cache, Remembered(ending), kernel)
        return made

    return around


def _head(plain: str) -> list[str]:
    """The source in front of both: a tensor with these keys, which nothing watches, in memory that the array module views."""
    return [
        f"if {plain} and self.__class__ is Tensor and DISPATCH() is FRESH:",
        "    array = self.array",
        "    device = self.device",
        "    backend = device.backend",
        "    if backend.view_array is not None and array.__class__ is backend.array_type:",
        "        storage = self.storage",
        "        if storage is None: storage = self.shared_storage()",
    ]


def _tail(links: str = "((op, args, None),)") -> list[str]:
    """The source behind both: the record, the tensor, and its place among the views of the memory."""
    return [*record_lines(links), *view_lines("view"), *LISTED, "return t"]


@cache
def index_at_once() -> Callable[[Any, tuple[Any, ...]], Any]:
    """(tensor, items) -> the view that an index of one or several items makes, or None.

    An item is an int, None, `...`, or a slice as a tuple of start, stop and step; a step that is omitted is 1.

    The views between the tensor and the last one are not made, since nobody would see them. The record names each operator.
    """
    kernels = {
        int: (find_operator("aten::select.int"), geometry.select_int),
        tuple: (find_operator("aten::slice.Tensor"), geometry.slice_Tensor),
        type(None): (find_operator("aten::unsqueeze"), geometry.unsqueeze),
    }

    def indexed(shape: Ints, steps: Ints, itemsize: int, offset: int, ks: int, items: tuple[Any, ...]) -> Any:
        """The links of the record, the kernels that the operators must have, and the geometry; None where one has another."""
        left = len(shape) - sum([item is not None and item is not Ellipsis for item in items])
        found, links, used, dim = None, [], {}, 0
        for item in items:
            if item is Ellipsis:
                dim += left
                continue
            if item != (None, None, 1):
                op, kernel = kernels[item.__class__]
                args = (dim, *item) if item.__class__ is tuple else (dim,) if item is None else (dim, item)
                try:
                    found = kernel.in_one_frame[shape, steps, itemsize, offset, args]
                except TurnoutError:  # the operator says what is wrong
                    return None
                recorder = op.cache[ks]  # or KeyError: the next call finds it
                if found is None or getattr(recorder, "records", None) is not op:
                    return None
                _, shape, steps, _, offset = found
                links.append((op, args, None))
                used[op] = (op.cache, recorder, kernel)
            dim += item.__class__ is not int
        return (tuple(links), tuple(used.values()), (None, *found[1:])) if found is not None else None

    lines = [
        "def at_once(remembered):",
        "    def index(self, items):",
        "        ks = self.keys",
        *("        " + line for line in _head("ks is self.device.backend.keys")),
        "                try:",
        "                    found = remembered[array.shape, array.strides, array.itemsize, self.offset, ks, items]",
        "                    if found is None: return None",
        "                    links, used, found = found",
        "                    below = ks & BELOW_ADINPLACEORVIEW",
        "                    for cache, recorder, kernel in used:",
        "                        if cache.get(ks) is not recorder or cache.get(below) is not kernel:",
        "                            remembered.clear()",  # an operator has other kernels now
        "                            return None",
        *("                    " + line for line in way_lines("array")),
        "                except (BufferError, KeyError, OverflowError, TypeError, ValueError):",
        "                    return None",
        *("                " + line for line in _tail("links")),
        "        return None",
        "    return index",
    ]
    names = {**recording_names(), "__builtins__": STUB_BUILTINS, "FRESH": FRESH}
    text = compile_function("\n".join(lines) + "\n", "at_once", "<index at once>", names)
    made: Call = text(Remembered(indexed))
    return made
