"""What dispatch takes for a tensor: any value with an int attribute `keys`.

A class may name the schema type of its instances, as in `schema_type = "Generator"`. Without it they are tensors.
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


def is_symbol(value: object) -> bool:
    """Whether a value is a size that is not known, which may stand where a schema says SymInt."""
    return getattr(value, "schema_type", "") == "SymInt"


def tensors_in(args: Iterable[Any]) -> Iterator[Any]:
    """The tensors and generators among arguments, those in lists included, in order."""
    for arg in args:
        for value in arg if isinstance(arg, (list, tuple)) else (arg,):
            if has_keys(value):
                yield value


def keys_of(args: Iterable[Any]) -> int:
    """The keys that arguments bring, as one key set: the very object that they share, if they do, which caches find sooner."""
    ks = 0
    for tensor in tensors_in(args):
        if tensor.keys is not ks:
            ks = ks | tensor.keys if ks else tensor.keys
    return ks


def named_tensors(op: Operator, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """The tensors of a call with the names of their arguments. List elements are numbered."""
    found: list[tuple[str, Any]] = []
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if isinstance(value, (list, tuple)):
            found += [(f"{argument.name}[{i}]", v) for i, v in enumerate(value) if has_keys(v)]
        elif has_keys(value) and hasattr(value, "shape"):
            found.append((argument.name, value))
    return found


def flat(value: Any) -> list[Any]:
    """The leaves of nested lists and tuples."""
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]
