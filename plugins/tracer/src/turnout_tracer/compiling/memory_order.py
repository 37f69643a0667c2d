"""Graphs in which `as_strided` means the same whatever strides an engine's values have.

`as_strided` counts elements in the order in which they lie in memory. That of a transposed tensor is another one than that of its
elements, and the values of an engine may be row-major. So such a tensor is turned until its elements are in the order of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import turnout
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import is_dense
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.errors import NotLoweredError
from turnout_tracer.nodes import Constant, Node, Ref, mapped, refs_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STRIDED = "as_strided"  # how the names of operators begin that may read any place of a tensor's memory


def is_strided(nodes: Iterable[Node]) -> bool:
    """Whether one of the operators may read any place of a tensor's memory."""
    return any(node.op.name.startswith(STRIDED) for node in nodes)


def is_whole(tensor: Tensor) -> bool:
    """Whether a tensor is all of its memory."""
    if tensor.storage is None:
        return True
    size: int = tensor.device.backend.storage_size(tensor.storage.memory.array)
    return size == tensor.numel() and tensor.storage_offset() == 0 and is_dense(tuple(tensor.shape), tensor.stride())


def fake_like(tensor: Tensor) -> Tensor:
    """A fake tensor of the active mode, with memory of its own, for a tensor or a fake one of another mode."""
    made: Tensor = aten.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=str(tensor.device))
    return made


def in_memory_order(nodes: list[Node], constants: list[Constant], examples: Sequence[Any]) -> list[Node]:
    """The nodes, with `as_strided` of row-major tensors alone. Raises NotLoweredError where it may see more than a tensor."""
    if not is_strided(nodes):
        return nodes
    mode = turnout.FakeMode()
    known: dict[int, Any] = {}
    made: list[Node] = []
    numbers = [ref.index for node in nodes for ref in refs_in((node.args, node.outputs))]
    count = max([len(examples) - 1, *[each.ref.index for each in constants], *numbers]) + 1
    permute, clone = turnout.ops.aten.permute.default, turnout.ops.aten.clone.default
    with no_grad(), mode:
        for i, each in enumerate(examples):
            known[i] = fake_like(each) if isinstance(each, Tensor) else mode.generator(turnout.device(str(each.device)))
        known.update({each.ref.index: fake_like(each.tensor) for each in constants})
        for node in nodes:
            found = node.op.call_boxed(mapped(lambda each: known[each.index] if isinstance(each, Ref) else each, node.args))
            _note(node.outputs, found, known)
            if not node.op.name.startswith(STRIDED):
                made.append(node)
                continue
            given = known[node.args[0].index]
            if not is_whole(given):
                raise NotLoweredError(errors.outside_of_tensor())
            order = sorted(range(given.ndim), key=lambda dim: (-given.stride(dim), dim))
            if order == sorted(order):
                made.append(node)
                continue
            # A copy: an engine may make the view of a value in another order than this one.
            made.append(Node(permute, (node.args[0], order), Ref(count), True, node.line))
            made.append(Node(clone, (Ref(count), "contiguous_format"), Ref(count + 1), True, node.line))
            turned, outputs = (Ref(count + 1), *node.args[1:]), node.outputs
            count += 2
            if node.op.name == "as_strided_scatter":  # its result has the shape of what it is given
                made.append(Node(node.op, turned, Ref(count), node.no_grad, node.line))
                back = [order.index(dim) for dim in range(given.ndim)]
                made.append(Node(permute, (Ref(count), back), outputs, True, node.line))
                count += 1
            else:
                made.append(Node(node.op, turned, outputs, node.no_grad, node.line))
    return made


def _note(outputs: Any, found: Any, known: dict[int, Any]) -> None:
    """Keep the results of a call."""
    if isinstance(outputs, Ref):
        known[outputs.index] = found
    elif isinstance(outputs, (list, tuple)):
        for output, each in zip(outputs, found, strict=True):
            _note(output, each, known)
