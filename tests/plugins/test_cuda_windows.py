"""Raw CUDA kernels for pooling and for images in another size: the same text run on the CPU, against the rows of cpu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy_stand_in
import numpy as np
import pytest
from pretended_cuda import pretended
from test_cuda_kernels import DTYPES, Case, Devices, agree, check, kernels_of, launched_by, makers, numbers

import turnout
from turnout import nn, ops
from turnout_cuda import programs, resize, windows

F = nn.functional
aten = ops.aten


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


def coarse(shape: tuple[int, ...], seed: int) -> Any:
    """Few different values, so that many are equal."""
    return np.round(numbers(shape, seed))


def with_gradient(t: Devices, values: Any, pool: Any) -> Any:
    """What `pool` gives, and the gradient of a sum in which each of its elements has a factor."""
    x = t(values).requires_grad_()
    y = pool(x)
    first, *others = y if isinstance(y, tuple) else (y,)
    (first * t(numbers(first.shape, 9))).sum().backward()
    return first.detach(), *others, x.grad


# ---- pooling


def pooled(*shape: int, kernel: Any, mean: bool = True, **options: Any) -> Iterator[Case]:
    """Largest elements and means of windows, and the gradients of means."""
    ndim = len(kernel)
    where = f"{list(shape)} by {list(kernel)} {options}"
    largest = getattr(aten, f"max_pool{ndim}d_with_indices")
    yield f"max_pool {where}", {"largest_of"}, lambda t: largest(t(coarse(shape, 1)), kernel, **options)
    if not mean:
        return
    average = getattr(F, f"avg_pool{ndim}d")
    for padded in (True, False):
        for divisor in (None, 3, -7):
            more = {**options, "count_include_pad": padded, "divisor_override": divisor}

            def run(t: Devices, more: Any = more) -> Any:
                return with_gradient(t, numbers(shape, 1), lambda x: average(x, kernel, **more))

            yield f"avg_pool {where} {padded} {divisor}", {"mean_of", "mean_of_windows_backward"}, run


def evenly(*shape: int, size: tuple[int, ...]) -> Iterator[Case]:
    """The same of windows that cover the image evenly."""
    ndim = len(size)
    where = f"{list(shape)} to {list(size)}"
    largest = getattr(F, f"adaptive_max_pool{ndim}d")
    average = getattr(aten, f"_adaptive_avg_pool{ndim}d")

    def run(t: Devices) -> Any:
        return with_gradient(t, numbers(shape, 1), lambda x: average(x, size))

    yield f"adaptive_max_pool {where}", {"largest_of"}, lambda t: largest(t(coarse(shape, 1)), size, return_indices=True)
    yield f"adaptive_avg_pool {where}", {"mean_of", "mean_of_windows_backward"}, run


def values_at_the_edge() -> Iterator[Case]:
    """Windows of infinities and nan, and images in another layout."""
    x = coarse((2, 3, 9, 8), 2)
    x[0, 0], x[0, 1], x[1, 0, 2:5, 1:7], x[1, 2, ::3] = -np.inf, np.nan, np.nan, -np.inf
    x[0, 2, 4, 4], x[1, 1] = np.inf, np.where(coarse((9, 8), 3) > 0, np.nan, -np.inf)
    for name, options in (
        ("", {}), (" in steps", {"stride": 2, "padding": 1}), (" with gaps", {"stride": 1, "padding": 2, "dilation": 3}),
    ):  # fmt: skip
        yield (
            f"max_pool of nan and infinities{name}",
            {"largest_of"},
            lambda t, options=options: aten.max_pool2d_with_indices(t(x), (3, 3), **options),
        )
    yield "max_pool of large windows of nan", {"large"}, lambda t: aten.max_pool2d_with_indices(t(x), (9, 8))
    yield "adaptive_max_pool of nan", {"largest_of"}, lambda t: F.adaptive_max_pool2d(t(x), (4, 3), return_indices=True)
    yield "adaptive_max_pool of large windows of nan", {"large"}, lambda t: F.adaptive_max_pool2d(t(x), 1, return_indices=True)

    def last(t: Devices, x: Any = x) -> Any:
        return t(x).to(memory_format=turnout.channels_last)

    yield "max_pool of channels_last", {"largest_of"}, lambda t: aten.max_pool2d_with_indices(last(t), (3, 2), padding=(1, 0))
    yield "avg_pool of channels_last", {"mean_of"}, lambda t: F.avg_pool2d(last(t), (3, 2), padding=(1, 0))
    yield "avg_pool of a part", {"mean_of"}, lambda t: F.avg_pool2d(t(x).transpose(2, 3)[:, 1:, ::2], 2)


def gradients_of_largest() -> Iterator[Case]:
    """Sums at the places of the largest elements."""
    for name, pool in (
        ("max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)),
        ("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True)),
    ):
        values = numbers((2, 3, 11, 9), 4)
        yield f"gradient of {name}", {"largest_of", "add_at"}, lambda t, pool=pool, v=values: with_gradient(t, v, pool)
    line = numbers((2, 3, 30), 5)
    yield "gradient of max_pool1d", {"largest_of"}, lambda t: with_gradient(t, line, lambda x: F.max_pool1d(x, 4, 3))
    yield "gradient of avg_pool1d", {"mean_of"}, lambda t: with_gradient(t, line, lambda x: F.avg_pool1d(x, 4, 3, 2))


# ---- images in another size


def resized(*shape: int, to: tuple[int, ...], scale: tuple[float, ...] | None = None) -> Iterator[Case]:
    """Each mode, and its gradient."""
    ndim = len(to)
    linear = {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}[ndim]
    modes = [(f"upsample_nearest{ndim}d", "nearest"), (f"_upsample_nearest_exact{ndim}d", "nearest"), (linear, "linear")]
    if ndim == 2:
        modes.append(("upsample_bicubic2d", "cubic"))
    scales = scale or (None,) * ndim
    for name, kernel in modes:
        for align in (False, True) if kernel != "nearest" else (None,):
            more = (() if align is None else (align,)) + scales

            def run(t: Devices, name: str = name, more: Any = more) -> Any:
                return with_gradient(t, numbers(shape, 1), lambda x: getattr(aten, name)(x, to, *more))

            told = f"{name} {list(shape)} to {list(to)}{'' if scale is None else f' by {scale}'}{' aligned' if align else ''}"
            yield told, {f"resize_{kernel}", f"resize_{kernel}_backward"}, run


def other_images() -> Iterator[Case]:
    x = numbers((2, 3, 6, 7), 3)
    x[0, 0, 2, 3], x[1, 1, 0, 0], x[0, 2, 5, 6] = np.nan, np.inf, -np.inf

    def last(t: Devices) -> Any:
        return t(x).to(memory_format=turnout.channels_last)

    for mode, kernel in (("nearest", "nearest"), ("nearest-exact", "nearest"), ("bilinear", "linear"), ("bicubic", "cubic")):
        for name, layout in (("", lambda t: t(x)), (" channels_last", last), (" part", lambda t: t(x).transpose(2, 3)[1:])):
            yield (
                f"interpolate {mode}{name}",
                {f"resize_{kernel}"},
                lambda t, mode=mode, layout=layout: F.interpolate(layout(t), scale_factor=(2.0, 1.3), mode=mode),
            )
    far = numbers((1, 2, 5), 4)
    for scale in (1e-9, 1e30):  # all results from one edge
        yield (
            f"upsample_linear1d by {scale}",
            {"resize_linear"},
            lambda t, s=scale: aten.upsample_linear1d(t(far), (6,), False, s),
        )


CASES: list[Case] = [
    *pooled(2, 3, 9, 8, kernel=(2, 2)), *pooled(2, 3, 9, 8, kernel=(3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True),
    *pooled(3, 7, 10, kernel=(3, 3), stride=2, padding=1), *pooled(3, 5, 4, kernel=(3, 3), stride=4, padding=1, ceil_mode=True),
    *pooled(2, 11, 12, kernel=(3, 2), stride=2, padding=1, dilation=(2, 4), mean=False),
    *pooled(2, 20, 21, kernel=(9, 8), stride=3, padding=2), *pooled(1, 3, 40, 36, kernel=(40, 36)),
    *pooled(2, 3, 5, 6, 7, kernel=(2, 3, 2)), *pooled(2, 5, 7, 6, kernel=(3, 2, 3), stride=(1, 2, 3), padding=1, ceil_mode=True),
    *pooled(2, 6, 7, 8, kernel=(2, 2, 3), dilation=(2, 3, 2), padding=(1, 0, 1), stride=1, mean=False),
    *pooled(1, 6, 7, 8, kernel=(5, 5, 5), stride=2, padding=2),
    *evenly(2, 3, 7, 10, size=(3, 4)), *evenly(3, 5, 4, size=(7, 4)), *evenly(2, 3, 20, 18, size=(2, 1)),
    *evenly(2, 5, 6, 7, size=(2, 3, 9)), *evenly(1, 2, 8, 9, 10, size=(1, 1, 1)), *evenly(1, 1, 40, 45, size=(1, 1)),
    *values_at_the_edge(), *gradients_of_largest(),
    *resized(2, 3, 7, to=(14,)), *resized(2, 3, 9, to=(4,)), *resized(1, 2, 5, to=(1,)), *resized(1, 2, 1, to=(6,)),
    *resized(2, 3, 5, 6, to=(10, 12)), *resized(1, 2, 7, 9, to=(5, 20)), *resized(1, 2, 1, 6, to=(5, 1)),
    *resized(2, 2, 6, 5, to=(13, 7), scale=(2.2, 1.5)), *resized(1, 1, 30, 40, to=(9, 6)), *resized(1, 1, 4, 5, to=(33, 60)),
    *resized(1, 2, 6, 5, to=(6, 5)), *resized(1, 3, 5, 4, to=(7, 9), scale=(0.2, 7.0)),
    *resized(2, 2, 3, 4, 5, to=(6, 7, 4)), *resized(1, 2, 4, 3, 2, to=(3, 3, 9), scale=(0.9, 1.1, 4.6)), *other_images(),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_raw_kernel_gives_what_cpu_gives(case: Case, dtype: str, backend: Any) -> None:
    check(case, dtype)


def test_every_kernel_is_launched_by_some_case(backend: Any) -> None:
    assert kernels_of("resize", "windows") <= launched_by(CASES)


@pytest.mark.parametrize("module", [resize, windows])
def test_positions_of_64_bits_give_the_same(module: Any, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = makers("float64")
    monkeypatch.setattr(module, "_NARROW", 0)
    for _, kernels, run in CASES:
        if any(kernel.startswith("resize") for kernel in kernels) is (module is resize):
            agree(run(here), run(there), "float64")


def test_what_has_no_raw_kernel_goes_to_the_shared_ones(backend: Any) -> None:
    here, there = makers("float32")
    images = np.arange(48).reshape(2, 4, 6)

    def run(t: Devices) -> Any:
        x = t(images)
        eight = x.to(turnout.uint8).unsqueeze(0)
        empty = t(np.zeros((0, 2, 4, 6)))
        return (
            aten.max_pool2d_with_indices(x, (2, 2)), F.avg_pool2d(x, 2), aten.upsample_nearest2d(eight, (3, 9)),
            aten.upsample_bilinear2d(eight, (3, 9), False), F.max_pool2d(empty, 2), F.avg_pool2d(empty, 2),
            F.interpolate(empty, scale_factor=2), aten._upsample_bilinear2d_aa(t(numbers((1, 2, 6, 6), 1)), (3, 4), False),
        )  # fmt: skip

    cupy_stand_in.launched.clear()
    found = run(here)
    names = {name for name, _ in cupy_stand_in.launched}
    assert not {programs.programs_by_kernel()[name] for name in names} & {"resize", "windows"}
    agree(found, run(there), "float32")


def test_outputs_of_any_layout_are_written(backend: Any) -> None:
    def run(t: Devices) -> Any:
        x = t(numbers((2, 3, 6, 8), 1))
        made = [t(np.zeros((3, 4, 3, 2))).permute(3, 2, 0, 1) for _ in range(2)]
        places = t(np.zeros((3, 4, 3, 2), "i8")).permute(3, 2, 0, 1)
        aten.max_pool2d_with_indices.out(x, (2, 2), out=made[0], indices=places)
        aten.upsample_bilinear2d.out(x, (3, 4), False, out=made[1])
        return made, places

    here, there = makers("float32")
    agree(run(here), run(there), "float32")


def test_an_output_may_be_the_input(backend: Any) -> None:
    def run(t: Devices) -> Any:
        made = [t(numbers((2, 3, 6, 8), 1)) for _ in range(4)]
        aten.max_pool2d_with_indices.out(made[0], (3, 3), 1, 1, out=made[0], indices=t(np.zeros((2, 3, 6, 8), "i8")))
        aten.avg_pool2d.out(made[1], (3, 3), 1, 1, out=made[1])
        aten.avg_pool2d_backward.grad_input(made[2], made[2], (3, 3), 1, 1, False, True, None, grad_input=made[2])
        aten.upsample_bilinear2d.out(made[3], (6, 8), False, 2.0, 0.5, out=made[3])
        return made

    here, there = makers("float32")
    agree(run(here), run(there), "float32")
