"""The command turnout.

`main` holds the group and what every command shares: short errors, `--json`, `--traceback`. One module per kind of
question: `environment` (plugins, doctor, config), `operators` (table, explain), `coverage`, `graph`, `slots` (lock, diff),
`demo` with `digits` (the models) and `plot`, `new_plugin` with `templates`, `completion`. Beside these: `activation` (every
usable plugin registers its kernels), `arguments` (reads `float32[2,3]:grad`), `names` (what completion offers), `output` (what
fits a terminal).
"""
