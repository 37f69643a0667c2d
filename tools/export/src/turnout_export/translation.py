"""A program of `torch.export` becomes the data of a graph, which the tracer then checks as it checks a file.

The graph takes what the user gives. Parameters and buffers are its state, under the names that they have in the model, and lifted
tensors are its constants. Where results of the program are new values of buffers (Core ATen has no writes), they are copied into
them at the end. Sizes get the names of the program; what is computed from them becomes a formula, and what must hold of them,
guards and ranges included, an assumption.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.errors import TurnoutError
from turnout.registry import REGISTRY
from turnout.schema.types import ListType, OptionalType
from turnout_aten.files import Damaged, need
from turnout_aten.functions.call_forms import number_dtype
from turnout_aten.functions.numbers_as_tensors import overload_for_number
from turnout_aten.plain_data import NOT_PLAIN, elements, encode, only, row, shown
from turnout_export import errors, expressions, nesting, sizes
from turnout_export.arguments import Scope, Unsupported
from turnout_export.errors import ExportError
from turnout_export.expressions import Tree, Unknown
from turnout_export.sizes import Sizes
from turnout_tracer.graph import Graph

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.schema import Argument
    from turnout_aten.tensor.devices import TensorDevice
    from turnout_aten.tensor.tensor import Tensor

SCHEMA = (8, 20)  # the version of the schema that was read when this was written; later minor versions may add fields
MOST_NODES = 1 << 24

_TARGET = re.compile(r"torch\.ops\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
_NO_GRAD = "torch.ops.higher_order.wrap_with_set_grad_enabled"
# A value that a program goes on with is what `detach_` returned; the tensor that it was called on is not used again.
_RENAMED = {"aten::detach_": "aten::detach"}


def translate(program: dict[str, Any], weights: dict[str, Tensor], constants: dict[str, Tensor], where: TensorDevice) -> Graph:
    """The graph of a program. Raises ExportError that names all that a graph cannot hold, and Damaged."""
    made = _Translation(program, weights, constants)
    data = made.data()
    if made.missing or made.other:
        raise ExportError(errors.several(data["name"], sorted(made.missing), list(made.other)))
    return Graph.from_data(data, made.tensors, where)


class _Translation:
    """The data of one graph in the making.

    missing  operators that are not installed
    other    what else stands in the way, in words
    """

    def __init__(self, program: dict[str, Any], weights: dict[str, Tensor], constants: dict[str, Tensor]) -> None:
        self.program = program
        self.weights = weights
        self.held = constants
        self.missing: dict[str, None] = {}
        self.other: dict[str, None] = {}
        self.tensors: list[Tensor] = []
        self.nodes: list[dict[str, Any]] = []
        self.inputs: list[str] = []
        self.sizes = Sizes(program["range_constraints"])
        self.count = 0

    def data(self) -> dict[str, Any]:
        """What the JSON of a graph holds, with the numbers of tensors in the place of their bytes."""
        module = row(self.program["graph_module"], frozenset({"graph", "signature", "module_call_graph"}), "the program")
        graph = row(module["graph"], frozenset({"inputs", "outputs", "nodes", "tensor_values"}), "the graph")
        signature = row(module["signature"], frozenset({"input_specs", "output_specs"}), "the signature")
        scope = Scope(graph["tensor_values"])
        leaves, state, constants = self._inputs(scope, elements(signature["input_specs"], "the inputs"))
        calling = self._calling(module["module_call_graph"])
        taken, returned = nesting.structure(calling["in_spec"]), nesting.structure(calling["out_spec"])
        self._guards(taken, calling.get("forward_arg_names"), leaves)
        self._graph(scope, graph, no_grad=False)
        results, output = self._outputs(scope, elements(signature["output_specs"], "the outputs"))
        need(isinstance(taken, dict) and len(taken.get("tuple", ())) == 2, "the program does not take args and kwargs")
        return {
            "name": "forward",
            "inputs": self.inputs,
            "signature": {"structure": {"list": taken["tuple"]}, "leaves": leaves},
            "constants": constants,
            "nodes": self.nodes,
            "generators": [],
            "output": {"structure": returned, "leaves": output},
            "results": results,
            "sizes": self.sizes.data(),
            "state": state,
        }

    def _calling(self, data: Any) -> dict[str, Any]:
        for each in elements(data, "the modules"):
            found = row(each, frozenset({"fqn", "signature"}), "a module")
            if found["fqn"] == "":
                return row(found["signature"], frozenset({"in_spec", "out_spec"}), "how the program is called")
        raise Damaged("it does not say how the program is called")

    # ---- inputs and results

    def _inputs(self, scope: Scope, specs: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The leaves of what is given, the state and the constants. What is given has the first numbers."""
        leaves: list[Any] = []
        own: list[tuple[str, Any, bool]] = []
        for spec in specs:
            kind, value = only(row(spec, frozenset(), "an input"))
            if kind == "user_input":
                leaves.append(self._given(scope, row(value, frozenset({"arg"}), "an input")["arg"]))
            elif kind == "constant_input":
                leaves.append({"constant": scope.encode(_constant(row(value, frozenset({"value"}), "an input")["value"]))})
            elif kind in ("parameter", "buffer", "tensor_constant"):
                field = f"{kind}_name"
                found = row(value, frozenset({"arg", field}), f"a {kind}")
                own.append((row(found["arg"], frozenset({"name"}), f"a {kind}")["name"], found[field], kind != "tensor_constant"))
            else:
                self._refuse(f"an input of kind {shown(kind)}")
        self.sizes.name_inputs(scope)
        state: list[Any] = []
        constants: list[Any] = []
        for name, target, is_state in own:
            tensor = self.weights.get(target) if isinstance(target, str) else None
            tensor = tensor if tensor is not None else self.held.get(target) if isinstance(target, str) else None
            if tensor is None:
                raise Damaged(f"the archive has no tensor {shown(target)}")
            ref = self._bind(scope, name)
            where = next((i for i, each in enumerate(self.tensors) if each is tensor), None)
            if where is None:
                where = len(self.tensors)
                self.tensors.append(tensor)
            if is_state:
                state.append({"name": target, "ref": ref, "tensor": where, "requires_grad": tensor.requires_grad})
            else:
                constants.append({"ref": ref, "written": True, "tensor": where})
        return leaves, state, constants

    def _given(self, scope: Scope, argument: Any) -> Any:
        kind, value = only(row(argument, frozenset(), "an input"))
        if kind == "as_tensor":
            name = row(value, frozenset({"name"}), "an input")["name"]
            self._bind(scope, name)
            good = name.isidentifier() and not iskeyword(name) and name not in self.inputs
            self.inputs.append(name if good else f"x{len(self.inputs)}_")
            return "value"
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool", "as_custom_obj"):
            self._refuse(f"an input of kind {kind}, which is not a tensor")
            return {"constant": None}
        return {"constant": scope.encode(argument)}

    def _guards(self, taken: Any, names: Any, leaves: list[Any]) -> None:
        """What was decided about the inputs when the program was exported."""
        of = self._names_of_places(taken, names, leaves)

        def name_of(place: str, dim: int) -> Tree:
            shape = self.sizes.inputs[of[place]] if place in of else []
            if not 0 <= dim < len(shape):
                raise Unknown
            return shape[dim]

        for text in elements(self.program.get("guards_code", []), "the guards"):
            try:
                self.sizes.assume(expressions.guard(text, name_of))
            except Unknown:
                self._refuse(f"the guard {shown(text)}")

    def _names_of_places(self, taken: Any, names: Any, leaves: list[Any]) -> dict[str, int]:
        """How guards name each input: L['x'], L['x'][0], L['args'][0] of `*args`, L['flat_args'][0] of a strict export."""
        numbers = iter(range(len(leaves)))
        found: dict[str, int] = {}
        names = names if isinstance(names, list) else []
        for leaf_number, (place, leaf) in enumerate(zip(nesting.places(taken), leaves, strict=False)):
            if leaf != "value":
                continue
            number = next(numbers)
            found.setdefault(f"L['flat_args'][{leaf_number}]", number)
            kind, _, rest = place.removeprefix("[").partition("]")
            first, _, deeper = rest.removeprefix("[").partition("]")
            if kind == "0" and first.isdecimal() and int(first) < len(names) and isinstance(names[int(first)], str):
                name = names[int(first)]
                found[f"L[{name!r}]{deeper}"] = number
                several, _, index = name.rpartition("_")
                if index.isdecimal():  # perhaps one of `*args`
                    found.setdefault(f"L[{several!r}][{index}]{deeper}", number)
            elif kind == "1":
                found[f"L[{first}]{deeper}"] = number
        return found

    def _outputs(self, scope: Scope, specs: list[Any]) -> tuple[list[Any], list[Any]]:
        """The results, and the leaves of what is returned; what is written into buffers is copied there."""
        results: list[Any] = []
        leaves: list[Any] = []
        copies: list[dict[str, Any]] = []
        for spec in specs:
            kind, value = only(row(spec, frozenset(), "a result"))
            if kind == "user_output":
                argument = row(value, frozenset({"arg"}), "a result")["arg"]
                made = self._attempt(lambda argument=argument: scope.encode(argument))
                if isinstance(made, dict) and ("ref" in made or "size" in made):
                    leaves.append("value")
                    results.append(made.get("ref", made))
                else:
                    leaves.append({"constant": made})
            elif kind in ("buffer_mutation", "parameter_mutation", "user_input_mutation"):
                copies.append(self._written(scope, kind, value))
            else:
                self._refuse(f"a result of kind {shown(kind)}")
        self.nodes += copies
        return results, leaves

    def _written(self, scope: Scope, kind: str, value: Any) -> dict[str, Any]:
        """The call that writes a new value into an input or into the state."""
        field = "user_input_name" if kind == "user_input_mutation" else f"{kind.partition('_')[0]}_name"
        found = row(value, frozenset({"arg", field}), "a result that is written")
        source = scope.value(row(found["arg"], frozenset({"name"}), "a result that is written")["name"])
        if kind == "user_input_mutation":
            target = scope.value(found[field])
        else:
            target = self._state_of(scope, found[field])
        arguments = [{"ref": target}, {"ref": source}, False]
        made: dict[str, Any] = {"op": "aten::copy_", "args": arguments, "out": None}
        return made if kind == "user_input_mutation" else {**made, "no_grad": True}

    def _state_of(self, scope: Scope, target: Any) -> int:
        for spec in self.program["graph_module"]["signature"]["input_specs"]:
            kind, value = only(spec)
            if kind in ("buffer", "parameter") and value[f"{kind}_name"] == target:
                return scope.value(value["arg"]["name"])
        raise Damaged(f"{shown(target)} is written and is not a buffer")

    # ---- calls

    def _graph(self, scope: Scope, graph: dict[str, Any], *, no_grad: bool) -> None:
        for each in elements(graph["nodes"], "the list of calls"):
            node = row(each, frozenset({"target", "inputs", "outputs"}), "a call")
            need(isinstance(node["target"], str), "a call has no target")
            need(len(self.nodes) < MOST_NODES, "it has too many calls")
            try:
                self._node(scope, node, no_grad)
            except Unsupported as reason:
                self._refuse(f"{node['target']}: {reason}")
                self._pretend(scope, node)

    def _node(self, scope: Scope, node: dict[str, Any], no_grad: bool) -> None:
        target = node["target"]
        found = _TARGET.fullmatch(target)
        if target == _NO_GRAD:
            self._without_gradients(scope, node, no_grad)
        elif found is None:
            sizes.compute(scope, node, target, list(_arguments(node).values()))
        else:
            namespace, name, overload = found.groups()
            qualified = f"{namespace}::{name}" + ("" if overload == "default" else f".{overload}")
            if qualified == "aten::sym_size.int":
                sizes.name_result(scope, node, self.sizes.of_dim(scope, _arguments(node), self._made_by))
            elif not self.sizes.require(scope, qualified, _arguments(node)):
                self._call(scope, node, _RENAMED.get(qualified, qualified), no_grad)

    def _call(self, scope: Scope, node: dict[str, Any], qualified: str, no_grad: bool) -> None:
        op = self._find(qualified)
        if op is None:
            self._pretend(scope, node)
            return
        given = _arguments(node)
        unknown = given.keys() - {a.name for a in op.schema.arguments}
        if unknown:
            raise Unsupported(f"an argument {min(unknown)!r}, which the installed {op.qualified_name} does not take")
        op = _for_number(op, given)
        arguments = [self._argument(scope, op, a, given, no_grad) for a in op.schema.arguments]
        made: dict[str, Any] = {"op": op.qualified_name, "args": arguments, "out": None}
        if no_grad:
            made["no_grad"] = True
        self.nodes.append(made)
        made["out"] = self._results(scope, op, elements(node["outputs"], "the results of a call"))

    def _find(self, qualified: str) -> Operator | None:
        try:
            namespace = qualified.partition("::")[0]
            if namespace != "aten":
                plugins.require_namespace(namespace)
            return REGISTRY.find(qualified)
        except TurnoutError:
            self.missing[qualified] = None
            return None

    def _argument(self, scope: Scope, op: Operator, argument: Argument, given: dict[str, Any], no_grad: bool) -> Any:
        if argument.name not in given:
            need(argument.has_default, f"{op.qualified_name} is called without {argument.name}")
            return _default(argument.default)
        value = scope.encode(given[argument.name])
        type_ = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
        if type_.canonical == "Tensor" and value is not None and not _is_ref(value):
            return self._number(scope, value, given, no_grad)
        if type_.canonical == "float" and type(value) is int:
            return float(value)
        if isinstance(type_, ListType) and not type_.is_tensor_list and value is not None:
            many = value["tuple"] if isinstance(value, dict) and "tuple" in value else [value] * (type_.size or 1)
            floats = type_.elem.canonical == "float"
            return {"tuple": [float(each) if floats and type(each) is int else each for each in many]}
        return value

    def _number(self, scope: Scope, value: Any, given: dict[str, Any], no_grad: bool) -> Any:
        """A number where the operator takes a tensor: a tensor of 0 dims that gives way to the others in promotion."""
        found = [only(argument) for argument in given.values()]
        tensors = [row(held, frozenset({"name"}), "a tensor")["name"] for kind, held in found if kind == "as_tensor"]
        own = number_dtype(0j if isinstance(value, dict) and "complex" in value else _python(value))
        dtypes = [scope.dtype(name) for name in tensors]
        kind = max(dtypes, key=lambda each: each.category).name if dtypes else own.name
        if dtypes and max(each.category for each in dtypes) < own.category:
            kind = own.name
        ref = self._next()
        arguments = [value, {"dtype": kind}, None, {"device": "cpu"}, None]
        self.nodes.append({"op": "aten::scalar_tensor", "args": arguments, "out": {"ref": ref}, "no_grad": no_grad})
        return {"ref": ref}

    def _results(self, scope: Scope, op: Operator, outputs: list[Any]) -> Any:
        types = [each.type for each in op.schema.returns]
        if not types:
            need(not outputs, f"{op.qualified_name} returns nothing")
            return None
        need(len(outputs) == len(types), f"{op.qualified_name} returns {len(types)} results, and the program says {len(outputs)}")
        made = [self._result(scope, each) for each in outputs]
        return made[0] if len(types) == 1 else {"tuple": made}

    def _result(self, scope: Scope, data: Any) -> Any:
        kind, value = only(row(data, frozenset(), "a result"))
        if kind == "as_tensor":
            return self._born(scope, row(value, frozenset({"name"}), "a result")["name"])
        if kind == "as_tensors":
            names = [row(each, frozenset({"name"}), "a result")["name"] for each in elements(value, "the results of a call")]
            return [self._born(scope, name) for name in names]
        if kind in ("as_optional_tensor", "as_none"):
            return None if kind == "as_none" else self._result(scope, value)
        if kind in ("as_sym_int", "as_sym_float"):
            name = row(value, frozenset({"as_name"}), "a result")["as_name"]
            need(isinstance(name, str), "a result has no name")
            symbol = self.sizes.new(self._symbol_of(name))
            self.sizes.births.append([len(self.nodes) - 1, -1, None, symbol])
            scope.sizes[name] = symbol
            return {"size": symbol}
        raise Unsupported(f"a result of kind {shown(kind)}")

    def _symbol_of(self, name: str) -> Tree:
        """The symbol that the program has for a number that a call returns."""
        values = self.program["graph_module"]["graph"].get("sym_int_values")
        found = values.get(name) if isinstance(values, dict) else None
        return None if found is None else sizes.expression(found)

    def _born(self, scope: Scope, name: Any) -> dict[str, int]:
        """A tensor that a call has made; its dims may be symbols that nothing has yet named."""
        ref = self._bind(scope, name)
        self.sizes.of_result(len(self.nodes) - 1, ref, elements(scope.meta(name)["sizes"], "a shape"))
        return {"ref": ref}

    def _without_gradients(self, scope: Scope, node: dict[str, Any], no_grad: bool) -> None:
        """A part of the program that runs with gradients off, or on: its calls stand where it stood."""
        given = [row(each, frozenset({"arg"}), "an argument")["arg"] for each in elements(node["inputs"], "the arguments")]
        need(len(given) >= 2, "a part of the program has no graph")
        enabled = scope.encode(given[0])
        need(isinstance(enabled, bool), "a part of the program does not say whether gradients are on")
        if enabled and no_grad:
            raise Unsupported("gradients on inside a part with gradients off")
        kind, held = only(row(given[1], frozenset(), "an argument"))
        need(kind == "as_graph", "a part of the program has no graph")
        graph = row(
            row(held, frozenset({"graph"}), "a part")["graph"],
            frozenset({"inputs", "outputs", "nodes", "tensor_values"}),
            "a part",
        )
        inner = Scope(graph["tensor_values"])
        names = elements(graph["inputs"], "the inputs of a part")
        need(len(names) == len(given) - 2, "a part of the program is called with other arguments")
        for name, argument in zip(names, given[2:], strict=True):
            kind, held = only(row(name, frozenset(), "an input of a part"))
            if kind == "as_tensor":
                inner.values[row(held, frozenset({"name"}), "an input")["name"]] = scope.encode(argument)["ref"]
            elif kind == "as_sym_int":
                inner.sizes[row(held, frozenset({"as_name"}), "an input")["as_name"]] = sizes.tree_of(scope.encode(argument))
            else:
                raise Unsupported(f"an input of kind {shown(kind)}")
        self._graph(inner, graph, no_grad=no_grad or not enabled)
        outputs = _flat(elements(node["outputs"], "the results of a part"))
        results = _flat(elements(graph["outputs"], "the results of a part"))
        need(len(outputs) == len(results), "a part of the program has other results")
        for outer, result in zip(outputs, results, strict=True):
            kind, held = only(row(outer, frozenset(), "a result"))
            made = inner.encode(result)
            if kind == "as_tensor":
                scope.values[row(held, frozenset({"name"}), "a result")["name"]] = made["ref"]
            else:
                raise Unsupported(f"a result of kind {shown(kind)}")

    # ---- names and numbers

    def _next(self) -> int:
        self.count += 1
        return self.count - 1

    def _made_by(self, ref: int) -> int | None:
        """The call that has made a tensor."""
        return next((i for i, each in enumerate(self.nodes) if ref in _refs(each["out"])), None)

    def _bind(self, scope: Scope, name: Any) -> int:
        need(isinstance(name, str), "a tensor has no name")
        need(name not in scope.values, f"{shown(name)} is made twice")
        scope.values[name] = self._next()
        return scope.values[name]

    def _refuse(self, what: str) -> None:
        self.other[what] = None

    def _attempt(self, make: Any) -> Any:
        try:
            return make()
        except Unsupported as reason:
            self._refuse(f"a result: {reason}")
            return None

    def _pretend(self, scope: Scope, node: dict[str, Any]) -> None:
        """Name the results of a call that cannot be made, so that all others like it are found."""
        for data in _flat(elements(node["outputs"], "the results of a call")):
            kind, value = only(row(data, frozenset(), "a result"))
            found = row(value, frozenset(), "a result") if isinstance(value, dict) else {}
            name = found.get("name", found.get("as_name"))
            if not isinstance(name, str):
                continue
            if kind == "as_tensor":
                scope.values.setdefault(name, self._next())
            elif kind == "as_sym_bool":
                scope.truths[name] = []
            else:
                scope.sizes[name] = self.sizes.new()


def _arguments(node: dict[str, Any]) -> dict[str, Any]:
    found = [row(each, frozenset({"name", "arg"}), "an argument") for each in elements(node["inputs"], "the arguments")]
    need(all(isinstance(each["name"], str) for each in found), "an argument has no name")
    return {each["name"]: each["arg"] for each in found}


def _flat(outputs: list[Any]) -> list[Any]:
    """Results, those in lists one by one."""
    flat: list[Any] = []
    for each in outputs:
        kind, value = only(row(each, frozenset(), "a result"))
        flat += [{"as_tensor": one} for one in elements(value, "a list of results")] if kind == "as_tensors" else [each]
    return flat


def _constant(value: Any) -> Any:
    """A constant among the inputs, as an argument."""
    kind, held = only(row(value, frozenset(), "a constant"))
    need(kind in ("as_none", "as_int", "as_float", "as_string", "as_bool"), f"a constant is of kind {shown(kind)}")
    return {kind: held}


def _for_number(op: Operator, given: dict[str, Any]) -> Operator:
    """The overload that takes a number where this one takes a tensor and a number is given; the operator itself if none does."""
    numbers = ("as_int", "as_float", "as_bool", "as_complex", "as_sym_int", "as_sym_float")
    found = [
        a.name for a in op.schema.arguments if a.type.canonical == "Tensor" and next(iter(given.get(a.name, ())), "") in numbers
    ]
    return op if len(found) != 1 else overload_for_number(op, found[0]) or op


def _default(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return {"tuple": [_default(each) for each in value]}
    made = encode(value)
    assert made is not NOT_PLAIN, value
    return made


def _is_ref(value: Any) -> bool:
    return isinstance(value, dict) and "ref" in value


def _refs(out: Any) -> list[int]:
    """The numbers of the values in the results of a call."""
    if isinstance(out, list):
        return [n for each in out for n in _refs(each)]
    if isinstance(out, dict):
        return [out["ref"]] if "ref" in out else _refs(out.get("tuple"))
    return []


def _python(value: Any) -> Any:
    """A number of which the kind counts."""
    return 0.0 if isinstance(value, dict) and "float" in value else 0 if isinstance(value, dict) else value
