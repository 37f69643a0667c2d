"""The public functions of the operators, such as `turnout.add`, made from the declarations."""

from turnout_aten.functions.lookup import functions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.generated.functions import *  # noqa: F403 - what `functions_of` finds, with its types

__getattr__, __dir__ = functions_of(globals(), "turnout")
