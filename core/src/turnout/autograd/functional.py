"""`turnout.autograd.functional`: what the plugin that provides Autograd offers under this name, activated on first use."""

from turnout.autograd import offered

__getattr__, __dir__ = offered("functional")
