"""From declarations to Python: tables and type stubs at the build, the text of public functions and methods at their first use.

| module | when | makes |
|---|---|---|
| `packets`, `source` | both | what texts depend on: the overloads of one name, a stub's text with changes |
| `annotations`, `parameters`, `docstrings` | both | what type stubs, `inspect.signature` and `help` show of functions |
| `functions`, `methods` | first use | the text of one public function or method |
| `catalogue` | build | which operators of a yaml are public |
| `tables`, `typestubs`, `operatorstubs`, `files` | build | `turnout_aten/generated` |
| `thirdparty` | build of others | one file for a third party's yaml |

`python -m turnout_aten.generation` is the command; nothing here needs PyYAML but reading a yaml.
"""
