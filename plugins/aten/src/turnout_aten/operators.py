"""The call stubs of the standard operators by name: `add__Tensor` is that of aten::add.Tensor.

What is written in operators calls them here: `aten.add__Tensor(x, y)`. A stub is compiled when it is first asked for; then it
is a name in this module like any other.
"""

from __future__ import annotations

from turnout_aten.declarations import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    overload = None if name.startswith("__") and name.endswith("__") else tables.standard().find(name)
    if overload is None:
        raise AttributeError(f"no operator has the stub {name!r}")
    return globals().setdefault(name, overload.stub)
