"""Operators with one fault each: which check has to find it, and words that its message has to have.

`fault` has the table, `PLANTED`; the other modules fill it.
"""

from faults.planted import calls, gradients, memory, results
from faults.planted.fault import PLANTED, Fault

__all__ = ["PLANTED", "Fault", "calls", "gradients", "memory", "results"]
