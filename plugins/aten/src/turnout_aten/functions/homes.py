"""Where public functions are: the module in which users find those of each python_module."""

from __future__ import annotations

# python_module -> the public module.
HOMES = {
    "": "turnout", "nn": "turnout_aten.generated.nn_functional", "linalg": "turnout.linalg", "fft": "turnout.fft",
    "special": "turnout.special",
}  # fmt: skip
