"""Tensors and the standard operators, a plugin of Turnout like any other.

| room | holds |
|---|---|
| `tensor` | `Tensor`: storage, versions, gradient mode, indexing, printing, interop, saving, random numbers |
| `backend` | `TensorBackend`, what a backend of tensors implements; the host fallback |
| `declarations` | `native_functions.yaml`, its reader, and what it defines; the same for third parties' yaml |
| `generation` | from declarations to tables and type stubs, at the build; the text of public functions and methods |
| `operators` | the call stubs of operators, as composites and rules call them |
| `shapes` | one shape function per structured operator, a family a file |
| `composites` | kernels written in operators, a family a file |
| `kernels` | tables of array kernels, and how they are wrapped |
| `views` | view operators as geometry, and the record of views and writes |
| `functions` | public functions: those written by hand, and how the others are made at their first use |
| `nn`, `array_api`, `linalg`, `fft`, `special`, `signal`, `masked` | public modules |

Start with `declarations/native_functions.yaml` and `tensor/tensor.py`.
"""
