"""The programs of nested transforms against plain loops: `vmap` is a loop and a stack there, gradients are imperative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import turnout
from transform_programs import PROGRAMS
from turnout import autograd, func, state, trees


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
            return trees.unflatten(out, [turnout.stack(list(c), d) for c, d in zip(columns, trees.spread(out_dims, out), strict=True)])

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
            return trees.unflatten(structure, [turnout.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)])

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
