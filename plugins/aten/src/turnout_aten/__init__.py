"""Tensors and the standard operators, a plugin of Turnout like any other.

| room | holds |
|---|---|
| `tensor` | `Tensor`: storage, versions, gradient mode, indexing, printing, interop, saving, random numbers |
| `backend` | `TensorBackend`, the interface of a backend; `FunctionalBackend`, for arrays that are values; the host fallback |
| `declarations` | `native_functions.yaml`, its reader and its operators; the same for the yaml of third parties |
| `generation` | tables and type stubs from the declarations, made by the build; the text of public functions and methods |
| `operators` | the call stubs of operators, for composites and rules |
| `shapes` | one shape function per structured operator, one file per family |
| `composites` | kernels written in operators, one file per family |
| `kernels` | tables of array kernels, and their wrappers |
| `files`, `archives`, `plain_data` | files that are replaced whole; zip archives; plain values as JSON |
| `views` | view operators as geometry, and the record of views and writes |
| `functions` | public functions: some written by hand, the others made at their first use |
| `nn`, `linalg`, `fft`, `special`, `cuda`, `random`, `testing`, `trees` | public modules |
| `dtypes`, `constants`, `tags`, `counts` | which dtypes go together; PyTorch's constants; tags of operators; checks of counts |
| `python_dispatcher` | the table of an imaginary operator |
| `triton` | operators whose kernels are written in Triton |
| `plugin_api` | the names that packages from outside build on |

Start with `declarations/native_functions.yaml` and `tensor/tensor.py`.
"""
