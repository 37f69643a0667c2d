"""Turnout: an operator dispatcher for Python.

An operator is declared once, as a schema; what runs when it is called is decided by dispatch keys, and the kernels for each
key come from separately installed packages. `turnout.explain(op, *args)` says why a kernel ran.

Where to start reading: `table` (the whole policy on one screen), `operators` (how a call resolves), `registry` (how kernels get
there). `docs/notes/0001-how-the-parts-fit.md` in the repository is the map.

What is not defined here, such as `turnout.add` or `turnout.nn`, an installed plugin provides: see `turnout.plugins.public_names`.
Importing this module loads no plugin, no array library and nothing that is not needed to look up an operator.
"""

from __future__ import annotations

import sys as _sys

from turnout import config as config
from turnout import errors as errors
from turnout import plugins as plugins
from turnout.devices import Device as Device
from turnout.devices import device as device

from turnout.dtypes import (  # isort: skip
    DType as DType, bfloat16 as bfloat16, bool_ as bool, complex64 as cfloat, complex64 as complex64,
    complex128 as cdouble, complex128 as complex128, float16 as float16, float16 as half, float32 as float,
    float32 as float32, float64 as double, float64 as float64, get_default_dtype as get_default_dtype, int8 as int8,
    int16 as int16, int16 as short, int32 as int, int32 as int32, int64 as int64, int64 as long,
    set_default_dtype as set_default_dtype, uint8 as uint8, uint16 as uint16, uint32 as uint32, uint64 as uint64,
)  # fmt: skip
from turnout.errors import TurnoutError as TurnoutError
from turnout.keys import DispatchKeySet as DispatchKeySet
from turnout.operators.tracebacks import shorten as _shorten
from turnout.operators.tracebacks import shorten_class as _shorten_class
from turnout.plugins.module_finder import MissingMembers as _MissingMembers
from turnout.plugins.module_finder import ModuleFinder as _ModuleFinder
from turnout.registry.namespaces import ops as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout import explanation as explanation
    from turnout import library as library
    from turnout import schema as schema
    from turnout.explanation import explain as explain
    from turnout.explanation.tracing import trace_dispatch as trace_dispatch
    from turnout.explanation.user_frames import user_frame as user_frame
    from turnout.registry.modes import DispatchMode as DispatchMode

    __version__: str

dtype = DType
_shorten_class(DispatchKeySet)

_sys.meta_path.insert(0, _ModuleFinder(_sys.modules[__name__], lambda *path: plugins.facade().module(*path)))
_sys.meta_path.append(_MissingMembers)

# Core's own names that are loaded when they are first used: "module" or "module:attribute".
_LATE = {
    "DispatchMode": "turnout.registry.modes:DispatchMode",
    "explain": "turnout.explanation:explain",
    "explanation": "turnout.explanation",
    "library": "turnout.library",
    "schema": "turnout.schema",
    "trace_dispatch": "turnout.explanation.tracing:trace_dispatch",
    "user_frame": "turnout.explanation.user_frames:user_frame",
}


def __getattr__(name: str) -> Any:
    """What is loaded when it is first used: the names above, the version, and what installed plugins provide."""
    if name == "__all__":
        return [each for each in __dir__() if not each.startswith("_")]
    if name == "__version__":
        from turnout.plugins.distributions import version_of

        return version_of("turnout-core")
    path = _LATE.get(name)
    if path is None:
        if name.startswith("_"):
            raise AttributeError(f"module 'turnout' has no attribute {name!r}")
        try:
            return plugins.facade().get(name)
        except Exception as error:
            _shorten(error)
            raise
    from importlib import import_module

    module, _, attribute = path.partition(":")
    found = import_module(module)
    value = globals()[name] = getattr(found, attribute) if attribute else found
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *plugins.facade().names()} - {"TYPE_CHECKING", "annotations"})


for _room in ("config", "devices", "dtypes", "errors", "guards", "keys", "operators", "plugins", "registry", "state", "table"):
    globals()[_room].__dir__ = globals()[_room].__all__.copy  # what an interpreter completes is what is public
