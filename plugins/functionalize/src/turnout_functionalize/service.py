"""What `turnout.func` offers while this plugin is active."""

from turnout_functionalize.transform import functionalize

__all__ = ["functionalize"]
