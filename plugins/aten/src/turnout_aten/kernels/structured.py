"""Structured operators: one array kernel serves the functional, the in-place and the out variant.

Each variant has a wrapper (in `functional`, `inplace` and `outputs`): it turns the kernel into a callable of the internal
convention on tensors. Each wrapper has a *general path*: ask the shape function, allocate or check the outputs, call the kernel.
Other paths come before it. The *planned path* (`planning`) takes what the shape function answered for a call with the same shapes
and dtypes. The *fast path*, if the row allows it, comes first of all: the dtypes are the same and the kernel allocates. A write
copies what the functional variant computes (`writes`). If one of them raises, the general path runs, so that errors do not depend
on the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout_aten.shapes.specs import Result, as_result, shape_facts
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]
    ShapeFunction = Callable[..., Any]


class Structured:
    """The facts that the wrapper of one variant needs about its operator.

    op          the variant
    shape       the group's shape function, called with the functional arguments
    precomputed argument name -> the names that replace it for the kernel; "" -> additional names
    facts       what the shape function says of itself
    given       how many arguments the kernel gets before its outputs
    """

    __slots__ = (
        "dtype_at",
        "facts",
        "given",
        "inputs",
        "lists",
        "names",
        "op",
        "outs",
        "plain",
        "plannable",
        "precomputed",
        "required",
        "shape",
        "tensors",
    )

    def __init__(self, op: Operator, shape: ShapeFunction, precomputed: Mapping[str, tuple[str, ...]]) -> None:
        self.op = op
        self.shape = shape
        self.facts = shape_facts(shape)
        self.precomputed = precomputed
        schema = op.schema
        outs = {a.name for a in schema.out_arguments}
        self.names = [a.name for a in schema.arguments if a.name not in outs]
        self.outs = len(outs)
        self.tensors = [a.name for a in schema.arguments if a.name not in outs and a.type.is_tensor]
        self.inputs = [a for a in schema.arguments if a.name not in outs]
        self.given = sum(len(precomputed.get(a.name, (a.name,))) for a in self.inputs) + len(precomputed.get("", ()))
        self.plain = [a.name for a in self.inputs if not a.type.is_tensor_like]
        self.required = [a.name for a in self.inputs if a.type.is_tensor_like and not a.type.canonical.endswith("?")]
        self.lists = any(a.type.is_tensor_list for a in self.inputs)
        # A generator's state, or a tensor that the kernel does not get, is no part of a key.
        self.plannable = bool(self.required) and not any(
            a.type.canonical.startswith("Generator") or (a.type.is_tensor_like and a.name in precomputed) for a in self.inputs
        )
        self.dtype_at = self.names.index("dtype") if self.facts.dtype_of_out and "dtype" in self.names else None

    def answer(self, *args: Any) -> Result:
        """What the shape function says of these arguments."""
        return as_result(self.shape(*args))

    def inputs_for(self, target: Tensor, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with the dtype of the tensor that is written where this decides."""
        at = self.dtype_at
        return args if at is None or args[at] is not None else (*args[:at], target.dtype, *args[at + 1 :])

    def kernel_arguments(self, backend: TensorBackend, args: Sequence[Any], result: Result) -> list[Any]:
        """The kernel's positional arguments before the outputs: arrays, converted if the shape function says so."""
        casts = result.casts
        if not casts and not result.precomputed:
            return [
                value.array if value.__class__ is Tensor else value if value.__class__ in AS_IS else to_array(backend, value)
                for value in args
            ]
        values: list[Any] = []
        for name, value in zip(self.names, args, strict=False):
            if name in self.precomputed:
                values += [result.precomputed[n] for n in self.precomputed[name]]
                continue
            if name in result.precomputed:
                value = result.precomputed[name]
            values.append(to_array(backend, value, casts.get(name)))
        values += [result.precomputed[n] for n in self.precomputed.get("", ())]
        return values


AS_IS = frozenset({type(None), bool, float, int})


def to_array(backend: TensorBackend, value: Any, dtype: Any = None) -> Any:
    """An argument as the kernel receives it: tensors become arrays of this backend, converted to `dtype`; also inside lists."""
    if isinstance(value, Tensor):
        array = value.array
        if dtype is not None and backend.dtype_of(array) is not dtype:
            converted = backend.empty(array.shape, dtype, value.device)
            backend.copy(converted, array)
            return converted
        return array
    if not isinstance(value, (list, tuple)) or not value:
        return value
    if value[0].__class__ is Tensor or any([isinstance(v, Tensor) for v in value]):  # noqa: C419 - no generator's frames
        return [v.array if v.__class__ is Tensor and dtype is None else to_array(backend, v, dtype) for v in value]
    return value


def first_device(args: Sequence[Any]) -> Device:
    """The device of the first tensor of a call, looking into lists."""
    for value in args:
        if isinstance(value, Tensor):
            return value.device
        if isinstance(value, (list, tuple)):
            for element in value:
                if isinstance(element, Tensor):
                    return element.device
    raise AssertionError("a backend's structured kernel was called without a tensor")
