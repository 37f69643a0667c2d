"""What stands at Autograd for each operator: its generated kernel, or one made here from its schema.

`decide` goes in this order: standard operators have the decision of `derivatives.yaml`; where no tensors come in or go out there
is nothing to do; out variants refuse tracked arguments; everything else records that its gradient is not implemented.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT
from turnout.errors import AliasError
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel
from turnout.operators.values import tensors_in
from turnout.state import BELOW_AUTOGRAD as BELOW
from turnout_aten.functions.parts import part_name
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine import ANOMALY
from turnout_autograd.generated import PARTS
from turnout_autograd.graph import Node, Output, attach, start
from turnout_autograd.writes import admit, refresh

if TYPE_CHECKING:
    from turnout.operators import Operator


class Specializer:
    """The fallback's `specialize`; `options` are the plugin's, whose `missing` says what a gradient that nobody wrote does."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def __call__(self, op: Operator) -> Any:
        fn = decide(op, self._options)
        if fn is FALLTHROUGH:
            return fn
        if ANOMALY.enabled:
            from turnout_autograd.anomaly import noting

            fn = noting(fn)
        return Kernel(fn, INTERNAL, tracked_only=True, label=getattr(fn, "__qualname__", ""))


def decide(op: Operator, options: Mapping[str, Any]) -> Any:
    """The function of the internal convention for one operator, or FALLTHROUGH."""
    made = standard(op)
    if made is not None:
        return made if made is FALLTHROUGH else made(op)
    if not _has_tensors(op):
        return FALLTHROUGH
    if op.qualified_name in ("aten::resize_", "aten::resize_as_"):
        return resize(op)
    if op.schema.kind == "out":
        return out_variant(op)
    return not_implemented(op, options)


def standard(op: Operator) -> Any:
    """What `derivatives.yaml` says of an operator: a factory of its kernel, FALLTHROUGH for constants, None for nothing."""
    part = part_name(op.name)
    if op.namespace != "aten" or part not in PARTS:
        return None
    module = import_module(f"turnout_autograd.generated.{part}")
    return FALLTHROUGH if op.qualified_name in module.CONSTANT else module.KERNELS.get(op.qualified_name)


def _has_tensors(op: Operator) -> bool:
    takes = any(str(a.type).startswith("Tensor") for a in op.schema.arguments)
    gives = any(str(r.type).startswith("Tensor") for r in op.schema.returns) or any(
        a.is_write for a in op.schema.arguments
    )
    return takes and gives


def out_variant(op: Operator) -> Callable[..., Any]:
    """Refuses tracked arguments where gradients are recorded, else passes on; of what has no gradient, tracked outputs alone."""
    constant = _is_constant(op)
    checked = [(i, a.name) for i, a in enumerate(op.schema.arguments) if a.is_write or not constant]

    def refuse_out(ks: int, *args: Any) -> Any:
        enabled = GRAD.get()[0]
        if enabled:
            for i, name in checked:
                for tensor in tensors_in((args[i],)):
                    _refresh(tensor)
                    if tensor.gmask & enabled:
                        raise errors.GradientError(errors.out_given(op.qualified_name, name))
        below = ks & BELOW
        return op.lookup(below)(below, *args)

    refuse_out.__qualname__ = f"autograd of {op.qualified_name}"
    return refuse_out


def _is_constant(op: Operator) -> bool:
    """Whether the functional operator of an out variant is one whose results never require a gradient."""
    signature = op.schema.signature()
    return any(
        other.schema.kind == "functional" and other.schema.signature() == signature and standard(other) is FALLTHROUGH
        for other in op.registry.packet(op.namespace, op.name) or ()
    )


def resize(op: Operator) -> Callable[..., Any]:
    """A tensor with a history cannot change its shape."""

    def refuse_resize(ks: int, self: Tensor, *args: Any) -> Any:
        _refresh(self)
        if self.gmask & GRAD.get()[0]:
            raise AliasError(errors.resized(op.qualified_name))
        below = ks & BELOW
        return op.lookup(below)(below, self, *args)

    refuse_resize.__qualname__ = f"autograd of {op.qualified_name}"
    return refuse_resize


def _refresh(tensor: Any) -> None:
    if getattr(tensor, "view_of", None) is not None:
        refresh(tensor)


class NotImplementedNode(Node):
    """Stands for a call whose gradient nobody wrote: an error when a gradient arrives."""

    __slots__ = ("count", "label")
    several = True
    count: int
    label: str

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.label

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> Any:
        raise errors.GradientError(errors.not_implemented(self.label))


class WarnedNode(NotImplementedNode):
    """The same with a warning and no gradients."""

    __slots__ = ()

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> Any:
        warnings.warn(errors.not_implemented_warned(self.label), UserWarning, stacklevel=2)
        return (None,) * len(edges)


def not_implemented(op: Operator, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Keeps `requires_grad` alive through an operator without a rule, with an error (or warning) at backward.

    The option is read at each call, so that a configuration's context manager has its effect.
    """
    mutated = tuple(i for i, a in enumerate(op.schema.arguments) if a.is_write)

    def record_missing(ks: int, *args: Any) -> Any:
        below = ks & BELOW
        call = op.lookup(below)
        enabled = GRAD.get()[0]
        missing = options["missing"]
        if not enabled or missing == "nothing":
            return call(below, *args)
        tracked = 0
        tensors = list(tensors_in(args))
        for tensor in tensors:
            _refresh(tensor)
            tracked |= tensor.gmask & enabled
        if not tracked:
            return call(below, *args)
        written = [t for i in mutated for t in tensors_in((args[i],)) if t.dtype.category >= FLOAT]
        for tensor in written:
            admit(op.qualified_name, tensor, tracked)
        edges = tuple([(t.node or t) if t.gmask & enabled else None for t in tensors])
        result = call(below, *args)
        node = WarnedNode() if missing == "warn" else NotImplementedNode()
        start(node, edges)
        node.label = op.qualified_name
        fresh = [t for t in _tensors_of(result) if not any(t is given for given in tensors)]
        fresh = [t for t in fresh if t.dtype.category >= FLOAT]
        node.count = len(fresh) + len(written)
        for i, tensor in enumerate(fresh):
            attach(tensor, Output(node, i), tracked)
        for i, tensor in enumerate(written):
            _rewrite(tensor, node, len(fresh) + i, tracked)
        return result

    record_missing.__qualname__ = f"gradient of {op.qualified_name} is not implemented"
    return record_missing


def _rewrite(tensor: Tensor, node: NotImplementedNode, index: int, tracked: int) -> None:
    """A written tensor's history is the missing gradient from here on; so is that of the base it views."""
    root = tensor if tensor.view_of is None else tensor.view_of.base
    root.set_gmask(root.gmask | tracked)
    root.node = Output(node, index)
    if root is not tensor:
        tensor.set_gmask(root.gmask)
        tensor.node = root.node


def _tensors_of(result: Any) -> list[Tensor]:
    return list(tensors_in(result if isinstance(result, (tuple, list)) else (result,)))
