"""Traces of programs with vmap, grad, jvp and hessian in them, and graphs inside vmap and grad."""

from __future__ import annotations

import pytest
from turnout.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import turnout
from outcomes import refused
from transform_programs import written
from turnout import graphs, library


def numbers(seed, *shape):
    return turnout.randn(*shape, generator=turnout.Generator("cpu").manual_seed(seed), device="cpu")


def close(found, expected):
    return found.shape == expected.shape and bool(((found - expected).abs() <= 1e-5 * (1 + expected.abs())).all())


def cubes(x):
    return (x * x * x).sum()


def loss(w, x):
    return ((w @ x).sin() ** 2).sum()


def cast(x):
    with turnout.autocast("cpu"):
        return jvp(lambda v: (v @ v).float().sin(), (x,), (x * 2,))[1]


def unrecorded(x):
    with turnout.no_grad():
        constant = x * x
    return (x * x * x - constant).sum()


def penalty(w, rows):
    return vmap(lambda x: (grad(lambda a: (w @ a).sin().sum())(x) ** 2).sum())(rows).sum()


# name: (function, shapes of its inputs)
PROGRAMS = {
    "vmap": (vmap(lambda a, b: (a @ b).sin()), (2, 3, 3), (2, 3)),
    "grad": (grad(cubes), (3,)),
    "vmap of grad of vmap": (vmap(grad(lambda x: vmap(lambda r: (r * r * x[0]).sum())(x).sum())), (2, 3, 3)),
    "jvp under autocast": (cast, (3, 3)),
    "hessian": (hessian(lambda x: x.sin().sum() * cubes(x)), (3,)),
    "jacfwd of jacrev": (jacfwd(jacrev(lambda v: v.exp() * v.sum())), (3,)),
    "hessian with writes into views": (hessian(written), (3,)),
    "vmap of grad with writes into views": (vmap(grad(written)), (2, 3)),
    "jvp of grad with writes": (lambda x, v: jvp(grad(written), (x,), (v,))[1], (3,), (3,)),
    "vmap of jvp": (vmap(lambda x: jvp(lambda a: a.sin() * a, (x,), (x,))[1]), (2, 3)),
    "gradient descent": (lambda w, m: w - 0.1 * vmap(grad(loss), (None, 0))(w, m).sum(0), (2, 3), (4, 3)),
    "MAML": (lambda w, x: grad(lambda w: loss(w - 0.01 * grad(loss)(w, x), x))(w), (2, 3), (3,)),
    "gradient penalty": (grad(penalty), (3, 3), (2, 3)),
    "no_grad inside": (grad(unrecorded), (3,)),
    "a composite": (grad(lambda x: (turnout.softmax(x, 0) * x).sum()), (3,)),
}


@pytest.fixture(params=PROGRAMS)
def program(request):
    function, *shapes = PROGRAMS[request.param]
    graph = turnout.trace(function)(*[numbers(i, *shape) for i, shape in enumerate(shapes)])
    return function, graph, shapes


def test_a_replay_on_other_inputs_is_the_program(program):
    function, graph, shapes = program
    inputs = [numbers(10 + i, *shape) for i, shape in enumerate(shapes)]
    assert not graph.constants
    assert close(graph(*inputs), function(*inputs))


def test_a_graph_under_vmap_is_the_program_under_vmap(program):
    function, graph, shapes = program
    inputs = [numbers(20 + i, 2, *shape) for i, shape in enumerate(shapes)]
    assert close(vmap(graph)(*inputs), turnout.stack([function(*[x[i] for x in inputs]) for i in range(2)]))


def test_the_gradient_of_a_graph_is_that_of_the_program(program):
    function, graph, shapes = program
    inputs = [numbers(30 + i, *shape) for i, shape in enumerate(shapes)]
    found = grad(lambda *xs: graph(*xs).sum())(*inputs)
    assert close(found, grad(lambda *xs: function(*xs).sum())(*inputs))


def test_a_rule_that_saves_its_own_values_is_recorded_under_grad_and_vmap():
    @library.custom_op("tracer_transforms::cube", mutates_args=())
    def cube(x: turnout.Tensor) -> turnout.Tensor:
        return x * x * x

    def save(ctx, inputs, output):
        ctx.save_for_backward(inputs[0] * inputs[0])

    cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0], setup_context=save)
    graph = turnout.trace(grad(lambda x: (cube(x) * x).sum()))(numbers(0, 3))
    x = numbers(1, 3)
    assert not graph.constants
    assert close(graph(x), 4 * x * x * x)


def test_a_trace_inside_vmap_is_an_error():
    assert refused(graphs.TraceError, lambda: vmap(lambda x: turnout.trace(lambda y: y + 1)(x)(x))(numbers(0, 2))) == (
        "trace: a trace cannot begin inside vmap\n  to fix  trace first, and call the graph inside vmap"
    )
