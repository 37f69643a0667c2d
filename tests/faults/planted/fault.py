"""What a planted fault is, and what several modules of faults begin with."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from faults.correct import like, of
from faults.model import Spec, given, values


@dataclass(frozen=True)
class Fault:
    """A planted fault.

    check  the name of the check that has to find it
    says   words that the message has to have: they name the fault
    """

    spec: Spec
    check: str
    says: str

    def __str__(self) -> str:
        return self.spec.name


SCHEMA, FAKE, GRADIENTS, REGISTRATION = "test_schema", "test_faketensor", "test_gradients", "test_autograd_registration"
REPLAY, BATCHING, AUTOCAST, BACKENDS = "test_aot_dispatch_static", "test_batching", "test_autocast", "test_backends"
INPUTS, DETERMINISM, DEFAULTS, THREADS = "test_inputs", "test_determinism", "test_defaults", "test_threads"
FUNCTIONAL = "test_aot_dispatch_dynamic"
COMPLIANCE = "test_composite_compliance"


def fault(name: str, check: str, says: str, base: Spec, **changes: Any) -> Fault:
    """A correct operator with other parts."""
    return Fault(base.but(name=name, **changes), check, says)


ONE = Spec("one", "(Tensor x) -> Tensor", lambda x: of(x.numpy() * 2), lambda: given(values(2, 3)), fake=like)
TWO = Spec(
    "two",
    "(Tensor x, Tensor y) -> Tensor",
    lambda x, y: x + y,
    lambda: given(values(2, 3), values(2, 3, seed=3)),
    fake=lambda x, y: like(x),
)


# What faulty kernels and rules keep between calls.
LATEST: dict[str, Any] = {}
TIMES = itertools.count(2)
