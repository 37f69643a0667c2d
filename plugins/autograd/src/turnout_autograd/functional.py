"""`turnout.autograd.functional`: Jacobians, Hessians and products with them, under PyTorch's older names.

All are runs of `transforms.Linearized`. Inputs are a tensor or a tuple of tensors, and what belongs to them comes as they do.
With `create_graph` results belong to the graphs of the inputs and of what the function captures, else to none. That is about
imperative autograd: functional transforms around the call record it in any case.
# differs from torch: inputs that require no gradient are not made to, where nobody could ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnout import plugins
from turnout.errors import ArgumentError, CallError
from turnout.registry import find_operator
from turnout_aten.tensor.grad_mode import enable_grad
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine import recording
from turnout_autograd.transforms import Linearized, Pushed, basis, check_real, mapped, of_dtype

Function = Callable[..., Any]

_ones_like = find_operator("aten::ones_like").call
_zeros_like = find_operator("aten::zeros_like").call
REVERSE, FORWARD = "reverse-mode", "forward-mode"


def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = REVERSE,
) -> Any:  # fmt: skip
    """The Jacobian of each result with respect to each input: shape of the result, then shape of the input.

    Of real results alone; with respect to a complex input it holds the gradients. `strategy="forward-mode"` wants real inputs.

    strict     an error instead of zeros where a result does not depend on an input; with `create_graph` also where a Jacobian
               does not
    vectorize  all rows at once by `vmap`, not one after the other
    strategy   "forward-mode" computes columns, for functions of few inputs; only with `vectorize`, and without the other two
    """
    _check_strategy("jacobian", strategy, create_graph, strict, vectorize)
    several, given = _tuple("jacobian", "inputs", inputs)
    rows = _columns if strategy == FORWARD else _rows

    def derivative(*xs: Tensor) -> tuple[Any, tuple[()]]:
        run = Run("jacobian", func, xs, create_graph, strict)
        with run.mode():
            made = [_as(several, row) for row in rows(run, vectorize)]
        return _as(run.several, made), ()

    return _computed("jacobian", derivative, given, create_graph and strict)[0]


def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = REVERSE,
) -> Any:  # fmt: skip
    """The second derivatives of a function that returns one number: for each input, with respect to each input."""
    _check_strategy("hessian", outer_jacobian_strategy, create_graph, strict, vectorize)
    several, given = _tuple("hessian", "inputs", inputs)
    rows = _columns if outer_jacobian_strategy == FORWARD else _rows

    def derivative(*xs: Tensor) -> tuple[Any, tuple[()]]:
        run = Run("hessian", _gradient_of("hessian", func, strict), xs, create_graph, strict, errors.strict_gradient)
        with run.mode():
            return _as(several, [_as(several, row) for row in rows(run, vectorize)]), ()

    return _computed("hessian", derivative, given, create_graph and strict)[0]


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), the gradients of its results times `v`); `v` may be left out for one number."""
    several, given = _tuple("vjp", "inputs", inputs)

    def derivative(*xs: Tensor) -> tuple[Any, Any]:
        run = Run("vjp", func, xs, create_graph, strict)
        vector = _vector("vjp", v, run.outputs, "the function returns")
        return _as(several, run.gradients(vector)), _as(run.several, run.outputs)

    return _computed("vjp", derivative, given, create_graph and strict)[::-1]


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), its derivative along `v`); `v` may be left out for one input of one number."""
    given = _tuple("jvp", "inputs", inputs)[1]
    vector = _vector("jvp", v, given, "it takes")

    def derivative(*xs: Tensor) -> tuple[Any, Any]:
        run = Run("jvp", func, xs, create_graph, strict)
        if strict:
            run.gradients([_ones_like(t.detach()) for t in run.outputs])
        with run.mode():
            return _as(run.several, Pushed(run)(vector)), _as(run.several, run.outputs)

    return _computed("jvp", derivative, given, create_graph and strict)[::-1]


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), `v` times the Hessian of a function that returns one number); `v` as for `jvp`."""
    return _with_hessian("vhp", func, inputs, v, create_graph, strict)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), the Hessian times `v`): what `vhp` gives, for a Hessian is symmetric."""
    return _with_hessian("hvp", func, inputs, v, create_graph, strict)


def _with_hessian(name: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool) -> Any:
    several, given = _tuple(name, "inputs", inputs)
    vector = _vector(name, v, given, "it takes")

    def derivative(*xs: Tensor) -> tuple[Any, Any]:
        gradient = _gradient_of(name, func, strict, True)
        run = Run(name, gradient, xs, create_graph, strict, errors.strict_gradient, has_aux=True)
        return _as(several, run.gradients(vector)), run.aux

    return _computed(name, derivative, given, create_graph and strict)[::-1]


# ---- runs of a function


class Run(Linearized):
    """A linearized function of tensors that returns a tensor or a tuple of them; `several` says which.

    constant  the error's text for a result that does not depend on the inputs, if that is one
    """

    def __init__(
        self, name: str, func: Function, inputs: Sequence[Tensor], create_graph: bool, strict: bool,
        constant: Callable[[str, int], str] = errors.strict_result, has_aux: bool = False,
    ) -> None:  # fmt: skip
        self.create_graph, self.strict = create_graph, strict
        self.several = False

        def called(*xs: Tensor) -> Any:
            result = func(*xs)
            value, aux = result if has_aux else (result, None)
            self.several, results = _tuple(name, "the results of the function", value)
            return (results, aux) if has_aux else results

        with self.mode():
            super().__init__(name, called, inputs, has_aux)
        for i in range(len(self.outputs) if strict else 0):
            if not self.depends(i):
                raise errors.GradientError(constant(name, i))

    def mode(self) -> Any:
        """Imperative autograd records, or does not; functional levels around record as they did."""
        return enable_grad() if self.create_graph else recording(GRAD.get()[0] & ~1)

    def gradients(self, cotangents: Sequence[Tensor | None]) -> list[Tensor]:
        """The gradients of the inputs; strictly, an error instead of zeros."""
        with self.mode():
            found = self.reached(cotangents)
            for i, gradient in enumerate(found if self.strict else ()):
                if gradient is None:
                    raise errors.GradientError(errors.strict_input(self.name, i))
            return [_zeros_like(x) if g is None else g for x, g in zip(self.primals, found, strict=True)]


def _rows(run: Run, vectorize: bool) -> list[list[Tensor]]:
    """For each result the Jacobians with respect to the inputs, row by row."""
    made = []
    check_real(run, arguments=False)
    for i, output in enumerate(run.outputs):

        def pulled(cotangent: Tensor, i: int = i) -> tuple[Tensor, ...]:
            return tuple(run.gradients([cotangent if j == i else None for j in range(len(run.outputs))]))

        rows = mapped(pulled, basis(output), None if vectorize else 1)
        made.append([g.reshape((*output.shape, *x.shape)) for g, x in zip(rows, run.primals, strict=True)])
    return made


def _columns(run: Run, vectorize: bool) -> list[list[Tensor]]:
    """The same, column by column; `_check_strategy` has seen to `vectorize`."""
    check_real(run)
    pushed = Pushed(run)
    others = [_zeros_like(x) for x in run.primals]
    made: list[list[Tensor]] = [[] for _ in run.outputs]
    for i, x in enumerate(run.primals):

        def push(tangent: Tensor, i: int = i) -> tuple[Tensor, ...]:
            return tuple(pushed([*others[:i], tangent, *others[i + 1 :]]))

        columns = plugins.service("Batched").vmap(push, out_dims=-1)(basis(x))
        for row, output, column in zip(made, run.outputs, columns, strict=True):
            row.append(column.reshape((*output.shape, *x.shape)))
    return made


def _gradient_of(name: str, func: Function, strict: bool, with_value: bool = False) -> Function:
    """The gradients of a function that returns one number; and the number, where it is asked for."""

    def gradient(*xs: Tensor) -> Any:
        run = Run(name, func, xs, True, strict)
        if run.several or run.outputs[0].numel() != 1:
            raise errors.GradientError(errors.one_element(name, run.outputs))
        found = tuple(run.gradients([_ones_like(run.outputs[0].detach())]))
        return (found, run.outputs[0]) if with_value else found

    return gradient


def _computed(name: str, derivative: Function, inputs: Sequence[Tensor], strictly: bool) -> tuple[Any, Any]:
    """What `derivative` gives for the inputs: (derivatives, values). Strictly, all derivatives must depend on the inputs."""
    if not strictly:
        made: tuple[Any, Any] = derivative(*inputs)
        return made
    with enable_grad():
        run = Linearized(name, derivative, inputs, True)
    for i in range(len(run.outputs)):
        if not run.depends(i):
            raise errors.GradientError(errors.strict_graph(name, i % len(inputs)))
    return run.result, run.aux


# ---- arguments


def _check_strategy(name: str, strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    if strategy not in (REVERSE, FORWARD):
        raise ArgumentError(errors.strategy(name, strategy))
    if vectorize and strict:
        raise ArgumentError(errors.not_together(name, "strict=True", "vectorize=True"))
    if strategy == FORWARD and not vectorize:
        raise ArgumentError(errors.not_together(name, f"strategy='{FORWARD}'", "vectorize=False"))
    if strategy == FORWARD and create_graph:
        raise ArgumentError(errors.not_together(name, f"strategy='{FORWARD}'", "create_graph=True"))


def _tuple(name: str, what: str, value: Any) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether it is a tuple, and it as one. Raises CallError for what is neither a tensor nor a tuple of tensors."""
    several = isinstance(value, tuple)
    values: tuple[Any, ...] = value if several else (value,)
    for each in values:
        if not isinstance(each, Tensor):
            raise CallError(errors.tensors_wanted(name, what, each if several else value))
    return several, values


def _as(several: bool, values: Sequence[Any]) -> Any:
    return tuple(values) if several else values[0]


def _vector(name: str, v: Any, like: Sequence[Tensor], whose: str) -> Sequence[Tensor]:
    """`v` as tensors that fit `like`; one, where it is left out and there is one number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise errors.GradientError(errors.vector_needed(name, whose))
        return [_ones_like(like[0].detach())]
    values = _tuple(name, "v", v)[1]
    if len(values) != len(like):
        raise errors.GradientError(errors.vector_count(name, len(values), len(like)))
    fitted = []
    for i, (value, tensor) in enumerate(zip(values, like, strict=True)):
        if value.shape != tensor.shape:
            raise errors.GradientError(errors.vector_shape(name, i, value, tensor))
        fitted.append(of_dtype(name, f"tensor {i} of 'v'", value, tensor))
    return fitted


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
