"""The Python types of schema types, as type stubs write them: `_float`, because an operator is called `float`."""

from __future__ import annotations

import re

from turnout.schema.model import FunctionSchema
from turnout.schema.types import BaseType, ListType, OptionalType, Type

_BASES = {
    "Tensor": "Tensor", "bool": "_bool", "int": "_int", "SymInt": "_int", "DeviceIndex": "_int", "float": "_float",
    "SymFloat": "_float", "complex": "_complex", "Scalar": "_complex", "SymBool": "_bool", "str": "_str",
    "ScalarType": "DType", "Device": "Device", "Layout": "_str", "MemoryFormat": "_str", "QScheme": "_str",
    "Generator": "Generator",
}  # fmt: skip
TUPLE = "tuple[Tensor, ...]"  # what public functions make of a list of tensors
_ACCEPTED = {"ScalarType": "DType | type", "Device": "Device | _str", "Scalar": "_Number | Tensor"}


def accepted_text(type: Type) -> str:
    """The Python type that an argument of a schema type accepts."""
    if isinstance(type, OptionalType):
        return f"{accepted_text(type.elem)} | None"
    if isinstance(type, ListType):
        elem = type_text(type.elem)
        bare = f"{elem} | " if type.size is not None and elem != "Tensor" else ""
        return f"{bare}Sequence[{elem}]"
    return _ACCEPTED.get(type.canonical, type_text(type))


def type_text(type: Type) -> str:
    """The Python type of a value of a schema type."""
    if isinstance(type, OptionalType):
        return f"{type_text(type.elem)} | None"
    if isinstance(type, ListType):
        return f"Sequence[{type_text(type.elem)}]"
    if isinstance(type, BaseType):
        return _BASES.get(type.canonical, "Any")
    return "Any"


def returns_text(schema: FunctionSchema) -> str:
    """The Python type of an operator's result."""
    types = [type_text(r.type) for r in schema.returns]
    if not types:
        return "None"
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"


def plain(text: str) -> str:
    """Such a type as it is written outside of stubs, for `inspect.signature`."""
    return re.sub(r"\b_(?=[a-zN])", "", text)
