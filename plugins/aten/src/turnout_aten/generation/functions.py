"""The text of the public functions: `turnout.add(input, other, *, alpha=1, out=None)` from one packet's overloads.

Three forms: one overload is its stub with `out=` added; several where one takes tensors only have that one's stub
inline and go to the packet when it misses; the rest call the packet.
"""

from __future__ import annotations

from turnout.operators.calls import CallSpec, Choice, Line
from turnout.operators.stubs import NO_INT30, default_source, python_name
from turnout.operators.tracebacks import VARARGS, VARKEYWORDS
from turnout_aten.declarations.signatures import tensor_options
from turnout_aten.functions.call_forms import SECOND_NAMES
from turnout_aten.generation.packets import (
    gives_list,
    has_more_positional,
    int_list_spreads,
    is_int_list,
    lead,
    packet_name,
    result_fields,
    return_type_name,
    same_inputs,
    stub_name,
    takes_requires_grad,
)
from turnout_aten.generation.source import (
    Written,
    by_position,
    by_sizes,
    call,
    indented,
    inlined,
    inlined_calls,
    public_schema,
    target,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from turnout.schema.model import Argument, FunctionSchema
    from turnout_aten.generation.packets import Declared, Packet


def function_source(packet: Packet) -> Written:
    """One public function. Factories with tensor options also take `requires_grad`."""
    written = with_classes_of_results(packet, _function_source(packet))
    return with_requires_grad(written, packet.public_name) if takes_requires_grad(packet, method=False) else written


def with_requires_grad(written: Written, name: str) -> Written:
    """A factory that also takes `requires_grad`: no schema has it. If it is true, the result is tracked."""
    lines = written.lines
    at = next(i for i, line in enumerate(lines) if line.startswith(f"def {name}("))
    line = lines[at]
    code = next(c for c in compile(f"{line} pass", "<signature>", "exec").co_consts if hasattr(c, "co_varnames"))
    names = code.co_varnames
    positional, keywords = names[: code.co_argcount], names[code.co_argcount :][: code.co_kwonlyargcount]
    rest = iter(names[code.co_argcount + code.co_kwonlyargcount :])
    given = [*positional, *([f"*{next(rest)}"] if code.co_flags & VARARGS else []), *(f"{n}={n}" for n in keywords)]
    asked = "requires_grad"
    if code.co_flags & VARKEYWORDS:
        more = next(rest)
        given.append(f"**{more}")
        asked = f'{more} and {more}.pop("requires_grad", False)'
    else:
        line = line.removesuffix("):") + (", " if keywords else ", *, ") + "requires_grad=False):"
    asks = [f"    if {asked}:", f"        return {name}({', '.join(given)}).requires_grad_()"]
    made, spec = [*lines[:at], line, *asks, *lines[at + 1 :]], written.spec
    if spec is not None and spec.last is not None:
        spec = spec._replace(last=Line.last(made, spec.last.names))
    if spec is not None and spec.packet is not None and (chosen := spec.packet.line) is not None:
        spec = spec._replace(packet=spec.packet._replace(line=Line.of(made, chosen.statement, chosen.names)))
    return Written(made, spec)


def with_classes_of_results(packet: Packet, written: Written) -> Written:
    """A function or method. Several results get their names, if they have any, and a list of tensors is a tuple, as in PyTorch:
    only operators give lists.
    """
    lists = any(map(gives_list, packet.bases))
    if not result_fields(packet) and not lists:
        return written
    kind = return_type_name(packet)
    main = lead(packet)
    one_result = [] if main is None or len(main.schema.returns) > 1 or gives_list(main) else ["return kernel("]
    new = "new_tuple" if all(gives_list(f) if lists else len(f.schema.returns) > 1 for f in packet.all) else "named"
    if any(r.type.is_tensor_list for f in packet.bases if len(f.schema.returns) > 1 for r in f.schema.returns):
        new = "nested"
    made = []
    for line in written.lines:
        code = line.lstrip()
        if lists and new == "named" and code.startswith("return op.call("):  # a call of a kind that was seen pays no frame
            made.append(f"{line.removesuffix(code)}made = {code.removeprefix('return ')}")
            line = f"{line.removesuffix(code)}return {kind}(made) if made.__class__ is list else made"
        elif code.startswith("return ") and not code.startswith(tuple(one_result)):
            line = f"{line.removesuffix(code)}return {new}({kind}, {code.removeprefix('return ')})"
        made.append(line)
    spec = written.spec
    if spec is not None and spec.packet is not None:  # the line that calls it says a class, too
        spec = spec._replace(packet=spec.packet._replace(line=None))
    if new == "nested":
        spec = None
    elif spec is not None and one_result:  # the kernel has one result, other overloads have several
        spec = spec._replace(packet=None)
    elif spec is not None:
        spec = spec._replace(results=kind)
        if spec.last is not None and new == "new_tuple":
            spec = spec._replace(last=Line.last(made, spec.last.names))
        elif spec.last is not None:  # whether there are several results is seen when they are there
            spec = spec._replace(targets=(), last=None)
    return Written(made, spec)


def _function_source(packet: Packet) -> Written:
    bases, outs = packet.bases, packet.outs
    if len(bases) == 1 and len(outs) <= 1 and all(same_inputs(bases[0], out) for out in outs):
        return _single(packet, bases[0], outs[0] if outs else None)
    main = lead(packet)
    if main is not None:
        return _with_lead(packet, main)
    return _general(packet)


def _single(packet: Packet, base: Declared, out: Declared | None) -> Written:
    name = packet.public_name
    schema = public_schema(base.schema)
    prologue: list[str] = []
    signature = None
    second = has_second_names(schema.arguments)
    if second:
        signature = second_signature(schema)
        prologue += second_names(name, name, [a.name for a in schema.arguments], out=out is not None)
        prologue += [] if out is None else [f"    {line}" for line in ["if out is not None:", *indented(_out_call(base, out))]]
    elif out is not None:
        parts = [python_name(a.name) + (f"={default_source(a)}" if a.has_default else "") for a in schema.positional]
        keywords = [
            f"{python_name(a.name)}={default_source(a)}" if a.has_default else python_name(a.name) for a in schema.kwarg_only
        ]
        signature = ", ".join([*parts, "*", *keywords, "out=None"])
        prologue += ["if out is not None:", *("    " + line for line in _out_call(base, out))]
    spreads = int_list_spreads(packet, method=False) if schema.self_argument is None else ""
    if spreads == "only" and base.schema.self_argument is None:
        return _spread(packet, base, signature, prologue)
    lines = inlined(base, name, schema, signature=signature, prologue=prologue)
    count = len(schema.positional)
    targets = [target(base, schema)]
    if out is not None and [a.name for a in out.schema.arguments[count:]] == ["out"]:
        targets.append(by_position(out, count, "out"))
    return Written(lines, inlined_calls(lines, targets, schema))


def has_second_names(arguments: Iterable[Argument]) -> bool:
    """Whether some argument can be given under PyTorch's second name for it."""
    return any(a.name in SECOND_NAMES.values() for a in arguments)


def second_signature(schema: FunctionSchema) -> str:
    """The parameters of a function whose arguments have second names, which come in `more`, like `out`.

    What may come under a second name, and what stands behind that, can be left out as far as Python is concerned. One
    dict for all keywords that are rarely given costs 5 ns where `out=None` as a parameter cost 12.
    """
    return ", ".join([*_leading(schema.positional), *_keywords(schema), "**more"])


def _leading(arguments: Iterable[Argument], optional: Container[str] = ()) -> list[str]:
    """The positional parameters. Those of `optional` have a default in another overload."""
    parts = []
    missing = False
    for a in arguments:
        missing = missing or ((a.name in SECOND_NAMES.values() or a.name in optional) and not a.has_default)
        default = f"={default_source(a)}" if a.has_default else "=MISSING" if missing else ""
        parts.append(python_name(a.name) + default)
    return parts


def _keywords(schema: FunctionSchema) -> list[str]:
    parts = [python_name(a.name) + (f"={default_source(a)}" if a.has_default else "") for a in schema.kwarg_only]
    return ["*", *parts] if parts else []


def second_names(function: str, again: str, names: Iterable[str], *, out: bool) -> list[str]:
    """Leading lines that call the function again with schema names. `again` is the expression to call."""
    given = ", ".join(f"{python_name(n)!r}: {python_name(n)}" for n in names)
    call_again = f"return {again}(**first_names({function}, more, {{{given}}})"
    if not out:
        return ["if more:", f"    {call_again})"]
    return ["if more:", '    out = more.pop("out", None)', "    if more:", f"        {call_again}, out=out)"]


def _out_call(base: Declared, out: Declared) -> list[str]:
    """Lines that call the out variant with the public function's arguments and `out`."""
    schema = public_schema(out.schema)
    names = [python_name(a.name) for a in out.schema.out_arguments]
    lines = []
    options = {a.name for a in tensor_options(base.schema)}
    if options:
        lines.append(f"check_options({out.qualified_name!r}, out, dtype, device)")
    if len(names) > 1 or names != ["out"]:
        given = f"out_tuple({out.qualified_name!r}, out, {len(names)})" if len(names) > 1 else "out"
        lines.append(f"{', '.join(names)} = {given}")
    return [*lines, f"return {call(stub_name(out), out.schema, schema)}"]


def _spread(packet: Packet, base: Declared, signature: str | None, prologue: list[str]) -> Written:
    """zeros(2, 3): the one positional argument is an int list."""
    size = python_name(base.schema.positional[0].name)
    name = packet.public_name
    lines = [
        *inlined(base, "_" + name, base.schema, signature=signature, prologue=prologue),
        "",
        "",
        f"_{name}.__qualname__ = {name!r}",  # errors about its arguments name the public function
        "",
        "",
        f"def {name}(*{size}, **kwargs):",
        *written_alone(base, size, f"_{name}({size})"),
        f"    if {size} and not kwargs:",
        f"        return _{name}({given_sizes(size)})",
        f"    return _{name}(spread({size}), **kwargs) if {size} else _{name}(**kwargs)",
    ]
    return Written(lines, CallSpec((by_sizes(base, 0, alone=False),)))


def written_alone(function: Declared, sizes: str, otherwise: str) -> list[str]:
    """Lines for a call with sizes written one by one, and nothing else: without the frames of the stub and of its check of the
    list. `otherwise` is the call where there is no kernel."""
    lines = inlined(function, "", function.schema, miss=[f"return {otherwise}"], drop_keywords=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("    state = "))
    return [
        f"    if {sizes} and not kwargs:",
        f"        for each in {sizes}:",
        f"            if {NO_INT30.format('each')}: break",
        "        else:",
        *indented(lines[start:], 2),
    ]


def sizes_alone(packet: Packet) -> Declared | None:
    """The overload that a call with several ints alone means: an int list is all that it needs beside self."""
    found = [f for f in packet.bases if _needs_only_sizes(f)]
    return found[0] if len(found) == 1 else None


def _needs_only_sizes(function: Declared) -> bool:
    schema = function.schema
    needed = [a for a in schema.arguments if not a.has_default and a is not schema.self_argument]
    first = [a for a in schema.positional if a is not schema.self_argument][:1]
    return len(needed) == 1 and needed == first and is_int_list(first[0])


def given_sizes(name: str) -> str:
    """The expression for `spread` of the sizes in a variable, without a call in the usual cases."""
    return f"{name} if len({name}) > 1 or {name}[0].__class__ is int else spread({name})"


def _with_lead(packet: Packet, main: Declared) -> Written:
    return with_lead(packet, main, public_schema(main.schema), _keyword_fixes(packet))


def with_lead(packet: Packet, main: Declared, schema: FunctionSchema, fixes: list[str], *, lists: str = "") -> Written:
    """A function with the lead's stub inline. `schema` is the lead's with arguments named as the parameters, `fixes` are lines
    for calls with more arguments, `lists` says whether these may also be the elements of a list, as `int_list_spreads` has it.
    """
    prologue, signature, miss = lead_parts(packet, main, schema)
    prologue = [prologue[0], *indented(fixes), *prologue[1:]]
    lines = inlined(main, packet.public_name, schema, signature=signature, prologue=prologue, miss=miss, drop_keywords=True)
    count = len(schema.positional)
    by_name = {*SECOND_NAMES.values(), *_optional(packet)}
    least = next((i for i, a in enumerate(schema.positional) if a.name in by_name), count)
    more = has_more_positional(packet, main)
    most = count + 1 if lists else None if more else count
    choice = Choice(packet_name(packet), least, most)
    if more and lists != "only":  # else a single int is made a list, and its overload is chosen by the packet
        choice = choice._replace(line=line_of_seen(lines, f"{_given(schema)}, "), after=count + 1)
    spec = inlined_calls(lines, [target(main, schema, drop_keywords=True)], schema, drop_keywords=True)
    return Written(lines, spec._replace(packet=choice))


def _optional(packet: Packet) -> set[str]:
    """The positional arguments that have a default in some overload."""
    return {a.name for f in packet.bases for a in f.schema.positional if a.has_default}


def lead_parts(packet: Packet, main: Declared, schema: FunctionSchema) -> tuple[list[str], str, list[str]]:
    """For a function with the lead's stub inline: the lines in front, the signature, and the way out of a miss.

    `schema` is the lead's with arguments named as the function's parameters.
    """
    given = _given(schema)
    more = "*args, " if has_more_positional(packet, main) else ""
    condition = "if args or kwargs:" if more else "if kwargs:"
    call = f"return {packet_name(packet)}({given}"
    signature = ", ".join([*_leading(schema.positional, _optional(packet)), f"{more}**kwargs"])
    seen = indented(seen_before(packet, given)) if more else []
    return [condition, *seen, f"    {call}, {more}**kwargs)"], signature, [*_seen_alone(packet, given), call + ")"]


def _given(schema: FunctionSchema) -> str:
    return ", ".join(python_name(a.name) for a in schema.positional)


def seen_before(packet: Packet, given: str) -> list[str]:
    """Lines for a call of a kind that the packet has seen: its overload, without the frame of the packet."""
    return [
        f"kinds = tuple(map(type, ({given}, *args)))",
        "if kwargs:",
        f"    op = {packet_name(packet)}.chosen.get((kinds, tuple(kwargs), tuple(map(type, kwargs.values()))))",
        "    if op is not None:",
        f"        return op.call({given}, *args, **kwargs)",
        "else:",
        f"    op = {packet_name(packet)}.chosen.get(kinds)",
        "    if op is not None:",
        f"        {_CALLS_SEEN.format(f'{given}, ')}",
    ]


_CALLS_SEEN = "return op.call({}*args)"


def line_of_seen(lines: Sequence[str], given: str) -> Line:
    """The line that calls an overload of that kind without keywords, with these arguments in front."""
    return Line.of(lines, _CALLS_SEEN.format(given), ["op", *filter(None, given.split(", ")), "*args"])


def _seen_alone(packet: Packet, given: str) -> list[str]:
    """Likewise, for a call without other arguments."""
    types = ", ".join(f"type({name})" for name in given.split(", "))
    return [f"op = {packet_name(packet)}.chosen.get(({types},))", "if op is not None:", f"    return op.call({given})"]


def _general(packet: Packet) -> Written:
    lines = [f"def {packet.public_name}(*args, **kwargs):", "    if kwargs:"]
    spec = CallSpec(packet=Choice(packet_name(packet), 0, None))
    fixes = _keyword_fixes(packet)
    lines += ["        " + line for line in fixes] if fixes else []
    if not fixes:
        lines.pop()
    if int_list_spreads(packet, method=False) == "only" and all(f.schema.self_argument is None for f in packet.bases):
        alone = sizes_alone(packet)
        if alone is not None:
            size = python_name(alone.schema.positional[0].name)
            quick = ["    if not kwargs and args and only_ints(map(type, args)):", f"        return {stub_name(alone)}(args)"]
            lines[1:1] = [f"    {size} = args", *written_alone(alone, size, f"{stub_name(alone)}({size})"), *quick]
            spec = spec._replace(targets=(by_sizes(alone, 0, alone=True),))
        spec = spec._replace(packet=Choice(packet_name(packet), 0, 1))
        size = python_name(packet.bases[0].schema.positional[0].name)
        lines += [f"    if all_ints(args) and {size!r} not in kwargs:", "        args = (args,)"]
    lines += [
        "    if not kwargs:",
        f"        op = {packet_name(packet)}.chosen.get(tuple(map(type, args)))",
        "        if op is not None:",
        f"            {_CALLS_SEEN.format('')}",
    ]
    if spec.packet is not None and spec.packet.most is None:
        spec = spec._replace(packet=spec.packet._replace(line=line_of_seen(lines, "")))
    return Written([*lines, f"    return {packet_name(packet)}(*args, **kwargs)"], spec)


def _keyword_fixes(packet: Packet) -> list[str]:
    """Lines that bring `out=` into the form of the out overloads: absent, or their own names."""
    if not packet.outs:
        return []
    lines = ['if kwargs.get("out", 0) is None:', '    del kwargs["out"]']
    if any(tensor_options(f.schema) for f in packet.bases):
        lines += ['elif "out" in kwargs:', f"    options_of_out({packet.outs[0].qualified_name!r}, kwargs)"]
    names = {tuple(a.name for a in f.schema.out_arguments) for f in packet.outs}
    own = next(iter(names - {("out",)}), None)
    if own is None or len(names - {("out",)}) > 1:
        return lines
    targets = ", ".join(f'kwargs["{n}"]' for n in own)
    # A packet such as max has out variants of both kinds: one tensor for max(x), two for max(x, dim).
    several = 'kwargs.get("out").__class__ in (tuple, list)' if ("out",) in names else '"out" in kwargs'
    given = 'kwargs.pop("out")'
    if len(own) > 1:
        given = f"out_tuple({packet.outs[0].qualified_name!r}, {given}, {len(own)})"
    return [*lines, f"elif {several}:", f"    {targets} = {given}"]
