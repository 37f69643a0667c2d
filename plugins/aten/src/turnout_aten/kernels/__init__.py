"""From a backend's table of rows to the kernels of operators. Start with `rows`, then `tables` (notes 0001 and 0034).

| modules | hold |
|---|---|
| `rows`, `tables`, `binding`, `contract` | a row, registration, from a row to a wrapper, what a row must do |
| `specs`, `rules` | what wrappers are written from and say of themselves, what holds for all kernels |
| `structured`, `functional`, `inplace`, `outputs`, `writes` | wrappers of the variants of an operator with a shape function |
| `unstructured`, `custom` | wrappers of other kernels, and of kernels of the user |
| `plans`, `planning`, `stepping` | answers of shape functions that are kept, and the paths that they serve |
| `facts`, `standing`, `paths` | what composites say of themselves, and which path serves a call |
| `factories` | factories and fills as kernels that call the backend |
"""
