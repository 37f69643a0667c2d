"""The nodes of calls of a `Function`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX
from turnout.errors import DTypeError, ShapeError
from turnout.registry import find_operator
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.fitting import Meta, fit
from turnout_autograd.engine.nested_passes import run_nested
from turnout_autograd.engine.nodes import Node
from turnout_autograd.engine.saved_tensors import FREED

if TYPE_CHECKING:
    from turnout_autograd.function.context import FunctionCtx
    from turnout_autograd.function.function import Function

_zeros = find_operator("aten::zeros").stub


class FunctionNode(Node):
    """The node of one call of a `Function`. Attributes that forward left on its ctx can be read here too."""

    __slots__ = ("__weakref__", "count", "ctx", "function", "inputs", "outputs")
    several = True
    count: int
    ctx: FunctionCtx
    function: type[Function]
    inputs: list[Any]
    outputs: list[Any]

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.function.shown_as or self.function.__name__

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in FunctionNode.__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.ctx, name)

    def saved(self) -> Any:
        """The same unchecked: FREED, or for each tensor None, a `Kept`, or (tensor, version)."""
        return self.ctx._saved

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> list[Any]:
        given = list(grads)
        if self.ctx._materialize:
            for i, meta in enumerate(self.outputs):
                if given[i] is None and meta is not None:
                    given[i] = _zeros(meta[0], dtype=meta[1], device=meta[2])
        found = run_nested(self.function.backward_rule(), self.ctx, *given)
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        while len(results) > len(self.inputs) and results[-1] is None:
            results.pop()
        if len(results) != len(self.inputs):
            raise errors.GradientError(errors.functions.function_count(self.op_name, len(results), len(self.inputs)))
        for i, grad in enumerate(results):
            if grad is None:
                continue
            meta = self.inputs[i]
            if grad.__class__ is not Tensor or meta is None or (grad.shape, grad.dtype, grad.device) != meta:
                results[i] = self._fitted(i, grad, meta)
        return results

    def _fitted(self, i: int, grad: Any, meta: Meta | None) -> Tensor:
        if meta is None:
            raise errors.GradientError(errors.functions.function_extra(self.op_name, self._input(i)))
        if not isinstance(grad, Tensor):
            raise errors.GradientError(errors.functions.function_kind(self.op_name, self._input(i), grad))
        if not _expands(meta[0], grad.shape):
            raise ShapeError(errors.functions.function_shape(self.op_name, self._input(i), grad.shape, meta[0]))
        if grad.is_complex() and meta[1].category != COMPLEX:
            raise DTypeError(errors.functions.function_complex(self.op_name, self._input(i), grad.dtype, meta[1]))
        return fit(grad, meta)

    def _input(self, i: int) -> str:
        return self.function.shown_input(self.ctx, i)

    def release(self) -> None:
        self.ctx._saved = FREED


def _expands(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `to`."""
    if len(shape) > len(to):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


class ViewWrite(Node):
    """A Function's write into a view of its only output, with the view's edge first, as the history of its base needs it.

    at  which argument the view was
    """

    __slots__ = ("at", "inner")
    at: int
    inner: FunctionNode

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.inner.op_name

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self.inner.backward([grad], self.inner.edges)
        return (found[self.at], *found[: self.at], *found[self.at + 1 :])

    def release(self) -> None:
        self.inner.release()
