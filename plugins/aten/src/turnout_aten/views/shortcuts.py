"""Shortcuts of what ends in a view, or is a view of a view.

`reshape` of an array whose strides allow it is a `view`, and `narrow` a `slice`. What such a kernel finds out depends on shape,
strides and arguments alone, so it is remembered. An index of several items makes one view: the others would be seen by nobody.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from turnout.errors import TurnoutError
from turnout.operators.stubs import compile_function
from turnout.registry import find_operator
from turnout.state import FRESH, STUB_BUILTINS
from turnout_aten.tensor.tensor import Tensor
from turnout_aten.views import geometry
from turnout_aten.views.kernels import Remembered, view_lines, way_lines
from turnout_aten.views.recording import LISTED, record_lines, recording_names

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[..., Any]
    Ints = tuple[int, ...]


def view_at_once(operator: str, arguments: Callable[..., Any]) -> Callable[[Call], Call]:
    """The shortcut of a composite kernel of a tensor that ends in a view operator: it calls the kernel which that has.

    `arguments(shape, strides, *others)` answers what the view operator is called with behind the tensor. None, or an error, means
    that the composite kernel must run. Strides are in elements.
    """

    def ending(shape: Ints, steps: Ints, itemsize: int, others: tuple[Any, ...]) -> Any:
        try:
            return arguments(shape, tuple([step // itemsize for step in steps]), *others)
        except TurnoutError:  # the kernel says what is wrong
            return None

    def around(call: Call) -> Call:
        kernels, remembered = find_operator(operator).cache, Remembered(ending)

        def make_view(ks: int, self: Tensor, *others: Any) -> Any:
            if self.keys is ks and self.__class__ is Tensor and STUB_BUILTINS["DISPATCH"]() is FRESH:
                array, backend, kernel = self.array, self.device.backend, kernels.get(ks)
                ours = backend.view_array is not None and array.__class__ is backend.array_type
                if kernel is not None and ours:
                    try:
                        args = remembered[array.shape, array.strides, array.itemsize, others]
                    except TypeError:  # a size that is not known is no key
                        args = None
                    if args is not None:
                        return kernel(ks, self, *args)
            return call(ks, self, *others)

        return make_view

    return around


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
        "        if ks is self.device.backend.keys and self.__class__ is Tensor and DISPATCH() is FRESH:",
        "            array = self.array",
        "            device = self.device",
        "            backend = device.backend",
        "            if backend.view_array is not None and array.__class__ is backend.array_type:",
        "                storage = self.storage",
        "                if storage is None: storage = self.shared_storage()",
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
        *("                " + line for line in [*record_lines("links"), *view_lines("view"), *LISTED, "return t"]),
        "        return None",
        "    return index",
    ]
    names = {**recording_names(), "__builtins__": STUB_BUILTINS, "FRESH": FRESH}
    text = compile_function("\n".join(lines) + "\n", "at_once", "<index at once>", names)
    return text(Remembered(indexed))
