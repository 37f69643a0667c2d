"""Which dispatch key a word means: "cpu", "default", or the name of a key.

A kernel may be registered for a backend whose plugin is not active, or not even installed: it waits, and nothing is activated.
"""

from __future__ import annotations

from turnout import plugins
from turnout.errors import UniverseError
from turnout.errors.library import unknown_type
from turnout.keys import EXPLICIT
from turnout.plugins import providers
from turnout.registry import REGISTRY

DEFAULT = "default"


def key_of(word: str) -> str:
    """The key of a device type, of "default" (CompositeExplicitAutograd), or of a dispatch key's name.

    Raises DeviceError for a word that is neither.
    """
    if word == DEFAULT:
        return EXPLICIT
    for backend in REGISTRY.backends.values():
        if backend.device_type == word:
            return backend.name
    try:
        return REGISTRY.key_name(word)
    except UniverseError:
        pass
    known = _installed_and_known()
    if word not in known:
        active = {backend.device_type for backend in REGISTRY.backends.values()}
        raise unknown_type(word, active | known.keys())
    return known[word]


def _installed_and_known() -> dict[str, str]:
    """Device type -> backend, from the manifests of what is installed and the file of known packages."""
    known: dict[str, str] = {}
    for row in providers.data().values():
        if len(row["devices"]) == len(row["backends"]) == 1:
            known[row["devices"][0]] = row["backends"][0]
    for manifest in plugins.catalog().manifests:
        known.update({backend.device: backend.name for backend in manifest.backends})
    return known
