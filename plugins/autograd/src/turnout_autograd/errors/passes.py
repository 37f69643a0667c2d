"""Backward passes: what they start from, what they reach, and what goes wrong on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten.errors.tensors import REQUIRE
from turnout_aten.errors.transforms import TRANSFORM_INSIDE
from turnout_aten.tensor.levels import VERSION_MASK
from turnout_autograd.errors.described import tensor_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout import Tensor


def freed(name: str) -> str:
    return (
        f"{name}: an earlier backward pass freed the values saved for it\n"
        "  to fix  pass retain_graph=True to the earlier backward() or grad(), or compute the result again"
    )


def changed(name: str, argument: str, tensor: Tensor, saved: int, now: int) -> str:
    return (
        f"{name}: its saved '{argument}', a tensor {tensor_text(tensor)}, was changed in place after it was used\n"
        f"  saved at version  {saved & VERSION_MASK}\n  now at version    {now & VERSION_MASK}\n"
        "  to fix  write into a clone(), or change it after backward()"
    )


def no_graph(functional: bool) -> str:
    if functional:
        return (
            "backward: only a functional transform that is running tracks the tensor, so no leaf has a .grad to add to\n"
            "  to fix  use turnout.func.grad or vjp inside of the transformed function"
        )
    return f"backward: the tensor does not require a gradient and was not computed from one that does\n{REQUIRE}"


def not_scalar(tensor: Tensor) -> str:
    return (
        f"backward: the gradient can be omitted only for a tensor of one element; this one is {tensor_text(tensor)}\n"
        "  to fix  reduce it with sum() or mean(), or pass the gradient"
    )


def not_real(tensor: Tensor) -> str:
    return (
        f"backward: the gradient can be omitted only for a real tensor; this one is {tensor_text(tensor)}\n"
        "  to fix  pass the gradient"
    )


def _output(tensor: Tensor, index: int) -> str:
    node = getattr(tensor.node, "node", tensor.node)
    return f"output {index}" if node is None else f"output {index}, made by {node.op_name},"


def gradient_shape(gradient: Tensor, tensor: Tensor, index: int) -> str:
    return f"gradient {index} has shape {list(gradient.shape)}, {_output(tensor, index)} has shape {list(tensor.shape)}"


def gradient_device(gradient: Tensor, tensor: Tensor, index: int) -> str:
    return f"gradient {index} is on {gradient.device}, {_output(tensor, index)} is on {tensor.device}"


def gradient_type(value: Any, index: int) -> str:
    return f"gradient {index} must be a tensor or None, not {type(value).__name__}"


def not_tensors(name: str, what: str, index: int, value: Any) -> str:
    return f"{name}: {what} {index} must be a tensor, not {type(value).__name__}"


def unused_contradiction() -> str:
    return "grad: materialize_grads=True gives zeros for unused inputs, which allow_unused=False refuses; omit one of them"


def gradient_count(given: int, wanted: int) -> str:
    return f"{given} gradients were given for {wanted} outputs"


def gradient_kind(gradient: Tensor, tensor: Tensor, index: int) -> str:
    return (
        f"gradient {index} is {gradient.dtype.name}, {_output(tensor, index)} is {tensor.dtype.name}: "
        "both must be complex, or neither"
    )


def unused(index: int) -> str:
    return (
        f"grad: input {index} was not used to compute the outputs\n"
        "  to fix  allow_unused=True gives None for it, materialize_grads=True gives zeros"
    )


def input_untracked(name: str, index: int) -> str:
    return f"{name}: input {index} does not require a gradient"


def no_inputs(name: str) -> str:
    return f"{name}: inputs is empty; omit it to reach every leaf"


def leaf_shape(gradient: Tensor, leaf: Tensor) -> str:
    return (
        f"a gradient of shape {list(gradient.shape)} came back for a leaf of shape {list(leaf.shape)}: "
        "a formula or hook gives the wrong shape"
    )


def node_called(name: str, wanted: int, given: Sequence[Any]) -> str:
    kinds = ", ".join(type(each).__name__ for each in given) or "nothing"
    return f"{name}: its node takes a gradient for each of its {wanted} outputs, a tensor or None; got {kinds}"


def edge_of_untracked() -> str:
    return "get_gradient_edge: the tensor does not require a gradient"


def edge_inside_vmap() -> str:
    return "a gradient edge belongs to a tensor outside of vmap, which all examples share; pass the tensor itself"


def edge_unknown(index: int) -> str:
    return (
        f"output {index} is a GradientEdge that does not know its tensor, so its gradient cannot be omitted\n"
        "  to fix  pass the gradient, or make the edge with get_gradient_edge(tensor)"
    )


def edge_zeros(index: int) -> str:
    return f"grad: materialize_grads=True makes zeros like a tensor, but input {index} is a GradientEdge; pass the tensor"


def retain_untracked() -> str:
    return "retain_grad: the tensor does not require a gradient"


def retain_in_level() -> str:
    return (
        "retain_grad: a functional transform that is running tracks this tensor, and its gradients are not stored in a .grad\n"
        "  to fix  read the gradient with register_hook, or differentiate with respect to the tensor"
    )


def formula_count(name: str, arguments: str, given: str, wanted: int) -> str:
    return f"{name}: its formula for '{arguments}' returned {given}, {wanted} were expected"


UNNOTED = "    a time before detect_anomaly"


def failed_at(name: str, line: str) -> str:
    return f"{name}: its backward failed\n  recorded at\n{line.rstrip()}"


def nan_found(name: str, index: int, line: str) -> str:
    return f"{name}: its backward gave NaN for input {index}\n  recorded at\n{line.rstrip()}"


def inside_vmap() -> str:
    return (
        "grad: inside vmap, outputs and inputs must be batched by the same vmaps: the gradient with respect to a tensor that all "
        "examples share would be summed over them\n"
        f"{TRANSFORM_INSIDE}"
    )


def backward_inside_vmap() -> str:
    return f"backward: it cannot run on tensors inside vmap, because all examples would share one .grad\n{TRANSFORM_INSIDE}"
