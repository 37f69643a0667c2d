"""`vmap`: wrap the arguments, run the function once, unwrap the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.operators.tracebacks import shortening, shortening_as
from turnout_aten import operators as aten
from turnout_aten import trees
from turnout_aten.counts import check_count
from turnout_aten.errors import transforms as transform_texts
from turnout_aten.tensor.random import default_generator_states, set_default_generator_states
from turnout_aten.tensor.tensor import Tensor
from turnout_batched import errors
from turnout_batched.levels import Level, check_active, moved
from turnout_batched.values import BATCHED, batched_tensor

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


@shortening
def vmap(
    func: Callable[P, R], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[P, R]:
    """Return a function that does for a batch what `func` does for one example.

    Keyword arguments are passed on as they are. Raises VmapArgumentError for dims that do not fit the arguments, and
    VmapError for what a batch cannot do: `item()`, Python conditions on values, and writes of one example's values into a
    tensor that all examples share.

    Arguments:
        func: the function
        in_dims: which dim of each argument is the batch, None for an argument that all examples share: an int or
            None for all arguments, or a tuple with one entry for each, which may be nested as the argument is
        out_dims: where the batch dim goes in each result, written likewise; None for a result that is the same for
            all, which may be no tensor
        randomness: "error" refuses random operators, "same" draws once for all examples, "different" for each
        chunk_size: how many examples at a time; None for all at once

    Example:
        >>> turnout.vmap(lambda x: x.sum())(turnout.tensor([[1, 2], [3, 4]]))
        tensor([3, 7])
    """
    plugins.require_functionality("Batched")
    if not callable(func):
        raise errors.VmapArgumentError(transform_texts.not_callable("vmap", "func", func))
    check_randomness(randomness)
    check_count("vmap", "chunk_size", chunk_size, or_none=True, error=errors.VmapArgumentError)

    @shortening_as(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = trees.flatten(args)
        dims = _in_dims(in_dims, args, structure, leaves)
        size = _size(leaves, dims, structure)
        if chunk_size is None or size <= chunk_size:
            return _run(func, leaves, dims, structure, kwargs, size, out_dims, randomness)
        results = []
        drawn = default_generator_states() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if drawn is not None:
                set_default_generator_states(drawn)
            count = min(chunk_size, size - start)
            part = [
                v if d is None else aten.slice__Tensor(v, d, start, start + count, 1) for v, d in zip(leaves, dims, strict=True)
            ]
            results.append(_run(func, part, dims, structure, kwargs, count, out_dims, randomness))
        return _joined(results, out_dims)

    return mapped


def check_randomness(randomness: str) -> None:
    """Raise VmapArgumentError for anything but "error", "same" and "different"."""
    if randomness not in ("error", "same", "different"):
        raise errors.VmapArgumentError(errors.bad_randomness(randomness))


# ---- what goes in


def _in_dims(in_dims: Any, args: tuple[Any, ...], structure: Any, leaves: list[Any]) -> list[int | None]:
    """The batch dim of each leaf, counted from the front."""
    if not args:
        raise errors.VmapArgumentError(errors.no_arguments())
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if isinstance(in_dims, tuple) and len(in_dims) != len(args):
        raise errors.VmapArgumentError(errors.in_dims_count(len(in_dims), len(args)))
    found = trees.spread(in_dims, structure)
    if found is None:
        raise errors.VmapArgumentError(errors.dims_structure("in_dims", "the arguments"))
    for i, (dim, leaf) in enumerate(zip(found, leaves, strict=True)):
        if dim is not None and not (dim.__class__ is int and isinstance(leaf, Tensor) and 0 <= dim < len(leaf.array.shape)):
            found[i] = _in_dim(dim, leaf, _argument(structure, i))
    return found


def _argument(structure: Any, i: int) -> str:
    """The name of a leaf of the arguments, for errors."""
    return "argument " + trees.paths(structure)[i]


def _in_dim(dim: Any, leaf: Any, place: str) -> int:
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise errors.VmapArgumentError(errors.dim_kind("in_dims", place, dim))
    if not isinstance(leaf, Tensor):
        raise errors.VmapArgumentError(errors.dim_of_other(place, dim, leaf))
    return _in_range("in_dims", place, dim, leaf.ndim)


def _in_range(what: str, place: str, dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise errors.VmapDimError(errors.dim_range(what, place, dim, ndim))
    return dim + ndim if dim < 0 else dim


def _size(leaves: list[Any], dims: list[int | None], structure: Any) -> int:
    sizes = [(i, leaf.array.shape[d]) for i, (leaf, d) in enumerate(zip(leaves, dims, strict=True)) if d is not None]
    if not sizes:
        raise errors.VmapArgumentError(errors.nothing_mapped())
    size: int = sizes[0][1]
    for _, other in sizes:
        if other != size:
            raise errors.VmapArgumentError(errors.sizes_differ([(_argument(structure, i), n) for i, n in sizes]))
    return size


def _run(
    func: Callable[..., Any], leaves: list[Any], dims: list[int | None], structure: Any, kwargs: dict[str, Any],
    size: int, out_dims: Any, randomness: str,
) -> Any:  # fmt: skip
    level = Level(size, randomness)

    def run() -> Any:
        batched = [v if d is None else batched_tensor(_own(v), d, level) for v, d in zip(leaves, dims, strict=True)]
        return func(*trees.unflatten(structure, batched), **kwargs)

    return _out(level.run(run), out_dims, level)


def _own(value: Tensor) -> Tensor:
    """A tracked argument as another tensor over the same memory: gradients with respect to an example do not take in what else
    the function makes of the argument, as they do not for `value[i]`."""
    return aten.alias(value) if value.requires_grad else value


# ---- what comes out


def _out(result: Any, out_dims: Any, level: Level) -> Any:
    outputs, structure = trees.flatten(result)
    found = _out_dims(out_dims, structure)
    if found is None:
        raise errors.VmapArgumentError(errors.dims_structure("out_dims", "the result"))
    made = []
    for i, (value, dim) in enumerate(zip(outputs, found, strict=True)):
        batched = value.array if isinstance(value, Tensor) and value.keys & BATCHED else None
        if dim == 0 and dim.__class__ is int and batched is not None and batched.level is level:
            made.append(moved(batched.value, batched.bdim, 0))
        else:
            made.append(_unwrapped(value, dim, "the result" + trees.paths(structure)[i], level))
    return trees.unflatten(structure, made)


def _out_dims(out_dims: Any, structure: Any) -> list[Any] | None:
    """The dim of each result; a single result may have its dim in a tuple. None if `out_dims` does not match the results."""
    if structure is trees.LEAF and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return list(out_dims)
    return trees.spread(out_dims, structure)


def _unwrapped(value: Any, dim: Any, place: str, level: Level) -> Any:
    if not isinstance(value, Tensor):
        if dim is None:
            return value
        raise errors.VmapArgumentError(errors.output_kind(place, value))
    if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
        raise errors.VmapArgumentError(errors.dim_kind("out_dims", place, dim))
    batched = value.array if value.keys & BATCHED else None
    if batched is None or batched.level is not level:
        if batched is not None:
            check_active(batched.level)
        if dim is None:
            return value
        at = _in_range("out_dims", place, dim, value.ndim + 1)
        return moved(aten.expand(value, (level.size, *value.shape)), 0, at)
    if dim is None:
        raise errors.VmapArgumentError(errors.output_batched(place))
    return moved(batched.value, batched.bdim, _in_range("out_dims", place, dim, batched.value.ndim))


def _joined(results: list[Any], out_dims: Any) -> Any:
    """Concatenate the results of several chunks along their batch dims."""
    _, structure = trees.flatten(results[0])
    columns = zip(*[trees.flatten(result)[0] for result in results], strict=True)
    dims = _out_dims(out_dims, structure) or []
    return trees.unflatten(structure, [c[0] if d is None else aten.cat(list(c), d) for c, d in zip(columns, dims, strict=True)])
