"""`FUNCTIONS`: kernels for few elements of row-major arrays, in the table that a compiled call path reads.

It is a capsule, and `turnout_aten/kernels/compiled_functions.h` says what is in it. The path finds it in rows (`Compiled`),
so that it need not know this package.
"""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import Compiled, Row, only_few
from turnout_kernels import _native

FUNCTIONS: Any = _native.functions


def compiled(name: str) -> Compiled:
    """A function of the table, for a row."""
    return Compiled(FUNCTIONS, name)


# fmt: off
KERNELS: dict[str, Any] = {
    "sort.values_stable":           Row(only_few, program=compiled("sort")),
    "any.all_out":                  Row(only_few, program=compiled("any")),
    "any.out":                      Row(only_few, program=compiled("any along")),
    "all.all_out":                  Row(only_few, program=compiled("all")),
    "all.out":                      Row(only_few, program=compiled("all along")),
    "nll_loss_forward.output":      Row(only_few, program=compiled("class loss")),
    "nll_loss_backward.grad_input": Row(only_few, program=compiled("class slope")),
}
# fmt: on
