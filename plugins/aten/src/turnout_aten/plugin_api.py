"""What packages from outside build on: the interface of a backend, tables of kernels, keys of tensors, strides.

`docs/plugin-api.md` lists these names, which stay where they are when modules of this distribution move. Nothing inside imports
this module.
"""

from turnout_aten.backend.functional_arrays import Memory
from turnout_aten.backend.functional_backend import FunctionalBackend
from turnout_aten.backend.functional_rows import register_functional_kernels
from turnout_aten.backend.host_fallback import host
from turnout_aten.backend.overlap import Extent, partly_overlap
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.counts import check_count
from turnout_aten.files import replacing
from turnout_aten.functions.docstrings import describe
from turnout_aten.kernels.rows import Accepts, Row, Sizes
from turnout_aten.kernels.tables import register_kernels, register_over, structured_operators
from turnout_aten.shapes.extents import contiguous_strides, iterated_strides
from turnout_aten.tensor.backend_keys import with_key, without_key
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.roles import role_of, set_role
from turnout_aten.tensor.subclasses import as_subclass
from turnout_aten.tensor.tensor import Tensor

__all__ = [
    "Accepts", "Extent", "FunctionalBackend", "Memory", "Row", "Sizes", "Tensor", "TensorBackend", "as_subclass",
    "check_count", "contiguous_strides", "describe", "device", "host", "iterated_strides", "partly_overlap",
    "register_functional_kernels", "register_kernels", "register_over", "replacing", "role_of", "set_role",
    "structured_operators", "with_key", "without_key",
]  # fmt: skip
__dir__ = __all__.copy
