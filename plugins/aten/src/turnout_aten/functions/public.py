"""The public functions of the operators, such as `turnout.add`, made from the declarations."""

from __future__ import annotations

from turnout_aten.functions.lookup import functions_of

__getattr__, __dir__ = functions_of(globals(), "turnout")
