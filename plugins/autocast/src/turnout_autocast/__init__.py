"""Mixed precision. `rules` is the table: which operator runs in which dtype, per device.

| module | holds |
|---|---|
| `plugin` | activation |
| `rules` | operator -> policy, for each device type |
| `kernels` | from a policy to the kernel of one operator |
| `casts` | which tensors are cast, and the cache of casts |
| `contexts` | the state of this context: dtypes, the cache |
| `scaling` | `GradScaler` |
| `functions` | `custom_fwd`, `custom_bwd` |
| `mode` | the context `autocast` |
| `service` | what other packages ask of Autocast |
| `amp` | `turnout.amp` |
"""
