"""How view operators become kernels: one that applies a geometry function on every backend, with what it remembers of it.

`@one_view(operator)` turns a geometry function (see `geometry`) into a kernel of the internal convention over the backend's
`strided`; the kernel's attribute `geometry` is the function.
"""

from __future__ import annotations

from functools import cache, lru_cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from turnout.errors import TurnoutError
from turnout.operators.stubs import compile_function
from turnout_aten.errors.failures import name_operator
from turnout_aten.shapes.extents import contiguous_strides, numel
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    class ViewKernel(Protocol):
        """A kernel of the internal convention, the geometry function that it applies, and what it remembers of that."""

        geometry: Callable[..., Any]
        remembered: Callable[..., Any]
        in_one_frame: Mapping[Any, Any]
        does: str

        def __call__(self, ks: int, tensor: Tensor, /, *args: Any) -> Any: ...

    Ints = tuple[int, ...]
    Geometry = tuple[Ints, Ints, int]


# Geometries that an operator remembers: finding one costs 100 ns, computing one up to 2,000.
_REMEMBERED = 512


def one_view(operator: str) -> Callable[[Callable[..., Geometry]], ViewKernel]:
    """Makes the kernel of a view operator with one output. The geometry depends on the arguments alone, so it is remembered.

    Where the kernel does nothing else, who records the view may do it, too: it finds the same in the attribute `in_one_frame`,
    with the array module's own way to such a view.
    """

    def kernel(geometry: Callable[..., Geometry]) -> ViewKernel:
        in_bytes = _in_bytes(geometry)
        with_ways = Remembered(_with_way(in_bytes))
        known = Remembered(lambda shape, strides, offset, args: geometry(shape, strides, offset, *args))
        made: ViewKernel = _described(_applying()(with_ways, known, _naming(operator, geometry)), geometry)
        made.remembered = lru_cache(_REMEMBERED)(in_bytes)
        made.in_one_frame = with_ways
        made.does = "view"  # see `kernels.standing`
        return made

    return kernel


def _naming(operator: str, geometry: Callable[..., Any]) -> Callable[..., Any]:
    """The geometry, with errors that begin with the operator."""

    def named(*args: Any) -> Any:
        try:
            return geometry(*args)
        except TurnoutError as error:
            name_operator(error, operator)
            raise

    return named


def _in_bytes(geometry: Callable[..., Geometry]) -> Callable[..., Any]:
    """A geometry in bytes: (shape, strides, start, offset in elements), or None if there are no elements."""

    def in_bytes(shape: Ints, steps: Ints, itemsize: int, offset: int, *args: Any) -> Any:
        if 0 in shape:
            return None
        made, strides, at = geometry(shape, tuple([s // itemsize for s in steps]), offset, *args)
        return None if 0 in made else (made, tuple([s * itemsize for s in strides]), at * itemsize, at)

    return in_bytes


class Remembered(dict[Any, Any]):
    """What a function answered, by the tuple of its arguments: `remembered[args]` asks it once. Bounded.

    A dict is asked in 120 ns, an `lru_cache` with the arguments of its own in 280.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __missing__(self, key: Any) -> Any:
        found = self._function(*key)
        if len(self) >= _REMEMBERED:
            self.clear()
        self[key] = found
        return found


def _with_way(in_bytes: Callable[..., Any]) -> Callable[..., Any]:
    """A geometry in bytes behind the array module's way to the view, or None if it has none.

    Taking a view of an array costs a third of making one over its memory, and works for memory of any order and dtype.
    """

    def with_way(shape: Ints, steps: Ints, itemsize: int, offset: int, args: tuple[Any, ...]) -> Any:
        found = in_bytes(shape, steps, itemsize, offset, *args)
        if found is None:
            return None
        made, strides, start, at = found
        return _way(shape, steps, made, strides, start - offset * itemsize, itemsize), made, strides, start, at

    return with_way


def _way(shape: Ints, strides: Ints, wanted: Ints, steps: Ints, start: int, itemsize: int) -> Callable[[Any], Any] | Ints | None:
    """A function that makes the view `wanted` of an array, by an index or a transpose; a shape to reshape it to, which saves the
    frame of a function; None if none of them does.

    Strides and `start`, counted from the array's first element, are in bytes.
    """
    if max(map(abs, steps), default=0) >= 1 << 63:
        return None
    old, new = list(zip(shape, strides, strict=True)), list(zip(wanted, steps, strict=True))
    if not start:
        if new == old[::-1]:
            return attrgetter("T")
        if sorted(old) == sorted(new) and len(set(old)) == len(old):
            order = tuple([old.index(each) for each in new])
            return lambda array: array.transpose(order)  # a frame costs less than `methodcaller`
        row_major = strides == _row_major_bytes(shape, itemsize) and steps == _row_major_bytes(wanted, itemsize)
        if row_major and numel(shape) == numel(wanted):
            return wanted
    for d, (length, stride) in enumerate(old):
        if stride <= 0 or start % stride or not 0 <= start // stride < length:
            continue
        first, lead = start // stride, (slice(None),) * d
        if old[:d] + old[d + 1 :] == new:
            return itemgetter((*lead, first, ...))
        if len(new) == len(old) and old[:d] == new[:d] and old[d + 1 :] == new[d + 1 :] and not steps[d] % stride and steps[d]:
            last, by = first + (wanted[d] - 1) * (steps[d] // stride), steps[d] // stride
            if by > 0 and last < length:
                return itemgetter((*lead, slice(first, last + 1, by), ...))
    return None


def _row_major_bytes(shape: Ints, itemsize: int) -> Ints:
    return tuple([s * itemsize for s in contiguous_strides(shape)])


@cache
def _applying() -> Callable[..., Any]:
    """(remembered geometry in bytes, that in elements, geometry) -> the kernel, with the lines of a new tensor: saves 200 ns.

    The first serves backends with `view_array`, the second others. Whatever it or the array module refuses takes the general way,
    which raises the error.
    """
    lines = [
        "def applying(remembered, known, geometry):",
        "    def apply_geometry(ks, self, *args):",
        *("        " + line for line in viewing_lines()),
        "        if found is None:",
        "            try:",
        "                found = known[array.shape, backend.strides(array), self.offset, args]",
        "            except Exception:",  # also a size that is not known, which is no key
        "                pass",
        "            shape, strides, offset = found or geometry(array.shape, backend.strides(array), self.offset, *args)",
        "            array = nothing(self, shape) if 0 in shape else backend.strided(storage.array, shape, strides, offset)",
        *("        " + line for line in view_lines()),
        "        return t",
        "    return apply_geometry",
    ]
    names = {"__name__": __name__, "nothing": nothing, "Tensor": Tensor, "CLOCK": CLOCK}
    return compile_function("\n".join(lines) + "\n", "applying", "<view>", names)


def viewing_lines() -> list[str]:
    """The source that makes `array` that of a view of `self`, from a `remembered` geometry. Where that fails, `found` is None."""
    return [
        "array = self.array",
        "storage = self.storage",
        "if storage is None: storage = self.shared_storage()",
        "device = self.device",
        "backend = device.backend",
        "found = None",
        "if backend.view_array is not None:",
        "    try:",
        "        found = remembered[array.shape, array.strides, array.itemsize, self.offset, args]",
        "        if found is not None:",
        *("            " + line for line in way_lines("array")),
        "    except Exception:",
        "        found = None",  # not here: an error below would be shown with this one as its context
    ]


def way_lines(whole: str, found: str = "found") -> list[str]:
    """The source that makes `array` and `offset` of what was found; `whole` is the array that is viewed."""
    return [
        f"way, shape, steps, start, offset = {found}",
        "if way is None:",
        "    root = storage.array",
        "    array = backend.view_array(shape, root.dtype, root, start, steps)",
        "elif way.__class__ is tuple:",
        f"    array = {whole}.reshape(way)",
        "else:",
        f"    array = way({whole})",
    ]


def view_lines(record: str = "None") -> list[str]:
    """The source that makes `t`, a tensor around that `array`, with a record or without."""
    return [*wrapping_lines(keys="backend.keys", storage="storage", view_of=record), "t.offset = offset"]


def several_views(operator: str) -> Callable[[Callable[..., list[Geometry]]], ViewKernel]:
    """Makes the kernel of a view operator that returns a list. Its geometry is remembered, too."""

    def kernel(geometry: Callable[..., list[Geometry]]) -> ViewKernel:
        in_bytes = _all_in_bytes(geometry)

        def with_ways(shape: Ints, steps: Ints, itemsize: int, offset: int, args: tuple[Any, ...]) -> Any:
            found = in_bytes(shape, steps, itemsize, offset, *args)
            if found is None:
                return None
            return [
                (_way(shape, steps, made, strides, start - offset * itemsize, itemsize), made, strides, start, at)
                for made, strides, start, at in found
            ]

        remembered = Remembered(with_ways)
        made: ViewKernel = _described(_applying_several()(remembered, _naming(operator, geometry)), geometry)
        made.remembered = lru_cache(_REMEMBERED)(in_bytes)
        made.in_one_frame = remembered
        return made

    return kernel


def _all_in_bytes(geometry: Callable[..., list[Geometry]]) -> Callable[..., Any]:
    """Several geometries in bytes, as those of `_in_bytes`; None if one has no elements."""

    def in_bytes(shape: Ints, steps: Ints, itemsize: int, offset: int, *args: Any) -> Any:
        if 0 in shape:
            return None
        found = geometry(shape, tuple([s // itemsize for s in steps]), offset, *args)
        if any([0 in made for made, _, _ in found]):  # noqa: C419 - no generator's frames
            return None
        return tuple([(made, tuple([s * itemsize for s in strides]), at * itemsize, at) for made, strides, at in found])

    return in_bytes


@cache
def _applying_several() -> Callable[..., Any]:
    """`_applying` for an operator with several outputs."""
    lines = [
        "def applying(remembered, geometry):",
        "    def apply_geometries(ks, self, *args):",
        "        whole = self.array",
        "        storage = self.storage or self.shared_storage()",
        "        device = self.device",
        "        backend = device.backend",
        "        views = []",
        "        try:",
        "            found = None",
        "            if backend.view_array is not None:",
        "                found = remembered[whole.shape, whole.strides, whole.itemsize, self.offset, args]",
        "            if found is not None:",
        "                for each in found:",
        *("                    " + line for line in way_lines("whole", "each")),
        *("                    " + line for line in view_lines()),
        "                    views.append(t)",
        "        except Exception:",
        "            found = None",  # not here: an error below would be shown with this one as its context
        "        if found is None:",
        "            views = []",
        "            for shape, strides, offset in geometry(whole.shape, backend.strides(whole), self.offset, *args):",
        "                array = nothing(self, shape) if 0 in shape else backend.strided(storage.array, shape, strides, offset)",
        *("                " + line for line in view_lines()),
        "                views.append(t)",
        "        return views",
        "    return apply_geometries",
    ]
    names = {"__name__": __name__, "nothing": nothing, "Tensor": Tensor, "CLOCK": CLOCK}
    return compile_function("\n".join(lines) + "\n", "applying", "<views>", names)


def view_in_place(operator: str, geometry: Callable[..., Geometry]) -> Callable[..., Tensor]:
    """The kernel of an in-place view operator: the tensor itself becomes the view."""
    named = _naming(operator, geometry)

    def become_view(ks: int, self: Tensor, *args: Any) -> Tensor:
        array = self.array
        storage = self.shared_storage()
        backend = self.device.backend
        shape, strides, offset = named(array.shape, backend.strides(array), self.offset, *args)
        self.array = nothing(self, shape) if 0 in shape else backend.strided(storage.array, shape, strides, offset)
        self.offset = offset
        return self

    return _described(become_view, geometry)


def nothing(self: Tensor, shape: Ints) -> Any:
    """The array of a view without elements. Such a view may start past the end of the storage, which array libraries refuse.

    # differs from torch: a view without elements, such as `x[5:]` of three rows, has row-major strides.
    """
    return self.device.backend.empty(shape, self.dtype, self.device)


def _described(kernel: Any, geometry: Any) -> Any:
    kernel.__name__ = geometry.__name__
    kernel.__qualname__ = geometry.__qualname__
    kernel.__doc__ = geometry.__doc__
    kernel.geometry = geometry
    return kernel
