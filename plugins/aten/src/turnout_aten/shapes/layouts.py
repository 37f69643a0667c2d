"""How results lie in memory: a rule for each kind of operator, which shape functions and composites ask. They are PyTorch's.

A rule answers with dense strides in elements, or None for row-major. Every backend gets its outputs as the rule says.
"""

from __future__ import annotations

from turnout.dtypes import float32
from turnout_aten.constants import MEMORY_FORMATS
from turnout_aten.shapes.extents import contiguous_strides, iterated_strides
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Ints = tuple[int, ...]

_BY_NDIM = {len(dims): name for name, dims in MEMORY_FORMATS.items()}


def ordered(shape: Sequence[int], order: Sequence[int]) -> Ints:
    """The strides of a tensor whose dims lie in memory in an order, slowest first."""
    strides = [1] * len(shape)
    for d, stride in zip(order, contiguous_strides([shape[d] for d in order]), strict=True):
        strides[d] = stride
    return tuple(strides)


def _unless_row_major(shape: Ints, order: Sequence[int]) -> Ints | None:
    if 0 in shape:
        return None
    strides = ordered(shape, order)
    return None if strides == contiguous_strides(shape) else strides


def as_operands(shape: Ints, *operands: Any) -> Ints | None:
    """Pointwise operators: dims in the order of the first operand that tells.

    Operands that are no tensors do not count, nor do dims along which an operand is repeated.
    """
    if len(shape) < 2 or 0 in shape:
        return None
    given: list[Ints] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            own = operand.array.shape
            strides = operand.stride()  # its method, for an example inside vmap has strides, but no memory
            lead = len(shape) - len(own)
            if not given and not lead and own == shape and strides == contiguous_strides(shape):
                return None
            given.append((0,) * lead + tuple([0 if n == 1 else s for n, s in zip(own, strides, strict=True)]))
    return iterated_strides(shape, given)


def as_halves(shape: Ints, tensor: Tensor) -> Ints | None:
    """Pointwise operators on parts of a tensor: dims in its order. The parts have this shape."""
    return None if len(shape) < 2 or 0 in shape else iterated_strides(shape, [tensor.stride()])


def channels_last(tensor: Any) -> str:
    """The memory format with channels last in which a tensor lies, with gaps or without; "" for any other order.

    An order that dims of length 1 leave open counts as row-major.
    """
    shape = tensor.array.shape
    name = _BY_NDIM.get(len(shape))
    if name is None:
        return ""
    array, backend = tensor.array, tensor.device.backend
    if backend.row_major is not None and array.__class__ is backend.array_type and backend.row_major(array) and 1 not in shape:
        return ""
    strides = tensor.stride()
    batch, *places, channels = MEMORY_FORMATS[name]
    least = 0
    if not strides[channels]:
        return ""
    for d in (channels, *reversed(places), batch):
        if not shape[d] or strides[d] < least or (d == batch and least == strides[channels]):
            return ""
        least = strides[d] * max(shape[d], 1)
    return name


def as_images(shape: Ints, *tensors: Any) -> Ints | None:
    """Operators on images: channels last where those of one of the tensors are."""
    name = _BY_NDIM.get(len(shape))
    if name is None or not any([channels_last(tensor) for tensor in tensors]):  # noqa: C419 - no generator's frames
        return None
    return _unless_row_major(shape, MEMORY_FORMATS[name])


def as_convolved(shape: Ints, input: Tensor, weight: Tensor) -> Ints | None:
    """Convolutions: channels last where those of the input or the weight are; of volumes for float32 only, as in oneDNN.

    # differs from torch: `conv3d` and `conv_transpose3d` of float32 volumes with channels last give channels last for any size.
    PyTorch chooses among libraries by size, and some give row-major results.
    """
    return as_images(shape, input, weight) if len(shape) == 4 or input.dtype is float32 else None


# Operators whose kernels make their results: which results lie how, and the images that decide.
RESULTS: dict[str, tuple[tuple[int, ...], Callable[..., Ints | None], tuple[int, ...]]] = {
    "convolution_backward": ((0, 1), as_convolved, (1, 2)),
    "_native_batch_norm_legit.no_stats": ((0,), as_images, (0,)),
    "_native_batch_norm_legit_functional": ((0,), as_images, (0,)),
    "_native_batch_norm_legit_no_training": ((0,), as_images, (0,)),
    "native_batch_norm_backward": ((0,), as_images, (1,)),
    "native_group_norm_backward": ((0,), as_images, (1,)),
    "native_layer_norm_backward": ((0,), as_images, ()),
    "rms_norm": ((0,), as_images, (0,)),
}


def by_columns(shape: Ints) -> Ints | None:
    """Batches of matrices that LAPACK writes: column by column."""
    n = len(shape)
    return None if n < 2 else _unless_row_major(shape, (*range(n - 2), n - 1, n - 2))


def transformed_last(shape: Ints, tensor: Tensor, dims: Sequence[int], *, last: bool) -> Ints | None:
    """Fourier transforms: the dims that are transformed lie innermost. Either part has the order of the tensor's strides; with
    `last`, the last of `dims` stays the innermost."""
    strides = tensor.stride()

    def sort(some: Sequence[int]) -> list[int]:
        return sorted(some, key=lambda d: -strides[d])

    kept = sort([d for d in range(len(shape)) if d not in dims])
    return _unless_row_major(shape, [*kept, *(sort(dims[:-1]) + [dims[-1]] if last else sort(dims))])
