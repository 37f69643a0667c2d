"""How tensors print. The texts are PyTorch's, with this package's name in front of dtypes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import turnout
from outcomes import in_threads, refused
from turnout.errors import TurnoutError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.5, -2.0], "tensor([ 1.5000, -2.0000])"),
        (3.5, "tensor(3.5000)"),
        (7, "tensor(7)"),
        ([1, 20, -3], "tensor([ 1, 20, -3])"),
        ([True, False], "tensor([ True, False])"),
        ([1.0, NAN, INF], "tensor([1., nan, inf])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e9, 1.0], "tensor([1.0000e+09, 1.0000e+00])"),
        ([123456.0, 1.5], "tensor([1.2346e+05, 1.5000e+00])"),
        ([1 + 2j, 3.5 - 1j], "tensor([1.0000+2.j, 3.5000-1.j])"),
        ([], "tensor([])"),
        ([[1.0, 2.0], [3.0, 4.5]], "tensor([[1.0000, 2.0000],\n        [3.0000, 4.5000]])"),
    ],
)
def test_elements_print_as_in_pytorch(data: object, text: str) -> None:
    assert repr(turnout.tensor(data)) == text


def test_unusual_dtypes_and_shapes_are_named() -> None:
    assert repr(turnout.tensor([1.0], dtype=turnout.float64)) == "tensor([1.], dtype=turnout.float64)"
    assert repr(turnout.tensor([1.5], dtype=turnout.bfloat16)) == "tensor([1.5000], dtype=turnout.bfloat16)"
    assert repr(turnout.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(turnout.tensor([], dtype=turnout.int64)) == "tensor([], dtype=turnout.int64)"


def test_long_tensors_are_shortened() -> None:
    assert repr(turnout.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    rows = repr(turnout.ones(1001, 2)).split("\n")
    assert rows == ["tensor([[1., 1.],", "        [1., 1.],", "        [1., 1.],", "        ...,"] + rows[4:]
    assert len(rows) == 7


def test_a_huge_expanded_tensor_prints_without_being_made() -> None:
    assert repr(turnout.zeros(1).expand(2**40)) == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"
    assert repr(turnout.arange(3).expand(2**30, 3)[2**29 :]).split("\n")[-1] == "        [0, 1, 2]])"


def test_a_shortened_text_shows_the_ends_of_views() -> None:
    x = turnout.arange(4000).reshape(20, 200)[::2, 5:].t()
    rows = [[int(n) for n in re.findall(r"\d+", line)] for line in repr(x).split("\n") if line.strip() != "...,"]
    edges = [*range(3), *range(-3, 0)]
    assert rows == [[int(x[i, j].item()) for j in edges] for i in edges]


def test_a_format_is_for_numbers() -> None:
    assert f"{turnout.tensor(2.5):.3f} {turnout.tensor(2.5)} {turnout.tensor([2.5])}" == "2.500 2.5 tensor([2.5000])"
    with pytest.raises(TypeError) as caught:
        f"{turnout.ones(2):.3f}"
    assert str(caught.value) == "the format '.3f' is for numbers, got a tensor of shape [2]; use .item()"
    assert isinstance(caught.value, TurnoutError)


def test_long_lines_are_broken() -> None:
    lines = repr(turnout.arange(40)).split("\n")
    assert len(lines) == 3
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith("        ")


def test_planes_are_separated() -> None:
    assert repr(turnout.zeros(2, 1, 1)) == "tensor([[[0.]],\n\n        [[0.]]])"


def test_meta_tensor_prints_its_shape() -> None:
    assert repr(turnout.ones(3, device="meta")) == "tensor(..., device='meta', size=(3,))"
    made = turnout.ones(2, device="meta", dtype=turnout.int64)
    assert repr(made) == "tensor(..., device='meta', size=(2,), dtype=turnout.int64)"


def test_printing_calls_no_operator() -> None:
    class Count(turnout.DispatchMode):
        calls = 0

        def __turnout_dispatch__(self, op: object, ks: object, args: object) -> object:
            raise AssertionError(op)

    x = turnout.tensor([1.0, 2.0])
    with Count():
        assert repr(x) == "tensor([1., 2.])"


def test_a_tensor_that_requires_a_gradient_says_so() -> None:
    x = turnout.tensor([1.0]).requires_grad_()
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2).startswith("tensor([2.], grad_fn=<Mul")


# ---- set_printoptions


@pytest.fixture(autouse=True)
def usual_options() -> Iterator[None]:
    yield
    turnout.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("options", "data", "text"),
    [
        ({"precision": 2}, [3.14159, 2.0], "tensor([3.14, 2.00])"),
        ({"precision": 0}, [1.5], "tensor([2])"),
        ({"sci_mode": True}, [3.14159, 2.0], "tensor([3.1416e+00, 2.0000e+00])"),
        ({"sci_mode": False}, [1e-9, 1e9], "tensor([         0.0000, 1000000000.0000])"),
        ({"threshold": 5, "edgeitems": 1}, list(range(30)), "tensor([ 0,  ..., 29])"),
        ({"threshold": 5, "edgeitems": 0}, list(range(30)), "tensor([...], size=(30,))"),
        ({"linewidth": 30}, list(range(10)), "tensor([0, 1, 2, 3, 4, 5, 6,\n        7, 8, 9])"),
        ({"profile": "short"}, [1.23456, 2.0], "tensor([1.23, 2.00])"),
        ({"profile": "short", "precision": 3}, [1.23456, 2.0], "tensor([1.235, 2.000])"),
    ],
)
def test_options_change_how_tensors_print(options: dict[str, Any], data: object, text: str) -> None:
    turnout.set_printoptions(**options)
    assert repr(turnout.tensor(data)) == text


def test_the_full_profile_shows_all_elements_and_the_default_one_resets_everything() -> None:
    before = repr(turnout.arange(2000))
    turnout.set_printoptions(profile="full")
    assert "..." not in repr(turnout.arange(2000))
    turnout.set_printoptions(precision=1, edgeitems=1, linewidth=20, sci_mode=True, threshold=2)
    turnout.set_printoptions(profile="default")
    assert repr(turnout.arange(2000)) == before


def test_what_is_not_given_stays_except_the_notation() -> None:
    turnout.set_printoptions(precision=2, sci_mode=True)
    turnout.set_printoptions(linewidth=70)
    assert repr(turnout.tensor([1.5])) == "tensor([1.50])"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"precision": -1}, "precision must be an int of at least 0, got -1"),
        ({"precision": 2.5}, "precision must be an int of at least 0, got 2.5"),
        ({"edgeitems": True}, "edgeitems must be an int of at least 0, got True"),
        ({"threshold": "many"}, "threshold must be a number of at least 0, got 'many'"),
        ({"threshold": NAN}, "threshold must be a number of at least 0, got nan"),
        ({"linewidth": 1, "sci_mode": 3}, "sci_mode must be True, False or None, got 3"),
        ({"profile": "long", "precision": 1}, "'long' is not a profile; use one of 'default', 'short', 'full'"),
    ],
)
def test_options_that_make_no_sense_are_refused_and_change_nothing(options: dict[str, Any], text: str) -> None:
    assert refused(TurnoutError, lambda: turnout.set_printoptions(**options)) == f"set_printoptions: {text}"
    assert repr(turnout.tensor([1.5])) == "tensor([1.5000])"


def test_threads_that_set_options_never_mix_them_in_one_text() -> None:
    x = turnout.tensor([1.5] * 40)
    wanted = {}
    for profile in ("default", "short"):
        turnout.set_printoptions(profile=profile, linewidth=40 if profile == "short" else 80)
        wanted[repr(x)] = profile
    found: set[str] = set()
    stop = threading.Event()

    def switch() -> None:
        while not stop.is_set():
            turnout.set_printoptions(profile="short", linewidth=40)
            turnout.set_printoptions(profile="default")

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        for _ in range(300):
            found.add(repr(x))
    finally:
        stop.set()
        thread.join()
    assert found <= set(wanted)


def test_options_set_by_several_threads_are_all_there_afterwards() -> None:
    names = ("precision", "threshold", "edgeitems", "linewidth")
    in_threads(*[lambda name=name: turnout.set_printoptions(**{name: 7}) for name in names])
    assert repr(turnout.tensor([1.5])) == "tensor([1.5000000])"
    assert repr(turnout.arange(40)).count("\n") > 10


def test_a_notebook_shows_the_text_below_shape_dtype_and_device():
    shown = turnout.tensor([[1.0, 2.0]])._repr_html_()
    assert "<small>1 x 2 float32 on cpu</small>" in shown
    assert "tensor([[1., 2.]])</pre>" in shown
    assert "v1 = turnout.ops.aten.add.Scalar(x, 1)" in turnout.trace(lambda x: x + 1)(turnout.ones(1))._repr_html_()
