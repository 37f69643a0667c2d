"""From a backend's table of rows to the kernels of operators. Start with `rows`, then `tables` (note 0034).

| modules | hold |
|---|---|
| `rows`, `tables`, `overriding`, `contract` | a row, registration, rows over those of another package, what a row must do |
| `structured`, `unstructured`, `functional`, `inplace`, `outputs`, `custom` | wrappers of the variants of an operator |
| `cases`, `rules`, `writes` | which function of a row serves a call, what holds for all kernels, writes into a given tensor |
| `plans`, `planning`, `stepping`, `fast_paths` | answers of shape functions that are kept, and the paths that they serve |
| `described`, `facts`, `standing`, `paths` | what wrappers and composites say of themselves, and which path serves a call |
| `factories` | factories and fills as kernels that call the backend |
"""
