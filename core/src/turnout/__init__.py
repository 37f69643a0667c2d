"""Turnout: an operator dispatcher for Python.

An operator is declared once, as a schema; what runs when it is called is decided by dispatch keys, and the kernels for each
key come from separately installed packages. `turnout.explain(op, *args)` says why a kernel ran.

Where to start reading: `docs/notes/0001-how-the-parts-fit.md` in the repository, then `table` (the whole policy on one
screen), `operators` (how a call resolves) and `registry` (how kernels get there).

Importing this module loads no plugin, no array library and nothing that is not needed to look up an operator.
"""

from __future__ import annotations

from turnout import errors as errors
from turnout.autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from turnout.devices import Device, device
from turnout.dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from turnout.dtypes import bool_ as bool
from turnout.dtypes import complex64 as cfloat
from turnout.dtypes import complex128 as cdouble
from turnout.dtypes import float16 as half
from turnout.dtypes import float32 as float
from turnout.dtypes import float64 as double
from turnout.dtypes import int16 as short
from turnout.dtypes import int32 as int
from turnout.dtypes import int64 as long
from turnout.errors import TurnoutError
from turnout.keys import DispatchKeySet
from turnout.ops import ops
from turnout.tensors import Tensor
from turnout.native import standard as _standard
from turnout.generated.functions import *

dtype = DType
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
channels_last = "channels_last"
strided = "strided"
__version__ = "0.1.0"

_standard.install()

# Names that are loaded when they are first used: "module" or "module:attribute".
_LAZY = {
    "DispatchMode": "turnout.modes:DispatchMode",
    "Generator": "turnout.random:Generator",
    "PythonDispatcher": "turnout.python_dispatcher:PythonDispatcher",
    "as_subclass": "turnout.modes:as_subclass",
    "as_tensor": "turnout.factories:as_tensor",
    "explain": "turnout.explanation:explain",
    "from_dlpack": "turnout.interop:from_dlpack",
    "from_numpy": "turnout.interop:from_numpy",
    "library": "turnout.library",
    "load": "turnout.serialization:load",
    "manual_seed": "turnout.random:manual_seed",
    "result_type": "turnout.shapes.promotion:result_type",
    "save": "turnout.serialization:save",
    "schema": "turnout.schema",
    "tensor": "turnout.factories:tensor",
    "trace_dispatch": "turnout.tracing:trace_dispatch",
}


def __getattr__(name: str) -> object:
    path = _LAZY.get(name)
    if path is None:
        raise AttributeError(f"module 'turnout' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = path.partition(":")
    found = import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value
