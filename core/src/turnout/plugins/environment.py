"""What is installed, read once: the catalog of manifests, and the active part of it."""

from __future__ import annotations

from turnout.config.lock import LOCK
from turnout.devices import forget_default_device
from turnout.keys import KEYS
from turnout.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.plugins.discovery import Catalog

# The plugin-API, "MAJOR.MINOR": a minor adds to it, a major may remove from it.
PLUGIN_API = "1.0"

# Pairs such as ("device", "cpu") of what is active: the only check when nothing has to be activated.
ACTIVE: set[tuple[str, str]] = set()
_catalog: Catalog | None = None


def catalog() -> Catalog:
    """The installed manifests, read once until `forget_catalog`. Reading them adds their keys and backends to the universe."""
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
    """Read the environment again at the next use."""
    global _catalog
    _catalog = None
    forget_default_device()
    KEYS.discover_with(catalog)
