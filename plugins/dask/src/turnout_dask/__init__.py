"""The device `dask`: tensors are arrays of dask.array, in chunks, and are computed when a program needs their numbers.

| module | holds |
|---|---|
| `plugin` | activation |
| `backend` | what a tensor's values are, and operations on them |
| `blocks` | rows of the kernel library, run chunk by chunk |
| `reductions`, `products`, `losses` | operators whose chunks are combined |
| `kernels` | the table: which of these ways each operator goes |
| `whole` | operators that need their arrays in one chunk, counted and limited |
| `dask` | `turnout.dask` |
| `errors` | texts |
"""
