"""Graphs of fake tensors whose sizes are symbols, replayed on inputs of other sizes."""

from __future__ import annotations

import json
from random import Random

import pytest
from saved_files import graph_document, write_graph

import turnout
from outcomes import refused
from random_programs.running import shrunk
from random_programs.sized_traces import counted, program
from turnout import FakeMode, graphs
from turnout.errors import ArgumentError, FileFormatError
from turnout_tracer.replay import TEXTS
from turnout_tracer.sizes import SizeRecord


def traced(function, *inputs, **options):
    mode = FakeMode(allow_non_fake_inputs=True, dynamic=True, **options)
    return turnout.trace(function)(*[mode.from_tensor(x) for x in inputs])


def halves(x, y):
    found = turnout.nonzero(x > 0)[:, 0]
    most = found.max().item()
    turnout.check(most >= 0)
    z = (x + y)[: x.shape[0] // 2].sum(0, keepdim=True).expand(found.shape[0] * 2 + 1, -1)
    if x.shape[0] % 2 == 0:
        z = z + x.shape[1]
    with turnout.no_grad():
        z = z * most
    return z, x.shape[0] * 2, found.shape[0]


def pair(*shape):
    return turnout.randn(*shape), turnout.randn(*shape)


def same(found, expected):
    return all(
        turnout.equal(a, b) if isinstance(b, turnout.Tensor) else type(a) is int and a == b
        for a, b in zip(found, expected, strict=True)
    )


@pytest.fixture(scope="module")
def graph():
    return traced(halves, *pair(4, 3))


@pytest.fixture(scope="module")
def replays(graph, tmp_path_factory):
    """The graph, the graph from a file, and the graph as source."""
    path = tmp_path_factory.mktemp("graphs") / "graph.json"
    graph.save(path)
    scope = {"turnout": turnout, "constants": [c.tensor for c in graph.constants]}
    exec(graph.code, scope)
    return [graph, graphs.load(path), scope["halves"]]


@pytest.mark.parametrize("shape", [(4, 3), (6, 2), (10, 7)])
def test_a_graph_computes_with_the_sizes_of_its_inputs(replays, shape):
    inputs = pair(*shape)
    for replay in replays:
        assert same(replay(*inputs), halves(*inputs))


def test_the_source_names_sizes_and_checks_what_was_decided(graph):
    lines = graph.code.splitlines()
    assert lines[1:5] == [
        "    s0 = x.shape[0]", "    s1 = x.shape[1]", "    s2 = y.shape[0]", "    s3 = y.shape[1]",
    ]  # fmt: skip
    for condition in ("s0 >= 2", "s0 == s2", "s0 % 2 == 0", "u1 >= 0"):
        assert f"    turnout.check({condition}, 'the graph holds only where {condition}')" in lines
    assert lines[-1].endswith(", s0*2, u0)")


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            [(5, 3), (5, 3)],
            (
                "halves: the graph holds only where s0 % 2 == 0, which was decided when it was made\n  s0      5, dim 0 of x\n"
                "  to fix  make it again with inputs of these sizes, and call that graph"
            ),
        ),
        (
            [(4, 1), (4, 1)],
            (
                "halves: the graph holds only where s1 >= 2, which was decided when it was made\n  s1      1, dim 1 of x\n"
                "  to fix  make it again with inputs of these sizes, and call that graph"
            ),
        ),
        (
            [(4, 3), (6, 3)],
            (
                "halves: the graph holds only where s0 == s2, which was decided when it was made\n  s0      4, dim 0 of x\n"
                "  s2      6, dim 0 of y\n  to fix  make it again with inputs of these sizes, and call that graph"
            ),
        ),
        ([(4,), (4,)], "halves: x must have 2 dims, as when the graph was traced; got shape [4]"),
    ],
)
def test_a_decision_that_would_be_another_one_is_an_error(replays, shapes, text):
    inputs = [turnout.ones(*shape) for shape in shapes]
    for replay in replays[:2]:
        assert refused(graphs.TraceError, replay, *inputs) == text
    refused((ArgumentError, IndexError), replays[2], *inputs)


def test_a_check_about_data_is_made_in_each_replay():
    def function(x):
        n = turnout.nonzero(x).shape[0]
        turnout.check(n >= 2)
        return x * n

    graph = traced(function, turnout.ones(4))
    assert graph(turnout.ones(3)).tolist() == [3, 3, 3]
    assert refused(graphs.TraceError, lambda: graph(turnout.zeros(3))) == (
        "function: the graph holds only where u0 >= 2, which was decided when it was made\n"
        "  u0      0, dim 0 of a result of call 0\n"
        "  to fix  make it again with inputs of these sizes, and call that graph"
    )


def test_a_size_that_was_a_number_in_the_trace_must_be_that_number():
    mode = FakeMode()
    graph = turnout.trace(lambda x: x + x.shape[0])(mode.from_tensor(turnout.ones(4, 3), dynamic=(0,)))
    assert graph(turnout.ones(2, 3)).tolist() == [[3, 3, 3]] * 2
    assert refused(graphs.TraceError, lambda: graph(turnout.ones(2, 5))) == (
        "graph: dim 1 of x must be 3, got 5\n"
        "  to fix  make the graph with a size that is a symbol there: FakeMode().from_tensor(x, dynamic=dims) for a trace,\n"
        "          dynamic_shapes for torch.export"
    )


def test_a_size_that_was_computed_from_others_must_be_that_again():
    mode = FakeMode(dynamic=True)
    x = mode.from_tensor(turnout.ones(4))
    graph = turnout.trace(lambda x, y: x[1:] + y)(x, x[1:] * 2)
    assert graph(turnout.ones(3), turnout.ones(2)).tolist() == [2, 2]
    assert refused(graphs.TraceError, lambda: graph(turnout.ones(3), turnout.ones(3))).startswith(
        "graph: dim 0 of y must be s0 - 1 = 2, got 3\n"
    )


# What a function makes of an input and of a fake tensor that is none, with sizes that are numbers or symbols, and what is wrong.
FROM_OUTSIDE = [
    (
        False, lambda x, outside: x + outside,
        ("trace: the function uses a fake tensor that is not among its inputs, and a replay would have no values for it\n"
        "  to fix  make it an argument; or leave it real, outside of the mode, with FakeMode(allow_non_fake_inputs=True)"),
    ),
    (
        True, lambda x, outside: x * outside.shape[0],
        ("trace: the function uses the size s0, and s0 is neither a size of an input nor of a result\n"
        "  to fix  make the tensor that it is a size of an argument of the function"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("dynamic", "use", "said"), FROM_OUTSIDE, ids=["tensor", "size"])
def test_what_is_fake_and_from_outside_is_an_error(dynamic, use, said):
    mode = FakeMode(dynamic=dynamic)
    outside, x = mode.from_tensor(turnout.ones(3)), mode.from_tensor(turnout.ones(3))
    for given in (x, turnout.ones(3)) if dynamic else (x,):
        assert refused(graphs.TraceError, turnout.trace(lambda x: use(x, outside)), given) == said
    if dynamic:
        decides = turnout.trace(lambda x: x + 1 if x.shape[0] == outside.shape[0] else x)
        assert refused(graphs.TraceError, decides, x) == (
            "trace: sizes were decided with s1 == s0, and s0 is neither a size of an input nor of a result\n"
            "  to fix  make the inputs of each trace with a FakeMode of their own"
        )


def test_real_tensors_from_outside_are_constants_also_inside_the_mode():
    weight = turnout.tensor([1.0, 2.0, 3.0])
    mode = FakeMode(allow_non_fake_inputs=True)
    x = mode.from_tensor(turnout.ones(4, 3), dynamic=(0,))
    with mode:
        graph = turnout.trace(lambda x: x * weight + turnout.zeros(x.shape[0], 1))(x)
    assert graph(turnout.ones(2, 3)).tolist() == [[1, 2, 3]] * 2


def test_gradients_and_backward_have_the_sizes_of_the_inputs():
    def function(x, w):
        loss = ((x @ w).relu() / x.shape[0]).sum()
        return turnout.autograd.grad(loss, [x, w])

    def leaves(n, m):
        return turnout.randn(n, m, requires_grad=True), turnout.randn(m, 2, requires_grad=True)

    graph = traced(function, *leaves(4, 3))
    for shape in ((4, 3), (7, 5)):
        inputs = leaves(*shape)
        assert same(graph(*inputs), function(*inputs))


def test_a_graph_can_be_traced_again_with_sizes_that_are_symbols():
    first = traced(lambda x: x.reshape(-1) * x.shape[1], turnout.ones(4, 3))
    again = traced(lambda x: first(x) + 1, turnout.ones(6, 5))
    assert again(turnout.ones(2, 2)).tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("size", ["x.shape[0] % 4", "x.shape[0] // 4", "x.shape[0] - x.shape[1]", "x.shape[0] // 4 > 1"])
def test_what_was_decided_about_sizes_holds_for_the_second_trace_too(size):
    scope = {}
    exec(f"def function(x):\n    return x * 2 if {size} else x * 3", scope)
    function = scope["function"]
    for shape in ((4, 4), (7, 4), (3, 4), (9, 4)):
        first = traced(function, turnout.ones(*shape))
        again = traced(first, turnout.ones(*shape))
        assert [str(each) for each in again.sizes.assumptions] == [str(each) for each in first.sizes.assumptions]
        for n in range(2, 13):
            assert serves(again, n) is serves(first, n)


def serves(graph, n):
    """Whether a replay takes a size; what it gives then is what the function gives."""
    try:
        graph(turnout.ones(n, 4))
    except turnout.graphs.TraceError:
        return False
    return True


def test_names_of_sizes_give_way_to_names_of_inputs():
    graph = traced(lambda s0: s0 * s0.shape[0], turnout.ones(3))
    scope = {"turnout": turnout}
    exec(graph.code, scope)
    assert scope["graph"](turnout.ones(2)).tolist() == [2, 2]


def test_a_graph_on_another_device_keeps_its_sizes(graph):
    assert graph.to("cpu").sizes is graph.sizes


def test_random_functions_give_in_replays_of_other_sizes_what_they_give(seeds):
    done = refused = 0
    for seed in seeds(40):
        fault, replayed, others = counted(program(seed), seed)
        if fault:
            short = "\n".join(shrunk(program(seed), lambda lines, seed=seed: counted(lines, seed)[0]))
            pytest.fail(f"{fault}\n\n{short}\n\n--seed {seed} --programs 1 runs it again")
        done, refused = done + replayed, refused + others
    if len(seeds(40)) >= 40:
        assert min(done, refused) > len(seeds(40)) // 4


def test_a_size_that_becomes_a_number_is_noticed(monkeypatch):
    monkeypatch.setattr(SizeRecord, "formula", lambda self, size: size.hint or 2)
    assert any(counted(program(seed), seed)[0] for seed in range(20))


def test_a_quotient_that_is_rounded_up_is_noticed(monkeypatch):
    monkeypatch.setitem(TEXTS, "//", "-(-{} // {})")
    assert any(counted(program(seed), seed)[0] for seed in range(60))


def test_a_damaged_file_is_an_error_or_a_graph_but_runs_nothing(graph, tmp_path):
    path = tmp_path / "graph.json"
    graph.save(path)
    data = json.loads(graph_document(path))
    random = Random(0)
    refused = 0
    for _ in range(150):
        changed = json.loads(json.dumps(data))
        where = random.choice([changed["sizes"]["births"], changed["sizes"]["assumptions"], changed["sizes"]["inputs"]])
        part = random.choice(where)
        part[random.randrange(len(part))] = random.choice([None, -1, 99, "u7", "x; y", [], ["+", "s0"], {"size": "u9"}, True])
        write_graph(path, changed)
        try:
            graphs.load(path)
        except FileFormatError:
            refused += 1
    assert refused > 100
