"""The docstrings of public functions and methods: signatures from the schemas, words from `declarations/docs`.

The build makes them: for compiled functions in `turnout_aten/generated/docstrings.txt`, for editors in the type stubs.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Sequence

from turnout.errors import SchemaError
from turnout.schema.types import ListType, OptionalType, Type
from turnout_aten.declarations.documentation import Documentation
from turnout_aten.functions.public_modules import PUBLIC
from turnout_aten.generation.packets import Packet, result_fields
from turnout_aten.generation.parameters import KEYWORD, POSITIONAL, REQUIRED, SPREAD, Parameter, of_overload, of_packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.schema.model import FunctionSchema

WIDTH = 100
# The public module of a python_module, as users import it.

_WORDS = {
    "Tensor": "Tensor", "Scalar": "number", "SymInt": "int", "SymFloat": "float", "SymBool": "bool", "ScalarType": "DType",
    "Device": "Device or str", "DeviceIndex": "int", "Layout": "layout", "MemoryFormat": "memory format",
}  # fmt: skip


class Docstrings:
    """The docstrings of one set of operators. `functions` are their public functions, which texts refer to."""

    def __init__(self, words: Documentation, functions: Iterable[Packet]) -> None:
        self._words = words
        self._paths = {p.name: f"{PUBLIC[p.module]}.{p.public_name}" for p in functions}

    def function(self, packet: Packet) -> str:
        """The docstring of a packet's function; "" if nothing is written about it."""
        return self._compose(packet, method=False)

    def method(self, packet: Packet) -> str:
        """The docstring of a packet's method; "" if nothing is written about it."""
        return self._compose(packet, method=True)

    def missing(self, packet: Packet, *, method: bool) -> list[str]:
        """What nothing is written about: "the operator", or arguments."""
        if self._words.find(packet.name) is None:
            return ["the operator"]
        names = [p.name for p in of_packet(packet, method=method)]
        return [name for name in names if not self._argument(packet, name)]

    def _compose(self, packet: Packet, *, method: bool) -> str:
        entry = self._words.find(packet.name)
        if entry is None:
            return ""
        parts = ["\n".join(signature_lines(packet, method=method)), _filled(self._summary(packet, entry.does, method=method))]
        described = []
        for p in of_packet(packet, method=method):
            words = f"{p.name} ({_type_words(packet, p, method=method)}): {self._argument(packet, p.name)}"
            described.append(_filled(words, "    ", "        "))
        if described:
            parts.append("\n".join(["Arguments:", *described]))
        raised = dict(self._words.raises(packet.name, *_operands(packet)))
        target = "`input`" if packet.name.endswith("_") and entry.name != packet.name else "`out`" if packet.outs else ""
        if target and not (method and target == "`out`"):
            raised["DTypeError"] = ", or ".join(filter(None, [raised.get("DTypeError"), f"{target} cannot hold the result"]))
        if raised:
            parts.append("\n".join(["Raises:", *(_filled(f"{e}: {when}.", "    ", "        ") for e, when in raised.items())]))
        example = self._example(packet, method=method)
        if example:
            parts.append("Example:\n" + textwrap.indent(example.strip("\n"), "    "))
        names = [f.qualified_name for f in (packet.bases if method else packet.all)]
        parts.append(_filled(f"Operator{'s' if len(names) > 1 else ''}: {', '.join(names)}", "", "    "))
        text = "\n\n".join(parts) + "\n"
        return text.replace("`input`", "`self`") if method else text

    def _summary(self, packet: Packet, does: str, *, method: bool) -> str:
        own = self._words.entries.get(packet.name)
        if own is not None and own.alias:
            return f"Another name of `{self._paths.get(own.alias, f'turnout.Tensor.{own.alias}')}`. {does}"
        entry = self._words.find(packet.name)
        if entry is not None and entry.name != packet.name:
            base = packet.name[:-1]
            path = f"turnout.Tensor.{base}" if method else self._paths.get(base, base)
            does = does.replace("A copy of `input`", "`input`", 1)
            return f"In-place version of `{path}`: writes the result into `input` and returns `input`. {does}"
        return does

    def _argument(self, packet: Packet, name: str) -> str:
        if name == "self":
            return self._words.argument(packet.name, "self") or self._words.argument(packet.name, "input")
        return self._words.argument(packet.name, name)

    def _example(self, packet: Packet, *, method: bool) -> str:
        """The example, with the call in the form of this function or method."""
        own = self._words.entries.get(packet.name)
        if own is not None and method and own.method:
            return own.method
        if own is not None and own.example:
            lines, called = own.example, self._paths.get(packet.name)
        else:
            found = self._words.find(packet.name)
            assert found is not None
            lines, called = (found.method if method and found.method else found.example), self._paths.get(found.name)
            if lines == found.method:
                return lines.replace(f".{found.name}(", f".{packet.name}(")
        return _recast(lines, called, f".{packet.name}" if method else self._paths[packet.name])


def signature_lines(packet: Packet, *, method: bool) -> list[str]:
    """`add(input, other, *, alpha=1, out=None) -> Tensor`: one line for each overload, with the types where they differ."""
    overloads = [of_overload(packet, f, method=method) for f in packet.bases]
    lines = []
    for f, own in zip(packet.bases, overloads, strict=True):
        parts = []
        for i, p in enumerate(own):
            if p.kind == KEYWORD and (i == 0 or own[i - 1].kind == POSITIONAL):
                parts.append("*")
            types = {str(q.type) for other in overloads for q in other if q.name == p.name}
            shown = f"{p.name}: {words_of(p.type)}" if len(types) > 1 and p.type is not None else p.name
            equals = " = " if shown != p.name else "="
            default = p.text().removeprefix(f"{p.name}=") if p.default is not REQUIRED else ""
            parts.append(f"*{p.name}" if p.kind == SPREAD else f"{shown}{equals}{default}" if default else shown)
        lines.append(f"{packet.public_name}({', '.join(parts)}) -> {_result_words(packet, f.schema)}")
    return list(dict.fromkeys(lines))


def words_of(type: Type) -> str:
    """A schema type in words: "int or list of 2 int"."""
    if isinstance(type, OptionalType):
        return f"{words_of(type.elem)} or None"
    if isinstance(type, ListType):
        elem = words_of(type.elem)
        if type.size is None or elem == "Tensor":
            return f"list of {elem}"
        return f"{elem} or list of {f'{type.size} ' if type.size > 1 else ''}{elem}"
    return _WORDS.get(type.canonical, type.canonical)


def _operands(packet: Packet) -> tuple[set[str], int]:
    """The names of a packet's arguments, and how many tensors an overload takes at most; a list counts as several."""
    names = {p.name for p in of_packet(packet, method=False)}
    return names, max(sum(_tensors(a.type) for a in f.schema.arguments) for f in packet.bases)


def _tensors(type: Type) -> int:
    return 0 if "Tensor" not in type.canonical else 2 if isinstance(type, ListType) else 1


def _type_words(packet: Packet, parameter: Parameter, *, method: bool) -> str:
    """The types that a parameter accepts in any overload."""
    if parameter.name == "out":
        counts = {len(f.schema.out_arguments) for f in packet.outs}
        return " or ".join("Tensor" if n == 1 else f"tuple of {n} Tensor" for n in sorted(counts)) + " or None"
    if parameter.name == "requires_grad":
        return "bool"
    found = [
        p.type for f in packet.bases for p in of_overload(packet, f, method=method)
        if p.name == parameter.name and p.type is not None
    ]  # fmt: skip
    words = list(dict.fromkeys(each for type in found for each in words_of(type).split(" or ")))
    if parameter.kind == SPREAD:
        words = ["int, one by one or in a list"]
    return " or ".join([*(w for w in words if w != "None"), *(["None"] if "None" in words else [])])


def _result_words(packet: Packet, schema: FunctionSchema) -> str:
    fields = result_fields(packet) if len(schema.returns) > 1 else ()
    if fields:
        return f"({', '.join(fields)})"
    words = []
    for r in schema.returns:
        words.append("tuple of Tensor" if r.type.is_tensor_list else words_of(r.type))
    return "None" if not words else words[0] if len(words) == 1 else f"({', '.join(words)})"


def _filled(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


# ---- examples in another form


def _recast(lines: str, called: str | None, form: str) -> str:
    """The example with its call of `called` in the form of another function, or of a method: `x.add(y)` if `form` is ".add"."""
    if called == form or called is None:
        return lines
    made: list[str] = []
    changed = False
    for prompt, source in re.findall(r"^(>>> |\.\.\. |)(.*)\n?", lines, re.MULTILINE)[:-1]:
        if not prompt or called not in source:
            made.append(prompt + source)
            continue
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == called:
                changed = True
                if not form.startswith("."):
                    node.func = ast.parse(form, mode="eval").body
                elif node.args:
                    node.func = ast.Attribute(node.args.pop(0), form[1:], ast.Load())
        made.append(prompt + ast.unparse(tree).replace("'", '"'))
    if not changed:
        raise SchemaError(f"no line of the example calls {called}, which is needed to show {form}:\n{lines}")
    return "\n".join(made) + "\n"


def docstring_lines(text: str) -> Sequence[str]:
    """A docstring as lines of source, raw if it contains a backslash; none for an empty text."""
    if not text:
        return []
    quoted = ('r"""' if "\\" in text else '"""') + text.rstrip("\n") + '\n"""'
    return textwrap.indent(quoted, "    ", lambda line: bool(line.strip())).splitlines()
