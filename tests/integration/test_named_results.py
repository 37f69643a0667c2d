"""Functions and methods with several named results return tuples with those names, whatever layers the call went through."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import turnout
from outcomes import refused
from turnout.errors import CallError
from turnout_aten.functions import return_types


@pytest.fixture
def x():
    return turnout.tensor([[1.0, 3.0], [2.0, 0.0]])


def test_results_have_the_names_of_the_schema(x):
    for result in (x.max(1), turnout.max(x, 1), x.max(dim=1, keepdim=False), turnout.max(input=x, dim=1)):
        assert type(result) is return_types.max is turnout.return_types.max
        assert result.values.tolist() == [3.0, 2.0]
        assert result.indices.tolist() == [1, 0]
    for result in (x.sort(), turnout.sort(x, dim=0), x.sort(stable=True), x.topk(1), turnout.topk(x, 1)):
        assert result._fields == ("values", "indices")


def test_an_overload_with_one_result_returns_the_tensor(x):
    assert type(x.max()) is turnout.Tensor
    assert type(turnout.max(x)) is turnout.Tensor
    assert type(turnout.max(x, x)) is turnout.Tensor


def test_out_gets_names_too(x):
    values, indices = turnout.empty(2), turnout.empty(2, dtype=turnout.int64)
    result = turnout.max(x, 1, out=(values, indices))
    assert type(result) is return_types.max
    assert result.values is values
    assert result.indices is indices


def test_a_named_result_is_a_tuple(x):
    result = x.max(1)
    values, indices = result
    assert isinstance(result, tuple)
    assert result[0] is values is result.values
    assert len(result) == 2
    assert result == (values, indices) == result
    assert hash(result) == hash((values, indices))
    assert type(result[:1]) is tuple
    match result:
        case return_types.max(a, b):
            assert (a, b) == (values, indices)
    with pytest.raises(AttributeError):
        result.values = x
    assert repr(result) == "turnout.return_types.max(\nvalues=tensor([3., 2.]),\nindices=tensor([1, 0]))"


def test_operators_themselves_return_plain_tuples(x):
    assert type(turnout.ops.aten.max.dim(x, 1)) is tuple


def test_a_result_can_be_made_of_as_many_values_as_it_has_names(x):
    assert return_types.max([x, x]).indices is x
    assert refused(CallError, return_types.max, (x,)) == "max: takes a sequence of 2 values (values, indices), got 1"
    assert refused(AttributeError, lambda: return_types.exp) == "module 'turnout.return_types' has no attribute 'exp'"
    assert {"max", "sort"} <= set(dir(return_types))


def test_results_are_copied_pickled_and_saved_as_what_they_are(x):
    file = io.BytesIO()
    turnout.save({"result": x.max(1)}, file)
    file.seek(0)
    for made in (
        copy.copy(x.max(1)), copy.deepcopy(x.max(1)), pickle.loads(pickle.dumps(x.max(1))), turnout.load(file)["result"],
    ):  # fmt: skip
        assert type(made) is return_types.max
        assert made.values.tolist() == [3.0, 2.0]


def test_every_layer_keeps_the_names(x):
    tracked = x.clone().requires_grad_()
    tracked.max(1).values.sum().backward()
    assert tracked.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert type(tracked.sort()) is return_types.sort
    mapped = turnout.vmap(lambda row: row.max(0))(x)
    assert type(mapped) is return_types.max
    assert mapped.indices.tolist() == [1, 0]
    assert type(x.to("meta").max(1)) is return_types.max
    with turnout.autocast("cpu"):
        assert type(x.max(1)) is return_types.max

    class Mode(turnout.DispatchMode):
        def dispatch(self, op, ks, args):
            return op.redispatch(ks, *args)

    with Mode():
        assert type(x.max(1)) is return_types.max


def test_a_graph_returns_what_the_traced_function_returned(x, tmp_path):
    graph = turnout.trace(lambda t: t.max(1))(x)
    assert type(graph(x)) is return_types.max
    graph.save(tmp_path / "graph.json")
    assert type(turnout.graphs.load(tmp_path / "graph.json")(x)) is return_types.max
