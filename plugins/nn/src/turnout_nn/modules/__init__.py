"""The modules of `turnout.nn`, each family in a file. A family of similar modules is a table with one row for each.

`turnout.nn.modules.module` has what holds for all modules.
"""

from turnout_nn.modules import module

__all__ = ["module"]
__dir__ = __all__.copy
