"""The text of the `.pyi` file of `turnout.ops.aten`: a class for each packet, with its overloads and the calls that it takes.

The file has no module beside it: at run time packets are objects of the dispatcher, which are found by name.
"""

from __future__ import annotations

import re
from keyword import iskeyword

from turnout.operators.stubs import python_name
from turnout.schema.model import FunctionSchema
from turnout_aten.declarations.model import NativeFunction, NativeFunctions
from turnout_aten.generation.annotations import accepted_text, returns_text, type_text
from turnout_aten.generation.source import indented
from turnout_aten.generation.typestubs import header

_PACKET = """
class _Packet:
    name: _str
    namespace: _str
    def overloads(self) -> list[_str]: ...
    def choose(self, /, *args: Any, **kwargs: Any) -> Operator: ...
    def __iter__(self) -> Iterator[Operator]: ...
"""


def operators_stub(functions: NativeFunctions, source: str) -> str:
    """The type stub of the packets of a yaml."""
    packets: dict[str, list[NativeFunction]] = {}
    for function in functions:
        packets.setdefault(function.schema.name.name, []).append(function)
    lines = [
        header("Operators as `turnout.ops` has them.", source, results=False),
        "from collections.abc import Iterator\n",
        "from turnout.operators import Operator",
        "from turnout_aten.tensor.tensor import Tensor as _Tensor",  # in a class, `Tensor` may be an overload
        _PACKET,
    ]
    for name, members in sorted(packets.items()):
        body = [f"{overload}: Operator" for f in members if not iskeyword(overload := f.schema.name.overload or "default")]
        calls = list(dict.fromkeys(_call(f.schema) for f in members))
        body += calls if len(calls) == 1 else [line for call in calls for line in ("@overload", call)]
        lines += [f"class _Packet_{name}(_Packet):", *indented(body)]
    lines += ["class Namespace_aten:", *indented([f"{name}: _Packet_{name}" for name in sorted(packets) if not iskeyword(name)])]
    return "\n".join(lines) + "\n"


def _call(schema: FunctionSchema) -> str:
    """The call of an overload, with the names of its schema: an argument may be called `self`."""
    parts = ["packet", "/"]
    star = False
    for argument in schema.arguments:
        if argument.kwarg_only and not star:
            parts.append("*")
            star = True
        accepted = type_text(argument.type) if argument.is_out else accepted_text(argument.type)
        optional = argument.has_default and argument.default is None and not accepted.endswith("| None")
        default = " = ..." if argument.has_default else ""
        parts.append(f"{python_name(argument.name)}: {accepted}{' | None' if optional else ''}{default}")
    return re.sub(r"\bTensor\b", "_Tensor", f"def __call__({', '.join(parts)}) -> {returns_text(schema)}: ...")
