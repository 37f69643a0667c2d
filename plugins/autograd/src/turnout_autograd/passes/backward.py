"""`backward` and `grad`: what users call, on top of the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from turnout.errors import ArgumentError
from turnout.guards import restore
from turnout.keys import KEYS
from turnout.operators.tracebacks import shorten
from turnout.registry import find_operator
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.anomaly import ANOMALY
from turnout_autograd.engine.delivery import accumulate_all, deliver
from turnout_autograd.engine.gradient_edges import GradientEdge
from turnout_autograd.engine.hook_calls import hooked
from turnout_autograd.engine.nodes import keep_gradient
from turnout_autograd.engine.sweep import blame, sweep
from turnout_autograd.engine.targets import Wanted
from turnout_autograd.hooks.multi_grad_hooks import JOINT_HOOKS, watched
from turnout_autograd.passes.roots import check_inputs, places, root_gradients, roots_of
from turnout_autograd.transforms.batch_elements import PlainTensors

if TYPE_CHECKING:
    from typing import Literal, TypeVar

    from turnout_autograd.passes.roots import Place

    Key = TypeVar("Key")

_zeros_like = find_operator("aten::zeros_like").stub
_BATCHED = KEYS.bit("Batched")


def backward(
    tensors: Place | Sequence[Place],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Place | Sequence[Place] | None = None,
) -> None:
    """Add to `.grad` of every leaf that `tensors` were computed from, or only of `inputs`, for which `retain_grad` is called.

    A `GradientEdge` may stand for a tensor; an edge among `inputs` that does not belong to a leaf only limits what is computed.

    To functional transforms around the call every `.grad` is a constant; they differentiate what `grad` returns.

    Raises GradientError where nothing was recorded or the graph was freed, AliasError where a saved tensor was changed. An
    exception leaves every `.grad` as it was.

    Arguments:
        tensors: the results, one or several
        grad_tensors: the gradients of `tensors`; None for tensors of one element
        retain_graph: whether what the graph has saved is kept for another backward; as `create_graph` by default
        create_graph: whether the computation of the gradients is recorded, so that they can be differentiated
        inputs: the tensors whose `.grad` is added to; by default all leaves

    Example:
        >>> x = turnout.tensor(3.0, requires_grad=True)
        >>> turnout.autograd.backward(x * x)
        >>> x.grad
        tensor(6.)
    """
    before = GRAD.get()
    allowed = before[1]
    try:
        outputs = (tensors,) if tensors.__class__ is Tensor else places("backward", "output", tensors)
        retain = create_graph if retain_graph is None else retain_graph
        # Functional levels do not see imperative gradients: `.grad` would leak out of them.
        GRAD.set((allowed | 1 if create_graph else 0, allowed))
        roots = roots_of(outputs, grad_tensors, 1)
        if inputs is None:
            if JOINT_HOOKS.used:
                watched(lambda: deliver(sweep(roots, retain)), roots)
            else:
                deliver(sweep(roots, retain))
            return
        into = tuple({id(t): t for t in places("backward", "input", inputs)}.values())
        check_inputs("backward", into, 1)
        for place in into:
            if isinstance(place, Tensor) and place.node is not None:
                keep_gradient(place)
        found = _limited(roots, into, retain)
        accumulate_all(_receivers(into, found))
    except Exception as error:
        if ANOMALY.enabled:
            blame(error)
        shorten(error)
        raise
    finally:
        try:
            GRAD.set(before)  # not by a token: an interrupt may come before there is one
        except MemoryError:
            restore(GRAD, before)


@overload
def grad(
    outputs: Place | Sequence[Place],
    inputs: Place | Sequence[Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...


@overload
def grad(
    outputs: Place | Sequence[Place],
    inputs: Place | Sequence[Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    *,
    materialize_grads: Literal[True],
) -> tuple[Tensor, ...]: ...


@overload
def grad(
    outputs: Place | Sequence[Place],
    inputs: Place | Sequence[Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]: ...


@overload
def grad(
    outputs: Place | Sequence[Place],
    inputs: dict[Key, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[Key, Tensor]: ...


@overload
def grad(
    outputs: Place | Sequence[Place],
    inputs: dict[Key, Tensor] | dict[Key, Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[Key, Any]: ...


def grad(
    outputs: Place | Sequence[Place],
    inputs: Any,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, in a tuple, or in a dict like `inputs`; no `.grad` is touched.

    A `GradientEdge` may stand for a tensor.

    Inside vmap, either all of them are batched by the same vmaps or none is; each element of the batch has its own gradient.

    Raises as `backward` does.

    Arguments:
        outputs: the results, one or several
        inputs: the tensors whose gradients are wanted
        grad_outputs: the gradients of `outputs`; None for tensors of one element
        retain_graph: whether what the graph has saved is kept for another backward; as `create_graph` by default
        create_graph: whether the computation of the gradients is recorded, so that they can be differentiated
        only_inputs: must be true
        allow_unused: whether inputs that the outputs do not depend on give None instead of an error
        is_grads_batched: whether `grad_outputs` have a leading batch dim, over which `turnout.vmap` maps the
            computation
        materialize_grads: whether such inputs give zeros; ArgumentError together with allow_unused=False

    Example:
        >>> x = turnout.tensor(3.0, requires_grad=True)
        >>> turnout.autograd.grad(x * x, x)
        (tensor(6.),)
    """
    try:
        if materialize_grads and allow_unused is False:
            raise ArgumentError(errors.passes.unused_contradiction())
        if isinstance(inputs, dict):
            listed = grad(
                outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
                is_grads_batched, materialize_grads,
            )  # fmt: skip
            return dict(zip(inputs, listed, strict=True))
        ends = places("grad", "output", outputs)
        into = places("grad", "input", inputs)
        if is_grads_batched:
            return _batched(ends, into, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
        if any(t.keys & _BATCHED for t in (*ends, *into) if isinstance(t, Tensor)):
            if any(isinstance(t, GradientEdge) for t in (*ends, *into)):
                raise errors.GradientError(errors.passes.edge_inside_vmap())

            plain = PlainTensors(ends, into)
            cotangents = plain.cotangents(root_gradients(ends, grad_outputs))
            elements = grad(
                plain.outputs, plain.inputs, cotangents, retain_graph, create_graph, True, allow_unused, False, materialize_grads
            )
            return plain.elements(elements)
        levels = GRAD.get()[1] | 1
        check_inputs("grad", into, levels)
        if materialize_grads:
            for i, each in enumerate(into):
                if isinstance(each, GradientEdge):
                    raise ArgumentError(errors.passes.edge_zeros(i))
        retain = create_graph if retain_graph is None else retain_graph
        before = enabled, allowed = GRAD.get()
        try:
            GRAD.set((allowed | 1, allowed) if create_graph else (enabled & ~1, allowed))
            roots = roots_of(ends, grad_outputs, levels)
            found = _limited(roots, into, retain)
            if materialize_grads:
                return tuple(_zeros(t, create_graph) if g is None else g for t, g in zip(into, found, strict=True))
        except Exception as error:
            if ANOMALY.enabled:
                blame(error)
            raise
        finally:
            try:
                GRAD.set(before)
            except MemoryError:
                restore(GRAD, before)
        if not allow_unused:
            for i, each in enumerate(found):
                if each is None:
                    raise errors.GradientError(errors.passes.unused(i))
        return tuple(found)
    except Exception as error:
        shorten(error)
        raise


def _zeros(tensor: Tensor, tracked: bool) -> Tensor:
    """Zeros for a gradient that did not arrive: a leaf, where gradients will be differentiated again."""
    made: Tensor = _zeros_like(tensor)
    return made.requires_grad_() if tracked else made


def _batched(
    ends: tuple[Any, ...], into: tuple[Any, ...], given: Any, retain: bool | None, create: bool,
    allow_unused: bool | None, materialize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    import turnout

    given = (given,) if isinstance(given, Tensor) else tuple(given or ())

    arrived: list[bool] = []

    def one(*vectors: Tensor) -> tuple[Any, ...]:
        found = grad(ends, into, vectors, True, create, True, allow_unused, False, materialize)
        arrived[:] = [each is not None for each in found]
        return tuple([each for each in found if each is not None])

    vmap: Any = turnout.vmap
    found = iter(vmap(one)(*given))
    return tuple([next(found) if each else None for each in arrived])


def _limited(roots: list[tuple[Any, Tensor]], into: tuple[Any, ...], retain: bool) -> list[Any]:
    """The gradients with respect to some tensors, None where none arrives."""
    targets = [t.target if isinstance(t, GradientEdge) else (t.gmask and t.node) or t for t in into]
    wanted = Wanted([edge for edge, _ in roots], targets)

    def run() -> dict[Any, list[Any]]:
        sinks = sweep(roots, retain, wanted)
        for sink in sinks.values():
            if sink[0].extra is not None:
                sink[1] = hooked(sink[0], sink[1])
        return sinks

    sinks = watched(run, roots, wanted) if JOINT_HOOKS.used else run()
    return [wanted.gradient(target, sinks) for target in targets]


def _receivers(into: tuple[Any, ...], found: list[Any]) -> list[list[Any]]:
    """[leaf, gradient] for each leaf; other tensors retain theirs as it passes."""
    pairs: dict[int, list[Any]] = {}
    for place, each in zip(into, found, strict=True):
        tensor = place.target if isinstance(place, GradientEdge) else place
        if each is not None and isinstance(tensor, Tensor) and tensor.node is None:
            pairs[id(tensor)] = [tensor, each]
    return list(pairs.values())
