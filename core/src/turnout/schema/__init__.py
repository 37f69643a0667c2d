"""The schema language: what an operator takes, returns, writes and shares, as text and as values.

Start with `FunctionSchema.parse`. The modules, each importing only those before it:

| module | holds |
|---|---|
| `types` | `BaseType`, `OptionalType`, `ListType`, `TupleType` |
| `tokens`, `defaults` | tokens with columns; what a default's text means |
| `parts` | names, arguments, returns and their alias annotations |
| `parse` | the grammar |
| `model` | `FunctionSchema`: kind, signature, aliases |
| `overloads` | which overload takes a call; ties |
| `infer` | `infer_schema`: a schema from type annotations |
| `kernels` | whether a Python function fits a schema |

An invalid text raises `SchemaSyntaxError` (a `SchemaError`) with `.column` and `.expected`.
"""

from turnout.errors.schemas import SchemaSyntaxError
from turnout.schema.kernels import check_kernel_signature
from turnout.schema.model import Annotation, Argument, FunctionSchema, Kind, OperatorName, Return
from turnout.schema.overloads import check_no_tie, choose, decided_by_types
from turnout.schema.types import BaseType, ListType, OptionalType, TupleType, Type

__all__ = ["FunctionSchema", "OperatorName", "Argument", "Return", "Annotation", "Kind", "Type", "BaseType", "OptionalType",
    "ListType", "TupleType", "SchemaSyntaxError", "check_no_tie", "choose", "decided_by_types",
    "check_kernel_signature"]  # fmt: skip
__dir__ = __all__.copy
