"""Why a call runs what it runs.

| module | holds |
|---|---|
| `explanation` | `explain`: the keys of a call, every step from them to a kernel, and where the kernel comes from |
| `tracing` | `trace_dispatch`: the calls that really ran, nested, with times |
| `html` | how notebooks show them |
| `user_frames` | `user_frame`: the line of the program that a call comes from |
"""

from turnout.explanation.explanation import Explanation, explain

__all__ = ["Explanation", "explain"]
__dir__ = __all__.copy
