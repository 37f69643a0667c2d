"""Custom operators, in torch.library's manner: porting one means changing one import.

| module | holds |
|---|---|
| `libraries` | `Library`: definitions, kernels and fallbacks that are undone together; which key a device string means |
| `custom` | `custom_op` and the handle it returns |
| `functions` | `define`, `impl`, `register_kernel`, `register_fake`, `register_autograd`, `register_autocast`, `register_vmap` |
| `rules` | gradients, casts and batching rules: the plugin of the functionality makes the kernel |
| `results` | the check of what custom kernels return |
| `fake` | kernels for tensors without data, `get_ctx` |

Start with `custom`, or with `docs/custom-operators.md` in the repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.library.custom import CustomOpDef, custom_op
from turnout.library.fake import FakeContext, get_ctx
from turnout.library.libraries import Library, fallthrough_kernel
from turnout.operators.tracebacks import shorten, shorten_class
from turnout.schema.infer import infer_schema

from turnout.library.functions import (  # isort: skip
    define, get_kernel, impl, impl_abstract, register_autocast, register_autograd, register_fake, register_kernel,
    register_torch_dispatch, register_vmap,
)  # fmt: skip

__all__ = ["CustomOpDef", "FakeContext", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl",
    "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake", "register_kernel",
    "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton"]  # fmt: skip
__dir__ = __all__.copy

for _class in (CustomOpDef, FakeContext, Library):
    shorten_class(_class)

opcheck: Any
triton_op: Any
wrap_triton: Any
if not TYPE_CHECKING:  # a name that nobody provides is an error of types too

    def __getattr__(name: str) -> Any:
        """The functions that plugins provide, because they need tensors."""
        if name in ("opcheck", "triton_op", "wrap_triton"):
            try:
                return plugins.facade().get(name)
            except Exception as error:
                shorten(error)
                raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
