"""Compiled kernels for device `cpu`: `plugin` (activation), `table` (all rows), `native` (how they call the C code in `native/`).

Each row serves contiguous floats, mostly, and leaves every other call to the kernel below it, that of turnout-cpu. Start with
`pointwise` and `native/pointwise.h`.
"""
