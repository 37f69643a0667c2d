"""From a schema to the text of a function: stubs, and stubs with another signature or another way out of a miss."""

from __future__ import annotations

from turnout.config.tuples import NamedTuple
from turnout.operators.calls import CallSpec, Given, Line, Target
from turnout.operators.stubs import default_source, python_name, stub_source
from turnout_aten.generation.packets import cache_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.schema.model import FunctionSchema
    from turnout_aten.generation.packets import Declared

INDENT = "    "


class Written(NamedTuple):
    """The lines of a function and what its calls may be; None where they are only the calls of others."""

    lines: list[str]
    spec: CallSpec | None = None


def indented(lines: Sequence[str], levels: int = 1) -> list[str]:
    """The lines moved to the right."""
    return [INDENT * levels + line if line else line for line in lines]


def public_schema(schema: FunctionSchema) -> FunctionSchema:
    """The schema of the public function: `self` is called `input`, unless another argument is."""
    if schema.self_argument is None or any(a.name == "input" for a in schema.arguments):
        return schema
    arguments = tuple(a._replace(name="input") if a is schema.self_argument else a for a in schema.arguments)
    return schema._replace(arguments=arguments, text=None)


def call(name: str, schema: FunctionSchema, given: FunctionSchema | None = None, *extra: str) -> str:
    """`name(self, other, alpha=alpha)`: a call that passes on the arguments of `schema`, named as in `given`."""
    parts = []
    for argument, own in zip(schema.arguments, (given or schema).arguments, strict=True):
        value = python_name(own.name)
        parts.append(f"{python_name(argument.name)}={value}" if argument.kwarg_only else value)
    return f"{name}({', '.join([*parts, *extra])})"


def inlined(
    function: Declared,
    name: str,
    schema: FunctionSchema,
    *,
    miss: Sequence[str] | None = None,
    signature: str | None = None,
    prologue: Sequence[str] = (),
    drop_keywords: bool = False,
) -> list[str]:
    """The stub of `function` under another name.

    schema         the function's own with arguments renamed
    miss           lines in place of the stub's own way out of a miss
    signature      the text between the parentheses of `def`, in place of the schema's
    prologue       lines before the body
    drop_keywords  keyword-only arguments are not parameters; their defaults are passed
    """
    own = schema
    if drop_keywords:
        own = schema._replace(arguments=schema.positional, text=None)
    lines = stub_source(own, function.qualified_name, name, cache_name(function)).splitlines()
    if signature is not None:
        lines[0] = f"def {name}({signature}):"
    if drop_keywords:
        constants = [default_source(a) for a in schema.kwarg_only]
        lines[-1] = ", ".join([lines[-1].removesuffix(")"), *constants]) + ")"
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("return miss("))
    if miss is not None:
        lines[at : at + 1] = indented(miss, 2)
    elif drop_keywords:
        raise AssertionError("a stub without its keywords needs its own way out of a miss")
    return [lines[0], *indented(prologue), *lines[1:]]


def target(function: Declared, schema: FunctionSchema, *, drop_keywords: bool = False) -> Target:
    """The overload whose stub stands inline, `schema` being its own with arguments named as the parameters."""
    at = {a.name: i for i, a in enumerate(schema.positional)}
    keywords = ["" if drop_keywords or a.name in at else python_name(a.name) for a in schema.arguments]
    given = [Given(at.get(a.name, -1), keyword) for a, keyword in zip(schema.arguments, keywords, strict=True)]
    return Target(function, tuple(given), len(at))


def by_position(function: Declared, count: int, keyword: str = "") -> Target:
    """An overload that gets its first arguments by position, and its last one by a keyword if there is one."""
    rest = [Given()] * (len(function.schema.arguments) - count)
    if keyword:
        rest[-1] = Given(keyword=keyword)
    return Target(function, (*map(Given, range(count)), *rest), count)


def by_sizes(function: Declared, at: int, *, alone: bool) -> Target:
    """An overload that is called with ints one by one, from position `at` on, in place of a list of them."""
    given = [Given(i if i <= at else -1, python_name(a.name)) for i, a in enumerate(function.schema.arguments)]
    return Target(function, tuple(given), at + 1, at, alone)


def inlined_calls(
    lines: list[str], targets: Sequence[Target], schema: FunctionSchema, *, drop_keywords: bool = False
) -> CallSpec:
    """What the calls of a function may be that ends with an inline stub."""
    passed = [python_name(a.name) for a in (schema.positional if drop_keywords else schema.arguments)]
    return CallSpec(tuple(targets), Line.last(lines, ["kernel", "ks", *passed]))
