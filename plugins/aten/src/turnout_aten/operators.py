"""The call stubs of the standard operators by name: `add__Tensor` is the stub of aten::add.Tensor.

Code that is written in operators calls them: `aten.add__Tensor(x, y)`. The first look-up compiles a stub; after that it is an
ordinary name in this module.
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
