"""Anomaly mode: an error of a backward pass names the line of the program that recorded it, whatever recorded it."""

from __future__ import annotations

import threading

import pytest

import turnout
from outcomes import refused
from turnout import autograd, library


class Broken(autograd.Function):
    """Its backward gives NaN, or raises."""

    @staticmethod
    def forward(ctx, x, raises=False):
        ctx.raises = raises
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if ctx.raises:
            raise KeyError("stop")
        return grad * float("nan"), None


def nan_text(result):
    return refused(autograd.GradientError, lambda: result.sum().backward())


# Each gives a result and the operator that is blamed, None where any may be. The root of 0 has the gradient 0 / 0.
def generated(x):
    return (x - 1).sqrt() * 0, "aten::sqrt"  # the line


def function(x):
    return Broken.apply(x), "Broken"  # the line


def view(x):
    y = (x * 0).sqrt()[:2]  # the line
    return y * 0, "aten::sqrt"


def write(x):
    y = x * 0
    y.sqrt_()  # the line
    return y * 0, "aten::sqrt"


def write_into_a_view(x):
    y = x * 0
    y[:2].sqrt_()  # the line
    return y * 0, "aten::sqrt"


def composite(x):
    return turnout.nn.functional.cosine_similarity(x * 0, x, 0, eps=0), None  # the line


def several_results(x):
    return turnout.linalg.svd(turnout.diag(x * 0))[0] * 0, None  # the line


def write_without_a_result(x):
    y = x * 0
    turnout.ops.strange.root(y)  # the line
    return y * 0, "Root"


def deep_in_calls(x):
    def nest(depth):
        return nest(depth - 1) if depth else (x * 0).sqrt()  # the line

    return nest(30) * 0, "aten::sqrt"


PROGRAMS = [
    generated, function, view, write, write_into_a_view, composite, several_results, write_without_a_result, deep_in_calls,
]  # fmt: skip


@pytest.fixture(autouse=True)
def operators():
    class Root(autograd.Function):
        @staticmethod
        def forward(ctx, x, ks):
            ctx.mark_dirty(x)
            turnout.ops.strange.root.default.redispatch(ks, x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan"), None

    with library.Library("strange", "DEF") as group:
        group.define("root(Tensor(a!) x) -> ()")
        group.impl("root", lambda x: None if x.sqrt_() is x else 1, "CPU")

        def kernel(keyset, x):
            Root.apply(x, turnout.DispatchKeySet(keyset).remove("Autograd"))

        group.impl("root", kernel, "Autograd", with_keyset=True)
        yield


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_line_that_recorded_a_nan_is_named(x, program):
    with autograd.detect_anomaly():
        result, name = program(x)
        text = nan_text(result)
    head, recorded, *_ = text.split("\n")
    assert ": its backward gave NaN for input " in head
    assert name is None or head.startswith(f"{name}: ")
    assert recorded == "  recorded at"
    assert "# the line" in text
    assert "turnout_autograd" not in text


def test_the_whole_text(x):
    with autograd.detect_anomaly():
        text = nan_text(Broken.apply(x))
    lines = text.split("\n")
    assert lines[:2] == ["Broken: its backward gave NaN for input 0", "  recorded at"]
    assert lines[-2].endswith("in test_the_whole_text")
    assert lines[-1] == "    text = nan_text(Broken.apply(x))"


def test_a_node_from_before_the_mode_says_so(x):
    y = Broken.apply(x)
    with autograd.detect_anomaly():
        assert nan_text(y * 1) == ("Broken: its backward gave NaN for input 0\n  recorded at\n    a time before detect_anomaly")


def test_an_exception_of_a_backward_gets_the_line_as_a_note(x):
    with autograd.detect_anomaly():
        y = Broken.apply(x, True)  # the line
        with pytest.raises(KeyError) as caught:
            y.sum().backward()
        (note,) = caught.value.__notes__
        assert note.startswith("Broken: its backward failed\n  recorded at\n")
        assert note.endswith("    y = Broken.apply(x, True)  # the line")
        with pytest.raises(KeyError) as caught:
            autograd.grad(Broken.apply(x, True).sum(), x)
        assert len(caught.value.__notes__) == 1
    with pytest.raises(KeyError) as caught:
        Broken.apply(x, True).sum().backward()
    assert not hasattr(caught.value, "__notes__")


def test_a_saved_tensor_that_was_changed_is_an_error_with_the_line_too(x):
    with autograd.detect_anomaly():
        y = x.exp()  # the line
        y.add_(1)
        with pytest.raises(turnout.errors.AliasError) as caught:
            y.sum().backward()
    assert "# the line" in caught.value.__notes__[0]


def test_nans_are_no_error_without_check_nan_and_outside(x):
    nan_text_of = Broken.apply
    with autograd.detect_anomaly(check_nan=False):
        assert autograd.is_anomaly_enabled()
        assert not autograd.is_anomaly_check_nan_enabled()
        nan_text_of(x).sum().backward()
    assert str(x.grad.tolist()) == "[nan, nan, nan]"
    assert not autograd.is_anomaly_enabled()


def test_modes_nest_and_an_exception_leaves_them(x):
    with autograd.detect_anomaly():
        with autograd.detect_anomaly(check_nan=False):
            Broken.apply(x).sum().backward()
        assert "gave NaN" in nan_text(Broken.apply(x))
    with pytest.raises(KeyError), autograd.detect_anomaly():
        raise KeyError
    assert not autograd.is_anomaly_enabled()


def test_it_can_be_set_for_good_and_for_a_block():
    autograd.set_detect_anomaly(True)
    autograd.set_detect_anomaly(True, check_nan=False)
    assert (autograd.is_anomaly_enabled(), autograd.is_anomaly_check_nan_enabled()) == (True, False)
    with autograd.set_detect_anomaly(False):
        assert not autograd.is_anomaly_enabled()
    assert autograd.is_anomaly_enabled()
    autograd.set_detect_anomaly(False)
    assert not autograd.is_anomaly_enabled()


def test_blocks_of_two_threads_may_overlap(x):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with autograd.detect_anomaly():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with autograd.detect_anomaly():
        thread.start()
        assert inside.wait(10)
    assert autograd.is_anomaly_enabled()
    leave.set()
    thread.join()
    assert not autograd.is_anomaly_enabled()
    assert not hasattr((x * 2).grad_fn.extra, "line")
