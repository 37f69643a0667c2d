"""Source of one operator's node class and of its kernel at Autograd, from its entry.

The kernel is straight-line code, because it is the price of every recorded call: it computes which arguments are tracked,
saves what their gradients need, calls below, and attaches the node. `backward` reads what was saved and evaluates the formulas.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from keyword import iskeyword
from typing import Any

from turnout.schema.model import FunctionSchema
from turnout_aten.declarations.model import NativeFunction
from turnout_aten.declarations.tables import INPLACE_VIEW
from turnout_autograd.declarations.entries import MASK, Entry, Formula, free_names, tensor_returns
from turnout_autograd.declarations.tangents import PROPERTIES

TENSOR, OPTIONAL, LIST, OPTIONAL_LIST, OTHER = "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", ""


def local(name: str) -> str:
    """An argument's name in generated code."""
    return name + "_" if iskeyword(name) else name


def _version(var: str) -> str:
    """The source of a tensor's version, as `Tensor.version` finds it, where `s` is the tensor's storage."""
    return f"{var}.ver if s is None else s.version() if s.ver is None else s.ver"


def kind_of(type_text: str) -> str:
    """Which of the five kinds of argument a type is."""
    if type_text in (TENSOR, OPTIONAL):
        return type_text
    if type_text.startswith("Tensor?["):
        return OPTIONAL_LIST
    return LIST if type_text.startswith("Tensor[") else OTHER


def unless_floating(schema: FunctionSchema, answer: str) -> list[str]:
    """Lines that give an answer without a gradient where an argument chose a dtype that has none."""
    chosen = any(str(a.type).rstrip("?") == "ScalarType" for a in schema.arguments)
    return ["if result.dtype.category < FLOAT:", f"    return {answer}"] if chosen else []


def camel(name: str) -> str:
    """`mul` and `mul_` give Mul, `_log_softmax` gives LogSoftmax."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


class Uses:
    """What a formula reads: tensors, other values, properties of tensors, outputs; and the functions it calls."""

    def __init__(self, formula: Formula, schema: FunctionSchema, operators: frozenset[str]) -> None:
        self.tensors: list[str] = []
        self.values: list[str] = []
        self.properties: list[tuple[str, str]] = []
        self.outputs: list[str] = []
        self.functions: set[str] = set()
        self.mask = False
        self._kinds = {a.name: kind_of(str(a.type)) for a in schema.arguments}
        self._returns = tensor_returns(schema)
        tree = _Properties(self).visit(ast.parse(formula.expression, mode="eval"))
        self._read(tree)
        tree = _Stubs(operators & self.functions).visit(tree)
        self.functions -= operators
        self.source = ast.unparse(tree)

    def _read(self, tree: ast.AST) -> None:
        for name in sorted(free_names(tree)):
            if name in ("grad", "grads") or name in {slot(a, p) for a, p in self.properties}:
                continue
            if name == MASK:
                self.mask = True
            elif self._kinds.get(name):
                self.tensors.append(name)
            elif name in self._kinds:
                self.values.append(name)
            elif name in self._returns:
                self.outputs.append(name)
            else:
                self.functions.add(name)


class _Properties(ast.NodeTransformer):
    """Replaces `x.shape` by the name of the slot that holds it."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value = node.value
        if isinstance(value, ast.Name) and node.attr in PROPERTIES and self.uses._kinds.get(value.id):
            found = (value.id, node.attr)
            if found not in self.uses.properties:
                self.uses.properties.append(found)
            return ast.Name(slot(*found), ast.Load())
        return self.generic_visit(node)


class _Stubs(ast.NodeTransformer):
    """Writes operators' stubs as names of `aten`, which finds them when they are first used."""

    def __init__(self, operators: frozenset[str] | set[str]) -> None:
        self.operators = operators

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Attribute(ast.Name("aten"), node.id, ast.Load()) if node.id in self.operators else node


_METHODS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv"}


# What formulas call, and a sweep that runs ahead knows (`FORMULA_WORDS` of turnout-speed; a test compares them).
FUNCTIONS = frozenset(("conj", "expand", "scaled", "sum_to", "turned", "mm_self_grad", "mm_mat2_grad"))


def calls_of(uses: Uses) -> Any:
    """A formula as data, None if it is more than calls of methods, operators and a few functions.

    A name is `grad` or a slot, ("number", n) a constant, any other tuple a call: a function of `FUNCTIONS` or "scaled back", a
    ".method" or an operator, and what it is given.
    """
    try:
        return _Calls(uses).read(ast.parse(uses.source, mode="eval").body)
    except _MoreThanCalls:
        return None


class _MoreThanCalls(Exception):
    pass


class _Calls:
    """Reads the expressions of one formula."""

    def __init__(self, uses: Uses) -> None:
        self.tensors = {"grad", *map(local, uses.tensors), *uses.outputs}
        self.slots = {*self.tensors, *map(local, uses.values), *[slot(*p) for p in uses.properties]}

    def read(self, tree: ast.expr) -> Any:
        """Any expression. Raises _MoreThanCalls."""
        if isinstance(tree, ast.Name) and tree.id in self.slots:
            return tree.id
        if isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
            return ("number", tree.value)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            operand = self.read(tree.operand)
            return ("number", -operand[1]) if operand[0] == "number" else (".__neg__", self.tensor(operand))
        if isinstance(tree, ast.BinOp) and type(tree.op) in _METHODS:
            left, right = self.read(tree.left), self.read(tree.right)
            turned = left[0] == "number"
            first, second = (right, left) if turned else (left, right)
            return (f".__{'r' * turned}{_METHODS[type(tree.op)]}__", self.tensor(first), second)
        if isinstance(tree, ast.Call) and not tree.keywords:
            return self.call(tree.func, tree.args)
        raise _MoreThanCalls

    def call(self, function: ast.expr, given: list[ast.expr]) -> Any:
        """A call of a function, an operator or a method."""
        if isinstance(function, ast.Attribute):
            if isinstance(function.value, ast.Name) and function.value.id == "aten":
                return (function.attr, *map(self.read, given))
            return (f".{function.attr}", self.tensor(self.read(function.value)), *map(self.read, given))
        name = function.id if isinstance(function, ast.Name) else ""
        if name == "scaled" and isinstance(given[1], ast.UnaryOp):
            return ("scaled back", self.tensor(self.read(given[0])), self.read(given[1].operand))
        if name in FUNCTIONS:
            return (name, *map(self.read, given))
        raise _MoreThanCalls

    def tensor(self, made: Any) -> Any:
        """What was read, if it is sure to be a tensor: the class of a number's methods is not known."""
        value = made[1] if made[0] == "conj" else made
        if value[0] == "number" or (isinstance(value, str) and value not in self.tensors):
            raise _MoreThanCalls
        return made


def slot(argument: str, prop: str) -> str:
    """Where a property of an argument is saved."""
    return f"{argument}_{prop}"


class Writer:
    """One function that records, functional or in-place."""

    def __init__(self, function: NativeFunction, entry: Entry, class_name: str, operators: frozenset[str]) -> None:
        self.function = function
        self.schema = function.schema
        self.entry = entry
        self.class_name = class_name
        self.kinds = {a.name: kind_of(str(a.type)) for a in self.schema.arguments}
        self.inplace = self.schema.kind == "inplace"
        self.returns = tensor_returns(entry.function.schema)
        self.formulas = tuple(f for f in entry.formulas if f.missing is None)
        self.uses = {f: Uses(f, entry.function.schema, operators) for f in self.formulas}
        self.arguments = entry.arguments
        self.listed = len(self.arguments) == 1 and self.kinds[self.arguments[0]] == LIST
        self.outputs = [i for i, yes in enumerate(entry.outputs) if yes]
        self.list_output = not self.inplace and str(self.schema.returns[0].type).startswith("Tensor[")
        self.several = self.list_output or len(self.outputs) > 1
        self.fits = self._fits()

    # ---- what there is to do

    def _fits(self) -> str:
        """How the kernel learns that gradients need fitting: "" never, else which check."""
        if self.entry.exact or not self.formulas:
            return ""
        if self.listed:
            return "list"
        tensors = [n for n, k in self.kinds.items() if k in (TENSOR, OPTIONAL)]
        if len(tensors) > 1:
            plain = all(self.kinds[a] == TENSOR for a in self.arguments)
            return "pair" if list(self.arguments) == tensors and len(tensors) == 2 and plain else "all"
        converts = {"Scalar", "ScalarType", "Device"}
        if any(str(a.type).rstrip("?") in converts for a in self.schema.arguments):
            return "dtype"
        return "all" if any(k == OPTIONAL_LIST for k in self.kinds.values()) else ""

    def functions(self) -> set[str]:
        """The functions of `formulas` that the formulas call."""
        return {name for uses in self.uses.values() for name in uses.functions}

    def slots(self) -> list[str]:
        found: list[str] = []
        for uses in self.uses.values():
            for name in uses.tensors:
                found += [local(name), f"{name}_version"]
            found += [slot(*p) for p in uses.properties]
            found += [local(name) for name in uses.values]
            for name in uses.outputs:
                found += [name] if self._is_kept(name) else [name, f"{name}_version"]
        if self.fits:
            found.append("metas")
        if self.several:
            found.append("count")
        return list(dict.fromkeys(found))

    def _is_kept(self, output: str) -> bool:
        """Whether an output that formulas read is one that holds the node: it is then saved without its history."""
        return self.returns.index(output) in self.outputs

    # ---- the class

    def node_class(self) -> str:
        slots = self.slots()
        text = ", ".join(map(repr, slots)) + ("," if len(slots) == 1 else "")
        unary = len(self.arguments) == 1 and not self.listed
        lines = [
            f"class {self.class_name}(Node):",
            f"    __slots__ = ({text})",
            f"    op_name = {self.entry.function.qualified_name!r}",
        ]
        kept = [name for uses in self.uses.values() for name in uses.outputs if self._is_kept(name)]
        lines.append(f"    keeps = {tuple(dict.fromkeys(kept))!r}")
        if unary:
            lines.append("    unary = True")
        if self.several:
            lines.append("    several = True")
        grads = "grads" if self.several else "grad"
        lines += ["", f"    def backward(node, {grads}, edges):"]
        if self.several:
            lines.append("        grad = grads[0]")
        lines += self._bodies(unary)
        lines += self._release()
        return "\n".join(lines) + "\n"

    def _bodies(self, unary: bool) -> list[str]:
        lines: list[str] = []
        for formula in self.entry.formulas:
            places = [self.arguments.index(a) for a in formula.arguments]
            targets = [f"grad_{a}" for a in formula.arguments]
            indent = "        "
            if not unary and not self.listed:
                lines.append(f"        {' = '.join(targets)} = None")
                wanted = " or ".join(f"edges[{i}] is not None" for i in places)
                lines.append(f"        if {wanted}:")
                indent += "    "
            if formula.missing is not None:
                lines.append(f"{indent}refuse(node, {', '.join(formula.arguments)!r}, {formula.missing!r})")
                continue
            uses = self.uses[formula]
            lines += [indent + line for line in self._unpack(uses)]
            if uses.mask:
                lines.append(f"{indent}{MASK} = ({', '.join(f'edges[{i}] is not None' for i in places)},)")
            source = uses.source
            if len(targets) > 1:
                source = f"counted(node, {', '.join(formula.arguments)!r}, {source}, {len(targets)})"
            elif self.listed:
                source = f"counted(node, {formula.arguments[0]!r}, {source}, len(edges))"
            lines.append(f"{indent}{', '.join(targets)} = {source}")
            lines += [indent + line for line in self._fitting(formula, places)]
        results = [f"grad_{a}" for a in self.arguments]
        lines.append(f"        return {results[0] if unary or self.listed else ', '.join(results)}")
        return lines

    def _unpack(self, uses: Uses) -> list[str]:
        lines: list[str] = []
        for name in uses.tensors:
            var = local(name)
            if self.kinds[name] == TENSOR and name not in self.entry.unless:
                lines += [
                    f"{var} = node.{var}",
                    f"s = {var}.storage",
                    f"if ({_version(var)}) != node.{name}_version:",
                    f"    spoiled(node, {name!r}, {var}, node.{name}_version)",
                ]
            else:
                check = "check_list" if self.kinds[name] in (LIST, OPTIONAL_LIST) else "check_optional"
                lines.append(f"{var} = {check}(node, {name!r}, node.{var}, node.{name}_version)")
        for name in uses.outputs:
            if self._is_kept(name):
                lines.append(f"{name} = node.{name}.tensor(node, {name!r})")
            else:
                lines.append(f"{name} = check_saved(node, {name!r}, node.{name}, node.{name}_version)")
        lines += [f"{slot(*p)} = node.{slot(*p)}" for p in uses.properties]
        lines += [f"{local(name)} = node.{local(name)}" for name in uses.values]
        return lines

    def _fitting(self, formula: Formula, places: list[int]) -> list[str]:
        if not self.fits:
            return []
        lines = ["metas = node.metas", "if metas is not None:"]
        if self.listed:
            name = f"grad_{formula.arguments[0]}"
            return [*lines, f"    {name} = [fit(g, m) for g, m in zip({name}, metas)]"]
        for i, argument in zip(places, formula.arguments, strict=True):
            guard = f"if grad_{argument} is not None: " if len(formula.arguments) > 1 else ""
            lines.append(f"    {guard}grad_{argument} = fit(grad_{argument}, metas[{i}])")
        return lines

    def _release(self) -> list[str]:
        freed: dict[str, str] = {}
        for uses in self.uses.values():
            freed.update({local(n): "FREED" for n in uses.tensors})
            freed.update({n: "FREED_OUTPUT" if self._is_kept(n) else "FREED" for n in uses.outputs})
        if not freed:
            return []
        return ["", "    def release(node):", *(f"        node.{name} = {value}" for name, value in freed.items())]

    # ---- the kernel

    def kernel(self) -> str:
        name = factory_name(self.function)
        names = [local(a.name) for a in self.schema.arguments]
        self.call = f"call(below, {', '.join(names)})"
        lines = [
            f"def {name}(op):",
            "    cache = op.cache",
            "    resolve = op.resolve",
            "",
            f"    def kernel(ks, {', '.join(names)}):",
        ]
        body = [
            "below = ks & BELOW",
            "try:",
            "    call = cache[below]",
            "except KeyError:",
            "    call = resolve(below)",
            "enabled = GRAD()[0]",
            "if not enabled:",
            f"    return {self.call}",
            *self._tracking(),
            "if not tracked:",
            f"    return {self.call}",
        ]
        if self.inplace:
            if "self" not in self.arguments:
                body += ["if self.dtype.category < FLOAT:", f"    return {self.call}"]
            body.append(f"admit({self.function.qualified_name!r}, self, tracked)")
        body += [
            f"node = {self.class_name}()",
            "node.seq = next_seq()",
            "node.extra = None",
            f"node.edges = {self._edges()}",
            *self._save_inputs(),
            *(self._call_inplace() if self.inplace else self._call_functional()),
        ]
        lines += ["        " + line for line in body]
        lines += ["", f"    kernel.__qualname__ = {f'autograd of {self.function.qualified_name}'!r}", "    return kernel"]
        return "\n".join(lines) + "\n"

    def record(self) -> str:
        """The kernel as data, for those who replace it; "" for one with lists, absent tensors, several outputs or writes.

        (node class, number of arguments, the differentiable ones, what is saved, `fits`, the argument that is a dtype or -1,
        the formulas). A save is (what, slot, argument, mask): it is made if a differentiable argument of the mask is tracked.
        """
        plain = not (self.inplace or self.list_output or self.schema.out_arguments)
        if not plain or len(self.returns) != 1 or any(self.kinds[a] != TENSOR for a in self.arguments):
            return ""
        places = {a.name: i for i, a in enumerate(self.schema.arguments)}
        saves: dict[tuple[str, str, int], int] = {}
        for formula, uses in self.uses.items():
            if any(self.kinds[name] != TENSOR for name in uses.tensors) or any(p == "shapes" for _, p in uses.properties):
                return ""
            rows = [("tensor", local(name), places[name]) for name in uses.tensors]
            rows += [(p, slot(name, p), places[name]) for name, p in uses.properties]
            rows += [("value", local(name), places[name]) for name in uses.values]
            rows += [("result", name, -1) for name in uses.outputs]
            for row in rows:
                mask = sum(1 << self.arguments.index(a) for a in formula.arguments)
                saves[row] = saves.get(row, 0) | mask
        dtype = next((i for i, a in enumerate(self.schema.arguments) if str(a.type).rstrip("?") == "ScalarType"), -1)
        saved = tuple((*row, mask) for row, mask in saves.items())
        differentiable = tuple(places[a] for a in self.arguments)
        return f"({self.class_name}, {len(places)}, {differentiable!r}, {saved!r}, {self.fits!r}, {dtype}, {self._calls()!r})"

    def _calls(self) -> tuple[Any, ...]:
        """The formulas of the arguments in their order, as data; () if one of them is more than calls."""
        single = all(f.missing is None and len(f.arguments) == 1 for f in self.entry.formulas)
        found = {f.arguments[0]: calls_of(uses) for f, uses in self.uses.items()} if single else {}
        return () if None in found.values() or not found else tuple([found[a] for a in self.arguments])

    def _tracking(self) -> list[str]:
        """Stale views refreshed, `tracks_x` per argument, `tracked` for all."""
        lines: list[str] = []
        for name in self.arguments:
            var = local(name)
            if self.kinds[name] == TENSOR:
                lines += [f"if {var}.view_of is not None: refresh({var})", f"tracks_{name} = {var}.gmask & enabled"]
                if self.inplace and name == "self":  # the history of what is written into whole numbers does not matter
                    lines += ["if not tracks_self and self.dtype.category < FLOAT:", f"    return {self.call}"]
            elif self.kinds[name] == OPTIONAL:
                lines += [
                    f"if {var} is None:",
                    f"    tracks_{name} = 0",
                    "else:",
                    f"    if {var}.view_of is not None: refresh({var})",
                    f"    tracks_{name} = {var}.gmask & enabled",
                ]
            else:
                lines += [
                    f"tracks_{name} = 0",
                    f"for t in {var}:",
                    "    if t.view_of is not None: refresh(t)",
                    f"    tracks_{name} |= t.gmask & enabled",
                ]
        lines.append(f"tracked = {' | '.join(f'tracks_{a}' for a in self.arguments)}")
        return lines

    def _edges(self) -> str:
        if self.listed:
            return f"tuple([(t.node or t) if t.gmask & enabled else None for t in {local(self.arguments[0])}])"
        if len(self.arguments) == 1:
            var = local(self.arguments[0])
            return f"({var}.node or {var},)"
        each = [f"({local(a)}.node or {local(a)}) if tracks_{a} else None" for a in self.arguments]
        return f"({', '.join(each)})"

    def _needs(self, wanted: Iterable[Formula]) -> str:
        """The condition under which any of these formulas will be evaluated; "" for always."""
        named = {a for f in wanted for a in f.arguments}
        if named == set(self.arguments):
            return ""
        return " or ".join(f"tracks_{a}" for a in self.arguments if a in named)

    def _save_inputs(self) -> list[str]:
        saves: dict[tuple[str, ...], list[Formula]] = {}
        for formula, uses in self.uses.items():
            for line in [
                *(self._save_tensor(n) for n in uses.tensors),
                *((f"node.{slot(a, p)} = {PROPERTIES[p][1].format(local(a))}",) for a, p in uses.properties),
                *((f"node.{local(n)} = {local(n)}",) for n in uses.values),
            ]:
                saves.setdefault(line, []).append(formula)
        return self._conditional(saves)

    def _conditional(self, saves: dict[tuple[str, ...], list[Formula]]) -> list[str]:
        by_need: dict[str, list[str]] = {}
        for lines, wanted in saves.items():
            by_need.setdefault(self._needs(wanted), []).extend(lines)
        found = by_need.pop("", [])
        for need, needed in by_need.items():
            found += [f"if {need}:", *("    " + line for line in needed)]
        return found

    def _save_tensor(self, name: str) -> tuple[str, ...]:
        var = local(name)
        if self.inplace and name == "self":
            return ("t = original(self)", "node.self = t", "node.self_version = t.version()")
        if name in self.entry.unless:
            value = f"None if {local(self.entry.unless[name])} else {var}"
            return (f"node.{var} = t = {value}", f"node.{name}_version = version_of(t)")
        if self.kinds[name] == TENSOR:
            return (f"node.{var} = {var}", f"s = {var}.storage", f"node.{name}_version = {_version(var)}")
        read = "version_of" if self.kinds[name] == OPTIONAL else "versions_of"
        return (f"node.{var} = {var}", f"node.{name}_version = {read}({var})")

    def _save_outputs(self, names: dict[str, str]) -> list[str]:
        saves: dict[tuple[str, ...], list[Formula]] = {}
        for formula, uses in self.uses.items():
            for name in uses.outputs:
                value = names[name]
                if self._is_kept(name):
                    place = f", {self.outputs.index(list(names).index(name))}" if self.several else ""
                    line: tuple[str, ...] = (f"node.{name} = Kept({value}, tracked{place})",)
                else:
                    line = (f"node.{name} = {value}", f"node.{name}_version = {value}.version()")
                saves.setdefault(line, []).append(formula)
        return self._conditional(saves)

    def _call_inplace(self) -> list[str]:
        lines = [self.call, *self._metas("self"), *self._save_outputs({"result": "self"})]
        attach = "turn" if INPLACE_VIEW in self.function.tags else "rebase"
        return [*lines, f"{attach}(self, node, tracked)", "return self"]

    def _call_functional(self) -> list[str]:
        lines = [f"result = {self.call}"]
        if self.list_output:
            return [
                *lines,
                "node.count = len(result)",
                *self._metas("result[0]"),
                "for i, each in enumerate(result):",
                "    each.gmask = tracked",
                "    each.keys |= TRACKED",
                "    each.node = Output(node, i)",
                "return result",
            ]
        if len(self.returns) > 1:
            names = {n: f"result_{i}" for i, n in enumerate(self.returns)}
            lines.append(f"{', '.join(names.values())} = result")
            first = f"result_{self.outputs[0]}"
            lines += [*self._metas(first), *self._save_outputs(names)]
            if self.several:
                lines.append(f"node.count = {len(self.outputs)}")
                for place, i in enumerate(self.outputs):
                    lines.append(f"attach(result_{i}, Output(node, {place}), tracked)")
            else:
                lines.append(f"attach({first}, node, tracked)")
            return [*lines, "return result"]
        lines += unless_floating(self.schema, "result")
        if self.function.is_view:
            lines += ["if result is self:", "    return result"]
        lines += [
            *self._metas("result"),
            *self._save_outputs({"result": "result"}),
            "result.gmask = tracked",
            "result.keys |= TRACKED",
            "result.node = node",
            "return result",
        ]
        return lines

    def _metas(self, result: str) -> list[str]:
        if not self.fits:
            return []
        if self.fits == "list":
            return [f"node.metas = unlike_kind({result}, {local(self.arguments[0])})"]
        arguments = [local(a) for a in self.arguments]
        if self.fits == "all":
            return [f"node.metas = unlike({result}, {', '.join(arguments)})"]
        one, other = arguments if self.fits == "pair" else (arguments[0], result)
        shape = "array.shape == array_2.shape and " if self.fits == "pair" else ""
        # A gradient that goes to a leaf is fitted there: 170 ns less for each call on leaves.
        inner = " or ".join(f"tracks_{n} and {v}.node is not None" for n, v in zip(self.arguments, arguments, strict=True))
        if len(arguments) == 1:
            inner = f"{arguments[0]}.node is not None"
        return [
            f"if {inner}:",
            f"    array = {one}.array",
            f"    array_2 = {other}.array",
            "    try:",
            f"        same = {shape}array.dtype is array_2.dtype and {one}.device is {other}.device",
            "    except AttributeError:",
            "        same = False",
            f"    node.metas = None if same else metas({', '.join(arguments)})",
            "else:",
            "    node.metas = None",
        ]


def factory_name(function: NativeFunction) -> str:
    """The name of the function that makes an operator's kernel: `kernel_of_add_Tensor`, with `add__Tensor` for `add_.Tensor`."""
    name = function.schema.name
    return "kernel_of_" + (f"{name.name}_{name.overload}" if name.overload else name.name)
