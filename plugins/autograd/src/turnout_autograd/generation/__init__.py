"""From `declarations` to `generated`: `kernel_source` writes one operator, `files` a module for each family of operators.

`python -m turnout_autograd.generation` is the command; the build of the package runs it too. Nothing of this is needed to run
a program, and it needs nothing that is generated.
"""
