"""`turnout.linalg`: linear algebra.

The operators of python_module linalg, without the prefix `linalg_`. A function defined here replaces the operator of that name.
"""

from turnout.errors import LinAlgError as LinAlgError
from turnout_aten.functions.lookup import functions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.generated.linalg import *  # noqa: F403 - the types of the functions that `functions_of` finds

__getattr__, __dir__ = functions_of(globals(), "turnout.linalg")
