"""The OpenCL backend. Start at `backend` (memory) and `table` (which operators it has).

`arrays`    what a tensor holds: a buffer with shape, strides and offset
`devices`   contexts, queues, compiled programs, and how a kernel is started
`queues`, `streams`, `profiles`  where work is queued, in which order, and how long it took
`programs`  the source of a program: a template of `templates/` for one element type
`grids`     shapes and strides of a call's operands, as the templates get them
`pointwise`, `reductions`, `matrix_products`, `indexing`, `scattering` and others  the kernels, by family
"""
