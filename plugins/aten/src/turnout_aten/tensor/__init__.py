"""`Tensor` and what it can do. Start with `tensor`.

| modules | hold |
|---|---|
| `tensor`, `storage`, `size`, `facts` | the handle, the memory that tensors share, the shape, what an array says of itself |
| `devices`, `pinning` | devices as this package sees them, page-locked memory |
| `conversions`, `late_methods`, `type_names` | methods, and those that other modules define |
| `reads`, `host_bytes`, `printing`, `checks` | values as Python numbers, as bytes, as text; checks that need them |
| `indexing` | `x[index]` and writes to it |
| `creation`, `random`, `interop`, `saving`, `copying` | tensors from data, random numbers, other libraries, files, copies |
| `grad_mode`, `inference`, `gradients`, `levels` | modes, inference tensors, `.grad` and hooks, the levels of a thread |
| `data_attribute`, `taking_over` | `x.data`, memory that a tensor takes from another |
| `subclasses`, `wrappers`, `roles`, `backend_keys` | tensors of other classes, roles in a program, keys for each backend |
"""
