"""`turnout.nn`, `turnout.optim` and `turnout.utils.data`: modules, optimisers and data loaders, written in operators alone.

| module | holds |
|---|---|
| `module` | `Module`: `members`, `hooks`, `states` and `descriptions` (what it prints) have the parts |
| `parameters` | `Parameter` and `Buffer`: plain tensors with a role |
| `modules/` | the modules of `turnout.nn`, each family in a file |
| `layers` | what families of modules share: classes that are made from their fields |
| `init`, `utils` | `turnout.nn.init` and `turnout.nn.utils` |
| `optim` | `turnout.optim`: optimisers, learning rates over time, averages of weights |
| `data` | `turnout.utils.data`: data sets, and loaders that make batches of them |
| `weights` | weights in files of safetensors |
| `errors` | the texts of all errors |

Start with `module`.
"""
