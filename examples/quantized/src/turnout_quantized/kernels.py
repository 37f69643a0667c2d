"""What operators do with quantized tensors, as a table. What is not in it is an error: no operator takes codes for values.

All rules are written in operators on plain tensors, so they run on every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import turnout
from turnout.errors import ArgumentError, NoKernelError
from turnout.keys import KEYS
from turnout.operators import tensors_in
from turnout.state import exclude
from turnout_aten.plugin_api import Tensor
from turnout_quantized.tensors import KEY, QuantizedTensor, decode, encode, fitting, of_codes

if TYPE_CHECKING:
    from turnout.operators import Operator

    Rule = Callable[..., Any]


def value(x: Tensor) -> Tensor:
    """The values of a tensor that may be quantized."""
    return decode(x) if isinstance(x, QuantizedTensor) else x


def again(x: Tensor, *operands: Tensor) -> Tensor:
    """A result, quantized by its own range if all operands are; beside a plain tensor the result is plain."""
    return encode(x, *fitting(x)) if all(isinstance(operand, QuantizedTensor) for operand in operands) else x


# ---- rules, which take all arguments of the schema by position


def add(self: Tensor, other: Tensor, alpha: Any) -> Tensor:
    return again(turnout.add(value(self), value(other), alpha=alpha), self, other)


def sub(self: Tensor, other: Tensor, alpha: Any) -> Tensor:
    return again(turnout.sub(value(self), value(other), alpha=alpha), self, other)


def mul(self: Tensor, other: Tensor) -> Tensor:
    return again(turnout.mul(value(self), value(other)), self, other)


def relu(self: QuantizedTensor) -> Tensor:
    """Exact: codes are ordered as their values are."""
    return of_codes(self.codes.clamp(self.zero_point), self.scale, self.zero_point)


def product(self: Tensor, mat2: Tensor) -> Tensor:
    """The values of a matrix product. Of two quantized matrices it is a sum of integers, scaled once."""
    if not (isinstance(self, QuantizedTensor) and isinstance(mat2, QuantizedTensor)):
        made: Tensor = turnout.mm(value(self), value(mat2))
        return made
    whole: Tensor = turnout.mm(self.codes.to(turnout.int32) - self.zero_point, mat2.codes.to(turnout.int32) - mat2.zero_point)
    return whole.to(turnout.float32) * (self.scale * mat2.scale)


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    return again(product(self, mat2), self, mat2)


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
    return again(value(self) * beta + product(mat1, mat2) * alpha, mat1, mat2)


def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Of tensors with one scale and zero point; `stack` and `roll` are made of it."""
    parts = [q for q in tensors if isinstance(q, QuantizedTensor)]
    kinds = {(q.scale, q.zero_point) for q in parts}
    if len(kinds) > 1 or len(parts) < len(tensors):
        raise ArgumentError(
            "aten::cat: the tensors are not all quantized with one scale and zero point\n"
            "  to fix  call it with x.dequantize(), and quantize the result"
        )
    [(scale, zero_point)] = kinds
    return of_codes(turnout.cat([q.codes for q in parts], dim), scale, zero_point)


def to_copy(
    self: QuantizedTensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, non_blocking: bool, memory_format: Any
) -> Tensor:
    """Onto another device. To another dtype it would be another kind of tensor."""
    if dtype not in (None, turnout.int8):
        raise missing("aten::_to_copy", f" to {dtype.name}")
    return of_codes(self.codes.to(device, copy=True), self.scale, self.zero_point)


RULES: dict[str, Rule] = {
    "quantized::dequantize": decode,
    "aten::add.Tensor":      add,
    "aten::sub.Tensor":      sub,
    "aten::mul.Tensor":      mul,
    "aten::relu":            relu,
    "aten::mm":              mm,
    "aten::addmm":           addmm,
    "aten::cat":             cat,
    "aten::_to_copy":        to_copy,
}  # fmt: skip

# These only move elements: they do to the codes what they do to the values. So do all view operators, except those that read
# the memory in another way.
MOVES = ("clone", "flip", "gather", "index.Tensor", "index_select", "masked_select", "repeat", "take")
NO_MOVES = ("aten::view.dtype", "aten::view_as_real", "aten::view_as_complex")


def moved(op: Operator) -> Rule:
    """The rule of an operator that only moves elements."""

    def move(self: QuantizedTensor, *args: Any) -> Any:
        made = op.call_boxed((self.codes, *args))
        if isinstance(made, Tensor):
            return of_codes(made, self.scale, self.zero_point)
        return [of_codes(part, self.scale, self.zero_point) for part in made]

    return move


def specialize(op: Operator) -> Any:
    """The kernel of one operator at every key of Quantized."""
    moves = op.schema.is_view and op.qualified_name not in NO_MOVES
    if moves or op.qualified_name.removeprefix("aten::") in MOVES:
        return as_kernel(moved(op), op)
    return as_kernel(RULES.get(op.qualified_name), op)


def as_kernel(rule: Rule | None, op: Operator) -> Rule:
    """A boxed kernel, which takes `(op, keyset, args)`. The operators of the rule are called without the key."""

    def call_rule(op: Operator, keyset: int, args: tuple[Any, ...]) -> Any:
        bit = KEYS.bit(KEY)
        keyed = [tensor for tensor in tensors_in(args) if tensor.keys & bit]
        with exclude(KEY):
            if not keyed:  # the key is in the set because the state includes it
                return op.redispatch(keyset & ~bit, *args)
            if not all(isinstance(tensor, QuantizedTensor) for tensor in keyed):
                raise ArgumentError(
                    f"{op.qualified_name}: a tensor has the key {KEY}, but no scale\n"
                    "  to fix  make it with turnout.quantized.quantize"
                )
            if rule is None:
                raise missing(op.qualified_name)
            return rule(*args)

    call_rule.__name__ = call_rule.__qualname__ = "no rule" if rule is None else rule.__name__
    return call_rule


def missing(operator: str, how: str = "") -> NoKernelError:
    """The error of an operator without a rule."""
    return NoKernelError(
        f"{operator}{how}: no kernel for quantized tensors\n  to fix  call it with x.dequantize(), and quantize the result"
    )
