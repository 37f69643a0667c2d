"""The entries of the yaml files, read and checked against the operators' schemas. All problems are reported together."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout.errors import SchemaError
from turnout.errors.calls import no_argument
from turnout.schema import Argument
from turnout.schema.model import FunctionSchema
from turnout_aten.declarations.model import NativeFunction, NativeFunctions
from turnout_aten.declarations.tables import RESIZES
from turnout_aten.declarations.yaml_nodes import Node, read
from turnout_aten.errors.declarations import DeclarationError, Problem
from turnout_autograd.declarations.tangents import PRIMAL, PROPERTIES, TANGENT, Tangent, problems_of_claim, problems_of_terms

NON_DIFFERENTIABLE = "non_differentiable"
NOT_IMPLEMENTED = "not_implemented"
MASK = "grad_input_mask"

# What an entry may hold besides arguments.
_FIELDS = ("name", "output_differentiability", "exact", "unless")


@dataclass(frozen=True)
class Formula:
    """The gradient with respect to one argument, or with respect to several at once."""

    arguments: tuple[str, ...]
    expression: str
    line: int

    @property
    def missing(self) -> str | None:
        """The reason of a `not_implemented("...")`, None for a real formula."""
        tree = ast.parse(self.expression, mode="eval").body
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == NOT_IMPLEMENTED:
            return str(ast.literal_eval(tree.args[0])) if tree.args else ""
        return None


@dataclass(frozen=True)
class Entry:
    """One operator's derivatives, from a line of the file `source`."""

    function: NativeFunction
    source: str
    line: int
    formulas: tuple[Formula, ...]
    outputs: tuple[bool, ...]
    exact: bool = False
    constant: frozenset[str] = field(default=frozenset())
    tangents: tuple[Tangent, ...] = ()
    unless: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_differentiable(self) -> bool:
        return bool(self.formulas) and any(self.outputs)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments that have a gradient, in schema order."""
        named = {a for f in self.formulas for a in f.arguments}
        return tuple(a.name for a in self.function.schema.arguments if a.name in named)

    @property
    def is_implemented(self) -> bool:
        """Whether there is a gradient with respect to any argument."""
        return self.is_differentiable and any(f.missing is None for f in self.formulas)


def tensor_returns(schema: FunctionSchema) -> tuple[str, ...]:
    """The names of the returns: as written, else `result`, or `result0, result1, ...` where there are several."""
    returns = schema.returns
    if len(returns) == 1:
        return ("result",)
    return tuple(r.name or f"result{i}" for i, r in enumerate(returns))


@dataclass(frozen=True)
class Callables:
    """What expressions may call: operators' stubs, the functions of `formulas`, and for tangents those of `tangents` too."""

    operators: frozenset[str]
    formulas: frozenset[str]
    tangents: frozenset[str]


def parse(texts: Mapping[str, str], functions: NativeFunctions, known: Callables) -> dict[str, Entry]:
    """The entries by operator name, from texts by the names of their files. `known` are the functions expressions may call.

    Raises DeclarationError with every problem, operators without an entry among them.
    """
    problems: list[Problem] = []
    entries: dict[str, Entry] = {}
    for source, text in texts.items():
        root = read(text, source)
        for node in root.value or () if root is not None else ():
            entry = _Reader(node, source, functions, known, problems).entry()
            if entry is None:
                continue
            name = entry.function.qualified_name
            if name in entries:
                first = f"{entries[name].source}:{entries[name].line}"
                problems.append(Problem(source, entry.line, name, f"a second entry; the first is {first}"))
            entries[name] = entry
    for function in functions:
        if needs_entry(function) and entry_for(function, functions, entries) is None:
            fact = "no entry: give formulas, or output_differentiability: [False]"
            problems.append(Problem("declarations", 0, function.qualified_name, fact))
    if problems:
        raise DeclarationError(problems)
    return entries


def needs_entry(function: NativeFunction) -> bool:
    """Whether somebody must decide: it takes and gives tensors, does not decompose, and is not an out variant."""
    schema = function.schema
    if function.schema.kind == "out" or "CompositeImplicitAutograd" in function.dispatch:
        return False
    return schema.takes_tensors and schema.gives_tensors and RESIZES not in function.tags


def entry_for(function: NativeFunction, functions: NativeFunctions, entries: dict[str, Entry]) -> Entry | None:
    """A function's own entry, or that of the functional, else of the in-place variant."""
    own = entries.get(function.qualified_name)
    if own is not None:
        return own
    group = functions.group_of(function)
    for variant in (group.functional, group.inplace):
        if variant is not None and variant.qualified_name in entries:
            return entries[variant.qualified_name]
    return None


class _Reader:
    """Reads one entry."""

    def __init__(self, node: Node, source: str, functions: NativeFunctions, known: Callables, problems: list[Problem]) -> None:
        self.node = node
        self.source = source
        self.functions = functions
        self.known = known
        self.problems = problems
        self.name = ""

    def problem(self, line: int, text: str) -> None:
        self.problems.append(Problem(self.source, line, self.name, text))

    def entry(self) -> Entry | None:
        node = self.node
        if not isinstance(node.value, dict) or "name" not in node.value:
            self.problem(node.line, "an entry must be a mapping with the field 'name'")
            return None
        name = node.value["name"]
        self.name = str(name.value).partition("(")[0]
        try:
            schema = FunctionSchema.parse(str(name.value))
        except SchemaError as error:
            self.problem(name.line, str(error))
            return None
        function = self.functions.by_name.get(f"aten::{self.name}")
        if function is None:
            self.problem(name.line, "no operator has this name")
            return None
        if str(schema) != str(function.schema):
            self.problem(name.line, f"the operator is declared as {function.schema}")
            return None
        return self._read(function)

    def _read(self, function: NativeFunction) -> Entry:
        fields = self.node.value
        problems = len(self.problems)
        arguments = {a.name: a for a in function.schema.arguments}
        formulas: list[Formula] = []
        constant: set[str] = set()
        tangents: list[Tangent] = []
        returns = tensor_returns(function.schema)
        for key, value in fields.items():
            if key in _FIELDS:
                continue
            names = tuple(part.strip() for part in key.split(","))
            text = str(value.value)
            if set(names) <= set(returns) - arguments.keys():
                tangents.append(Tangent(names, text, value.line))
                continue
            for name in names:
                if name not in arguments:
                    self.problem(value.line, no_argument(name, arguments))
                elif not arguments[name].type.is_tensor_like:
                    self.problem(value.line, f"'{name}' is {arguments[name].type}, not a tensor")
            if text == NON_DIFFERENTIABLE:
                constant.update(names)
            else:
                formulas.append(Formula(names, text, value.line))
                self._check(formulas[-1], function)
        outputs = self._outputs(function, bool(formulas))
        exact = bool(fields["exact"].plain()) if "exact" in fields else False
        unless = self._unless(arguments)
        undecided = [
            n for n, a in arguments.items()
            if a.type.is_tensor_like and n not in constant and not any(n in f.arguments for f in formulas)
        ]  # fmt: skip
        if any(outputs) and undecided:
            self.problem(self.node.line, f"nothing is said about {', '.join(undecided)}")
        entry = Entry(
            function, self.source, self.node.line, tuple(formulas), outputs, exact, frozenset(constant), tuple(tangents), unless
        )
        if len(self.problems) == problems:  # what follows reads the gradients
            self._check_tangents(entry)
        return entry

    def _unless(self, arguments: Mapping[str, Argument]) -> dict[str, str]:
        found = self.node.value.get("unless")
        rows: dict[str, str] = {} if found is None else found.plain()
        for name, flag in rows.items():
            if (
                str(getattr(arguments.get(name), "type", "")) != "Tensor"
                or str(getattr(arguments.get(flag), "type", "")) != "bool"
            ):
                self.problem(self.node.line, f"unless: '{name}: {flag}' must be a Tensor and a bool among the arguments")
        return rows

    def _check_tangents(self, entry: Entry) -> None:
        """Every differentiable output must have a tangent where any argument has a gradient."""
        returns = tensor_returns(entry.function.schema)
        wanted = [name for name, yes in zip(returns, entry.outputs, strict=True) if yes] if entry.is_implemented else []
        given = [name for tangent in entry.tangents for name in tangent.outputs]
        for name in wanted:
            if given.count(name) != 1:
                self.problem(entry.line, f"'{name}' must say once what the tangent of that output is")
        for tangent in entry.tangents:
            constant = [name for name in tangent.outputs if name not in wanted]
            for name in constant:
                self.problem(tangent.line, f"'{name}': this output has no tangent")
            if constant:
                continue
            if tangent.is_claim:
                problems = problems_of_claim(tangent, entry.function, entry.formulas)
            elif self._is_expression(tangent):
                kinds = dict.fromkeys(entry.arguments, "argument") | dict.fromkeys(returns, "output")
                self._check_names(tangent, entry)
                problems = problems_of_terms(tangent, entry.formulas, self.known.formulas | self.known.tangents, kinds)
            else:
                continue
            for text in problems:
                self.problem(tangent.line, text)

    def _check_names(self, tangent: Tangent, entry: Entry) -> None:
        marked = {name + mark for name in entry.arguments for mark in (TANGENT, PRIMAL)}
        plain = {a.name for a in entry.function.schema.arguments}
        known = self.known.operators | self.known.formulas | self.known.tangents
        allowed = {*marked, *plain, *tensor_returns(entry.function.schema), *known}
        for name in sorted(free_names(ast.parse(tangent.expression, mode="eval")) - allowed):
            self.problem(tangent.line, f"'{name}' is neither an argument, a tangent, a result, an operator, nor a known function")

    def _outputs(self, function: NativeFunction, has_formulas: bool) -> tuple[bool, ...]:
        field_ = self.node.value.get("output_differentiability")
        count = len(function.schema.returns)
        if field_ is None:
            return tuple(r.type.is_tensor_like for r in function.schema.returns)
        value = field_.plain()
        if not isinstance(value, list) or len(value) != count or not all(isinstance(v, bool) for v in value):
            self.problem(field_.line, f"output_differentiability must be a list of {count} times True or False")
            return (False,) * count
        if not any(value) and has_formulas:
            self.problem(field_.line, "formulas, but no output is differentiable")
        return tuple(value)

    def _is_expression(self, made: Formula | Tangent) -> bool:
        try:
            ast.parse(made.expression, mode="eval")
        except SyntaxError as error:
            self.problem(made.line, f"'{made.expression}' is not a Python expression: {error.msg}")
            return False
        return True

    def _check(self, formula: Formula, function: NativeFunction) -> None:
        """The expression must be Python, and use only what there is."""
        if not self._is_expression(formula):
            return
        tree = ast.parse(formula.expression, mode="eval")
        arguments = {a.name: str(a.type) for a in function.schema.arguments}
        allowed = {*arguments, *tensor_returns(function.schema), "grad", "grads", MASK, NOT_IMPLEMENTED}
        for name in sorted(free_names(tree) - allowed - self.known.operators - self.known.formulas):
            self.problem(formula.line, f"'{name}' is neither an argument, a result, an operator, nor a function of formulas")
        for inner in ast.walk(tree):
            if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.attr in ("geometry", "shapes"):
                kind = arguments.get(inner.value.id, "")
                if kind != PROPERTIES[inner.attr][0]:
                    self.problem(formula.line, f"'{inner.value.id}.{inner.attr}': {inner.value.id} is {kind or 'no argument'}")


def free_names(tree: ast.AST) -> set[str]:
    """The names an expression reads, less what its comprehensions bind."""
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    return {n.id for n in names} - {n.id for n in names if isinstance(n.ctx, ast.Store)}
