"""Graphs: what a trace records, and that a replay on other inputs gives what the function gives."""

from __future__ import annotations

import json
import warnings
import zipfile

import pytest
from saved_files import graph_document, write_graph

import turnout
from outcomes import printed, refused
from turnout import graphs, library
from turnout.registry import find_operator
from turnout.state import DISPATCH
from turnout_conformance.cases import CASES, build


def tensor(data, **options):
    return turnout.tensor(data, device="cpu", **options)


def numbers(*shape, seed=0, grad=False):
    made = turnout.randn(*shape, generator=turnout.Generator("cpu").manual_seed(seed), device="cpu")
    return made.requires_grad_() if grad else made


def agree(function, *shapes, grad=False, graph=None):
    """Trace on one set of inputs, replay on another, compare with the function itself there; returns the graph."""
    graph = graph or turnout.trace(function)(*[numbers(*s, seed=i, grad=grad) for i, s in enumerate(shapes)])
    for seed in (10, 20):
        ours = [numbers(*s, seed=seed + i, grad=grad) for i, s in enumerate(shapes)]
        theirs = [numbers(*s, seed=seed + i, grad=grad) for i, s in enumerate(shapes)]
        assert values(graph(*ours)) == values(function(*theirs))
        assert values(ours) == values(theirs), "inputs are written alike"
    return graph


def values(result):
    if isinstance(result, turnout.Tensor):
        return (result.dtype.name, result.detach().tolist())
    if isinstance(result, dict):
        return {k: values(v) for k, v in result.items()}
    return [values(each) for each in result] if isinstance(result, (list, tuple)) else result


def ops(graph):
    return [node.op.qualified_name.removeprefix("aten::") for node in graph.nodes]


# ---- recording


def test_an_untracked_call_is_one_node_composites_included():
    graph = agree(lambda x, w: turnout.softmax(x @ w, 1) + 1, (2, 3), (3, 4))
    assert ops(graph) == ["matmul", "softmax.int", "add.Scalar"]


def test_a_graph_prints_as_python_that_runs():
    def scaled(x, weight):
        """Traced."""
        mean, flags = x.mean(1, keepdim=True), x > 0
        parts = turnout.split(x - mean, 2, 1)
        return {"product": parts[0] @ weight, "flags": [flags.to(turnout.float64), float("inf")]}

    inputs = numbers(3, 4), numbers(2, 2)
    graph = turnout.trace(scaled)(*inputs)
    assert str(graph) == (
        "def scaled(x, weight):\n"
        "    v2 = turnout.ops.aten.mean.dim(x, (1,), True)\n"
        "    v3 = turnout.ops.aten.gt.Scalar(x, 0)\n"
        "    v4 = turnout.ops.aten.sub.Tensor(x, v2)\n"
        "    v5, v6 = turnout.ops.aten.split.Tensor(v4, 2, 1)\n"
        "    v7 = turnout.ops.aten.matmul.default(v5, weight)\n"
        "    v8 = turnout.ops.aten.to.dtype(v3, turnout.float64)\n"
        "    return {'product': v7, 'flags': [v8, float('inf')]}\n"
    )
    space = {"turnout": turnout}
    exec(graph.code, space)
    assert values(space["scaled"](*inputs)) == values(scaled(*inputs)) == values(graph(*inputs))
    assert repr(graph) == "<Graph scaled(x, weight): 6 calls>"


def test_nested_inputs_and_constants_print_as_python_that_runs():
    outside = tensor([1.0, 2.0])

    def model(layers, *, scale, flag=True):
        return [layers["w"][0] * scale + outside, (layers["b"],), flag]

    def inputs(seed):
        return {"w": [numbers(2, seed=seed), 3], "b": numbers(2, seed=seed + 1)}, numbers(1, seed=seed + 2)

    layers, scale = inputs(0)
    graph = turnout.trace(model)(layers, scale=scale)
    assert graph.inputs == ("layers_w_0", "layers_b", "scale")
    layers, scale = inputs(5)
    expected = values(model(layers, scale=scale))
    space = {"turnout": turnout, "constants": [c.tensor for c in graph.constants]}
    exec(str(graph), space)
    assert values(graph(layers, scale=scale)) == expected == values(space["model"](layers, scale=scale))


def test_in_place_operators_and_views_replay():
    def write(x, y):
        v = x[0]
        v.mul_(y)
        x[1:].copy_(v + y)
        parts = x.unbind(0)
        parts[2].add_(1)
        z = x.t().clone()
        z[0, 0] = 7
        return x, z, v

    graph = agree(write, (3, 2), (2,))
    assert "mul_.Tensor" in ops(graph)
    assert not graph.constants


def test_random_operators_draw_anew_in_each_replay():
    def noisy(x):
        return x + turnout.rand(2, device="cpu") + turnout.nn.functional.dropout(x, 0.5)

    graph = turnout.trace(noisy)(turnout.ones(2, device="cpu"))
    x = turnout.ones(2, device="cpu")
    turnout.manual_seed(3)
    expected = [noisy(x).tolist() for _ in range(2)]
    turnout.manual_seed(3)
    assert [graph(x).tolist() for _ in range(2)] == expected
    assert expected[0] != expected[1]


def test_a_generator_can_be_an_input():
    graph = turnout.trace(lambda g: turnout.rand(2, generator=g, device="cpu"))(turnout.Generator("cpu"))
    found = graph(turnout.Generator("cpu").manual_seed(4))
    assert found.tolist() == turnout.rand(2, generator=turnout.Generator("cpu").manual_seed(4)).tolist()


def test_a_custom_operator_is_recorded_by_its_name():
    @library.custom_op("tracer_tests::double", mutates_args=())
    def double(x: turnout.Tensor) -> turnout.Tensor:
        return x * 2

    graph = agree(lambda x: double(x) + x, (3,))
    assert [n.op.qualified_name for n in graph.nodes] == ["tracer_tests::double", "aten::add.Tensor"]


# ---- gradients


def test_backward_is_recorded_and_replays_for_composites_that_save_what_is_inside_them():
    def step(w, x):
        loss = turnout.nn.functional.cross_entropy(turnout.tanh(x @ w), tensor([0, 2]))
        loss.backward()
        grad, w.grad = w.grad, None
        return loss.detach(), grad

    graph = turnout.trace(step)(numbers(3, 4, grad=True), numbers(2, 3))
    w, x = numbers(3, 4, seed=7, grad=True), numbers(2, 3, seed=8)
    assert values(graph(w, x)) == values(step(w, x))
    assert [c.tensor.shape for c in graph.constants] == [(2,), ()], "the labels, and the gradient 1 of the loss"


def test_values_that_autograd_computes_for_itself_are_recorded():
    def f(x, y):
        z = x.sin()
        z.mul_(y)  # backward needs z as it was
        v = z[0]
        v.sigmoid_()
        return turnout.autograd.grad((z * z).sum(), [x, y])

    agree(f, (2, 3), (2, 3), grad=True)


def test_a_gradient_rule_that_saves_its_own_values_is_recorded():
    @library.custom_op("tracer_tests::cube", mutates_args=())
    def cube(x: turnout.Tensor) -> turnout.Tensor:
        return x * x * x

    def save(ctx, inputs, output):
        ctx.save_for_backward(inputs[0] * inputs[0], output)

    cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] + 0 * ctx.saved_tensors[1], setup_context=save)

    def f(x):
        (g,) = turnout.autograd.grad((cube(x) * x).sum(), [x])
        return g

    graph = agree(f, (3,), grad=True)
    assert "tracer_tests::cube" in [n.op.qualified_name for n in graph.nodes]
    graph = turnout.trace(lambda x: cube(x) * 2)(numbers(3, grad=True))
    x = numbers(3, seed=4, grad=True)
    found, expected = (turnout.autograd.grad(g(x).sum(), [x])[0] for g in (graph, lambda x: cube(x) * 2))
    assert values(found) == values(expected)


def test_an_autograd_function_is_recorded_with_its_backward():
    class Sine(turnout.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.sin()
            ctx.save_for_backward(x.cos(), y)
            return y

        @staticmethod
        def backward(ctx, g):
            cos, sin = ctx.saved_tensors
            return g * cos + 0 * sin

    agree(lambda x: turnout.autograd.grad((Sine.apply(x) * x).sum(), [x])[0], (3,), grad=True)


def test_a_replay_is_differentiated_like_any_program_and_keeps_no_grad():
    def f(x):
        with turnout.no_grad():
            constant = x * x
        return (turnout.softmax(x, 0) * x - constant).sum()

    graph = turnout.trace(f)(numbers(3, grad=True))
    for seed in (1, 2):
        x, y = numbers(3, seed=seed, grad=True), numbers(3, seed=seed, grad=True)
        graph(x).backward()
        f(y).backward()
        assert x.grad.tolist() == y.grad.tolist()
    with turnout.no_grad():
        assert not graph(x).requires_grad


def test_a_graph_can_be_traced():
    inner = turnout.trace(lambda x: x.sin() * 2)(numbers(2))
    graph = agree(lambda x: inner(x) + 1, (2,))
    assert ops(graph) == ["sin", "mul.Scalar", "add.Scalar"]


def test_autocast_inside_of_a_trace_is_part_of_the_graph_and_outside_too():
    def f(w, x):
        with turnout.autocast("cpu"):
            loss = ((x @ w) @ w).float().sum()
        loss.backward()
        grad, w.grad = w.grad, None
        return grad

    graph = agree(f, (3, 3), (3, 3), grad=True)
    assert sum("to.dtype" in name for name in ops(graph)) >= 2
    w, x = numbers(3, 3, grad=True), numbers(3, 3)
    with turnout.autocast("cpu"):
        w @ w  # this cast is from before the trace
        graphs_ = [turnout.trace(lambda w, x: x @ w)(w, x) for _ in range(2)]
    for graph in graphs_:
        assert not graph.constants
        other = numbers(3, 3, seed=9)
        assert graph(other, x).tolist() == (x.bfloat16() @ other.bfloat16()).tolist()


# ---- what comes from outside


def test_tensors_from_outside_are_constants_with_the_values_they_had():
    outside = tensor([1.0, 2.0], requires_grad=True)
    graph = turnout.trace(lambda x: x * outside + outside)(numbers(2))
    outside.detach().zero_()
    assert len(graph.constants) == 1
    assert graph(tensor([1.0, 1.0])).tolist() == [2.0, 4.0]
    assert not graph(tensor([1.0, 1.0])).requires_grad


def test_a_tensor_made_inside_without_an_operator_may_be_written():
    def f(x):
        total = turnout.tensor([0.0, 0.0], device="cpu")
        for _ in range(2):
            total[:].add_(x)
        return total

    graph = agree(f, (2,))
    assert [c.written for c in graph.constants] == [True]


@pytest.mark.parametrize("write", [lambda c, x: c.add_(x), lambda c, x: c[0].copy_(x[0]), lambda c, x: c.detach().mul_(x)])
def test_a_write_into_a_tensor_from_outside_is_an_error(write):
    outside = tensor([1.0, 2.0])
    assert refused(graphs.TraceError, lambda: turnout.trace(lambda x: write(outside, x))(numbers(2))).endswith(
        ": the traced function writes into 'self', a tensor from outside that is not among its inputs\n"
        "  each replay would write into the graph's own copy, and the program would not see it\n"
        "  to fix  make it an argument of the function (a gradient in .grad: set it to None first)"
    )
    assert outside.tolist() == [1.0, 2.0]


def test_a_view_of_an_input_from_outside_is_an_error():
    x = tensor([1.0, 2.0])
    view, alias = x[0], x.detach()
    assert turnout.trace(lambda x: x + alias)(x)(tensor([5.0, 6.0])).tolist() == [10.0, 12.0], "known by its array"
    assert refused(graphs.TraceError, lambda: turnout.trace(lambda x: x.mul_(2) + view)(x)) == (
        "trace: a tensor from outside shares its memory with an input, or with a view of one; a replay cannot reproduce that\n"
        "  to fix  make the view inside the traced function"
    )


def test_two_constants_may_share_their_memory():
    outside = tensor([1.0, 2.0])
    first = outside[0]
    graph = turnout.trace(lambda x: x * first + outside)(numbers(2))
    assert graph(tensor([1.0, 1.0])).tolist() == [2.0, 3.0]


def test_a_number_taken_from_a_traced_tensor_is_a_warning():
    with pytest.warns(graphs.TraceWarning) as caught:
        graph = turnout.trace(lambda x: x * x.sum().item())(tensor([1.0, 2.0]))
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message) == (
        "aten::_local_scalar_dense: 3.0 is a constant of the graph from here on; a replay does not compute it from its own inputs"
    )
    assert graph(tensor([2.0, 2.0])).tolist() == [6.0, 6.0]
    outside = tensor(3.0)
    turnout.trace(lambda x: x * outside.item())(tensor([1.0]))  # no warning: it is a constant anyway


def test_the_same_input_twice_is_an_error():
    x = numbers(2)
    assert refused(graphs.TraceError, lambda: turnout.trace(lambda a, b: a + b)(x, x)) == (
        "trace: inputs a and b are the same tensor, so the graph could not tell them apart\n"
        "  to fix  pass a clone() as one of them"
    )


def test_a_trace_inside_a_trace_is_an_error_and_the_state_is_restored():
    before = DISPATCH.get()
    assert refused(graphs.TraceError, lambda: turnout.trace(lambda x: turnout.trace(lambda y: y)(x))(numbers(2))) == (
        "trace: another trace is being recorded here\n  to fix  trace the inner function first, and call its graph"
    )
    refused(KeyError, lambda: turnout.trace(lambda x: {}[0])(numbers(2)))
    assert DISPATCH.get() == before
    assert not graphs.is_tracing()
    assert ops(turnout.trace(lambda x: x + x)(numbers(2))) == ["add.Tensor"]


def test_arguments_that_are_nested_otherwise_are_errors():
    def scaled(x, scale, rest):
        return x * scale + rest["a"]

    graph = turnout.trace(scaled)(numbers(2), 2, {"a": numbers(2), "b": None})
    x = numbers(2)
    assert graph(x, 2, {"b": None, "a": x}).tolist() == (3 * x).tolist()
    nested = "scaled: the arguments must be nested as they were when the graph was traced\n"
    nested += "  traced  args[0], args[1], args[2]['a'], args[2]['b']\n  got     "
    for args, text in [
        ((x, 3, {"a": x, "b": None}), "scaled: args[1] must be 2, as when the graph was traced; got 3"),
        ((5, 2, {"a": x, "b": None}), "scaled: args[0] must be a tensor, as when the graph was traced; got int"),
        ((x, x, {"a": x, "b": None}), "scaled: args[1] must be 2, as when the graph was traced; got Tensor"),
        ((x, 2), nested + "args[0], args[1]"),
        ((x, 2, x), nested + "args[0], args[1], args[2]"),
    ]:
        assert refused(graphs.TraceError, graph, *args) == text


def test_a_result_that_is_no_data_is_an_error():
    assert refused(graphs.TraceError, lambda: turnout.trace(lambda x: object())(numbers(2))) == (
        "trace: a function may return tensors, numbers, strings, None, and lists, tuples and dicts of them, got object"
    )


# ---- other devices, files


def test_a_graph_moves_to_another_device():
    outside = tensor([1.0, 2.0])
    graph = turnout.trace(lambda x: x + outside + turnout.zeros(2) + turnout.ones(2, device="cpu"))(numbers(2))
    moved = graph.to("meta")
    assert str(moved(turnout.ones(2, device="meta")).device) == "meta"
    assert "'cpu'" not in str(moved)
    assert str(graph(numbers(2)).device) == "cpu"


def training_step(parameters, velocities, x, labels):
    """Forward, backward and update of a network of two layers, with momentum and dropout."""
    w1, b1, w2 = parameters
    hidden = turnout.nn.functional.dropout(turnout.relu(turnout.nn.functional.linear(x, w1, b1)), 0.25)
    loss = turnout.nn.functional.cross_entropy(hidden @ w2, labels)
    loss.backward()
    with turnout.no_grad():
        for parameter, velocity in zip(parameters, velocities, strict=True):
            velocity.mul_(0.9).add_(parameter.grad)
            parameter.sub_(velocity, alpha=0.1)
            parameter.grad = None
    return loss.detach()


TRAINING = """
import json, turnout
def state(seed=0):
    g = turnout.Generator("cpu").manual_seed(seed)
    shapes = [(8, 4), (8,), (8, 3)]
    parameters = [turnout.randn(*s, generator=g, device="cpu").requires_grad_() for s in shapes]
    return parameters, [turnout.zeros(*s, device="cpu") for s in shapes]
def batch(seed):
    g = turnout.Generator("cpu").manual_seed(seed)
    return turnout.randn(6, 4, generator=g, device="cpu"), turnout.randint(0, 3, (6,), generator=g, device="cpu")
def run(step):
    turnout.manual_seed(5)
    parameters, velocities = state()
    losses = [step(parameters, velocities, *batch(i)).item() for i in range(5)]
    return losses, [p.tolist() for p in (*parameters, *velocities)]
"""


def test_the_trace_of_a_training_step_replays_to_the_same_numbers_in_a_fresh_process(tmp_path):
    space: dict = {}
    exec(TRAINING, space)
    graph = turnout.trace(training_step)(*space["state"](9), *space["batch"](9))
    expected = space["run"](training_step)
    assert space["run"](graph) == expected
    graph.save(tmp_path / "step.json")
    code = TRAINING + "print(json.dumps(run(turnout.graphs.load('step.json'))))"
    assert json.loads(printed(code, cwd=tmp_path)) == json.loads(json.dumps(expected))


def test_the_trace_of_a_training_step_that_was_saved_replays_on_opencl(tmp_path, need_device):
    need_device("opencl")
    here: dict = {}
    there: dict = {}
    exec(TRAINING, here)
    exec(TRAINING.replace('"cpu"', '"opencl"'), there)
    graph = turnout.trace(training_step)(*here["state"](9), *here["batch"](9))
    graph.save(tmp_path / "step.json")
    losses, state = there["run"](graphs.load(tmp_path / "step.json", "opencl"))
    expected_losses, expected = here["run"](graph)
    assert losses == pytest.approx(expected_losses, rel=1e-5)
    for found, value in zip(state, expected, strict=True):
        assert close(tensor(found), tensor(value))


def close(found, expected):
    return bool(((found - expected).abs() <= 1e-5).all())


def test_a_saved_graph_comes_back_whole(tmp_path):
    outside = tensor([[1.0, float("nan")], [float("inf"), -0.0]], dtype=turnout.float64)
    half, flags = tensor([1.5, 2.5], dtype=turnout.bfloat16), tensor([True, False])
    generator = turnout.Generator("cpu").manual_seed(6)

    def f(x, options):
        y = turnout.where(flags, x, half.float())
        y = y + turnout.rand(2, generator=generator, device="cpu") + turnout.full((2,), float("inf"), device="cpu").neg()
        return {"y": y, "o": [outside * 1, (None, 1.5, float("-inf")), 2j], 3: x.to(turnout.float64), "options": options}

    graph = turnout.trace(f)(numbers(2), {"a": True})
    graph.save(tmp_path / "graph.json")
    loaded = graphs.load(tmp_path / "graph.json")
    assert str(loaded) == str(graph)
    x = numbers(2, seed=3)
    assert repr(values(loaded(x, {"a": True}))) == repr(values(graph(x, {"a": True})))
    on_meta = graphs.Graph.load(tmp_path / "graph.json", device="meta")
    assert {str(c.tensor.device) for c in on_meta.constants} == {"meta"}


def test_a_saved_tensor_keeps_its_strides_and_one_with_gaps_is_saved_row_by_row(tmp_path):
    base = turnout.arange(24.0)
    held = [base.view(2, 3, 4).permute(2, 0, 1), base[::2], base[:1].expand(5), base[3:9].view(3, 2).t(), base[:0].view(0, 3)]
    turnout.trace(lambda x: [x * each for each in held])(turnout.ones(1)).save(tmp_path / "graph")
    found = [c.tensor for c in graphs.load(tmp_path / "graph").constants]
    assert [t.tolist() for t in found] == [t.tolist() for t in held]
    assert [t.stride() for t in found] == [(1, 12, 4), (1,), (1,), (1, 2), (3, 1)]
    entries = zipfile.ZipFile(tmp_path / "graph").infolist()
    assert [(e.filename, e.file_size) for e in entries[1:]] == [(f"tensors/{i}", 4 * t.numel()) for i, t in enumerate(held)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "is not a saved graph: "),
        ("[1]", "is not a saved graph: it does not say format 'turnout.graph'"),
        ('{"format": "turnout.graph", "version": 9}', "has format version 9, this turnout-tracer reads version 4"),
        (
            '{"format": "turnout.graph", "version": 4}',
            "is not a saved graph: the graph does not have the fields constants, generators, inputs, name, nodes, output",
        ),
    ],
)
def test_another_file_is_an_error(tmp_path, text, why):
    write_graph(tmp_path / "graph.json", text)
    assert why in refused(turnout.errors.FileFormatError, lambda: graphs.load(tmp_path / "graph.json"))


def test_an_operator_of_a_file_that_is_not_installed_is_named(tmp_path):
    graph = turnout.trace(lambda x: x.sin())(numbers(2))
    graph.save(tmp_path / "graph.json")
    text = graph_document(tmp_path / "graph.json")
    write_graph(tmp_path / "graph.json", text.replace("aten::sin", "aten::sinn"))
    assert "sinn" in refused(turnout.errors.UnknownOperatorError, lambda: graphs.load(tmp_path / "graph.json"))


@pytest.mark.parametrize("anchor", ["Autograd", "Tracer"])
def test_a_functionality_beside_the_tracer_hides_nothing_from_it(anchor):
    from turnout.keys import KEYS
    from turnout.registry import Registrations
    from turnout.state import exclude, include

    seen = []

    def count(op, ks, args):
        seen.append(op.name)
        with exclude("TracedCounter"):
            return op.redispatch(ks & ~KEYS.mask("TracedCounter"), *args)

    def f(x):
        return turnout.autograd.grad((turnout.softmax(x, 0) * x).sum(), [x])[0]

    with Registrations("traced_counter") as lib:
        lib.functionality("TracedCounter", after=anchor)
        lib.fallback("TracedCounter", count)
        with include("TracedCounter"):
            graph = turnout.trace(f)(numbers(3, grad=True))
    assert "softmax" in seen
    x = numbers(3, seed=5, grad=True)
    assert values(graph(x)) == values(f(x))


def test_the_graphs_of_operator_cases_come_back_from_a_file(tmp_path):
    count = 0
    for case in CASES[::4]:
        op, dtype = find_operator(f"aten::{case.op}"), case.dtypes[0]
        sample = next(iter(case.samples))
        args, kwargs = (
            build(each, dtype, lambda data, name: turnout.tensor(data, dtype=turnout.dtypes.dtype_named(name)))
            for each in (list(sample.args), sample.kwargs)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = turnout.trace(lambda args, kwargs, op=op: op(*args, **kwargs))(args, kwargs)
        graph.save(tmp_path / "graph")
        assert str(graphs.load(tmp_path / "graph")) == str(graph), case
        count += 1
    assert count > 150


def test_trace_of_a_matrix_is_the_sum_of_its_diagonal_and_of_a_function_its_graph() -> None:
    x = turnout.arange(4.0).reshape(2, 2).requires_grad_()
    turnout.trace(x).backward()
    assert (turnout.trace(input=x).item(), x.grad.tolist()) == (3.0, [[1.0, 0.0], [0.0, 1.0]])  # type: ignore[union-attr]
    graph = turnout.trace(turnout.trace)(x.detach())
    assert [node.op.qualified_name for node in graph.nodes] == ["aten::trace"]
    assert graph(turnout.eye(3)).item() == 3.0
