"""Operators: how a call finds its kernel.

| module | holds |
|---|---|
| `operator` | `Operator`: one overload; `Operator.plan`, the walk from a key set to a kernel |
| `missing` | the error of a call that no kernel serves |
| `packet` | `Packet`: the overloads of a name, and the choice among them |
| `kernels` | `Kernel`: what was registered, bound as a callable of the internal convention |
| `stubs` | the source text of an operator's entry point, and its compilation at the first call |
| `arguments` | one normaliser for each type of argument, which stubs call |
| `values` | what dispatch takes for a tensor |
| `placement` | the one device of a call, and the guard it runs under |
"""

from __future__ import annotations

from turnout.operators.operator import Operator as Operator
from turnout.operators.packet import Packet as Packet

from turnout.table import (  # isort: skip
    CHOSEN as CHOSEN, DISABLED as DISABLED, FALLS_THROUGH as FALLS_THROUGH, MISSING as MISSING,
    ONLY_TRACKED as ONLY_TRACKED, ONLY_UNTRACKED as ONLY_UNTRACKED, PASSED_OVER as PASSED_OVER, Plan as Plan,
    Step as Step,
)  # fmt: skip
