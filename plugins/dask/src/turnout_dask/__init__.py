"""The device `dask`: tensors are arrays of dask.array, in chunks, and are computed when a program needs their numbers.

| module | holds |
|---|---|
| `plugin` | activation |
| `backend` | what a tensor's values are, and operations on them |
| `blocks` | rows of the kernel library, run chunk by chunk |
| `reductions`, `matrix_products`, `losses` | operators whose chunks are combined |
| `kernels` | the table: which of these ways each operator goes |
| `scheduling` | where values are computed, and what is said when that fails |
| `steps` | what a turn of a loop has made or written |
| `whole` | operators that need their arrays in one chunk, counted and limited |
| `dask` | `turnout.dask` |
| `errors` | texts |
"""
