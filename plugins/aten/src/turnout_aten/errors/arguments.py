"""Texts about arguments that operators of several families refuse in the same way.

`name` is the function's; "" where the one that reports the error puts the name before the text. `argument` is a parameter's name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from turnout.dtypes import DType

    Shape = Sequence[int]


def _of(name: str) -> str:
    return f"{name}: " if name else ""


# ---- numbers and words


def negative(name: str, argument: str, value: object) -> str:
    return f"{_of(name)}{argument} must not be negative, got {value}"


def not_positive(name: str, argument: str, value: object) -> str:
    return f"{_of(name)}{argument} must be positive, got {value}"


def no_probability(name: str, argument: str, value: object) -> str:
    return f"{_of(name)}{argument} must lie between 0 and 1, got {value}"


def not_one_of(name: str, argument: str, known: Iterable[str], value: object) -> str:
    return f"{_of(name)}{argument} must be one of {', '.join(known)}, got {value!r}"


def copy_forbidden(name: str, what: str) -> str:
    return f"{_of(name)}{what}, which copy=False forbids"


def not_one_element(name: str, shape: Shape, remedy: str = "") -> str:
    return f"{_of(name)}expected a tensor with one element, got shape {list(shape)}{remedy}"


NO_QUOTIENT = "integer division by zero"


def not_strided(name: str, layout: object) -> str:
    return f"{_of(name)}layout must be turnout.strided, got {layout!r}"


def no_number(name: str, shape: Shape) -> str:
    return f"{_of(name)}'value' must be a number or a 0-dim tensor, got shape {list(shape)}"


# ---- dtypes


def undefined_for(name: str, dtype: DType) -> str:
    return f"{name + ' is ' if name else ''}not defined for {dtype.name} tensors"


def unordered(name: str, dtype: DType) -> str:
    """For an operator that compares elements."""
    return f"{undefined_for(name, dtype)}, which have no order"


def wrong_dtype(name: str, argument: str, wanted: DType, given: DType) -> str:
    return f"{_of(name)}'{argument}' must have dtype {wanted.name}, got {given.name}"


def different_dtypes(name: str, first: DType, other: DType) -> str:
    return f"{_of(name)}dtypes must be equal, got {first.name} and {other.name}"


def several_dtypes(name: str, operands: Mapping[str, DType]) -> str:
    """For operands that are not converted to a common dtype."""
    found = ", ".join(f"{argument} {dtype.name}" for argument, dtype in operands.items())
    return f"{_of(name)}operands must have one dtype, got {found}"


def not_int64(name: str, argument: str, dtype: DType) -> str:
    return f"{_of(name)}'{argument}' must be an int64 tensor, got {dtype.name}"


def not_bool(name: str, argument: str, dtype: DType) -> str:
    return f"{_of(name)}'{argument}' must be a bool tensor, got {dtype.name}"


def not_float(name: str, dtype: DType) -> str:
    return f"{_of(name)}needs a float tensor, got {dtype.name}"


def not_inexact(name: str, dtype: DType) -> str:
    return f"{_of(name)}expected a floating-point or complex tensor, got {dtype.name}"


def no_probabilities(name: str, dtype: DType) -> str:
    return f"{_of(name)}probabilities must be floating-point, got {dtype.name}"


def two_bytes(name: str, dtype: DType) -> str:
    """For an operator that has no kernel for dtypes of two bytes."""
    return f"{_of(name)}not implemented for {dtype.name}; convert to float32"


def complex_into(name: str, dtype: DType) -> str:
    return f"{_of(name)}a complex number cannot be written into a {dtype.name} tensor"


def unwritable_result(name: str, result: DType, target: DType) -> str:
    """For a write in place, or into an output that the caller gives."""
    return f"{_of(name)}the result has dtype {result.name}, which cannot be written into {target.name}"


# ---- numbers of dimensions


def needs_a_dim(name: str) -> str:
    return f"{_of(name)}needs at least one dimension, got a 0-dim tensor"


def needs_dims(name: str, least: int, shape: Shape) -> str:
    return f"{_of(name)}needs at least {least} dimensions, got shape {list(shape)}"


def needs_dim_of(name: str, argument: str) -> str:
    return f"{_of(name)}'{argument}' must have at least one dimension"


def few_dims(name: str, argument: str, least: int, shape: Shape) -> str:
    return f"{_of(name)}'{argument}' must have at least {least} dimensions, got shape {list(shape)}"


def not_one_dim(name: str, argument: str, shape: Shape) -> str:
    return f"{_of(name)}'{argument}' must have one dimension, got shape {list(shape)}"


def no_channels(name: str, shape: Shape) -> str:
    return f"{_of(name)}'input' must be [N, C, ...], got shape {list(shape)}"


def no_images(name: str, argument: str, least: int, most: int, shape: Shape, besides: str = ",") -> str:
    """For an operator over the last dims of [N, C, ...] or [C, ...]."""
    known = f"{least} or {most}" if least < most else most
    return f"{_of(name)}'{argument}' must have {known} dimensions{besides} got shape {list(shape)}"


def not_one_of_two(name: str, first: str, second: str) -> str:
    return f"{name}: give one of {first} and {second}"


def unequal_dims(name: str, first: Shape, second: Shape, third: Shape) -> str:
    return f"{_of(name)}all tensors must have equally many dimensions, got shapes {list(first)}, {list(second)} and {list(third)}"


def repeated_dim(name: str, dims: Sequence[int]) -> str:
    return f"{_of(name)}a dimension occurs twice in {list(dims)}"


def named_twice(name: str, dims: Sequence[int]) -> str:
    """Dims that name one dimension by its number from the start and from the end."""
    return f"{_of(name)}dims {list(dims)} name a dimension twice"


# ---- shapes


def wrong_shape(name: str, argument: str, wanted: Shape, given: Shape) -> str:
    return f"{_of(name)}'{argument}' must have shape {list(wanted)}, got {list(given)}"


def not_expanded(name: str, argument: str, shape: Shape, wanted: Shape) -> str:
    return f"{_of(name)}'{argument}' of shape {list(shape)} does not expand to {list(wanted)}"


def no_product_shape(name: str, shape: Shape, wanted: Shape) -> str:
    """For a product to which 'self' is added."""
    return f"{_of(name)}'self' of shape {list(shape)} does not expand to the product's {list(wanted)}"


def too_small(name: str, shape: Shape, result: Shape) -> str:
    """For a write in place."""
    return f"{_of(name)}self of shape {list(shape)} cannot hold the result of shape {list(result)}"


def negative_length(name: str, shape: Shape) -> str:
    return f"{_of(name)}shape {list(shape)} has a negative length"


def unequal_lengths(name: str, size: Shape, stride: Shape) -> str:
    return f"{_of(name)}size {list(size)} and stride {list(stride)} must be equally long"


def no_element(name: str, shape: Shape, dim: int | None = None) -> str:
    """For an operator that picks elements, along a dim or of a whole tensor, where there are none."""
    if dim is None:
        return f"{_of(name)}a tensor of shape {list(shape)} has no element to choose"
    return f"{_of(name)}cannot choose an element from dim {dim} of shape {list(shape)}, which has length 0"


def wrong_output_size(name: str, ndim: int, size: Shape) -> str:
    return f"{_of(name)}'output_size' must be {'one number' if ndim == 1 else f'{ndim} numbers'}, got {list(size)}"


# ---- products and systems of equations


def operands_without_dims(name: str, first: Shape, second: Shape) -> str:
    return f"{_of(name)}both operands need at least one dimension, got shapes {list(first)} and {list(second)}"


def unmatched(name: str, first: Shape, second: Shape, inner: int, other: int) -> str:
    """For operands whose lengths along the dim that is summed differ."""
    return f"{_of(name)}shapes {list(first)} and {list(second)} do not match: {inner} against {other}"


def unsolvable(name: str, matrices: Shape, results: Shape, left: bool) -> str:
    equation = "A X = B" if left else "X A = B"
    return f"{_of(name)}shapes {list(matrices)} and {list(results)} do not match in {equation}"


# ---- lists, indices and classes


def empty_slices(name: str) -> str:
    return f"{_of(name)}slices of an empty array cannot be compared"


def needs_a_tensor(name: str) -> str:
    """For an empty list of tensors."""
    return f"{_of(name)}needs at least one tensor"


def too_many_indices(name: str, count: int, ndim: int) -> str:
    return f"{_of(name)}too many indices: {count} for a tensor of {ndim} dimensions"


def no_such_index(name: str, index: int, dim: int, length: int) -> str:
    return f"{_of(name)}index {index} is out of range for dim {dim} of length {length}"


def out_of_bounds(name: str, index: int, length: int) -> str:
    return f"{_of(name)}index {index} is out of bounds for a dimension of size {length}"


def no_class(name: str, target: int, classes: int) -> str:
    return f"{_of(name)}target {target} is out of bounds for {classes} classes"


def not_per_class(name: str, classes: int, given: Shape) -> str:
    return f"{_of(name)}'weight' must be one number per class, [{classes}], got {list(given)}"


def target_does_not_fit(name: str, target: Shape, shape: Shape) -> str:
    return f"{_of(name)}'target' of shape {list(target)} does not fit 'self' of shape {list(shape)}"


# ---- images


def ungrouped(name: str, channels: int, groups: int) -> str:
    return f"{_of(name)}the number of channels, {channels}, must be a multiple of the number of groups, {groups}"


def odd_padding(name: str, ndim: int, pad: Sequence[int]) -> str:
    return f"{_of(name)}'pad' must hold two numbers for each of at most {ndim} dims, got {list(pad)}"


def too_much_padding(name: str, dim: int, length: int, before: int, after: int) -> str:
    return f"{_of(name)}dim {dim} of length {length} cannot be padded by {before} and {after}"
