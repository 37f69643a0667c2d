"""The conventions of declared operators: rules of the seeds that valid text can still break.

- In-place: the name ends in `_` (or is `__iadd__` and the like) exactly when self is written and returned; a list is
  written and not returned.
- Out: the written keyword-only arguments are last, named `out`, or `out0`, `out1`, ...; tensors are returned in
  order, lists are not returned.
- View: `(a)` stands on both sides.

`historic=True` allows what PyTorch's own native_functions.yaml has beside that: out arguments of other names (`values`,
`grad_input`), and `_scratch_...` ones, which are not returned.
"""

from __future__ import annotations

from turnout.errors import SchemaError
from turnout.schema.model import Argument, FunctionSchema
from turnout.schema.types import ListType
from turnout_aten.errors.declarations import convention

SCRATCH_PREFIX = "_scratch_"


def check_conventions(schema: FunctionSchema, *, historic: bool = False) -> None:
    """Raise SchemaError for the first convention that `schema` breaks; return None when it keeps them all."""
    problem = _check_inplace(schema) or _check_out(schema, historic) or _check_view(schema)
    if problem is not None:
        raise problem


def _check_inplace(schema: FunctionSchema) -> SchemaError | None:
    written = schema.self_argument
    rule = "the name of an in-place operator ends in '_', and it writes and returns self"
    if not schema.name.is_inplace:
        if written is not None and written.is_write and _returned_by(schema, written):
            return convention(schema, rule, f"{written} is written and returned", f"name it {schema.name.name}_")
        return None
    if written is None:
        # A custom operator may call it x.
        written = next(iter(schema.positional), None)
    if written is None or not written.type.is_tensor_like:
        return convention(schema, rule, "no tensor to write", "make the first argument 'Tensor(a!) self'")
    if not written.is_write:
        return convention(schema, rule, f"{written} is only read", f"write '{written.type}' with (a!)")
    if isinstance(written.type, ListType):
        if schema.returns:
            return convention(schema, rule, "a list is written, and something returned", "return ()")
    elif len(schema.returns) != 1 or not _returned_by(schema, written):
        return convention(schema, rule, f"{written} is not what it returns", f"return {_return_of(written)}")
    if schema.out_arguments:
        names = ", ".join(a.name for a in schema.out_arguments)
        return convention(schema, rule, f"{names} written too", "declare the out variant as an operator of its own")
    return None


def _check_out(schema: FunctionSchema, historic: bool) -> SchemaError | None:
    rule = "out arguments are keyword-only, named out or out0, out1, ..., written, and returned in order"
    if not historic:
        for argument in schema.arguments:
            if _is_out_name(argument.name) and argument.type.is_tensor_like and not argument.is_out:
                fact = f"{argument} is only read" if argument.kwarg_only else f"{argument} is positional"
                return convention(schema, rule, fact, "put it behind '*' and write it with (a!)")
    outs = schema.out_arguments
    if not outs:
        return None
    if schema.arguments[-len(outs) :] != outs:
        return convention(schema, rule, "an argument that is only read behind one that is written", "put out arguments last")
    if not historic:
        names = [a.name for a in outs]
        right = ["out"] if len(outs) == 1 else [f"out{i}" for i in range(len(outs))]
        if names != right:
            return convention(schema, rule, f"{', '.join(names)}", f"name them {', '.join(right)}")
    if historic:
        outs = tuple(a for a in outs if not a.name.startswith(SCRATCH_PREFIX))
    if any(isinstance(a.type, ListType) for a in outs):
        if schema.returns:
            return convention(schema, rule, "a list is written, and something returned", "return ()")
        return None
    if [r.annotation for r in schema.returns] != [a.annotation for a in outs]:
        right_returns = ", ".join(map(_return_of, outs))
        if len(outs) > 1:
            right_returns = f"({right_returns})"
        returned = ", ".join(map(str, schema.returns)) or "nothing"
        return convention(schema, rule, f"{returned} returned", f"return {right_returns}")
    return None


def _check_view(schema: FunctionSchema) -> SchemaError | None:
    """A return's sets are carried by an argument, or the schema would not have parsed: the other side is left."""
    for argument in schema.arguments:
        if argument.annotation is None or argument.is_write or _returned_by(schema, argument):
            continue
        rule = "a view carries its alias set on both sides"
        fact = f"{argument} shares memory with nothing that is returned"
        return convention(schema, rule, fact, f"drop {argument.annotation}, or write it on the return")
    return None


def _is_out_name(name: str) -> bool:
    return name == "out" or (name.startswith("out") and name[3:].isdigit())


def _return_of(argument: Argument) -> str:
    return f"Tensor{argument.annotation}"


def _returned_by(schema: FunctionSchema, argument: Argument) -> bool:
    return any(argument.name in names for names in schema.return_aliases)
