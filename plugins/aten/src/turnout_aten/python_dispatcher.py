"""`PythonDispatcher`: the computed table of one imaginary operator, for trying out where to register kernels.

Its universe is small and fixed: CPU, XLA and Lazy stand for backends with an autograd key of their own, FPGA for one
without, whose autograd key is AutogradOther. It has nothing to do with the plugins that are installed, and no policy
of its own: `turnout.table.compute` says what serves each key.
"""

from __future__ import annotations

from collections.abc import Iterable

from turnout.errors import RegistrationError
from turnout.keys import AUTOGRAD, EXPLICIT, IMPLICIT, Universe
from turnout.table import AMBIGUOUS, FALLBACK, Entry, compute

_OPERATOR = "example::foo"
_SCHEMA = f"{_OPERATOR}(Tensor x) -> Tensor"
_BACKENDS = ("CPU", "XLA", "Lazy")
_BACKEND_KEYS = (*_BACKENDS, "FPGA")
_AUTOGRAD_KEYS = ("AutogradOther", *(AUTOGRAD + backend for backend in _BACKENDS))

UNIVERSE = Universe(
    [("Dense", ""), ("FPGA", None), ("AutogradOther", None), (AUTOGRAD, AUTOGRAD)],
    _BACKENDS,
    aliases={AUTOGRAD: _AUTOGRAD_KEYS, EXPLICIT: _BACKEND_KEYS, IMPLICIT: _BACKEND_KEYS + _AUTOGRAD_KEYS},
    backends_of={"AutogradOther": ["FPGA"], **{AUTOGRAD + backend: [backend] for backend in _BACKENDS}},
)
# What can be registered at, backends beside their autograd keys.
# fmt: off
_KEYS = (
    "CPU", "AutogradCPU", "FPGA", "AutogradOther", "XLA", "AutogradXLA", "Lazy", "AutogradLazy",
    EXPLICIT, AUTOGRAD, IMPLICIT,
)
# fmt: on
_ALIASES = (AUTOGRAD, IMPLICIT, EXPLICIT)
# The order in which registrations are listed: keys that are one for all backends, keys of one backend, aliases.
_LISTED = ("FPGA", "AutogradOther", *_BACKENDS, *(AUTOGRAD + backend for backend in _BACKENDS), *_ALIASES)
# As in a process without kernels: every autograd key passes on what it has no kernel for.
_FALLBACKS = dict.fromkeys(_AUTOGRAD_KEYS, "fallthrough")


class PythonDispatcher:
    """Register at some keys, then print what serves every key.

        dispatcher = PythonDispatcher()
        dispatcher.register(["CPU", "XLA", "AutogradCPU", "CompositeImplicitAutograd"])
        print(dispatcher.dispatchTable())

    Objects know nothing of each other.
    """

    __test__ = False

    def __init__(self) -> None:
        self._kernels: dict[str, str] = {}

    def keys(self) -> list[str]:
        """The keys that can be registered at."""
        return list(_KEYS)

    def register(self, dispatchKeys: Iterable[str]) -> None:
        """Register a kernel `fn_<key>` at each key, besides those that are there.

        Raises RegistrationError for a key twice, an unknown key, and both composite aliases on the one operator; then
        nothing is registered.

        # differs from torch: `PythonDispatcher.register` registers nothing where a key is wrong, and refuses a repetition in a
        later call too. In PyTorch the keys before the wrong one stay registered.
        """
        wanted = list(dispatchKeys)
        present = {**self._kernels, **dict.fromkeys(wanted, "")}
        if len(present) != len(self._kernels) + len(wanted):
            raise RegistrationError(f"a key can be registered at once only, got {wanted}" + self._beside())
        if IMPLICIT in present and EXPLICIT in present:
            raise RegistrationError(f"{IMPLICIT} and {EXPLICIT} cannot both be registered for one operator")
        unknown = [key for key in wanted if key not in _KEYS]
        if unknown:
            raise RegistrationError(f"{unknown[0]} is not a key of PythonDispatcher; it has {', '.join(_KEYS)}")
        self._kernels.update({key: f"fn_{key}" for key in wanted})

    def _beside(self) -> str:
        return f" besides {list(self._kernels)}" if self._kernels else ""

    def registrations(self) -> str:
        """What was registered, as a table: keys for all backends, then those of one backend, then aliases."""
        return _table("Registered Kernels", [(_marked(key), kernel) for key, kernel in self._registered()])

    def dispatchTable(self) -> str:
        """What serves each runtime key and why, as a table; keys that nothing serves are left out."""
        rows = [(key, _served(entry)) for key, entry in self._computed().items() if key in _KEYS]
        return _table("Computed Dispatch Table", rows)

    def rawRegistrations(self) -> str:
        """The operator and what was registered, a line each."""
        lines = [f"name: {_OPERATOR}", f"schema: {_SCHEMA}"]
        lines += [f"{_marked(key)}: {kernel}" for key, kernel in self._registered()]
        return "\n".join(lines) + "\n"

    def rawDispatchTable(self) -> str:
        """What serves each runtime key, Undefined among them, a line each, the kernels of fallbacks included."""
        rows = self._computed().items()
        return "".join(f"{key}: {entry.kernel or 'ambiguous_autogradother'} [{entry.reason}]\n" for key, entry in rows)

    def _registered(self) -> list[tuple[str, str]]:
        return [(key, self._kernels[key]) for key in _LISTED if key in self._kernels]

    def _computed(self) -> dict[str, Entry]:
        return compute(UNIVERSE, self._kernels, _FALLBACKS)


def _marked(key: str) -> str:
    return f"{key}[alias]" if key in _ALIASES else key


def _served(entry: Entry) -> str:
    if entry.reason == FALLBACK:  # the same one for every operator: which it is says nothing about this one
        return f"[{entry.reason}]"
    if entry.reason == AMBIGUOUS:
        return f"ambiguous_autogradother [{entry.reason}]"
    return f"{entry.kernel} [{entry.reason}]"


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = ["", title, f"{'key':<15} kernel", "-" * 27, *(f"{key:<15} {text}" for key, text in rows)]
    return "\n".join(lines) + "\n"
