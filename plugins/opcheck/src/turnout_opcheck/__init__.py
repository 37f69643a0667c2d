"""`turnout.library.opcheck`: whether an operator does what its schema, its rules and its kernels say.

| module | holds |
|---|---|
| `checking` | `opcheck`, and the table of checks |
| `subject` | `Subject`: an operator, the arguments of a call, and the calls derived from it |
| `derived` | copies of arguments in other layouts, sizes, dtypes and with other values |
| `observing` | what a call did: its results, the bytes and facts of its arguments before and after |
| `comparing` | whether two results agree |
| `shrinking` | the smallest arguments at which a check still fails |
| `report` | `Problem`, `Report`, the error |
| `checks/` | one module for each concern |
| `calls` | the calls that a block makes of some operators, noted and then checked |
| `pytest_plugin` | `@pytest.mark.opcheck` and `--opcheck` |

Start with `checking`.
"""
