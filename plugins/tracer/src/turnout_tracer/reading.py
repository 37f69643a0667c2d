"""A graph read from its archive. Everything in it is checked before a graph is made, because a file may come from anywhere.

That is: each call has the arguments and results that its operator's schema declares, each value is made before it is used, and
only names that Python takes for names are names. What depends on the tensors that a graph is called with, such as how many parts
`split` returns, is found when it is called. Reading a file runs none of it.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from math import prod
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.devices import Device
from turnout.dtypes import DType
from turnout.errors import CallError, FileFormatError, ShapeError
from turnout.operators import Operator
from turnout.registry import REGISTRY
from turnout.schema.types import INTS, ListType, OptionalType, TupleType
from turnout_aten import plain_data
from turnout_aten.archives import Archive
from turnout_aten.files import Damaged, is_path, name_of, need, reading
from turnout_aten.plain_data import DEEPEST, distinct, elements, fields, index, only, row, shown, size
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_aten.trees import LEAF, Structure
from turnout_tracer import errors
from turnout_tracer.data import DOCUMENT, FORMAT, KINDS, VERSION, entry, order_in_memory
from turnout_tracer.nodes import Constant, Node, Ref, refs_in
from turnout_tracer.sizes import COMPARISONS, SIGNS, SYMBOL, Birth, Comparison, Formula, Sizes, formulas_in
from turnout_tracer.structures import VALUE, Nested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.schema import Argument
    from turnout_aten.files import FilePath
    from turnout_aten.tensor.devices import TensorDevice

Parts = tuple[
    str,
    tuple[str, ...],
    Nested,
    list[Node],
    list[Constant],
    Nested,
    list[Ref | Formula],
    Sizes | None,
    dict[str, Tensor],
    dict[str, Ref],
]  # what a Graph is made of

_WHOLE = frozenset({"name", "inputs", "signature", "constants", "nodes", "generators", "output", "results"})
_NODE = frozenset({"op", "args", "out"})
_CONSTANT = frozenset({"ref", "written"})
_ELEMENTS = frozenset({"dtype", "shape", "strides", "device", "data"})
_MOST = 1 << 31  # values of a graph from data that no file bounds
_OPERATOR = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.\w+)?", re.ASCII)


def load(path: FilePath, where: str | Device | None = None) -> Parts:
    """What a file that `data.save` wrote holds."""
    if not is_path(path):
        raise CallError(f"load: expected a path, got {type(path).__name__}")
    name, target = name_of(path), None if where is None else device(where)
    with reading(path) as file:
        try:
            archive = Archive(file)
            data = plain_data.document(archive, DOCUMENT, name, (FORMAT, VERSION), "turnout-tracer")
            length = archive.entries[DOCUMENT].size
            return _Reader(row(data, _WHOLE, "the graph"), target, length, (), archive).parts()
        except Damaged as error:
            raise FileFormatError(errors.not_a_graph(name, str(error))) from None


def from_data(data: dict[str, Any], tensors: Sequence[Tensor], where: str | Device | None = None) -> Parts:
    """What such data hold, in which {"tensor": i} stands for the bytes of tensors that are given."""
    try:
        target = None if where is None else device(where)
        return _Reader(row(data, _WHOLE, "the graph"), target, _MOST, tensors).parts()
    except Damaged as error:
        raise FileFormatError(errors.not_data_of_a_graph(str(error))) from None


class _Reader:
    """Reads one graph. Raises Damaged for what no graph holds."""

    def __init__(
        self,
        data: dict[str, Any],
        target: TensorDevice | None,
        most: int,
        tensors: Sequence[Tensor],
        archive: Archive | None = None,
    ) -> None:
        self.data = data
        self.target = target
        self.generators = [self.generator(each) for each in elements(data["generators"], "the list of generators")]
        self.kinds: dict[int, str] = {}  # of the values made so far: "Tensor", "Generator", "" for an input not yet used
        self.sizes: set[str] = set()  # the names of the sizes that are known so far
        self.tensors = tensors
        self.archive = archive
        self.unread = set(archive.entries) - {DOCUMENT} if archive is not None else set()
        self.most = most  # values: a file of so many bytes has fewer, and a call of the graph makes a list of them

    def parts(self) -> Parts:
        data = self.data
        inputs = tuple(elements(data["inputs"], "the list of inputs"))
        need(len(set(map(str, inputs))) == len(inputs), "two inputs have the same name")
        for name in (data["name"], *inputs):
            need(isinstance(name, str) and name.isidentifier() and not iskeyword(name), f"{shown(name)} is not a name")
        rows = elements(data["nodes"], "the list of calls")
        held = elements(data["constants"], "the list of constants")
        self.kinds = dict.fromkeys(range(len(inputs)), "")
        constants = [self.constant(each) for each in held]
        state: dict[str, Tensor] = {}
        state_refs: dict[str, Ref] = {}
        for each in elements(data.get("state", []), "the list of the graph's own tensors"):
            self.own(each, state, state_refs)
        sizes = self.read_sizes(data["sizes"], len(inputs), len(rows)) if "sizes" in data else None
        nodes = []
        for i, each in enumerate(rows):
            nodes.append(self.node(each))
            if sizes is not None:
                self.learn(sizes, i, nodes[i])
        signature, output = self.nested(data["signature"]), self.nested(data["output"])
        _check_signature(signature, len(inputs))
        results = [self.result(n) for n in elements(data["results"], "the list of results")]
        need(sum(leaf is VALUE for leaf in output.leaves) == len(results), "its output does not have as many values as results")
        plain_data.nothing_left(min(self.unread, default=None))
        return data["name"], inputs, signature, nodes, constants, output, results, sizes, state, state_refs

    # ---- sizes

    def read_sizes(self, data: Any, inputs: int, nodes: int) -> Sizes:
        """The sizes of the graph. Their names are known one after the other, as calls bring them."""
        found = row(data, frozenset({"inputs", "births", "assumptions"}), "the sizes")
        shapes = [None if shape is None else self.shape(shape) for shape in elements(found["inputs"], "the shapes of the inputs")]
        need(len(shapes) == inputs, "it does not have as many shapes as inputs")
        births = [self.birth(each, nodes) for each in elements(found["births"], "the list of births")]
        names = [birth.name for birth in births]
        need(len(set(names)) == len(names), "two sizes have the same name")
        compared = [self.comparison(each) for each in elements(found["assumptions"], "the list of assumptions")]
        sizes = Sizes(shapes, births, compared)
        self.sizes = {name for name, _, _ in sizes.of_inputs()}
        need(self.sizes.isdisjoint(names), "two sizes have the same name")
        used = {name for shape in shapes for each in formulas_in(shape or ()) for name in each.names()}
        need(used <= self.sizes, "a shape of an input is computed from a size that no input has")
        need(self.sizes.union(names).issuperset(n for each in compared for n in each.names()), "an assumption has unknown sizes")
        return sizes

    def shape(self, data: Any) -> tuple[Any, ...]:
        found = tuple([None if each is None else self.decode(each, 0) for each in elements(data, "the shape of an input")])
        good = all(each is None or isinstance(each, Formula) or type(each) is int for each in found)
        need(good, "a shape of an input has something else than sizes")
        return found

    def birth(self, data: Any, nodes: int) -> Birth:
        node, value, dim, name = fields(data, 4, "a size that a call brings")
        index(node, nodes, "call")
        need(value == -1 or type(value) is int, "the value of a size is not a number")
        need(dim is None or type(dim) is int, "the dim of a size is not a number")
        need(isinstance(name, str) and SYMBOL.fullmatch(name) is not None, f"{shown(name)} is not the name of a size")
        return Birth(node, value, dim, name)

    def comparison(self, data: Any) -> Comparison:
        left, sign, right = fields(data, 3, "an assumption")
        need(isinstance(sign, str) and sign in COMPARISONS, f"{shown(sign)} is not a comparison")
        return Comparison(_tree(left, 0), sign, _tree(right, 0))

    def learn(self, sizes: Sizes, i: int, node: Node) -> None:
        """The names that a call brings are known after it."""
        made = {ref.index for ref in refs_in(node.outputs)}
        for birth in sizes.born(i):
            number = birth.dim is None and isinstance(node.outputs, Formula) and node.outputs.tree == birth.name
            tensor = birth.dim is not None and 0 <= birth.dim < 64 and birth.value in made
            need(number or tensor, f"size {birth.name} comes from a call that does not bring it")
            self.sizes.add(birth.name)
        if isinstance(node.outputs, Formula):
            need(node.outputs.tree in self.sizes, "a call returns a size that has no name")

    def result(self, data: Any) -> Ref | Formula:
        """What the graph returns in one place."""
        if not isinstance(data, dict):
            return self.known(Ref(data))
        found = self.decode(data, 0)
        need(isinstance(found, Formula) and self.sizes.issuperset(found.names()), "a result is a size that is not known")
        return found

    # ---- values

    def new(self, number: Any, kind: str) -> Ref:
        """The value of a number that no other has."""
        need(index(number, self.most, "value") not in self.kinds, f"value {shown(number)} is made twice")
        self.kinds[number] = kind
        return Ref(number)

    def known(self, ref: Ref, kind: str = "") -> Ref:
        """A value that has been made, of this kind."""
        number = ref.index
        need(type(number) is int and number in self.kinds, f"value {shown(number)} is used before it is made")
        found = self.kinds[number] = self.kinds[number] or kind
        need(not kind or found == kind, f"value {number} is used as a tensor and as a generator")
        return ref

    def generator(self, data: Any) -> Generator:
        found = row(data, frozenset({"device", "state"}), "a generator")
        at = plain_data.place(found["device"])
        state = fields(found["state"], 2, "the state of a generator")
        need(all(type(n) is int and 0 <= n < 1 << 64 for n in state), "the state of a generator is not two ints of 64 bits")
        return Generator(at if self.target is None else self.target).set_state((state[0], state[1]))

    def constant(self, data: Any) -> Constant:
        found = row(data, _CONSTANT, "a constant")
        need(type(found["written"]) is bool, "a constant does not say whether it is written")
        return Constant(self.new(found["ref"], "Tensor"), self.held(data, "a constant"), found["written"])

    def own(self, data: Any, state: dict[str, Tensor], refs: dict[str, Ref]) -> None:
        """Add a tensor of the graph's own."""
        what = "a tensor of the graph's own"
        found = row(data, frozenset({"name", "ref"}), what)
        name = found["name"]
        need(isinstance(name, str), f"{what} has no name")
        need(name not in state, f"two of the graph's own tensors have the name {shown(name)}")
        if "again" in found:
            first = found["again"]
            need(isinstance(first, str) and first in state, f"{what} is that of {shown(first)}, which is not one")
            state[name] = state[first]
        else:
            state[name] = self.held(data, what)
            tracked, kind = found.get("requires_grad", False), state[name].dtype
            plain_data.check_tracked(tracked, kind, what)
            if tracked:
                state[name].requires_grad_()
        refs[name] = self.new(found["ref"], "Tensor")

    def held(self, data: dict[str, Any], what: str) -> Tensor:
        """A tensor from its bytes, or one of those that are given."""
        if "tensor" in data and self.tensors:
            return self.tensors[index(data["tensor"], len(self.tensors), "tensor")]
        found = row(data, _ELEMENTS, what)
        at, kind = plain_data.place(found["device"]), plain_data.dtype(found["dtype"])
        shape, strides = plain_data.geometry(found["shape"], found["strides"], what)
        order = order_in_memory(shape, strides)
        if order is None:
            raise Damaged(f"the elements of {what} have gaps between them, or share their memory")
        held = self.bytes_of(found["data"], prod(shape) * kind.itemsize, what)
        at = at if self.target is None else self.target
        at = at.backend.resolve_device(at)
        try:
            array = at.backend.from_host(held, tuple([shape[d] for d in order]), kind, at)
        except (ShapeError, TypeError, ValueError, OverflowError) as error:  # more dims than the backend can count
            raise Damaged(f"{what} cannot have the shape {shown(str(shape))}") from error
        tensor: Tensor = wrap(array, at)
        return tensor.permute(sorted(range(len(order)), key=lambda d: order[d])) if order != tuple(range(len(order))) else tensor

    def bytes_of(self, number: Any, expected: int, what: str) -> bytes:
        """The bytes of a tensor. No two tensors have the same ones, and they are read only if there are as many as expected."""
        need(self.archive is not None, f"{what} has no bytes")
        assert self.archive is not None
        name = entry(size(number, f"the entry of {what}"))
        need(name in self.unread, f"{what} is in {name}, which is not there or belongs to another tensor")
        self.unread.remove(name)
        return plain_data.bytes_of(self.archive, name, expected)

    # ---- calls

    def node(self, data: Any) -> Node:
        found = row(data, _NODE, "a call")
        op = _operator(found["op"])
        args = tuple([self.decode(each, 0) for each in elements(found["args"], "the arguments of a call")])
        declared = op.schema.arguments
        if len(args) != len(declared):
            raise Damaged(errors.other_arguments(op.qualified_name, len(args), len(declared)))
        for argument, value in zip(declared, args, strict=True):
            if not self.fits(argument, value):
                raise Damaged(errors.other_argument(op.qualified_name, argument.name, str(argument.type)))
        outputs = self.decode(found["out"], 0)
        types = [each.type for each in op.schema.returns]
        wanted: Any = TupleType(tuple(types)) if len(types) != 1 else types[0]
        fits = _is_output(wanted, outputs) or (not types and outputs is None)
        need(fits, f"{op.qualified_name} has other results than the file says")
        for ref in refs_in(outputs):
            self.new(ref.index, "Tensor")
        no_grad = found.get("no_grad", False)
        need(type(no_grad) is bool, "a call does not say whether gradients are off")
        return Node(op, args, outputs, no_grad)

    def decode(self, value: Any, depth: int) -> Any:
        need(depth < DEEPEST, "it is nested too deep")
        if isinstance(value, list):
            return [self.decode(each, depth + 1) for each in value]
        if not isinstance(value, dict):
            return value
        kind, inner = only(value)
        if kind == "tuple":
            return tuple([self.decode(each, depth + 1) for each in elements(inner, "a tuple")])
        if kind == "size":
            return Formula(_tree(inner, 0))
        if kind == "ref":
            return Ref(size(inner, "the number of a value"))
        if kind == "generator":
            return self.generators[index(inner, len(self.generators), "generator")]
        made = _plain(value)
        return self.target if isinstance(made, Device) and self.target is not None else made

    def fits(self, argument: Argument, value: Any) -> bool:
        """Whether a value is one that an operator's kernels get for an argument."""
        return self.is_of(argument.type, value) if value is not None else argument.may_be_none

    def is_of(self, type: Any, value: Any) -> bool:
        if isinstance(type, OptionalType):
            return value is None or self.is_of(type.elem, value)
        if isinstance(type, ListType):
            return isinstance(value, (list, tuple)) and all(self.is_of(type.elem, each) for each in value)
        name = type.canonical
        if isinstance(value, Formula):
            return name in _SIZED and self.sizes.issuperset(value.names())
        if isinstance(value, Ref):
            return name in ("Tensor", "Generator") and bool(self.known(value, name))
        return name in _KINDS and isinstance(value, _KINDS[name]) and _is_number_of(name, value)

    # ---- what it takes and returns

    def nested(self, data: Any) -> Nested:
        found = row(data, frozenset({"structure", "leaves"}), "a structure")
        structure = _structure(found["structure"], 0)
        leaves = [
            VALUE if leaf == "value" else _plain(row(leaf, frozenset({"constant"}), "a leaf")["constant"])
            for leaf in elements(found["leaves"], "the leaves of a structure")
        ]
        need(len(leaves) == _leaves_of(structure), "a structure does not have as many places as leaves")
        return Nested(structure, leaves)


_SIZED = ("int", "SymInt", "Scalar", "float", "SymFloat")
_KINDS: dict[str, Any] = {
    **dict.fromkeys(INTS, int), "bool": bool, "SymBool": bool, "float": (int, float), "SymFloat": (int, float),
    "complex": (int, float, complex), "Scalar": (bool, int, float, complex), "str": str, "Layout": str,
    "MemoryFormat": str, "ScalarType": DType, "Device": Device, "Generator": Generator,
}  # fmt: skip


def _is_number_of(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name in ("bool", "SymBool", "Scalar")
    return name not in INTS or -(1 << 63) <= value < 1 << 63


def _is_output(type: Any, outputs: Any) -> bool:
    """Whether numbers of values stand where a return of this type has tensors; None stands for what was written or is none."""
    if isinstance(outputs, Formula):
        return isinstance(outputs.tree, str) and not type.is_tensor_like
    if outputs is None:
        return not isinstance(type, TupleType)
    if isinstance(type, TupleType):
        good = isinstance(outputs, tuple) and len(outputs) == len(type.elems)
        return good and all(_is_output(*each) for each in zip(type.elems, outputs, strict=True))
    if type.is_list:
        return isinstance(outputs, (list, tuple)) and all(each is None or isinstance(each, Ref) for each in outputs)
    return isinstance(outputs, Ref) and type.is_tensor_like


def _tree(data: Any, depth: int) -> Any:
    """What computes a size: a name, a number, or a sign and its two sides."""
    if isinstance(data, list):
        need(depth < DEEPEST, "it is nested too deep")
        sign, left, right = fields(data, 3, "a size that is computed")
        need(isinstance(sign, str) and sign in SIGNS, f"{shown(sign)} is not an operation on sizes")
        return sign, _tree(left, depth + 1), _tree(right, depth + 1)
    if isinstance(data, str):
        need(SYMBOL.fullmatch(data) is not None, f"{shown(data)} is not the name of a size")
        return data
    fits = -(1 << 63) <= data < 1 << 63 if type(data) is int else type(data) is float
    need(fits, f"{shown(data)} is not a number in a size")
    return data


def _operator(name: Any) -> Operator:
    need(isinstance(name, str) and _OPERATOR.fullmatch(name) is not None, f"{shown(name)} is not the name of an operator")
    namespace = name.partition("::")[0]
    if namespace != "aten":
        plugins.require_namespace(namespace)
    return REGISTRY.find(name)


def _plain(value: Any) -> Any:
    """A value without tensors."""
    need(not isinstance(value, list), "a list stands in the place of a value")
    if not isinstance(value, dict):
        return value
    kind, inner = only(value)
    if kind == "tuple":  # the keys of a dict may be tuples
        return tuple([_plain(each) for each in elements(inner, "a tuple")])
    return plain_data.known(plain_data.decode(kind, inner), kind)


def _structure(data: Any, depth: int) -> Any:
    if data is None:
        return LEAF
    need(depth < DEEPEST, "it is nested too deep")
    need(isinstance(data, dict) and bool(data), "a structure has no kind")
    name = next(iter(data))
    kind: Any = plain_data.result_kind(data.get("type")) if name == "result" else KINDS.get(name)
    if kind is None:
        raise Damaged(f"a structure is of kind {shown(name)}")
    branches = tuple([_structure(each, depth + 1) for each in elements(data[name], "a structure")])
    keys: tuple[Any, ...] = tuple(range(len(branches)))
    if issubclass(kind, dict):
        keys = tuple(distinct([_plain(key) for key in elements(data.get("keys"), "the keys of a dict")]))
        plain_data.check_keys(list(keys), branches)
    elif name == "result":
        plain_data.check_result(kind, len(branches))
    return Structure(kind, keys, branches)


def _leaves_of(structure: Any) -> int:
    return 1 if structure is LEAF else sum([_leaves_of(branch) for branch in structure.branches])


def _check_signature(signature: Nested, inputs: int) -> None:
    """What a graph is called with is a list of positional arguments and a dict of those by name."""
    call = signature.structure
    both = call is not LEAF and call.kind is list and len(call.branches) == 2 and LEAF not in call.branches
    need(both and [b.kind for b in call.branches] == [tuple, dict], "its signature is not that of a function")
    need(all(isinstance(key, str) for key in call.branches[1].keys), "its signature is not that of a function")
    need(sum(leaf is VALUE for leaf in signature.leaves) == inputs, "its signature does not have as many tensors as inputs")
