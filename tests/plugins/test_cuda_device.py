"""The CUDA device where there is one: what the stand-in for CuPy cannot show. `tests/conformance` runs every operator on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cuda_launches import DTYPES, Devices, agree, check, makers, numbers
from test_cuda_gradients import CASES, gradients
from test_cuda_kernels import check_random_numbers
from test_cuda_lists import EACH, STEPS, of_lists, precision, step

import turnout
from turnout import cuda, nn
from turnout_conformance.accuracy import Accuracy, answers_of
from turnout_conformance.cases import SETS, Drawn, S
from turnout_conformance.cases.sets import by_operator
from turnout_conformance.cases.sets.convolutions import backward, forward
from turnout_conformance.cases.sets.sizes.indices import added
from turnout_conformance.cases.sets.sizes.lines import running
from turnout_conformance.cases.sets.sizes.losses import likelihoods
from turnout_conformance.cases.sets.sizes.normalisation import layers, normalised
from turnout_conformance.cases.sets.sizes.shapes import rows

F = nn.functional
NEEDS_DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no device of type cuda")


# ---- raw kernels


@pytest.mark.parametrize("operator", SETS["sizes"])
def test_results_are_near_exact_ones_in_all_sizes(operator: str) -> None:
    check(operator, "cuda")


def test_random_numbers_are_those_of_cpu() -> None:
    check_random_numbers("cuda")


# Rows and groups by the thousand, and long ones: launches of many blocks, which share memory and run at once.
WIDE = Drawn((3_001, 1_024))
LARGE = by_operator(
    [
        *running([((70_000, 33), -1), ((3, 100_000), -1), ((300, 400), 0), ((300_000, 2), -1), ((5, 40_000, 3), 1)]),
        *normalised(
            [layers((50_000, 65)), layers((3, 100_000)), layers((300_000, 2))], [((8, 64, 30, 41), 8), ((2, 3, 90_000), 1)]
        ),
        *likelihoods([(100_000, 7), (3, 70_000), (70_000, 33)]),
        *added([((5_000, 7), 0, 100_000), ((4,), 0, 300_000), ((3, 1_000, 5), 1, 20_000)], ("sum", "mean", "amax", "amin")),
        *rows("add.Tensor sub.Tensor gt.Tensor", *[S(WIDE, Drawn(s, seed=2)) for s in ((3_001, 1_024), (1_024,), (3_001, 1))]),
        *rows("convolution", forward((8, 40, 1_000), (70, 20, 5), {"groups": 2, "padding": 3, "stride": 2}), in_turn=0),
        *rows("convolution_backward", backward((8, 40, 1_000), (70, 20, 5), {"groups": 2, "padding": 3, "stride": 2}), in_turn=0),
        *rows("exp gelu", S(WIDE), in_turn=0),
        *rows("mul.Scalar", S(WIDE, 1.5), in_turn=0),
        *rows("clamp", S(WIDE, -1, 1), in_turn=0),
        *rows("where.self", S(Drawn((3_001, 1_024), "bool"), WIDE, Drawn((3_001, 1_024), seed=2)), in_turn=0),
        *rows("_to_copy", S(WIDE, dtype=turnout.float32), in_turn=0),
    ]
)


@pytest.mark.parametrize("operator", LARGE)
def test_results_of_many_elements_are_near_exact_ones(operator: str) -> None:
    # Sums of so many numbers lose digits.
    expected = answers_of(operator, [replace(samples, tolerance=5.0) for samples in LARGE[operator]])
    wrong = list(Accuracy("cuda").differences(operator, expected))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_gradients_of_composed_operators_are_those_of_cpu(case: int, dtype: str) -> None:
    agree(lambda t: gradients(CASES[case], t), dtype, "cuda:0")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", STEPS, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_step_is_that_of_cpu(case: Any, dtype: str) -> None:
    agree(lambda t: step(case[0], t, case[2]), dtype, "cuda:0", precision(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", EACH, ids=lambda case: f"{case[0]} {case[1]} {case[2:]}")
def test_a_function_of_lists_gives_what_cpu_gives(case: Any, dtype: str) -> None:
    agree(lambda t: of_lists(case, t), dtype, "cuda:0")


def test_sums_that_are_added_in_parts_are_the_same_in_each_run() -> None:
    x, weight = turnout.randn(20_000, 65, device="cuda"), turnout.ones(65, device="cuda", requires_grad=True)

    def gradient() -> Any:
        return turnout.autograd.grad(F.layer_norm(x, (65,), weight).exp().sum(), weight)[0].tolist()

    assert gradient() == gradient()


# ---- libraries of the vendor


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_and_their_gradients_are_those_of_cpu(transposed: bool, groups: int, dtype: str) -> None:
    def run(t: Devices) -> Any:
        x, w, b = (t(numbers(s, i)).requires_grad_() for i, s in enumerate([(3, 8, 17, 16), (8, 8 // groups, 3, 3), (8,)]))
        call = F.conv_transpose2d if transposed else F.conv2d
        y = call(x, w, b if groups == 1 or not transposed else None, stride=2, padding=1, groups=groups)
        (y * y).sum().backward()
        return y.detach(), x.grad, w.grad

    here, there = makers(dtype, "cuda")
    tolerant = {"float16": 0.05, "bfloat16": 0.1, "float32": 1e-4, "float64": 1e-11}[dtype]
    for got, want in zip(run(here), run(there), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        error = float((got.cpu().double() - want.double()).abs().max()) / float(want.double().abs().max())
        assert error <= tolerant


def test_float32_is_multiplied_with_all_digits_unless_the_setting_says_otherwise() -> None:
    a, b = turnout.randn(256, 512), turnout.randn(512, 256)
    exact, here = a.double() @ b.double(), (a.cuda(), b.cuda())

    def error() -> float:
        return float(((here[0] @ here[1]).cpu().double() - exact).abs().max())

    assert error() < 1e-4
    with turnout.config.override({"plugin.cuda.matmul_precision": "high"}):
        rough = error()
    assert 1e-4 < rough < 0.5
    assert error() < 1e-4


# ---- streams, memory, recorded work


def test_work_on_streams_is_ordered_by_waiting() -> None:
    side, main = cuda.Stream(), cuda.current_stream()
    x = turnout.ones(2_000, 2_000, device="cuda")
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    for _ in range(20):
        x = x @ turnout.full((2_000, 2_000), 1 / 2_000, device="cuda")
    side.wait_stream(main)
    with cuda.stream(side):
        y = x * 2.0
    main.wait_stream(side)
    z = y + 1.0
    end.record()
    end.synchronize()
    assert turnout.allclose(z.cpu(), turnout.full((2_000, 2_000), 3.0), atol=1e-4)
    assert start.elapsed_time(end) > 0
    assert (end.query(), side.query()) == (True, True)


def test_memory_is_counted_with_its_peak() -> None:
    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    x = turnout.empty(1 << 20, device="cuda")
    assert cuda.memory_allocated() - before == 4 << 20
    del x
    assert cuda.memory_allocated() == before
    assert cuda.max_memory_allocated() - before == 4 << 20
    free, total = cuda.mem_get_info()
    assert 0 < free < total == cuda.get_device_properties().total_memory


def test_a_recorded_graph_runs_again_with_what_its_tensors_hold() -> None:
    x, total = turnout.randn(50, 1_100, device="cuda"), turnout.zeros(50, 1_100, device="cuda")
    turnout.softmax(x, -1)
    recording = cuda.CUDAGraph()
    with cuda.graph(recording):
        y = turnout.softmax(x, -1) + 1.0
        total += y
    assert float(total.abs().sum()) == 0.0, "recording runs nothing"
    for times in (1, 2, 3):
        x.copy_(turnout.full((50, 1_100), float(times)))
        recording.replay()
        assert turnout.allclose(y, turnout.softmax(x, -1) + 1.0)
    assert turnout.allclose(total.cpu(), turnout.full((50, 1_100), 3 * (1 + 1 / 1_100)))


def test_recorded_draws_are_those_that_come_next() -> None:
    def draw() -> Any:
        made = [turnout.rand(1_000, device="cuda"), turnout.randn(1_000, device="cuda")]
        return [*made, F.dropout(turnout.ones(1_000, device="cuda"), 0.5)]

    turnout.manual_seed(3)
    wanted = [[each.tolist() for each in draw()] for _ in range(3)]
    turnout.manual_seed(3)
    recording = cuda.CUDAGraph()
    with cuda.graph(recording):
        made = draw()
    for values in wanted:
        recording.replay()
        assert [each.tolist() for each in made] == values


def test_a_full_device_says_what_its_memory_is_used_for() -> None:
    with pytest.raises(turnout.errors.OutOfMemoryError, match=r"(?s)has no room for 4\.0 TiB.*asked for; arrays use .* are free"):
        turnout.empty(1 << 40, device="cuda")
    assert float(turnout.ones(3, device="cuda").sum()) == 3.0


def test_what_cannot_be_recorded_is_an_error_and_the_device_goes_on() -> None:
    x = turnout.ones(3, device="cuda")
    for call in (x.tolist, x.sum().item, x.cpu, x.nonzero):
        with pytest.raises(Exception) as caught, cuda.graph(cuda.CUDAGraph()):
            call()
        assert "captur" in str(caught.value) or "record" in str(caught.value)
        assert x.tolist() == [1.0] * 3


def test_a_traced_training_step_is_recorded_and_trains_as_on_cpu() -> None:
    def train_step(weight: Any, x: Any, target: Any) -> Any:
        loss = ((turnout.softmax(x @ weight, -1) - target) ** 2).mean()
        loss.backward()
        with turnout.no_grad():
            weight.sub_(weight.grad, alpha=0.5)
            weight.grad = None
        return loss

    def trained(device: str, **options: Any) -> Any:
        turnout.manual_seed(1)
        weight, x, target = (turnout.randn(*shape).to(device) for shape in ((30, 20), (40, 30), (40, 20)))
        weight.requires_grad_()
        graph = turnout.trace(train_step, **options)(weight, x, target)
        return [graph(weight, x, target).item() for _ in range(6)], weight.tolist()

    for a, b in zip(trained("cuda", replay="cuda_graph"), trained("cpu"), strict=True):
        assert np.allclose(a, b, atol=1e-5)


def test_copies_from_page_locked_memory_are_what_it_held_when_they_were_asked_for() -> None:
    for i in range(20):
        x = turnout.full((1 << 20,), float(i), pin_memory=True)
        y = x.to("cuda", non_blocking=True)
        del x  # its memory stays until it was read
        assert (float(y.amin()), float(y.amax())) == (float(i), float(i))


# ---- other libraries


def test_arrays_of_cupy_and_tensors_share_memory() -> None:
    cupy = pytest.importorskip("cupy")
    x = turnout.ones(2, 3, device="cuda")
    cupy.from_dlpack(x)[0, 0] = 5.0
    cupy.asarray(x)[0, 1] = 6.0
    assert x.tolist() == [[5.0, 6.0, 1.0], [1.0, 1.0, 1.0]]
    array = cupy.arange(4.0)
    y = turnout.from_dlpack(array)
    y += 1.0
    assert array.tolist() == [1.0, 2.0, 3.0, 4.0]


# ---- programs


@pytest.mark.parametrize("autocast", [False, True])
def test_a_network_trains_as_on_cpu(autocast: bool) -> None:
    def losses(device: str) -> list[float]:
        turnout.manual_seed(2)
        x, target = turnout.randn(64, 20), turnout.randint(0, 5, (64,))
        parameters = [(turnout.randn(*s) * 0.2).to(device).requires_grad_() for s in ((32, 20), (32,), (32,), (32,), (5, 32))]
        w1, b1, scale, shift, w2 = parameters
        x, target = x.to(device), target.to(device)
        found = []
        for _ in range(8):
            with turnout.autocast(device, dtype=turnout.bfloat16, enabled=autocast):
                hidden = F.gelu(F.layer_norm(F.linear(x, w1, b1), (32,), scale, shift))
                loss = F.cross_entropy(F.linear(hidden, w2), target)
            loss.backward()
            with turnout.no_grad():
                for p in parameters:
                    p.sub_(p.grad, alpha=0.3)
                    p.grad = None
            found.append(loss.item())
        return found

    here, there = losses("cuda"), losses("cpu")
    assert here[-1] < here[0]
    assert np.allclose(here, there, rtol=0.05 if autocast else 1e-4)


def leaks() -> Iterator[Callable[[], Any]]:
    x, w = turnout.ones(4, 3, 8, 8, device="cuda"), turnout.ones(3, 3, 3, 3, device="cuda", requires_grad=True)
    yield lambda: F.conv2d(x, w).sum().backward()
    yield lambda: turnout.softmax(x, -1).sort(-1)
    yield lambda: turnout.index_add(x[0, 0], 0, turnout.arange(8, device="cuda"), x[0, 1])


def test_calls_leave_no_memory_behind() -> None:
    for call in leaks():
        for _ in range(3):
            call()
        cuda.synchronize()
        before = cuda.memory_allocated()
        for _ in range(20):
            call()
        assert cuda.memory_allocated() == before
