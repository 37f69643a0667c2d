"""The kit's tests of a backend, on the devices of this repository that have memory of their own.

What cpu gives is compared with NumPy in `test_forward`. A device that is not there is skipped with the reason, and a failure
where `--require-backend` names it.
"""

from turnout_conformance.test_backend_device import *  # noqa: F403 - its tests
from turnout_conformance.test_backend_operators import *  # noqa: F403 - its tests
from turnout_conformance.test_backend_plugin import *  # noqa: F403 - its tests

TURNOUT_BACKENDS = ("opencl", "cuda")
