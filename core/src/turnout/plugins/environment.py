"""What is installed, read once: the catalog of manifests, and what of it is active."""

from __future__ import annotations

from turnout.config.lock import LOCK
from turnout.devices.devices import forget_default_device
from turnout.keys import KEYS
from turnout.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.plugins.discovery import Catalog

# What plugins are built against, "MAJOR.MINOR": a minor adds, a major may take away.
PLUGIN_API = "1.0"

# ("device", "cpu") and the like, of what is active: the one check of a call that needs nothing activated.
ACTIVE: set[tuple[str, str]] = set()
_catalog: Catalog | None = None


def catalog() -> Catalog:
    """What is installed, by its manifests; read once until `forget_catalog`. Their keys and backends are then in the universe."""
    global _catalog
    if _catalog is None:
        with LOCK:
            if _catalog is None:
                from turnout.plugins.discovery import Catalog, find

                found = Catalog(find(PLUGIN_API))
                found.place(KEYS)
                REGISTRY.changed()
                _catalog = found
    return _catalog


def forget_catalog() -> None:
    """Look at the environment anew at the next question."""
    global _catalog
    _catalog = None
    forget_default_device()
    KEYS.discover_with(catalog)
