"""Raw CUDA kernels for lists of tensors: steps of optimisers, and element-wise functions, in one launch for all tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import cupy_stand_in
import numpy as np
import pytest
from cuda_launches import DTYPES, OF_LISTS, Devices, agree, makers, numbers
from pretended_cuda import pretended

import turnout
from turnout import ops
from turnout.library import Library

aten = ops.aten
SHAPES = [(3,), (70, 65), (), (1, 5, 2)]  # the second one takes two blocks


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


def launched_by(run: Callable[[Devices], Any], dtype: str = "float32", within: str = "") -> list[str]:
    """The kernels for lists that a function of tensors launches, which gives what it gives on cpu."""
    cupy_stand_in.launched.clear()
    agree(run, dtype, within=within)
    return [name for name, _ in cupy_stand_in.launched if name in OF_LISTS]


def parameters(t: Devices, seed: int, positive: bool = False) -> list[Any]:
    given = [np.asarray(numbers(shape, seed + i)) for i, shape in enumerate(SHAPES)]
    return [t(np.abs(x) if positive else x) for x in given]


def lists(t: Devices, count: int) -> list[list[Any]]:
    return [parameters(t, 10 * i, positive=i > 0) for i in range(count)]


# ---- steps of optimisers


def tensor_of(t: Devices, value: float) -> Any:
    return t(np.zeros(())).float().fill_(value)


def adam_lists(t: Devices) -> list[Any]:
    steps = [tensor_of(t, float(i + 1)) for i in range(len(SHAPES))]
    return [*[parameters(t, seed, seed > 3) for seed in (1, 2, 3, 4, 5)], steps]


NUMBERS = {"weight_decay": 0.05, "maximize": False}
ADAM = {**NUMBERS, "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6, "amsgrad": False}
SGD = {**NUMBERS, "lr": 0.1, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "is_first_step": False}
ADAGRAD = {**NUMBERS, "lr": 0.1, "lr_decay": 0.01, "eps": 1e-6}

STEPS: list[tuple[str, str, dict[str, Any]]] = [
    *[
        (op, "adam_step", {**ADAM, **change})
        for op in ("_fused_adam_", "_fused_adamw_")
        for change in ({}, {"amsgrad": True}, {"maximize": True, "weight_decay": 0.0}, {"beta1": 0.0})
    ],
    *[
        ("_fused_sgd_", "sgd_step", {**SGD, **change})
        for change in ({}, {"nesterov": True, "maximize": True}, {"is_first_step": True}, {"momentum": 0.0, "weight_decay": 0.0})
    ],
    *[("_fused_adagrad_", "adagrad_step", {**ADAGRAD, "maximize": maximize}) for maximize in (False, True)],
]


def step(op: str, t: Devices, options: dict[str, Any], **more: Any) -> Any:
    """All tensors after a step."""
    given = adam_lists(t)
    if op == "_fused_sgd_":
        given = given[:3] if options["momentum"] else [*given[:2], []]
    elif op == "_fused_adagrad_":
        given = [*given[:2], given[3], given[5]]
    elif not options["amsgrad"]:
        given[4] = []
    getattr(aten, op)(*given, **options, **more)
    return given


def precision(dtype: str) -> str:
    """The composed step computes with counts of steps in float32, the kernel in float64."""
    return "float32" if dtype == "float64" else dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", STEPS, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_step_of_all_tensors_is_one_kernel_and_gives_what_cpu_gives(case: Any, dtype: str, backend: Any) -> None:
    op, kernel, options = case
    assert launched_by(lambda t: step(op, t, options), dtype, precision(dtype)) == [kernel]


@pytest.mark.parametrize("found_inf", [None, 0.0, 1.0])
@pytest.mark.parametrize("case", [STEPS[0], STEPS[8], STEPS[12]], ids=lambda case: case[0])
def test_rate_scale_and_found_inf_may_lie_on_the_device(case: Any, found_inf: float | None, backend: Any) -> None:
    op, kernel, options = case

    def run(t: Devices) -> Any:
        more = {"grad_scale": tensor_of(t, 4.0), "found_inf": None if found_inf is None else tensor_of(t, found_inf)}
        return step(op, t, {**options, "lr": tensor_of(t, 0.25)}, **more)

    assert launched_by(run) == [kernel]
    if found_inf:
        here, there = makers("float32")
        assert [x.tolist() for x in run(here)[0]] == [x.tolist() for x in parameters(there, 1)]


def test_lists_of_different_lengths_are_the_error_that_they_are_on_cpu(backend: Any) -> None:
    for t in makers("float32"):
        with pytest.raises(turnout.errors.ArgumentError) as caught:
            aten._fused_sgd_([t(np.ones(2))] * 2, [t(np.ones(2))], [t(np.ones(2))] * 2, **SGD)
        assert "_fused_sgd_: 'grads' has 1 tensors, expected one for each of the 2 parameters" in str(caught.value)


def test_the_addresses_of_a_training_are_sent_once(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here, _ = makers("float32")
    sent: list[Any] = []
    asarray = backend.cupy.asarray
    given = [parameters(here, i) for i in range(3)]
    monkeypatch.setattr(backend.cupy, "asarray", lambda value, *args: sent.append(value) or asarray(value, *args))
    for _ in range(3):
        aten._fused_sgd_(*given, **SGD)
    assert len(sent) == 2, "the table, and the blocks"


# ---- element-wise functions of lists


EACH: list[tuple[str, int, tuple[Any, ...], dict[str, Any]]] = [
    *[(stem, 2, (), {"alpha": alpha}) for stem in ("add", "sub") for alpha in (1, -0.5)],
    *[(stem, 2, (), {}) for stem in ("mul", "div")],
    *[(stem, 3, (number,), {}) for stem in ("addcmul", "addcdiv") for number in (0.5, [1, 2.0, -3, 0.25])],
    *[("lerp", 2, (number,), {}) for number in (0.25, 0.75, [0, 1, 0.5, -2.0])],
    ("lerp", 3, (), {}),
    *[(stem, 1, (number,), {}) for stem in ("add", "sub", "mul", "div") for number in (3, [1.5, 2, -3, 4])],
    *[(stem, 1, (), {}) for stem in ("sqrt", "neg", "abs", "reciprocal")],
]


def of_lists(case: Any, t: Devices, suffix: str = "") -> Any:
    """What a function of lists gives; with "_", what it writes."""
    stem, count, values, options = case
    first, *others = lists(t, count)
    if stem in ("sqrt", "reciprocal"):
        first = [x.abs() + 0.5 for x in first]
    made = getattr(aten, f"_foreach_{stem}{suffix}")(first, *others, *values, **options)
    assert (made is None) == bool(suffix)
    return first if suffix else made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", EACH, ids=lambda case: f"{case[0]} {case[1]} {case[2:]}")
def test_a_function_of_lists_is_one_kernel_and_gives_what_cpu_gives(case: Any, dtype: str, backend: Any) -> None:
    for suffix in ("", "_"):
        assert launched_by(lambda t, suffix=suffix: of_lists(case, t, suffix), dtype) == ["each_element"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_lists_may_begin_at_any_element(dtype: str, backend: Any) -> None:
    def run(t: Devices) -> Any:
        x, y, held = ([t(numbers((4301,), seed + i))[first:] for i, first in enumerate((1, 0, 2))] for seed in (1, 4, 7))
        aten._foreach_lerp_(x, y, 0.25)
        aten._fused_sgd_(x, y, held, **SGD)
        return x, held

    assert launched_by(run, dtype, precision(dtype)) == ["each_element", "sgd_step"]


def test_a_list_of_new_arrays_is_not_taken_for_one_that_is_gone(backend: Any) -> None:
    here, _ = makers("float32")
    for length in range(1, 40):
        x = [here(np.full(length + i, float(length))) for i in range(3)]
        aten._foreach_add_(x, 1.0)
        assert [each.tolist() for each in x] == [[length + 1.0] * (length + i) for i in range(3)]
        del x  # the identities of its arrays are free


def test_a_long_list_takes_no_more_frames_than_a_short_one(backend: Any) -> None:
    here, _ = makers("float32")

    def frames(length: int) -> int:
        lists = [[here(np.ones(3)) for _ in range(length)] for _ in range(3)]
        seen = []
        for _ in range(3):
            aten._fused_sgd_(*lists, **SGD)
        sys.setprofile(lambda frame, event, argument: seen.append(frame) if event == "call" else None)
        try:
            aten._fused_sgd_(*lists, **SGD)
        finally:
            sys.setprofile(None)
        return len(seen)

    assert frames(60) == frames(2)


def test_what_is_only_read_may_occur_twice(backend: Any) -> None:
    def run(t: Devices) -> Any:
        x, y = lists(t, 2)
        aten._foreach_mul_([x[0], x[3].view(10)[:3]], [y[0], y[0]])
        aten._foreach_addcmul_([x[1]], [x[1]], [y[1]], 0.5)
        aten._fused_sgd_([x[0], x[3].view(10)[:3]], [y[0]] * 2, [], **{**SGD, "momentum": 0.0})
        return x

    assert launched_by(run) == ["each_element", "each_element", "sgd_step"]


# ---- lists that go one by one


def twice(t: Devices) -> Any:
    x, y = lists(t, 2)
    aten._foreach_mul_([x[0], x[1], x[0]], [y[0], y[1], y[0]])
    return x


def shifted(t: Devices) -> Any:
    whole = t(numbers((60,), 1))
    aten._foreach_add_([whole[:20], whole[10:30]], [whole[30:50], whole[40:]])
    return whole


def read_later(t: Devices) -> Any:
    x, _ = lists(t, 2)
    aten._foreach_add_([x[0], x[3].view(10)], [x[3].view(10)[:3], x[1].view(-1)[:10]])
    aten._foreach_add_([x[1], x[0]], [x[1], x[1].view(-1)[:3]])
    return x


def stepped(t: Devices) -> Any:
    given = lists(t, 3)
    for each in given:
        each.append(each[0])
    aten._fused_sgd_(*given, **SGD)
    return given


def shared_state(t: Devices) -> Any:
    given = adam_lists(t)
    given[4] = []
    given[3] = given[2]
    aten._fused_adam_(*given, **ADAM)
    return given


def read_before(t: Devices) -> Any:
    x, grads, held = ([each[0].clone(), each[0]] for each in lists(t, 3))
    grads[0] = held[1] = grads[1]
    aten._fused_sgd_(x, grads, held, **SGD)
    return x, grads, held


def transposed(t: Devices) -> Any:
    given = [[t(numbers((4, 3), i)).t()] for i in range(3)]
    aten._fused_sgd_(*given, **SGD)
    return given


ONE_BY_ONE: list[Callable[[Devices], Any]] = [
    twice, shifted, read_later, stepped, shared_state, read_before, transposed,
    lambda t: aten._foreach_add([t(numbers((4, 3), 1)).t()], [t(numbers((3, 4), 2))]),
    lambda t: aten._foreach_mul([t(numbers((4, 3), 1))], [t(numbers((3,), 2))]),
    lambda t: aten._foreach_add([t(np.arange(4))], 1),
    lambda t: aten._foreach_mul([t(np.ones(0)), t(np.ones((2, 0)))], 2.0),
    lambda t: aten._foreach_mul([t(numbers((3,), 1))], True),
]  # fmt: skip


@pytest.mark.parametrize("run", ONE_BY_ONE)
def test_lists_with_shared_memory_and_those_that_the_kernel_does_not_serve_go_one_by_one(run: Any, backend: Any) -> None:
    assert launched_by(run) == []


def test_lists_of_several_dtypes_devices_and_lengths(backend: Any) -> None:
    (here, _), (half, _) = makers("float32"), makers("float16")
    cupy_stand_in.launched.clear()
    mixed = aten._foreach_add([here(np.ones(2)), half(np.ones(2))], [half(np.ones(2)), half(np.ones(2))])
    assert [(each.dtype.name, each.tolist()) for each in mixed] == [("float32", [2.0, 2.0]), ("float16", [2.0, 2.0])]
    apart = aten._foreach_mul([turnout.ones(2, device=f"pretended:{i}") for i in range(2)], 2.0)
    assert [(str(each.device), each.tolist()) for each in apart] == [("pretended:0", [2.0] * 2), ("pretended:1", [2.0] * 2)]
    assert [each.tolist() for each in aten._foreach_mul([here(np.ones(2)), turnout.ones(2)], 2.0)] == [[2.0] * 2] * 2
    assert not {name for name, _ in cupy_stand_in.launched} & OF_LISTS
    with pytest.raises(turnout.errors.ArgumentError, match="expected lists of one length"):
        aten._foreach_add([here(np.ones(2))], [here(np.ones(2))] * 2)


def test_gradients_of_lists_are_those_of_their_elements(backend: Any) -> None:
    x, y = turnout.ones(3, device="pretended").requires_grad_(), turnout.full((3,), 2.0, device="pretended")
    made = aten._foreach_mul([x, y], [y, x])
    (made[0] + made[1]).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4.0] * 3


def test_a_kernel_for_one_tensor_that_somebody_replaces_is_called_for_lists(backend: Any) -> None:
    x = [turnout.ones(3, device="pretended"), turnout.ones(2, device="pretended")]
    with Library("aten", "IMPL") as lib:
        lib.impl("mul_.Tensor", lambda self, other: self.fill_(7.0), "PRETENDED", allow_override=True)
        aten._foreach_mul_(x, x)
    assert [each.tolist() for each in x] == [[7.0] * 3, [7.0] * 2]
    aten._foreach_mul_(x, x)
    assert [each.tolist() for each in x] == [[49.0] * 3, [49.0] * 2]
