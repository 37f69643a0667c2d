"""The tags of operators, which calls do not need."""

from __future__ import annotations

from enum import StrEnum, auto


class Tag(StrEnum):
    """PyTorch's tags of operators, for `tags=` in `turnout.library`. Each equals its name, so a string serves as well.

    `nondeterministic_seeded`, `dynamic_output_shape`, `data_dependent_output`, `inplace_view`, `pointwise`, `reduction` and
    `generated` change what transforms and checks do with an operator. The others only describe it.

    Arguments:
        value: the name of a tag

    Example:
        >>> turnout.Tag.pointwise == "pointwise", turnout.Tag.pointwise in turnout.ops.aten.sin.default.tags
        (True, True)
    """

    core = auto()
    cudagraph_unsafe = auto()
    data_dependent_output = auto()
    dynamic_output_shape = auto()
    flexible_layout = auto()
    generated = auto()
    inplace = auto()
    inplace_view = auto()
    maybe_aliasing_or_mutating = auto()
    needs_contiguous_strides = auto()
    needs_exact_strides = auto()
    needs_fixed_stride_order = auto()
    nondeterministic_bitwise = auto()
    nondeterministic_seeded = auto()
    out = auto()
    out_variant = auto()
    pointwise = auto()
    pt2_compliant_tag = auto()
    reduction = auto()
    view_copy = auto()
