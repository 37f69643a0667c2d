"""Operators that rearrange: views in terms of other views, and operators that copy if a view is not possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import INT
from turnout.errors import DimError, DTypeError, ShapeError
from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.composites.endings import LENGTHS, ROW_MAJOR, Equal, Inferred, ends_in, shortcut
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.failures import retell_composite
from turnout_aten.kernels.outputs import check_result_dtype, resize_output_as
from turnout_aten.kernels.standing import Standing
from turnout_aten.shapes.extents import expands_to, numel, wrap_dim, wrap_dims
from turnout_aten.shapes.specs import Out
from turnout_aten.tensor.tensor import Tensor
from turnout_aten.views.geometry import inferred_shape, viewed_strides
from turnout_aten.views.kernels import Remembered
from turnout_aten.views.shortcuts import view_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def write_out(op_name: str, out: Tensor, value: Tensor) -> Tensor:
    """Write a result into an out argument, which is resized if its shape differs."""
    op = find_operator(op_name)
    check_result_dtype(op, Out(value.shape, value.dtype), out)
    resize_output_as(op, out, value)
    aten.copy_(out, value)
    return out


def _viewed(shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]) -> Any:
    """What `reshape` calls `view` with, or None if it copies."""
    inferred = inferred_shape(wanted, numel(shape), "reshape")
    return None if viewed_strides(shape, strides, inferred) is None else (inferred,)


@shortcut(view_at_once("aten::view", _viewed))
@ends_in("aten::view", "self", Inferred("shape"), self=ROW_MAJOR, shape=LENGTHS)
def reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    """A view if the strides allow it, else a copy."""
    array, backend, wanted = self.array, self.device.backend, tuple(shape)
    found = None
    try:
        plain = backend.view_array is not None and array.__class__ is backend.array_type
        if plain:
            found = _remembered[array.shape, array.strides, array.itemsize, wanted]
        else:
            found = _remembered[array.shape, self.stride(), 1, wanted]
    except TypeError:  # a size that is not known is no key
        pass
    wanted, as_view = found or _reshaped(array.shape, self.stride(), 1, wanted)
    if as_view:
        return aten.view(self, wanted)
    return aten._unsafe_view(aten.clone(self, memory_format="contiguous_format"), wanted)


def _reshaped(
    own: tuple[int, ...], steps: tuple[int, ...], itemsize: int, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], bool]:
    """The shape without -1, and whether a view can have it. `steps` are strides in units of which an element has `itemsize`."""
    wanted = inferred_shape(shape, numel(own), "reshape")
    return wanted, viewed_strides(own, tuple([step // itemsize for step in steps]), wanted) is not None


_remembered = Remembered(_reshaped)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view with another tensor's shape."""
    return aten.view(self, other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """self expanded to another tensor's shape."""
    return aten.expand(self, other.shape)


def _flattened(shape: tuple[int, ...], start_dim: int, end_dim: int) -> tuple[int, ...] | None:
    """The shape with the dims from start to end merged into one; None if it stays as it is."""
    n = len(shape)
    start, end = wrap_dim(start_dim, n), wrap_dim(end_dim, n)
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    if start == end and n:
        return None
    return (*shape[:start], numel(shape[start : end + 1]), *shape[end + 1 :])


def _viewed_flat(shape: tuple[int, ...], strides: tuple[int, ...], start_dim: int, end_dim: int) -> Any:
    """What `flatten` calls `view` with, or None if it copies or returns the tensor itself."""
    wanted = _flattened(shape, start_dim, end_dim)
    return None if wanted is None else _viewed(shape, strides, wanted)


@shortcut(view_at_once("aten::view", _viewed_flat))
@ends_in("aten::reshape", "self", Inferred((-1,)), self=2, start_dim=Equal(0), end_dim=Equal(-1))
@ends_in("aten::reshape", "self", Inferred((-1,)), self=3, start_dim=Equal(0), end_dim=Equal(-1))
@ends_in("aten::reshape", "self", Inferred((-1,)), self=4, start_dim=Equal(0), end_dim=Equal(-1))
def flatten_using_ints(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from start to end merged into one."""
    wanted = _flattened(self.array.shape, start_dim, end_dim)
    return self if wanted is None else aten.reshape(self, wanted)


def _narrowed(shape: tuple[int, ...], strides: tuple[int, ...], dim: int, start: int, length: int) -> Any:
    """What `narrow` calls `slice` with."""
    if not shape:
        raise ShapeError(texts.needs_a_dim("narrow"))
    n = shape[wrap_dim(dim, len(shape))]
    if not -n <= start <= n:
        raise DimError(f"narrow: start {start} is out of range for dim {dim} of length {n}")
    first = start + n if start < 0 else start
    if length < 0 or first + length > n:
        raise ShapeError(f"narrow: start {start} and length {length} reach outside dim {dim} of length {n}")
    return dim, first, first + length, 1


@shortcut(view_at_once("aten::slice.Tensor", _narrowed))
def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` indices of a dim, from `start`; a negative start counts from the end."""
    return aten.slice__Tensor(self, *_narrowed(self.array.shape, (), dim, start, length))


def chunk_sizes(name: str, shape: tuple[int, ...], chunks: int, dim: int) -> tuple[int, ...]:
    """The lengths of at most `chunks` equal parts; the last part may be shorter. A length of 0 gives exactly `chunks` parts."""
    if not shape:
        raise ShapeError(texts.needs_a_dim(name))
    if chunks <= 0:
        raise ShapeError(texts.not_positive(name, "chunks", chunks))
    n = shape[wrap_dim(dim, len(shape))]
    if n == 0:
        return (0,) * chunks
    size = -(-n // chunks)
    return tuple([min(size, n - i) for i in range(0, n, size)])


def _split(shape: tuple[int, ...], strides: tuple[int, ...], chunks: int, dim: int) -> Any:
    """What `chunk` calls `split_with_sizes` with."""
    return chunk_sizes("chunk", shape, chunks, dim), dim


@shortcut(view_at_once("aten::split_with_sizes", _split))
def chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    """At most `chunks` parts of equal length along a dim; the last part may be shorter."""
    return aten.split_with_sizes(self, chunk_sizes("chunk", self.array.shape, chunks, dim), dim)


def movedim_int(self: Tensor, source: int, destination: int) -> Tensor:
    """One dim moved to another position."""
    return movedim_intlist(self, (source,), (destination,))


def movedim_intlist(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> Tensor:
    """Some dims moved to other positions; the others keep their order."""
    n = self.ndim
    if len(source) != len(destination):
        raise ShapeError(f"movedim: source {list(source)} and destination {list(destination)} must have the same length")
    goes = dict(zip(wrap_dims(destination, n), wrap_dims(source, n), strict=True))
    if not source:
        return aten.alias(self)
    rest = iter([d for d in range(n) if d not in goes.values()])
    return aten.permute(self, [goes[d] if d in goes else next(rest) for d in range(n)])


_STACKS = Standing(cat="join", view="view")


def _stack_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """Joined and cut into its parts below dispatch where nothing but the backend would see that.

    The parts are those of a result that nobody has seen yet, so its array takes their shape, and no view is made of it.
    """
    op, joins = find_operator("aten::stack"), find_operator("aten::cat").cache

    def stack(ks: int, tensors: Sequence[Tensor], dim: int) -> Any:
        if tensors:
            shape, backend = tensors[0].array.shape, tensors[0].device.backend
            row_major = backend.row_major
            plain = ks is backend.keys and row_major is not None and 0 <= dim < len(shape) < 4 and _STACKS(ks)
            if plain:
                for tensor in tensors:  # no comprehension: a frame before Python 3.12
                    if tensor.array.shape != shape:
                        plain = False
                        break
            if plain and row_major is not None:
                try:
                    made = joins[ks](ks, tensors, dim)
                except Exception as error:
                    retell_composite(op, error, (tensors, dim))
                    raise
                if made.storage is None and row_major(made.array):
                    made.array = made.array.reshape((*shape[:dim], len(tensors), *shape[dim:]))
                    return made
        return call(ks, tensors, dim)

    return stack


@shortcut(_stack_at_once)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dim."""
    if not tensors:
        raise ShapeError(texts.needs_a_tensor("stack"))
    first = tensors[0].array.shape
    for i, tensor in enumerate(tensors):
        if tensor.array.shape != first:
            raise ShapeError(f"stack: tensors[{i}] has shape {list(tensor.shape)}, tensors[0] has {list(first)}")
    at = wrap_dim(dim, len(first) + 1)
    if at < len(first) < 4:  # a new dim in front of another: what is joined along that is cut into its parts
        return aten.view(aten.cat(tensors, at), (*first[:at], len(tensors), *first[at:]))
    return aten.cat([aten.unsqueeze(t, at) for t in tensors], at)


def stack_out(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor) -> Tensor:
    """stack into `out`."""
    return write_out("aten::stack.out", out, stack(tensors, dim))


def repeat(self: Tensor, repeats: Sequence[int]) -> Tensor:
    """The tensor repeated `repeats` times along each dim. If there are more repeats than dims, leading dims are added."""
    shape = self.array.shape
    lead = len(repeats) - len(shape)
    if lead < 0:
        raise ShapeError(f"repeat: needs a number of repeats for each dimension of shape {list(self.shape)}, got {list(repeats)}")
    for times in repeats:  # no generator, whose frames would take 300 ns
        if times < 0:
            raise ShapeError(texts.negative("repeat", "repeats", list(repeats)))
    apart: tuple[Any, ...] = ()  # tuples, which stubs pass on as they are
    laid: tuple[Any, ...] = ()
    whole: tuple[Any, ...] = ()
    for times, length in zip(repeats, (*(1,) * lead, *shape), strict=True):
        apart += (1, length)
        laid += (times, length)
        whole += (times * length,)
    spread = aten.clone(aten.expand(aten.reshape(self, apart), laid), memory_format="contiguous_format")
    return aten._unsafe_view(spread, whole)


# ---- aliases and other forms of views


def broadcast_to(self: Tensor, size: Sequence[int]) -> Tensor:
    """expand."""
    return aten.expand(self, size)


def unflatten_int(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim split into several of the given lengths; one length may be -1."""
    if not self.shape:
        raise DimError(texts.needs_a_dim("unflatten"))
    d = wrap_dim(dim, self.ndim)
    if not sizes:
        raise ShapeError("unflatten: sizes must have at least one length")
    own = self.shape
    lengths = inferred_shape(sizes, own[d], "unflatten")
    return aten.view(self, (*own[:d], *lengths, *own[d + 1 :]))


def ravel(self: Tensor) -> Tensor:
    """All elements in one dim; a view if they are contiguous."""
    return aten.view(aten.contiguous(self), (-1,))


def adjoint(self: Tensor) -> Tensor:
    """The last two dims exchanged, and complex elements conjugated."""
    if self.ndim < 2:
        raise ShapeError(texts.needs_dims("adjoint", 2, self.shape))
    made: Tensor = aten.transpose__int(self, -2, -1)
    return made.conj() if made.is_complex() else made


def swapped(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """transpose under NumPy's name."""
    return aten.transpose__int(self, axis0, axis1)


def swapped_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """transpose_ under NumPy's name."""
    aten.transpose_(self, axis0, axis1)
    return self


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """reshape to another tensor's shape."""
    return aten.reshape(self, other.shape)


def reshape_alias(self: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Any shape and strides from the same first element."""
    return aten.as_strided(self, size, stride)


def narrow_Tensor(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    """narrow with the start in a 0-dim integer tensor."""
    if start.ndim or start.dtype.category != INT:
        raise DTypeError(f"narrow: 'start' must be a 0-dim integer tensor, got {start.dtype.name} {list(start.shape)}")
    return narrow(self, dim, aten._local_scalar_dense(start), length)


def split_sizes(self: Tensor, split_size: Sequence[int], dim: int = 0) -> list[Tensor]:
    """split_with_sizes."""
    return aten.split_with_sizes(self, split_size, dim)


def sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    """self summed to `size`, over the dims along which `size` broadcasts to self's shape."""
    if not expands_to(tuple(size), self.shape):
        raise ShapeError(f"sum_to_size: size {list(size)} does not expand to shape {list(self.shape)}")
    made: Tensor = self
    if not size:
        return aten.sum(self)
    lead = self.ndim - len(size)
    if lead:
        made = aten.sum__dim_IntList(made, tuple(range(lead)))
    dims = tuple([d for d, n in enumerate(size) if n == 1 and made.shape[d] != 1])
    return aten.sum__dim_IntList(made, dims, True) if dims else made
