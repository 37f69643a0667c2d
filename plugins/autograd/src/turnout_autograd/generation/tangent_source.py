"""Source of one operator's tangent rule, from its entry.

A rule is a function of the tangents, the result and the arguments. It computes what the entry says for the tangents that are
there: a term whose tangent is None is left out, and with no tangent at all the answer is None.
"""

from __future__ import annotations

import ast
import copy

from turnout_autograd.declarations.entries import Entry, free_names, tensor_returns
from turnout_autograd.declarations.tangents import LINEAR, PRIMAL, TANGENT, Tangent, Term, terms
from turnout_autograd.generation.kernel_source import LIST, OTHER, kind_of, local, unless_floating


class TangentWriter:
    """The rule of one entry: `name` of the function, `source`, and the `functions` that it calls."""

    def __init__(self, entry: Entry, operators: frozenset[str]) -> None:
        self.entry = entry
        self.schema = entry.function.schema
        self.operators = operators
        self.kinds = {a.name: kind_of(str(a.type)) for a in self.schema.arguments}
        self.returns = tensor_returns(self.schema)
        self.outputs = tuple(name for name, yes in zip(self.returns, entry.outputs, strict=True) if yes)
        self.formulas = {a: f for f in entry.formulas if f.missing is None for a in f.arguments}
        self.arguments = tuple(a for a in entry.arguments if a in self.formulas)
        self.functions: set[str] = set()
        self.read: set[str] = set()
        schema_name = self.schema.name
        self.name = f"tangent_of_{schema_name.name}" + (f"_{schema_name.overload}" if schema_name.overload else "")

    def source(self) -> str:
        """The function, and which values it reads."""
        names = ", ".join(local(a.name) for a in self.schema.arguments)
        lines = [f"def {self.name}(tangents, result, {names}):"]
        tensors = [a.name for a in self.schema.arguments if self.kinds[a.name] != OTHER]
        lines.append(f"    {', '.join(n + TANGENT for n in tensors)}, = tangents")
        if len(self.returns) > 1:
            lines.append(f"    {', '.join(self.returns)}, = result")
        for formula in self.entry.formulas:
            for name in formula.arguments if formula.missing is not None else ():
                lines.append(f"    if {name}{TANGENT} is not None: refuse({self._qualified!r}, {name!r}, {formula.missing!r})")
        lines += ["    " + line for line in unless_floating(self.schema, "None")]
        for tangent in self.entry.tangents:
            lines += ["    " + line for line in self._tangent(tangent)]
        lines.append(f"    return {', '.join(map(_made, self.outputs))}")
        reads = sorted(self.read & {*tensors, *self.returns})
        places = tuple(self.returns.index(name) for name in self.outputs)
        return "\n".join([*lines, "", f"{self.name}.reads = frozenset({reads!r})", f"{self.name}.outputs = {places!r}", ""])

    @property
    def _qualified(self) -> str:
        return self.entry.function.qualified_name

    def _tangent(self, tangent: Tangent) -> list[str]:
        if tangent.expression == LINEAR:
            return self._linear()
        if tangent.is_claim:
            each = [self._element_wise(name) for name in self.arguments]
        else:
            each = terms(tangent.expression, self.arguments)
        if len(tangent.outputs) > 1:
            (term,) = each
            made = ", ".join(map(_made, tangent.outputs))
            absent = ", ".join(["None"] * len(tangent.outputs))
            return [f"{made} = {self._text(term.tree)} if {_present(term)} else ({absent})"]
        return self._sum(tangent.outputs[0], each)

    def _linear(self) -> list[str]:
        """The operator itself, of the tangents."""
        present = " or ".join(f"{name}{TANGENT} is not None" for name in self.arguments)
        words: list[str] = []
        self.read |= {name for name, kind in self.kinds.items() if kind != OTHER} - set(self.arguments)
        for argument in self.schema.arguments:
            text = name = local(argument.name)
            if argument.name in self.arguments:
                tangent = argument.name + TANGENT
                text = tangent
                if self.kinds[argument.name] == LIST:
                    text = f"zeros_where_absent({tangent}, {name})"
                elif len(self.arguments) > 1:
                    text = f"(aten.zeros_like({name}) if {tangent} is None else {tangent})"
            words.append(f"{name}={text}" if argument.kwarg_only else text)
        stub = self.entry.function.name.replace(".", "__")
        call = f"aten.{stub}({', '.join(words)})"
        return self._assigned(f"{call} if {present} else None")

    def _assigned(self, value: str) -> list[str]:
        """The results of a call of the operator itself, of which only differentiable ones have tangents."""
        if len(self.returns) == 1:
            return [f"{_made(self.outputs[0])} = {value}"]
        call, _, rest = value.partition(" if ")
        return [
            f"{_made(name)} = {call}[{self.returns.index(name)}] if {rest}" for name in self.outputs
        ]  # fmt: skip

    def _element_wise(self, name: str) -> Term:
        """conj(gradient of conj(tangent)): the gradient is the tangent's factor, conjugated."""
        tangent = name + TANGENT
        tree = ast.parse(self.formulas[name].expression, mode="eval").body
        if ast.unparse(tree) == "zeros_like(grad)":
            return Term(False, ast.parse(f"zeros_like({tangent})", mode="eval").body, (name,))
        made = ast.fix_missing_locations(conjugated(tree, tangent))
        return Term(False, _Replaced({a: a + PRIMAL for a in self.arguments}).visit(made), (name,))

    def _sum(self, output: str, each: list[Term]) -> list[str]:
        made = _made(output)
        each = sorted(each, key=lambda term: term.is_zero)
        lines: list[str] = []
        for number, term in enumerate(each):
            text = self._text(term.tree)
            if number == 0 and isinstance(term.tree, ast.Name) and not term.negative:
                lines.append(f"{made} = {text}")
            elif number == 0:
                lines.append(f"{made} = {'-' if term.negative else ''}{text} if {_present(term)} else None")
            elif term.is_zero:
                lines.append(f"if {made} is None and {_present(term)}: {made} = {text}")
            else:
                alone, sign = ("-term", "-") if term.negative else ("term", "+")
                lines += [
                    f"if {_present(term)}:",
                    f"    term = {text}",
                    f"    {made} = {alone} if {made} is None else {made} {sign} term",
                ]
        shape = "result" if len(self.returns) == 1 else output
        return [*lines, f"{made} = fitted({made}, {shape}, tangents)"]

    def _text(self, tree: ast.expr) -> str:
        """An expression with operators as names of `aten`, and values by the names of the arguments."""
        values = {a + PRIMAL: a for a in self.kinds}
        known = {local(a) for a in self.kinds} | {a + TANGENT for a in self.kinds} | set(self.returns)
        called = free_names(tree) - values.keys() - known
        self.functions |= called - self.operators
        self.read |= {values.get(n, n) for n in _read_values(tree)}
        change = {name: f"aten.{name}" for name in called & self.operators} | {p: local(a) for p, a in values.items()}
        return _grouped(_Replaced(change).visit(copy.deepcopy(tree)))


def conjugated(tree: ast.expr, tangent: str) -> ast.expr:
    """conj(tree) with conj(tangent) for grad, where products and sums are conjugated by their parts: conj(conj(x)) is x."""
    if isinstance(tree, ast.Name) and tree.id == "grad":
        return ast.Name(tangent, ast.Load())
    if isinstance(tree, ast.Constant) or (isinstance(tree, ast.Name) and tree.id.isupper()):
        return tree  # the constants of `formulas` are real
    if isinstance(tree, ast.UnaryOp):
        return ast.UnaryOp(tree.op, conjugated(tree.operand, tangent))
    if isinstance(tree, ast.BinOp):
        return ast.BinOp(conjugated(tree.left, tangent), tree.op, conjugated(tree.right, tangent))
    if isinstance(tree, ast.IfExp):
        return ast.IfExp(tree.test, conjugated(tree.body, tangent), conjugated(tree.orelse, tangent))
    called = ast.unparse(tree.func) if isinstance(tree, ast.Call) else ""
    if isinstance(tree, ast.Call) and called == "conj":
        return tree.args[0]
    if isinstance(tree, ast.Call) and called in ("where", "zeros_like"):
        condition = tree.args[: called == "where"]
        return ast.Call(tree.func, [*condition, *(conjugated(a, tangent) for a in tree.args[len(condition) :])], [])
    inner = _Replaced({"grad": f"conj({tangent})"}).visit(tree)
    return ast.Call(ast.Name("conj", ast.Load()), [inner], [])


def _made(output: str) -> str:
    return f"{output}_tangent"


def _present(term: Term) -> str:
    return " or ".join(f"{name}{TANGENT} is not None" for name in term.arguments)


def _grouped(tree: ast.expr) -> str:
    text = ast.unparse(tree)
    return text if isinstance(tree, (ast.Call, ast.Name, ast.Attribute)) else f"({text})"


def _read_values(tree: ast.AST) -> set[str]:
    """The names an expression reads, apart from what it asks the shape, dtype or device of."""
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name) and tree.attr in ("shape", "dtype", "device"):
        return set()
    found = {tree.id} if isinstance(tree, ast.Name) else set()
    return found.union(*(_read_values(child) for child in ast.iter_child_nodes(tree)))


class _Replaced(ast.NodeTransformer):
    """Names replaced by expressions, in place."""

    def __init__(self, change: dict[str, str]) -> None:
        self.change = change

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self.change.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body
