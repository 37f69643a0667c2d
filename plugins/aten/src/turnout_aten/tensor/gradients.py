"""The gradient part of `Tensor`: tracking, `.grad`, `backward` and hooks.

A mixin. The fields belong to the tensor; the plugin that provides Autograd gives them their meaning.
"""

from __future__ import annotations

from turnout import plugins
from turnout.dtypes import FLOAT
from turnout.errors import AliasError, ArgumentError, CallError, DeviceError, DTypeError, ShapeError
from turnout.keys import TRACKED
from turnout.operators.tracebacks import shorten
from turnout.operators.values import is_tensor
from turnout.registry import REGISTRY
from turnout_aten.tensor.grad_mode import grad_fn, is_inference_mode_enabled, tracked_levels
from turnout_aten.tensor.levels import GRAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout_aten.tensor.storage import View
    from turnout_aten.tensor.tensor import Tensor


class GradientMethods:
    """Tracking, `.grad`, `backward`, hooks."""

    __slots__ = ()
    extra: dict[str, Any] | None
    view_of: View | None

    def set_gmask(self: Any, mask: int) -> None:
        """Set which gradient levels track the tensor, and the marker bit with it.

        When a base becomes tracked, its live views get the marker too, so that their next use checks the base again.

        Arguments:
            mask: the levels, one bit for each; bit 0 is that of imperative autograd

        Example:
            >>> x = turnout.tensor([1.0])
            >>> x.set_gmask(1)
            >>> x.requires_grad
            True
        """
        self.gmask = mask
        if mask:
            self.keys |= TRACKED
            if self.storage is not None and self.storage.views:
                for view in self.live_views():
                    view.keys |= TRACKED
        else:
            self.keys &= ~TRACKED

    def history_owner(self: Any) -> Tensor:
        """The tensor whose history and `.grad` are this one's: itself, unless a transform shows another tensor in its place.

        Example:
            >>> x = turnout.tensor([1.0])
            >>> x.history_owner() is x
            True
        """
        return self

    def with_history_owner(self: Any, function: Callable[..., Any], *args: Any) -> Any:
        """`function(owner, *args)` for the tensor whose history is this one's, where operators are called on such tensors.

        Arguments:
            function: what is called
            args: its further arguments

        Example:
            >>> turnout.tensor([1.0]).with_history_owner(turnout.neg)
            tensor([-1.])
        """
        return function(self, *args)

    def shown_like(self: Any, value: Tensor) -> Tensor:
        """A tensor of the kind of `history_owner`, as one of this one's kind.

        Arguments:
            value: the tensor

        Example:
            >>> turnout.tensor([1.0]).shown_like(turnout.tensor([2.0]))
            tensor([2.])
        """
        return value

    @property
    def requires_grad(self: Any) -> bool:

        return bool(tracked_levels(self))

    @requires_grad.setter
    def requires_grad(self: Any, value: bool) -> None:
        if value and self.node is not None and not self.is_leaf:
            raise AliasError("requires_grad can be set on leaves only; this tensor has a history, which decides")
        self.requires_grad_(value)

    def requires_grad_(self: Any, requires_grad: bool = True) -> Tensor:
        """Track a leaf for imperative autograd, or stop tracking it; returns self.

        Activates the plugin that provides Autograd. Raises DisabledError when the configuration disables that plugin,
        DTypeError for dtypes without gradients, AliasError for a tensor that is not a leaf or that a functional transform
        tracks, CallError for a value other than True and False.

        Arguments:
            requires_grad: whether gradients with respect to the tensor are wanted

        Example:
            >>> turnout.tensor([1.0]).requires_grad_()
            tensor([1.], requires_grad=True)
        """
        try:
            if requires_grad.__class__ is not bool:
                raise CallError(f"requires_grad must be True or False, not {type(requires_grad).__name__}")
            if requires_grad == bool(self.gmask & 1):
                return self
            if not requires_grad:
                if self.node is not None:
                    raise AliasError(
                        "requires_grad can be switched off on leaves only; use .detach() for a tensor without history"
                    )
                self.set_gmask(self.gmask & ~1)
                return self
            if self.gmask & GRAD.get()[1] & ~1:
                raise AliasError(
                    "requires_grad_: a running functional transform tracks this tensor, so it cannot become a leaf\n"
                    "  to fix  use turnout.func.grad or vjp for gradients with respect to it, or .detach() it first"
                )
            key = "Autograd" + self.device.backend.name
            if "Autograd" not in REGISTRY.services or REGISTRY.is_disabled(key, "Autograd"):
                plugins.require_functionality("Autograd", key)
            if self.dtype.category < FLOAT:
                raise DTypeError(f"only floating-point and complex tensors can require gradients, this one is {self.dtype.name}")
            if self.is_inference() and not is_inference_mode_enabled():
                raise AliasError(
                    "an inference tensor cannot require gradients outside of inference_mode; clone() it for a normal tensor"
                )
            # Any history left belongs to functional transforms that have ended.
            self.node = None
            self.set_gmask(1)
            return self
        except Exception as error:
            shorten(error)
            raise

    def detach_(self: Any) -> Tensor:
        """Drop the history; returns self, now a leaf that requires no gradient. Raises AliasError for a view.

        Example:
            >>> turnout.tensor([1.0]).detach_()
            tensor([1.])
        """
        if self.view_of is not None:
            raise AliasError("detach_: a view cannot be detached in place because its base would keep the history; use detach()")
        self.set_gmask(0)
        self.node = None
        return self

    # It is None before `backward`. Who reads `.grad` knows that; for the type to say so, each use would need a check.
    @property
    def grad(self: Any) -> Tensor:
        """The gradient that `backward` accumulated here, or None. Warns for a tensor that does not keep one."""
        found: Any = None if self.extra is None else self.extra.get("grad")
        if found is None and self.node is not None and self.gmask & 1 and not self.retains_grad:
            import warnings

            warnings.warn(
                "grad: only leaves get a gradient, and this tensor has a history; call retain_grad() on it before backward()",
                UserWarning,
                stacklevel=2,
            )
        return found

    @grad.setter
    def grad(self: Any, value: Tensor | None) -> None:
        if value is not None:
            self._check_grad(value)
        if self.extra is None:
            self.extra = {}
        self.extra["grad"] = value

    @grad.deleter
    def grad(self: Any) -> None:
        self.grad = None

    def _check_grad(self: Any, value: Any) -> None:
        """Raise if `value` cannot be this tensor's gradient."""
        if not is_tensor(value):
            raise CallError(f"grad must be a tensor or None, not {type(value).__name__}")
        if value is self:
            raise ArgumentError("a tensor cannot be its own grad")
        if value.shape != self.shape:
            raise ShapeError(f"grad must have the tensor's shape, {list(self.shape)}; got {list(value.shape)}")
        if value.dtype is not self.dtype:
            raise DTypeError(f"grad must have the tensor's dtype, {self.dtype.name}; got {value.dtype.name}")
        if value.device != self.device:
            raise DeviceError(f"grad must be on the tensor's device, {self.device}; got one on {value.device}")

    @property
    def is_leaf(self: Any) -> bool:

        return not tracked_levels(self) or self.grad_fn is None

    @property
    def grad_fn(self: Any) -> Any:

        return grad_fn(self)

    def backward(
        self: Any,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Accumulate d(self)/d(leaf) into `.grad` of the leaves. See `turnout.autograd.backward`.

        Arguments:
            gradient: the gradient with respect to this tensor; 1 for a tensor of one element
            retain_graph: whether the graph stays for another backward
            create_graph: whether the gradients can be differentiated
            inputs: the leaves whose `.grad` is added to; all by default

        Example:
            >>> x = turnout.tensor(3.0, requires_grad=True)
            >>> (x * x).backward()
            >>> x.grad
            tensor(6.)
        """
        try:
            service: Any = REGISTRY.services.get("Autograd")
            if service is None:
                service = plugins.service("Autograd")
            service.backward(self, gradient, retain_graph, create_graph, inputs)
        except Exception as error:
            shorten(error)
            raise

    def register_hook(self: Any, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook(grad)` whenever the gradient with respect to this tensor is computed; returns a handle to remove it.

        Arguments:
            hook: gets the gradient, and may return another in its place

        Example:
            >>> x = turnout.tensor(3.0, requires_grad=True)
            >>> handle = x.register_hook(lambda grad: grad * 2)
            >>> (x * x).backward()
            >>> x.grad
            tensor(12.)
        """
        return plugins.service("Autograd").register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self: Any, hook: Callable[[Tensor], None]) -> Any:
        """Call `hook(self)` after `.grad` of this leaf was accumulated; returns a handle to remove it.

        Arguments:
            hook: gets this tensor

        Example:
            >>> x = turnout.tensor(3.0, requires_grad=True)
            >>> handle = x.register_post_accumulate_grad_hook(lambda x: print("done"))
            >>> (x * x).backward()
            done
        """
        return plugins.service("Autograd").register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self: Any) -> None:
        """Make `backward` keep `.grad` of this tensor, which is not a leaf.

        Example:
            >>> x = turnout.tensor(3.0, requires_grad=True)
            >>> y = x * x
            >>> y.retain_grad()
            >>> y.backward()
            >>> y.grad
            tensor(1.)
        """
        plugins.service("Autograd").retain_grad(self)

    @property
    def retains_grad(self: Any) -> bool:
        """Whether this tensor is not a leaf and `retain_grad` was called on it."""
        if not self.gmask:
            return False
        return plugins.service("Autograd").retains_grad(self)

    @property
    def output_nr(self: Any) -> int:
        """The position of this tensor among the outputs of `grad_fn`."""
        if not self.gmask or self.node is None:
            return 0
        return plugins.service("Autograd").output_nr(self)
