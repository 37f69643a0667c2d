"""Every error of gradients that is not core's: the class, and the texts of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import TurnoutError
from turnout_aten.tensor.levels import VERSION_MASK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout import Tensor
    from turnout.operators import Operator


class GradientError(TurnoutError, RuntimeError):
    """A gradient that cannot be computed."""


class DrawingError(TurnoutError, RuntimeError):
    """A drawing that cannot be made."""


def tensor_text(tensor: Tensor) -> str:
    return f"{tensor.dtype.name} {list(tensor.shape)}"


def freed(name: str) -> str:
    return (
        f"{name}: what it saved for the backward pass was freed by an earlier one\n"
        "  to fix  pass retain_graph=True to the earlier backward() or grad(), or compute the result again"
    )


def pack_hook_wrote() -> str:
    return (
        "a pack hook of saved_tensors_hooks wrote into the tensor it was given, which the program goes on using\n"
        "  to fix  return something new, such as a clone()"
    )


def unpack_hook_result(name: str, given: object) -> str:
    return f"{name}: the unpack hook of saved_tensors_hooks must return a tensor, got {type(given).__name__}"


def not_incremented(given: object) -> str:
    return f"increment_version: takes a tensor or several, got {type(given).__name__}"


def changed(name: str, argument: str, tensor: Tensor, saved: int, now: int) -> str:
    return (
        f"{name}: its saved '{argument}', a tensor {tensor_text(tensor)}, was changed in place after it was used\n"
        f"  saved at version  {saved & VERSION_MASK}\n  now at version    {now & VERSION_MASK}\n"
        "  to fix  write into a clone(), or change it after backward()"
    )


def leaf_written(name: str, view: bool) -> str:
    what = "a view of a leaf" if view else "a leaf"
    return (
        f"{name}: self is {what} that requires a gradient, which cannot be changed in place\n"
        "  to fix  write under turnout.no_grad(), or into a clone()"
    )


def level_input_written(name: str) -> str:
    return (
        f"{name}: self is an input of a gradient transform, or a view of one, which cannot be changed in place\n"
        "  to fix  write into a clone()"
    )


def captured_written(name: str) -> str:
    return (
        f"{name}: self is older than the gradient transform whose values would be written into it\n"
        "  to fix  write into a tensor made inside the transformed function, and return it"
    )


def several_views_written(name: str, maker: str) -> str:
    return (
        f"{name}: self is one of several views that {maker} returned together, which cannot be changed in place\n"
        "  to fix  take one view at a time (select, slice), or write into a clone()"
    )


def custom_view_written(name: str, maker: str) -> str:
    return (
        f"{name}: self is a view that {maker} made in its own forward, whose gradient a write would bypass\n"
        "  to fix  clone() it inside the forward, or before the write"
    )


def out_given(name: str, argument: str) -> str:
    return (
        f"{name}: '{argument}' requires a gradient, and operators with out= do not record gradients\n"
        "  to fix  call it without out=, or under turnout.no_grad()"
    )


def not_implemented(name: str, argument: str = "", reason: str = "") -> str:
    with_respect = f" with respect to '{argument}'" if argument else ""
    why = f": {reason}" if reason else ""
    return (
        f"{name}: no gradient{with_respect} is implemented{why}\n"
        f"  to fix  turnout.library.register_autograd({name!r}, backward), or .detach() its inputs"
    )


def not_implemented_warned(name: str) -> str:
    return (
        f"{name}: no gradient is implemented and the inputs of this call get none\n"
        '  to fix  turnout.library.register_autograd, or the option plugin.autograd.missing = "error"'
    )


def no_graph(functional: bool) -> str:
    if functional:
        return (
            "backward: only a functional transform that is running tracks the tensor, so there is no leaf whose .grad to add to\n"
            "  to fix  use turnout.func.grad or vjp inside of the transformed function"
        )
    return (
        "backward: the tensor does not require a gradient and was not computed from one that does\n"
        "  to fix  requires_grad=True on an input; nothing is recorded under turnout.no_grad()"
    )


def not_scalar(tensor: Tensor) -> str:
    return (
        f"backward: only for a tensor of one element can the gradient be left out, this one is {tensor_text(tensor)}\n"
        "  to fix  reduce it with sum() or mean(), or pass the gradient"
    )


def not_real(tensor: Tensor) -> str:
    return (
        f"backward: the gradient can be left out for real tensors only, this one is {tensor_text(tensor)}\n"
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
    return "grad: materialize_grads=True gives zeros for unused inputs, which allow_unused=False refuses; leave one out"


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
    return f"{name}: inputs is empty; leave it out to reach every leaf"


def leaf_shape(gradient: Tensor, leaf: Tensor) -> str:
    return (
        f"a gradient of shape {list(gradient.shape)} came back for a leaf of shape {list(leaf.shape)}: "
        "a formula or hook gives the wrong shape"
    )


def hook_on_untracked() -> str:
    return "a hook can be registered only on a tensor that requires a gradient"


def hook_result(value: Any) -> str:
    return f"a hook must return a tensor or None, not {type(value).__name__}"


def hook_changed(given: Tensor, gradient: Tensor) -> str:
    return (
        f"a hook returned {tensor_text(given)} on {given.device} for a gradient {tensor_text(gradient)} on {gradient.device}; "
        "all of these must stay as they are"
    )


def hook_for_none() -> str:
    return "a hook returned a tensor in the place of a gradient that is None"


def node_hook_result(name: str, value: Any) -> str:
    return f"{name}: a hook of its node must return a tuple or None, not {type(value).__name__}"


def node_hook_count(name: str, given: int, wanted: int) -> str:
    return f"{name}: a hook of its node returned {given} gradients for {wanted}"


def node_called(name: str, wanted: int, given: Sequence[Any]) -> str:
    kinds = ", ".join(type(each).__name__ for each in given) or "nothing"
    return (
        f"{name}: its node is called with the gradient of each of its {wanted} outputs, a tensor or None; got {kinds}"
    )


def edge_of_untracked() -> str:
    return "get_gradient_edge: the tensor does not require a gradient"


def edge_inside_vmap() -> str:
    return "a gradient edge belongs to a tensor outside of vmap, which all examples share; pass the tensor itself"


def edge_unknown(index: int) -> str:
    return (
        f"output {index} is a GradientEdge that does not know its tensor, so its gradient cannot be left out\n"
        "  to fix  pass the gradient, or make the edge by get_gradient_edge(tensor)"
    )


def edge_zeros(index: int) -> str:
    return (
        f"grad: materialize_grads=True gives zeros like a tensor, and input {index} is a GradientEdge; pass the tensor"
    )


def joint_mode(given: str) -> str:
    return f"register_multi_grad_hook: mode must be 'all' or 'any', got {given!r}"


def retain_untracked() -> str:
    return "retain_grad: the tensor does not require a gradient"


def retain_in_level() -> str:
    return (
        "retain_grad: a functional transform that is running tracks this tensor, and its gradients go to no .grad\n"
        "  to fix  see the gradient by register_hook, or differentiate with respect to the tensor"
    )


def post_hook_not_leaf() -> str:
    return "register_post_accumulate_grad_hook: only leaves accumulate; use register_hook"


def post_hook_result(value: Any) -> str:
    return f"a hook after the accumulation of .grad must return None, not {type(value).__name__}"


def formula_count(name: str, arguments: str, given: str, wanted: int) -> str:
    return f"{name}: its formula for '{arguments}' returned {given}, {wanted} were expected"


def function_count(name: str, given: int, wanted: int) -> str:
    return f"{name}.backward returned {given} gradients for {wanted} inputs of forward"


def function_extra(name: str, argument: str) -> str:
    return f"{name}.backward returned a gradient for {argument}, which is not a tensor"


def function_kind(name: str, argument: str, value: Any) -> str:
    return f"{name}.backward returned {type(value).__name__} for {argument}; a tensor or None was expected"


def function_shape(name: str, argument: str, gradient: Sequence[int], tensor: Sequence[int]) -> str:
    return f"{name}.backward returned a gradient of shape {list(gradient)} for {argument} of shape {list(tensor)}"


def function_once(name: str) -> str:
    return f"{name}: its backward is marked once_differentiable and cannot be differentiated again"


def function_not_input(name: str) -> str:
    return f"{name}: mark_dirty names a tensor that forward did not return"


def function_called(name: str) -> str:
    return f"{name}: an instance was called; forward and backward are static methods, and {name}.apply(...) calls them"


def saved_output_gone(index: int) -> str:
    return f"saved_tensors[{index}] is an output of forward, and the graph that it belongs to is gone; keep the output itself"


def function_marks(method: str, index: int, value: Any) -> str:
    return f"{method}: argument {index} must be a tensor, got {type(value).__name__}"


def function_flag(method: str, value: Any) -> str:
    return f"{method}: takes True or False, got {type(value).__name__}"


def function_both(name: str) -> str:
    return f"{name}: defines both backward and vjp, which are two names for one thing"


def function_keyword(name: str, argument: str) -> str:
    return (
        f"{name}: forward takes '{argument}' by keyword alone, and it is a tensor that requires a gradient or is inside vmap: "
        "only positional arguments have gradients and batches\n  to fix  take it without the '*' in front"
    )


def function_two_rules(name: str) -> str:
    return f"{name}: has a vmap rule and generate_vmap_rule=True, which says that it has none"


def function_complex(name: str, argument: str, gradient: Any, wanted: Any) -> str:
    return f"{name}.backward returned a {gradient.name} gradient for {argument}, which is {wanted.name}"


UNNOTED = "    a time before detect_anomaly"


def failed_at(name: str, line: str) -> str:
    return f"{name}: its backward failed\n  recorded at\n{line.rstrip()}"


def nan_found(name: str, index: int, line: str) -> str:
    return f"{name}: its backward gave NaN for input {index}\n  recorded at\n{line.rstrip()}"


def resized(name: str) -> str:
    return f"{name}: a tensor that requires a gradient cannot be resized; use reshape(), or detach() it first"


def function_wrote_view(name: str) -> str:
    return f"{name}: mark_dirty names a view, and forward returned more than that; write into its base, or clone() it"


def view_left_behind(writer: str, kind: str) -> str:
    """A view whose gradient cannot be computed after a recorded write into its base; `kind` says which view."""
    return (
        f"a view {kind} was used after {writer} had written into its base, which its gradient cannot follow\n"
        "  to fix  write before the view is made, or clone() the view"
    )


def made_in(maker: str) -> str:
    return f"that {maker} made in its own forward"


def made_together(maker: str) -> str:
    return f"that {maker} returned together with others"


MADE_UNRECORDED = "made under no_grad"


# ---- functional transforms


def not_a_tensor(name: str, what: str, value: object) -> str:
    return f"{name}: {what} must be a tensor, or nested tuples, lists and dicts of tensors; got {type(value).__name__}"


def aux_missing(name: str) -> str:
    return (
        f"{name}: with has_aux=True the function must return a tuple of two: what is differentiated, and anything else"
    )


def not_one_number(name: str, outputs: Sequence[Tensor], single: bool) -> str:
    found = tensor_text(outputs[0]) if single else f"{len(outputs)} tensors in a tuple, list or dict"
    return (
        f"{name}: the function must return one tensor without dimensions, it returned {found}\n"
        "  to fix  return a sum, or use jacrev"
    )


def not_floating(name: str, output: Tensor) -> str:
    return f"{name}: the function must return a floating-point number, it returned {tensor_text(output)}"


def not_differentiable(name: str, what: str, tensor: Tensor) -> str:
    return f"{name}: {what} must be floating-point or complex to be differentiated; got {tensor_text(tensor)}"


def nothing_returned(name: str) -> str:
    return f"{name}: the function returned no tensor"


def no_primals(name: str) -> str:
    return f"{name}: primals hold no tensor"


def chunk(name: str, size: Any) -> str:
    return f"{name}: chunk_size must be a positive int or None, got {size!r}"


def independent(name: str) -> str:
    return f"{name}: with strict=True every result must depend on the primals; one does not"


def complex_jacobian(name: str, what: str, tensor: Tensor) -> str:
    return (
        f"{name}: {what} is complex ({tensor_text(tensor)}), and there are two derivatives to choose from\n"
        "  to fix  differentiate a function between real tensors, with view_as_complex and view_as_real inside of it"
    )


def argnums_kind(name: str, given: Any) -> str:
    return f"{name}: argnums must be an int or a tuple of at least one int, got {given!r}"


def argnums_twice(name: str, given: Any) -> str:
    return f"{name}: argnums names an argument twice: {given!r}"


def argnums(name: str, given: Any, count: int) -> str:
    return f"{name}: argnums is {given!r}, and there are {count} positional arguments"


def other_structure(name: str, what: str) -> str:
    belongs = "result" if what == "cotangent" else "arguments"
    return f"{name}: the {what}s do not have the structure of the {belongs}"


def other_shape(name: str, what: str, index: int, given: Tensor, wanted: Tensor) -> str:
    return f"{name}: {what} {index} has shape {list(given.shape)}, it belongs to a tensor {tensor_text(wanted)}"


def other_kind(name: str, place: str, given: Tensor, wanted: Tensor) -> str:
    return f"{name}: {place} is {given.dtype.name}, it belongs to a real tensor, {tensor_text(wanted)}"


def not_tuples(name: str) -> str:
    return f"{name}: primals and tangents must be tuples"


def pulled_outside(name: str) -> str:
    return (
        f"{name}: the function it returned is called outside of a vmap that it was made in\n"
        "  to fix  call it inside of the mapped function"
    )


# ---- turnout.autograd.functional


def tensors_wanted(name: str, what: str, value: object) -> str:
    return f"{name}: {what} must be a tensor or a tuple of tensors, got {type(value).__name__}"


def strategy(name: str, given: str) -> str:
    return f"{name}: the strategy must be 'reverse-mode' or 'forward-mode', got {given!r}"


def not_together(name: str, one: str, other: str) -> str:
    return f"{name}: {one} and {other} do not go together"


def one_element(name: str, outputs: Sequence[Tensor]) -> str:
    found = tensor_text(outputs[0]) if len(outputs) == 1 else f"{len(outputs)} tensors"
    return f"{name}: the function must return a tensor of one element, not in a tuple; it returned {found}"


def vector_needed(name: str, whose: str) -> str:
    return f"{name}: 'v' can be left out only where {whose} one tensor of one element"


def vector_count(name: str, given: int, wanted: int) -> str:
    return f"{name}: 'v' holds {given} tensors, {wanted} are needed"


def vector_shape(name: str, index: int, given: Tensor, wanted: Tensor) -> str:
    return f"{name}: tensor {index} of 'v' has shape {list(given.shape)}, it belongs to a tensor {tensor_text(wanted)}"


def strict_result(name: str, index: int) -> str:
    return f"{name}: with strict=True every result must depend on the inputs, and result {index} does not"


def strict_input(name: str, index: int) -> str:
    return f"{name}: with strict=True the results must depend on every input, and one does not depend on input {index}"


def strict_gradient(name: str, index: int) -> str:
    return (
        f"{name}: with strict=True the gradients must depend on the inputs, and that of input {index} does not: "
        "the function is linear in it"
    )


def strict_graph(name: str, index: int) -> str:
    return (
        f"{name}: with strict=True and create_graph=True the derivatives must depend on the inputs, "
        f"and that of input {index} does not"
    )


def function_dirty_inside_vmap(name: str) -> str:
    return f"{name}: mark_dirty is not possible inside vmap; return a new tensor from forward"


def inside_vmap() -> str:
    return (
        "grad: inside vmap, outputs and inputs must be batched by the same vmaps: the gradient with respect to a tensor that all "
        "examples share would be summed over them\n"
        "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
    )


def backward_inside_vmap() -> str:
    return (
        "backward: not possible on tensors inside vmap, where .grad would be shared by all examples\n"
        "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
    )


def graph_format(given: object, formats: Sequence[str]) -> str:
    return f"draw: the format is {' or '.join(map(repr, formats))}, not {given!r}"


def graph_limit(given: object) -> str:
    return f"draw: the limit is a number of boxes, at least 1, not {given!r}"


def graph_of_nothing() -> str:
    return "draw: there is no output to start from"


def graph_not_tensor(what: str, given: object) -> str:
    return f"draw: {what} is of type {type(given).__name__}, not a tensor"


def graph_untracked(index: int) -> str:
    return (
        f"draw: outputs[{index}] does not require a gradient and was not computed from a tensor that does\n"
        "  to fix  requires_grad=True on an input; nothing is recorded under turnout.no_grad()"
    )


def svg_missing() -> str:
    return (
        'draw: the format "svg" is laid out by pygraphviz, which is not installed\n'
        "  to fix  pip install 'turnout-autograd[svg]'; the format \"dot\" needs nothing"
    )


def svg_failed(said: str) -> str:
    last = said.strip().splitlines()[-1:] or ["it did not say why"]
    return f"draw: Graphviz could not lay out the drawing: {last[0]}"


def wrong_gradients(op: Operator, rule: str, expected: list[str], got: int) -> str:
    """A rule that answers for fewer or more inputs than there are."""
    return (
        f"{op.qualified_name}: its gradient rule returned {got} value{'s' if got != 1 else ''} for {len(expected)} "
        f"input{'s' if len(expected) != 1 else ''}\n  inputs  {', '.join(expected)}\n  rule    {rule}\n"
        "  to fix  return one for each in order, None where there is no gradient"
    )


def wrong_list_gradient(op: Operator, rule: str, name: str, length: int, got: Any) -> str:
    """A rule whose answer for a list of tensors is no list of that length."""
    found = f"{len(got)} values" if isinstance(got, (list, tuple)) else type(got).__name__
    return (
        f"{op.qualified_name}: its gradient rule returned {found} for {name}, a list of {length}\n  rule    {rule}\n"
        "  to fix  return a list with one for each tensor, or None for the whole list"
    )
