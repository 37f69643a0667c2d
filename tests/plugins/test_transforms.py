"""The programs of nested transforms against plain loops: `vmap` is a loop and a stack there, gradients are imperative."""

# ruff: noqa: E501, ISC004 - rows of tables

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import turnout
from transform_programs import PROGRAMS, written
from turnout import autograd, func, state, trees
from turnout.errors import AliasError, TurnoutError


class Transforms:
    """Turnout, as the programs see it."""

    vmap, grad, vjp, jvp = func.vmap, func.grad, func.vjp, func.jvp
    jacrev, jacfwd, hessian = func.jacrev, func.jacfwd, func.hessian

    def __getattr__(self, name: str) -> Any:
        return getattr(turnout, name)

    @staticmethod
    def tensor(data: Any) -> turnout.Tensor:
        return turnout.tensor(data, dtype=turnout.float64)

    @staticmethod
    def zeros(*shape: int) -> turnout.Tensor:
        return turnout.zeros(*shape, dtype=turnout.float64)

    @staticmethod
    def imperative_grad(y: Any, x: Any, v: Any) -> Any:
        return autograd.grad(y, x, v, create_graph=True)[0]


for _name in ("vmap", "grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian"):
    setattr(Transforms, _name, staticmethod(getattr(func, _name)))


class Loops(Transforms):
    """The same transforms, written as what they mean."""

    @staticmethod
    def vmap(function: Any, in_dims: Any = 0, out_dims: Any = 0) -> Any:
        def looped(*args: Any) -> Any:
            leaves, structure = trees.flatten(args)
            dims = trees.spread(in_dims, structure)
            size = next(x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None)
            results = []
            for i in range(size):
                example = [x if d is None else x.select(d, i) for x, d in zip(leaves, dims, strict=True)]
                results.append(trees.flatten(function(*trees.unflatten(structure, example))))
            out = results[0][1]
            columns = zip(*[leaves for leaves, _ in results], strict=True)
            made = [turnout.stack(list(c), d) for c, d in zip(columns, trees.spread(out_dims, out), strict=True)]
            return trees.unflatten(out, made)

        return looped

    @staticmethod
    def vjp(function: Any, *primals: Any) -> Any:
        leaves, structure = trees.flatten(primals)
        inputs = [inside(x) for x in leaves]
        with turnout.enable_grad():
            outputs, out = trees.flatten(function(*trees.unflatten(structure, inputs)))

        def pull(*cotangents: Any) -> Any:
            given = trees.flatten(cotangents)[0]
            pairs = [(y, v) for y, v in zip(outputs, given, strict=True) if y.requires_grad]
            found: list[Any] = [None] * len(inputs)
            if pairs:
                ys, vs = zip(*pairs, strict=True)
                found = autograd.grad(ys, inputs, vs, create_graph=True, allow_unused=True)
            filled = [turnout.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]
            return trees.unflatten(structure, filled)

        return trees.unflatten(out, outputs), pull

    @staticmethod
    def grad(function: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else argnums

        def gradient(*args: Any) -> Any:
            aux = []

            def chosen(*values: Any) -> Any:
                given = list(args)
                for n, value in zip(numbers, values, strict=True):
                    given[n] = value
                result = function(*given)
                if has_aux:
                    aux.append(result[1])
                return result[0] if has_aux else result

            y, pull = Loops.vjp(chosen, *[args[n] for n in numbers])
            found = pull(turnout.ones_like(y))
            found = found[0] if isinstance(argnums, int) else found
            return (found, aux[0]) if has_aux else found

        return gradient

    @staticmethod
    def jvp(function: Any, primals: Any, tangents: Any) -> Any:
        y, pull = Loops.vjp(function, *primals)
        _, push = Loops.vjp(lambda u: pull(u), turnout.zeros_like(y))
        return y, push(*tangents)[0]

    @staticmethod
    def jacrev(function: Any, argnums: int = 0) -> Any:
        def jacobian(argument: Any) -> Any:
            y, pull = Loops.vjp(function, argument)
            outputs, structure = trees.flatten(y)
            rows = []
            for k, output in enumerate(outputs):
                found = []
                for i in range(output.numel()):
                    seeds = [turnout.zeros_like(o) for o in outputs]
                    seeds[k].reshape(-1)[i] = 1.0
                    found.append(trees.flatten(pull(*seeds))[0])
                parts = [turnout.stack(list(c)).reshape(output.shape + c[0].shape) for c in zip(*found, strict=True)]
                rows.append(trees.unflatten(trees.flatten(argument)[1], parts))
            return trees.unflatten(structure, rows)

        return jacobian

    jacfwd = jacrev

    @staticmethod
    def hessian(function: Any) -> Any:
        return Loops.jacrev(Loops.jacrev(function))


def inside(x: turnout.Tensor) -> turnout.Tensor:
    """A tensor to differentiate by: with the history of the outside, but not the same."""
    with turnout.enable_grad():
        return x.clone() if x.requires_grad else x.detach().clone().requires_grad_()


def numbers(value: Any) -> list[Any]:
    return [t.detach().numpy().copy() for t in trees.flatten(value)[0]]


def clean() -> bool:
    """Whether no transform left its state behind."""
    return state.LEVELS.get() == () and state.GRAD.get() == (1, 1) and state.DISPATCH.get() == DEFAULT


DEFAULT = state.DISPATCH.get()
# Here a gradient of an unbatched tensor inside no_grad is not a constant of the loop, or the loop cannot be imperative.
NO_LOOP = {
    "30 no_grad outside", "31 enable_grad inside a transform inside no_grad", "33 a gradient inside no_grad inside a gradient",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NO_LOOP])
def test_transforms_give_what_loops_give(name: str) -> None:
    found = numbers(PROGRAMS[name](Transforms()))
    assert clean()
    expected = numbers(PROGRAMS[name](Loops()))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, strict=True)


# ---- programs that have no loop to compare with


def as_lists(value: Any) -> Any:
    return trees.map_leaves(lambda t: t.tolist(), value)


def test_no_grad_outside_a_transform_records_nothing_outside() -> None:
    g = PROGRAMS["30 no_grad outside"](Transforms())
    assert g.tolist() == [1.0, -4.0, 12.0]
    assert not g.requires_grad


def test_enable_grad_inside_a_transform_cannot_revive_what_is_outside() -> None:
    # constant * y with constant = x * x and y recorded: 2 x * x * x.
    assert PROGRAMS["31 enable_grad inside a transform inside no_grad"](Transforms()).tolist() == [2.0, 16.0, 54.0]


def test_a_gradient_taken_inside_no_grad_is_a_constant() -> None:
    assert PROGRAMS["33 a gradient inside no_grad inside a gradient"](Transforms()).tolist() == [3.0, 12.0, 27.0]


def test_gradients_are_tracked_as_what_they_come_from_is() -> None:
    x = Transforms.tensor([1.0, 2.0])
    assert not func.grad(lambda a: a.sin().sum())(x).requires_grad
    assert func.grad(lambda a: a.sin().sum())(x.requires_grad_()).requires_grad


def test_a_tensor_that_leaks_out_of_a_transform_is_not_tracked() -> None:
    kept: list[turnout.Tensor] = []
    func.grad(lambda x: (kept.append(x * 2), x.sum())[1])(Transforms.tensor([1.0, 2.0]))
    assert not kept[0].requires_grad
    assert not (kept[0] * 2).requires_grad


def test_the_function_runs_once_for_a_forward_jacobian() -> None:
    calls: list[int] = []

    def function(x: turnout.Tensor) -> turnout.Tensor:
        calls.append(1)
        return x.sin() * x.sum()

    func.jacfwd(function)(Transforms.tensor([1.0, 2.0, 3.0]))
    assert calls == [1]


def square_then_write(x: turnout.Tensor) -> turnout.Tensor:
    y = x * 1
    z = y * y
    y.mul_(2)
    return z.sum()


@pytest.mark.parametrize(
    "run",
    [
        lambda x, m, c: func.grad(lambda a: a.mul_(2).sum())(x),
        lambda x, m, c: func.grad(lambda a: a[0].mul_(2).sum())(x),
        lambda x, m, c: func.vmap(lambda a: a.mul_(2))(m.requires_grad_()),
        lambda x, m, c: func.grad(square_then_write)(x),
        lambda x, m, c: func.vmap(func.grad(square_then_write))(m),
        lambda x, m, c: func.grad(lambda a: func.vmap(square_then_write)(a).sum())(m),
        lambda x, m, c: func.grad(lambda a: c.copy_(a).sum())(x),
    ],
)
def test_writes_that_would_spoil_a_gradient_are_refused(run: Any) -> None:
    x, m, c = (
        Transforms.tensor([1.0, 2.0, 3.0]),
        Transforms.tensor([[1.0, 2.0], [3.0, 4.0]]),
        Transforms.tensor([4.0, 5.0, 6.0]),
    )
    with pytest.raises(AliasError):
        run(x, m, c)
    assert clean()


def test_a_captured_tensor_written_between_vjp_and_its_function_is_an_error() -> None:
    x, c = Transforms.tensor([1.0, 2.0]), Transforms.tensor([3.0, 4.0])
    _, pull = func.vjp(lambda a: a * c, x)
    c.mul_(2)
    with pytest.raises(AliasError):
        pull(x)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: func.grad(lambda a: a * 2)(x),
            "grad: the function must return one tensor without dimensions, it returned float64 [2]\n"
            "  to fix  return a sum, or use jacrev",
        ),
        (
            lambda x: func.grad(lambda a: (a.sum(), a.sum()))(x),
            "grad: the function must return one tensor without dimensions, it returned 2 tensors in a tuple, list or dict\n"
            "  to fix  return a sum, or use jacrev",
        ),
        (lambda x: func.grad(lambda a: a.argmax())(x), "grad: the function must return a floating-point number, it returned int64 []"),
        (lambda x: func.grad(lambda a: 3)(x), "grad: a result must be a tensor, or nested tuples, lists and dicts of tensors; got int"),
        (lambda x: func.grad(lambda a: a)(3.0), "grad: an argument must be a tensor, or nested tuples, lists and dicts of tensors; got float"),
        (lambda x: func.grad(lambda a: a, 1)(x), "grad: argnums is 1, and there are 1 positional arguments"),
        (lambda x: func.grad(lambda a: a, has_aux=True)(x), "grad: with has_aux=True the function must return a tuple of two: what is differentiated, and anything else"),
        (lambda x: func.vjp(lambda a: a, x)[1]((x, x)), "vjp: the cotangents do not have the structure of the result"),
        (lambda x: func.vjp(lambda a: a, x)[1](x[0]), "vjp: cotangent 0 has shape [], it belongs to a tensor float64 [2]"),
        (lambda x: func.jvp(lambda a: a, (x,), (x, x)), "jvp: the tangents do not have the structure of the arguments"),
        (lambda x: func.jvp(lambda a: a, x, x), "jvp: primals and tangents must be tuples"),
    ],
)  # fmt: skip
def test_what_a_transform_cannot_take_is_named(call: Any, text: str) -> None:
    with pytest.raises(autograd.GradientError) as caught:
        call(Transforms.tensor([1.0, 2.0]))
    assert str(caught.value) == text
    assert clean()


def test_a_pullback_is_refused_where_its_vmap_is_over() -> None:
    kept: list[Any] = []

    def function(x: turnout.Tensor) -> turnout.Tensor:
        y, pull = func.vjp(lambda a: a * 2, x)
        kept.append(pull)
        return y

    func.vmap(function)(Transforms.tensor([[1.0], [2.0]]))
    with pytest.raises(autograd.GradientError) as caught:
        kept[0](Transforms.tensor([1.0]))
    assert str(caught.value) == (
        "vjp: the function it returned is called outside of a vmap that it was made in\n"
        "  to fix  call it inside of the mapped function"
    )


SUMMED = (
    "grad: inside vmap, outputs and inputs must be batched by the same vmaps: the gradient with respect to a tensor that all "
    "examples share would be summed over them\n"
    "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
)
BACKWARD = (
    "backward: not possible on tensors inside vmap, where .grad would be shared by all examples\n"
    "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, w: autograd.grad((x * w).sum(), w), SUMMED),
        (lambda x, w: autograd.grad((w * w).sum(), x), SUMMED),
        (lambda x, w: autograd.grad(w.sum() * 2, (w, x)), SUMMED),
        (lambda x, w: func.vmap(lambda y: autograd.grad((x * y).sum(), x)[0])(turnout.stack([w, w])), SUMMED),
        (lambda x, w: autograd.backward((x * w).sum()), BACKWARD),
        (lambda x, w: autograd.backward(w.sum(), inputs=x), BACKWARD),
        (lambda x, w: autograd.grad(x * w, x), "backward: only for a tensor of one element can the gradient be left out, this one is float64 [2]"),
        (lambda x, w: autograd.grad(x * w, x, (w, w)), "2 gradients were given for 1 outputs"),
    ],
)  # fmt: skip
def test_imperative_gradients_that_are_not_those_of_examples_are_refused(call: Any, text: str) -> None:
    w = Transforms.tensor([1.0, 2.0]).requires_grad_()
    m = Transforms.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
    with pytest.raises(TurnoutError) as caught:
        func.vmap(lambda x: call(x, w))(m)
    assert str(caught.value).startswith(text)
    assert clean()


# ---- custom operators


@pytest.fixture
def cube() -> Iterator[Any]:
    @turnout.library.custom_op("transforms::cube", mutates_args=())
    def cube(x: turnout.Tensor) -> turnout.Tensor:
        return x * x * x

    def backward(ctx: Any, g: turnout.Tensor) -> turnout.Tensor:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x

    cube.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))
    yield cube
    cube.undo()


@pytest.mark.filterwarnings("ignore:transforms.*has no batching rule")
def test_a_custom_operator_with_only_a_gradient_works_in_any_nesting(cube: Any) -> None:
    m = Transforms.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    def total(x: turnout.Tensor) -> turnout.Tensor:
        return cube(x).sum()

    def penalty(x: turnout.Tensor) -> turnout.Tensor:
        g = func.grad(total)(x)
        return (g * g).sum()

    assert func.vmap(cube)(m).tolist() == (m * m * m).tolist()
    assert func.vmap(func.grad(total))(m).tolist() == (3 * m * m).tolist()
    assert func.grad(lambda a: func.vmap(total)(a).sum())(m).tolist() == (3 * m * m).tolist()
    assert func.vmap(func.grad(penalty))(m).tolist() == (36 * m * m * m).tolist()
    assert (
        func.vmap(func.vmap(func.grad(total)))(turnout.stack([m, m])).tolist()
        == turnout.stack([3 * m * m] * 2).tolist()
    )


def in_operators(info: Any, in_dims: Any, x: turnout.Tensor) -> Any:
    """The rule calls the operator itself, on the batch."""
    return turnout.ops.transforms.cube(x), in_dims[0]


def in_numpy(info: Any, in_dims: Any, x: turnout.Tensor) -> Any:
    """The rule calls an array library."""
    return turnout.from_numpy(x.numpy() ** 3), in_dims[0]


@pytest.mark.parametrize(("rule", "opaque"), [(in_operators, False), (in_numpy, True)])
def test_a_custom_operator_with_a_rule_for_batches_works_in_any_nesting(cube: Any, rule: Any, opaque: bool) -> None:
    cube.register_vmap(rule, opaque=opaque)
    m = Transforms.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    def total(x: turnout.Tensor) -> turnout.Tensor:
        return cube(x).sum()

    def penalty(x: turnout.Tensor) -> turnout.Tensor:
        g = func.grad(total)(x)
        return (g * g).sum()

    assert func.vmap(cube, 1)(m).tolist() == (m * m * m).t().tolist()
    assert func.vmap(func.grad(total))(m).tolist() == (3 * m * m).tolist()
    assert func.grad(lambda a: func.vmap(total)(a).sum())(m).tolist() == (3 * m * m).tolist()
    assert func.vmap(func.grad(penalty))(m).tolist() == (36 * m * m * m).tolist()
    assert (
        func.vmap(func.vmap(func.grad(total)))(turnout.stack([m, m])).tolist()
        == turnout.stack([3 * m * m] * 2).tolist()
    )
    leaf = (m * 1).requires_grad_()
    func.vmap(cube)(leaf).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == (3 * m * m).tolist()


# ---- traces

TRACED = {
    "vmap": lambda m: func.vmap(lambda x: x.sin() * x.sum())(m),
    "grad": func.grad(lambda m: (m * m * m).sum()),
    "vmap of grad": func.vmap(func.grad(lambda x: (x.sin() * x).sum())),
    "vmap of grad of vmap": func.vmap(func.grad(lambda x: func.vmap(lambda e: e * e * x.sum())(x).sum())),
    "vmap of hessian": func.vmap(func.hessian(lambda x: (x * x * x).sum())),
    "vmap of jvp": func.vmap(lambda x: func.jvp(lambda a: a.sin() * a, (x,), (x,))[1]),
    "writes into views": func.vmap(func.grad(written)),
    "update": lambda m: m - 0.1 * func.vmap(func.grad(lambda x: (x * x).sum()))(m),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_transform_replays_on_other_values_and_under_vmap(name: str) -> None:
    function = TRACED[name]
    m = Transforms.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    graph = turnout.trace(function)(m)
    other = m * 0.5 + 0.25
    np.testing.assert_allclose(graph(other).numpy(), function(other).numpy(), rtol=1e-12)
    both = func.vmap(graph)(turnout.stack([m, other]))
    np.testing.assert_allclose(both.numpy(), np.stack([function(m).numpy(), function(other).numpy()]), rtol=1e-12)
    assert clean()


def test_a_trace_that_starts_inside_vmap_is_refused() -> None:
    with pytest.raises(TurnoutError):
        func.vmap(lambda x: turnout.trace(turnout.sin)(x)(x))(Transforms.tensor([[1.0], [2.0]]))
    assert clean()


# ---- autocast


@pytest.mark.parametrize("around", [True, False])
def test_autocast_inside_and_outside_of_vmap_and_grad_gives_the_dtypes_of_the_loop(around: bool) -> None:
    w, m = turnout.rand(3, 3), turnout.rand(2, 3)
    dtypes: list[Any] = []

    def layer(x: turnout.Tensor) -> turnout.Tensor:
        y = w @ x
        dtypes.append(y.dtype)
        return y.to(turnout.float32).sum()

    def inside(x: turnout.Tensor) -> turnout.Tensor:
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            return layer(x)

    if around:
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            found, expected = func.vmap(func.grad(layer))(m), func.grad(layer)(m[0])
    else:
        found, expected = func.vmap(func.grad(inside))(m), func.grad(inside)(m[0])
    assert dtypes == [turnout.bfloat16, turnout.bfloat16]
    assert found.dtype is expected.dtype is turnout.float32
    np.testing.assert_array_equal(found[0].numpy(), expected.numpy())


def test_autocast_switched_off_inside_is_off() -> None:
    w, m = turnout.rand(3, 3), turnout.rand(2, 3)

    def off(x: turnout.Tensor) -> turnout.Tensor:
        with turnout.autocast("cpu", enabled=False):
            return w @ x

    with turnout.autocast("cpu", dtype=turnout.bfloat16):
        assert func.vmap(off)(m).dtype is turnout.float32
        assert func.vmap(lambda x: w @ x)(m).dtype is turnout.bfloat16
        assert func.vmap(lambda x: x @ x)(m).dtype is turnout.bfloat16
