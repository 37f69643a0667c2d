from typing import Any

def configure(tensor: type, stub_builtins: dict[str, Any], dispatch: Any, restore: Any) -> None: ...
def pushed() -> int: ...
def rule_kernel(
    function: Any, rule: Any, arguments: int, tensors: Any, names: dict[str, Any], /, *, kind: int, call: Any, switches: int
) -> Any: ...
def taken() -> int: ...
def tangent_kernel(
    function: Any,
    rule: Any,
    arguments: int,
    tensors: Any,
    names: dict[str, Any],
    /,
    *,
    cache: Any,
    resolve: Any,
    through: bool = ...,
) -> Any: ...
