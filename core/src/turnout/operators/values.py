"""What dispatch takes for a tensor: any value with an int attribute `keys`.

A class may say which schema type its instances stand for, `schema_type = "Generator"`; without it they are tensors.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from turnout.operators.operator import Operator


def has_keys(value: object) -> bool:
    """Whether a value brings keys to a call."""
    return type(getattr(value, "keys", None)) is int


def is_tensor(value: object) -> bool:
    """Whether a value may stand where a schema says Tensor."""
    return has_keys(value) and getattr(value, "schema_type", "Tensor") == "Tensor"


def is_generator(value: object) -> bool:
    """Whether a value may stand where a schema says Generator."""
    return has_keys(value) and getattr(value, "schema_type", "Tensor") == "Generator"


def tensors_in(args: Iterable[Any]) -> Iterator[Any]:
    """The values with keys among arguments in schema order, those in lists included: tensors and generators."""
    for arg in args:
        if isinstance(arg, (list, tuple)):
            for element in arg:
                if has_keys(element):
                    yield element
        elif has_keys(arg):
            yield arg


def named_tensors(op: Operator, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """The tensors of a call with their argument names, list elements numbered."""
    found: list[tuple[str, Any]] = []
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if isinstance(value, (list, tuple)):
            found += [(f"{argument.name}[{i}]", v) for i, v in enumerate(value) if has_keys(v)]
        elif has_keys(value) and hasattr(value, "shape"):
            found.append((argument.name, value))
    return found
