"""The compiled call path: the same as the Python one, whatever is called, and switched off by one setting."""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import pickle
import re
import sys
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
from compiled_calls import blocks_left_by, seen, taken
from turnout.nn import functional as F

import turnout
from outcomes import printed, refused
from turnout.library import Library
from turnout.registry import Registrations
from turnout_aten.kernels.rows import Compiled, Sizes

_calls = pytest.importorskip("turnout_speed._calls", reason="turnout-speed was installed without a C compiler")
TESTS = Path(__file__).parent.parent


def run(code: str, **environment: str) -> str:
    """What a fresh process prints, with the compiled call path unless `environment` says otherwise."""
    return printed(code, options=(), cwd=TESTS, **{"TURNOUT_SPEED": "on", **environment})


# ---- the same


def test_random_calls_return_raise_and_warn_the_same_with_and_without(seeds: Callable[[int], range]):
    some = seeds(80)
    code = f"from random_programs import calls; calls.main({some.start}, {len(some)})"
    on, off = ([json.loads(line) for line in run(code, TURNOUT_SPEED=speed).splitlines()] for speed in ("on", "off"))
    assert on[-1] > len(some) // 2, "the compiled call path took hardly any call, so nothing was compared"
    assert off[-1] == 0
    for (seed, lines, found), (_, _, expected) in zip(on[:-1], off[:-1], strict=True):
        for i, line in enumerate(lines):
            shown = "\n".join(lines[: i + 1])
            assert found[i] == expected[i], f"seed {seed}: {line} differs; the program\n{shown}"


RAISED = """
import traceback, turnout
turnout.config.set(traceback="full")
x, aten = turnout.ones(2, 3), turnout.ops.aten
for call in ({calls}):
    for _ in range(3):
        try:
            call()
        except (turnout.errors.TurnoutError, TypeError):
            shown = traceback.format_exc()
    print(shown)
"""
# What a program prints with the compiled call path and without it, and a part of it.
PROGRAMS = {
    "random numbers": ("""
import turnout as m
m.manual_seed(7)
shapes = [(), (1,), (5,), (3, 7), (0, 2), (2048,), (2049,), (9000,)]
kinds = [m.float32, m.float64, m.float16]
drawn = [f(shape, dtype=kind) for shape in shapes for kind in kinds for f in (m.rand, m.randn)]
print([[float(x) for x in (d.sum(), d.min() if d.numel() else 0, d.max() if d.numel() else 0)] for d in drawn])
print([d.reshape(-1)[:3].tolist() for d in drawn], m.get_rng_state())
""", "["),
    "memory of results": ("""
import turnout as m
x, halves = m.ones(3, 2).t(), m.ones(3, 2, dtype=m.bfloat16).t()
print([f(y).array.base is None for f in (m.exp, m.relu, m.tanh) for y in (x, halves) for _ in range(3)])
""", "[True, True"),
    "frames of operators": (RAISED.format(calls="""
    lambda: aten.mm(x, x), lambda: aten.sum(x, other=1), lambda: aten.mm.default(x, x), lambda: aten.add.Tensor(x, x, x)
"""), "return self.call(*args, **kwargs)"),
    "frames of kernels in Python": (RAISED.format(calls="""
    lambda: x.reshape(5), lambda: turnout.cat([x, x], 7), lambda: turnout.softmax(x, 9),
    lambda: turnout.softmax(x.to("meta"), 9), lambda: x.to("meta") @ x.to("meta")
"""), "<turnout.Tensor.reshape>"),
    "frames of overloads": (RAISED.format(calls="""
    lambda: x.sum(5), lambda: x.sum([5]), lambda: turnout.sum(x, 5), lambda: x.squeeze(7), lambda: turnout.select(x, 5, 0),
    lambda: x.max(5), lambda: turnout.arange(0, 5, 0), lambda: turnout.where(x > 0, x, turnout.ones(7)), lambda: x.std(5, False)
"""), "return op.call(input, *args)"),
    "operators and packets": ("""
import turnout
x, aten = turnout.ones(2, 3), turnout.ops.aten
print(aten.add.Tensor(x, x, alpha=2).tolist(), aten.add(x, other=x).tolist(), aten.sum(x, dim=[0]).tolist())
""", "[[3.0"),
}  # fmt: skip


def test_programs_print_the_same_with_and_without():
    """Each in the same process as the others, which is started once for each way."""
    code = f"""
import contextlib, io, json
for name, (program, _) in {PROGRAMS!r}.items():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(program, "<program>", "exec"), {{}})
    print(json.dumps([name, out.getvalue()]))
"""
    on, off = ([json.loads(line) for line in run(code, TURNOUT_SPEED=speed).splitlines()] for speed in ("on", "off"))
    assert [name for name, _ in on] == list(PROGRAMS)
    for (name, found), (_, expected) in zip(on, off, strict=True):
        for line, other in zip(found.splitlines(), expected.splitlines(), strict=True):
            assert line == other, name
        assert PROGRAMS[name][1] in found, name


@pytest.mark.parametrize("half", range(2))
def test_a_kernel_that_somebody_replaces_is_called_as_often_as_the_text_calls_it(half: int, seeds: Callable[..., range]):
    """Statements and every third case; all cases in sweeps."""
    parts = [part for part in seeds(2, many=6) if part % 2 == half]
    code = f"from random_programs import replaced_kernels\nfor part in {parts}: replaced_kernels.main(part, 6)"
    assert run(code) == ""


def test_a_call_is_taken_only_where_nothing_is_special(compiled_path: None):
    class Plain(turnout.Tensor):
        pass

    def wrong(call: Callable[..., object], argument: object) -> None:
        refused(turnout.errors.TurnoutError, call, argument)

    x, whole, nan = turnout.ones(3), turnout.ones(3, dtype=turnout.int64), turnout.full((2,), float("nan"))
    places, mask, other = turnout.tensor([0, -1]), turnout.tensor([True, False, True]), turnout.zeros(3)
    seen = turnout.zeros(3)
    view = seen[:]
    calls = {
        "x + x": (lambda: x + x, 1),
        "x + 1.5": (lambda: x + 1.5, 1),
        "turnout.mul": (lambda: turnout.mul(x, x), 1),
        "x.exp()": (lambda: x.exp(), 1),
        "a keyword": (lambda: turnout.ops.aten.add.Tensor(x, x, alpha=1), 1),
        "x[0]": (lambda: x[0], 1),
        "x[1:]": (lambda: x[1:], 1),
        "a view by a tuple": (lambda: turnout.ops.aten.view(x, (3, 1)), 1),
        "a view by a list": (lambda: turnout.ops.aten.view(x, [3, 1]), 1),
        "a view of a view": (lambda: x.view(3, 1)[0], 2),
        "a view without elements": (lambda: x[3:], 0),
        "a subclass": (lambda: x + turnout.as_subclass(x, Plain), 0),
        "two dtypes": (lambda: x + whole, 1),
        "an overload by keyword": (lambda: turnout.sum(x, dim=0), 1),
        "an overload by a list": (lambda: x.sum((0,)), 1),
        "an output": (lambda: turnout.add(x, x, out=other), 1),
        "an output of another shape": (lambda: turnout.add(x, x, out=turnout.empty(0)), 1),  # the factory
        "an output that is an input": (lambda: turnout.add(other, x, out=other), 1),
        "an output with a view": (lambda: turnout.add(x, x, out=seen), 1),
        "an output with a view that is an input": (lambda: turnout.add(x, view, out=seen), 0),
        "a write by a shape function's answer": (lambda: other.index_put_((places,), x[:2]), 2),
        "a mask": (lambda: x[mask], 1),
        "indices behind a whole dim": (lambda: x.view(1, 3)[:, places], 2),
        "a new dim and the rest": (lambda: x[None, ..., 0], 2),
        "a write by index": (lambda: other.__setitem__(places, 2.0), 2),
        "a write by a mask": (lambda: other.__setitem__(mask, 2.0), 2),
        "a write of a view": (lambda: other.__setitem__(0, 2.0), 2),
        "a write of a tensor": (lambda: other.__setitem__(slice(None), x), 1),
        "a value with too many dims": (lambda: other.__setitem__(slice(None), x[None]), 4),
        "a number": (lambda: x[0].item(), 2),
        "a number of several": (lambda: wrong(lambda t: t.item(), x), 0),
        "the largest and its place": (lambda: x.max(0), 1),
        "a range of ints": (lambda: turnout.arange(1, 9, 3), 1),
        "a range that leads away": (lambda: wrong(lambda end: turnout.arange(0, end), -3), 0),
        "running sums": (lambda: x.cumsum(0), 1),
        "a variance": (lambda: turnout.ops.aten.var.correction(x), 1),
        "a dim that is not there": (lambda: wrong(x.argmax, 5), 0),
        "sizes one by one": (lambda: x.view(3, 1), 1),
        "a factory": (lambda: turnout.zeros(2, 3), 1),
        "a factory with a dtype": (lambda: turnout.ones((2, 3), dtype=turnout.int64), 1),
        "a number of its own dtype": (lambda: turnout.full((2,), 1.5), 1),
        "a factory like a tensor": (lambda: turnout.zeros_like(x), 1),
        "a negative size": (lambda: wrong(turnout.zeros, -1), 0),
        "another dtype": (lambda: x.to(turnout.float64), 2),
        "a dtype that it has": (lambda: x.to(turnout.float32), 1),
        "nan as an int": (lambda: nan.to(turnout.int64), 0),
        "a list along a dim": (lambda: turnout.cat([x, x]), 1),
        "two dtypes along a dim": (lambda: turnout.cat([x, whole]), 1),
        "rows by number": (lambda: x[places], 1),
        "a row that is not there": (lambda: wrong(x.__getitem__, places + 5), 1),  # the sum
        "a large number": (lambda: x + (1 << 40), 0),
        "random numbers": (lambda: turnout.rand(2), 1),
        "normal numbers": (lambda: turnout.randn(2, dtype=turnout.float64), 1),
        "random numbers of another dtype": (lambda: turnout.rand(2, dtype=turnout.float16), 3),
        "spaced numbers": (lambda: turnout.linspace(0, 1, 3), 1),
        "one spaced number": (lambda: turnout.linspace(0, 1, 1), 3),
        "an identity": (lambda: turnout.eye(2), 1),
        "several views": (lambda: x.unbind(), 1),
        "parts that are views": (lambda: x.split(2), 1),
        "a stack": (lambda: turnout.stack([x, x]), 0),  # joined by the kernel of `cat`, called at once
        "a stack of another dtype": (lambda: turnout.stack([x, whole]), 0),
        "a number where a mask is true": (lambda: x.masked_fill(mask, 0.0), 1),
        "an open size": (lambda: x.view(3, 1).reshape(-1), 3),
        "all dims as one": (lambda: x.view(3, 1).flatten(), 4),
        "equal tensors": (lambda: turnout.equal(x, x), 0),  # few elements are compared as Python numbers
        "a loss over classes": (lambda: turnout.nn.functional.nll_loss(x[None], places[:1]), 5),
    }
    turnout.equal(x, whole)  # resolves what `equal` ends in: until then, few elements are compared as Python numbers
    assert {name: taken(_calls.taken, call) for name, (call, _) in calls.items()} == {
        name: count for name, (_, count) in calls.items()
    }


def test_a_recorded_call_is_taken_and_its_node_holds_what_the_python_kernel_saves(compiled_path: None):
    x = turnout.tensor([1.0, 2.0], requires_grad=True)
    y = turnout.tensor([3.0, 4.0])
    assert taken(_calls.taken, lambda: x * y) == 1
    made = x * y
    node = made.grad_fn
    assert (node.name(), node.edges, node.other is y, node.metas) == ("MulBackward0", (x, None), True, None)
    assert not hasattr(node, "self")  # y needs no gradient
    y.add_(1)
    refused(turnout.errors.AliasError, made.sum().backward)


def test_a_write_of_a_parameter_is_taken_where_no_level_records(compiled_path: None):
    p, g = turnout.ones(3, requires_grad=True), turnout.ones(3)

    def step() -> None:
        with turnout.no_grad():
            p.sub_(g, alpha=0.5)

    assert taken(_calls.taken, step) == 1
    assert (p.tolist(), p._version) == ([0.0] * 3, 2)
    refused(turnout.errors.AliasError, p.sub_, g, alpha=0.5)
    made = p * 1
    made.sub_(g, alpha=0.5)
    assert made.grad_fn.name() == "SubBackward0"


def test_a_recorded_view_is_taken_unless_its_base_was_written_since(compiled_path: None):
    x = turnout.ones(2, 3, requires_grad=True)
    x[0].exp()
    before = _calls.taken()
    row = x[1]
    assert _calls.taken() == before + 1
    assert (row.grad_fn.name(), row.grad_fn.edges, row.grad_fn.self_shape) == ("SelectBackward0", (x,), (2, 3))
    row.exp()
    assert _calls.taken() == before + 2
    y = x * 1
    view = y[0]
    view.exp()
    y.mul_(2)
    before = _calls.taken()
    stale = view.exp()
    assert _calls.taken() == before  # its history is made anew first
    stale.sum().backward()
    assert x.grad.tolist() == [[pytest.approx(2 * numpy.exp(2.0))] * 3, [0.0] * 3]


def test_what_a_product_saves_is_what_the_python_kernel_saves(compiled_path: None):
    x = turnout.ones(2, 3).t().clone().requires_grad_()
    w = turnout.arange(8.0).view(2, 2, 2)[1].t()
    x @ w
    before = _calls.taken()
    node = (x @ w).grad_fn
    assert _calls.taken() == before + 2  # matmul, which ends in mm
    assert node.self_geometry == ((3, 2), x.stride(), 0)
    assert node.mat2 is w


def test_a_view_is_taken_and_has_the_record_that_the_python_kernel_makes(compiled_path: None):
    x = turnout.arange(6.0).view(2, 3).clone()
    x[0], x.t()
    before = _calls.taken()
    made, turned = x[1], x.t()
    assert _calls.taken() == before + 2
    assert made.array.base is x.array
    assert (made.storage, made.offset, made.view_of.base) == (x.storage, 3, x)
    assert [(op.qualified_name, rest) for op, rest, _ in made.view_of.chain] == [("aten::select.int", (0, 1))]
    made.mul_(10)
    assert turned.tolist() == [[0.0, 30.0], [1.0, 40.0], [2.0, 50.0]]
    assert x._version == turned._version == 1
    x.array.flags.writeable = False
    assert not x[0].array.flags.writeable


def test_several_views_are_taken_and_have_the_records_that_the_python_kernel_makes(compiled_path: None):
    x = turnout.arange(6.0).view(2, 3).clone()
    x.unbind()
    before = _calls.taken()
    first, second = x.unbind()
    assert _calls.taken() == before + 1
    assert (first.storage, second.offset, second.view_of.base, second.view_of.multi) == (x.storage, 3, x, True)
    assert [(op.qualified_name, rest, at) for op, rest, at in second.view_of.chain] == [("aten::unbind.int", (0,), 1)]
    later = x.split(1)[1][0]
    assert [(op.qualified_name, at) for op, _, at in later.view_of.chain] == [
        ("aten::split.Tensor", 1),
        ("aten::select.int", None),
    ]
    assert later.view_of.multi
    first.add_(1)
    assert x.tolist() == [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]


def test_a_shape_and_a_dtype_are_properties_that_cannot_be_set(compiled_path: None):
    x = turnout.ones(2, 3)
    assert (x.shape, type(x.shape), x.dtype) == ((2, 3), turnout.Size, turnout.float32)
    assert (x.to("meta").shape, x.to(turnout.bfloat16).dtype) == ((2, 3), turnout.bfloat16)
    for name, text in (("shape", "The length of each dimension."), ("dtype", "The type of the elements.")):
        found = vars(turnout.Tensor)[name]
        assert isinstance(found, property)
        assert found.__doc__ == text
        assert refused(AttributeError, setattr, x, name, 3) == f"property '{name}' of 'Tensor' object has no setter"


def test_a_kernel_of_the_user_runs_once_whatever_it_raises_and_from_the_frame_of_the_text(compiled_path: None):
    seen: list[str] = []

    def kernel(array: numpy.ndarray) -> numpy.ndarray:
        frame = sys._getframe(1)
        seen.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        if array[0] < 0:
            raise ValueError("below zero")
        return array * 2 if array[0] else array

    op = turnout.library.custom_op("speedtests::twice", kernel, mutates_args=(), schema="(Tensor x) -> Tensor", arrays=True)
    try:
        x = turnout.ones(2)
        assert taken(_calls.taken, lambda: op(x)) == 1
        assert seen == ["<kernel of speedtests::twice at CPU>:3 on_arrays"] * 2
        assert refused(ValueError, op, -x) == "below zero"
        assert "input" in refused(turnout.errors.TurnoutError, op, turnout.zeros(2))  # it returns what it was given
        assert (len(seen), op(x).tolist()) == (4, [2.0, 2.0])
        assert str(inspect.signature(op)) == "(x)"
    finally:
        op.undo()


def test_an_index_of_which_a_part_is_wrong_makes_no_view(compiled_path: None):
    x = turnout.ones(3, 3)
    assert x[0:1].shape == (1, 3)  # from here on, slices are taken
    y = turnout.ones(3, 3)
    assert "got float" in refused(turnout.errors.IndexKindError, y.__getitem__, (slice(2, None), 1.5))
    assert y.storage is None


def test_a_handle_calls_what_its_operator_calls_now(compiled_path: None, monkeypatch: pytest.MonkeyPatch):
    def define(factor: int) -> Callable[..., turnout.Tensor]:
        return turnout.library.custom_op(
            "speedtests::times", lambda array: array * factor, mutates_args=(), schema="(Tensor x) -> Tensor", arrays=True
        )

    x, before = turnout.ones(2), define(2)
    op, packet = turnout.ops.speedtests.times.default, turnout.ops.speedtests.times
    try:
        assert [f(x).tolist() for f in (before, op, packet)] == [[2.0, 2.0]] * 3
        before.register_kernel("cpu", lambda array: array * 3, arrays=True)
        assert [f(x).tolist() for f in (before, op, packet)] == [[3.0, 3.0]] * 3
        with before.set_kernel_enabled("cpu", False):
            assert [f(x).tolist() for f in (before, op, packet)] == [[2.0, 2.0]] * 3
        after = define(4)
        for handle in (before, op):
            refused(turnout.errors.StaleOperatorError, handle, x)
        op, packet = turnout.ops.speedtests.times.default, turnout.ops.speedtests.times
        assert [f(x=x).tolist() for f in (after, op, packet)] == [[4.0, 4.0]] * 3
        assert type(after).__call__ is type(before).__dict__["__call__"]

        class Doubled(type(after)):
            def __call__(self, value: turnout.Tensor) -> turnout.Tensor:
                return super().__call__(value * 2)

        object.__setattr__(own := object.__new__(Doubled), "operator", after.operator)
        assert own(x).tolist() == [8.0, 8.0]
        for handle in (after, op, packet):
            with monkeypatch.context() as patch:
                patch.setattr(type(handle), "__call__", lambda self, value: value)
                assert handle(x) is x
            assert handle(x).tolist() == [4.0, 4.0]
    finally:
        _calls.call_operators(type(op), type(packet))
        after.undo()
    for handle in (after, op):
        refused(turnout.errors.StaleOperatorError, handle, x)
    refused(turnout.errors.UnknownOperatorError, packet, x)


def test_a_call_of_an_operator_or_a_packet_is_taken(compiled_path: None):
    x, aten = turnout.ones(3), turnout.ops.aten
    for call in (lambda: aten.add.Tensor(x, x), lambda: aten.add.Tensor(x, x, alpha=2), lambda: aten.add(x, x)):
        assert taken(_calls.taken, call) == 1
    assert "Operator.__call__" in [code.co_qualname for code in seen(lambda: aten.add.Tensor(x, x))]


def test_a_write_is_taken_and_counted(compiled_path: None):
    x, y = turnout.ones(3), turnout.ones(3)
    view = x[1:]
    x.add_(y), view.mul_(2.0)
    before, version = _calls.taken(), x._version
    x.add_(y)
    view.mul_(2.0)
    assert _calls.taken() == before + 2
    assert (x._version, view._version, x.tolist()) == (version + 2, version + 2, [3.0, 10.0, 10.0])
    x.array.flags.writeable = False
    assert "read-only" in refused(turnout.errors.TurnoutError, x.add_, y)
    assert x.tolist() == [3.0, 10.0, 10.0]


@pytest.mark.parametrize("dtype", [turnout.float32, turnout.float64, turnout.int64])
def test_a_line_of_a_tensor_is_filled_where_it_lies(compiled_path: None, dtype: turnout.dtype):
    value = 7 if dtype is turnout.int64 else 2.5
    whole = turnout.zeros(3, 4, dtype=dtype)
    whole.fill_(value), whole.fill_(0)  # resolved: from here on, calls can be taken
    for line in whole.diagonal(1), whole[:, 2], whole.view(-1)[1::3], whole[1], whole[:1, :1].diagonal(), whole[2:, 1].t():
        for number in value, 0:
            expected = whole.clone()
            places = turnout.arange(12).view(3, 4).as_strided(line.shape, line.stride(), line.storage_offset())
            expected.view(-1).index_fill_(0, places, number)
            before = _calls.taken()
            line.fill_(number)
            assert turnout.equal(whole, expected)
            if number is value:
                assert _calls.taken() == before + 1
    shared = whole[0, :1].expand(3)
    before = _calls.taken()
    assert "several of its elements are one memory location" in refused(turnout.errors.AliasError, shared.fill_, value)
    assert _calls.taken() == before


def test_a_debugger_sees_the_generated_text(compiled_path: None):
    x = turnout.ones(2)
    x + x
    names = [code.co_filename for code in seen(lambda: x + x)]
    assert [n for n in names if n.startswith("<")] == ["<turnout.Tensor.__add__>", "<CPU wrapper of aten::add.Tensor>"]


def test_a_mode_a_new_kernel_and_its_undo_are_seen_by_the_next_call(compiled_path: None):
    x = turnout.ones(2)
    assert (x + x).tolist() == [2.0, 2.0]
    with Library("aten", "IMPL") as library:
        library.impl("add.Tensor", lambda self, other, *, alpha=1: self * 10, "CPU", allow_override=True)
        assert (x + x).tolist() == [10.0, 10.0]
    assert (x + x).tolist() == [2.0, 2.0]
    with turnout.no_grad():
        assert not (x.clone().requires_grad_() + x).requires_grad


# ---- they look like functions


def test_a_compiled_callable_looks_like_the_python_function(compiled_path: None):
    for function, name in (
        (turnout.mul, "mul"),
        (turnout.Tensor.mul, "Tensor.mul"),
        (turnout.ops.aten.mul.Tensor.stub, "aten::mul.Tensor"),
    ):
        assert _calls.is_compiled(function)
        assert (inspect.isfunction(function), function.__qualname__) == (True, name)
        assert inspect.signature(function)
        assert weakref.ref(function)() is function
    assert pickle.loads(pickle.dumps(turnout.mul)) is turnout.mul
    assert turnout.ones(2).mul.__self__.tolist() == [1.0, 1.0]
    assert turnout.mul.__doc__.startswith("mul(input, other: Tensor, *, out=None) -> Tensor")


# ---- switched off, or not there


SHOWN = """
import sys, turnout
x = turnout.ones(2)
x + x
(speed,) = [p for p in turnout.plugins.all_plugins() if p.name == "speed"]
print(type(turnout.Tensor.__add__).__name__, (x + x).tolist(), speed.state, speed.reason)
"""
OFF = "function [2.0, 2.0]"


def test_the_environment_and_a_file_switch_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert run(SHOWN) == "Call [2.0, 2.0] active"
    assert run(SHOWN, TURNOUT_PLUGINS__DISABLE="speed").startswith(OFF)
    (tmp_path / "turnout.toml").write_text("speed = false\n")
    monkeypatch.delenv("TURNOUT_SPEED", raising=False)
    assert printed(SHOWN, cwd=tmp_path).startswith(OFF)
    assert run(f"import sys; sys.modules['turnout_speed._calls'] = None\n{SHOWN}") == (
        f"{OFF} unavailable its extension module cannot be loaded (import of turnout_speed._calls halted; None in sys.modules): "
        "install turnout-speed where a C compiler is at hand"
    )
    for name, version in _calls.BUILT_FOR.items():
        assert run(f"import turnout_speed._calls as c; c.BUILT_FOR[{name!r}] = '0.0.9'\n{SHOWN}") == (
            f"{OFF} unavailable it is built for {name} 0.0.9, and {version} is installed: "
            "install the turnout-speed of that version"
        )


def test_doctor_says_whether_it_is_on():
    doctor = "from turnout_cli.main import main; sys.argv = ['turnout', 'doctor', '--json']; main()"
    shown, _, said = run(SHOWN + doctor, TURNOUT_SPEED="off").partition("\n")
    reason = "the setting speed is false (environment TURNOUT_SPEED)"
    assert shown.startswith(OFF)
    assert [(p["state"], p["reason"]) for p in json.loads(said)["plugins"] if p["name"] == "speed"] == [("unavailable", reason)]
    said = run("import sys; " + doctor)
    assert [(p["state"], p["reason"]) for p in json.loads(said)["plugins"] if p["name"] == "speed"] == [("active", "")]


def test_a_first_call_in_any_place_decides_the_same():
    code = """
import os, turnout
for first in ("turnout.add", "turnout.ops.aten.add.Tensor.stub", "turnout.Tensor.__add__", "turnout.ones(1)"):
    child = os.fork()  # where nothing was called yet
    if not child:
        eval(first)
        x = turnout.ones(2)
        x + x
        print(type(turnout.Tensor.__add__).__name__, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    assert run(code).split() == ["Call"] * 4


# ---- memory


def test_calls_good_and_bad_leave_no_memory(compiled_path: None):
    x, y = turnout.tensor([1.0, 2.0], requires_grad=True), turnout.ones(2)
    other = turnout.ones(3)
    schema = "(Tensor x) -> Tensor"
    twice = turnout.library.custom_op("speedtests::double", lambda a: a * 2, mutates_args=(), schema=schema, arrays=True)

    def work() -> None:
        y + y, y * 2.5, y.exp(), y.sum(), turnout.mul(y, y), x * y, (x + y).sum(), turnout.div(x, y)
        y + 1, y.sum(0), y.sum([0]), y.view([2, 1]), turnout.softmax(y, 0), turnout.mean(y, 0, True), y > x, y.add_(1)
        turnout.cat([y, y]), turnout.where(y > 0, y, y), y.clone(), y.reshape(1, 2), y.shape, y.dtype, y.unbind()
        turnout.rand(2), turnout.randn(2), turnout.linspace(0, 1, 3), turnout.eye(2), turnout.stack([y, y]), twice(y)
        y.masked_fill(y > 0, 1.0), turnout.equal(y, y), y.flatten(), y.sigmoid(), turnout.addcmul(y, y, y)
        for bad in (other, None, "two"):
            try:
                y + bad
            except (turnout.errors.TurnoutError, TypeError):
                continue  # only what it leaves counts

    assert blocks_left_by(work) < 250  # one object lost in each round would be 300
    twice.undo()


def f() -> None: ...


def table_of_version(version: int) -> Any:
    """A capsule as packages of kernels have it, with no function."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(TABLES.setdefault(version, (ctypes.c_int * 4)(version, 0))), b"turnout.compiled_functions", None)


TABLES: dict[int, Any] = {}
ONE = ((f, 0, 0, False),)
PLANNED: dict[str, Any] = {
    "find": f, "cases": ONE, "keys": 0, "as_given": None, "passed": (0,), "defaults": (None,), "outs": 1,
}  # fmt: skip
CUSTOM: dict[str, Any] = {"call": f, "general": f, "finish": f, "keys": 1, "arguments": 1}
RECORDED: dict[str, Any] = {
    "tracked": 1, "next_seq": f, "metas": f, "unlike": f, "kept": f, "node": type("Node", (), {"edges": 1}),
    "differentiable": (0,), "saves": (),
}  # fmt: skip
# A maker, its arguments, what it says.
REFUSED: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (_calls.call, (f, ((), (), (), ()), None, None, None), ValueError, "too many targets, or results of no tuple"),
    (_calls.call, (f, (({}, 1, (("Complex", False, 0, 0, None, None),), -1, False),), *[None] * 3), ValueError,
     "unknown kind Complex"),
    (_calls.call, (f, (), None, None, {}), TypeError, "a tuple of overloads"),
    (_calls.call_handles, (type("Mute", (), {"__slots__": ("operator",)}),), TypeError, "Mute has no method __call__"),
    (_calls.call_handles, (object,), AttributeError, "type object 'object' has no attribute 'operator'"),
    (_calls.call_handles, (3,), ValueError, "no such argument"),
    (_calls.call_operators, (object, object), AttributeError, "type object 'object' has no attribute 'call'"),
    (partial(_calls.plan_kernel, **PLANNED, roles=("tensor",), moves="throw"), (f,), ValueError, "unknown word throw"),
    (partial(_calls.plan_kernel, **PLANNED, roles=("tensor",), compiled=(table_of_version(1), "sort")), (f,), ValueError,
     "no compiled function sort"),
    (_calls.draw_kernel, (f, None, "uniform"), ValueError,
     "PyCapsule_GetPointer called with invalid PyCapsule object"),
    (_calls.plan_kernel, (f,), TypeError, "a planned kernel needs all that finds a plan and what it is called with"),
    (_calls.array_kernel, (f,), TypeError, "a kernel has arguments, cases and keys"),
    *(
        (partial(_calls.array_kernel, arguments=(), cases=cases, keys=1), (f,), ValueError,
         "the last case has to serve all calls")
        for cases in ((), ((f, 4, 4, False),), ((f, 0, 0, True),))
    ),
    (partial(_calls.array_kernel, arguments=(), cases=ONE, keys=1), (f,), ValueError, "a kernel needs a tensor"),
    *(
        (partial(_calls.array_kernel, arguments=(("tensor", None, -1),), cases=ONE, keys=1,
                 program=(steps, 9, -1, -1, -1, False)), (f,), ValueError, "a wrong step")
        for steps in (((numpy.add,),), ((len, 0),), ((numpy.add, 0, 17),), ((numpy.logaddexp, 0),), ((numpy.modf, 0),))
    ),
    *(
        (make, arguments, ValueError, "no such argument")
        for make, arguments in (
            (_calls.into_kernel, (f, f, f, 1, 1, -1)),
            (_calls.into_kernel, (f, {}, f, 1, 2, -1)),
            (_calls.guard_kernel, (f, f, 1)),
            (partial(_calls.custom_kernel, **CUSTOM, tensors=()), (f,)),
            (partial(_calls.custom_kernel, **CUSTOM, tensors=(1,)), (f,)),
            (_calls.fact, (turnout.Tensor.ndim, "ndim")),
            (partial(_calls.plan_kernel, **PLANNED, roles=("value",)), (f,)),
            (_calls.composite_kernel, (f, 1, ((False, (-1,), f, (1,), (), -1),))),
        )
    ),
    (_calls.custom_kernel, (f,), TypeError, "a kernel of the user needs all that its text calls"),
    *(
        (partial(_calls.getter, **dict.fromkeys(names, f)), (f,), TypeError, "a getter has four operators, and a setter eight")
        for names in (("select", "slice", "unsqueeze"), ("select", "slice", "unsqueeze", "index", "put"), ())
    ),
    (partial(_calls.record_kernel, **RECORDED), (f, {}, 1, 1), TypeError, "Node.edges is not a slot"),
    (partial(_calls.record_kernel, node=RECORDED["node"]), (f, {}, 1, 1), ValueError, "a wrong number of arguments"),
    (partial(_calls.record_kernel, fits="none"), (f, {}, 1, 1), ValueError, "unknown word none"),
    (_calls.composite_kernel, (f, 0, ()), ValueError, "a wrong number of arguments"),
]  # fmt: skip


def test_the_makers_refuse_what_they_cannot_read():
    for make, arguments, error, text in REFUSED:
        assert refused(error, make, *arguments) == text


def test_a_table_of_another_version_is_not_read():
    assert _calls.draw_kernel(f, table_of_version(2), "uniform") is f
    assert _calls.is_compiled(_calls.plan_kernel(f, **PLANNED, roles=("tensor",), compiled=(table_of_version(2), "sort")))


# The operator of a row that names a compiled function -> a call that the function serves.
SERVED = {
    "gather.out": "a.gather(1, t.reshape(2, 1))", "index_select.out": "a.index_select(1, t)", "flip.out": "a.flip(1)",
    "tril.out": "a.tril()", "triu.out": "a.triu(1)", "cumsum.out": "a.cumsum(1)", "argmax.out": "a.argmax(1)",
    "argmin.out": "a.argmin()", "max.dim_max": "a.max(1)", "min.dim_min": "a.min(0)", "topk.values": "a.topk(2)",
    "sort.values_stable": "a.sort(1)", "any.all_out": "b.any()", "any.out": "b.any(1)", "all.all_out": "b.all()",
    "all.out": "b.all(1)", "nll_loss_forward.output": "F.nll_loss(a, t)", "rand": "turnout.rand(3)", "randn": "turnout.randn(3)",
    "nll_loss_backward.grad_input": "turnout.ops.aten.nll_loss_backward(w, a, t, None, 1, -100, w)",
}  # fmt: skip


def test_each_compiled_function_serves_a_call_in_place_of_the_kernel_of_its_row(
    compiled_path: None, monkeypatch: pytest.MonkeyPatch
):
    tables = pytest.importorskip("turnout_kernels.table", reason="turnout-kernels was installed without a C compiler")
    a, t, w = turnout.tensor([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]]), turnout.tensor([2, 0]), turnout.tensor(1.0)
    known = {"turnout": turnout, "F": F, "a": a, "t": t, "w": w, "b": turnout.tensor([[True, False], [True, True]])}

    def shown() -> dict[str, str]:
        turnout.manual_seed(3)
        return {name: str(eval(call, known)) for name, call in SERVED.items()}

    def never(*args: object) -> None:
        raise AssertionError("the kernel is called")

    expected, table = shown(), tables.kernels()
    rows = {
        name: row.but(fn=never, sizes=Sizes())
        for name, row in table.items()
        if isinstance(getattr(row, "program", None), Compiled)
    }
    assert rows.keys() == SERVED.keys()
    monkeypatch.setattr(tables, "kernels", lambda: table | rows)
    try:
        turnout.plugins.deactivate("kernels")
        turnout.plugins.activate("kernels")
        assert shown() == expected
    finally:
        turnout.plugins.deactivate("kernels")
        monkeypatch.undo()
        turnout.plugins.activate("kernels")


READING = """
import inspect, linecache, sys
from contextlib import suppress
import turnout, turnout_speed.replacements
from turnout_conformance import cases
from turnout_conformance.comparing import find

read, calls = [], 0

def refuse(what, depth=2):
    if sys._getframe(depth).f_globals["__name__"].startswith("turnout_speed"):
        read.append(what)
        raise RuntimeError(what)

class Cache(dict):
    def __getitem__(self, key): return refuse("linecache") or super().__getitem__(key)
    def get(self, key, default=None): return refuse("linecache") or super().get(key, default)

linecache.cache = Cache(linecache.cache)
for module, name in ((linecache, "getline"), (linecache, "getlines"), (inspect, "getsource"), (inspect, "getsourcelines")):
    setattr(module, name, lambda *args, name=name, plain=getattr(module, name): refuse(name) or plain(*args))
sys.addaudithook(lambda event, args: event == "object.__getattr__" and args[1] in ("__code__", "__globals__") and refuse(args[1]))
for case in cases.CASES:
    op, dtype = find(case.op), next(iter(case.dtypes))
    make = lambda data, of: turnout.tensor(data, dtype=getattr(turnout, of))
    for args, kwargs in list(cases.calls(case, dtype, make))[:1]:
        with suppress(turnout.errors.TurnoutError):
            op(*args, **kwargs)
            calls += 1
print(sorted(set(read)), calls > len(cases.CASES) // 2, end=" ")
with suppress(RuntimeError):
    eval("(lambda: 0).__code__", {"__name__": "turnout_speed.planted"})
print(read)
"""


def test_nothing_of_a_text_is_read_while_every_operator_case_runs():
    """Who writes a text says what it does; what is made of it is only called."""
    folder = Path(_calls.__file__).parent
    for file in [*folder.glob("*.c"), *folder.glob("native/*.h")]:
        words = ("linecache", "getsource", "__code__", "__globals__", "PyFunction_Get")
        assert not [word for word in words if word in file.read_text(encoding="utf-8")], file
    assert not [file for file in folder.glob("*.py") if re.search(r"^(import|from) re\b", file.read_text("utf-8"), re.MULTILINE)]
    assert run(READING) == "[] True ['__code__']"


def test_no_function_of_the_call_path_in_c_has_more_than_60_lines():
    head = re.compile(r"(?:static |inline )*[A-Za-z_][\w *]*?[ *](\w+)\(")
    folder, found = Path(_calls.__file__).parent, {}
    for file in [*folder.glob("*.c"), *folder.glob("native/*.h")]:
        begin: tuple[str, int] | None = None
        for at, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
            if (name := head.match(line)) and not line.startswith("typedef"):
                begin = name[1], at
            elif line.startswith("}") and begin:
                found[file.name, begin[0]], begin = at - begin[1] + 1, None
    assert found["plans.h", "plan_run"] > 10
    assert not {name: lines for name, lines in found.items() if lines > 60}


def test_makers_in_c_are_given_more_than_six_values_by_their_names():
    folder, found = Path(_calls.__file__).parent, {}
    for file in [*folder.glob("*.c"), *folder.glob("native/*.h")]:
        for values in re.findall(r'PyArg_ParseTuple\(\w[^"]*"([^"]*)"', file.read_text(encoding="utf-8")):
            found[file.name, values] = len(re.findall(r"[A-Za-z]", values))
    assert len(found) > 20
    assert not {name: count for name, count in found.items() if count > 6}


def test_everything_that_is_replaced_is_marked():
    from turnout_speed.replacements import REPLACEMENTS

    for name in REPLACEMENTS:
        module, _, function = name.partition(":")
        marked = getattr(importlib.import_module(module), function)
        assert marked.__wrapped__.__module__ == module, name


def test_a_kernel_in_python_runs_once_in_a_formula_of_which_a_later_step_is_left_to_the_text():
    noted: list[str] = []
    with Registrations("noting") as library:
        library.functionality("Noting", after="BackendSelect")
        bit = turnout.keys.KEYS.bit("Noting")
        library.fallback("Noting", lambda op, ks, args: noted.append(op.name) or op.redispatch(ks & ~bit, *args))
        x = turnout.ones(3, requires_grad=True)
        for _ in range(2):
            noted.clear()
            with turnout.state.include("Noting"):
                (x.unsqueeze(1) * x.unsqueeze(0)).sum().backward()
            assert (noted.count("unsqueeze"), noted.count("squeeze")) == (2, 2)
