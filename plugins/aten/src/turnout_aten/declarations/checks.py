"""Checks across entries (groups, delegation, autogeneration) and across the fields of one entry.

Each check takes one function or one group and yields the texts of its problems. `checked` runs all checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from turnout.errors import SchemaError
from turnout.keys import EXPLICIT
from turnout.schema.model import FunctionSchema
from turnout_aten.declarations.conventions import check_conventions
from turnout_aten.declarations.model import Group, NativeFunction, NativeFunctions
from turnout_aten.declarations.signatures import signature
from turnout_aten.declarations.variants import BY_FUNCTIONAL, FUNCTIONAL, OUT, candidates, complete
from turnout_aten.errors.declarations import Problem, near


def checked(functions: list[NativeFunction], source: str, problems: list[Problem]) -> NativeFunctions:
    """The functions with their groups and generated variants. Problems are appended to `problems`."""

    def report(function: NativeFunction, text: str) -> None:
        problems.append(Problem(function.source, function.line, function.name, text))

    by_name: dict[str, NativeFunction] = {}
    for function in functions:
        first = by_name.setdefault(function.qualified_name, function)
        if first is not function:
            report(function, f"declared twice, first in line {first.line}")
        for text in _alone(function):
            report(function, text)
    groups = _grouped(list(by_name.values()), report)
    made: list[NativeFunction] = []
    completed: list[Group] = []
    for group in groups:
        for function in group:
            found = (_delegation(function, group, by_name), _written_out(function, group), _autogen(function, group, by_name))
            for text in chain.from_iterable(found):
                report(function, text)
        done, new = _completed(_with_bases(group))
        completed.append(done)
        made += new
        if done.out is not None and done.out.name in (f.name for f in group):
            by_name[done.out.qualified_name] = done.out
    return NativeFunctions([*by_name.values(), *made], completed, source)


# ---- one entry


def _alone(f: NativeFunction) -> Iterator[str]:
    schema = f.schema
    is_out = schema.kind == "out"
    try:
        # The names of PyTorch's own out arguments are older than the conventions.
        check_conventions(schema, historic=f.namespace == "aten")
    except SchemaError as error:
        yield str(error)
    if "method" in f.variants:
        if schema.self_argument is None or not schema.self_argument.type.is_tensor_like:
            yield "variants: a method needs an argument 'Tensor self'"
        if is_out:
            yield "variants: an out variant is a function only: x.f(out=y) would be ambiguous"
        if f.python_module is not None:
            yield f"python_module: functions of {f.python_module} cannot be methods; drop 'method' from variants"
    if f.structured:
        if not is_out:
            yield "structured belongs on the out variant; the others name it with structured_delegate"
        if f.structured_delegate is not None:
            yield "structured and structured_delegate exclude each other; keep one"
    elif f.structured_inherits is not None:
        yield "structured_inherits needs structured: True"
    elif f.precomputed is not None:
        yield "precomputed needs structured: True"
    if f.structured_delegate is not None and is_out:
        yield "structured_delegate: an out variant cannot delegate; write structured: True"
    if f.is_structured and not f.device_guard:
        yield "device_guard: False has no effect on structured operators; drop it"
    if f.use_const_ref_for_mutable_tensors and is_out:
        yield "use_const_ref_for_mutable_tensors is not for out variants"


# ---- groups


def _grouped(functions: list[NativeFunction], report: object) -> list[Group]:
    found: dict[tuple[str, FunctionSchema], Group] = {}
    for function in functions:
        key = (function.namespace, signature(function.schema))
        group = found.get(key, Group())
        kind = function.schema.kind
        other = getattr(group, kind)
        if other is not None:
            assert callable(report)
            report(function, f"has the same arguments as {other.name} in line {other.line}, so calls would be ambiguous")
            continue
        found[key] = replace(group, **{kind: function})
    return list(found.values())


def _delegation(f: NativeFunction, group: Group, by_name: dict[str, NativeFunction]) -> Iterator[str]:
    if f.structured and group.functional is None and f.schema.kind == "out":
        yield "structured: there is no functional variant with the same arguments"
    if f.structured_delegate is None:
        if group.is_structured and not f.structured and group.out is not None:
            yield f"its out variant {group.out.name} is structured: write structured_delegate: {group.out.name}"
        return
    target = by_name.get(f"{f.namespace}::{f.structured_delegate}")
    if target is None:
        known = [g.name for g in by_name.values() if g.structured]
        yield f"structured_delegate: no operator '{f.structured_delegate}'{near(f.structured_delegate, known)}"
    elif not target.structured:
        where = f"{target.name} in line {target.line}"
        yield f"structured_delegate: {where} is not structured; write structured: True there"
    elif target is not group.out and not takes_numbers_for(f.schema, target.schema):
        yield (
            f"structured_delegate: {target.name} has other arguments\n  {f.schema}\n  {target.schema}\n"
            "  expected  the same arguments, except that a Scalar may replace a Tensor"
        )


def takes_numbers_for(schema: FunctionSchema, delegate: FunctionSchema) -> bool:
    """Whether a schema has the delegate's inputs in order, possibly with a Scalar in place of a Tensor.

    The delegate's shape function and kernel then get a Python number. In PyTorch such an overload is composite and first
    wraps the number in a tensor.
    """
    own = signature(schema)
    other = signature(delegate)
    if own.name != other.name or len(own.arguments) != len(other.arguments) or own.returns != other.returns:
        return False
    for a, b in zip(own.arguments, other.arguments, strict=True):
        # `add.Scalar` takes alpha positionally, `add.out` by keyword: kernels get all arguments in order either way.
        if a.name != b.name or a.default_text != b.default_text:
            return False
        if str(a.type) != str(b.type) and (str(a.type), str(b.type)) != ("Scalar", "Tensor"):
            return False
    return True


# ---- autogeneration


def _autogen(f: NativeFunction, group: Group, by_name: dict[str, NativeFunction]) -> Iterator[str]:
    possible = candidates(group)
    for name in f.autogen:
        existing = by_name.get(f"{f.namespace}::{name}")
        if existing is not None:
            yield f"autogen: {name} exists already, in line {existing.line}"
        elif name not in possible:
            can = f"this entry can make {', '.join(possible)}" if possible else "this entry cannot make any variant"
            yield f"autogen: cannot make {name}{near(name, possible)}; {can}"


def _written_out(f: NativeFunction, group: Group) -> Iterator[str]:
    if BY_FUNCTIONAL not in f.dispatch.values():
        return
    if dict(f.dispatch) != {EXPLICIT: BY_FUNCTIONAL}:
        yield f"dispatch: {BY_FUNCTIONAL} belongs at {EXPLICIT}, with no kernel beside it"
    if group.functional is None or f is not group.out:
        yield f"dispatch: {BY_FUNCTIONAL} needs an out variant with a functional variant of the same arguments"


def _with_bases(group: Group) -> Group:
    """Give an out variant that was declared only for its output names the kernel that autogen would make."""
    out, functional = group.out, group.functional
    if out is None or functional is None or BY_FUNCTIONAL not in out.dispatch.values():
        return group
    made = replace(out, base=functional, device_guard=False, device_check="NoCheck")
    return replace(group, out=made)


def _completed(group: Group) -> tuple[Group, list[NativeFunction]]:
    """The group with the generated variants that its entries request, and these variants."""
    # differs from torch: `matmul.out` and its like are generated for CompositeImplicitAutograd operators too, where their entries
    # ask for it with `autogen`.
    made = complete(group, [name for f in group for name in f.autogen])
    return replace(group, **made), list(made.values())


assert (FUNCTIONAL, OUT) == ("functional", "out"), "the kinds name the fields of Group"
