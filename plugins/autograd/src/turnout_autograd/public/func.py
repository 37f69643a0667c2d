"""`turnout.func`, functions of functions: `vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `functionalize`. They
nest in any order. `functional_call` calls an object with other tensors in the place of its own.

Arguments and results may be nested tuples, lists and dicts of tensors, and what `turnout.trees.register` adds to these. `vmap`
and `loop_counts` come from the plugin that provides the functionality Batched, `functionalize` from that of Functionalize; they
are activated at the first use.
"""

from __future__ import annotations

from turnout import plugins
from turnout.operators import shorten
from turnout_autograd.modules.calls import functional_call, module_state, stack_module_state
from turnout_autograd.transforms.gradients import grad, grad_and_value
from turnout_autograd.transforms.jacobians import hessian, jacfwd, jacrev
from turnout_autograd.transforms.vector_products import jvp, linearize, vjp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

    # Batched is another distribution's: its service has these two, with these signatures.

    def vmap(
        func: Callable[P, R], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
    ) -> Callable[P, R]: ...

    def loop_counts() -> dict[str, int]: ...

    # Likewise that of Functionalize.

    def functionalize(func: Callable[P, R], *, remove: str = "mutations") -> Callable[P, R]: ...


__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "loop_counts", "module_state", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
__dir__ = __all__.copy
_SERVICES = {"functionalize": "Functionalize", "loop_counts": "Batched", "vmap": "Batched"}


def __getattr__(name: str) -> Any:
    if name in _SERVICES:
        try:
            return getattr(plugins.service(_SERVICES[name]), name)
        except Exception as error:
            shorten(error)
            raise
    raise AttributeError(f"module 'turnout.func' has no attribute {name!r}")
