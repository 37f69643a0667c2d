"""What runs at Batched for each operator: its rule, a decomposition, or a loop over the examples.

`decide` goes in this order: a row of the tables in `rules`, or the rule of the operator's class; in-place and out variants by
their functional operator; a kernel that is written in operators, called with the batched tensors; a loop, which warns once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.config.lock import new_lock
from turnout.errors.plugins import warn
from turnout.keys import EXPLICIT, IMPLICIT
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel, bind
from turnout.operators.stubs import compile_function, python_name
from turnout.operators.values import tensors_in
from turnout.plugins import is_ours, replaceable
from turnout.state import StateChange, in_effect
from turnout_aten import operators as aten
from turnout_aten.declarations.signatures import functional_of, tensor_options
from turnout_aten.declarations.standard import written_in_operators
from turnout_aten.declarations.tables import DYNAMIC_SHAPE, GENERATED, INPLACE_VIEW, RESIZES
from turnout_aten.errors.transforms import DEPENDS_ON_VALUES
from turnout_aten.tensor.levels import GRAD, LEVELS, SHARED
from turnout_aten.tensor.tensor import Tensor
from turnout_batched import errors
from turnout_batched.levels import MODE, Level, is_shared, spread, spread_all
from turnout_batched.rules import DECOMPOSED, REFUSED, RULES
from turnout_batched.rules.classes import rule_of
from turnout_batched.rules.pointwise import choice, masking, pointwise, unary, writing
from turnout_batched.values import BATCHED, BatchedTensor, BatchedValue, batched_tensor, physical

if TYPE_CHECKING:
    from turnout.operators import Operator

    Call = Callable[..., Any]

# How many calls ran as loops, by operator. The lock also says which of several threads warns.
LOOPS: Counter[str] = Counter()
_COUNTING = new_lock()


def specialize(op: Operator) -> Any:
    """The kernel of one operator at Batched, or FALLTHROUGH for those that take no tensors."""
    if not op.schema.takes_tensors:
        return FALLTHROUGH
    fn, how = decide(op)
    rule = None if op.qualified_name.removeprefix("aten::") in REFUSED else _rule(op)
    if rule is None:
        fn = entered(op, fn)
    else:
        kind = "unary" if rule is unary else "aligned" if rule in (pointwise, choice, masking) else ""
        fn = rule_kernel(op, rule, kind, _positional(op) if takes_call(rule) else None, op.registry.keys.opt_in_switches, NAMES)
    return Kernel(fn, INTERNAL, label=f"{how} of {op.qualified_name}")


@replaceable
def rule_kernel(op: Operator, rule: Any, kind: str, call: Any, switches: int, names: dict[str, Any]) -> Call:
    """The kernel of an operator that has a rule, which gets `call` first if that is not None.

    What is replaced may leave the rule out: `kind` is "unary" where it passes values on and keeps the batch dim of the first one,
    and "aligned" where it only aligns batches for broadcasting. `switches` are those of functionalities that have to be off, and
    `names` are those of this package that a replacement reads.
    """
    return entered(op, by_rule(op, _ready(rule, op)))


def entered(op: Operator, fn: Call) -> Call:
    """The kernel as calls come to it.

    Opt-in functionalities (Autocast) that are switched on do to the call what they do to one example's. One that has a kernel
    for the operator is called first, on the batched tensors: its casts are calls like any others. Otherwise they are off for the
    rule, whose operators may be on lists that this one is not on; a composite would go through them.

    Tensors that gradients inside the vmap track, and that it does not batch, get a row for each example.
    """
    switches, mutated, decomposes = op.registry.keys.opt_in_switches, op.schema.mutated_places, IMPLICIT in op.kernels
    above, off = ~(BATCHED | MODE), StateChange(excludes=switches)

    def call_entered(ks: int, *args: Any) -> Any:
        if in_effect(0) & switches:
            below = 0
            for tensor in tensors_in(args):
                below |= physical(tensor).keys
            below = in_effect(below) & above
            first = op.opted_in(below)
            if first is not None:
                return first(below, *args)
            if not decomposes:
                return off.run(call_entered, ks, *args)
        if SHARED.levels:
            nested = len(LEVELS.get()) > 1
            for value in args:  # few calls have such a tensor: this saves a third of the time of the others
                if nested or value.__class__ is list or (value.__class__ is Tensor and value.gmask):
                    return fn(ks, *spread_all(args, top_level(args), mutated))
        return fn(ks, *args)

    return call_entered


def decide(op: Operator) -> tuple[Call, str]:
    """Choose the kernel of an operator at Batched, and say which kind it is."""
    name = op.qualified_name.removeprefix("aten::")
    if name in REFUSED:
        return _refuse(op, REFUSED[name]), "refusal"
    if RESIZES in op.tags:
        return _refuse(op, errors.RESIZED), "refusal"
    rule = _rule(op)
    if rule is not None:
        return by_rule(op, _ready(rule, op)), "batching rule"
    if name in DECOMPOSED:
        return _of_examples(op, DECOMPOSED[name]), "decomposition"
    functional = functional_of(op) if op.schema.kind in ("inplace", "out") else None
    if functional is not None and tensor_options(functional.schema):  # they are those of the output
        functional = None
    if functional is not None and INPLACE_VIEW in op.tags:
        return _seen_anew(op, functional), "functional variant"
    if functional is not None and (IMPLICIT not in op.kernels or op.schema.kind == "out"):
        if op.schema.kind == "inplace" and _rule(functional) in (unary, pointwise, choice, masking):
            return by_rule(op, partial(writing, _positional(op))), "batching rule"
        if not _is_the_source(op) and decide(functional)[1] != "loop":
            return _through(op, functional), "functional variant"
    if DYNAMIC_SHAPE in op.tags and IMPLICIT not in op.kernels:
        return _refuse(op, DEPENDS_ON_VALUES), "refusal"
    own = _composite(op)
    if own is not None:
        return own, "decomposition"
    return _loop(op), "loop"


def _is_the_source(op: Operator) -> bool:
    """Whether an in-place operator has the kernel that its functional variant is made of, as random ones do."""
    kernels = op.kernels.get(EXPLICIT, [])
    return op.schema.kind == "inplace" and bool(kernels) and GENERATED not in op.tags


def _rule(op: Operator) -> Any:
    """The row of a standard operator, or the rule of its class. None if it decomposes or has neither."""
    if op.namespace != "aten":
        return None
    row = RULES.get(op.qualified_name.removeprefix("aten::"))
    return row if row is not None or IMPLICIT in op.kernels else rule_of(op)


def _through(op: Operator, functional: Operator) -> Call:
    return _into_out(op, functional) if op.schema.kind == "out" else _into_self(op, functional)


def _composite(op: Operator) -> Call | None:
    """The operator's own composite kernel, called with batched tensors."""
    if IMPLICIT in op.kernels:
        return bind(op.registry.winner(op, IMPLICIT), op, "Batched")
    kernel = written_in_operators(op)
    if kernel is None:
        return None
    call = bind(kernel, op, "Batched")
    return _decomposed(op, _all_batched(call) if op.schema.kind == "functional" else call)


def _all_batched(call: Call) -> Call:
    """Make every tensor argument batched, because a kernel may write batched values into a copy of one that is not."""

    def call_with_batches(ks: int, *args: Any) -> Any:
        level = top_level(args)
        return call(ks, *[_batch_of(arg, level) for arg in args])

    return call_with_batches


def _batch_of(arg: Any, level: Level) -> Any:
    if isinstance(arg, (list, tuple)):
        return [_batch_of(each, level) for each in arg]
    if not isinstance(arg, Tensor) or (arg.keys & BATCHED and arg.array.level is level):
        return arg
    return batched_tensor(aten.expand(arg, (level.size, *arg.shape)), 0, level)


def takes_call(rule: Any) -> bool:
    """Whether a rule serves several operators."""
    return getattr(rule, "takes_call", False)


def _ready(rule: Any, op: Operator) -> Call:
    return partial(rule, _positional(op)) if takes_call(rule) else rule


def _positional(op: Operator) -> Call:
    """Passes all arguments of a call positionally, as rules expect. Generated, because building dicts would take 400 ns."""
    arguments = op.schema.arguments
    if not any(a.kwarg_only for a in arguments):
        return op.stub
    names = [python_name(a.name) for a in arguments]
    given = [f"{n}={n}" if a.kwarg_only else n for n, a in zip(names, arguments, strict=True)]
    source = f"def call({', '.join(names)}):\n    return stub({', '.join(given)})\n"
    return compile_function(source, "call", f"<positional call of {op.qualified_name}>", {"stub": op.stub})


# ---- the level of a call


def top_level(args: tuple[Any, ...]) -> Level:
    """The innermost level among the arguments. Raises VmapError if that level is not active here."""
    level: Any = None
    for tensor in tensors_in(args):
        if tensor.keys & BATCHED:
            found = tensor.array.level
            if level is None or found.num > level.num:
                level = found
    if level not in LEVELS.get():
        raise errors.VmapError(errors.escaped(level.num))
    return level


def _check_written(op: Operator, mutated: tuple[int, ...], args: tuple[Any, ...], level: Level) -> None:
    """Check that a written argument is batched at the innermost level whenever another argument is."""
    for i in mutated:
        for tensor in tensors_in((args[i],)):
            if not (tensor.keys & BATCHED and tensor.array.level is level):
                raise errors.VmapError(errors.captured_write(op.qualified_name, op.schema.arguments[i].name))


# ---- rules


def by_rule(op: Operator, rule: Call, with_level: bool = False) -> Call:
    """Peel the innermost level, call the rule with the values, wrap the results. The rule gets the batch size or the level."""
    mutated = op.schema.mutated_places
    kinds = [a.type for a in op.schema.arguments]
    tensors = tuple(i for i, kind in enumerate(kinds) if kind.is_tensor)
    lists = tuple(i for i, kind in enumerate(kinds) if kind.is_tensor_list)
    no_dims = [None] * len(kinds)
    active = LEVELS.get

    def call_rule(ks: int, *args: Any) -> Any:
        level: Any = None
        for i in tensors:
            tensor = args[i]
            if tensor is not None and tensor.keys & BATCHED:
                found = tensor.array.level
                if level is None or found.num > level.num:
                    level = found
        if lists:
            level = top_level(args)
        elif level not in active():
            raise errors.VmapError(errors.escaped(level.num) if level is not None else errors.NOT_BATCHED)
        values = list(args)
        dims: list[Any] = no_dims.copy()
        for i in tensors:
            tensor = args[i]
            if tensor is not None and tensor.keys & BATCHED:
                batched = tensor.array
                if batched.level is level:
                    values[i] = batched.value
                    dims[i] = batched.bdim
        for i in lists:
            if args[i] is not None:
                values[i], dims[i] = peeled(args[i], level)
        if mutated:
            _check_written(op, mutated, args, level)
        made, bdim = rule(level if with_level else level.size, dims, *values)
        return args[mutated[0]] if made is None and mutated else wrapped(made, bdim, level)

    return call_rule


def peeled(items: Any, level: Level) -> tuple[Any, Any]:
    """The values of a list and their batch dims. A list without tensors is returned unchanged, with None."""
    values, dims = [], []
    for item in items:
        here = isinstance(item, Tensor) and item.keys & BATCHED and item.array.level is level
        values.append(item.array.value if here else item)
        dims.append(item.array.bdim if here else None)
    return values, dims


def wrapped(made: Any, bdim: Any, level: Level) -> Any:
    """Wrap the result or results of a rule as examples of the level."""
    if isinstance(made, Tensor):
        return made if bdim is None else batched_tensor(made, bdim, level)
    if isinstance(bdim, (list, tuple)):
        return type(made)([wrapped(each, d, level) for each, d in zip(made, bdim, strict=True)])
    if isinstance(made, list):
        return [wrapped(each, bdim, level) for each in made]
    if isinstance(made, tuple):
        return tuple([wrapped(each, bdim, level) for each in made])
    return made


NAMES: dict[str, Any] = {
    "LEVELS": LEVELS, "SHARED": SHARED.levels, "BATCHED": BATCHED, "wrapped": wrapped, "is_shared": is_shared, "spread": spread,
    "Tensor": BatchedTensor, "Value": BatchedValue, "Level": Level,
}  # fmt: skip


# ---- through other operators


def _of_examples(op: Operator, made_of: Call) -> Call:
    def call(ks: int, *args: Any) -> Any:
        return made_of(*args)

    return _decomposed(op, call)


def _decomposed(op: Operator, call: Call) -> Call:
    mutated = op.schema.mutated_places

    def decompose(ks: int, *args: Any) -> Any:
        level = top_level(args)
        if mutated:
            _check_written(op, mutated, args, level)
        return call(ks, *args)

    return decompose


def _into_self(op: Operator, functional: Operator) -> Call:
    mutated = op.schema.mutated_places

    def write_result(ks: int, *args: Any) -> Any:
        _check_written(op, mutated, args, top_level(args))
        given = args
        if GRAD.get()[0] and any(t.requires_grad for t in tensors_in(args)):
            given = (aten.clone(args[0]), *args[1:])  # what a formula saves must not be written into
        aten.copy_(args[0], functional.call_boxed(given))
        return args[0]

    return write_result


def _seen_anew(op: Operator, functional: Operator) -> Call:
    """For transpose_ and similar operators: nothing is written, and the tensor becomes a view of itself."""

    def become(ks: int, self: Tensor, *args: Any) -> Any:
        self.array = functional.call_boxed((self, *args)).array
        return self

    return become


def _into_out(op: Operator, functional: Operator) -> Call:
    mutated = op.schema.mutated_places
    kept = [i for i in range(len(op.schema.arguments)) if i not in mutated]

    def write_outputs(ks: int, *args: Any) -> Any:
        from turnout_aten.kernels.outputs import check_result_dtype
        from turnout_aten.shapes.specs import Out

        _check_written(op, mutated, args, top_level(args))
        made = functional.call_boxed(tuple([args[i] for i in kept]))
        outs = [args[i] for i in mutated]
        for out, value in zip(outs, made if isinstance(made, (list, tuple)) else (made,), strict=True):
            check_result_dtype(op, Out(value.shape, value.dtype), out)
            if out.shape != value.shape:
                raise errors.VmapError(errors.out_shape(op.qualified_name, out.shape, value.shape))
            aten.copy_(out, value)
        return outs[0] if len(outs) == 1 else tuple(outs)

    return write_outputs


def _refuse(op: Operator, why: str) -> Call:
    def refuse(ks: int, *args: Any) -> Any:
        top_level(args)
        raise errors.VmapError(errors.unmappable(op.qualified_name, why))

    return refuse


# ---- loops


def _loop(op: Operator) -> Call:
    mutated = op.schema.mutated_places

    def call_per_example(ks: int, *args: Any) -> Any:
        level = top_level(args)
        _check_written(op, mutated, args, level)
        _count_loop(op)
        if not level.size:
            raise errors.VmapError(errors.empty_loop(op))
        results = [op.call_boxed(tuple([example_of(arg, i, level) for arg in args])) for i in range(level.size)]
        if op.schema.kind == "inplace":
            return args[0]
        return _stacked(op, results, level)

    return call_per_example


def _count_loop(op: Operator) -> None:
    with _COUNTING:
        LOOPS[op.qualified_name] += 1
        first = LOOPS[op.qualified_name] == 1
    if first:
        warn(errors.slow_loop(op), is_ours, errors.LoopWarning)


def example_of(arg: Any, i: int, level: Level) -> Any:
    if isinstance(arg, Tensor):
        if arg.keys & BATCHED and arg.array.level is level:
            return aten.select__int(arg.array.value, arg.array.bdim, i)
        return arg
    if isinstance(arg, (list, tuple)):
        return [example_of(each, i, level) for each in arg]
    return arg


def _stacked(op: Operator, results: list[Any], level: Level) -> Any:
    first = results[0]
    if first is None:
        return None
    if isinstance(first, (list, tuple)):
        parts = [_stacked(op, list(each), level) for each in zip(*results, strict=True)]
        return parts if isinstance(first, list) else tuple(parts)
    if not isinstance(first, Tensor):
        raise errors.VmapError(errors.no_tensors(op))
    return batched_tensor(aten.stack(results, 0), 0, level)
