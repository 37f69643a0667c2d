"""Shape functions of pointwise operators: they broadcast operands, promote dtypes, and keep a layout on which the operands agree.

In the usual case (equal dtypes) they return a bare `Out`; casts are listed only if a tensor must be converted first.
"""

from __future__ import annotations

from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, DType, bool_, complex128, float64
from turnout.errors import ArgumentError, DTypeError, RangeError
from turnout_aten.dtypes import check_held, int_range
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.tensors import does_not_fit
from turnout_aten.shapes.extents import broadcast, broadcast_all
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.shapes.promotion import common_dtype, fitted, float_dtype, result_type, rounded
from turnout_aten.shapes.specs import Out, Result, as_result, keeps_numbers
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable

# ---- one argument


def one_tensor(self: Tensor, computed: DType, given: DType, dtype: DType | None = None, argument: str = "self") -> Out | Result:
    """The output for a tensor of dtype `given`, computed in `computed`, with the result in `dtype` (None: the same)."""
    shape = self.array.shape
    out = Out(shape, computed if dtype is None else dtype, as_operands(shape, self))
    return out if computed is given else Result(out, {argument: computed})


def rounds_number(name: str, shape: Callable[..., Out | Result]) -> Callable[..., Out | Result]:
    """A shape function of a tensor and a number of that name, which is rounded to the tensor's dtype where that has two bytes."""

    def rounding(self: Tensor, number: Any = None) -> Out | Result:
        answer, held = shape(self, number), rounded(number, self.dtype)
        return answer if held is number else Result(as_result(answer).outs, as_result(answer).casts, {name: held})

    return rounding


def refuse(dtype: DType, name: str, *categories: int) -> None:
    """Raise DTypeError for a dtype of one of the categories."""
    if dtype.category in categories:
        raise DTypeError(texts.undefined_for(name, dtype))


def refuse_complex(dtype: DType, name: str, *numbers: Any) -> None:
    """Raise DTypeError for a complex number if the result has a real dtype."""
    for number in numbers:
        if isinstance(number, complex) and dtype.category != COMPLEX:
            raise DTypeError(texts.complex_into(name, dtype))


def keep_dtype(self: Tensor) -> Out | Result:
    """Rounding. Integers are unchanged; bool and complex raise DTypeError."""
    dtype = self.dtype
    refuse(dtype, "rounding", BOOL, COMPLEX)
    return one_tensor(self, dtype, dtype)


def absolute(self: Tensor) -> Out | Result:
    """The absolute value, which is real for complex tensors."""
    dtype = self.dtype
    refuse(dtype, "abs", BOOL)
    return one_tensor(self, dtype, dtype, dtype.to_real())


def negated(self: Tensor) -> Out | Result:
    """-self; bool has `logical_not`."""
    dtype = self.dtype
    if dtype is bool_:
        raise DTypeError(f"{texts.undefined_for('neg', bool_)}; use ~x or logical_not")
    return one_tensor(self, dtype, dtype)


def signed(self: Tensor) -> Out | Result:
    """The sign of a real tensor."""
    dtype = self.dtype
    refuse(dtype, "sign", COMPLEX)
    return one_tensor(self, dtype, dtype)


def floating(self: Tensor) -> Out | Result:
    """Functions with real or complex results: integers are computed in the default dtype."""
    dtype = self.dtype
    return one_tensor(self, float_dtype(dtype), dtype)


def floating_real(name: str, argument: str = "self") -> Callable[..., Out | Result]:
    """The shape function of a function that is not defined for complex tensors. Later arguments are ignored."""

    def shape(self: Tensor, *rest: Any) -> Out | Result:
        dtype = self.dtype
        refuse(dtype, name, COMPLEX)
        return one_tensor(self, float_dtype(dtype), dtype, argument=argument)

    return shape


def floating_only(name: str) -> Callable[..., Out | Result]:
    """The shape function of a function that is defined only for floating-point tensors."""

    def shape(self: Tensor, *rest: Any) -> Out | Result:
        dtype = self.dtype
        refuse(dtype, name, BOOL, INT, COMPLEX)
        refuse_complex(dtype, name, *rest)
        return one_tensor(self, dtype, dtype)

    return shape


def squared(self: Tensor) -> Out | Result:
    """self ** 2: bool counts as an integer."""
    return pow(self, 2)


def truth(self: Tensor) -> Out:
    """A bool for each element, of any dtype."""
    shape = self.array.shape
    return Out(shape, bool_, as_operands(shape, self))


def exact_truth(self: Tensor) -> Out:
    """The same, where an output must be bool."""
    shape = self.array.shape
    return Out(shape, bool_, as_operands(shape, self), exact=True)


def inverted(self: Tensor) -> Out | Result:
    """Bits of integers and bools."""
    dtype = self.dtype
    refuse(dtype, "bitwise_not", FLOAT, COMPLEX)
    return one_tensor(self, dtype, dtype)


# ---- two arguments, of which either may be a number


def operands_shape(self: Any, other: Any) -> tuple[int, ...]:
    """The broadcast shape of two operands; numbers have shape ()."""
    a: tuple[int, ...] = self.array.shape if isinstance(self, Tensor) else ()
    b: tuple[int, ...] = other.array.shape if isinstance(other, Tensor) else ()
    return broadcast(a, b)


def two_operands(
    self: Any, other: Any, computed: DType, dtype: DType | None = None, names: tuple[str, str] = ("self", "other"), *,
    alpha: Any = 1, rounds: bool = True,
) -> Out | Result:  # fmt: skip
    """The answer for operands that are computed in `computed` and give `dtype` (None: the same).

    `names` are those of the two arguments, `alpha` the factor of a sum. A number is rounded to two-byte floats before it meets
    them, unless `rounds` is False, which a shape function says that is marked with `keeps_numbers`, too.
    """
    shape = operands_shape(self, other)
    out = Out(shape, computed if dtype is None else dtype, as_operands(shape, self, other) if len(shape) > 1 else None)
    casts: dict[str, DType] | None = None
    numbers: dict[str, float] | None = None
    for name, value in ((names[0], self), (names[1], other)):
        if isinstance(value, Tensor):
            if value.device.backend.dtype_of(value.array) is not computed:
                casts = casts or {}
                casts[name] = computed
        elif value.__class__ is int and not 0 <= value < 128 and computed.category == INT:
            # Array libraries refuse a number that the dtype cannot hold; PyTorch wraps it.
            numbers = numbers or {}
            numbers[name] = fitted(value, computed)
        elif rounds and computed.itemsize == 2:
            held = rounded(value, computed)
            if held is not value:
                numbers = numbers or {}
                numbers[name] = held
    if computed.itemsize == 2 and rounded(alpha, computed) is not alpha:
        numbers = (numbers or {}) | {"alpha": rounded(alpha, computed)}
    return out if casts is None and numbers is None else Result(out, casts, numbers)


def check_alpha(operator: str, alpha: Any, computed: DType, name: str = "alpha") -> None:
    """Raise DTypeError for a factor of a category above the result's, RangeError for one beyond an integer dtype."""
    if alpha.__class__ is int and computed.category >= INT:
        if computed.category == INT:
            check_held(computed, alpha, operator, name)
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
    if alpha != 1 or alpha is True:
        check_alpha("add", alpha, computed)
    return two_operands(self, other, computed, alpha=alpha)


def sub(self: Any, other: Any, alpha: Any = 1) -> Out | Result:
    """As `add`, but no bool operand on either side."""
    computed = common_dtype(self, other)
    if _is_bool(self) or _is_bool(other):
        raise DTypeError("subtraction is not defined for bool operands; use logical_xor, or ~x to invert a mask")
    if alpha != 1 or alpha is True:
        check_alpha("sub", alpha, computed)
    return two_operands(self, other, computed, alpha=alpha)


def subtracted(self: Any, other: Any, alpha: Any = 1) -> Out | Result:
    """As `sub`; the result lies as the tensor that it is subtracted from."""
    answer = sub(self, other, alpha)
    out = as_result(answer).outs[0]
    out.strides = as_operands(out.shape, other, self)
    return answer


def _is_bool(value: Any) -> bool:
    return value.dtype is bool_ if isinstance(value, Tensor) else isinstance(value, bool)


@keeps_numbers
def mul(self: Any, other: Any) -> Out | Result:
    """Any dtypes.

    # differs from torch: in `mul` and `div`, a 0-dim tensor beside two-byte floats is rounded to them; PyTorch computes it as it
    is, like a number.
    """
    return two_operands(self, other, common_dtype(self, other), rounds=False)


@keeps_numbers
def div(self: Any, other: Any) -> Out | Result:
    """True division: integers are computed in the default dtype."""
    return two_operands(self, other, float_dtype(common_dtype(self, other)), rounds=False)


@keeps_numbers
def div_mode(self: Any, other: Any, rounding_mode: str | None) -> Out | Result:
    """Division rounded by 'trunc' or 'floor' keeps integers; None is true division."""
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode not in ("trunc", "floor"):
        raise ArgumentError(f"div: rounding_mode must be None, 'trunc' or 'floor', got {rounding_mode!r}")
    return floor_divide(self, other)


@keeps_numbers
def floor_divide(self: Any, other: Any) -> Out | Result:
    """Real dtypes. An integer divided by the number 0 is an error, where there is one."""
    return _divided(self, other, rounds=False)


def remainder(self: Any, other: Any) -> Out | Result:
    """As `floor_divide`, and with a number that is rounded first."""
    return _divided(self, other, rounds=True)


def _divided(self: Any, other: Any, *, rounds: bool) -> Out | Result:
    computed = common_dtype(self, other)
    refuse(computed, "rounded division", BOOL, COMPLEX)
    if computed.category == INT and not isinstance(other, Tensor) and other == 0 and 0 not in self.array.shape:
        raise ArgumentError(texts.NO_QUOTIENT)
    return two_operands(self, other, computed, rounds=rounds)


def pow(self: Any, other: Any) -> Out | Result:
    """Any dtypes but two bool tensors; an integer to a negative number has no integer result."""
    computed = common_dtype(self, other)
    if not isinstance(other, bool):
        refuse(computed, "pow", BOOL)
    if computed.category == INT and other.__class__ is int and other < 0:
        raise ArgumentError("pow: integers to negative integer powers have no integer result; convert to a float dtype first")
    if isinstance(other, int):
        check_held(computed, other, "pow", "exponent")
    return _power(self, two_operands(self, other, computed, names=("self", "exponent")))


def _power(self: Any, answer: Out | Result) -> Out | Result:
    """The answer, row-major for a number to the power of a tensor."""
    if not isinstance(self, Tensor):
        as_result(answer).outs[0].strides = None
    return answer


def ordered(self: Any, other: Any) -> Out | Result:
    """Dtypes with an order."""
    computed = common_dtype(self, other)
    refuse(computed, "ordering", COMPLEX)
    return two_operands(self, other, computed)


def paired(
    name: str, *refused: int, floats: bool = False, names: tuple[str, str] = ("self", "other")
) -> Callable[..., Out | Result]:
    """The shape function of two promoted operands; `floats` computes integers in the default dtype."""

    def shape(self: Any, other: Any) -> Out | Result:
        computed = common_dtype(self, other)
        refuse(computed, name, *refused)
        return two_operands(self, other, float_dtype(computed) if floats else computed, names=names)

    return shape


def two_floating(name: str, names: tuple[str, str] = ("self", "other")) -> Callable[..., Out | Result]:
    """Real dtypes, computed in a float one."""
    return paired(name, COMPLEX, floats=True, names=names)


def two_floats(name: str, *refused: int) -> Callable[..., Out | Result]:
    """Floating point operands only, and complex ones unless `refused` says so."""
    return paired(name, BOOL, INT, *refused)


def clamped(bound: str) -> Callable[..., Out | Result]:
    """Real dtypes, promoted with the one bound, whose argument's name is `bound`."""
    shape = paired("clamp", COMPLEX, names=("self", bound))

    def limited(self: Any, other: Any) -> Out | Result:
        answer = shape(self, other)
        if other.__class__ is not int:
            return answer
        result = as_result(answer)
        return Result(result.outs, result.casts, {bound: _bounded(other, result.outs[0].dtype, bound)})

    return limited


def _bounded(value: Any, dtype: DType, bound: str) -> Any:
    """A bound of clamp in the range of the dtype. Raises RangeError for one that no element could be moved to.

    # differs from torch: in `clamp` of a uint8 tensor, a lower bound of -1 and an upper bound of 300 change nothing. PyTorch
    wraps the first to 255 and refuses the second.
    """
    if dtype.category != INT or not isinstance(value, int):
        return value
    low, high = int_range(dtype)
    if (bound == "min" and value > high) or (bound == "max" and value < low):
        raise RangeError(does_not_fit("clamp", bound, value, dtype.name, low, high))
    return min(max(value, low), high)


def float_power(self: Any, exponent: Any) -> Out | Result:
    """Any dtypes, computed in float64 or complex128, which a tensor that is written must have.

    # differs from torch: `float_power` of a tensor and a number takes an `out=` of other dtypes, too.
    """
    computed = complex128 if common_dtype(self, exponent).category == COMPLEX else float64
    answer = _power(self, two_operands(self, exponent, computed, names=("self", "exponent")))
    as_result(answer).outs[0].exact = (computed,)
    return answer


def equality(self: Any, other: Any) -> Out | Result:
    """A bool for each pair, compared in the common dtype."""
    return two_operands(self, other, common_dtype(self, other), bool_)


def comparison(self: Any, other: Any) -> Out | Result:
    """equality for dtypes with an order."""
    computed = common_dtype(self, other)
    refuse(computed, "ordering", COMPLEX)
    return two_operands(self, other, computed, bool_)


def logical(self: Tensor, other: Tensor) -> Out:
    """A bool for each pair; nothing is converted, each element counts as itself != 0."""
    shape = operands_shape(self, other)
    return Out(shape, bool_, as_operands(shape, self, other))


def bitwise(self: Any, other: Any) -> Out | Result:
    """Bits of integers and bools."""
    computed = common_dtype(self, other)
    refuse(computed, "a bitwise operation", FLOAT, COMPLEX)
    return two_operands(self, other, computed)


# ---- three arguments


def where(condition: Tensor, self: Any, other: Any) -> Out | Result:
    """A bool condition; the branches are promoted.

    # differs from torch: the condition of `where` must be a bool tensor. PyTorch also takes uint8, and warns.
    """
    if condition.dtype is not bool_:
        raise DTypeError(f"where: condition must be a bool tensor, got {condition.dtype.name}")
    computed = common_dtype(self, other)
    for name, value in (("self", self), ("other", other)):
        if not isinstance(value, Tensor):
            check_held(computed, value, "where", name)
    answer = two_operands(self, other, computed)
    result = answer if isinstance(answer, Result) else Result(answer)
    out = result.outs[0]
    shape = broadcast(condition.array.shape, out.shape)
    made = Out(shape, out.dtype, as_operands(shape, condition, self, other), exact=True)
    return Result(made, result.casts, result.precomputed)


def clamp(self: Tensor, min: Any = None, max: Any = None) -> Out | Result:
    """Bounds are tensors or numbers, at least one; all are promoted together."""
    if min is None and max is None:
        raise ArgumentError("clamp: at least one of 'min' and 'max' must be given")
    computed = result_type(self, min, max)
    refuse(computed, "clamp", COMPLEX)
    operands = {"self": self, "min": min, "max": max}
    tensors = {name: value for name, value in operands.items() if isinstance(value, Tensor)}
    shape = broadcast_all([t.array.shape for t in tensors.values()])
    casts = {name: computed for name, t in tensors.items() if t.dtype is not computed}
    bounds = {name: _bounded(operands[name], computed, name) for name in ("min", "max") if isinstance(operands[name], int)}
    return Result(Out(shape, computed, as_operands(shape, *tensors.values())), casts, bounds)


def lerp(self: Tensor, end: Tensor, weight: Any) -> Out:
    """Float or complex operands of one dtype; the weight is a number or a tensor of it too."""
    dtype = self.dtype
    for name, value in (("end", end), ("weight", weight)):
        if isinstance(value, Tensor) and value.dtype is not dtype:
            raise DTypeError(f"lerp: self and {name} must have one dtype, got {dtype.name} and {value.dtype.name}")
    refuse(dtype, "lerp", BOOL, INT)
    refuse_complex(dtype, "lerp", weight)
    tensors = [value for value in (self, end, weight) if isinstance(value, Tensor)]
    shape = broadcast_all([t.array.shape for t in tensors])
    return Out(shape, dtype, as_operands(shape, *tensors))


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any = 1) -> Out | Result:
    """self + value * tensor1 * tensor2, all promoted together."""
    computed = result_type(self, tensor1, tensor2)
    refuse(computed, "addcmul", BOOL)
    return _accumulated("addcmul", self, tensor1, tensor2, value, computed)


def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any = 1) -> Out | Result:
    """self + value * tensor1 / tensor2. Raises DTypeError for a quotient of integers."""
    if tensor1.dtype.category <= INT and tensor2.dtype.category <= INT:
        raise DTypeError("addcdiv: tensor1 and tensor2 are integers; divide with div and its rounding_mode instead")
    return _accumulated("addcdiv", self, tensor1, tensor2, value, result_type(self, tensor1, tensor2))


def _accumulated(name: str, self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any, computed: DType) -> Result:
    check_alpha(name, value, computed, "value")
    operands = {"self": self, "tensor1": tensor1, "tensor2": tensor2}
    shape = broadcast_all([t.array.shape for t in operands.values()])
    casts = {name: computed for name, t in operands.items() if t.dtype is not computed}
    return Result(Out(shape, computed, as_operands(shape, self, tensor1, tensor2)), casts)


# ---- the table


# fmt: off
SHAPES: ShapeTable = {
    "floor.out": keep_dtype,
    "ceil.out": keep_dtype,
    "round.out": keep_dtype,
    "trunc.out": keep_dtype,
    "abs.out": absolute,
    "neg.out": negated,
    "sign.out": signed,
    "exp.out": floating,
    "expm1.out": floating,
    "log.out": floating,
    "log1p.out": floating,
    "sqrt.out": floating,
    "rsqrt.out": floating,
    "sin.out": floating,
    "cos.out": floating,
    "tanh.out": floating,
    "reciprocal.out": floating,
    "isnan.out": exact_truth,
    "logical_not.out": truth,
    "bitwise_not.out": inverted,
    "add.out": add,
    "sub.out": sub,
    "rsub.Tensor_out": subtracted,
    "mul.out": mul,
    "div.out": div,
    "div.out_mode": div_mode,
    "floor_divide.out": floor_divide,
    "remainder.Tensor_out": remainder,
    "pow.Tensor_Tensor_out": pow,
    "pow.Tensor_Scalar_out": pow,
    "maximum.out": ordered,
    "minimum.out": ordered,
    "eq.Tensor_out": equality,
    "ne.Tensor_out": equality,
    "lt.Tensor_out": comparison,
    "le.Tensor_out": comparison,
    "gt.Tensor_out": comparison,
    "ge.Tensor_out": comparison,
    "logical_and.out": logical,
    "logical_or.out": logical,
    "logical_xor.out": logical,
    "bitwise_and.Tensor_out": bitwise,
    "bitwise_or.Tensor_out": bitwise,
    "bitwise_xor.Tensor_out": bitwise,
    "where.self_out": where,
    "clamp.out": clamp,
    "clamp.Tensor_out": clamp,
    "lerp.Scalar_out": lerp,
    "addcmul.out": addcmul,
    "square.out": squared,
    "fmod.Tensor_out": remainder,
    "float_power.Tensor_Tensor_out": float_power,
    "clamp_min.Tensor_out": clamped("min"),
    "clamp_max.Tensor_out": clamped("max"),
    "lerp.Tensor_out": lerp,
    "addcdiv.out": addcdiv,
}
# fmt: on
