"""`autograd.Function`: a forward and a backward in Python, as one node of the tape.

Forward runs without recording; its outputs then get the node. Both forms are taken: `forward(*args)` with `setup_context(ctx,
inputs, output)`, and the older `forward(ctx, *args)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any
from weakref import ref

from turnout.dtypes import COMPLEX, FLOAT, DType
from turnout.errors import CallError, DTypeError, ShapeError
from turnout.keys import KEYS
from turnout.registry import find_operator
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_aten.tensor.storage import View
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine import ANOMALY, recording
from turnout_autograd.graph import FREED, Kept, Node, Output, attach, check_saved, fit, start
from turnout_autograd.nesting import run_nested
from turnout_autograd.packing import HOOKS, Packed, packed
from turnout_autograd.writes import admit, rebase, refresh

_BATCHED = KEYS.bit("Batched")
_alias = find_operator("aten::alias").call
_zeros = find_operator("aten::zeros").call


class FunctionCtx:
    """What forward leaves for backward. Any attribute may be set on it.

    needs_input_grad  per argument of forward, whether its gradient is wanted
    """

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: list[Any] = []
        self._dirty: tuple[Tensor, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._materialize = True
        self._node: Callable[[], FunctionNode | None] | None = None  # weak: the node holds its ctx

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs, outputs or intermediate tensors; backward reads them as `ctx.saved_tensors`."""
        _check_tensors("save_for_backward", [t for t in tensors if t is not None])
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Accepted for programs that define a forward-mode rule too; there is none here."""

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved.

        Raises AliasError for a tensor that was changed in place, GradientError when it was freed by backward, and for an output
        of forward when the graph is gone that it belongs to.
        """
        if self._node is None:
            return self._to_save
        node = self._node() or _GONE
        if self._saved is FREED:
            raise errors.GradientError(errors.freed(node.op_name))
        return tuple([_unpack(node, i, saved) for i, saved in enumerate(self._saved)])

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Inputs that forward wrote into and returns."""
        _check_tensors("mark_dirty", tensors)
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Outputs without a gradient."""
        _check_tensors("mark_non_differentiable", tensors)
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for outputs that were not used."""
        if not isinstance(value, bool):
            raise CallError(errors.function_flag("set_materialize_grads", value))
        self._materialize = value


def _check_tensors(method: str, values: Sequence[Any]) -> None:
    """Raise CallError for anything but tensors."""
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise CallError(errors.function_marks(method, i, value))


class GoneNode(Node):
    """Stands for the node of a ctx that somebody kept longer than the graph."""

    __slots__ = ()
    op_name = "autograd.Function"


_GONE = GoneNode()


def _unpack(node: Node, i: int, saved: Any) -> Tensor | None:
    if saved is None:
        return None
    if isinstance(saved, Packed):
        saved = saved.unpacked(node)
        if isinstance(saved, Tensor):
            return saved
    if isinstance(saved, Kept):
        if node is _GONE:
            raise errors.GradientError(errors.saved_output_gone(i))
        return saved.tensor(node, f"saved_tensors[{i}]")
    tensor, version = saved
    checked: Tensor = check_saved(node, f"saved_tensors[{i}]", tensor, version)
    return checked


class FunctionNode(Node):
    """The node of one call of a `Function`. Attributes that forward left on its ctx can be read here too."""

    __slots__ = ("__weakref__", "count", "ctx", "function", "inputs", "outputs")
    several = True
    count: int
    ctx: FunctionCtx
    function: type[Function]
    inputs: list[Any]
    outputs: list[Any]

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.function.shown_as or self.function.__name__

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in FunctionNode.__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.ctx, name)

    def saved(self) -> Any:
        """The same unchecked: FREED, or for each tensor None, a `Kept`, or (tensor, version)."""
        return self.ctx._saved

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> list[Any]:
        given = list(grads)
        if self.ctx._materialize:
            for i, meta in enumerate(self.outputs):
                if given[i] is None and meta is not None:
                    given[i] = _zeros(meta[0], dtype=meta[1], device=meta[2])
        found = run_nested(backward_of(self.function), self.ctx, *given)
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        while len(results) > len(self.inputs) and results[-1] is None:
            results.pop()
        if len(results) != len(self.inputs):
            raise errors.GradientError(errors.function_count(self.op_name, len(results), len(self.inputs)))
        return [None if g is None else self._fitted(i, g) for i, g in enumerate(results)]

    def _fitted(self, i: int, grad: Any) -> Tensor:
        meta = self.inputs[i]
        if meta is None:
            raise errors.GradientError(errors.function_extra(self.op_name, self._input(i)))
        if not isinstance(grad, Tensor):
            raise errors.GradientError(errors.function_kind(self.op_name, self._input(i), grad))
        if not _expands(meta[0], grad.shape):
            raise ShapeError(errors.function_shape(self.op_name, self._input(i), grad.shape, meta[0]))
        if grad.is_complex() and meta[1].category != COMPLEX:
            raise DTypeError(errors.function_complex(self.op_name, self._input(i), grad.dtype, meta[1]))
        return fit(grad, meta)

    def _input(self, i: int) -> str:
        return self.function.shown_input(self.ctx, i)

    def release(self) -> None:
        self.ctx._saved = FREED


def backward_of(function: type[Function]) -> Callable[..., Any]:
    """`backward`, or `vjp`, which is another name for it. Raises GradientError where both are written."""
    if function.vjp is Function.vjp:
        return function.backward
    if function.backward is not Function.backward:
        raise errors.GradientError(errors.function_both(function.__name__))
    return function.vjp


def _expands(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `to`."""
    if len(shape) > len(to):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


class Function:
    """Derive, define `forward` and `backward` (and `setup_context`) as static methods, call `apply`.

    Inside vmap forward and backward see one example. A static method `vmap(info, in_dims, *args) -> (result, out_dims)` does all
    examples at once instead; `generate_vmap_rule = True` only says that there is none.
    """

    generate_vmap_rule = False
    _signature: tuple[Any, int]  # of forward, and how many places it has for positional arguments; of this very class
    shown_as = ""  # what messages call it, where it stands for an operator

    @staticmethod
    def shown_input(ctx: Any, index: int) -> str:
        """What messages call one of forward's arguments."""
        return f"input {index}"

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The computation."""
        raise NotImplementedError("a Function must define forward as a static method")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, when forward takes no ctx."""

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient per argument of forward, None for those without."""
        raise NotImplementedError("a Function must define backward as a static method, or not be differentiated")

    vjp = backward

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The computation for all examples of a vmap; `info` has batch_size and randomness."""
        raise NotImplementedError("a Function may define vmap as a static method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise GradientError: a function is not called as an instance."""
        raise errors.GradientError(errors.function_called(type(self).__name__))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, recorded as one node where a tensor among the arguments is tracked.

        Arguments that are given by keyword count as the positional ones that they are in forward's signature; with
        `setup_context` those that are left out count with their defaults. Raises CallError for a tracked tensor that forward
        takes by keyword alone, TypeError where the arguments do not fit.
        """
        enabled, allowed = GRAD.get()
        if kwargs or cls.setup_context is not Function.setup_context:
            args, kwargs = _positional(cls, args, kwargs)
        if LEVELS.get() and _has_examples(args if cls.vmap is Function.vmap else trees.flatten(args)[0]):
            from turnout_autograd import examples

            return examples.apply(cls, args, kwargs)
        tracked = 0
        for value in args:
            if isinstance(value, Tensor):
                if value.view_of is not None:
                    refresh(value)
                tracked |= value.gmask & enabled
        ctx = FunctionCtx()
        allowed |= 1
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and bool(a.gmask & allowed) for a in args])
        edges = tuple([(a.node or a) if isinstance(a, Tensor) and a.gmask & enabled else None for a in args])
        metas = [(a.shape, a.dtype, a.device) if isinstance(a, Tensor) else None for a in args]
        with recording(0):
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        for tensor in ctx._dirty:
            if not any(tensor is each for each in outputs):
                raise errors.GradientError(errors.function_not_input(cls.__name__))
        if not tracked:
            return _as_returned(output, [_unrecorded(cls, value, args, ctx._dirty) for value in outputs])
        node = FunctionNode()
        start(node, edges)
        node.function = cls
        node.ctx = ctx
        node.inputs = metas
        if ANOMALY.enabled:
            from turnout_autograd.anomaly import note

            note(node)
        made = _attach_outputs(cls, node, ctx, args, outputs, tracked)
        _save(ctx, node, outputs, made, tracked)
        return _as_returned(output, made)


def _as_returned(output: Any, made: list[Any]) -> Any:
    """The outputs in the form in which forward returned them."""
    if not isinstance(output, (tuple, list)):
        return made[0]
    return type(output)(made) if type(output) in (tuple, list) else tuple(made)


def _unrecorded(cls: type[Function], value: Any, args: tuple[Any, ...], dirty: tuple[Tensor, ...]) -> Any:
    """An output of a call that is not recorded: without history, and no input itself but one that forward wrote into."""
    if not isinstance(value, Tensor) or any(value is t for t in dirty):
        return value
    if value.gmask:
        return value.detach()
    if any(value is a for a in args):
        with recording(0):
            value = _alias(value)
        _hide_from_writes(cls, value)
    return value


def _hide_from_writes(cls: type[Function], value: Tensor) -> None:
    """Mark a view as one that the function made."""
    old = value.view_of
    if old is not None:
        value.view_of = View(old.base, old.chain, value.version(), False, False, cls.__name__)


def _has_examples(values: Sequence[Any]) -> bool:
    return any(isinstance(v, Tensor) and v.keys & _BATCHED for v in values)


def _positional(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments by position as far as forward's signature has places for them, and the rest by name."""
    newer = cls.setup_context is not Function.setup_context
    found = cls.__dict__.get("_signature")
    if found is None:
        import inspect

        signature = inspect.signature(cls.forward)
        kinds = [p.kind for p in signature.parameters.values()]
        found = cls._signature = signature, sum(k <= inspect.Parameter.POSITIONAL_OR_KEYWORD for k in kinds)
    signature, places = found
    if not kwargs and len(args) >= places:
        return args, kwargs
    bound = signature.bind(*args, **kwargs) if newer else signature.bind(None, *args, **kwargs)
    if newer:
        bound.apply_defaults()
    for name, value in bound.kwargs.items():
        if isinstance(value, Tensor) and (value.requires_grad or value.keys & _BATCHED):
            raise CallError(errors.function_keyword(cls.__name__, name))
    return bound.args[0 if newer else 1 :], bound.kwargs


def _attach_outputs(
    cls: type[Function], node: FunctionNode, ctx: FunctionCtx, args: tuple[Any, ...], outputs: Any, tracked: int
) -> list[Any]:
    """The outputs as the caller sees them."""
    made: list[Any] = []
    metas: list[tuple[tuple[int, ...], DType, Any] | None] = []
    for i, value in enumerate(outputs):
        if not isinstance(value, Tensor):
            made.append(value)
            metas.append(None)
            continue
        metas.append((value.shape, value.dtype, value.device))
        dirty = any(value is t for t in ctx._dirty)
        if any(value is t for t in ctx._constant) or value.dtype.category < FLOAT:
            made.append(value.detach() if value.gmask and not dirty else value)
        elif dirty:
            admit(cls.__name__, value, tracked)
            _rewritten(value, node, i, len(outputs), args, tracked)
            made.append(value)
        else:
            made.append(_fresh(cls, value, any(value is a for a in args), Output(node, i), tracked))
    node.outputs = metas
    node.count = len(outputs)
    return made


def _fresh(cls: type[Function], value: Tensor, is_input: bool, output: Output, tracked: int) -> Tensor:
    if is_input or value.gmask:
        # An input returned as it came, or something that has a history already: another tensor over the same memory.
        source, value = value, value.new_alias(value.array, value.storage_offset())
        value.view_of = source.view_of or View(source, (), source.version(), False, False)
    _hide_from_writes(cls, value)
    attach(value, output, tracked)
    return value


def _rewritten(tensor: Tensor, node: FunctionNode, index: int, count: int, args: tuple[Any, ...], tracked: int) -> None:
    """An input that forward wrote into: the call is its history now, and its base's."""
    if tensor.view_of is None:
        tensor.set_gmask(tracked)
        tensor.node = Output(node, index)
        return
    if count > 1:
        raise errors.GradientError(errors.function_wrote_view(node.op_name))
    write = ViewWrite()
    at = next(i for i, value in enumerate(args) if value is tensor)
    start(write, (node.edges[at], *node.edges[:at], *node.edges[at + 1 :]))
    write.inner = node
    write.at = at
    rebase(tensor, write, tracked)


class ViewWrite(Node):
    """A Function's write into a view of its only output, with the view's edge first, as the history of its base needs it.

    at  which argument the view was
    """

    __slots__ = ("at", "inner")
    at: int
    inner: FunctionNode

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.inner.op_name

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self.inner.backward([grad], self.inner.edges)
        return (found[self.at], *found[: self.at], *found[self.at + 1 :])

    def release(self) -> None:
        self.inner.release()


def _save(ctx: FunctionCtx, node: FunctionNode, outputs: Any, made: list[Any], tracked: int) -> None:
    saved: list[Any] = []
    for tensor in ctx._to_save:
        if tensor is None:
            saved.append(None)
            continue
        at = next((i for i, t in enumerate(made) if t is tensor), -1)
        saved.append(Kept(tensor, tracked, at) if at >= 0 and tensor.gmask else (tensor, tensor.version()))
    hooks = HOOKS.get()
    if hooks:
        saved = [each and packed(node, each, *hooks[-1]) for each in saved]
    ctx._to_save = ctx._dirty = ctx._constant = ()  # outputs among them hold the node
    ctx._saved = saved
    ctx._node = ref(node)


class OnceNode(Node):
    """Stands for the gradients of a backward that was declared not to be differentiable again."""

    __slots__ = ("count", "label")
    several = True
    op_name = "once_differentiable"
    count: int
    label: str

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> Any:
        raise errors.GradientError(errors.function_once(self.label))


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """For a `Function.backward` that is not written in operators: it runs unrecorded, and differentiating it is an error."""

    @wraps(backward)
    def run_once(ctx: Any, *grads: Any) -> Any:
        enabled = GRAD.get()[0]
        with recording(0):
            found = backward(ctx, *grads)
        tensors = [g for g in grads if isinstance(g, Tensor)]
        saved = [t for t in getattr(ctx, "saved_tensors", ()) if t is not None] if enabled else []
        tracked = 0
        for tensor in (*tensors, *saved):
            tracked |= tensor.gmask & enabled
        if not tracked:
            return found
        node = OnceNode()
        start(node, tuple([(t.node or t) if t.gmask & enabled else None for t in (*tensors, *saved)]))
        node.label = backward.__qualname__.removesuffix(".backward")
        results = [found] if isinstance(found, Tensor) else list(found)
        node.count = len(results)
        for i, each in enumerate(results):
            if isinstance(each, Tensor):
                results[i] = each.detach()
                attach(results[i], Output(node, i), tracked)
        return results[0] if isinstance(found, Tensor) else tuple(results)

    return run_once


__all__ = ["Function", "FunctionCtx", "once_differentiable"]
