"""The registry: operators, fallbacks, backends (`store`), and groups of registrations that can be undone (`libraries`)."""

from __future__ import annotations

from turnout.registry.libraries import Library as Library
from turnout.registry.store import REGISTRY as REGISTRY
from turnout.registry.store import Registry as Registry
from turnout.registry.store import find_operator as find_operator
from turnout.registry.store import tensors_in as tensors_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.registry.store import Source as Source
