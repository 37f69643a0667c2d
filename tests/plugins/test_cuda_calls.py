"""Small calls on cuda: how many Python frames and calls one makes, and that what plans start gives the bits of the kernels.

Counted in the emulation: frames of Turnout, and what these call that is not Turnout's: the stand-in for CuPy and functions in C,
but not what is called in there. No busy machine changes them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import cupy_stand_in
import ml_dtypes
import numpy as np
import pytest
from cuda_launches import LAUNCHES
from pretended_cuda import pretended

import turnout
from outcomes import flat, refused
from turnout.dtypes import dtype_named
from turnout.registry import REGISTRY
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import CASES, OperatorCase
from turnout_cuda.prepared import NotPrepared, Script, Sketch, Watched

F = turnout.nn.functional

# A call on tensors of 64 x 64 floats -> at most so many frames, and calls out of them.
# Before plans started kernels: add 23 and 17, relu 19 and 16, softmax 29 and 26, layer_norm 82 and 75, sum 25 and 20, matmul 46
# and 38, add_ 59 and 40. Half of the frames asked for the device of a call.
# fmt: off
LIMITS: dict[str, tuple[int, int]] = {
    "x + y": (6, 9),                    "x * 2.0": (7, 9),                   "x > 0": (7, 9),
    "m.add(x, y)": (6, 9),              "m.relu(x)": (6, 9),                 "m.exp(x)": (6, 9),
    "F.gelu(x)": (6, 9),                "m.softmax(x, -1)": (8, 10),         "F.layer_norm(x, (64,), w, w)": (11, 22),
    "m.matmul(x, y)": (8, 21),          "x.sum()": (6, 9),                   "x.sum(1)": (7, 11),
    "x.var(1)": (10, 12),               "x.add_(y)": (19, 7),                "x.relu_()": (19, 7),
    "F.avg_pool2d(i, 2)": (8, 9),       "F.max_pool2d(i, 2)": (10, 15),      "F.interpolate(i, scale_factor=2)": (26, 24),
}
# fmt: on
WARM = 5  # calls before: the first ones compile, resolve and plan


def counted(call: Callable[[], Any]) -> tuple[int, int]:
    """The frames of a warm call, and what is called out of them."""
    for _ in range(WARM):
        call()
    others, seen = (str(Path(__file__).parent), *[str(Path(m.__file__).parent) for m in (os, np, ml_dtypes)], "<frozen"), [0, 0]

    def is_ours(frame: Any) -> bool:
        return not frame.f_code.co_filename.startswith(others)

    def profile(frame: Any, event: str, argument: Any) -> None:
        ours = is_ours(frame)
        if event == "call" and not ours:
            ours, event = is_ours(frame.f_back), "c_call"  # as a function of CuPy's in C would be called
        if ours and event in ("call", "c_call"):
            seen[event == "c_call"] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen[0] - 1, seen[1]  # without the frame of the call


def small_calls() -> Iterator[tuple[str, tuple[int, int]]]:
    """What each small call does."""
    with pretended():
        x, y = (turnout.randn(64, 64, device="pretended") for _ in range(2))
        w, images = turnout.ones(64, device="pretended"), turnout.ones(1, 4, 32, 32, device="pretended")
        turnout.zeros(1 << 20, device="pretended")  # more than the calls have at once: memory is counted as in a program
        for statement in LIMITS:
            names = {"x": x, "y": y, "w": w, "i": images, "m": turnout, "F": F}
            yield statement, counted(eval(f"lambda: {statement}", names))


def test_a_small_call_makes_no_more_frames_and_calls_than_it_did() -> None:
    # In a process of its own: plugins and hooks that other tests have used may add steps.
    code = "import test_cuda_calls as t\nfor name, seen in t.small_calls(): print(name, *seen, sep='\\t')"
    tests = Path(__file__).parent
    env = os.environ | {
        "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}",
        "TURNOUT_SPEED": "off",
        "TURNOUT_PLUGINS__DISABLE": "kernels",
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=env, check=False)
    assert done.returncode == 0, done.stderr
    found = {name: (int(frames), int(calls)) for name, frames, calls in (line.split("\t") for line in done.stdout.splitlines())}
    assert found.keys() == LIMITS.keys()
    problems = [
        f"{name}: {found[name][0]} frames and {found[name][1]} calls, at most {limit[0]} and {limit[1]}"
        for name, limit in LIMITS.items()
        if found[name][0] > limit[0] or found[name][1] > limit[1]
    ]
    assert not problems, "\n".join(problems)


# ---- what plans start


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


@pytest.mark.parametrize("case", [case for case in CASES if case.op in LAUNCHES], ids=str)
def test_a_plan_gives_the_bits_of_the_kernel(case: OperatorCase, backend: Any) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    for dtype in case.dtypes[:2]:
        for args, kwargs in operator_cases.calls(
            case, dtype, lambda data, name: turnout.tensor(data, dtype=dtype_named(name), device="pretended")
        ):
            first, *others = ([bytes_of(each) for each in flat(op(*args, **kwargs))] for _ in range(3))
            assert others == [first, first]


def bytes_of(value: Any) -> Any:
    return (value.stride(), value.cpu().numpy().tobytes()) if isinstance(value, turnout.Tensor) else value


LAYOUTS: list[Callable[[Any], Any]] = [lambda x: x, lambda x: x.t(), lambda x: turnout.cat([x, x], 1)[:, ::2], lambda x: x[1:]]
IN_PLACE = (
    "exp", "rsqrt", "relu", "sigmoid", "neg", "erf", "add|w", "mul|w", "div|w", "sub|2.5", "pow|3.0", "clamp|0.6|1.2", "gt|w",
    "cumsum|1", "tril",
)  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", IN_PLACE)
def test_a_write_in_place_gives_the_bits_of_the_call(call: str, layout: Any, backend: Any) -> None:
    name, *given = call.split("|")
    for dtype in (turnout.float16, turnout.float32, turnout.float64):
        x, w = (layout((turnout.rand(4, 4) + 0.5).to("pretended", dtype)) for _ in range(2))
        args = [w if each == "w" else eval(each) for each in given]
        made = [(getattr(x.clone(), name)(*args).to(dtype), getattr(x.clone(), f"{name}_")(*args)) for _ in range(3)]
        assert len({each.cpu().contiguous().numpy().tobytes() for pair in made for each in pair}) == 1


@pytest.mark.parametrize("call", ["x + 0.0", "x.mul(0.0)", "x.sub(0.0, alpha=1)"])
def test_a_zero_keeps_its_sign(call: str, backend: Any) -> None:
    x = turnout.tensor([-0.0, -1.0], device="pretended")
    for text in (call, call.replace("0.0", "-0.0")) * 3:
        there = eval(text, {"x": x, "turnout": turnout})
        here = eval(text, {"x": x.cpu(), "turnout": turnout})
        assert there.cpu().numpy().tobytes() == here.numpy().tobytes()


def script_of(backend: Any) -> tuple[Script, Any]:
    xp = backend.xp.script()
    return xp.programs, xp


ROWS: list[tuple[bool, Callable[[Any, Any, Any], Any]]] = [  # (whether it is prepared, a row's function)
    (True, lambda xp, x, out: xp.exp(x, out)),
    (True, lambda xp, x, out: xp.programs.over_elements("of_exp", "float32", x.size, (x, out, x.size), packed=True)),
    (True, lambda xp, x, out: xp.copyto(out, xp.exp(x, xp.empty(x.shape, x.dtype)))),
    (True, lambda xp, x, out: xp.add.reduce(x, 1, None, out)),
    (False, lambda xp, x, out: out.fill(0.0)),
    (False, lambda xp, x, out: xp.exp(x.astype("float32"), out)),
    (False, lambda xp, x, out: xp.exp(x, out) if x.max() > 0 else None),
    (False, lambda xp, x, out: xp.exp(x, out) if x == 0 else None),
    (False, lambda xp, x, out: xp.exp(x, out) if x else None),
    (False, lambda xp, x, out: xp.copyto(out, xp.zeros(3))),
    (False, lambda xp, x, out: [xp.exp(x, out) for _ in range(9)][-1]),
    (True, lambda xp, x, out: xp.programs.start("place_rows", "uint64", (1,), (32,), (x.reshape(2, -1), out, 1, 6, 6, 0))),
    (False, lambda xp, x, out: xp.copyto(out, xp.exp(x, xp.empty((3, 4), x.dtype)).reshape(4, 3).reshape(3, 4))),
    (False, lambda xp, x, out: xp.exp(x.view("int32"), out)),
    (False, lambda xp, x, out: xp.multiply(x, xp.cuda.runtime.getDevice(), out)),
    (False, lambda xp, x, out: caught(lambda: xp.zeros(3)) or xp.exp(x, out)),
    (False, lambda xp, x, out: xp.exp(x, xp.empty(x.shape, x.dtype))),
    (False, lambda xp, x, out: xp.linalg.solve(x, x)),
    (False, lambda xp, x, out: xp.ndarray.max(x)),
]  # fmt: skip


def caught(call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001
        return


@pytest.mark.parametrize(("is_prepared", "function"), ROWS)
def test_only_what_was_written_down_is_prepared(is_prepared: bool, function: Any, backend: Any) -> None:
    script, xp = script_of(backend)
    x = backend.cupy.ndarray((3, 4), "float32")
    shape = (3,) if "reduce" in function.__code__.co_names else (3, 4)
    out = type("Out", (), {"shape": shape, "dtype": turnout.float32})()
    x.fill(2.0)
    made: Any = None
    with suppress(NotPrepared, AttributeError, TypeError):
        made = script.of(lambda *given: function(xp, *given), [out], backend.native, (x,))
    assert (made is not None) == is_prepared
    if is_prepared:
        written, wanted = (backend.cupy.ndarray(shape, "float32") for _ in range(2))
        made(x, written)
        function(backend.xp, x, wanted)
        assert written.tolist() == wanted.tolist()


def test_a_sketch_says_how_an_array_lies_and_nothing_else(backend: Any) -> None:
    _, xp = script_of(backend)
    assert isinstance(xp.cupy, Watched)
    x = Sketch("a0", (2, 3), "float32")
    assert (x.size, x.ndim, x.itemsize, x.strides, len(x), x.flags.c_contiguous) == (6, 2, 4, (12, 4), 2, True)
    assert isinstance(x, xp.ndarray)
    for wrong in ("T", "data", "device", "fill", "astype", "__array_interface__"):
        assert not hasattr(x, wrong)
    assert cupy_stand_in.launched is not None


MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "cat": lambda x, i: turnout.cat([x, x], 1),
    "index_select": lambda x, i: turnout.index_select(x, 0, i),
    "index": lambda x, i: x[i],
    "gather": lambda x, i: x.gather(0, i.view(-1, 1).expand(4, 8).contiguous()),
    "tril": lambda x, i: x.tril(),
    "triu": lambda x, i: x.triu(1),
    "conv1d": lambda x, i: F.conv1d(x.view(1, 4, 8), turnout.ones(2, 4, 3, dtype=x.dtype, device=x.device)),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", MOVES)
def test_a_plan_that_was_made_for_aligned_arrays_serves_those_that_begin_anywhere(name: str, dtype: str, backend: Any) -> None:
    whole = (turnout.arange(64) % 13).to(getattr(turnout, dtype))
    for offset in (0, 0, 1, 16, 3, 8, 2, 0):
        found, wanted = (
            MOVES[name](whole.to(place)[offset : offset + 32].view(4, 8), turnout.tensor([2, 0, 3, 1], device=place))
            for place in ("pretended", "cpu")
        )
        assert found.cpu().tolist() == wanted.tolist()


@pytest.mark.parametrize("name", ["index_select", "index", "gather"])
def test_a_plan_tells_the_line_of_each_call_with_a_wrong_index(name: str, backend: Any) -> None:
    x, right, wrong = turnout.ones(4, 8, device="pretended"), *(turnout.tensor([n] * 4, device="pretended") for n in (1, 4))
    for index in (right, right, wrong, right):
        made = MOVES[name](x, index)
        if index is wrong:
            message = refused(turnout.errors.DimError, made.tolist)
            assert f"{name}: index 4 is out of" in message
            assert "test_cuda_calls.py:" in message
        else:
            assert made.tolist()
