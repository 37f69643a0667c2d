"""Reverse and forward mode for every operator that has a formula. A room imports only rooms above it.

| room | holds |
|---|---|
| `errors` | the error classes, and every error text, a module per room that raises them |
| `declarations` | a yaml file of gradients per family of operators, and their reader |
| `generation` | from declarations to `generated`, the kernels and nodes of the standard operators; the build runs it |
| `duals` | the tangents that tensors carry in forward mode, and the levels that they belong to |
| `formulas` | functions that the yaml files call, a family a file |
| `tangents` | the rules of forward mode by operator, and functions that the yaml files call for them, a family a file |
| `engine` | nodes, what they save, the sweep, the end at a leaf, `detect_anomaly` |
| `recording` | what stands at Autograd for each operator; in-place operators and views |
| `transforms` | functional gradient levels, runs in forward mode, `turnout.func`, gradients of elements inside vmap |
| `forward` | what stands at Forward for each operator; writes and views of tensors with tangents |
| `hooks` | hooks on tensors, on several tensors, on what is saved |
| `function` | `autograd.Function`; gradient rules of custom operators |
| `passes` | `backward` and `grad` |
| `functional` | `turnout.autograd.functional` |
| `checkpointing` | `turnout.utils.checkpoint` |
| `modules` | objects that hold tensors: their state, and calls with other tensors |
| `checking` | `gradcheck` |
| `drawing` | the graph as a drawing |
| `public` | `turnout.autograd`, `turnout.func` and `turnout.utils`: names from the rooms above |

`service.py` is what other plugins ask for, `plugin.py` the activation. The gradient of `mm` is in
`declarations/matrix_products.yaml` and `formulas/matrix_products.py`; its node is in `generated/matrix_products.py`.
"""
