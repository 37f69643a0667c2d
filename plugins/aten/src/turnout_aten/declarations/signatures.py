"""What the variants of one operator share: `signature`; and the arguments that make a factory's tensor.

The rules are those of PyTorch's code generator, so that variants are grouped as it groups them.
"""

from __future__ import annotations

from turnout.schema.model import Argument, FunctionSchema, OperatorName, Return
from turnout.schema.types import OptionalType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.operators import Operator

# The keyword-only run that makes a factory function's tensor, in this order; each may be optional.
TENSOR_OPTIONS = (("dtype", "ScalarType"), ("layout", "Layout"), ("device", "Device"), ("pin_memory", "bool"))

# A schema whose default for one argument is missing for historic reasons, and what its variants have there: without it
# bernoulli.p would not be grouped with bernoulli_.float.
_HISTORIC_DEFAULTS = {"bernoulli.p": {"p": "0.5"}}


def tensor_options(schema: FunctionSchema) -> tuple[Argument, ...]:
    """The keyword-only dtype, layout, device and pin_memory where all four follow each other; else empty."""
    words = schema.kwarg_only
    for start in range(len(words) - len(TENSOR_OPTIONS) + 1):
        run = words[start : start + len(TENSOR_OPTIONS)]
        if all(_is_option(a, *option) for a, option in zip(run, TENSOR_OPTIONS, strict=True)):
            return run
    return ()


def _is_option(argument: Argument, name: str, type_name: str) -> bool:
    type = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
    return argument.name == name and type.canonical == type_name


def signature(schema: FunctionSchema) -> FunctionSchema:
    """What all variants of one operator share; two schemas are variants when their signatures are equal.

    Namespace, overload, in-place mark, annotations, return names, out arguments and TensorOptions are dropped. Written
    arguments that are not returned become returns, self first.
    """
    returns = [Return(r.type) for r in schema.returns]
    returned = {r.annotation for r in schema.returns}
    self_argument = schema.self_argument
    after_self = schema.positional
    if self_argument is not None:
        after_self = after_self[after_self.index(self_argument) + 1 :]
    written = (*(() if self_argument is None else (self_argument,)), *schema.out_arguments, *after_self)
    returns += [Return(a.type) for a in written if a.is_write and a.annotation not in returned]
    options = tensor_options(schema)
    historic = _HISTORIC_DEFAULTS.get(str(schema.name._replace(namespace="")), {})
    arguments = tuple(
        a._replace(annotation=None, default_text=historic.get(a.name, a.default_text))
        for a in schema.arguments
        if not a.is_out and a not in options
    )
    return FunctionSchema(OperatorName("", schema.name.base), arguments, tuple(returns))


def functional_of(op: Operator, mark: str = "") -> Operator | None:
    """The functional operator, maybe a view, of an in-place or out variant. `mark` is what its name has more."""
    wanted = signature(op.schema)
    name = (op.name.removesuffix("_") if op.schema.kind == "inplace" else op.name) + mark
    for other in op.registry.packet(op.namespace, name) or ():
        found = signature(other.schema)
        if other.schema.kind == "functional" and found._replace(name=wanted.name) == wanted:
            return other
    return None
