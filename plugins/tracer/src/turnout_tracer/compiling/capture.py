"""The first call with a signature: it runs eagerly, and is recorded.

What ran is a `Recording` whose values begin with the tensors of the signature. A tensor that comes from another place, a value
that is read, and a shape that depends on values are noted: then there is no program, and the call was an eager one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.config.effects import told_of_effects
from turnout.explanation.user_frames import user_frame
from turnout.guards import during
from turnout.operators.values import tensors_in
from turnout.state import in_effect
from turnout_aten.declarations.tables import DATA_DEPENDENT, DYNAMIC_SHAPE, RESIZES
from turnout_aten.shapes.indexing import MASK_DTYPES
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.reads import told_of_reads
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import errors
from turnout_tracer.recording import RECORDING, TRACER, UNSEEN, Recording, while_tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator
    from turnout_tracer.compiling.signatures import Walk
    from turnout_tracer.nodes import Ref


class Capture(Recording):
    """A recorded eager call.

    reason   why it does not become a program, or ""
    changed  whether the reason is that the call changes Python objects, which it may do once: state that is made at first use
    has_own_gradients  whether gradients of its results may be others than those of its operators
    """

    admits_traces = True  # an eager call may trace: that is an effect, so no program misses it

    def __init__(self, walk: Walk, name: str, strict: bool) -> None:
        super().__init__()
        self._name = name
        self._strict = strict
        self._given = walk.arrays
        self.reason = ""
        self.changed = False
        self.has_own_gradients = False
        for tensor in walk.tensors:
            self.bind(tensor)
        for generator in walk.generators:
            self.bind(generator)

    def refuse(self, why: str, line: bool = True, strict: bool = True) -> None:
        """Note why there will be no program. Raises CompileError where the program asked for that, and `strict` is true."""
        if not self.reason:
            self.reason = errors.at(why, user_frame() if line else None)
            # RECORDS is no fault: gradients are recorded by the function itself.
            if self._strict and strict and why != errors.RECORDS:
                raise errors.CompileError(errors.not_compiled(self._name, self.reason))

    def changes(self, place: str) -> None:
        """Note that the call has changed a place that is not a tensor's."""
        if not self.reason:
            self.reason = errors.changed(place)
            self.changed = True

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call itself."""
        with told_of_reads(self._told_of_read):
            recorded = partial(during, RECORDING, self, while_tracing, lambda: function(*args, **kwargs))
            return told_of_effects(self._told_of_effect, recorded)

    def _told_of_read(self, what: str) -> None:
        if in_effect(TRACER) & TRACER:  # else a kernel reads, which is its own affair
            self.refuse(errors.read(what))

    def _told_of_effect(self, what: str, of_first_use: bool, of_gradients: bool) -> None:
        if not in_effect(TRACER) & TRACER:  # as above
            return
        if of_gradients:
            self.has_own_gradients = True
        else:
            self.changed = self.changed or (of_first_use and not self.reason)
            self.refuse(errors.effect(what), strict=not of_first_use)

    # ---- what the recording asks

    def _capture(self, tensor: Tensor) -> Ref:
        """A tensor that is no value of the graph: one that was made from data in the call is a constant."""
        if tensor.version() < self._epoch or self.shares(tensor) or type(tensor) is not Tensor or tensor.fake_mode is not None:
            self.refuse(errors.HIDDEN_TENSOR)
        if self.reason:
            return self.bind(tensor)
        if self._given and UNSEEN.run(self._is_over_array, tensor):
            self.refuse(errors.OVER_ARRAY)
        return self.keep(tensor)

    def _is_over_array(self, tensor: Tensor) -> bool:
        """Whether a tensor lies in the memory of an array of the program, as those of `as_tensor` do."""
        if tensor.device.type != "cpu" or not tensor.numel():
            return False
        first = tensor.data_ptr()
        for each in self._given:
            steps = [(n - 1) * step for n, step in zip(each.shape, each.strides, strict=True)]
            start = each.__array_interface__["data"][0]
            if start + sum(min(0, step) for step in steps) <= first < start + sum(max(0, step) for step in steps) + each.itemsize:
                return True
        return False

    def _admit_write(self, op: Operator, argument: str, tensor: Tensor) -> None:
        self.mark_written(tensor)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Generator) and self.known(value) is None:
            self.refuse(errors.HIDDEN_GENERATOR)
        return super()._argument(value)

    def add(self, op: Operator, args: tuple[Any, ...], arguments: tuple[Any, ...], result: Any, off: bool) -> None:
        """Add a call that ran."""
        if DATA_DEPENDENT in op.tags or (DYNAMIC_SHAPE in op.tags and _is_dynamic(op, args)):
            self.refuse(errors.read(op.qualified_name) if DATA_DEPENDENT in op.tags else errors.dynamic(op.qualified_name))
        elif RESIZES in op.tags:
            self.refuse(errors.effect(op.qualified_name))
        elif any(type(each) not in (Tensor, Generator) for each in tensors_in(args)):
            self.refuse(errors.HIDDEN_TENSOR)
        super().add(op, args, arguments, result, off)

    def _warn_of_number(self, op: Operator, args: tuple[Any, ...], result: Any) -> None:
        if op.name not in ABOUT_SHAPES:
            self.refuse(errors.read(op.qualified_name))

    # ---- what lowering asks

    def first_over(self, tensor: Tensor) -> Tensor:
        """The tensor that was met first over the memory of another one."""
        if tensor.storage is None:
            return tensor
        memory = tensor.storage.memory
        for each in self._alive:
            if isinstance(each, Tensor) and each.storage is not None and each.storage.memory is memory:
                return each
        return tensor


# Operators whose number says nothing about values. All others that return one read values.
ABOUT_SHAPES = frozenset(
    ("is_floating_point", "is_complex", "is_signed", "is_same_size", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset",
     "sym_is_contiguous", "_assert_tensor_metadata")
)  # fmt: skip


def _is_dynamic(op: Operator, args: tuple[Any, ...]) -> bool:
    """Whether the shape of the result depends on values, for an operator of which that can be said."""
    if op.name == "index":
        return any(each is not None and each.dtype in MASK_DTYPES for each in args[1])
    if op.name == "one_hot":
        return bool(args[1] < 0)
    if op.name == "repeat_interleave":
        return args[1] is None
    return True
