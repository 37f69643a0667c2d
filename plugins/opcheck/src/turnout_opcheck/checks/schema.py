"""What the schema says of memory and of results, against exact bytes.

Every variant is called on copies. What changed, what is shared, what is kept and what came back must be what the schema says.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import turnout
from turnout import Tensor
from turnout.schema import Return
from turnout_opcheck import derived
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import Before, content, facts, modes, overlap, put_back, results, share
from turnout_opcheck.report import Problem
from turnout_opcheck.subject import Subject, Variant, fresh


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    seen = _Seen()
    with turnout.enable_grad():
        for variant in subject.accepted():
            yield from _one(subject, variant, seen)
        yield from _declared_and_never_done(subject, seen)
        yield from _kept(subject)


class _Seen:
    """What some call did: the arguments it wrote, and those whose memory came back."""

    def __init__(self) -> None:
        self.written: set[str] = set()
        self.shared: set[tuple[int, str]] = set()
        self.elements = False


def _one(subject: Subject, variant: Variant, seen: _Seen) -> Iterator[Problem]:
    args = fresh(variant.args)
    for argument, value in zip(subject.schema.arguments, args, strict=True):
        if argument.is_out:
            _spoil(value)
    before, state = Before(subject.op, args), modes()
    value = subject.run(args)
    left = [name for name, now in modes().items() if now != state[name]]
    put_back(state)
    for name in left:
        yield Problem(f"left {name}", f"the operator left {name} changed", "set it in a with block, which puts it back")
    yield from _types(subject, value)
    yield from _writes(subject, args, before, seen)
    yield from _aliases(subject, args, value, seen)


def _spoil(value: Any) -> None:
    """Fill an output with a pattern, so that a write is seen whatever its value."""
    for _, tensor in derived.named("", value):
        tensor.fill_(derived.PATTERN if tensor.dtype.name != "bool" else True)


# ---- writes


def _writes(subject: Subject, args: Args, before: Before, seen: _Seen) -> Iterator[Problem]:
    declared = derived.written(subject.op, args)
    seen.elements = seen.elements or any(t.numel() for _, t in before.tensors)
    for i, name, what in before.changed():
        tensor = before.tensors[i][1]
        if (
            what == "memory"
            and id(tensor) not in declared
            and any(share(tensor, t) for _, t in before.tensors if id(t) in declared)
        ):
            continue
        if what == "memory":
            text = f"the operator writes outside of {name}, into memory that its elements do not take"
            yield Problem(f"outside {name}", text, "write through the tensor, not through its memory")
        elif id(tensor) not in declared and not any(share(tensor, t) for _, t in before.tensors if id(t) in declared):
            argument = name.partition("[")[0]
            fix = f"declare the write, Tensor(a!) {argument}, or work on a copy, {name}.clone()"
            yield Problem(f"writes {name}", f"the operator writes {name}, and its schema does not say so: {subject.schema}", fix)
        else:
            seen.written.add(name)
    for (name, tensor), was, version in zip(before.tensors, before.facts, before.versions, strict=True):
        if id(tensor) in declared:
            if tensor.version() == version and content(tensor) != before.content[before.tensors.index((name, tensor))]:
                text = f"the operator writes {name} and its version stays {version}, so that autograd would not see the write"
                yield Problem(f"version {name}", text, "write through operators, or register the kernel below ADInplaceOrView")
            continue
        for fact, value in facts(tensor).items():
            if value != was[fact]:
                shown = f"from {_shown(was[fact])} to {_shown(value)}"
                fix = f"work on an alias of it, {name}.detach()"
                yield Problem(
                    f"{fact} {name}",
                    f"the operator changes the {fact} of {name} {shown}".replace("the requires_grad", "requires_grad"),
                    fix,
                )
    for name, now, was_list in before.lists:
        if len(now) != len(was_list) or any(a is not b for a, b in zip(now, was_list, strict=True)):
            yield Problem(
                f"list {name}", f"the operator changed the list {name} that the caller gave it", f"work on a copy, list({name})"
            )


def _shown(value: Any) -> str:
    return str(list(value) if isinstance(value, tuple) else getattr(value, "name", value))


# ---- results


_KINDS: dict[str, tuple[Any, ...]] = {
    "int": (int,), "SymInt": (int,), "float": (float,), "SymFloat": (float,), "bool": (bool,), "SymBool": (bool,),
    "Scalar": (bool, int, float, complex), "str": (str,), "complex": (complex,),
}  # fmt: skip


def _types(subject: Subject, value: Any) -> Iterator[Problem]:
    returns = subject.schema.returns
    fix = f"return what the schema says: {subject.schema}"
    if not returns:
        if value is not None:
            text = f"the operator must return nothing, and returned {_type(value)}"
            yield Problem("nothing", text, fix)
        return
    values = (value,) if len(returns) == 1 else value
    if not isinstance(values, (tuple, list)) or len(values) != len(returns):
        count = len(values) if isinstance(values, (tuple, list)) else 1
        yield Problem("count", f"the operator must return {len(returns)} values, and returned {count}", fix)
        return
    for declared, each in zip(returns, values, strict=True):
        expected = _expected(declared, each)
        if expected:
            yield Problem("type", f"the operator must return {expected}, and returned {_type(each)}", fix)


def _expected(declared: Return, value: Any) -> str:
    """What a value should have been; "" if it is that."""
    kind = declared.type
    if kind.is_tensor_list:
        good = isinstance(value, (list, tuple)) and all(isinstance(v, Tensor) for v in value)
        return "" if good else "a list of tensors"
    if kind.is_tensor:
        return "" if isinstance(value, Tensor) or (value is None and kind.is_optional) else "a Tensor"
    classes = _KINDS.get(kind.canonical)
    if classes is None or type(value) in classes:
        return ""
    word = "int" if kind.canonical == "SymInt" else kind.canonical
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _type(value: Any) -> str:
    return "None" if value is None else type(value).__name__


# ---- memory of results


def _aliases(subject: Subject, args: Args, value: Any, seen: _Seen) -> Iterator[Problem]:
    """What results share, and should not. A composite may return views that its schema does not tell, as in PyTorch: gradients,
    batches and functionalize see the operators that it is made of."""
    inputs = [(a, name, t) for a, v in zip(subject.schema.arguments, args, strict=True) for name, t in derived.named(a.name, v)]
    found = [(i, name, t) for i, name, t in _outputs(subject, value) if isinstance(t, Tensor)]
    for at, (i, name, tensor) in enumerate(found):
        sets = _sets(subject.schema.returns[i])
        wrote = [(other, t) for a, other, t in inputs if a.is_write and _sets(a) & sets]
        if wrote and not any(t is tensor for _, t in wrote):
            names = " or ".join(other for other, _ in wrote)
            fix = f"return {names}, not a copy or a view of it"
            yield Problem(f"itself {name}", f"the operator must return {names} itself as {name}, as its schema says", fix)
        for a, other, t in inputs:
            if tensor.numel() and share(tensor, t):
                if _sets(a) & sets:
                    seen.shared.add((i, a.name))
                elif not subject.is_composite and not any(x is tensor for _, x in wrote) and not _given_together(t, sets, inputs):
                    yield _shares(name, other, tensor is t)
        for k, other, t in found[:at]:
            together = sets & _sets(subject.schema.returns[k]) or (subject.schema.return_aliases[i] and i == k)
            if tensor.numel() and not together and not subject.is_composite and overlap(tensor, t):
                yield _shares(name, other, tensor is t)


def _given_together(tensor: Tensor, sets: frozenset[str], inputs: list[Any]) -> bool:
    """Whether the caller gave a tensor in the memory of another that the result may share."""
    return any(share(tensor, t) for a, _, t in inputs if t is not tensor and _sets(a) & sets)


def _outputs(subject: Subject, value: Any) -> Iterator[tuple[int, str, Any]]:
    several = len(subject.schema.returns) > 1
    for i, each in enumerate(value if several else (value,)):
        for name, element in results(subject.op, value) if not several else _named(i, each):
            yield i, name, element


def _named(i: int, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        yield from ((f"result {i}[{k}]", v) for k, v in enumerate(value))
    else:
        yield f"result {i}", value


def _sets(declared: Any) -> frozenset[str]:
    return declared.annotation.sets if declared.annotation is not None else frozenset()


def _shares(name: str, other: str, same: bool) -> Problem:
    how = "is" if same else "shares memory with"
    fix = f"return a copy, {other}.clone(), or declare it: Tensor(a) for both"
    return Problem(f"{name} {how} {other}", f"{name} {how} {other}, and the schema does not say so", fix)


def _declared_and_never_done(subject: Subject, seen: _Seen) -> Iterator[Problem]:
    if not seen.elements:
        return
    given = {name for name, t in subject.tensors() if t.numel()}
    for argument in subject.schema.mutated_arguments:
        names = {n for n in given if n.partition("[")[0] == argument.name}
        if names and not names & seen.written:
            text = f"the schema says that {argument.name} is written, and no call wrote {argument.name}"
            yield Problem(f"never wrote {argument.name}", text, f"take the mark off: Tensor {argument.name}")
    for i, sources in enumerate(subject.schema.return_aliases):
        annotation = subject.schema.returns[i].annotation
        if annotation is None or annotation.is_write:
            continue
        there = [s for s in sources if any(n.partition("[")[0] == s for n in given)]
        if there and not any((i, s) in seen.shared for s in there):
            names_of = " or ".join(there)
            text = f"the schema says that a result may share memory with {names_of}, and no call returned memory of {names_of}"
            yield Problem(f"never shared {names_of}", text, "take the marks off: Tensor for both")


# ---- what is kept


def _kept(subject: Subject) -> Iterator[Problem]:
    """Whether a call keeps its arguments or results alive, or changes the results of an earlier one."""
    args = fresh(subject.args)
    value = subject.run(args)
    inputs = [(name, weakref.ref(t)) for name, t in derived.tensors(subject.op, args)]
    outputs = [(name, weakref.ref(t)) for name, t in results(subject.op, value) if isinstance(t, Tensor)]
    del args, value
    for told, references in (("keeps {}, which the caller gave it", inputs), ("keeps {} that it returned", outputs)):
        if any(reference() is not None for _, reference in references):
            gc.collect()
        for name, reference in references:
            if reference() is not None:
                text = f"the operator {told.format(name)}: its memory is never free, and a later write changes both"
                yield Problem(f"keeps {name}", text, "keep a copy, or nothing")
    first = subject.run(fresh(subject.args))
    then = [(name, t, content(t)) for name, t in results(subject.op, first) if isinstance(t, Tensor)]
    second = subject.run(derived.mapped(fresh(subject.args), derived.other_values))
    for name, tensor, bytes_then in then:
        for other, later in results(subject.op, second):
            if isinstance(later, Tensor) and tensor.numel() and share(tensor, later):
                text = f"{other} shares memory with the result of an earlier call"
                yield Problem("earlier", text, "make a new tensor in every call")
        if content(tensor) != bytes_then:
            yield Problem("earlier", f"a call changed {name} of an earlier call", "make a new tensor in every call")
