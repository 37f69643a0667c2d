"""Records operators into a graph. `recording` is the one boxed fallback that sees every call; `graph` is what comes out.

| module | holds |
|---|---|
| `plugin` | activation |
| `recording` | the fallback, and `trace` |
| `nodes` | what a graph consists of |
| `replay` | a graph prepared for its calls: one compiled function |
| `graph` | `Graph`: what a replay takes and gives, text, files |
| `sizes` | sizes that a graph computes anew in each replay |
| `structures` | nested lists, tuples and dicts of tensors, taken apart and put together |
| `source` | a graph as Python text |
| `data`, `reading` | a graph as an archive, written and read |
| `graphs`, `service` | `turnout.graphs`, and what it offers while the plugin is active |
| `compiling`, `compiler` | `turnout.compile`, and `turnout.compiler` |
"""
