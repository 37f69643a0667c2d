"""Every operator case traced on cpu: a replay on other values gives what the operator gives, with its gradients.

The kit has the same tests for every other device: see `test_other_devices`.
"""

from __future__ import annotations

import pytest

from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import leaf, row_major, samples
from turnout_conformance.replays import call_of, check_replays, gradients_of


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_replay_gives_what_the_operator_gives(case: OperatorCase) -> None:
    check_replays(call_of(case), samples(case, "cpu"), row_major("cpu"))


@pytest.mark.parametrize("case", [c for c in CASES if c.differentiable and "float32" in c.dtypes], ids=str)
def test_a_replay_gives_the_gradients_of_the_operator(case: OperatorCase) -> None:
    check_replays(gradients_of(case), samples(case, "cpu", ("float32",)), leaf("cpu"))
