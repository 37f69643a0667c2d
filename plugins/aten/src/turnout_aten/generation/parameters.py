"""The parameters of a public function or method as users see them: for `inspect.signature` and docstrings.

The text that is compiled takes rare keywords in `**kwargs`, and leaves the choice of an overload to the packet. Users read what
the schemas say: `add(input, other, *, alpha=1, out=None)`.
"""

from __future__ import annotations

import inspect
from inspect import Signature

from turnout.config.tuples import NamedTuple
from turnout.dtypes import DType
from turnout.operators.stubs import python_name
from turnout_aten.declarations.signatures import tensor_options
from turnout_aten.generation.annotations import accepted_text, plain, returns_text
from turnout_aten.generation.packets import gives_list, int_list_spreads, result_fields, same_inputs, takes_requires_grad
from turnout_aten.generation.source import public_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from turnout.schema.types import Type
    from turnout_aten.generation.packets import Declared, Packet

POSITIONAL, SPREAD, KEYWORD = range(3)
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
_EMPTY: Any = inspect.Parameter.empty


class _Default:
    """The default of a parameter that has none. A signature shows its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


REQUIRED = _Default("REQUIRED")
OMITTED = _Default("...")


class Parameter(NamedTuple):
    """One parameter. `default` is a value, REQUIRED, or OMITTED: it may be left out, as some overload does not have it."""

    name: str
    kind: int
    default: Any
    type: Type | None

    def text(self) -> str:
        """As in a `def` line."""
        star = "*" if self.kind == SPREAD else ""
        return f"{star}{self.name}" + ("" if self.default is REQUIRED else f"={default_text(self.default)}")


def of_overload(packet: Packet, f: Declared, *, method: bool) -> list[Parameter]:
    """The parameters of one overload, `out` and `requires_grad` among them where the function takes them."""
    schema = f.schema if method else public_schema(f.schema)
    spread = _spread_name(packet, method=method)
    first = [a for a in schema.arguments if method and a is schema.self_argument]
    positional, keywords = [Parameter("self", POSITIONAL, REQUIRED, a.type) for a in first], []
    for a in schema.arguments:
        if (a.is_out and a.name != "self") or a in first:
            continue
        default = a.default if a.has_default else REQUIRED
        if python_name(a.name) == spread:
            positional.append(Parameter(spread, SPREAD, REQUIRED, a.type))
        elif a.kwarg_only or (positional and positional[-1].kind == SPREAD):
            keywords.append(Parameter(python_name(a.name), KEYWORD, default, a.type))
        else:
            positional.append(Parameter(python_name(a.name), POSITIONAL, default, a.type))
    if not method and any(same_inputs(f, out) for out in packet.outs):
        keywords.append(Parameter("out", KEYWORD, None, None))
    if tensor_options(f.schema) and takes_requires_grad(packet, method):
        keywords.append(Parameter("requires_grad", KEYWORD, False, None))
    return positional + keywords


def of_packet(packet: Packet, *, method: bool) -> list[Parameter]:
    """The parameters of all overloads: those of the overload with most positional ones, then the others, by keyword."""
    overloads = [of_overload(packet, f, method=method) for f in packet.bases]
    longest = max(overloads, key=lambda own: sum(p.kind == POSITIONAL for p in own))
    found = {p.name: p for own in (longest, *overloads) for p in reversed(own)}
    names = [*(p.name for p in longest), *(p.name for own in overloads for p in own)]
    made: list[Parameter] = []
    optional = False
    for name in dict.fromkeys(names):
        kinds = [q.kind for own in overloads for q in own if q.name == name]
        p = next((p for p in longest if p.name == name), found[name])
        p = p._replace(kind=max(kinds) if any(q.name == name for q in longest) else KEYWORD)
        everywhere = all(any(each.name == name for each in own) for own in overloads)
        has_default = next(
            (q.default for own in overloads for q in own if q.name == name and q.default is not REQUIRED), REQUIRED
        )
        default = p.default if p.default is not REQUIRED else has_default
        if default is REQUIRED and p.kind != SPREAD and (not everywhere or (optional and p.kind == POSITIONAL)):
            default = OMITTED
        optional = optional or (p.kind == POSITIONAL and default is not REQUIRED)
        made.append(p._replace(default=default))
    return sorted(made, key=lambda p: p.kind)


def shown(packet: Packet, *, method: bool) -> tuple[list[Parameter], Any]:
    """What a signature shows: `of_packet`, and the type of the result where all overloads have the same."""
    kinds = {"tuple[Tensor, ...]" if gives_list(f) else plain(returns_text(f.schema)) for f in packet.bases}
    fields = result_fields(packet)
    return of_packet(packet, method=method), kinds.pop() if len(kinds) == 1 and not fields else _EMPTY


def _annotation(p: Parameter) -> Any:
    if p.name == "self":
        return _EMPTY
    if p.type is None:
        return "bool" if p.name == "requires_grad" else "Any"
    text = plain(accepted_text(p.type)) if p.kind != SPREAD else "int"
    return f"{text} | None" if p.default is None and not text.endswith("| None") else text


class LateSignature(Signature):
    """A signature whose parameters are made when they are asked for: making them takes as long as compiling the function."""

    __slots__ = ("_make",)

    def __init__(self, *args: Any, make: Callable[[], tuple[Iterable[Parameter], Any]] | None = None, **kwargs: Any) -> None:
        self._make = make
        if make is None:
            super().__init__(*args, **kwargs)

    def _complete(self) -> None:
        if self._make is not None:
            made, returned = self._make()
            parameters = [
                inspect.Parameter(
                    p.name, _KINDS[p.kind], default=_EMPTY if p.default is REQUIRED else p.default, annotation=_annotation(p)
                )
                for p in made
            ]
            super().__init__(parameters, return_annotation=returned)
            self._make = None

    @property
    def parameters(self) -> Any:
        self._complete()
        return super().parameters

    @property
    def return_annotation(self) -> Any:
        self._complete()
        return super().return_annotation


def default_text(value: object) -> str:
    """A default value as users write it."""
    if isinstance(value, DType):
        return f"turnout.{value.name}"
    if isinstance(value, list):
        return repr(tuple(value))
    return repr(value)


def _spread_name(packet: Packet, *, method: bool) -> str | None:
    """The int list that the caller writes as several arguments, if that is the only way it is compiled."""
    if int_list_spreads(packet, method=method) != "only":
        return None
    if not method and any(f.schema.self_argument is not None for f in packet.bases):
        return None
    own = packet.bases[0].schema
    return python_name(next(a for a in own.positional if not (method and a is own.self_argument)).name)
