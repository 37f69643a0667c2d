"""grad, vjp, jvp, jacrev, jacfwd: functions of functions, each a functional level on the one tape.

The three steps are in `levels`: the inputs enter a level, the function runs inside of it, results leave it. Derivatives along a
tangent are the pullback of the pullback: g(u) = pull(u) is linear in u, and its gradient with respect to u along v is the
tangent. So there is one table of formulas, and in-place operators, views and vmap come with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from turnout import plugins
from turnout.dtypes import COMPLEX, FLOAT
from turnout.errors import ArgumentError
from turnout.registry import find_operator
from turnout_aten import trees
from turnout_aten.tensor.grad_mode import enable_grad, no_grad
from turnout_aten.tensor.levels import LEVELS, lower, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.levels import Level, enter, leave, new_level, pull

Function = Callable[..., Any]
Argnums = int | Sequence[int]

_ones_like = find_operator("aten::ones_like").call
_stack = find_operator("aten::stack").call
_zeros_like = find_operator("aten::zeros_like").call


class Linearized:
    """A function run once inside of a level: what it returned, and its pullback.

    inside    the results as tensors of the level, raised from their lowered form: lowering them again records nothing
    outputs   the results as the outside sees them
    """

    def __init__(self, name: str, function: Function, primals: Sequence[Any], has_aux: bool) -> None:
        self.name = name
        leaves, self.inputs = trees.flatten(tuple(primals))
        self.level: Level = new_level()
        entered = [enter(self.level, _floating(name, "an argument", leaf)) for leaf in leaves]
        self.primals = leaves
        with self.level:
            result = function(*trees.unflatten(self.inputs, entered))
            aux = None
            if has_aux:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise errors.GradientError(errors.aux_missing(name))
                result, aux = result
            outputs, self.structure = trees.flatten(result)
            vmaps = self.level.vmaps
            self.inside = [raise_(lower(_tensor(name, "a result", t), vmaps), vmaps) for t in outputs]
        self.outputs = [leave(self.level, t) for t in self.inside]
        self.aux = self._left(aux) if has_aux else None

    def _left(self, aux: Any) -> Any:
        return trees.map_leaves(lambda v: leave(self.level, v) if isinstance(v, Tensor) else v, aux)

    @property
    def result(self) -> Any:
        """What the function returned."""
        return trees.unflatten(self.structure, self.outputs)

    def depends(self, index: int) -> bool:
        """Whether a result was computed from the inputs."""
        return bool(lower(self.inside[index], self.level.vmaps).gmask & self.level.bit)

    def pull(self, cotangents: Sequence[Tensor | None], retain: bool = True) -> list[Tensor]:
        """The gradients of the inputs, zeros where none arrives; None for a result that does not matter."""
        found = self.reached(cotangents, retain)
        return [_zeros_like(p) if g is None else g for g, p in zip(found, self.primals, strict=True)]

    def reached(self, cotangents: Sequence[Tensor | None], retain: bool = True) -> list[Tensor | None]:
        """The gradients of the inputs, None where none arrives."""
        if any(vmap not in LEVELS.get() for vmap in self.level.vmaps):
            raise errors.GradientError(errors.pulled_outside(self.name))
        return pull(self.level, self.inside, cotangents, retain)


def _tensor(name: str, what: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise errors.GradientError(errors.not_a_tensor(name, what, value))
    return value


def _floating(name: str, what: str, value: Any) -> Tensor:
    if _tensor(name, what, value).dtype.category < FLOAT:
        raise errors.GradientError(errors.not_differentiable(name, what, value))
    return value


# ---- grad


def grad(func: Function, argnums: Argnums, has_aux: bool) -> Function:
    """See `turnout.func.grad`."""
    both = grad_and_value(func, argnums, has_aux, name="grad")

    @wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Function, argnums: Argnums, has_aux: bool, name: str = "grad_and_value") -> Function:
    """See `turnout.func.grad_and_value`."""

    @wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        chosen, function = _of_some(name, func, argnums, args, kwargs)
        run = Linearized(name, function, chosen, has_aux)
        if run.structure is not trees.LEAF or run.outputs[0].shape != ():
            raise errors.GradientError(errors.not_one_number(name, run.outputs, run.structure is trees.LEAF))
        output = run.outputs[0]
        if output.dtype.category != FLOAT:
            raise errors.GradientError(errors.not_floating(name, output))
        found = _picked(argnums, trees.unflatten(run.inputs, run.pull([_ones_like(output.detach())])))
        return found, (output, run.aux) if has_aux else output

    return gradient_and_value


def _of_some(
    name: str, func: Function, argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], Function]:
    """The chosen arguments, and the function of them alone."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    # differs from torch: a list will do as well as a tuple.
    if not isinstance(numbers, (tuple, list)) or not numbers or not all(isinstance(n, int) for n in numbers):
        raise errors.GradientError(errors.argnums_kind(name, argnums))
    if any(not -len(args) <= n < len(args) for n in numbers):
        raise errors.GradientError(errors.argnums(name, argnums, len(args)))
    at = [n % len(args) for n in numbers]
    if len(set(at)) < len(at):
        raise errors.GradientError(errors.argnums_twice(name, argnums))

    def function(*chosen: Any) -> Any:
        given = list(args)
        for n, value in zip(at, chosen, strict=True):
            given[n] = value
        return func(*given, **kwargs)

    return [args[n] for n in at], function


def _picked(argnums: Argnums, found: tuple[Any, ...]) -> Any:
    return found[0] if isinstance(argnums, int) else tuple(found)


# ---- vjp and jvp


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """See `turnout.func.vjp`."""
    run = Linearized("vjp", func, primals, has_aux)
    _check_outputs(run)

    def pullback(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = _fitting("vjp", "cotangent", cotangents, run.structure, run.outputs)
        if create_graph is None:
            return trees.unflatten(run.inputs, run.pull(given, retain_graph))
        with enable_grad() if create_graph else no_grad():
            return trees.unflatten(run.inputs, run.pull(given, retain_graph))

    return (run.result, pullback, run.aux) if has_aux else (run.result, pullback)


def _check_returned(run: Linearized) -> None:
    if not run.outputs:
        raise errors.GradientError(errors.nothing_returned(run.name))


def _check_outputs(run: Linearized) -> None:
    """That there is something to pull back from, and nothing that cotangents cannot belong to."""
    _check_returned(run)
    for output in run.outputs:
        _floating(run.name, "a result", output)


def _fitting(name: str, what: str, given: Any, structure: Any, like: Sequence[Tensor]) -> list[Tensor]:
    """Tangents or cotangents, in the structure, shapes and dtypes of what they belong to."""
    leaves, found = trees.flatten(given)
    if found != structure:
        raise errors.GradientError(errors.other_structure(name, what))
    fitted = []
    for i, (leaf, tensor) in enumerate(zip(leaves, like, strict=True)):
        _tensor(name, "a " + what, leaf)
        if leaf.shape != tensor.shape:
            raise errors.GradientError(errors.other_shape(name, what, i, leaf, tensor))
        fitted.append(of_dtype(name, f"{what} {i}", leaf, tensor))
    return fitted


def of_dtype(name: str, place: str, value: Tensor, tensor: Tensor) -> Tensor:
    """`value` in the dtype of the tensor that it belongs to. Raises GradientError for complex numbers where that is real."""
    if value.dtype is tensor.dtype:
        return value
    if value.dtype.category == COMPLEX and tensor.dtype.category != COMPLEX:
        # differs from torch: it drops the imaginary part of tangents.
        raise errors.GradientError(errors.other_kind(name, place, value, tensor))
    made: Tensor = value.to(dtype=tensor.dtype)
    return made


class Pushed:
    """The linear function of tangents of a run: the pullback of its pullback."""

    def __init__(self, run: Linearized) -> None:
        self._run = run
        self._at = [i for i, t in enumerate(run.outputs) if t.dtype.category >= FLOAT]
        seeds = [_zeros_like(run.outputs[i].detach()) for i in self._at]

        def pullback(*cotangents: Tensor) -> Any:
            given = iter(cotangents)
            return tuple(run.pull([next(given) if i in self._at else None for i in range(len(run.outputs))]))

        self._pulled = Linearized(run.name, pullback, seeds, False) if seeds else None

    def __call__(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """A tangent for each result; zeros for those that are not floating-point."""
        found = iter(self._pulled.pull(tangents) if self._pulled is not None else ())
        return [next(found) if i in self._at else _zeros_like(t) for i, t in enumerate(self._run.outputs)]


def jvp(
    func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> Any:
    """See `turnout.func.jvp`."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise errors.GradientError(errors.not_tuples("jvp"))
    leaves, structure = trees.flatten(tuple(primals))
    if not leaves:
        raise errors.GradientError(errors.no_primals("jvp"))
    given = _fitting("jvp", "tangent", tuple(tangents), structure, [_tensor("jvp", "an argument", t) for t in leaves])
    run = Linearized("jvp", func, primals, has_aux)
    _check_returned(run)
    if strict and not all(map(run.depends, range(len(run.outputs)))):
        raise errors.GradientError(errors.independent("jvp"))
    made = trees.unflatten(run.structure, Pushed(run)(given))
    return (run.result, made, run.aux) if has_aux else (run.result, made)


def linearize(func: Function, *primals: Any) -> Any:
    """See `turnout.func.linearize`."""
    run = Linearized("linearize", func, primals, False)
    pushed = Pushed(run)

    def push(*tangents: Any) -> Any:
        return trees.unflatten(
            run.structure, pushed(_fitting("linearize", "tangent", tangents, run.inputs, run.primals))
        )

    return run.result, push


# ---- Jacobians


def jacrev(func: Function, argnums: Argnums, has_aux: bool, chunk_size: int | None, name: str = "jacrev") -> Function:
    """See `turnout.func.jacrev`."""
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ArgumentError(errors.chunk(name, chunk_size))

    @wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen, function = _of_some(name, func, argnums, args, kwargs)
        run = Linearized(name, function, chosen, has_aux)
        _check_outputs(run)
        check_real(run)
        rows = []
        for i, output in enumerate(run.outputs):
            found = mapped(_pull_of(run, i), basis(output), chunk_size)
            shaped = [g.reshape(output.shape + g.shape[1:]) for g in found]
            rows.append(_picked(argnums, trees.unflatten(run.inputs, shaped)))
        made = trees.unflatten(run.structure, rows)
        return (made, run.aux) if has_aux else made

    return jacobian


def mapped(pull: Function, seeds: Tensor, chunk_size: int | None) -> Sequence[Tensor]:
    """What `pull` gives for each seed; one by one without vmap, which cannot do whatever a backward does."""
    if chunk_size != 1 or not seeds.shape[0]:
        return tuple(plugins.service("Batched").vmap(pull, chunk_size=chunk_size)(seeds))
    return [_stack(list(column)) for column in zip(*map(pull, seeds), strict=True)]


def check_real(run: Linearized, arguments: bool = True) -> None:
    """The gradients of complex results are the conjugates of their derivatives: there is no one Jacobian."""
    for what, tensors in (("an argument", run.primals), ("a result", run.outputs)):
        for tensor in tensors if arguments or tensors is run.outputs else ():
            if tensor.dtype.category == COMPLEX:
                raise errors.GradientError(errors.complex_jacobian(run.name, what, tensor))


def _pull_of(run: Linearized, i: int) -> Function:
    def pull_one(cotangent: Tensor) -> tuple[Tensor, ...]:
        return tuple(run.pull([cotangent if j == i else None for j in range(len(run.outputs))]))

    return pull_one


def basis(tensor: Tensor) -> Tensor:
    """All tensors of this shape that are 1 at one place: [number of elements, shape]."""
    count = tensor.numel()
    made = tensor.new_zeros((count, count))
    if count:
        made.diagonal().fill_(1)
    return made.reshape((count, *tensor.shape))


def jacfwd(func: Function, argnums: Argnums, has_aux: bool, randomness: str, name: str = "jacfwd") -> Function:
    """See `turnout.func.jacfwd`."""

    @wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen, function = _of_some(name, func, argnums, args, kwargs)
        run = Linearized(name, function, chosen, has_aux)
        _check_returned(run)
        check_real(run)
        pushed = Pushed(run)
        columns = []
        for i, primal in enumerate(run.primals):
            found = plugins.service("Batched").vmap(_push_of(run, pushed, i), out_dims=-1, randomness=randomness)(
                basis(primal)
            )
            columns.append([t.reshape(t.shape[:-1] + primal.shape) for t in found])
        rows = [
            _picked(argnums, trees.unflatten(run.inputs, [column[j] for column in columns]))
            for j in range(len(run.outputs))
        ]
        made = trees.unflatten(run.structure, rows)
        return (made, run.aux) if has_aux else made

    return jacobian


def _push_of(run: Linearized, pushed: Pushed, i: int) -> Function:
    def push_one(tangent: Tensor) -> tuple[Tensor, ...]:
        others = [_zeros_like(t) for t in run.primals]
        return tuple(pushed([*others[:i], tangent, *others[i + 1 :]]))

    return push_one


def hessian(func: Function, argnums: Argnums) -> Function:
    """See `turnout.func.hessian`."""
    rows = jacrev(func, argnums, False, None, "hessian")
    return jacfwd(rows, argnums, False, "error", "hessian")


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
