"""functionalize: a function that writes and makes views runs as operators without side effects.

| module | holds |
|---|---|
| `plugin` | activation |
| `regions` | where a function runs functionalised: the state of dispatch there, and calls below it |
| `inverses` | for each view operator, the base with other values where the view is |
| `memories` | one memory as a series of values, and the views of it |
| `values` | the tensors that the function sees |
| `adoption` | tensors from outside that the function writes or views |
| `geometry` | calls on meta tensors, which say shapes, strides and errors |
| `kernels` | the fallback: what runs in place of each operator |
| `transform` | `functionalize` |
| `errors` | error classes and texts |
| `service` | what `turnout.func` takes from here |
"""
