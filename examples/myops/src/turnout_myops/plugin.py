"""Activation: schema and kernel through the plugin's group, rules through `turnout.library`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.library import Library, register_autograd, register_fake, register_vmap
from turnout.plugins import hookimpl
from turnout_aten.plugin_api import device, register_kernels
from turnout_myops import swish

if TYPE_CHECKING:
    from turnout.plugins import Registrations

SWISH = "myops::swish"


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the operator. The rules are undone together with the plugin."""
    library.define(f"{SWISH}(Tensor x, float beta=1.0) -> Tensor", tags=("pointwise",))
    register_kernels(library, device("cpu").backend, {"swish": swish.kernel}, namespace="myops")
    rules = Library("myops", "FRAGMENT")
    library.on_undo(rules.undo)
    register_fake(SWISH, swish.fake, lib=rules)
    register_autograd(SWISH, swish.backward, setup_context=swish.setup_context, lib=rules)
    register_vmap(SWISH, swish.batch, lib=rules)
