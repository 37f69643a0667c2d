"""Programs that `torch.export` saved, as graphs of the tracer. `translation` is the heart: a program in, the data of a graph out.

| module | holds |
|---|---|
| `plugin` | activation |
| `errors` | the error class, and the texts |
| `archive` | a .pt2 file: its JSON, its tensors |
| `expressions` | sizes and guards that are written as text |
| `nesting` | how arguments and results are nested |
| `arguments` | one argument of a call |
| `sizes` | what a program says and computes of sizes |
| `translation` | a whole program |
| `export` | `turnout.export`: `load` and `from_torch` |
"""
