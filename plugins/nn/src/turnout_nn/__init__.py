"""`turnout.nn`, `turnout.optim` and `turnout.utils.data`: modules, optimisers and data loaders, written in operators alone.

| module | holds |
|---|---|
| `module` | `Module`: members, states, hooks; `members`, `hooks`, `states` have the parts |
| `parameters` | `Parameter` and `Buffer`: plain tensors with a role |
| `modules/` | the modules of `turnout.nn`, each family in a file |
| `layers` | what families of modules share: classes that are made from their fields |
| `errors` | the texts of all errors |

Start with `module`.
"""
