"""`functionalize`: tensors go in as tensors of a memory, the function runs, and what it wrote is copied back at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.operators.tracebacks import shortening, shortening_as
from turnout_aten import operators as aten
from turnout_aten import trees
from turnout_aten.errors import arguments as texts
from turnout_aten.errors import transforms as transform_texts
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.levels import peel, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_functionalize import errors
from turnout_functionalize.adoption import adopt
from turnout_functionalize.memories import Link, Part
from turnout_functionalize.regions import REGION, Region
from turnout_functionalize.values import FunctionalTensor, dissolve

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

REMOVE = ("mutations", "mutations_and_views")


@shortening
def functionalize(func: Callable[P, R], *, remove: str = "mutations") -> Callable[P, R]:
    """Return a function that computes what `func` does, by operators that write nothing and, if asked, view nothing.

    In-place and `out` operators become functional ones, and views are made anew after a write. Arguments and captured tensors
    that `func` writes get their new values by one `copy_` at the end; if `func` raises, they keep the old ones. The result has no
    side effects in between, so a trace of it has none, and backends whose arrays cannot be written can run it.

    Raises FunctionalizeError for what has no functional form: `resize_`, and operators whose schema does not say which
    argument a result shares memory with.

    Arguments:
        func: the function
        remove: "mutations", or "mutations_and_views": then views become copies (`view_copy`, `select_copy`), and results of
            the function share no memory with its arguments

    Example:
        >>> def doubled(x):
        ...     return x.clone().mul_(2)
        >>> print(turnout.trace(turnout.func.functionalize(doubled))(turnout.ones(2)))
        def doubled(x):
            v1 = turnout.ops.aten.clone.default(x)
            v2 = turnout.ops.aten.mul.Scalar(v1, 2)
            return v2
        <BLANKLINE>
    """
    plugins.require_functionality("Functionalize")
    if not callable(func):
        raise errors.FunctionalizeError(transform_texts.not_callable("functionalize", "func", func))
    if remove not in REMOVE:
        raise errors.FunctionalizeError(texts.not_one_of("functionalize", "remove", REMOVE, remove))
    copies = remove == "mutations_and_views"

    @shortening_as(func)
    def functionalized(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = REGION.get()
        if outer is not None:
            return _join(outer, copies, lambda: func(*args, **kwargs))
        with running(Region(copies)) as region:
            with region.entered():
                given, structure = trees.flatten([args, kwargs])
                inner = trees.unflatten(structure, [_in(each, region) for each in given])
                returned = func(*inner[0], **inner[1])
                leaves, shape = trees.flatten(returned)
                for leaf in leaves:
                    _update(leaf)
            _copy_back(region)
            return trees.unflatten(shape, [_out(leaf) for leaf in leaves])

    return functionalized


@contextmanager
def running(region: Region) -> Iterator[Region]:
    """A region; in the end, its tensors that are kept somewhere become ordinary ones."""
    try:
        yield region
    finally:
        for tensor in list(region.alive.values()):
            if isinstance(tensor, FunctionalTensor):
                dissolve(tensor, tensor.array.value())


@contextmanager
def functionalized_calls() -> Iterator[None]:
    """A block whose calls are functionalised, with `remove="mutations"`: the context of the key in `turnout-conformance`."""
    with running(Region(copies=False)) as region:
        with region.entered():
            yield
        _copy_back(region)


def _join(outer: Region, copies: bool, function: Callable[[], Any]) -> Any:
    """A functionalised function inside another: views are removed where one of them asks for it."""
    before = outer.copies
    outer.copies = before or copies
    try:
        return function()
    finally:
        outer.copies = before


def _in(leaf: Any, region: Region) -> Any:
    """An argument as the function sees it. A tensor inside vmaps is one around its plain tensor."""
    if not isinstance(leaf, Tensor):
        return leaf
    plain, levels, order = peel(leaf)
    made = adopt(plain, region)
    return raise_(aten.permute(made, order), levels) if levels else made


def _plain(leaf: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    return peel(leaf) if isinstance(leaf, Tensor) else (None, (), ())


def _update(leaf: Any) -> None:
    """Make a result's value now, while the function runs."""
    plain, _, _ = _plain(leaf)
    if isinstance(plain, FunctionalTensor):
        plain.array.value()


def _copy_back(region: Region) -> None:
    for memory in region.adopted.values():
        if memory.generation and memory.original is not None:
            if memory.recorded:
                _copy(memory.original, memory.base)
            else:
                with no_grad():
                    _copy(memory.original, memory.base)
    for op, handle, args in region.turns:
        op.call_boxed((handle, *args))


def _copy(original: Tensor, value: Tensor) -> None:
    if original.shape != value.shape:  # an output that the function resized
        aten.resize_(original, value.shape)
    original.shared_storage().count(-1)  # each write was counted when it was made
    aten.copy_(original, value)


def _out(leaf: Any) -> Any:
    """A result as the caller sees it."""
    plain, levels, order = _plain(leaf)
    if not isinstance(plain, FunctionalTensor):
        return leaf
    made = _result(plain.array)
    return raise_(aten.permute(made, order), levels) if levels else made


def _result(part: Part) -> Tensor:
    if part.handle is not None:
        return part.handle
    original = part.memory.original
    if original is None or part.memory.region.copies or not part.memory.generation:
        return part.value()
    made = original
    for link in part.links:
        made = _again(made, link)
    return made


def _again(value: Tensor, link: Link) -> Tensor:
    made = link.op.call_boxed((value, *link.args))
    viewed: Tensor = made if link.index is None else made[link.index]
    if link.apart:
        viewed.count_apart()
    return viewed
