"""A number where a schema says Tensor: `turnout.ops.aten.add.Tensor(x, 1e-6)`.

Arithmetic and copies take one, as in PyTorch, and no other operator does. The number gives way in promotion, as in `x + 1e-6`:
the call becomes that of the overload with a Scalar there. Where no overload has one, such as for a number on the left, the number
becomes a tensor of 0 dims.
"""

from __future__ import annotations

from turnout.devices import Device
from turnout.dtypes import COMPLEX, FLOAT, INT, complex128, float64
from turnout.operators.arguments import as_scalar
from turnout.operators.values import has_keys, is_symbol
from turnout.registry import REGISTRY
from turnout_aten.dtypes import holds
from turnout_aten.functions.call_forms import NUMBER_FIRST, is_number, python_number
from turnout_aten.shapes.promotion import fitted as wrapped
from turnout_aten.shapes.promotion import number_dtype, result_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators import Operator

# The packets that take numbers, beside those of `NUMBER_FIRST`: a call of each operator of PyTorch found them.
_COPIES = frozenset({"copy", "_to_copy"})


def fitted(op: Operator, args: tuple[Any, ...]) -> tuple[Operator, tuple[Any, ...]]:
    """The operator and the arguments that a call with numbers in the place of tensors means.

    A call without such numbers, and that of an operator that takes none, is returned as it is. Raises RangeError for an int
    beyond 64 bits.
    """
    name = op.name.removesuffix("_")
    if name not in NUMBER_FIRST and name not in _COPIES:
        return op, args
    # differs from torch: PyTorch takes a number in place of an `out` or `self` that is written. The result would be lost.
    places = [
        i for i, (a, v) in enumerate(zip(op.schema.arguments, args, strict=True))
        if a.type.canonical == "Tensor" and not a.is_write and is_number(v)
    ]  # fmt: skip
    if not places:
        return op, args
    given = list(args)
    for i in places:
        given[i] = as_scalar(op.qualified_name, op.schema.arguments[i].name, python_number(args[i]))
    last = op.schema.arguments[places[-1]].name
    with_number = overload_for_number(op, last)
    for i in places if with_number is None else places[:-1]:
        beside = [v for a, v in zip(op.schema.arguments, given, strict=True) if has_keys(v) and not a.kwarg_only]  # not `out`
        given[i] = _tensor(op, name, given[i], beside)
    return with_number or op, tuple(given)


def overload_for_number(op: Operator, argument: str) -> Operator | None:
    """The overload that has a Scalar for this argument, and all others as the operator has them; None if there is none."""
    wanted = [(a.name, "Scalar" if a.name == argument else a.type.canonical) for a in op.schema.arguments]
    overloads = REGISTRY.packet_handle(op.namespace, op.name)
    return next((each for each in overloads if [(a.name, a.type.canonical) for a in each.schema.arguments] == wanted), None)


def _tensor(op: Operator, name: str, value: Any, beside: list[Any]) -> Any:
    """A tensor of 0 dims that gives way to the tensors beside it."""
    dtype = number_dtype(value)
    if name in _COPIES:  # what is copied keeps its digits; in arithmetic, the default dtype decides
        dtype = dtype if dtype.category < FLOAT else complex128 if dtype.category == COMPLEX else float64
    others = result_type(*beside) if beside else dtype
    if dtype.category == INT and others.category == INT:
        # Integers are computed in the dtype of the others, and so is a quotient that is rounded. Any other quotient is a float.
        rounded = NUMBER_FIRST.get(name) != "__rtruediv__" or op.overload in ("Tensor_mode", "out_mode")
        if rounded and not is_symbol(value):
            dtype, value = others, wrapped(value, others)
    elif dtype.category == others.category:
        dtype = others
    if isinstance(value, float) and not holds(dtype, value):
        value = float("inf") if value > 0 else -float("inf")
    device: Device | None = beside[0].device if beside else None
    return REGISTRY.find("aten::scalar_tensor")(value, dtype=dtype, device=device)
