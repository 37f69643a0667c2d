"""`turnout.ops`: operators by name, as in `turnout.ops.mylib.add.Tensor`. The first use of a namespace activates its plugins."""

from __future__ import annotations

from turnout.config.installed import installed
from turnout.errors import UnknownOperatorError
from turnout.errors import registry as texts
from turnout.operators.tracebacks import shorten
from turnout.registry.store import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.operators import Packet


class Namespace:
    """The packets of one namespace as attributes."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Packet:
        try:
            packet = REGISTRY.packet(self._name, name)
            if packet is None:
                if name.startswith("__"):
                    raise AttributeError(name)
                raise UnknownOperatorError(texts.unknown_operator(f"{self._name}::{name}", REGISTRY))
            return packet
        except Exception as error:
            shorten(error)
            raise

    def __dir__(self) -> list[str]:
        return sorted(REGISTRY.namespace(self._name))

    def __reduce__(self) -> tuple[object, tuple[object, str]]:
        return (getattr, (ops, self._name))

    def __repr__(self) -> str:
        return f"<namespace {self._name}: {len(dir(self))} operators>"


class Ops:
    """The namespaces as attributes."""

    __slots__ = ()

    def __getattr__(self, namespace: str) -> Namespace:
        if namespace.startswith("__"):
            raise AttributeError(namespace)
        try:
            # Ask even if the namespace exists: an inactive plugin may add operators to it.
            if not installed().require_namespace(namespace) and not REGISTRY.namespace(namespace):
                raise UnknownOperatorError(texts.unknown_namespace(namespace, REGISTRY))
            return Namespace(namespace)
        except Exception as error:
            shorten(error)
            raise

    def __dir__(self) -> list[str]:
        return sorted({*installed().catalog().namespaces(), *[name for name, held in REGISTRY.packets.items() if held]})

    def __reduce__(self) -> str:
        return "ops"

    def __repr__(self) -> str:
        return f"<operators by namespace: {', '.join(dir(self))}>"


ops = Ops()
