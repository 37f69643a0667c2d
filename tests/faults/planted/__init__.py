"""Operators with one fault each: which check has to find it, and words that its message has to have."""

from faults.planted import calls, gradients, memory, results
from faults.planted.fault import Fault

__all__ = ["PLANTED", "Fault"]

_ALL = [each for module in (calls, gradients, memory, results) for each in module.FAULTS]
PLANTED = {each.spec.name: each for each in _ALL}
assert len(PLANTED) == len(_ALL)
