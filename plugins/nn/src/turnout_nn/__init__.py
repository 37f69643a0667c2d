"""`turnout.nn`, `turnout.optim` and `turnout.utils.data`: modules, optimisers and data loaders, written in operators alone.

| module | holds |
|---|---|
| `module` | `Module`: members, states, hooks; `members`, `hooks`, `states` have the parts |
| `parameters` | `Parameter` and `Buffer`: plain tensors with a role |
| `modules/` | the modules of `turnout.nn`, each family in a file |
| `errors` | the texts of all errors |

Start with `module`.
"""
