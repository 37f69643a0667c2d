"""What runs at Functionalize for each operator.

`specialize` decides from the schema. An operator that is written in others runs with the function's tensors, so that what it does
is functionalised in its turn. A write becomes its functional operator, or the operator on a clone; a view becomes a link from
its memory; everything else is called on the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from turnout.keys import IMPLICIT, TRACKED
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel, bind
from turnout.operators.values import tensors_in
from turnout.state import StateChange, in_effect
from turnout_aten.declarations.signatures import functional_of
from turnout_aten.declarations.tables import GENERATED, INPLACE_VIEW, RESIZES
from turnout_aten.declarations.variants import check_copied
from turnout_aten.kernels.outputs import check_result_dtype
from turnout_aten.shapes.extents import is_dense
from turnout_aten.shapes.specs import Out
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_functionalize import errors
from turnout_functionalize.adoption import is_adopted, value_of, written
from turnout_functionalize.geometry import check_write, result_dtype, viewed
from turnout_functionalize.inverses import Views
from turnout_functionalize.memories import Link, Part, admit_write, resized, write
from turnout_functionalize.regions import KEY, REGION, Region
from turnout_functionalize.values import FunctionalTensor, fresh, functional_tensor

if TYPE_CHECKING:
    from turnout.operators import Operator

    Call = Callable[..., Any]  # (region, *args)

_BELOW = StateChange(excludes=KEY)


def specialize(op: Operator) -> Any:
    """The kernel of one operator at Functionalize, or FALLTHROUGH for those that neither take nor make tensors."""
    schema = op.schema
    if not (schema.takes_tensors or schema.gives_tensors):
        return FALLTHROUGH
    call, how = decide(op)
    # The region says what is excluded below; the guards of kernels that call operators would exclude more.
    return Kernel(_in_region(op, call), INTERNAL, calls_operators=False, label=f"{how} of {op.qualified_name}")


def decide(op: Operator) -> tuple[Call, str]:
    """Choose what runs for an operator, and say which kind it is."""
    schema = op.schema
    if RESIZES in op.tags:
        return _refuse(op, errors.RESIZES), "refusal"
    if IMPLICIT in op.kernels:
        return _decomposed(op), "decomposition"
    aliased = [i for i, a in enumerate(schema.arguments) if a.annotation is not None]
    mutated = [i for i in aliased if schema.arguments[i].is_write]
    if INPLACE_VIEW in op.tags and schema.kind == "inplace":
        return _turn(op), "in-place view"
    if mutated:
        return _write(op, tuple(mutated)), "write"
    if not aliased:
        return _functional(op), "values"
    if len(aliased) > 1 or any(r.annotation is not None and "*" in r.annotation.before for r in schema.returns):
        return _refuse(op, errors.SEVERAL_ALIASES), "refusal"
    return _view(op, aliased[0]), "view"


def _in_region(op: Operator, call: Call) -> Callable[..., Any]:
    cache_below = op.lookup

    def functionalize_call(ks: int, *args: Any) -> Any:
        region = REGION.get() or _region_of(args)
        if region is None:  # the state includes the key, by a guard and not by functionalize
            return _BELOW.run(cache_below(ks & ~KEY), ks & ~KEY, *args)
        return call(region, *args)

    return functionalize_call


def _region_of(args: tuple[Any, ...]) -> Region | None:
    """The region of a tensor that another thread was given."""
    for tensor in tensors_in(args):
        if isinstance(tensor, FunctionalTensor):
            return tensor.array.memory.region
    return None


def _refuse(op: Operator, why: str) -> Call:
    def refuse(region: Region, *args: Any) -> Any:
        raise errors.FunctionalizeError(errors.refused(op.qualified_name, why))

    return refuse


# ---- operators without side effects


def _functional(op: Operator) -> Call:
    def call_values(region: Region, *args: Any) -> Any:
        values = tuple([value_of(a, region) for a in args])
        return _results(region.call(op, *values), args, values, region)

    return call_values


def _results(made: Any, args: tuple[Any, ...], values: tuple[Any, ...], region: Region) -> Any:
    """Results as tensors of the function; an argument that comes back is that argument."""
    if isinstance(made, Tensor):
        for given, value in zip(args, values, strict=True):
            if value is made and isinstance(given, Tensor):
                return given
        return fresh(made, region)
    if isinstance(made, list):
        return [_results(each, args, values, region) for each in made]
    if isinstance(made, tuple):
        return tuple([_results(each, args, values, region) for each in made])
    return made


def _decomposed(op: Operator) -> Call:
    """The operator's own composite kernel, where a call below would run it.

    An opt-in functionality that is switched on and has a kernel for it comes before. So does a backend with a kernel, whose bits
    need not be those of the composite, unless gradients are recorded: Autograd may decompose the operator.
    """
    bound = bind(op.registry.winner(op, IMPLICIT), op, "Functionalize")
    values, pure = _functional(op), all(a.annotation is None for a in op.schema.arguments)
    switches = op.registry.keys.opt_in_switches

    def decompose(region: Region, *args: Any) -> Any:
        if in_effect(0) & switches:
            below = in_effect(_keys_of_values(args)) & ~KEY
            first = op.opted_in(below)
            if first is not None:
                return first(below, *args)
        served = pure and any(tensor.device.backend.name in op.kernels for tensor in tensors_in(args))
        if served and not (GRAD.get()[0] and region.run(in_effect, _keys_of_values(args)) & TRACKED):
            return values(region, *args)
        return bound(KEY, *args)

    return decompose


def _keys_of_values(args: tuple[Any, ...]) -> int:
    keys = 0
    for tensor in tensors_in(args):
        keys |= tensor.array.last.keys if isinstance(tensor, FunctionalTensor) else tensor.keys
    return keys


# ---- views


def _view(op: Operator, at: int) -> Call:
    def make_view(region: Region, *args: Any) -> Any:
        given = args[at]
        if not isinstance(given, Tensor):
            return _functional(op)(region, *args)
        seen = written(given, region)
        rest = (*args[:at], *args[at + 1 :])
        rest = tuple([value_of(each, region) for each in rest])
        part: Part = seen.array
        shadows = viewed(op, part, rest)
        if op.qualified_name == "aten::as_strided":
            return _over_memory(part, op, rest, shadows, region)
        made = Views(region, op).view(op, part.value(), *rest)
        if isinstance(made, (list, tuple)):
            shadows = shadows or [None] * len(made)
            kind = type(made)
            return kind([_part_of(part, op, rest, i, each, shadows[i], region) for i, each in enumerate(made)])
        return _part_of(part, op, rest, None, made, shadows, region)

    return make_view


def _part_of(
    part: Part, op: Operator, rest: tuple[Any, ...], index: int | None, made: Tensor, shadow: Tensor | None, region: Region
) -> Tensor:
    if not region.copies and not made.is_alias_of(part.value()):
        return fresh(made, region)  # the operator made a copy: it may, where a view is not possible
    memory, links = part.memory, part.links
    link = Link(op, rest, index, bool(GRAD.get()[0]))
    return functional_tensor(Part(memory, (*links, link), made, shadow))


def _over_memory(part: Part, op: Operator, rest: tuple[Any, ...], shadow: Tensor, region: Region) -> Tensor:
    """`as_strided` sees the whole memory, not the tensor alone, as elements of the tensor's dtype."""
    memory, root = part.memory, part.memory.root
    assert root is not None
    if memory.generation and (root.storage_offset() or not is_dense(root.shape, root.stride())):
        raise errors.FunctionalizeError(errors.refused(op.qualified_name, errors.PARTIAL_MEMORY))
    recorded, dtype = bool(GRAD.get()[0]), part.last.dtype
    links: tuple[Link, ...] = (Link(op, (*rest[:2], shadow.storage_offset()), None, recorded),)
    if dtype is not memory.base.dtype:
        links = (Link(op.registry.find("aten::view.dtype"), (dtype,), None, recorded), *links)
    return functional_tensor(Part(memory, links, None, shadow))


def _turn(op: Operator) -> Call:
    """An in-place view: the tensor becomes a view of itself."""
    functional = functional_of(op)
    assert functional is not None
    make_view = _view(functional, 0)

    def turn(region: Region, self: Tensor, *args: Any) -> Any:
        if not isinstance(self, FunctionalTensor):
            if is_adopted(self, region):
                raise errors.FunctionalizeError(errors.refused(op.qualified_name, errors.CAPTURED_TURNED))
            return region.call(op, self, *args)  # nothing is written
        handle = self.array.handle
        made: Part = make_view(region, self, *args).array
        if handle is not None:
            made.handle = handle
            region.turns.append((op, handle, args))
        self.array = made
        return self

    return turn


# ---- writes


def _write(op: Operator, mutated: tuple[int, ...]) -> Call:
    functional = _by_functional(op, mutated)
    compute = functional or _by_clone(op, mutated)

    def write_results(region: Region, *args: Any) -> Any:
        given = tuple([written(a, region) if i in mutated else a for i, a in enumerate(args)])
        checked = check_write(op, given)
        for i in mutated:
            for tensor in _each(given[i]):
                admit_write(op, i, tensor.array)
        values = tuple([value_of(a, region) for a in given])
        news, others = compute(region, given, values)
        for i, new in zip(mutated, news, strict=True):
            for tensor, value in zip(_each(given[i]), _each(new), strict=True):
                if not checked and op.schema.kind == "out" and GENERATED in op.tags:
                    check_copied(op, tensor, value)
                elif not checked and value.dtype is not tensor.dtype:
                    check_result_dtype(op, Out(value.shape, value.dtype), tensor)
                _write_one(op, tensor, value, region)
        return _returned(op, args, mutated, others, region)

    return write_results


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        yield from [each for each in value if each is not None]
    elif value is not None:
        yield value


def _write_one(op: Operator, tensor: Tensor, new: Tensor, region: Region) -> None:
    part: Part = tensor.array
    if new.dtype is not tensor.dtype:
        new = region.call(op.registry.find("aten::_to_copy"), new, tensor.dtype, None, None, None, False, None)
    if new.shape != part.shape:
        if op.schema.kind != "out":
            raise errors.FunctionalizeError(errors.result_shape(op.qualified_name, new.shape, part.shape))
        if part.links or (part.memory.original is not None and part.memory.generation):
            raise errors.FunctionalizeError(errors.out_shape(op.qualified_name, part.shape, new.shape))
        tensor.array = Part(resized(part.memory, new), handle=part.handle)
        return
    write(op, part, new)


def _returned(op: Operator, args: tuple[Any, ...], mutated: tuple[int, ...], others: list[Any], region: Region) -> Any:
    """What the operator returns: arguments that it wrote, and new tensors."""
    by_annotation = {op.schema.arguments[i].annotation: args[i] for i in mutated}
    rest = iter(others)
    found = []
    for r in op.schema.returns:
        if r.annotation is not None and r.annotation in by_annotation:
            found.append(by_annotation[r.annotation])
        else:
            found.append(_results(next(rest), (), (), region))
    if not found:
        return None
    return found[0] if len(found) == 1 else tuple(found)


def _by_functional(op: Operator, mutated: tuple[int, ...]) -> Call | None:
    """The functional operator with the same arguments, and options of tensors where it has more."""
    found = _functional_of(op)
    if found is None:
        return None
    names = [a.name for a in op.schema.arguments]
    wanted = [a.name for a in found.schema.arguments]

    sets_dtype = "dtype" in names and "dtype" in wanted

    def compute(region: Region, given: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        named = dict(zip(names, values, strict=True))
        target = next(_each(given[mutated[0]]))
        named = {"dtype": target.dtype, "device": target.device, **named}
        if sets_dtype and named["dtype"] is None:
            # An in-place or out operator computes in the dtype of its output.
            plain = {**dict(zip(names, given, strict=True)), "dtype": target.dtype}
            if result_dtype(found, tuple([plain[n] for n in wanted])) is target.dtype:
                named["dtype"] = target.dtype
        made = region.call(found, *[named.get(n) for n in wanted])
        return list(made) if isinstance(made, tuple) else [made], []

    return compute


def _functional_of(op: Operator) -> Operator | None:
    if op.schema.kind not in ("inplace", "out"):
        return None
    found = functional_of(op) or functional_of(op, "_functional")
    return None if found is None or found.schema.is_view else found


def _by_clone(op: Operator, mutated: tuple[int, ...]) -> Call:
    """The operator itself, on clones of what it writes."""
    returns = op.schema.returns
    own = {op.schema.arguments[i].annotation for i in mutated}

    def compute(region: Region, given: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        clone = op.registry.find("aten::clone")

        def cloned(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [cloned(each) for each in value]
            return None if value is None else region.call(clone, value, None)

        clones = tuple([cloned(v) if i in mutated else v for i, v in enumerate(values)])
        made = region.call(op, *clones)
        results = [made] if len(returns) == 1 else list(made or ())
        others = [r for r, spec in zip(results, returns, strict=True) if spec.annotation is None or spec.annotation not in own]
        return [clones[i] for i in mutated], others

    return compute
