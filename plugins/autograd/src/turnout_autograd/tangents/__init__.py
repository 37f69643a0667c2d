"""Tangent rules: what forward mode computes for each standard operator. Start at `rule`.

| module | holds |
|---|---|
| `rules` | `rule(op)`, the rule of an operator: made by the build from the `result:` lines of `declarations` |
| `fitting` | what every rule ends with: the tangent as the result is |
| the others | functions that those lines call, a family a file, all written with operators |

So a tangent can be differentiated again, batched and traced, as a gradient can.
"""

from turnout_autograd.tangents.rules import Rule as Rule
from turnout_autograd.tangents.rules import missing as missing
from turnout_autograd.tangents.rules import rule as rule
