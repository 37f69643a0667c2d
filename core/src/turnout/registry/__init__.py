"""The registry: operators, fallbacks, backends (`store`), and groups of registrations that can be undone (`registrations`)."""

from __future__ import annotations

from turnout.registry import core_kernels
from turnout.registry.registrations import Registrations as Registrations
from turnout.registry.store import REGISTRY as REGISTRY
from turnout.registry.store import Registry as Registry
from turnout.registry.store import find_operator as find_operator

core_kernels.install()

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.registry.store import Source as Source
