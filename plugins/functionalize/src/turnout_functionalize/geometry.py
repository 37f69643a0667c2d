"""Calls on meta tensors beside the values.

A functional value may have other strides than the tensor that the function believes to have: a copy of a transposed view is
row-major. What depends on strides (whether `view` needs a copy, where `as_strided` goes, whether a write meets overlapping
elements) is asked of meta tensors, on which every view and write is done as it stands in the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError, DimError, DTypeError, NoKernelError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import reach_of
from turnout_aten.tensor.tensor import Tensor
from turnout_functionalize.memories import Part
from turnout_functionalize.regions import silently

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout.operators import Operator

# What a shape function says of a call. Other errors are about meta tensors: that they have no data, or no kernel.
_ABOUT_SHAPES = (AliasError, DimError, DTypeError, ShapeError)


def shadow_of(part: Part) -> Tensor:
    """The part as a meta tensor. Tensors over one memory have shadows over one memory."""
    found = part.shadow
    if found is None:
        memory = part.memory
        if memory.root is None:
            memory.root = silently(_meta, memory.base)
        found = memory.root
        for link in part.links:
            made = silently(link.op.call_boxed, (found, *link.args))
            found = made if link.index is None else made[link.index]
        part.shadow = found
    return found


def _meta(value: Tensor) -> Tensor:
    """A meta tensor with the shape, strides and offset of a value."""
    shape, strides, offset = value.shape, value.stride(), value.storage_offset()
    size = offset + reach_of(shape, strides)
    memory = aten.empty__memory_format((size,), dtype=value.dtype, device="meta")
    return aten.as_strided(memory, shape, strides, offset)


def viewed(op: Operator, part: Part, args: tuple[Any, ...]) -> Any:
    """The result of a view operator on the shadow. Raises what the operator raises for such a tensor."""
    return silently(op.call_boxed, (shadow_of(part), *args))


def check_write(op: Operator, args: tuple[Any, ...]) -> bool:
    """Do a write to the shadows. Raises what the operator raises for tensors of such shapes, strides and dtypes.

    False where meta tensors cannot say it.
    """
    try:
        silently(op.call_boxed, shadows_of(args))
    except NoKernelError:
        return False
    except _ABOUT_SHAPES:
        raise
    except Exception:  # noqa: BLE001 - a meta tensor has no data, and kernels say that in many ways
        return False
    return True


def result_dtype(op: Operator, args: tuple[Any, ...]) -> DType | None:
    """The dtype of what an operator returns; None where it raises, or meta tensors cannot say it."""
    try:
        made = silently(op.call_boxed, shadows_of(args))
    except Exception:  # noqa: BLE001 - as above
        return None
    return made.dtype if isinstance(made, Tensor) else None


def shadows_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with their shadows in place of tensors; one tensor has one shadow."""
    made: dict[int, Tensor] = {}

    def shadowed(value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in made:
                shadow = shadow_of(value.array) if isinstance(value.array, Part) else silently(_meta, value)
                # An alias: the operator may resize it, or turn it.
                made[id(value)] = shadow.new_alias(shadow.array, shadow.storage_offset())
            return made[id(value)]
        if isinstance(value, (list, tuple)):
            return [shadowed(each) for each in value]
        return value

    return tuple([shadowed(arg) for arg in args])
