"""Shapes of pointwise operators: broadcast the operands, promote their dtypes, keep a layout they agree on.

The usual case (equal dtypes) answers with a bare `Out`; casts are named only where a tensor has to be converted first.
"""

from __future__ import annotations

from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, DType, bool_
from turnout.errors import CallError, DTypeError, TurnoutError
from turnout.shapes.extents import broadcast, broadcast_all, layout
from turnout.shapes.promotion import common_dtype, fitted, float_dtype, result_type
from turnout.shapes.specs import Out, Result
from turnout.tensors import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# ---- one argument


def _one(self: Tensor, computed: DType, given: DType, dtype: DType | None = None) -> Out | Result:
    shape = self.array.shape
    out = Out(shape, computed if dtype is None else dtype, layout(shape, self))
    return out if computed is given else Result(out, {"self": computed})


def _refuse(dtype: DType, name: str, *categories: int) -> None:
    if dtype.category in categories:
        raise DTypeError(f"{name} is not defined for {dtype.name} tensors")


def keep_dtype(self: Tensor) -> Out | Result:
    """Rounding: integers are themselves, bool and complex are refused."""
    dtype = self.dtype
    _refuse(dtype, "rounding", BOOL, COMPLEX)
    return _one(self, dtype, dtype)


def absolute(self: Tensor) -> Out | Result:
    """The absolute value; of complex tensors it is real."""
    dtype = self.dtype
    _refuse(dtype, "abs", BOOL)
    return _one(self, dtype, dtype, dtype.to_real())


def negated(self: Tensor) -> Out | Result:
    """-self; bool has `logical_not`."""
    dtype = self.dtype
    if dtype is bool_:
        raise DTypeError("neg is not defined for bool tensors; use ~x or logical_not")
    return _one(self, dtype, dtype)


def signed(self: Tensor) -> Out | Result:
    """The sign of a real tensor."""
    dtype = self.dtype
    _refuse(dtype, "sign", COMPLEX)
    return _one(self, dtype, dtype)


def rectified(self: Tensor) -> Out | Result:
    """relu of a real tensor."""
    dtype = self.dtype
    _refuse(dtype, "relu", BOOL, COMPLEX)
    return _one(self, dtype, dtype)


def floating(self: Tensor) -> Out | Result:
    """Functions with real or complex results: integers are computed in the default dtype."""
    dtype = self.dtype
    return _one(self, float_dtype(dtype), dtype)


def floating_real(self: Tensor) -> Out | Result:
    """The same, but not for complex tensors."""
    _refuse(self.dtype, "erf", COMPLEX)
    return floating(self)


def gelu(self: Tensor, approximate: str = "none") -> Out | Result:
    """Floating point only; `approximate` is 'none' or 'tanh'."""
    _approximation(approximate)
    dtype = self.dtype
    _refuse(dtype, "gelu", BOOL, INT, COMPLEX)
    return _one(self, dtype, dtype)


def _approximation(word: str) -> None:
    if word not in ("none", "tanh"):
        raise TurnoutError(f"gelu: approximate must be 'none' or 'tanh', got {word!r}")


def truth(self: Tensor) -> Out:
    """A bool for each element, of any dtype."""
    shape = self.array.shape
    return Out(shape, bool_, layout(shape, self))


def inverted(self: Tensor) -> Out | Result:
    """Bits of integers and bools."""
    dtype = self.dtype
    _refuse(dtype, "bitwise_not", FLOAT, COMPLEX)
    return _one(self, dtype, dtype)


# ---- two arguments, of which either may be a number


def _shape(self: Any, other: Any) -> tuple[int, ...]:
    """The broadcast shape of two operands; numbers have shape ()."""
    a: tuple[int, ...] = self.array.shape if isinstance(self, Tensor) else ()
    b: tuple[int, ...] = other.array.shape if isinstance(other, Tensor) else ()
    return a if a == b else broadcast(a, b)


def _two(self: Any, other: Any, computed: DType, dtype: DType | None = None) -> Out | Result:
    """The answer for operands that are computed in `computed` and give `dtype` (None: the same)."""
    shape = _shape(self, other)
    out = Out(shape, computed if dtype is None else dtype, layout(shape, self, other) if len(shape) > 1 else None)
    casts: dict[str, DType] | None = None
    numbers: dict[str, int] | None = None
    for name, value in (("self", self), ("other", other)):
        if isinstance(value, Tensor):
            if value.device.backend.dtype_of(value.array) is not computed:
                casts = casts or {}
                casts[name] = computed
        elif value.__class__ is int and not 0 <= value < 128 and computed.category == INT:
            # Array libraries refuse a number that the dtype cannot hold; PyTorch wraps it.
            numbers = numbers or {}
            numbers[name] = fitted(value, computed)
    return out if casts is None and numbers is None else Result(out, casts, numbers)


def check_alpha(alpha: Any, computed: DType, name: str = "alpha") -> None:
    """Raise DTypeError for a factor of a category above the result's."""
    if alpha.__class__ is int and computed.category >= INT:
        return
    if isinstance(alpha, bool):
        if computed.category != BOOL:
            raise DTypeError(f"a bool {name} needs a bool result, this one is {computed.name}")
    elif isinstance(alpha, complex):
        if computed.category != COMPLEX:
            raise DTypeError(f"a complex {name} needs a complex result, this one is {computed.name}")
    elif isinstance(alpha, float) and computed.category < FLOAT:
        raise DTypeError(f"{name} must be an integer for a result of dtype {computed.name}, got {alpha!r}")


def add(self: Any, other: Any, alpha: Any = 1) -> Out | Result:
    """Any dtypes."""
    computed = common_dtype(self, other)
    if alpha != 1:
        check_alpha(alpha, computed)
    return _two(self, other, computed)


def sub(self: Any, other: Any, alpha: Any = 1) -> Out | Result:
    """As `add`, but no bool operand on either side."""
    computed = common_dtype(self, other)
    if _is_bool(self) or _is_bool(other):
        raise DTypeError("subtraction is not defined for bool operands; use logical_xor, or ~x to invert a mask")
    if alpha != 1:
        check_alpha(alpha, computed)
    return _two(self, other, computed)


def _is_bool(value: Any) -> bool:
    return value.dtype is bool_ if isinstance(value, Tensor) else isinstance(value, bool)


def mul(self: Any, other: Any) -> Out | Result:
    """Any dtypes."""
    return _two(self, other, common_dtype(self, other))


def div(self: Any, other: Any) -> Out | Result:
    """True division: integers are computed in the default dtype."""
    return _two(self, other, float_dtype(common_dtype(self, other)))


def div_mode(self: Any, other: Any, rounding_mode: str | None) -> Out | Result:
    """Division rounded by 'trunc' or 'floor' keeps integers; None is true division."""
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode not in ("trunc", "floor"):
        raise TurnoutError(f"div: rounding_mode must be None, 'trunc' or 'floor', got {rounding_mode!r}")
    return integer_division(self, other)


def integer_division(self: Any, other: Any) -> Out | Result:
    """Real dtypes. An integer divided by the number 0 is an error."""
    computed = common_dtype(self, other)
    _refuse(computed, "rounded division", BOOL, COMPLEX)
    if computed.category == INT and not isinstance(other, Tensor) and other == 0:
        raise TurnoutError("integer division by zero")
    return _two(self, other, computed)


def pow(self: Any, other: Any) -> Out | Result:
    """Any dtypes but two bools; an integer to a negative number has no integer result."""
    computed = common_dtype(self, other)
    _refuse(computed, "pow", BOOL)
    if computed.category == INT and other.__class__ is int and other < 0:
        raise TurnoutError(
            "pow: integers to negative integer powers have no integer result; convert to a float dtype first"
        )
    return _two(self, other, computed)


def ordered(self: Any, other: Any) -> Out | Result:
    """Dtypes with an order."""
    computed = common_dtype(self, other)
    _refuse(computed, "ordering", COMPLEX)
    return _two(self, other, computed)


def atan2(self: Any, other: Any) -> Out | Result:
    """Real dtypes, computed in a float one."""
    computed = common_dtype(self, other)
    _refuse(computed, "atan2", COMPLEX)
    return _two(self, other, float_dtype(computed))


def equality(self: Any, other: Any) -> Out | Result:
    """A bool for each pair, compared in the common dtype."""
    return _two(self, other, common_dtype(self, other), bool_)


def comparison(self: Any, other: Any) -> Out | Result:
    """The same for dtypes with an order."""
    computed = common_dtype(self, other)
    _refuse(computed, "ordering", COMPLEX)
    return _two(self, other, computed, bool_)


def logical(self: Tensor, other: Tensor) -> Out:
    """A bool for each pair; nothing is converted, each element counts as itself != 0."""
    shape = _shape(self, other)
    return Out(shape, bool_, layout(shape, self, other))


def bitwise(self: Any, other: Any) -> Out | Result:
    """Bits of integers and bools."""
    computed = common_dtype(self, other)
    _refuse(computed, "a bitwise operation", FLOAT, COMPLEX)
    return _two(self, other, computed)


# ---- three arguments


def where(condition: Tensor, self: Any, other: Any) -> Out | Result:
    """A bool condition; the branches are promoted."""
    if condition.dtype is not bool_:
        raise DTypeError(f"where: condition must be a bool tensor, got {condition.dtype.name}")
    answer = _two(self, other, common_dtype(self, other))
    result = answer if isinstance(answer, Result) else Result(answer)
    out = result.outs[0]
    shape = broadcast(condition.array.shape, out.shape)
    return Result(Out(shape, out.dtype, layout(shape, condition, self, other)), result.casts, result.precomputed)


def clamp(self: Tensor, min: Any = None, max: Any = None) -> Out | Result:
    """Bounds are tensors or numbers, at least one; all are promoted together."""
    if min is None and max is None:
        raise CallError("clamp: at least one of 'min' and 'max' must be given")
    computed = result_type(self, min, max)
    _refuse(computed, "clamp", BOOL, COMPLEX)
    operands = {"self": self, "min": min, "max": max}
    tensors = {name: value for name, value in operands.items() if isinstance(value, Tensor)}
    shape = broadcast_all([t.array.shape for t in tensors.values()])
    casts = {name: computed for name, t in tensors.items() if t.dtype is not computed}
    return Result(Out(shape, computed, layout(shape, *tensors.values())), casts)


def lerp(self: Tensor, end: Tensor, weight: Any) -> Out:
    """Float or complex operands of one dtype; the weight is a number."""
    dtype = self.dtype
    if end.dtype is not dtype:
        raise DTypeError(f"lerp: self and end must have one dtype, got {dtype.name} and {end.dtype.name}")
    _refuse(dtype, "lerp", BOOL, INT)
    shape = broadcast(self.array.shape, end.array.shape)
    return Out(shape, dtype, layout(shape, self, end))


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any = 1) -> Out | Result:
    """self + value * tensor1 * tensor2, all promoted together."""
    computed = result_type(self, tensor1, tensor2)
    _refuse(computed, "addcmul", BOOL)
    check_alpha(value, computed, "value")
    operands = {"self": self, "tensor1": tensor1, "tensor2": tensor2}
    shape = broadcast_all([t.array.shape for t in operands.values()])
    casts = {name: computed for name, t in operands.items() if t.dtype is not computed}
    return Result(Out(shape, computed, layout(shape, self, tensor1, tensor2)), casts)


# ---- backward formulas


def _backward(grad_output: Tensor, other: Tensor, name: str) -> Out | Result:
    computed = result_type(grad_output, other)
    shape = broadcast(grad_output.array.shape, other.array.shape)
    operands = {"grad_output": grad_output, name: other}
    casts = {n: computed for n, t in operands.items() if t.dtype is not computed}
    return Result(Out(shape, computed, layout(shape, grad_output, other)), casts)


def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Out | Result:
    """grad_output where self is above the threshold, else 0."""
    return _backward(grad_output, self, "self")


def output_backward(grad_output: Tensor, output: Tensor) -> Out | Result:
    """Gradients that are a function of the output: sigmoid, tanh."""
    return _backward(grad_output, output, "output")


def gelu_backward(grad_output: Tensor, self: Tensor, approximate: str = "none") -> Out | Result:
    """The gradient of gelu."""
    _approximation(approximate)
    return _backward(grad_output, self, "self")
