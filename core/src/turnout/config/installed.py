"""What is installed, for the layers below `turnout.plugins`: configuration, devices, errors and the registry ask here.

`turnout.plugins` stands above them, and puts its answers here when it is imported. Until then nothing is installed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Answers(Protocol):
        """What is asked."""

        def catalog(self) -> Any:
            """The installed plugins by their manifests; see `turnout.plugins.discovery.Catalog`."""

        def require_device(self, device_type: str) -> None:
            """Activate the backend with this device string, or raise."""

        def require_namespace(self, namespace: str) -> bool:
            """Activate the plugins with operators in a namespace; False when nobody is known to have any."""

        def remedy_for(self, kind: str, name: str, *, activate: bool) -> str:
            """What to do for a "device", "backend" or "functionality" that is not active; "" when nobody has it."""

        def default_device_type(self) -> str:
            """The device string of the backend on which tensors are made when nothing says where; "" when there is none."""

        def activate_all(self) -> None:
            """Activate every plugin that is installed, enabled and works here."""


_answers: Answers | None = None


def connect(answers: Answers) -> None:
    """Called by `turnout.plugins`."""
    global _answers
    _answers = answers


def installed() -> Answers:
    """Who answers."""
    assert _answers is not None, "turnout.plugins connects itself when `turnout` is imported"
    return _answers
