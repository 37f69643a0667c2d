"""Turnout: an operator dispatcher for Python.

An operator is declared once, as a schema; what runs when it is called is decided by dispatch keys, and the kernels for each
key come from separately installed packages. `turnout.explain(op, *args)` says why a kernel ran.

Where to start reading: `table` (the whole policy on one screen), `operators` (how a call resolves), `registry` (how kernels get
there). `docs/notes/0001-how-the-parts-fit.md` in the repository is the map.

Importing this module loads no plugin, no array library and nothing that is not needed to look up an operator.
"""

from __future__ import annotations

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from turnout import config as config
from turnout import errors as errors
from turnout import parts as parts
from turnout import plugins as plugins
from turnout.autograd import enable_grad as enable_grad
from turnout.autograd import inference_mode as inference_mode
from turnout.autograd import is_grad_enabled as is_grad_enabled
from turnout.autograd import is_inference as is_inference
from turnout.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from turnout.autograd import no_grad as no_grad
from turnout.autograd import set_grad_enabled as set_grad_enabled
from turnout.devices import Device as Device
from turnout.devices import device as device
from turnout.dtypes import DType as DType
from turnout.dtypes import bfloat16 as bfloat16
from turnout.dtypes import bool_ as bool
from turnout.dtypes import complex64 as cfloat
from turnout.dtypes import complex64 as complex64
from turnout.dtypes import complex128 as cdouble
from turnout.dtypes import complex128 as complex128
from turnout.dtypes import float16 as float16
from turnout.dtypes import float16 as half
from turnout.dtypes import float32 as float
from turnout.dtypes import float32 as float32
from turnout.dtypes import float64 as double
from turnout.dtypes import float64 as float64
from turnout.dtypes import get_default_dtype as get_default_dtype
from turnout.dtypes import int8 as int8
from turnout.dtypes import int16 as int16
from turnout.dtypes import int16 as short
from turnout.dtypes import int32 as int
from turnout.dtypes import int32 as int32
from turnout.dtypes import int64 as int64
from turnout.dtypes import int64 as long
from turnout.dtypes import promote_types as promote_types
from turnout.dtypes import set_default_dtype as set_default_dtype
from turnout.dtypes import uint8 as uint8
from turnout.dtypes import uint16 as uint16
from turnout.dtypes import uint32 as uint32
from turnout.dtypes import uint64 as uint64
from turnout.errors import TurnoutError as TurnoutError
from turnout.keys import DispatchKeySet as DispatchKeySet
from turnout.native import standard
from turnout.ops import ops as ops
from turnout.reductions import cdist as cdist
from turnout.reductions import nonzero as nonzero
from turnout.reductions import norm as norm
from turnout.reductions import unique as unique
from turnout.reductions import unique_consecutive as unique_consecutive
from turnout.tensors import Tensor as Tensor

newaxis = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout import amp as amp
    from turnout import array_api as array_api
    from turnout import autograd as autograd
    from turnout import fft as fft
    from turnout import func as func
    from turnout import graphs as graphs
    from turnout import library as library
    from turnout import linalg as linalg
    from turnout import masked as masked
    from turnout import nn as nn
    from turnout import return_types as return_types
    from turnout import schema as schema
    from turnout import signal as signal
    from turnout import special as special
    from turnout import trees as trees
    from turnout.amp import autocast as autocast
    from turnout.explanation import explain as explain
    from turnout.factories import as_tensor as as_tensor
    from turnout.factories import tensor as tensor
    from turnout.func import vmap as vmap
    from turnout.generated.functions import *  # noqa: F403 - a module of public functions with its own __all__
    from turnout.graphs import trace as trace
    from turnout.interop import from_dlpack as from_dlpack
    from turnout.interop import from_numpy as from_numpy
    from turnout.limits import finfo as finfo
    from turnout.limits import iinfo as iinfo
    from turnout.matrices import chain_matmul as chain_matmul
    from turnout.matrices import einsum as einsum
    from turnout.matrices import lu as lu
    from turnout.matrices import pca_lowrank as pca_lowrank
    from turnout.matrices import svd_lowrank as svd_lowrank
    from turnout.matrices import tensordot as tensordot
    from turnout.modes import DispatchMode as DispatchMode
    from turnout.modes import as_subclass as as_subclass
    from turnout.python_dispatcher import PythonDispatcher as PythonDispatcher
    from turnout.random import Generator as Generator
    from turnout.random import manual_seed as manual_seed
    from turnout.serialization import load as load
    from turnout.serialization import save as save
    from turnout.shapes.promotion import result_type as result_type
    from turnout.signal import stft as stft
    from turnout.tracing import trace_dispatch as trace_dispatch
    from turnout.variadics import atleast_1d as atleast_1d
    from turnout.variadics import atleast_2d as atleast_2d
    from turnout.variadics import atleast_3d as atleast_3d
    from turnout.variadics import block_diag as block_diag
    from turnout.variadics import broadcast_shapes as broadcast_shapes
    from turnout.variadics import broadcast_tensors as broadcast_tensors
    from turnout.variadics import cartesian_prod as cartesian_prod
    from turnout.variadics import meshgrid as meshgrid
    from turnout.variadics import unravel_index as unravel_index

dtype = DType
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
channels_last = "channels_last"
channels_last_3d = "channels_last_3d"
strided = "strided"
__version__ = "0.1.0"

standard.install()

# Names that are loaded when they are first used: "module" or "module:attribute".
_LAZY = {
    "DispatchMode": "turnout.modes:DispatchMode",
    "Generator": "turnout.random:Generator",
    "PythonDispatcher": "turnout.python_dispatcher:PythonDispatcher",
    "amp": "turnout.amp",
    "array_api": "turnout.array_api",
    "as_subclass": "turnout.modes:as_subclass",
    "as_tensor": "turnout.factories:as_tensor",
    "atleast_1d": "turnout.variadics:atleast_1d",
    "atleast_2d": "turnout.variadics:atleast_2d",
    "atleast_3d": "turnout.variadics:atleast_3d",
    "autocast": "turnout.amp:autocast",
    "block_diag": "turnout.variadics:block_diag",
    "broadcast_shapes": "turnout.variadics:broadcast_shapes",
    "broadcast_tensors": "turnout.variadics:broadcast_tensors",
    "cartesian_prod": "turnout.variadics:cartesian_prod",
    "chain_matmul": "turnout.matrices:chain_matmul",
    "einsum": "turnout.matrices:einsum",
    "explain": "turnout.explanation:explain",
    "fft": "turnout.fft",
    "finfo": "turnout.limits:finfo",
    "from_dlpack": "turnout.interop:from_dlpack",
    "from_numpy": "turnout.interop:from_numpy",
    "func": "turnout.func",
    "graphs": "turnout.graphs",
    "iinfo": "turnout.limits:iinfo",
    "library": "turnout.library",
    "linalg": "turnout.linalg",
    "load": "turnout.serialization:load",
    "lu": "turnout.matrices:lu",
    "masked": "turnout.masked",
    "manual_seed": "turnout.random:manual_seed",
    "meshgrid": "turnout.variadics:meshgrid",
    "nn": "turnout.nn",
    "pca_lowrank": "turnout.matrices:pca_lowrank",
    "result_type": "turnout.shapes.promotion:result_type",
    "return_types": "turnout.return_types",
    "save": "turnout.serialization:save",
    "schema": "turnout.schema",
    "signal": "turnout.signal",
    "special": "turnout.special",
    "stft": "turnout.signal:stft",
    "svd_lowrank": "turnout.matrices:svd_lowrank",
    "tensor": "turnout.factories:tensor",
    "tensordot": "turnout.matrices:tensordot",
    "trace": "turnout.graphs:trace",
    "trace_dispatch": "turnout.tracing:trace_dispatch",
    "trees": "turnout.trees",
    "unravel_index": "turnout.variadics:unravel_index",
    "vmap": "turnout.func:vmap",
}


def __getattr__(name: str) -> object:
    """What is loaded when it is first used: the names above, and the public functions of operators."""
    if name == "__all__":
        return [each for each in __dir__() if not each.startswith("_")]
    path = _LAZY.get(name)
    if path is not None:
        from importlib import import_module

        module, _, attribute = path.partition(":")
        found = import_module(module)
        value = getattr(found, attribute) if attribute else found
    else:
        value = None if name.startswith("_") else parts.function("turnout", name)
        if value is None:
            raise AttributeError(f"module 'turnout' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *parts.names("turnout")})
