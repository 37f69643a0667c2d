"""Composite kernels of the standard operators: written in operators, so that one serves every backend.

`native_functions.yaml` names them: `composites.linalg.matmul`. CompositeImplicitAutograd ones are differentiated through what
they call; CompositeExplicitAutograd ones have a derivative of their own. New tensors take device and dtype from the arguments.
Only `copies` and `factories.empty` call a backend's own methods: they are what everything else stands on.
"""
