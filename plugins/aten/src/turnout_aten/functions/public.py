"""The public functions of operators, `turnout.add`, made from the declarations."""

from turnout_aten.generated.functions import __dir__ as __dir__
from turnout_aten.generated.functions import __getattr__ as __getattr__
