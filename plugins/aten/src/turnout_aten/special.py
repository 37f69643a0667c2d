"""`turnout.special`: special functions.

The operators of python_module special, without the prefix `special_`. A function defined here replaces the operator of that name.
"""

from turnout_aten.functions.lookup import functions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.generated.special import *  # noqa: F403 - the types of the functions that `functions_of` finds

__getattr__, __dir__ = functions_of(globals(), "turnout.special")
