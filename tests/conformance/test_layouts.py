"""How results lie in memory is the same on cpu, opencl, meta and a fake: operator cases with their tensors in other layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from random_programs.layouts import Combination, chosen, here
from turnout.errors import LinAlgError, NoDataError, ShapeError
from turnout.operators.values import flat
from turnout_conformance.comparing import each, find, layout, on_meta, tensors


def on_opencl(combination: Combination, args: Any, kwargs: Any) -> Any:
    def there(memory: Any, shape: Any, strides: Any) -> turnout.Tensor:
        return turnout.as_strided(turnout.from_numpy(memory).to("opencl"), shape, strides)

    args, kwargs = combination.arguments(there)
    return find(combination.case.op)(*args, **kwargs)


def as_fakes(combination: Combination, args: Any, kwargs: Any) -> Any:
    mode = turnout.FakeMode()
    args, kwargs = each(args, mode.from_tensor), each(kwargs, mode.from_tensor)
    with mode:
        return find(combination.case.op)(*args, **kwargs)


def without_data(combination: Combination, args: Any, kwargs: Any) -> Any:
    return find(combination.case.op)(*on_meta(args), **on_meta(kwargs))


def lies(result: Any) -> list[int]:
    """The strides of a result; those that depend on a size that is not known are left out."""
    if not isinstance(result, turnout.Tensor) or any(isinstance(n, turnout.SymInt) for n in result.shape):
        return []
    return list(map(int, layout(result)))


@pytest.mark.parametrize("elsewhere", [without_data, as_fakes, on_opencl])
def test_results_lie_as_on_cpu(elsewhere: Callable[..., Any], seeds: Any, need_device: Callable[[str], None]) -> None:
    if elsewhere is on_opencl:
        need_device("opencl")
    compared = 0
    for combination in chosen(seeds(30, many=2500)):
        # A Fourier transform runs on the host there, which sees a copy of a tensor that repeats elements.
        if elsewhere is on_opencl and any("exp" in n for n in combination.layouts) and "ft" in combination.case.op:
            continue
        try:
            args, kwargs = combination.arguments(here)
            wanted = flat(find(combination.case.op)(*args, **kwargs))
        except (LinAlgError, ShapeError):  # equal rows, or a view that this layout does not have
            continue
        try:
            found = flat(elsewhere(combination, *combination.arguments(here)))
        except (
            LinAlgError,
            ShapeError,
            NoDataError,
        ):  # equal rows, a view that this layout does not have, a result of unknown size
            continue
        known = [(f, w) for f, w in zip(found, wanted, strict=True) if lies(f)]
        assert [lies(f) for f, _ in known] == [lies(w) for _, w in known], (
            f"{combination}: {[t.shape for t in tensors([args, kwargs])]}"
        )
        compared += 1
    assert compared > len(seeds(30, many=2500)) * 0.8


def test_a_program_views_what_convolutions_made_of_channels_last() -> None:
    """The steps of SegFormer's mixed feed-forward in Core ATen: tokens, seen as an image, convolved, seen as tokens again."""
    aten = turnout.ops.aten
    tokens, weight = turnout.randn(2, 12, 8), turnout.randn(8, 1, 3, 3)

    def program(tokens: Any, weight: Any) -> list[Any]:
        image = aten.view.default(aten.permute.default(tokens, [0, 2, 1]), [2, 8, 3, 4])
        convolved = aten.convolution.default(image, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 8)
        again = aten.permute.default(aten.view.default(convolved, [2, 8, 12]), [0, 2, 1])
        rows = aten.view.default(aten.gelu.default(again), [24, 8])  # of row-major memory, since the image has channels last
        larger = aten.upsample_bilinear2d.vec(image, [6, 8], False, None)
        pooled, _ = aten.max_pool2d_with_indices.default(larger, [2, 2])
        return [rows, aten.view.default(aten.permute.default(pooled, [0, 2, 3, 1]), [24, 8])]

    for device in ("cpu", "meta"):
        assert [r.is_contiguous() for r in program(tokens.to(device), weight.to(device))] == [True, True]


def test_a_result_of_repeated_elements_is_row_major_whatever_computes_it() -> None:
    for dtype in (turnout.float32, turnout.float64, turnout.float16, turnout.int64):
        for shape in ((1, 3, 4), (1, 300, 40)):
            x = turnout.ones(*shape, dtype=dtype).expand(3, *shape[1:])
            for name in ("relu", "hardtanh", "abs", "neg", "square"):
                assert getattr(turnout.ops.aten, name)(x).view(-1).shape == (3 * shape[1] * shape[2],), (name, dtype, shape)
