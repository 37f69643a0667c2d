"""Reads one entry of a native function file into one `NativeFunction`. Checks across entries are in `checks`.

`FIELDS` lists the fields with their reader functions. A field that cannot be read is recorded as a problem and gets its default,
so that the rest of the entry is still checked.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from turnout.errors import SchemaError
from turnout.keys import EXPLICIT, IMPLICIT, IMPLICIT_NESTED, NON_FUNCTIONAL, OLD_NAMES
from turnout.schema.model import Argument, FunctionSchema
from turnout_aten.declarations.model import DEVICE_CHECKS, VARIANTS, NativeFunction, Precomputed
from turnout_aten.declarations.yaml_nodes import Node
from turnout_aten.errors.declarations import Problem, near, not_one_of, unknown_field, wrong_type

COMPOSITES = (EXPLICIT, NON_FUNCTIONAL, IMPLICIT, IMPLICIT_NESTED)

# Prefixes of keys for tensors that are not dense. A delegating operator may have kernels for these keys.
NOT_DENSE = ("Sparse", "Quantized", "Mkldnn", "NestedTensor", "Zero", "Autograd", "Autocast", "Batched", "Composite")


class Entry:
    """An entry being read: its schema, and the list for its problems."""

    def __init__(self, schema: FunctionSchema, node: Node, source: str, tags: frozenset[str], problems: list[Problem]) -> None:
        name = schema.name
        self.schema = schema
        self.node = node
        self.source = source
        self.tags = tags
        self.problems = problems
        self.name = f"{name.name}.{name.overload}" if name.overload else name.name
        self.notes: list[str] = []

    def problem(self, field: str, text: str) -> None:
        """Record a problem at a field's line."""
        line = self.node.value[field].line if field in self.node.value else self.node.line
        self.problems.append(Problem(self.source, line, self.name, text))

    def plain(self, field: str) -> Any:
        """A field's value without lines."""
        return self.node.value[field].plain()


def read_entries(
    root: Node | None, source: str, namespace: str, tags: frozenset[str], problems: list[Problem]
) -> list[NativeFunction]:
    """The functions of a document. An entry without a readable `func` is omitted and recorded as a problem."""
    if root is None or root.value is None:
        return []
    if not isinstance(root.value, list):
        problems.append(Problem(source, root.line, "", "the file must be a list of entries `- func: ...`"))
        return []
    found = (_read_entry(node, source, namespace, tags, problems) for node in root.value)
    return [function for function in found if function is not None]


def _read_entry(node: Node, source: str, namespace: str, tags: frozenset[str], problems: list[Problem]) -> NativeFunction | None:
    if not isinstance(node.value, dict):
        problems.append(Problem(source, node.line, "", wrong_type("an entry", "a mapping with a field 'func'", node.plain())))
        return None
    func = node.value.get("func")
    if func is None or not isinstance(func.value, str):
        fact = "an entry needs the field 'func'" if func is None else wrong_type("func", "a schema", func.plain())
        problems.append(Problem(source, node.line, "", fact))
        return None
    try:
        schema = FunctionSchema.parse(func.value)
    except SchemaError as error:
        problems.append(Problem(source, func.line, func.value.partition("(")[0], str(error)))
        return None
    entry = Entry(schema, node, source, tags, problems)
    values: dict[str, Any] = {}
    for name in node.value:
        reader = FIELDS.get(name)
        if reader is None:
            entry.problem(name, unknown_field(name, tuple(FIELDS)))
            continue
        value = reader(entry, name)
        if value is not None and name not in _NOTED:
            values[name] = value
    values.pop("func", None)
    values["dispatch"] = _dispatch(entry, values)
    own = schema.name.namespace or namespace
    return NativeFunction(schema, own, source, node.line, notes=tuple(entry.notes), **values)


# ---- readers: (entry, field) -> value, or None after recording a problem


def _bool(entry: Entry, field: str) -> bool | None:
    value = entry.plain(field)
    if isinstance(value, bool):
        return value
    entry.problem(field, wrong_type(field, "True or False", value))
    return None


def _text(entry: Entry, field: str) -> str | None:
    value = entry.plain(field)
    if isinstance(value, str) and value:
        return value
    entry.problem(field, wrong_type(field, "a text", value))
    return None


def _words(entry: Entry, field: str) -> list[str] | None:
    """A list of words, or one text with commas between them."""
    value = entry.plain(field)
    if isinstance(value, str):
        value = [word.strip() for word in value.split(",")]
    if isinstance(value, list) and all(isinstance(word, str) and word for word in value):
        twice = sorted({word for word in value if value.count(word) > 1})
        if twice:
            entry.problem(field, f"{field}: '{twice[0]}' is given twice")
        return value
    entry.problem(field, wrong_type(field, "words with commas between them, or a list of words", value))
    return None


def _variants(entry: Entry, field: str) -> frozenset[str] | None:
    return _known_words(entry, field, VARIANTS)


def _tags(entry: Entry, field: str) -> frozenset[str] | None:
    return _known_words(entry, field, tuple(sorted(entry.tags)))


def _known_words(entry: Entry, field: str, known: tuple[str, ...]) -> frozenset[str] | None:
    words = _words(entry, field)
    for word in words or ():
        if word not in known:
            entry.problem(field, not_one_of(field, word, known))
    return None if words is None else frozenset(words)


def _names(entry: Entry, field: str) -> tuple[str, ...] | None:
    words = _words(entry, field)
    return None if words is None else tuple(words)


def _argument_names(entry: Entry, field: str) -> frozenset[str] | None:
    words = _words(entry, field) or []
    defaulted = tuple(a.name for a in entry.schema.arguments if a.has_default)
    for word in words:
        if word not in defaulted:
            entry.problem(field, f"{field}: no argument '{word}' with a default{near(word, defaulted)}")
    return frozenset(words)


def _device_check(entry: Entry, field: str) -> str | None:
    word = _text(entry, field)
    if word is not None and word not in DEVICE_CHECKS:
        entry.problem(field, not_one_of(field, word, DEVICE_CHECKS))
    return word


def _operator_name(entry: Entry, field: str) -> str | None:
    name = _text(entry, field)
    if name is not None and "::" in name:
        entry.problem(field, f"{field}: the namespace is the entry's own; write '{name.partition('::')[2]}'")
        return None
    return name


def _mapping(entry: Entry, field: str) -> Any:
    """`ufunc_inner_loop`: a text, or texts by key."""
    value = entry.plain(field)
    if isinstance(value, str):
        return MappingProxyType({"Generic": value})
    if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return MappingProxyType(value)
    entry.problem(field, wrong_type(field, "a text or a mapping to texts", value))
    return None


def _raw_dispatch(entry: Entry, field: str) -> dict[str, Node] | str | None:
    value = entry.node.value[field].value
    if isinstance(value, (dict, str)) and value != "":
        return value
    entry.problem(field, wrong_type(field, "a mapping from dispatch keys to kernel names", entry.plain(field)))
    return None


def _precomputed(entry: Entry, field: str) -> Precomputed | None:
    lines = entry.plain(field)
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
        expected = "a list of lines `argument -> type name, ...`; the last line may omit the arrow to add arguments"
        entry.problem(field, wrong_type(field, expected, lines))
        return None
    if entry.schema.kind != "out":
        entry.problem(field, "precomputed belongs on the structured out variant")
    known = [a.name for a in entry.schema.arguments if not a.is_out]
    replace: dict[str, tuple[Argument, ...]] = {}
    add: tuple[Argument, ...] = ()
    for i, line in enumerate(lines):
        head, arrow, tail = line.rpartition("->")
        name = head.strip()
        if not arrow and i + 1 < len(lines):
            entry.problem(field, f"precomputed: '{line}' has no arrow; only the last line can add arguments")
            continue
        arguments = _precomputed_arguments(entry, field, tail)
        if not arrow:
            add = arguments
        elif name not in known:
            entry.problem(field, f"precomputed: no argument '{name}'{near(name, known)}; there are {', '.join(known)}")
        elif name in replace:
            entry.problem(field, f"precomputed: '{name}' is replaced twice")
        else:
            replace[name] = arguments
    made = Precomputed(MappingProxyType(replace), add)
    kernel = [n for a in known for n in made.names.get(a, (a,))] + [a.name for a in add]
    twice = sorted({n for n in kernel if kernel.count(n) > 1})
    if twice:
        entry.problem(field, f"precomputed: the kernel would have two arguments '{twice[0]}'")
    return made


def _precomputed_arguments(entry: Entry, field: str, text: str) -> tuple[Argument, ...]:
    try:
        arguments = FunctionSchema.parse(f"precomputed({text.strip()}) -> ()").arguments
    except SchemaError:
        arguments = ()
    if not arguments:
        entry.problem(field, f"precomputed: '{text.strip()}' must be arguments such as `int dim, bool flag`")
    return arguments


def _jit_signature(entry: Entry, field: str) -> None:
    if _bool(entry, field) is not None:
        entry.notes.append("matches_jit_signature is historic and has no effect: only one schema language exists")


_DISPATCHERS = ("full", "hacky_wrapper_for_legacy_signatures", "with_codegenerated_unboxing_wrapper")


def _c10_dispatcher(entry: Entry, field: str) -> None:
    word = _text(entry, field)
    if word is not None and word not in _DISPATCHERS:
        entry.problem(field, not_one_of(field, word, _DISPATCHERS))
    entry.notes.append("use_c10_dispatcher is historic and has no effect: every operator can be called both ways")


# Fields that only leave a note.
_NOTED = ("matches_jit_signature", "use_c10_dispatcher")

FIELDS: dict[str, Callable[[Entry, str], Any]] = {
    "func": _text,
    "variants": _variants,
    "dispatch": _raw_dispatch,
    "structured": _bool,
    "structured_delegate": _operator_name,
    "structured_inherits": _operator_name,
    "precomputed": _precomputed,
    "autogen": _names,
    "device_guard": _bool,
    "device_check": _device_check,
    "manual_kernel_registration": _bool,
    "manual_cpp_binding": _bool,
    "use_const_ref_for_mutable_tensors": _bool,
    "category_override": _text,
    "python_module": _text,
    "tags": _tags,
    "cpp_no_default_args": _argument_names,
    "ufunc_inner_loop": _mapping,
    "matches_jit_signature": _jit_signature,
    "use_c10_dispatcher": _c10_dispatcher,
}


# ---- dispatch


def default_kernel(schema: FunctionSchema) -> str:
    """The kernel function an entry without `dispatch` has: the operator's name, with `_out` for out variants."""
    return schema.name.name + ("_out" if schema.kind == "out" else "")


def _dispatch(entry: Entry, values: dict[str, Any]) -> Any:
    raw = values.get("dispatch")
    if raw is None:
        if values.get("structured") or values.get("structured_delegate") or values.get("manual_kernel_registration"):
            return MappingProxyType({})
        return MappingProxyType({IMPLICIT: default_kernel(entry.schema)})
    if values.get("manual_kernel_registration"):
        entry.problem("dispatch", "dispatch together with manual_kernel_registration: the kernels would not be registered")
    if isinstance(raw, str):
        entry.notes.append(f"`dispatch: {raw}` is historic: read as `dispatch: {{{IMPLICIT}: {raw}}}`")
        return MappingProxyType({IMPLICIT: raw})
    table: dict[str, str] = {}
    for keys, node in raw.items():
        for key in keys.split(","):
            _add_kernel(entry, table, key.strip(), node)
    given = [key for key in COMPOSITES if key in table and key != IMPLICIT_NESTED]
    if len(given) > 1 or (IMPLICIT_NESTED in table and NON_FUNCTIONAL in table):
        both = given if len(given) > 1 else [NON_FUNCTIONAL, IMPLICIT_NESTED]
        entry.problem("dispatch", f"dispatch has {' and '.join(both)}, and one hides the other; keep one")
    if values.get("structured_delegate"):
        for key in table:
            if not key.startswith(NOT_DENSE):
                entry.problem("dispatch", f"dispatch: kernels for {key} come from {values['structured_delegate']}; drop this key")
    return MappingProxyType(table)


def _add_kernel(entry: Entry, table: dict[str, str], key: str, node: Node) -> None:
    where = Problem(entry.source, node.line, entry.name, "")
    if not isinstance(node.value, str) or not node.value:
        entry.problems.append(where._replace(text=wrong_type(f"dispatch: {key}", "the name of a kernel", node.plain())))
        return
    if key in OLD_NAMES:
        entry.notes.append(f"the dispatch key {key} is historic: read as {OLD_NAMES[key]}")
        key = OLD_NAMES[key]
    if not key.isidentifier() or not key[0].isupper() or (key.startswith("Composite") and key not in COMPOSITES):
        fact = f"dispatch: no key '{key}'{near(key, (*COMPOSITES, *OLD_NAMES))}"
        entry.problems.append(where._replace(text=fact))
    elif key in table:
        entry.problems.append(where._replace(text=f"dispatch: two kernels for {key}: {table[key]} and {node.value}"))
    else:
        table[key] = node.value
