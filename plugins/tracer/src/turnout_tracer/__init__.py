"""Records operators into a graph. `recording` is the one boxed fallback that sees every call; `graph` is what comes out.

| module | holds |
|---|---|
| `plugin` | activation |
| `recording` | the fallback, and `trace` |
| `nodes` | what a graph consists of |
| `replay` | a graph prepared for its calls: one compiled function |
| `graph` | `Graph`: what a replay takes and gives, text, files |
| `structures` | nested lists, tuples and dicts of tensors, taken apart and put together |
| `source` | a graph as Python text |
| `data`, `reading` | a graph as an archive, written and read |
| `service` | what `turnout.graphs` offers |
"""
