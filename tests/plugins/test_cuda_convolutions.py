"""Convolution by kernels of its own, and through cuDNN's Python front end, over a stand-in for it: what is described to it, and
when."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import cudnn_stand_in
import cupy_stand_in
import numpy as np
import pytest
from pretended_cuda import pretended

import turnout
from turnout import nn
from turnout.registry import Registrations
from turnout_cuda import convolutions, direct_convolutions

F = nn.functional
PRECISION = ["highest"]


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended(cudnn=cudnn_stand_in, precision=lambda: PRECISION[0]) as made:
        yield made


@pytest.fixture
def by_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_convolutions, "PRODUCTS", 0)


CASES: list[tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]] = [
    ((2, 3, 9), (4, 3, 3), False, {"padding": 1}),
    ((2, 4, 9), (4, 3, 3), True, {"stride": 2, "output_padding": 1}),
    ((2, 4, 7, 6), (6, 2, 3, 2), False, {"groups": 2, "stride": (2, 1), "dilation": (1, 2)}),
    ((1, 4, 5, 6), (4, 3, 3, 2), True, {"groups": 2, "stride": 2, "padding": 1}),
    ((2, 3, 4, 5, 4), (2, 3, 2, 3, 1), False, {"padding": (1, 0, 1)}),
]


@pytest.mark.parametrize("most", [0, 1 << 28])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_and_their_gradients_are_those_of_cpu(
    case: Any, dtype: str, most: int, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_convolutions, "PRODUCTS", most)
    shape, weights, transposed, options = case
    ndim = len(shape) - 2
    shape = (shape[0] + (most > 0), *shape[1:])  # plans are kept by shape
    op = getattr(F, f"conv{'_transpose' if transposed else ''}{ndim}d")
    turnout.manual_seed(2)
    outputs = weights[1] * options.get("groups", 1) if transposed else weights[0]
    given = [turnout.randn(*each).to(getattr(turnout, dtype)) for each in (shape, weights, (outputs,))]

    def run(device: str) -> list[Any]:
        leaves = [t.to(device).requires_grad_() for t in given]
        y = op(*leaves, **options)
        (y * y).sum().backward()
        return [t.cpu().float() for t in (y, *[leaf.grad for leaf in leaves])]

    before = len(cudnn_stand_in.graphs)
    cupy_stand_in.launched.clear()
    found = run("pretended")
    launched = [name for name, _ in cupy_stand_in.launched if name.startswith("convolve")]
    by_launches, by_cudnn = (["convolve", "convolve", "convolve_backward"], 0) if most else ([], 3)
    assert (launched, len(cudnn_stand_in.graphs) - before) == (by_launches, by_cudnn), "the result and both gradients"
    for a, b in zip(found, run("cpu"), strict=True):
        assert turnout.allclose(a, b, rtol=1e-4 if dtype == "float32" else 0.05, atol=1e-4 if dtype == "float32" else 0.5)


def test_a_plan_is_built_once_for_a_shape(by_cudnn: None, backend: Any) -> None:
    x, w = turnout.randn(1, 2, 5, 5, device="pretended:1"), turnout.randn(2, 2, 3, 3, device="pretended:1")
    before = len(cudnn_stand_in.graphs)
    for _ in range(3):
        F.conv2d(x, w)
    F.conv2d(x[:, :, 1:], w)
    assert len(cudnn_stand_in.graphs) == before + 2
    handle, stream = cudnn_stand_in.streams[-1]
    assert stream == 0
    F.conv2d(x.to("pretended:0"), w.to("pretended:0"))
    assert cudnn_stand_in.streams[-1][0] != handle, "each device has a handle"


def test_float32_is_rounded_to_tf32_only_where_the_setting_says_so(by_cudnn: None, backend: Any) -> None:
    x, w = turnout.randn(1, 2, 6, 5, device="pretended"), turnout.randn(2, 2, 3, 3, device="pretended")
    try:
        for PRECISION[0], excluded in (("highest", ["DOWN_CONVERT_INPUTS", "TENSOR_CORE"]), ("high", [])):
            F.conv2d(x, w)
            assert cudnn_stand_in.graphs[-1].excluded == excluded
    finally:
        PRECISION[0] = "highest"


def test_float64_and_empty_images_go_to_matrix_products(by_cudnn: None, backend: Any) -> None:
    before = len(cudnn_stand_in.graphs)
    x, w = turnout.randn(1, 2, 5, 5, dtype=turnout.float64), turnout.randn(2, 2, 3, 3, dtype=turnout.float64)
    found = F.conv2d(x.to("pretended"), w.to("pretended"))
    assert turnout.allclose(found.cpu(), F.conv2d(x, w))
    assert F.conv2d(turnout.zeros(0, 2, 5, 5, device="pretended"), w.float().to("pretended")).shape == (0, 2, 3, 3)
    assert len(cudnn_stand_in.graphs) == before


def test_a_front_end_that_is_missing_or_finds_no_library_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudnn", None)
    assert convolutions.front_end() is None
    assert convolutions.kernels(None, None, lambda: "highest", Registrations("test")) == {}
    monkeypatch.setitem(sys.modules, "cudnn", cudnn_stand_in)
    assert convolutions.front_end() is cudnn_stand_in

    def missing() -> int:
        raise RuntimeError("libcudnn.so.9: cannot open shared object file")

    monkeypatch.setattr(cudnn_stand_in, "backend_version", missing)
    assert convolutions.front_end() is None


def test_arrays_that_begin_between_sixteen_bytes_are_copied(by_cudnn: None, backend: Any) -> None:
    x, w = turnout.randn(41), turnout.randn(2, 1, 3)
    shifted = x.to("pretended")[1:].view(1, 1, 40)
    found = F.conv1d(shifted, w.to("pretended"))
    assert turnout.allclose(found.cpu(), F.conv1d(x[1:].view(1, 1, 40), w), atol=1e-6)


def test_shapes_that_do_not_fit_are_the_error_that_they_are_on_cpu(backend: Any) -> None:
    def error(device: str) -> str:
        args = [turnout.ones(*shape, device=device) for shape in ((1, 2, 2, 4, 2), (2, 2, 4, 3), (2, 1, 2, 2))]
        with pytest.raises(turnout.errors.ShapeError) as caught:
            turnout.ops.aten.convolution_backward(
                *args, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]
            )  # fmt: skip
        return str(caught.value).partition("\n")[0]

    assert error("pretended") == error("cpu")


def test_plans_and_handles_are_given_back(by_cudnn: None, backend: Any) -> None:
    registrations = Registrations("test")
    rows = convolutions.kernels(backend.xp, cudnn_stand_in, lambda: "highest", registrations)
    x, w, out = (turnout.ones(*shape, device="pretended").array for shape in ((1, 2, 4, 4), (1, 2, 3, 3), (1, 1, 2, 2)))
    rows["convolution.out"].fn(x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, out)
    before = len(cudnn_stand_in.destroyed)
    registrations.undo()
    assert cudnn_stand_in.destroyed[before:] == [cudnn_stand_in.create_handle.made]


def test_threads_use_a_handle_one_after_the_other(by_cudnn: None, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each on its own stream: both would meet between the stream of the handle and the call."""
    meeting, found, current = Barrier(2), [], backend.cupy.cuda.get_current_stream
    set_stream, execute = cudnn_stand_in.set_stream, cudnn_stand_in.Graph.execute

    def wait(**given: int) -> None:
        set_stream(**given)
        with suppress(BrokenBarrierError):
            meeting.wait(0.1)

    def run(self: Any, *args: Any, handle: int) -> None:
        found.append((dict(cudnn_stand_in.streams)[handle], current().ptr))
        execute(self, *args, handle=handle)

    monkeypatch.setattr(cudnn_stand_in, "set_stream", wait)
    monkeypatch.setattr(cudnn_stand_in.Graph, "execute", run)
    x, w = turnout.ones(1, 2, 4, 4, device="pretended"), turnout.ones(1, 2, 3, 3, device="pretended")
    streams = [backend.cupy.cuda.Stream(non_blocking=True) for _ in range(2)]

    def convolve(stream: Any) -> Any:
        with stream:
            return F.conv2d(x, w).tolist()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(convolve, streams)) == [[[[[18.0] * 2] * 2]]] * 2
    assert sorted(found) == sorted((stream.ptr, stream.ptr) for stream in streams)


LIMITS: list[tuple[tuple[int, ...], tuple[int, ...], int, bool]] = [  # image, weights, groups, whether one launch serves it
    ((4, 64, 2048), (64, 64, 5), 1, True),
    ((8, 64, 2048), (64, 64, 5), 1, False),  # too many products
    ((1, 1024, 4), (4, 1024, 3), 1, False),  # sums of too many
    ((128, 64, 112, 112), (64, 1, 7, 7), 64, True),  # each channel is a group
]


@pytest.mark.parametrize(("image", "weights", "groups", "few"), LIMITS)
def test_one_launch_serves_convolutions_of_few_products(
    image: tuple[int, ...], weights: tuple[int, ...], groups: int, few: bool, backend: Any
) -> None:
    made = direct_convolutions.Direct(backend.xp, backend.xp.programs)
    positions = tuple([n - k + 1 + 2 * (k // 2) for n, k in zip(image[2:], weights[2:], strict=True)])
    weight, result = (np.broadcast_to(np.float32(0), shape) for shape in (weights, (image[0], weights[0], *positions)))
    assert made.is_few(weight, result, weights[1], groups) is few


def test_what_one_launch_does_not_serve_goes_on(backend: Any) -> None:
    x, w = turnout.ones(1, 2, 4, device="pretended"), turnout.ones(2, 2, 3, device="pretended")
    cupy_stand_in.launched.clear()
    for call in (
        lambda: F.conv1d(x.to(turnout.complex64), w.to(turnout.complex64)), lambda: F.conv1d(x[:0], w),
        lambda: turnout.ops.aten.convolution_backward(
            turnout.ones(1, 2, 2, device="pretended"), x.mT.contiguous().mT, w, None, [1], [0], [1], False, [0], 1, [True] * 3
        ),
    ):  # fmt: skip
        call()
    assert {name for name, _ in cupy_stand_in.launched} <= {"convolve"}
