"""Generated variants: their schemas, made from the declared variant, and their kernels, which call it.

An out variant calls the functional variant and copies the result. A functional variant clones the arguments that the in-place or
mutable variant writes, and calls it. Both are CompositeExplicitAutograd kernels on tensors, so they serve every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import ascii_lowercase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT
from turnout.keys import EXPLICIT
from turnout.schema.model import Annotation, Argument, FunctionSchema, OperatorName, Return
from turnout_aten.declarations.model import Group, NativeFunction
from turnout_aten.declarations.signatures import tensor_options
from turnout_aten.declarations.tables import GENERATED, SEEDED

if TYPE_CHECKING:
    from turnout.operators import Operator

FUNCTIONAL = "functional"
OUT = "out"
BY_FUNCTIONAL = f"autogen:{OUT}"  # the kernel of a declared out variant that copies the functional result

# Tags that apply to all variants of an operator.
_SHARED_TAGS = frozenset({SEEDED, "pt2_compliant_tag", "view_copy"})


# ---- schemas


def candidates(group: Group) -> dict[str, tuple[str, FunctionSchema, NativeFunction]]:
    """The variants that can be generated for a group: name -> (kind, schema, the entry it is made from).

    An out variant has a name for each variant from which it can be made; only a requested name is made.
    """
    found: dict[str, tuple[str, FunctionSchema, NativeFunction]] = {}
    for base in (group.mutable, group.inplace, group.functional):
        if base is None:
            continue
        inplace = base.schema.kind == "inplace"
        if group.out is None and (inplace or base.schema.gives_tensors):
            schema = out_schema(base.schema)
            found.setdefault(_name(schema), (OUT, schema, base))
        if group.functional is None and base.schema.kind in ("inplace", "mutable"):
            schema = functional_schema(base.schema)
            found.setdefault(_name(schema), (FUNCTIONAL, schema, base))
    return found


def _name(schema: FunctionSchema) -> str:
    name = schema.name
    return f"{name.name}.{name.overload}" if name.overload else name.name


def generated(kind: str, schema: FunctionSchema, base: NativeFunction) -> NativeFunction:
    """The function generated from `base`. `kernel` binds its only kernel."""
    return NativeFunction(
        schema,
        base.namespace,
        base.source,
        base.line,
        dispatch=MappingProxyType({EXPLICIT: f"autogen:{kind}"}),
        device_guard=False,
        device_check="NoCheck",
        tags=frozenset({GENERATED}) | (base.tags & _SHARED_TAGS),
        base=base,
    )


def out_schema(schema: FunctionSchema) -> FunctionSchema:
    """The out variant of a functional, in-place or mutable schema."""
    overload = f"{schema.name.overload}_out" if schema.name.overload else "out"
    inplace = schema.kind == "inplace"
    base = schema.name.base if schema.kind != "functional" else schema.name.name
    name = OperatorName(schema.name.namespace, base, overload)
    if inplace:
        written = schema.self_argument or schema.positional[0]
        out = Argument(OUT, written.type, None, written.annotation, kwarg_only=True)
        arguments = [a._replace(annotation=None) if a is written else a for a in schema.arguments]
        return FunctionSchema(name, (*arguments, out), schema.returns)
    returns, outs = _out_arguments(schema)
    kept = schema.arguments
    if schema.kind == "functional":
        kept = tuple(a._replace(annotation=None) for a in kept if a not in tensor_options(schema))
    return FunctionSchema(name, (*kept, *outs), returns)


def _out_arguments(schema: FunctionSchema) -> tuple[tuple[Return, ...], tuple[Argument, ...]]:
    """One out argument per returned tensor. They are also the returns, if all returns are plain tensors."""
    used = {s for a in schema.arguments if a.annotation is not None for s in a.annotation.before}
    free = [letter for letter in ascii_lowercase if letter not in used]
    plain = all(str(r.type) == "Tensor" for r in schema.returns)
    outs: list[Argument] = []
    returns: list[Return] = []
    for i, returned in enumerate(schema.returns):
        if not returned.type.is_tensor_like:
            returns.append(returned)
            continue
        annotation = Annotation((free[i],), is_write=True)
        name = OUT if len(schema.returns) == 1 else f"{OUT}{i}"
        outs.append(Argument(name, returned.type, None, annotation, kwarg_only=True))
        if plain:
            returns.append(Return(returned.type, None, annotation))
    return tuple(returns), tuple(outs)


def functional_schema(schema: FunctionSchema) -> FunctionSchema:
    """The functional variant of an in-place or mutable schema: it returns the written arguments."""
    mark = "_functional" if schema.kind == "mutable" else ""
    name = OperatorName(schema.name.namespace, schema.name.base + mark, schema.name.overload)
    arguments = tuple(a._replace(annotation=None) for a in schema.arguments if a not in tensor_options(schema))
    returns = tuple(r._replace(annotation=None) for r in schema.returns)
    added = tuple(Return(a.type, f"{a.name}_out") for a in _written_not_returned(schema))
    return FunctionSchema(name, arguments, returns + added)


def _written_not_returned(schema: FunctionSchema) -> list[Argument]:
    """The written arguments as returns, self first."""
    returned = {r.annotation for r in schema.returns}
    written = [a for a in schema.arguments if a.is_write and a.annotation not in returned]
    return sorted(written, key=lambda a: a is not schema.self_argument)


# ---- kernels


def kernel(op: Operator, kind: str, source: Operator) -> Callable[..., Any]:
    """The kernel of a generated variant, of the form `internal`: `call(ks, *args)`.

    kind    "out" or "functional"
    source  the operator it calls: for an out variant the functional one, or the mutable one where the variant was made
    from
            that; for a functional variant the in-place or mutable one
    """
    return _out_kernel(op, source) if kind == OUT else _functional_kernel(op, source)


def _out_kernel(op: Operator, source: Operator) -> Callable[..., Any]:
    names = [a.name for a in op.schema.arguments]
    outs = [a.name for a in op.schema.out_arguments]
    wanted = [a.name for a in source.schema.arguments]
    tensors = [i for i, r in enumerate(source.schema.returns) if r.type.is_tensor_like]
    returns_outs = bool(op.schema.returns) and op.schema.returns[0].is_write
    others = [i for i in range(len(source.schema.returns)) if i not in tensors]
    single = len(source.schema.returns) == 1

    def call_and_copy(ks: int, *args: Any) -> Any:
        values = dict(zip(names, args, strict=True))
        given = source.call_boxed(tuple([values[n] if n in values else _option(n, values[outs[0]]) for n in wanted]))
        results = (given,) if single else given
        targets = [values[n] for n in outs]
        for i, target in zip(tensors, targets, strict=False):
            copy_into(op, target, results[i])
        return _returned(targets if returns_outs else [results[i] for i in others])

    return call_and_copy


def _option(name: str, out: Any) -> Any:
    """The value for a TensorOptions argument, which out variants lack: that of the output."""
    return {"dtype": out.dtype, "device": out.device}.get(name)


def copy_into(op: Operator, target: Any, value: Any) -> None:
    """Write a result into an out argument, which is resized if the shape differs. Lists are written element by element."""
    if isinstance(target, (list, tuple)):
        for t, v in zip(target, value, strict=True):
            copy_into(op, t, v)
    elif target is not None and value is not None:
        from turnout_aten.kernels.outputs import resize_output_as

        check_copied(op, target, value)
        resize_output_as(op, target, value)
        target.copy_(value)


def check_copied(op: Operator, target: Any, value: Any) -> None:
    """Raise DTypeError where a generated out variant does not convert its result to the dtype of the out argument."""
    from turnout_aten.kernels.outputs import check_result_dtype
    from turnout_aten.shapes.specs import Out

    if value.dtype is not target.dtype:
        # Places, counts and flags are what they are; only what is computed like its operands is converted.
        exact = value.dtype.category < FLOAT and op.name not in _CONVERTED
        check_result_dtype(op, Out(value.shape, value.dtype, exact=exact or op.name in _EXACT), target)


# Generated out variants whose integer results PyTorch converts too, and those with other results that it does not convert.
_CONVERTED = frozenset({
    "add", "addr", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "column_stack",
    "concat", "concatenate", "diff", "dstack", "eq", "floor_divide", "fmod", "ge", "ger", "gt", "hstack", "kron", "le",
    "linalg_lstsq", "linalg_matrix_rank", "lt", "mul", "multiply", "nansum", "ne", "outer", "remainder", "row_stack", "rsub",
    "sub", "subtract", "vstack",
})  # fmt: skip
_EXACT = frozenset({"take"})


def _functional_kernel(op: Operator, source: Operator) -> Callable[..., Any]:
    names = [a.name for a in op.schema.arguments]
    wanted = [a.name for a in source.schema.arguments]
    written = {a.name for a in source.schema.mutated_arguments}
    returned = [a.name for a in source.schema.arguments if a.name in written]
    own_self = source.schema.self_argument
    if own_self is not None and own_self.name in returned:
        returned = [own_self.name, *(n for n in returned if n != own_self.name)]
    fresh = [i for i, r in enumerate(source.schema.returns) if not r.is_write]
    single = len(source.schema.returns) == 1

    def clone_and_call(ks: int, *args: Any) -> Any:
        values: dict[str, Any] = dict(zip(names, args, strict=True))
        for name in written:
            values[name] = _clone(values[name])
        given = source.call_boxed(tuple([values.get(n) for n in wanted]))
        results = (given,) if single else given
        return _returned([*(results[i] for i in fresh), *(values[n] for n in returned)])

    return clone_and_call


def _clone(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_clone(v) for v in value]
    return None if value is None else value.clone()


def _returned(values: list[Any]) -> Any:
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


def source_of(function: NativeFunction, by_name: Mapping[str, NativeFunction], group: Group) -> NativeFunction:
    """The function that a generated one calls."""
    base = function.base
    assert base is not None
    if function.schema.kind == "out" and base.schema.kind == "inplace":
        assert group.functional is not None
        return group.functional
    return base


def complete(group: Group, names: Iterable[str]) -> dict[str, NativeFunction]:
    """The functions to generate for a group whose entries request `names`: kind -> function."""
    made: dict[str, NativeFunction] = {}
    for name, (kind, schema, base) in candidates(group).items():
        if name in names and kind not in made:
            made[kind] = generated(kind, schema, base)
    return made
