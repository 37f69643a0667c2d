"""Turnout as the programs of `transform_programs` see it, and the same transforms written as the plain loops that they mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import turnout
from turnout import autograd, func
from turnout_aten import trees


def _cubed(x: turnout.Tensor) -> turnout.Tensor:
    return x * x * x


def _in_operators(info: Any, in_dims: Any, x: turnout.Tensor) -> Any:
    return turnout.ops.transforms.cubed(x), in_dims[0]


def _in_numpy(info: Any, in_dims: Any, x: turnout.Tensor) -> Any:
    return turnout.from_numpy(x.numpy() ** 3), in_dims[0]


class Transforms:
    """Turnout, as the programs see it."""

    vmap, grad, vjp, jvp = func.vmap, func.grad, func.vjp, func.jvp
    jacrev, jacfwd, hessian, linearize = func.jacrev, func.jacfwd, func.hessian, func.linearize

    def __getattr__(self, name: str) -> Any:
        return getattr(turnout, name)

    @staticmethod
    def tensor(data: Any) -> turnout.Tensor:
        return turnout.tensor(data, dtype=turnout.float64)

    @staticmethod
    def zeros(*shape: int) -> turnout.Tensor:
        return turnout.zeros(*shape, dtype=turnout.float64)

    @staticmethod
    def single(data: Any) -> turnout.Tensor:
        return turnout.tensor(data, dtype=turnout.float32)

    @staticmethod
    def leaf(x: turnout.Tensor) -> turnout.Tensor:
        return x.detach().clone().requires_grad_()

    @staticmethod
    def float(x: turnout.Tensor) -> turnout.Tensor:
        return x.to(turnout.float32)

    @staticmethod
    def code(x: turnout.Tensor) -> turnout.Tensor:
        """The number of bytes of an element: which dtype it is."""
        return turnout.tensor(x.dtype.itemsize, dtype=turnout.int64)

    @staticmethod
    def cast(enabled: bool = True) -> Any:
        return turnout.autocast("cpu", dtype=turnout.bfloat16, enabled=enabled)

    @staticmethod
    def traced(function: Any, examples: tuple[Any, ...]) -> Any:
        return turnout.trace(function)(*examples)

    @staticmethod
    def cubes() -> Iterator[Any]:
        """x^3 as custom operators: with a gradient alone, with a batching rule in operators, with one that is opaque."""
        for rule, opaque in ((None, False), (_in_operators, False), (_in_numpy, True)):
            op = turnout.library.custom_op("transforms::cubed", _cubed, mutates_args=())
            op.register_autograd(
                lambda ctx, g: g * 3 * ctx.saved_tensors[0] * ctx.saved_tensors[0],
                setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
            )
            if rule is not None:
                op.register_vmap(rule, opaque=opaque)
            try:
                yield op
            finally:
                op.undo()

    @staticmethod
    def imperative_grad(y: Any, x: Any, v: Any) -> Any:
        return autograd.grad(y, x, v, create_graph=True)[0]


for _name in ("vmap", "grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize"):
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
    def traced(function: Any, examples: tuple[Any, ...]) -> Any:
        return function

    @staticmethod
    def cubes() -> Iterator[Any]:
        for _ in range(3):
            yield lambda x: x * x * x

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
        outputs, structure = trees.flatten(y)
        _, push = Loops.vjp(lambda *u: pull(*u), *[turnout.zeros_like(t) for t in outputs])
        return y, trees.unflatten(structure, list(push(*trees.flatten(tangents)[0])))

    @staticmethod
    def linearize(function: Any, *primals: Any) -> Any:
        return function(*primals), lambda *tangents: Loops.jvp(function, primals, tangents)[1]

    @staticmethod
    def jacrev(function: Any, argnums: Any = 0) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else argnums

        def jacobian(*args: Any) -> Any:
            def of_some(*values: Any) -> Any:
                given = list(args)
                for n, value in zip(numbers, values, strict=True):
                    given[n] = value
                return function(*given)

            some = tuple(args[n] for n in numbers)
            y, pull = Loops.vjp(of_some, *some)
            outputs, structure = trees.flatten(y)
            rows = []
            for k, output in enumerate(outputs):
                found = []
                for i in range(output.numel()):
                    seeds = [turnout.zeros_like(o) for o in outputs]
                    seeds[k].reshape(-1)[i] = 1.0
                    found.append(trees.flatten(pull(*seeds))[0])
                parts = [turnout.stack(list(c)).reshape(output.shape + c[0].shape) for c in zip(*found, strict=True)]
                row = trees.unflatten(trees.flatten(some)[1], parts)
                rows.append(row[0] if isinstance(argnums, int) else row)
            return trees.unflatten(structure, rows)

        return jacobian

    jacfwd = jacrev

    @staticmethod
    def hessian(function: Any, argnums: Any = 0) -> Any:
        return Loops.jacrev(Loops.jacrev(function, argnums), argnums)


def inside(x: turnout.Tensor) -> turnout.Tensor:
    """A tensor to differentiate by: with the history of the outside, but not the same."""
    with turnout.enable_grad():
        return x.clone() if x.requires_grad else x.detach().clone().requires_grad_()
