"""The source of methods: one for each operator with a method variant, and Python's operators.

`x + y` is the stub of `aten::add.Tensor` under another name; when it misses, `call_forms` looks at what `y` is.
"""

from __future__ import annotations

from turnout.operators.calls import CallSpec, Choice
from turnout.operators.stubs import default_source, python_name
from turnout_aten.generation.functions import (
    given_sizes,
    has_second_names,
    line_of_seen,
    second_names,
    second_signature,
    seen_before,
    sizes_alone,
    with_classes_of_results,
    with_lead,
    with_requires_grad,
    written_alone,
)
from turnout_aten.generation.packets import int_list_spreads, lead, packet_name, stub_name, takes_requires_grad
from turnout_aten.generation.source import Written, by_position, by_sizes, call, indented, inlined, inlined_calls, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.operators.calls import Target
    from turnout_aten.generation.packets import Declared, Packet

    # The overloads of a name without out variants and generated ones; empty if there is no such operator.
    Overloads = Callable[[str], Sequence[Declared]]

# Python's operator -> names of operators, the first that exists is taken.
# fmt: off
BINARY: dict[str, tuple[str, ...]] = {
    "__add__": ("add",), "__sub__": ("sub",), "__mul__": ("mul",), "__truediv__": ("div",),
    "__floordiv__": ("floor_divide",), "__mod__": ("remainder",), "__pow__": ("pow",), "__matmul__": ("matmul",),
    "__and__": ("bitwise_and", "__and__"), "__or__": ("bitwise_or", "__or__"), "__xor__": ("bitwise_xor", "__xor__"),
    "__lshift__": ("bitwise_left_shift", "__lshift__"), "__rshift__": ("bitwise_right_shift", "__rshift__"),
    "__eq__": ("eq",), "__ne__": ("ne",), "__lt__": ("lt",), "__le__": ("le",), "__gt__": ("gt",), "__ge__": ("ge",),
    "__iadd__": ("add_",), "__isub__": ("sub_",), "__imul__": ("mul_",), "__itruediv__": ("div_",),
    "__ifloordiv__": ("floor_divide_",), "__imod__": ("remainder_",), "__ipow__": ("pow_",),
    "__iand__": ("bitwise_and_", "__iand__"), "__ior__": ("bitwise_or_", "__ior__"),
    "__ixor__": ("bitwise_xor_", "__ixor__"),
    "__ilshift__": ("bitwise_left_shift_", "__ilshift__"), "__irshift__": ("bitwise_right_shift_", "__irshift__"),
}
# Reflected: operator that takes (self, other) in this order.
COMMUTATIVE: dict[str, tuple[str, ...]] = {
    "__radd__": ("add",), "__rmul__": ("mul",), "__rsub__": ("rsub",), "__rand__": ("bitwise_and", "__and__"),
    "__ror__": ("bitwise_or", "__or__"), "__rxor__": ("bitwise_xor", "__xor__"),
}
# Reflected: operator that takes (other, self), and what stands in for a missing (Scalar, Tensor) overload: an operator
# that self goes through before it is multiplied, or "tensor", which makes a tensor of the number.
REFLECTED: dict[str, tuple[str, str]] = {
    "__rtruediv__": ("div", "reciprocal"), "__rpow__": ("pow", ""), "__rmod__": ("remainder", ""),
    "__rfloordiv__": ("floor_divide", "tensor"), "__rmatmul__": ("matmul", ""),
    "__rlshift__": ("bitwise_left_shift", ""), "__rrshift__": ("bitwise_right_shift", ""),
}
UNARY: dict[str, tuple[str, ...]] = {
    "__neg__": ("neg",), "__pos__": ("positive",), "__abs__": ("abs",), "__invert__": ("bitwise_not",),
}
_SYMBOLS = {
    "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/",
    "__floordiv__": "//", "__mod__": "%", "__pow__": "**", "__matmul__": "@", "__and__": "&", "__or__": "|", "__xor__": "^",
    "__lshift__": "<<", "__rshift__": ">>", "__eq__": "==", "__ne__": "!=", "__lt__": "<", "__le__": "<=", "__gt__": ">",
    "__ge__": ">=",
}
SPECIAL = (*UNARY, *BINARY, *COMMUTATIVE, *REFLECTED)
# fmt: on


def method_source(packet: Packet) -> Written:
    """One method. Methods that make tensors from options also take `requires_grad`."""
    written = with_classes_of_results(packet, _method_source(packet))
    return with_requires_grad(written, packet.public_name) if takes_requires_grad(packet, method=True) else written


def _method_source(packet: Packet) -> Written:
    name = packet.public_name
    spreads = int_list_spreads(packet, method=True)
    if len(packet.bases) == 1:
        function = packet.bases[0]
        if spreads == "only":
            return _spread_method(name, function)
        if function.schema.positional[0] is function.schema.self_argument and not spreads:
            again = has_second_names(function.schema.arguments)
            return _with_second_names(name, function) if again else _inlined(function, name)
        if not spreads:
            return _reordered(name, function)
    main = lead(packet)
    if main is not None and main.schema.positional[0] is main.schema.self_argument:
        return with_lead(packet, main, main.schema, _spread_lines(spreads), lists=spreads)
    return _general(packet, name, spreads)


def _inlined(function: Declared, name: str, signature: str | None = None, prologue: Sequence[str] = ()) -> Written:
    lines = inlined(function, name, function.schema, signature=signature, prologue=prologue)
    return Written(lines, inlined_calls(lines, [target(function, function.schema)], function.schema))


def _general(packet: Packet, name: str, spreads: str) -> Written:
    lines = [f"def {name}(self, *args, **kwargs):"]
    targets: tuple[Target, ...] = ()
    alone = sizes_alone(packet) if spreads == "only" else None
    if alone is not None:
        size = python_name(next(a for a in alone.schema.positional if a is not alone.schema.self_argument).name)
        lines += [f"    {size} = args", *written_alone(alone, size, f"{stub_name(alone)}(self, {size})")]
        lines += ["    if not kwargs and args and only_ints(map(type, args)):", f"        return {stub_name(alone)}(self, args)"]
        targets = (by_sizes(alone, 1, alone=True),)
    lines += indented(_spread_lines(spreads))
    named = {tuple(a.name for a in f.schema.positional).index("self") for f in packet.bases}
    if named == {0}:
        lines += [*indented(seen_before(packet, "self")), f"    return {packet_name(packet)}(self, *args, **kwargs)"]
        choice = Choice(packet_name(packet), 1, 2 if spreads else None)
        if spreads != "only":
            choice = choice._replace(line=line_of_seen(lines, "self, "), after=1)
        return Written(lines, CallSpec(targets, packet=choice))
    # The overloads have self at one place among the positional arguments, or the packet is called by keyword.
    if len(named) == 1:
        at = next(iter(named))
        return Written(
            [*lines, f"    return {packet_name(packet)}(*args[:{at}], self, *args[{at}:], **kwargs)"], CallSpec(targets)
        )
    return Written([*lines, f"    return {packet_name(packet)}(*args, self=self, **kwargs)"], CallSpec(targets))


def _spread_lines(spreads: str) -> list[str]:
    if not spreads:
        return []
    # Where flags may follow, a single int is not yet a list: `int[1] dim` takes it as it is.
    return [f"if len(args) > {1 if spreads == 'leading' else 0} and all_ints(args):", "    args = (args,)"]


def _spread_method(name: str, function: Declared) -> Written:
    """x.reshape(2, 3) and x.reshape((2, 3))."""
    size = python_name(next(a for a in function.schema.positional if a is not function.schema.self_argument).name)
    stub = stub_name(function)
    quick = written_alone(function, size, f"{stub}(self, {size})") if len(function.schema.positional) == 2 else []
    lines = [
        f"def {name}(self, *{size}, **kwargs):",
        *quick,
        f"    if {size} and not kwargs:",
        f"        return {stub}(self, {given_sizes(size)})",
        f"    return {stub}(self, spread({size}), **kwargs) if {size} else {stub}(self, **kwargs)",
    ]
    return Written(lines, CallSpec((by_sizes(function, 1, alone=False),)))


def _with_second_names(name: str, function: Declared) -> Written:
    """A method with arguments that PyTorch has second names for: x.softmax(axis=0)."""
    schema = function.schema
    names = [a.name for a in schema.arguments if a is not schema.self_argument]
    prologue = second_names(name, f"self.{name}", names, out=False)
    return _inlined(function, name, second_signature(schema), prologue)


def _reordered(name: str, function: Declared) -> Written:
    """A method whose self is not the first argument: x.where(condition, other)."""
    schema = function.schema
    own = schema.self_argument
    assert own is not None
    rest = [a for a in schema.arguments if a is not own]
    parts = ["self"]
    keyword = False
    for a in rest:
        if a.kwarg_only and not keyword:
            parts.append("*")
            keyword = True
        parts.append(python_name(a.name) + (f"={default_source(a)}" if a.has_default else ""))
    return Written([f"def {name}({', '.join(parts)}):", f"    return {call(stub_name(function), schema)}"])


# ---- Python's operators


def operator_method(name: str, overloads_of: Overloads) -> Written:
    """The source of one special method; no lines where the operators for it do not exist."""
    if name in UNARY:
        found = _first(UNARY[name], overloads_of)
        return _inlined(found[0], name) if found else Written([])
    if name in REFLECTED:
        operator, instead = REFLECTED[name]
        found = overloads_of(operator)
        tensors = _overload(found, "Tensor", "Tensor")
        return Written([]) if tensors is None else _reflected(name, tensors, found, overloads_of, instead)
    found = _first(BINARY.get(name) or COMMUTATIVE.get(name, ()), overloads_of)
    tensors = _overload(found, "Tensor", "Tensor")
    if tensors is None:
        return Written([])
    form = "reflected" if name in COMMUTATIVE else "binary"
    return _binary(name, form, tensors, _overload(found, "Tensor", "Scalar"))


def operator_docstring(name: str) -> str:
    """The docstring of one special method: `__radd__` is "`other + self`; see `turnout.Tensor.add`."."""
    called = REFLECTED[name][0] if name in REFLECTED else (BINARY.get(name) or COMMUTATIVE[name])[0]
    if name in _SYMBOLS:
        written = f"self {_SYMBOLS[name]} other"
    elif name.startswith("__r"):
        written = f"other {_SYMBOLS[name.replace('__r', '__', 1)]} self"
    else:
        written = f"self {_SYMBOLS[name.replace('__i', '__', 1)]}= other"
    home = "turnout" if called == "rsub" else "turnout.Tensor"
    return f"`{written}`; see `{home}.{called}`."


def _first(names: Sequence[str], overloads_of: Overloads) -> Sequence[Declared]:
    return next(filter(None, map(overloads_of, names)), ())


def _overload(overloads: Sequence[Declared], first: str, second: str) -> Declared | None:
    """The overload that takes just these two types, further arguments having defaults."""
    for f in overloads:
        required = [str(a.type) for a in f.schema.arguments if not a.has_default]
        if required == [first, second]:
            return f
    return None


def _binary(name: str, form: str, tensors: Declared, scalar: Declared | None) -> Written:
    schema = tensors.schema
    arguments = tuple(
        a._replace(name=n) for a, n in zip(schema.positional[:2], ("self", "other"), strict=True)
    ) + tuple(a._replace(kwarg_only=True) for a in schema.arguments[2:])  # fmt: skip
    own = schema._replace(arguments=arguments, text=None)
    number = "None" if scalar is None else stub_name(scalar)
    miss = [f"return {form}(self, other, {stub_name(tensors)}, {number})"]
    # Asked first: it saves a number the 650 ns of a failed look-up. Two tensors of one class do not reach the set: 14 ns.
    is_number = "other.__class__ is not self.__class__ and other.__class__ in NUMBERS"
    prologue = [] if scalar is None else [f"if {is_number}:", f"    return {number}(self, other)"]
    targets = [target(tensors, own, drop_keywords=True), *([] if scalar is None else [by_position(scalar, 2)])]
    lines = inlined(tensors, name, own, prologue=prologue, miss=miss, drop_keywords=True)
    return Written(lines, inlined_calls(lines, targets, own, drop_keywords=True))


def _reflected(name: str, tensors: Declared, overloads: Sequence[Declared], overloads_of: Overloads, instead: str) -> Written:
    swapped = f"lambda a, b: {stub_name(tensors)}(b, a)"
    scalar = _overload(overloads, "Scalar", "Tensor")
    number = "None"
    if scalar is not None:
        number = f"lambda a, b: {stub_name(scalar)}(b, a)"
    elif instead == "tensor" and overloads_of("scalar_tensor"):
        made = f"{stub_name(overloads_of('scalar_tensor')[0])}(**as_operand(a, b), device=a.device)"
        number = f"lambda a, b: {stub_name(tensors)}({made}, a)"
    elif instead and overloads_of(instead):
        mul = _overload(overloads_of("mul"), "Tensor", "Scalar")
        if mul is not None:
            number = f"lambda a, b: {stub_name(mul)}({stub_name(overloads_of(instead)[0])}(a), b)"
    return Written([f"def {name}(self, other):", f"    return reflected(self, other, {swapped}, {number})"])
