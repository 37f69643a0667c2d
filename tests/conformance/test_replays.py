"""Every operator case traced on cpu, as it is and functionalised: a replay on other values gives what the operator gives, and its
gradients. A functionalised graph has no write, and no view where views are removed.

The kit traces on every other device: see `test_other_devices`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from turnout.func import functionalize

import turnout
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import leaf, of_each_kind, row_major, samples, samples_of_kinds
from turnout_conformance.replays import PLAIN, Way, call_of, check_replays, gradients_of

CLOSE = 1e-6  # a product of a copy is added up in another order than that of a transposed view


def without(remove: str) -> Callable[..., Any]:
    """`turnout.trace` of the functionalised function; looks at the graph too."""

    def trace(function: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any, **kwargs: Any) -> Any:
            graph = turnout.trace(functionalize(function, remove=remove))(*args, **kwargs)
            inputs = range(len(graph.inputs))
            for node in graph.nodes:
                schema = node.op.schema
                copies_back = node.op.qualified_name == "aten::copy_" and node.args[0].index in inputs
                assert copies_back or not schema.mutated_arguments, graph
                assert remove == "mutations" or not schema.is_view, graph
            return graph

        return traced

    return trace


WAYS = (PLAIN, Way(without("mutations_and_views"), CLOSE), Way(without("mutations"), CLOSE))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_replay_gives_what_the_operator_gives(case: OperatorCase) -> None:
    kinds = of_each_kind(case, "cpu")
    for sample, dtype in samples_of_kinds(case, "cpu"):
        ways = WAYS[:1] if dtype not in kinds else WAYS if sample is case.samples[0] else WAYS[:2]
        check_replays(call_of(case), [(sample, dtype)], row_major("cpu"), ways)


@pytest.mark.parametrize("case", [c for c in CASES if c.differentiable and "float32" in c.dtypes], ids=str)
def test_a_replay_gives_the_gradients_of_the_operator(case: OperatorCase) -> None:
    for sample, dtype in samples(case, "cpu", ("float32",)):
        check_replays(gradients_of(case), [(sample, dtype)], leaf("cpu"), WAYS if sample is case.samples[0] else WAYS[:2])
