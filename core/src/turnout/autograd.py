"""What core knows of gradients: the mode (no_grad, enable_grad), and where the engine is to be found.

The engine is the plugin's that provides the functionality Autograd: `backward`, `grad`, `Function`, `gradcheck` and the rest
are attributes of the service it registers, looked up here and activated on first use.
"""

from __future__ import annotations

from turnout.keys import TRACKED
from turnout.state import GRAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from typing import Any

    from turnout.tensors import Tensor


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from turnout import plugins
    from turnout.registry import REGISTRY

    with REGISTRY.lock:  # the plugin cannot be deactivated between the two
        plugins.require_functionality("Autograd")
        service = REGISTRY.services["Autograd"]
    try:
        return getattr(service, name)
    except AttributeError:
        raise AttributeError(f"module 'turnout.autograd' has no attribute {name!r}") from None


def tracked_levels(tensor: Tensor) -> int:
    """The gradient levels that track a tensor now: imperative autograd and functional levels that are still active.

    A view of a base that was written since is brought up to date first, which may raise the plugin's AliasError.
    """
    if tensor.view_of is not None and tensor.keys & TRACKED:
        from turnout.registry import REGISTRY

        service = REGISTRY.services.get("Autograd")
        if service is not None:
            service.refresh(tensor)
    return tensor.gmask & (GRAD.get()[1] | 1)


def grad_fn(tensor: Tensor) -> Any:
    """The tape's node that made a tensor; for a view whose base was written since, the node of its new value."""
    from turnout.registry import REGISTRY

    service = REGISTRY.services.get("Autograd")
    return tensor.node if service is None or not tensor.gmask else service.current_node(tensor)


class _Mode:
    """Sets GRAD while entered; as a decorator, around every call of the function."""

    __slots__ = ("_tokens",)

    def __init__(self) -> None:
        self._tokens: list[Token[tuple[int, int]]] = []

    def _change(self, enabled: int, allowed: int) -> tuple[int, int]:
        raise AssertionError("a mode says how it changes GRAD")

    def __enter__(self) -> None:
        self._tokens.append(GRAD.set(self._change(*GRAD.get())))

    def __exit__(self, *exc_info: object) -> None:
        GRAD.reset(self._tokens.pop())

    def _again(self) -> _Mode:
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from functools import wraps

        @wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return in_mode


class no_grad(_Mode):
    """Record nothing while entered, at any level. A context manager and a decorator."""

    __slots__ = ()

    def _change(self, enabled: int, allowed: int) -> tuple[int, int]:
        return 0, allowed


class enable_grad(_Mode):
    """Record again inside `no_grad`: every level that was recording when the innermost level was entered."""

    __slots__ = ()

    def _change(self, enabled: int, allowed: int) -> tuple[int, int]:
        return allowed, allowed


class set_grad_enabled(_Mode):
    """`enable_grad` or `no_grad` by a flag; takes effect at once, and is undone on exit when used with `with`."""

    __slots__ = ("_before", "_mode")

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._mode = bool(mode)
        self._before = GRAD.get()
        GRAD.set(self._change(*self._before))

    def _change(self, enabled: int, allowed: int) -> tuple[int, int]:
        return (allowed if self._mode else 0), allowed

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        GRAD.set(self._before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        GRAD.set(self._before)
        return (enable_grad() if self._mode else no_grad())(function)


class inference_mode(_Mode):
    """`no_grad`, under PyTorch's name for code that will never need gradients.

    # differs from torch: results are ordinary tensors and may take part in gradients later; there is no version counter
    # to save here.
    """

    __slots__ = ("_mode",)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode

    def _again(self) -> _Mode:
        return inference_mode(self._mode)

    def _change(self, enabled: int, allowed: int) -> tuple[int, int]:
        return (0 if self._mode else enabled), allowed


def is_grad_enabled() -> bool:
    """Whether imperative autograd records now."""
    return bool(GRAD.get()[0] & 1)
