"""Views backwards: for a base and new values of a view of it, the base with those values in the view's place.

`INVERSES` has a function for each view operator whose place in the base is known: `inverse(views, before, new, args, index)`.
Any other view operator is asked: called on the positions of the base's elements, it gives the positions in the view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from turnout.dtypes import int64
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import contiguous_strides, is_dense, wrap_dim, wrap_dims
from turnout_aten.tensor.tensor import Tensor
from turnout_functionalize import errors
from turnout_functionalize.regions import Region, silently

if TYPE_CHECKING:
    from turnout.operators import Operator

    Inverse = Callable[..., Tensor]

    class Step(Protocol):
        """One view operator of a chain."""

        op: Operator
        args: tuple[Any, ...]
        index: int | None


class Views:
    """The view operators as a region makes them: as they are, or with copies."""

    def __init__(self, region: Region, op: Operator) -> None:
        self.region = region
        self._find = op.registry.find
        self._get = op.registry.get

    def call(self, name: str, *args: Any) -> Any:
        """A standard operator on values."""
        return self.region.call(self._find("aten::" + name), *args)

    def view(self, op: Operator, value: Tensor, *args: Any) -> Any:
        """The result of a view operator; in a region without views it is a copy, or the copies of several."""
        if not self.region.copies:
            return self.region.call(op, value, *args)
        base, _, overload = op.qualified_name.partition(".")
        copying = self._get(f"{base}_copy.{overload}" if overload else f"{base}_copy")
        if copying is not None and copying.is_defined:
            return self.region.call(copying, value, *args)
        made = self.region.call(op, value, *args)
        clone = self._find("aten::clone")
        if isinstance(made, (list, tuple)):
            return [self.region.call(clone, each, None) for each in made]
        return self.region.call(clone, made, None)

    def named(self, name: str, value: Tensor, *args: Any) -> Any:
        """The result of a standard view operator."""
        return self.view(self._find("aten::" + name), value, *args)


def rule_of(op: Operator) -> Inverse | None:
    """The function of `INVERSES` for a view operator, or None."""
    return INVERSES.get(op.qualified_name.removeprefix("aten::")) if op.namespace == "aten" else None


def shows_each_once(op: Operator) -> bool:
    """Whether each element of the base is at most once in the view, and where it is is known without asking."""
    return rule_of(op) is not None and op.name != "as_strided"


# ---- the same elements


def _same(views: Views, before: Tensor, new: Tensor, args: Any, index: Any) -> Tensor:
    return new


def _reshaped(views: Views, before: Tensor, new: Tensor, args: Any, index: Any) -> Tensor:
    return _in_shape(views, new, before.shape)


def _in_shape(views: Views, value: Tensor, shape: Sequence[int]) -> Tensor:
    if value.shape == shape:
        return value
    if value.stride() != contiguous_strides(value.shape):
        value = views.call("clone", value, "contiguous_format")
    return views.named("view", value, shape)


def _permuted(views: Views, before: Tensor, new: Tensor, args: Any, index: Any) -> Tensor:
    order = wrap_dims(args[0], before.ndim)
    return views.named("permute", new, [order.index(d) for d in range(before.ndim)])


# ---- some of the elements


def _scattered(name: str) -> Inverse:
    """The base with the new elements where the view, whose arguments the scatter takes too, had them."""
    return lambda views, before, new, args, index: views.call(name, before, new, *args)


def _split(views: Views, before: Tensor, new: Tensor, args: Any, index: Any) -> Tensor:
    sizes, dim = args
    d = wrap_dim(dim, before.ndim)
    start = sum(sizes[:index]) if isinstance(sizes, (list, tuple)) else sizes * index
    return views.call("slice_scatter", before, new, d, start, start + new.shape[d], 1)


# fmt: off
INVERSES: dict[str, Inverse] = {
    "alias":                _same,
    "detach":               _same,
    "view":                 _reshaped,
    "unsqueeze":            _reshaped,
    "squeeze":              _reshaped,
    "squeeze.dim":          _reshaped,
    "squeeze.dims":         _reshaped,
    "transpose.int":        lambda views, before, new, args, index: views.named("transpose.int", new, *args),
    "t":                    lambda views, before, new, args, index: views.named("t", new),
    "permute":              _permuted,
    "view_as_real":         lambda views, before, new, args, index: views.named("view_as_complex", new),
    "view_as_complex":      lambda views, before, new, args, index: views.named("view_as_real", new),
    "view.dtype":           lambda views, before, new, args, index: views.named("view.dtype", new, before.dtype),
    "select.int":           _scattered("select_scatter"),
    "slice.Tensor":         _scattered("slice_scatter"),
    "diagonal":             _scattered("diagonal_scatter"),
    "as_strided":           _scattered("as_strided_scatter"),
    "unbind.int":           lambda views, before, new, args, index: views.call("select_scatter", before, new, args[0], index),
    "split.Tensor":         _split,
    "split_with_sizes":     _split,
}
# fmt: on


def by_positions(views: Views, links: Sequence[Step], before: Tensor, new: Tensor) -> Tensor:
    """`before` with `new` where a chain of view operators shows it, by the positions that the operators pick.

    It serves operators that move and select elements and do nothing else, and views of the elements in a dtype of the same size.
    """
    places = silently(_positions, links, before)
    if not isinstance(places, Tensor) or places.shape != new.shape:
        raise errors.FunctionalizeError(errors.no_inverse(places or links[0].op.qualified_name, errors.NOT_OF_POSITIONS))
    if new.dtype is not before.dtype:
        new = views.named("view.dtype", new, before.dtype)
    flat = _in_shape(views, before, (before.numel(),))
    source = _in_shape(views, new, (new.numel(),))
    made = views.call("scatter.src", flat, 0, silently(aten.reshape, places, (-1,)), source)
    return _in_shape(views, made, before.shape)


def _positions(links: Sequence[Step], before: Tensor) -> Tensor | str:
    """The positions in the view, or the name of an operator that does not give them."""
    found: Any = aten.reshape(aten.arange(before.numel(), dtype=int64, device=before.device), before.shape)
    if is_dense(before.shape, before.stride()):  # `as_strided` goes by memory
        found = aten.copy_(aten.new_empty_strided(found, before.shape, before.stride()), found)
    dtype = before.dtype
    for link in links:
        if link.op.qualified_name == "aten::view.dtype" and link.args[0].itemsize == dtype.itemsize:
            dtype = link.args[0]  # each element is where it was
            continue
        try:
            found = link.op.call_boxed((found, *link.args))
        except Exception:  # noqa: BLE001 - a kernel for other dtypes only raises what it likes
            return link.op.qualified_name
        found = found if link.index is None else found[link.index]
        if not isinstance(found, Tensor) or found.dtype is not int64:
            return link.op.qualified_name
    return found
