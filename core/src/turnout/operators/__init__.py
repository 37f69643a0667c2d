"""Operators: how a call finds its kernel.

| module | holds |
|---|---|
| `operator` | `Operator`: one overload; `Operator.plan`, the walk from a key set to a kernel |
| `path` | the plans of a call and of its redispatches; `Next`, what a functionality is told of them |
| `missing` | the error of a call that no kernel serves |
| `packet` | `Packet`: the overloads of a name, and the choice among them |
| `calls` | which overloads a call of an entry point may be, and where each argument comes from |
| `kernels` | `Kernel`: what was registered, bound as a callable of the internal convention |
| `stubs` | the source text of an operator's entry point, and its compilation at the first call |
| `tracebacks` | `shorten`: errors that leave a call show the lines of the program |
| `arguments` | one normaliser for each type of argument, which stubs call |
| `values` | what dispatch takes for a tensor |
| `placement` | the one device of a call, and the guard it runs under |
"""

from turnout.operators.kernels import FALLTHROUGH
from turnout.operators.operator import Operator
from turnout.operators.packet import Packet
from turnout.operators.path import Next
from turnout.operators.tracebacks import shorten
from turnout.operators.values import tensors_in

__all__ = ["FALLTHROUGH", "Next", "Operator", "Packet", "shorten", "tensors_in"]
