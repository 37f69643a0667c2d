"""How a graph is prepared for its calls: what of an edit, of kernels and of failures a replay notices."""

from __future__ import annotations

import copy
import gc
import linecache
import pickle
import traceback
from dataclasses import FrozenInstanceError

import pytest

import turnout
from collector import collector_off, new_objects
from outcomes import refused
from turnout import graphs
from turnout.errors import StaleOperatorError
from turnout.library import Library
from turnout_tracer.nodes import Node


@pytest.fixture
def graph():
    return turnout.trace(lambda x, y: (x + y, (x * y).sum()))(turnout.ones(3), turnout.ones(3))


def called(graph):
    return [each.tolist() for each in graph(turnout.tensor([1.0, 2.0, 3.0]), turnout.tensor([4.0, 5.0, 6.0]))]


def test_a_node_that_was_put_in_the_place_of_another_is_called(graph):
    assert called(graph) == [[5.0, 7.0, 9.0], 32.0]
    first = graph.nodes[0]
    graph.nodes[0] = Node(first.op, (*first.args[:2], 2), first.outputs, first.no_grad)
    assert called(graph) == [[9.0, 12.0, 15.0], 32.0]


def test_a_node_that_was_taken_out_is_not_called(graph):
    called(graph)
    del graph.nodes[1:]
    graph.results[1] = graph.results[0]
    assert called(graph) == [[5.0, 7.0, 9.0]] * 2


def test_a_node_cannot_be_changed(graph):
    with pytest.raises(FrozenInstanceError):
        graph.nodes[0].args = ()


def test_a_graph_that_was_called_can_be_copied_and_pickled(graph):
    called(graph)
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        del graph.nodes[2:]
        graph.results[1] = graph.results[0]
        assert called(other) == [[5.0, 7.0, 9.0], 32.0]


def test_a_replaced_tensor_of_the_state_is_read_in_the_next_call(graph):
    outside = turnout.tensor([1.0])
    held = turnout.trace(lambda x: x + outside)(turnout.ones(1))
    assert held(turnout.ones(1)).tolist() == [2.0]
    held.constants[0].tensor = turnout.tensor([5.0])
    assert held(turnout.ones(1)).tolist() == [6.0]


def test_kernels_that_come_and_go_after_a_call_are_seen():
    with Library("replayed", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        graph = turnout.trace(lambda x: turnout.ops.replayed.twice(x) + 1)(turnout.ones(1))
        assert graph(turnout.ones(1)).tolist() == [3.0]
        with Library("replayed", "IMPL") as other:
            other.impl("twice", lambda x: x * 20, "CPU", allow_override=True)
            assert graph(turnout.ones(1)).tolist() == [21.0]
        assert graph(turnout.ones(1)).tolist() == [3.0]
    refused(StaleOperatorError, lambda: graph(turnout.ones(1)))


def test_a_traceback_shows_the_call_that_failed(graph):
    with pytest.raises(Exception) as caught:
        graph(turnout.ones(3), turnout.ones(2))
    frames = traceback.extract_tb(caught.value.__traceback__)
    (line,) = [frame.line for frame in frames if frame.filename.startswith("<replay ")]
    assert line == "v2 = op0_add.call(v0, v1)"


def test_the_text_of_a_graph_that_is_gone_is_forgotten():
    before = set(linecache.cache)
    graph = turnout.trace(lambda x: x + 1)(turnout.ones(1))
    graph(turnout.ones(1))
    (text,) = [name for name in linecache.cache if name.startswith("<replay ") and name not in before]
    del graph
    gc.collect()
    assert text not in linecache.cache


def test_the_sign_of_a_zero_is_passed_on_where_the_default_is_zero():
    with Library("replayed", "DEF") as library:
        library.define("signed(Tensor x, float y=0.0) -> Tensor")
        library.impl("signed", lambda x, y: x + (1 if str(y) == "-0.0" else 0), "CPU")
        graph = turnout.trace(lambda x: turnout.ops.replayed.signed(x, -0.0))(turnout.ones(1))
        assert "-0.0" in graph.code
        assert graph(turnout.ones(1)).tolist() == [2.0]


def test_values_are_let_go_after_their_last_use():
    sizes = []
    with Library("replayed", "DEF") as library:
        library.define("watch(Tensor x) -> Tensor")

        def watch(x):
            sizes.append(sum(type(each) is turnout.Tensor and each.shape == (7, 11) for each in new_objects()))
            return x + 0

        library.impl("watch", watch, "CompositeExplicitAutograd")

        def function(x):
            for _ in range(4):
                parts = turnout.ops.replayed.watch(x).split([7, 0])
                x = parts[0] + 1
            return x

        graph = turnout.trace(function)(turnout.ones(7, 11))
        sizes.clear()
        with collector_off():
            graph(turnout.ones(7, 11))
    first = sizes[0]  # the input
    assert sizes == [first, first + 1, first + 1, first + 1]  # and the sum, but neither the part nor the list of parts


def test_a_call_with_another_number_of_results_is_an_error_that_names_the_operator():
    graph = turnout.trace(lambda x: x.split(1)[0])(turnout.ones(2))
    assert refused(graphs.TraceError, lambda: graph(turnout.ones(3))) == (
        "aten::split.Tensor returned 3 results; when the graph was traced or saved it returned 2"
    )


def test_a_graph_is_profiled_traced_and_batched_as_its_calls_are(graph):
    x = turnout.tensor([[1.0, 2.0, 3.0]] * 2)
    assert called(turnout.trace(graph)(turnout.ones(3), turnout.ones(3))) == called(graph)
    batched = turnout.func.vmap(graph)(x, x)
    assert [each.tolist() for each in batched] == [[[2.0, 4.0, 6.0]] * 2, [14.0, 14.0]]
    leaf = turnout.tensor([1.0, 2.0, 3.0], requires_grad=True)
    graph(leaf, turnout.tensor([4.0, 5.0, 6.0]))[1].backward()
    assert leaf.grad.tolist() == [4.0, 5.0, 6.0]
