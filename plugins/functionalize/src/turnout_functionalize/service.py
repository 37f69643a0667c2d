"""What other plugins ask for while this one is active: `turnout.func` the function, the check of operators all its ways."""

from turnout_functionalize.transform import REMOVE, functionalize

__all__ = ["REMOVE", "functionalize"]
