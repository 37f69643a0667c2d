"""What packages with kernels for `opencl` build on: the array of a tensor, its device, new arrays and copies.

`docs/plugin-api.md` lists these names. Nothing inside imports this module.
"""

from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import copy
from turnout_opencl.devices import ClDevice

__all__ = ["ClArray", "ClDevice", "copy", "new_array"]
__dir__ = __all__.copy
