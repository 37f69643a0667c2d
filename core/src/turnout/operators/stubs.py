"""Call stubs: the Python source of an operator's entry point, made from its schema.

A stub is compiled when its operator is first called. `linecache` gets its source, so that debuggers and tracebacks show it. It
normalises arguments, computes the key set, and makes one dict look-up.
"""

from __future__ import annotations

from functools import lru_cache
from keyword import iskeyword

from turnout.dtypes import DType
from turnout.operators import arguments
from turnout.operators.tracebacks import shorten
from turnout.state import STUB_BUILTINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType
    from typing import Any

    from turnout.operators import Operator
    from turnout.schema import Argument, FunctionSchema


def python_name(argument_name: str) -> str:
    """The argument's name as a Python identifier that a stub has no other use for: `from` becomes `from_`, `state` `state_`."""
    return argument_name + "_" if iskeyword(argument_name) or argument_name in _RESERVED else argument_name


def stub_source(schema: FunctionSchema, op_name: str, function: str, cache: str) -> str:
    """The source of the stub.

    `op_name` is the qualified name, `function` the name of the stub, `cache` the global with the operator's dict from key set
    to callable. The other globals of the stub are `STUB_GLOBALS` and `miss`.
    """
    names = [python_name(a.name) for a in schema.arguments]
    everything = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    lines = [
        f"def {function}({_signature(schema)}):",
        *("    " + line for argument in schema.arguments if (line := _normalise(argument, op_name))),
        "    state = DISPATCH()",
        "    try:",
        *_key_set(schema),
        f"        kernel = {cache}[ks]",
        "    except (KeyError, AttributeError, TypeError):",
        "        kernel = None",  # not here: an error below would be shown with this one as its context
        "    if kernel is None:",
        f"        return miss({op_name!r}, {everything})",
        f"    return kernel({', '.join(['ks', *names])})",
    ]
    return "\n".join(lines) + "\n"


def _signature(schema: FunctionSchema) -> str:
    parts: list[str] = []
    for argument in schema.arguments:
        if argument.kwarg_only and "*" not in parts:
            parts.append("*")
        name = python_name(argument.name)
        parts.append(f"{name}={default_source(argument)}" if argument.has_default else name)
    return ", ".join(parts)


def default_source(argument: Argument) -> str:
    """The default value as Python source: lists become tuples, as stubs pass them on."""
    value = argument.default
    if isinstance(value, (list, tuple)):
        return repr(tuple(value))
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float({str(value)!r})"
    if isinstance(value, DType):
        return f"DTYPES[{value.name!r}]"
    return repr(value)


def _key_set(schema: FunctionSchema) -> list[str]:
    """Lines that compute ks, inside the try."""
    plain: list[str] = []
    loops: list[str] = []
    for argument in schema.arguments:
        name = python_name(argument.name)
        kind = argument.type.canonical
        if kind == "Tensor" and not argument.may_be_none:
            plain.append(name)
        elif argument.type.is_tensor or kind.startswith("Generator"):
            loops += [f"        if {name} is not None and {name}.keys is not ks:", f"            ks |= {name}.keys"]
        elif argument.type.is_tensor_list and "?[" not in kind:
            source = f"{name} or ()" if kind.endswith("?") else name
            loops += [f"        for each in {source}:", f"            {_JOIN}"]
        elif argument.type.is_tensor_list:
            loops += [f"        for each in {name}:", "            if each is not None:", f"                {_JOIN}"]
    if not schema.takes_tensors:  # a factory's, at most with a generator's device
        return ["        ks = state[0]", *loops, "        ks &= state[1]"] if loops else ["        ks = state[0] & state[1]"]
    first, *others = plain or ["0"]
    # Plain tensors of one backend share one int object, which the cache finds sooner than an equal one: 20 ns of 770.
    joined = [f"        if {name}.keys is not ks: ks |= {name}.keys" for name in others]
    # FRESH adds only BackendSelect to the keys of tensors, and excludes nothing. Skipping it saves 40 ns of 800. While an
    # operator with tensors has a kernel at BackendSelect, the state is never FRESH itself: `Registry._note_deciding`.
    none = "" if plain else " or not ks"
    with_state = f"        if state is not FRESH{none}: ks = (ks | state[0]) & state[1]"
    return [f"        ks = {first}.keys" if plain else "        ks = 0", *joined, *loops, with_state]


_JOIN = "if each.keys is not ks: ks = ks | each.keys if ks else each.keys"
NO_INT30 = "({0}.__class__ is not int or not -1073741824 < {0} < 1073741824)"
# Defaults that need no check: to see that a value is one of them costs 7 ns, not 40. Python warns of `is` beside a number, so
# they have names.
_COMMON = {0: "ZERO", 1: "ONE", -1: "MINUS_ONE"}
# type -> (the condition under which the value must be normalised, the normaliser). Ints of 30 bits are compared in 5 ns, not 25.
_TESTS = {
    "Scalar": ("{0}.__class__ is not float and " + NO_INT30, "as_scalar"),
    "int": (NO_INT30, "as_int"),
    "SymInt": (NO_INT30, "as_symint"),
    "float": ("{0}.__class__ is not float", "as_float"),
    "bool": ("{0}.__class__ is not bool", "as_bool"),
    "str": ("{0}.__class__ is not str", "as_str"),
    "ScalarType": ("{0}.__class__ is not DType", "as_dtype"),
    "Device": ("{0}.__class__ is not Device", "as_device"),
}
_LISTS = {"int": "as_ints", "SymInt": "as_symints", "float": "as_floats", "bool": "as_bools", "Scalar": "as_scalars"}


def _normalise(argument: Argument, op_name: str) -> str:
    """The statement that checks or converts one argument; "" for types that need none."""
    name = python_name(argument.name)
    kind = argument.type.canonical
    inner = kind.removesuffix("?")
    where = f"{op_name!r}, {argument.name!r}, {name}"
    guard = f"{name} is not None" if argument.may_be_none else ""
    if inner in _TESTS:
        test, function = _TESTS[inner]
        if argument.has_default and argument.default.__class__ is int and argument.default in _COMMON:
            test = f"{name} is not {_COMMON[argument.default]} and {test}"
        condition = " and ".join(filter(None, [guard, test.format(name)]))
        return f"if {condition}: {name} = {function}({where})"
    element, _, size = inner.removesuffix("]").partition("[")
    if inner.endswith("]") and (function := _LISTS.get(element, "")):
        call = f"{function}({where}{', ' + size if size and function != 'as_scalars' else ''})"
        if argument.has_default and argument.default in ((), []):  # None means the empty list, as in PyTorch's functions
            call = f"() if {name} is None else {call}"
        call = f"{name} = {call}"
        if "int" in function:  # a tuple of ints needs no frame
            items = f"{name} if {name}.__class__ is tuple else {f'() if {name} is None else ' if guard else ''}(None,)"
            alone = f"if {name}.__class__ is int: {name} = ({name},) * {size}\n    " if size else ""
            return f"{alone}for each in {items}:\n        if {NO_INT30.format('each')}:\n            {call}\n            break"
        return f"if {guard}: {call}" if guard else call
    if argument.type.is_tensor_list:
        # The key set needs a sequence that can be read twice.
        condition = " and ".join(filter(None, [guard, f"{name}.__class__ is not tuple and {name}.__class__ is not list"]))
        return f"if {condition}: {name} = as_sequence({where})"
    return ""


def compile_function(source: str, function: str, filename: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Compile generated source so that tracebacks and debuggers show it. `filename` should read like `<stub of x>`."""
    run_source(source, _code_of(source, filename), namespace)
    made: Callable[..., Any] = namespace.pop(function)  # a function among its own globals would be a cycle
    return made


# What is made anew after a change of settings or registrations is mostly the text that was compiled before.
@lru_cache(maxsize=4096)
def _code_of(source: str, filename: str) -> CodeType:
    return compile(source, filename, "exec", dont_inherit=True)


def run_source(source: str, code: CodeType, namespace: dict[str, Any]) -> None:
    """Run generated code in a namespace; tracebacks and debuggers show its source."""
    import linecache  # loads re: not before the first stub is compiled

    filename = code.co_filename
    namespace.setdefault("__name__", __name__)  # whose frames these are
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(code, namespace)


def forget_source(filename: str) -> None:
    """Debuggers no longer show this generated source."""
    import linecache

    linecache.cache.pop(filename, None)


def compile_stub(op: Operator) -> Callable[..., Any]:
    """The stub of an operator."""
    # Loads typing: not before the first stub is made.
    from turnout.operators.calls import CallSpec, Given, Line, Source, Target, entry_point, public_lines

    namespace = {**STUB_GLOBALS, "CACHE": op.cache, "miss": op.registry.miss, "__name__": __name__}
    function, file = python_name(op.name + ("_" + op.overload if op.overload else "")), f"<stub of {op.qualified_name}>"
    text = stub_source(op.schema, op.qualified_name, function, "CACHE")
    lines = public_lines(text.splitlines(), f"the stub of {op.qualified_name}, written from its schema")
    stub = compile_function("\n".join(lines), function, file, namespace)
    stub.__qualname__ = op.qualified_name
    names = [python_name(a.name) for a in op.schema.arguments]
    count = len(op.schema.positional)
    given = tuple([Given(i if i < count else -1, name) for i, name in enumerate(names)])
    last = Line.last(text.splitlines(), ["kernel", "ks", *names])
    return entry_point(stub, CallSpec((Target(op, given, count),), last), Source(file, function, namespace))


_LOCALS = ("state", "ks", "kernel", "each", "_error")
_BUILTINS = ("DISPATCH", "KeyError", "AttributeError", "TypeError", "Exception")
_FROM_ARGUMENTS = ("DTYPES", "DType", "Device", "FRESH", "as_sequence", *(name for _, name in _TESTS.values()), *_LISTS.values())
STUB_GLOBALS: dict[str, Any] = {
    **{name: getattr(arguments, name) for name in _FROM_ARGUMENTS},
    **{name: value for value, name in _COMMON.items()},
    "SHORTEN": shorten,
    "__builtins__": STUB_BUILTINS,
}
_RESERVED = frozenset({*_LOCALS, *_BUILTINS, *STUB_GLOBALS, "CACHE", "miss"})


def passed_on(op: Operator, args: Sequence[Any]) -> tuple[Any, ...]:
    """All arguments of a call as the stub passes them to a kernel: a list of ints as a tuple, a name of a device as a device."""
    by_name = {python_name(a.name): value for a, value in zip(op.schema.arguments, args, strict=True)}
    passed: tuple[Any, ...] = _passing(op.schema, op.qualified_name)(**by_name)
    return passed


@lru_cache(64)
def _passing(schema: FunctionSchema, name: str) -> Callable[..., Any]:
    """A stub that gives back what it would pass to a kernel."""
    own: dict[str, Any] = {**STUB_GLOBALS, "CACHE": {}, "miss": lambda _, given: given}
    exec(stub_source(schema, name, "stub", "CACHE"), own)
    found: Callable[..., Any] = own.pop("stub")  # a function among its own globals would be a cycle
    return found
