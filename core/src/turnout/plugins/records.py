"""The record of one plugin: its state, the reason, and the remedy."""

from __future__ import annotations

from turnout.config.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.plugins.manifest import Manifest

# state -> its meaning. Of plugins that provide the same, the one with the first of these states is activated, or reported.
STATES = {
    "active": "it is in use",
    "discovered": "it is activated when it is first needed",
    "unavailable": "a module or a device is missing",
    "blocked": "a plugin that it requires cannot be used",
    "conflict": "another distribution has the same plugin, or another plugin provides the same",
    "failed": "its manifest is wrong, or activating it raised",
    "incompatible": "it was built for another plugin-API",
    "disabled": "configuration says so",
}
USABLE = ("active", "discovered")
# The states of a plugin that are worth a warning even if nothing asked for the plugin.
BROKEN = ("failed", "incompatible", "conflict")


class PluginRecord(NamedTuple):
    """One installed plugin of one distribution.

    name      what settings call it; `kind`, `summary`, `module`, `api` and `requires` are those of its `manifest`
    version   that of the `distribution`
    state     a key of STATES; `reason` and `remedy` are lines for people, or empty
    origin    distribution, version and the manifest's path; `path` is that path alone, "" when it was not found
    provides  "backend:CUDA", "device:cuda", "functionality:Tracer", "namespace:mylib", as far as they can be read
    error     the exception of a failed plugin, with its traceback
    """

    name: str
    distribution: str
    version: str
    state: str
    reason: str = ""
    remedy: str = ""
    origin: str = ""
    path: str = ""
    kind: str = ""
    summary: str = ""
    module: str = ""
    api: str = ""
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    error: BaseException | None = None
    manifest: Manifest | None = None

    @property
    def usable(self) -> bool:
        """Whether it is active or, as far as known without trying, can be activated."""
        return self.state in USABLE

    def line(self) -> str:
        """Name, distribution, state and the first line of the reason."""
        reason = self.reason.partition("\n")[0]
        return f"{self.name} ({self.distribution} {self.version}): {self.state}" + (f", {reason}" if reason else "")

    def __repr__(self) -> str:
        return f"<plugin {self.line()}>"
