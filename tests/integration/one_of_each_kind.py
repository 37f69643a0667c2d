"""A pytest plugin (`-p one_of_each_kind`) that leaves one dtype of each kind to the table of cases."""

from __future__ import annotations

from dataclasses import replace

from turnout_conformance import cases


def one_of_each(dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The last of each kind, for gradients are those of float64."""
    return tuple({dtype.rstrip("0123456789"): dtype for dtype in dtypes}.values())


# The kit's tests take what is there when they are imported.
cases.CASES = tuple(replace(case, dtypes=one_of_each(case.dtypes)) for case in cases.CASES)
