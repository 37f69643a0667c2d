"""The command turnout.

`main` holds the group and what every command shares: short errors, `--json`, `--traceback`. One module per kind of question:
`environment` (plugins, doctor, config), `operators` (table, explain, coverage), `slots` (lock, diff), `demo`. What they have in
common beside that: `activation` (have all usable plugins registered their kernels?), `arguments` (reads `float32[2,3]:grad`),
`output`.
"""
