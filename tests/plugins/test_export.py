"""`turnout.export`: programs that torch.export saved, as graphs. Two of the files are PyTorch's own, the others are made here."""

from __future__ import annotations

import io
import json
import struct
import sys
import tracemalloc
import zipfile
from functools import reduce
from pathlib import Path
from random import Random

import pytest
from exported_programs import FLOAT, LEAF, LONG, Program, argument, call, meta, node, packed, size, spec, symbol
from turnout.graphs import TraceError

import turnout
from outcomes import refused
from turnout import export
from turnout.errors import CallError, DeviceError, FileFormatError
from turnout_aten.tensor.taking_over import is_alone
from turnout_export import translation

FILES = Path(__file__).parent / "exported"
KINDS = ("core", "training")


def loaded(program: Program, **options):
    return export.load(program.archive(), **options)


# ---- PyTorch's own files


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_program_computes_what_it_computed_in_pytorch(kind):
    graph = export.load(FILES / f"{kind}.pt2")
    found = graph(turnout.arange(12.0).view(4, 3))
    third = [[-1.3416, -2.6833], [-0.4472, -0.8944], [0.4472, 0.8944], [1.3416, 2.6833]]
    turnout.testing.assert_close(found["y"].detach(), turnout.tensor(third), atol=1e-4, rtol=0)
    assert found["z"][0].shape == (2,)
    assert found["z"][1] == 8
    assert graph.state["calls"].item() == graph.state["n.num_batches_tracked"].item() == 1
    turnout.testing.assert_close(graph.state["n.running_var"], turnout.tensor([1.7437, 14.4]), atol=1e-4, rtol=0)
    graph(turnout.ones(9, 3))
    assert graph.state["calls"].item() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_a_graph_is_alone_with_its_memory(kind):
    graph = export.load(FILES / f"{kind}.pt2")
    assert {name for name, tensor in graph.state.items() if not is_alone(tensor)} == set()


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_get_gradients(kind):
    graph = export.load(FILES / f"{kind}.pt2")
    weights = turnout.tensor([[1.0, 2.0], [3.0, 4.0], [-5.0, 6.0]])
    (graph(turnout.arange(9.0).view(3, 3).sin())["y"] * weights).sum().backward()
    trained = {name: tensor for name, tensor in graph.state.items() if tensor.requires_grad}
    assert sorted(trained) == ["l.bias", "l.weight", "n.bias", "n.weight"]
    assert trained["n.bias"].grad.tolist() == [-1.0, 24.0]
    assert all(tensor.grad is not None for tensor in trained.values())
    assert graph.state["n.running_mean"].grad_fn is None


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_were_dynamic_may_differ_within_their_range(kind):
    graph = export.load(FILES / f"{kind}.pt2")
    for rows in (3, 9):
        assert graph(turnout.ones(rows, 3))["z"][1] == 2 * rows
    assert refused(TraceError, lambda: graph(turnout.ones(2, 3))) == (
        "forward: the graph holds only where s77 >= 3, which was decided when it was made\n  s77     2, dim 0 of x\n"
        "  to fix  make it again with inputs of these sizes, and call that graph"
    )
    assert refused(TraceError, lambda: graph(turnout.ones(4, 5))).startswith("forward: dim 1 of x must be 3, got 5\n")


def test_a_part_with_gradients_off_stays_without_them():
    graph = export.load(FILES / "training.pt2")
    found = graph(turnout.ones(4, 3))
    assert found["y"].requires_grad
    assert not found["z"][0].requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_with_state_is_saved_and_loaded(kind, tmp_path):
    graph = export.load(FILES / f"{kind}.pt2")
    graph.save(tmp_path / "graph.json")
    again = turnout.graphs.load(tmp_path / "graph.json")
    x = turnout.arange(12.0).view(4, 3)
    assert again(x)["y"].tolist() == graph(x)["y"].tolist()
    assert {name: t.tolist() for name, t in again.state.items()} == {name: t.tolist() for name, t in graph.state.items()}
    assert {n for n, t in again.state.items() if t.requires_grad} == {n for n, t in graph.state.items() if t.requires_grad}
    assert again.code == graph.code


def test_nothing_of_pytorch_is_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # which makes an import of it an error
    assert export.load(FILES / "core.pt2").state


# ---- what a graph can do


def test_the_graph_prints_and_its_text_runs():
    graph = loaded(Program())
    assert graph.code == (
        "def forward(x):\n"
        "    w = state['w']  # float32 [3, 2] on cpu, requires_grad\n"
        "    s77 = x.shape[0]\n"
        "    turnout.check(x.shape[1] == 3, 'the graph holds only where x.shape[1] == 3')\n"
        "    turnout.check(s77 <= 64, 'the graph holds only where s77 <= 64')\n"
        "    v2 = turnout.ops.aten.mm.default(x, w)\n"
        "    v3 = turnout.ops.aten.add.Scalar(v2, 1e-06)\n"
        "    return v3\n"
    )
    names = {"turnout": turnout, "state": graph.state}
    exec(graph.code, names)
    x = turnout.ones(2, 3)
    assert names["forward"](x).tolist() == graph(x).tolist()


def test_the_graph_works_under_vmap_autocast_trace_and_functional_call():
    graph = loaded(Program())
    x = turnout.arange(12.0).view(2, 2, 3)
    assert turnout.vmap(graph)(x).tolist() == [graph(each).tolist() for each in x]
    with turnout.autocast("cpu"):
        assert graph(x[0]).dtype is turnout.bfloat16
    traced = turnout.trace(lambda x: graph(x))(x[0])
    assert traced(x[1]).tolist() == graph(x[1]).tolist()
    other = turnout.func.functional_call(graph, {"state.w": turnout.zeros(3, 2)}, x[0])
    turnout.testing.assert_close(other, turnout.full((2, 2), 1e-6))


def test_the_graph_moves_to_another_device():
    graph = loaded(Program()).to("meta")
    assert {str(tensor.device) for tensor in graph.state.values()} == {"meta"}
    assert graph.state["w"].requires_grad
    found = graph(turnout.ones(5, 3, device="meta"))
    assert (found.shape, found.dtype, found.stride()) == ((5, 2), turnout.float32, (2, 1))
    assert str(loaded(Program(), device="meta").state["w"].device) == "meta"


def test_a_tensor_under_two_names_is_one_tensor(tmp_path):
    program = Program()
    facts, held = program.weights["w"]
    program.values["p_v"] = facts
    program.inputs.insert(1, {"parameter": {"arg": {"name": "p_v"}, "parameter_name": "v"}})
    entries = program.entries()
    payload = {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": facts}
    entries["data/weights/model_weights_config.json"] = json.dumps({"config": {"w": payload, "v": payload}}).encode()
    graph = export.load(packed(entries))
    assert graph.state["w"] is graph.state["v"]
    moved = graph.to("cpu")
    assert moved.state["w"] is moved.state["v"] is not graph.state["w"]
    graph.save(tmp_path / "graph.json")
    again = turnout.graphs.load(tmp_path / "graph.json")
    assert again.state["w"] is again.state["v"]
    assert len(held) == 24


def test_arguments_and_results_keep_their_nesting():
    program = Program()
    program.values |= {"y": meta([2])}
    program.inputs.append({"user_input": {"arg": {"as_tensor": {"name": "y"}}}})
    program.inputs.append({"constant_input": {"name": "flag", "value": {"as_bool": True}}})
    program.taken = spec("tuple", spec("tuple", LEAF), spec("dict", spec("list", LEAF), LEAF, context=["more", "flag"]))
    program.returned = spec("dict", LEAF, spec("list", LEAF, LEAF), context=["a", "b"])
    program.outputs = [{"user_output": {"arg": argument(each)}} for each in ("add", "y", 3)]
    graph = loaded(program)
    found = graph(turnout.ones(1, 3), more=[turnout.ones(2)], flag=True)
    assert found["b"][0].tolist() == [1, 1]
    assert found["b"][1] == 3
    assert "kwargs['flag'] must be True, as when the graph was traced; got False" in refused(
        TraceError, lambda: graph(turnout.ones(1, 3), more=[turnout.ones(2)], flag=False)
    )


# ---- numbers in the place of tensors


@pytest.mark.parametrize(
    ("kind", "dtype", "number", "expected"),
    [
        ("mul.Tensor", LONG, 2.5, turnout.float32),
        ("mul.Tensor", LONG, 3, turnout.int64),
        ("mul.Tensor", 8, 2.5, turnout.float64),
        ("maximum.default", LONG, 2.5, turnout.float32),
        ("maximum.default", 6, 2, turnout.float16),
        ("maximum.default", 8, 2.5, turnout.float64),
        ("atan2.default", FLOAT, True, turnout.float32),
    ],
)
def test_a_number_where_the_schema_says_tensor_gives_way_in_promotion(kind, dtype, number, expected):
    program = Program()
    rows = symbol("s77")
    program.values |= {"x": meta([rows, 3], dtype), "y": meta([rows, 3])}
    program.nodes = [call(kind, "y", self="x", other=number)]
    program.outputs = [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]
    x = turnout.ones(2, 3, dtype=turnout.float64).to(
        {LONG: turnout.int64, 8: turnout.float64, 6: turnout.float16, FLOAT: turnout.float32}[dtype]
    )
    found = loaded(program)(x)
    name = kind.partition(".")[0]
    wanted = getattr(turnout, name)(x.to(expected), turnout.tensor(number, dtype=expected))
    assert found.dtype is expected
    turnout.testing.assert_close(found, wanted)


def test_a_number_may_stand_first():
    program = Program()
    program.nodes[1] = call("sub.Tensor", "add", self=1, other="mm")
    assert loaded(program)(turnout.zeros(1, 3)).tolist() == [[1, 1]]


# ---- sizes


def test_numbers_are_computed_from_sizes():
    program = Program()
    rows = symbol("s77")
    names = {"n": rows, "m": f"Mul(Integer(2), {rows})", "k": f"Add({rows}, Integer(-1))"}
    program.numbers = {name: size(text) for name, text in names.items()}
    program.values |= {"full": meta([f"Mul(Integer(2), {rows})", f"Add({rows}, Integer(-1))"])}
    sym = {name: {"as_sym_int": {"as_name": name}} for name in (*names, "half")}
    both = {"as_sym_ints": [{"as_name": "m"}, {"as_name": "k"}]}
    program.nodes = [
        node("torch.ops.aten.sym_size.int", [sym["n"]], self="x", dim=0),
        node("_operator.mul", [sym["m"]], a=sym["n"], b=2),
        node("_operator.sub", [sym["k"]], a=sym["n"], b=1),
        node("_operator.truediv", [{"as_sym_float": {"as_name": "half"}}], a=sym["n"], b=2),
        call("full.default", "full", size=both, fill_value={"as_sym_float": {"as_name": "half"}}),
    ]
    program.outputs = [{"user_output": {"arg": each}} for each in (argument("full"), sym["m"], sym["k"])]
    program.returned = spec("tuple", LEAF, LEAF, LEAF)
    full, twice, less = loaded(program)(turnout.ones(5, 3))
    assert full.tolist() == [[2.5] * 4] * 10
    assert (twice, less) == (10, 4)


def test_a_size_that_depends_on_values_is_known_after_its_call():
    program = Program()
    found = "Symbol('u0', integer=True)"
    program.values |= {"places": meta([found, 2], LONG), "made": meta([found])}
    program.numbers = {"n": size(found)}
    sym = {"as_sym_int": {"as_name": "n"}}
    truth = {"as_sym_bool": {"as_name": "enough"}}
    program.nodes = [
        call("nonzero.default", "places", self="x"),
        node("torch.ops.aten.sym_size.int", [sym], self="places", dim=0),
        node("_operator.ge", [truth], a=sym, b=2),
        node("torch.ops.aten._assert_scalar.default", [], self=truth, assert_msg={"as_string": "too few"}),
        call("ones.default", "made", size={"as_sym_ints": [{"as_name": "n"}]}),
    ]
    program.outputs = [{"user_output": {"arg": argument("made")}}]
    graph = loaded(program)
    assert graph(turnout.eye(3)).shape == (3,)
    assert "the graph holds only where u0 >= 2" in refused(TraceError, lambda: graph(turnout.zeros(3, 3)))


@pytest.mark.parametrize(
    ("guard", "good", "bad"),
    [
        ("(L['x'].size()[0] % 2) == 0", 4, 5),
        ("L['x'].size()[0] // 3 != 1", 6, 5),
        ("L['x'].size()[0] * L['x'].size()[0] < 30", 5, 6),
        ("Eq(Mod(L['x'].size()[0], 4), 0)", 8, 6),
        ("not (L['x'].size()[0] == 7)", 6, 7),
        ("max(L['x'].shape[0], 4) - 4 <= 2", 3, 7),
        ("Eq(Add(L['x'].size()[0], Mul(2, L['x'].size()[0])), 15)", 5, 6),
    ],
)
def test_guards_are_checked(guard, good, bad):
    program = Program()
    program.guards = [guard]
    graph = loaded(program)
    graph(turnout.ones(good, 3))
    assert "the graph holds only where " in refused(TraceError, lambda: graph(turnout.ones(bad, 3)))


@pytest.mark.parametrize(
    ("names", "first", "last"),
    [
        (["x", "flag", "y"], "L['x']", "L['y']"),
        (["x", "flag", "y"], "L['flat_args'][0]", "L['flat_args'][2]"),
        (["args_0", "args_1", "args_2"], "L['args'][0]", "L['args'][2]"),
        (["x", "more_0", "more_1"], "L['x']", "L['more'][1]"),
        (["args_0", "args_1", "args_2"], "L['flat_args'][0]", "L['args'][2]"),
    ],
)
def test_inputs_that_share_a_size_are_compared_however_the_guard_names_them(names, first, last):
    program = Program()
    program.values["y"] = meta([symbol("s9"), 3])
    program.inputs += [
        {"constant_input": {"name": "flag", "value": {"as_bool": True}}},
        {"user_input": {"arg": {"as_tensor": {"name": "y"}}}},
    ]
    program.taken = spec("tuple", spec("tuple", LEAF, LEAF, LEAF), spec("dict", context=[]))
    program.names, program.ranges["s9"] = names, {"min_val": 2, "max_val": 64}
    program.guards = [f"{first}.size()[0] == {last}.size()[0]"]
    graph = loaded(program)
    assert graph(turnout.ones(4, 3), True, turnout.ones(4, 3)).shape == (4, 2)
    assert "the graph holds only where " in refused(TraceError, lambda: graph(turnout.ones(4, 3), True, turnout.ones(5, 3)))


# ---- what is refused


def test_everything_that_is_missing_is_listed_at_once():
    program = Program()
    program.values |= {"a": meta([2]), "b": meta([2])}
    graph = {"as_graph": {"name": "true", "graph": {}}}
    program.nodes[:0] = [
        call("no_such_operator.default", "a", self="x"),
        node("torch.ops.nowhere.other.default", ["b"], self="a"),
        node("torch.ops.higher_order.cond", [], pred=True, true_graph=graph),
    ]
    program.guards = ["L['x'].size()[0] in (1, 2)"]
    assert refused(export.ExportError, loaded, program) == (
        "forward: the program cannot become a graph\n"
        "  missing operators (2)\n    aten::no_such_operator\n    nowhere::other\n"
        "  not supported (2)\n    the guard \"L['x'].size()[0] in (1, 2)\"\n"
        "    torch.ops.higher_order.cond: only operators, and what Python computes with sizes, can be in a graph\n"
        "  to fix  install what defines these operators, or define them with turnout.library"
    )


def test_what_is_not_supported_says_so():
    program = Program()
    program.inputs.append({"custom_obj": {"arg": {"name": "o", "class_fqn": "C"}, "custom_obj_name": "o"}})
    program.outputs = [{"user_output": {"arg": {"as_custom_obj": {}}}}]
    assert refused(export.ExportError, loaded, program) == (
        "forward: the program cannot become a graph\n  not supported (2)\n    an input of kind 'custom_obj'\n    a result: an argument of kind 'as_custom_obj'\n"
        "  to fix  export the model without these"
    )


def _before(*nodes):
    """Calls in front of those of the program, in which n is the size that x may have."""

    def change(program):
        program.nodes[:0] = nodes
        program.numbers = {name: size(symbol("s77")) for name in ("n", "m")}

    return change


def _part(enabled, *given, inputs=(), outputs=(), nodes=()):
    """A part of the program with gradients on or off."""
    graph = {"inputs": list(inputs), "outputs": list(outputs), "nodes": list(nodes), "tensor_values": {}}
    arguments = dict(zip("abc", ({"as_bool": enabled}, {"as_graph": {"name": "part", "graph": graph}}, *given), strict=False))
    return node("torch.ops.higher_order.wrap_with_set_grad_enabled", list(outputs), **arguments)


N, M = ({"as_sym_int": {"as_name": name}} for name in "nm")
SMALL, EITHER = ({"as_sym_bool": {"as_name": name}} for name in ("small", "either"))
ROWS = node("torch.ops.aten.sym_size.int", [N], self="x", dim=0)
IS_SMALL = node("_operator.lt", [SMALL], a=N, b=9)


# ruff: noqa: E501 - rows of tables
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_before(call("add.Tensor", "y", self="x", other=SMALL)), "aten.add.Tensor: a comparison of sizes as an argument of an operator"),
        (_before(call("zeros_like.default", "y", self="x", layout={"as_layout": 1})), "aten.zeros_like.default: layout 1, which is not strided"),
        (_before(call("add.Tensor", "y", self="x", other={"as_custom_obj": {}})), "aten.add.Tensor: an argument of kind 'as_custom_obj'"),
        (_before(call("add.Tensor", "y", self="x", scale=2)), "aten.add.Tensor: an argument 'scale', which the installed aten::add.Tensor does not take"),
        (_before(node("torch.ops.aten.item.default", [SMALL], self="x")), "aten.item.default: a result of kind 'as_sym_bool'"),
        (_before(ROWS, IS_SMALL, node("_operator.or_", [EITHER], a=SMALL, b=SMALL)), "_operator.or_: a condition that one of several comparisons meets; a graph holds where all of them do"),
        (_before(node("_operator.and_", [EITHER], a=SMALL, b=SMALL)), "_operator.and_: a condition that is not a comparison of sizes"),
        (_before(node("_operator.add", [M], a="x", b=1)), "_operator.add: an operand that is not a size"),
        (_before(ROWS, node("math.sin", [M], a=N)), "math.sin: a function of sizes for which a graph has no formula"),
        (_before(_part(False, nodes=[_part(True)])), "higher_order.wrap_with_set_grad_enabled: gradients on inside a part with gradients off"),
        (_before(_part(False, 1.0, inputs=[{"as_float": 1.0}])), "higher_order.wrap_with_set_grad_enabled: an input of kind 'as_float'"),
        (_before(_part(False, outputs=[{"as_int": 1}])), "higher_order.wrap_with_set_grad_enabled: a result of kind 'as_int'"),
    ],
)  # fmt: skip
def test_what_a_graph_does_not_have_is_named_with_the_call(change, what):
    program = Program()
    change(program)
    target = what if what.startswith(("_operator", "math")) else f"torch.ops.{what}"
    assert refused(export.ExportError, loaded, program) == (
        f"forward: the program cannot become a graph\n  not supported (1)\n    {target}\n  to fix  export the model without these"
    )


def _with(**entries):
    def change(program):
        program.more = {name.replace("__json", ".json").replace("__", "/"): held for name, held in entries.items()}

    return change


def _weight(**facts):
    def change(program):
        program.weights["w"] = (program.weights["w"][0] | facts, program.weights["w"][1])

    return change


def _set(**fields):
    def change(program):
        for name, value in fields.items():
            setattr(program, name, value)

    return change


def _without_calls(program):
    made = program.program()
    made["graph_module"]["module_call_graph"] = []
    program.more = {"models/model.json": json.dumps(made).encode()}


def _payload(**fields):
    def change(program):
        name = "data/weights/model_weights_config.json"
        held = json.loads(program.entries()[name])
        held["config"]["w"] |= fields
        program.more = {name: json.dumps(held).encode()}

    return change


def _in_spec(text):
    def change(program):
        made = program.program()
        made["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = text
        program.more = {"models/model.json": json.dumps(made).encode()}

    return change


def _taken(**fields):
    """A program that takes a leaf with other fields."""
    return _set(taken=LEAF | fields)


def _call(target, outputs=(), **arguments):
    """A program of one call."""
    return _set(nodes=[node(target, list(outputs), **arguments)])


def _add(other):
    """A program that adds something to its input."""
    return _call("torch.ops.aten.add.Tensor", ["add"], self="x", other=other)


def _parted(outputs=(), *, enabled=False, graph=None, **arguments):
    """A program of one part, which is called in another way than its graph says."""
    target = "torch.ops.higher_order.wrap_with_set_grad_enabled"
    return _call(target, outputs, enabled=enabled, graph=graph or {"as_graph": {"graph": PART}}, **arguments)


PART = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}
NOT_WRITTEN = "load: the file was not written by torch.export.save, or is damaged: "


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_with(archive_format=b"zip"), "its archive_format is not pt2"),
        (_with(byteorder=b"big"), "its numbers are not little-endian"),
        (_with(**{"models__other.json": b"{}"}), "it holds 2 models; expected 1"),
        (_with(**{"models__model.json": b"{"}), "it is not JSON: Expecting property name enclosed in double quotes"),
        (_weight(sizes=[size(1 << 40), size(2)]), "'w' reaches to element 2199023255552 of a storage of 6"),
        (_weight(sizes=[size(-1), size(2)]), "a size of 'w' is -1, not a size"),
        (_weight(strides=[size(2)]), "'w' does not have as many sizes as strides"),
        (_weight(dtype=29), "it has a tensor of dtype float8_e4m3fn, which Turnout does not have"),
        (_weight(dtype="float32"), "'float32' is not the number of a dtype"),
        (_weight(layout=1), "'w' is not strided"),
        (_set(weights={}), "the archive has no tensor 'w'"),
        (_set(nodes=[call("add.Tensor", "add", self="later", other=1)]), "'later' is used before it is made"),
        (_set(outputs=[{"user_output": {"arg": argument("nothing")}}]), "'nothing' is used before it is made"),
        (
            _set(taken=spec("set", LEAF)),
            "arguments or results are nested in 'builtins.set'; a graph has list, tuple, dict and OrderedDict",
        ),
        (_with(data__weights__model_weights_config__json=b'{"config": []}'), "the list of weights is not an object"),
        (_weight(sizes=[size(1)] * 65, strides=[size(1)] * 65), "'w' cannot have the shape '[1, 1, 1, 1"),
        (_weight(sizes=[size(0), size(1 << 62)]), "'w' cannot have the shape '[0, 4611686018427387904]'"),
        (_set(ranges={}, values={"x": meta(["-" * 1900 + "1", 3])}), "an expression is nested too deep"),
        (_set(outputs=[{"buffer_mutation": {"arg": {"name": "add"}, "buffer_name": "b"}}]), "'b' is written and is not a buffer"),
        (_without_calls, "it does not say how the program is called"),
        (_with(more__archive_format=b"pt2"), "it holds 2 files archive_format; expected 1"),
        (_payload(path_name="../w"), "'../w' is not the name of a file"),
        (_payload(use_pickle=True), "'w' of the weights is pickled: a program, and not data"),
        (_weight(dtype=4), "'w' of int32 is said to require a gradient"),
        (_weight(sizes=[size("s0")]), "a size of 'w' is not a number"),
        (_set(version=("8", 20)), "the version of the schema is not two ints"),
        (_in_spec(5), "a tree is not a text"),
        (_in_spec("[2, null]"), "a tree has version 2, expected 1"),
        (_taken(children_spec=[LEAF]), "a leaf of a tree has branches"),
        (_taken(type="builtins.dict"), "a dict of a tree has no keys"),
        (_set(taken=spec("dict", LEAF, context=[1.5])), "a key of a dict is neither a str nor an int"),
        (_set(taken=reduce(lambda inner, _: spec("tuple", inner), range(100), LEAF)), "a tree is nested too deep"),
        (_set(taken=spec("tuple", LEAF)), "the program does not take args and kwargs"),
        (_set(values=5), "the facts about tensors are not an object"),
        (_set(values={"x": meta([3, 3])}), "the program says nothing of 'mm'"),
        (_set(values={"x": meta([3, 3]) | {"sizes": [{"as_name": "n"}]}}), "a size is of kind 'as_name'"),
        (_set(inputs=[{"user_input": {"arg": {"as_tensor": {"name": 5}}}}]), "a tensor has no name"),
        (_set(inputs=[{"constant_input": {"name": "c", "value": argument("x")}}]), "a constant is of kind 'as_tensor'"),
        (_set(nodes=[{"target": 5, "inputs": [], "outputs": []}]), "a call has no target"),
        (
            _set(nodes=[call("sin.default", "add", self="x") | {"inputs": [{"name": 5, "arg": argument("x")}]}]),
            "an argument has no name",
        ),
        (_add({"as_int": "1"}), "'1' is not of the kind as_int"),
        (_add({"as_float": 10**400}), "a float is too large"),
        (_add({"as_memory_format": 99}), "99 is not the number of a memory format"),
        (_add({"as_device": {"type": 5}}), "a device has no name"),
        (_call("torch.ops.aten.add.Tensor", ["add"], self="x"), "aten::add.Tensor is called without other"),
        (_call("torch.ops.aten.max.dim", ["add"], self="x", dim=0), "aten::max.dim returns 2 results, and the program says 1"),
        (_call("torch.ops.aten.item.default", [{"as_sym_int": {"as_name": 5}}], self="x"), "a result has no name"),
        (_call("_operator.add", [{"as_sym_int": {"as_name": "n"}}] * 2, a=1, b=2), "a size has several results"),
        (_call("_operator.add", ["add"], a=1, b=2), "a size is of kind 'as_tensor'"),
        (_call("_operator.add", [{"as_sym_int": {"as_name": 5}}], a=1, b=2), "a size has no name"),
        (_call("_operator.eq", ["add"], a=1, b=2), "a comparison has no truth value"),
        (_parted(graph=argument(1)), "a part of the program has no graph"),
        (_parted(enabled=1), "a part of the program does not say whether gradients are on"),
        (_parted(x="x"), "a part of the program is called with other arguments"),
        (_parted(["add"]), "a part of the program has other results"),
        (_set(guards=["__import__('os')"]), None),
        (_set(guards=["(" * 300]), "is not an expression"),
        (_set(guards=["1" * 5000]), "is not an expression of at most 4000 characters"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_reason(change, why):
    program = Program()
    change(program)
    if why is None:
        assert "the guard \"__import__('os')\"" in refused(export.ExportError, loaded, program)
    else:
        assert why in refused(FileFormatError, loaded, program)


def test_a_file_with_too_many_calls_is_refused(monkeypatch):
    monkeypatch.setattr(translation, "MOST_NODES", 1)
    assert refused(FileFormatError, loaded, Program()) == NOT_WRITTEN + "it has too many calls"


def test_a_pickled_tensor_is_refused_and_not_opened():
    entries = Program().entries()
    payload = {"path_name": "weight_0", "is_param": True, "use_pickle": True, "tensor_meta": None}
    entries["data/weights/model_weights_config.json"] = json.dumps({"config": {"w": payload}}).encode()
    assert (
        refused(FileFormatError, lambda: export.load(packed(entries)))
        == NOT_WRITTEN + "'w' of the weights is pickled: a program, and not data"
    )


def test_a_later_major_version_is_refused():
    program = Program()
    program.version = (9, 1)
    assert refused(FileFormatError, loaded, program) == (
        "load: the file has version 9.1 of the schema; this turnout-export reads versions up to 8.20"
    )


def test_other_calls_are_refused():
    assert "load: expected a path, or a file that is open in binary mode, got int" in refused(CallError, export.load, 3)
    assert "from_torch: expected a torch.export.ExportedProgram, got int" in refused(CallError, export.from_torch, 3)
    refused(DeviceError, lambda: export.load(FILES / "core.pt2", device="nowhere"))
    refused(FileNotFoundError, lambda: export.load(FILES / "other.pt2"))


def test_an_archive_cut_off_anywhere_is_refused():
    held = (FILES / "core.pt2").read_bytes()
    for length in range(0, len(held), 397):
        refused(FileFormatError, export.load, io.BytesIO(held[:length]))


# ---- damage


def _mutated(random: Random) -> bytes:
    """A file of PyTorch's with damage: bytes of the archive, values of its JSON, or bytes of an entry that is packed again."""
    held = bytearray((FILES / f"{random.choice(KINDS)}.pt2").read_bytes())
    if random.random() < 0.3:
        for _ in range(random.randint(1, 8)):
            held[random.randrange(len(held))] = random.randrange(256)
        return bytes(held)
    with zipfile.ZipFile(io.BytesIO(held)) as archive:
        entries = {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}
    name = random.choice([n for n in entries if n.endswith(".json")])
    if random.random() < 0.2:
        changed = bytearray(entries[name])
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] = random.randrange(32, 127)
        entries[name] = bytes(changed)
    else:
        data = json.loads(entries[name])
        for _ in range(random.randint(1, 3)):
            _damage(random, data)
        entries[name] = json.dumps(data).encode()
    return packed(entries).getvalue()


def _damage(random: Random, data) -> None:
    """Change a value somewhere in a tree."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(data[key], (dict, list)) and data[key] and random.random() < 0.93:
            data = data[key]
            continue
        kind = random.randrange(6)
        if kind == 0:
            del data[key]
        elif kind == 1 and isinstance(data, dict):
            data[f"{key}x"] = data.pop(key)
        elif kind == 2 and isinstance(data[key], str):
            data[key] = random.choice(("", "x", "__import__('os').abort()", "\ud800", "Integer(" * 50, data[key] * 3))
        else:
            data[key] = random.choice((None, -1, 0, 1, 1 << 31, 1 << 62, 1 << 70, 0.5, "x", [], {}, [None], {"as_int": -5}, True))
        return


def test_a_damaged_file_is_read_or_refused_and_takes_no_more_memory(seeds):
    """`--programs 1000` runs that many."""
    outcomes = set()
    for kind in KINDS:
        export.load(FILES / f"{kind}.pt2")  # what is imported and compiled at the first use is not counted
    tracemalloc.start()
    try:
        for seed in seeds(60):
            held = _mutated(Random(seed))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                export.load(io.BytesIO(held))
                outcomes.add("read")
            except (FileFormatError, export.ExportError, DeviceError):
                outcomes.add("refused")
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < 16 << 20, (seed, peak)
    finally:
        tracemalloc.stop()
    assert outcomes == {"read", "refused"}


def test_bytes_of_weights_are_read_as_they_are():
    program = Program()
    program.weights["w"] = (meta([3, 2], LONG), struct.pack("<6q", *range(6)))
    program.values["p_w"] = meta([3, 2], LONG)
    program.values["x"] = meta([symbol("s77"), 3], LONG)
    assert loaded(program).state["w"].tolist() == [[0, 1], [2, 3], [4, 5]]
