"""The backend of device `cpu`: NumPy arrays, bfloat16 from ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from turnout_arrays import ArrayBackend


class CPUBackend(ArrayBackend):
    """Host memory. One device, so no index, no guard, nothing to wait for."""

    name = "CPU"
    device_type = "cpu"
    scalars_mix = True

    def __init__(self) -> None:
        super().__init__(np, ml_dtypes.bfloat16)

    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        made = np.empty(shape, array.dtype)
        made[...] = array
        return made
