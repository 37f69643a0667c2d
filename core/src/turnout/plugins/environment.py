"""What is installed, read once: the catalog of manifests, and the active part of it."""

from __future__ import annotations

from turnout.config.lock import LOCK
from turnout.devices import forget_default_device
from turnout.keys import KEYS
from turnout.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.plugins.discovery import Catalog, Found, Identity

# The plugin-API, "MAJOR.MINOR": a minor adds to it, a major may remove from it.
PLUGIN_API = "1.0"

# Pairs such as ("device", "cpu") of what is active: the only check when nothing has to be activated.
ACTIVE: set[tuple[str, str]] = set()
RUNNING: dict[Identity, Found] = {}  # the active plugins, as they were found when they were activated
NAMED: list[str] = []  # entry points that the program names itself, for want of metadata
_catalog: Catalog | None = None
_forgotten = 0  # how often


def catalog() -> Catalog:
    """The installed manifests, read once until `forget_catalog`. Reading them adds their keys and backends to the universe."""
    global _catalog
    if _catalog is None:
        from turnout.plugins.discovery import Catalog, find, keep

        while _catalog is None:
            forgotten, installed = _forgotten, find(PLUGIN_API, NAMED)  # not under the lock: it may import
            with LOCK:
                if _catalog is None and forgotten == _forgotten:
                    found = Catalog(keep(RUNNING, installed))
                    found.place(KEYS)
                    REGISTRY.changed()
                    _catalog = found
    return _catalog


def forget_catalog() -> None:
    """Read the environment again at the next use."""
    global _catalog, _forgotten
    _catalog = None
    _forgotten += 1
    forget_default_device()
    KEYS.discover_with(catalog)
