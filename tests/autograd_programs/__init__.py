"""Random programs of views, writes, functions and what is done to the tape; a seed always gives one program.

A program is a list of steps, each a line or two of Python that any library can run which names things as PyTorch does. What
the generator believes of the variables (shapes, who shares memory, who requires a gradient) makes most steps possible; those
that are not must be refused by everyone alike, and the program goes on without them. `program` puts the steps together; what
they are made of is in `views`, `writes`, `functions` and `tape`.
"""

from __future__ import annotations

from typing import Any

from autograd_programs.program import Program
from autograd_programs.steps import Step

__all__ = ["Program", "Step", "places"]


def places(x: Any) -> list[int]:
    """Where the elements of a tensor lie, in elements from its first one. Nothing is promised of writes into repeated places."""
    found = [0]
    for length, stride in zip(x.shape, x.stride(), strict=True):
        found = [at + i * stride for at in found for i in range(length)]
    return found
