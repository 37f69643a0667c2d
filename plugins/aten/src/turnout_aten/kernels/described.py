"""What the wrapper of an array kernel says of itself, for those who put something quicker in the place of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from turnout.plugins import replaceable

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.operators.calls import Line, Source
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.kernels.cases import Case
    from turnout_aten.kernels.fast_paths import Inputs
    from turnout_aten.kernels.rows import Row
    from turnout_aten.kernels.structured import Structured

Call = Callable[..., Any]

# How a wrapper calls its kernel: it makes the result; it gets outputs that are allocated by a kept answer; the result is copied
# into a given tensor; it has no shape function; it is a user's and runs once.
MAKES, PLANNED, INTO, SHAPELESS, CUSTOM = "makes", "planned", "into", "shapeless", "custom"


class KernelSpec(NamedTuple):
    """An array kernel as its wrapper calls it.

    form        one of the words above
    op          the operator
    backend     the backend
    cases       the functions that may serve a call, in order: the row's, in the backend's context where they need that
    general     what serves the calls that this wrapper leaves; None: there are none
    row         the kernel's row; None of a user's kernel
    structured  the operator with its shape function; None without one
    inputs      of a wrapper whose kernel makes the result: the calls that it takes
    as_array    makes an array of what a kernel returns in place of one
    large       of one that copies: what writes many elements straight into the first tensor, or None
    below       of one that copies: the wrapper of the functional variant
    known       of a planned wrapper: the plans that it keeps
    lines       the lines of its text that call something, by what they call
    conditions  when this wrapper serves a call by itself: expressions of its text, each with what is so where it does not hold
    """

    form: str
    op: Operator
    backend: TensorBackend
    cases: tuple[Case, ...]
    general: Call | None
    row: Row | None = None
    structured: Structured | None = None
    inputs: Inputs | None = None
    as_array: Call | None = None
    large: Call | None = None
    below: Call | None = None
    known: dict[Any, Any] | None = None
    lines: Mapping[str, Line] = MappingProxyType({})
    conditions: Sequence[tuple[str, str]] = ()


@replaceable
def wrapper(function: Call, spec: KernelSpec, source: Source) -> Call:
    """The wrapper of a text; a plugin may put what does the same in its place. The text's frames have its description."""
    source.variables["DESCRIBED"] = spec, function.__code__
    return function
