"""The results of shape functions: descriptions of a structured operator's outputs.

A shape function takes the functional variant's arguments, tensors as tensors, and returns an `Out`, a tuple of them, or a
`Result` when the kernel needs its tensors cast or some arguments replaced. It reads shapes, dtypes and strides, may call
operators, and raises the operator's errors; it is the Meta kernel too.
"""

from __future__ import annotations

from turnout.config.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from turnout.dtypes import DType

    F = TypeVar("F", bound=Callable[..., Any])
    Exact = bool | tuple[DType, ...]
    ShapeTable = dict[str, Callable[..., Any]]  # a structured out variant -> its shape function


class Out:
    """One output: shape, dtype, strides in elements (None: contiguous).

    exact  whether `out=` must have exactly that dtype, or the dtypes that it may have
    """

    __slots__ = ("dtype", "exact", "shape", "strides")

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None = None, *, exact: Exact = False
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        self.exact = (dtype,) if exact is True else exact or ()


class Result:
    """Outputs, and the steps of the wrapper before it calls the kernel.

    outs         the outputs in order
    casts        argument name -> dtype its tensor is converted to first (type promotion)
    precomputed  argument name or the names that replace it -> value, as the operator's `precomputed` field declares
    ready        of an answer that is kept: None, or what to call in place of the kernel for a row-major output
    """

    __slots__ = ("casts", "outs", "precomputed", "ready")

    def __init__(
        self, outs: Out | tuple[Out, ...], casts: Mapping[str, DType] | None = None, precomputed: Mapping[str, Any] | None = None
    ) -> None:
        self.outs = outs if isinstance(outs, tuple) else (outs,)
        self.casts = casts or {}
        self.precomputed = precomputed or {}
        self.ready: Callable[..., Any] | None = None


def as_result(answer: Out | tuple[Out, ...] | Result) -> Result:
    """Any answer of a shape function as a `Result`."""
    return answer if isinstance(answer, Result) else Result(answer)


class ShapeFacts(NamedTuple):
    """What a shape function says of itself, beside what it answers.

    dtype_of_out   an output that is given, or self in place, decides the dtype unless `dtype` does
    keeps_numbers  a number beside two-byte floats is computed as it is, and only the result is rounded. All others round the
                   number to the dtype first (`two_operands`), as PyTorch does
    prepare        answers for what it makes of the arguments can be kept where those for the arguments cannot: it returns other
                   arguments with the same result, or None
    """

    dtype_of_out: bool = False
    keeps_numbers: bool = False
    prepare: Callable[..., tuple[Any, ...] | None] | None = None


_NONE = ShapeFacts()


def shape_facts(shape: Any) -> ShapeFacts:
    """What a shape function says of itself."""
    return getattr(shape, "facts", _NONE)


def _says(**facts: Any) -> Callable[[F], F]:
    def mark(shape: F) -> F:
        shape.facts = shape_facts(shape)._replace(**facts)  # type: ignore[attr-defined]
        return shape

    return mark


def in_dtype_of_out(shape: F) -> F:
    """Mark a shape function: see `ShapeFacts.dtype_of_out`."""
    return _says(dtype_of_out=True)(shape)


def keeps_numbers(shape: F) -> F:
    """Mark a shape function: see `ShapeFacts.keeps_numbers`."""
    return _says(keeps_numbers=True)(shape)


def prepared_by(prepare: Callable[..., tuple[Any, ...] | None]) -> Callable[[F], F]:
    """Mark a shape function: see `ShapeFacts.prepare`."""
    return _says(prepare=prepare)
