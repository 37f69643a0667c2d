"""Products of matrices through cuBLAS's C interface, over a stand-in for it: what it is asked for, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cublas_stand_in
import numpy as np
import pytest
from pretended_cuda import pretended
from test_cuda_kernels import numbers

import turnout
from turnout import nn
from turnout.errors import ArgumentError

PRECISION = ["highest"]
DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended(precision=lambda: PRECISION[0]) as made:
        yield made


def both(run: Any, dtype: str, *shapes: tuple[int, ...]) -> tuple[Any, Any]:
    """What a function of tensors of these shapes gives on the pretended device, and on cpu."""
    given = [turnout.from_numpy(np.ascontiguousarray(numbers(s, i))).to(getattr(turnout, dtype)) for i, s in enumerate(shapes)]
    return run(*[t.to("pretended") for t in given]), run(*given)


def agree(pair: tuple[Any, Any], dtype: str) -> None:
    found, wanted = pair
    assert (found.dtype, found.shape, found.stride()) == (wanted.dtype, wanted.shape, wanted.stride())
    limit = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5, "complex64": 1e-5}.get(dtype, 1e-12)
    wide = turnout.complex128 if dtype.startswith("complex") else turnout.float64
    assert turnout.allclose(found.cpu().to(wide), wanted.to(wide), rtol=limit, atol=limit)


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 4), (4, 5)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)),
    ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 6, 3, 4), (2, 6, 4, 2)),
    ((2, 1, 3, 4), (1, 1, 4, 2)), ((2, 3, 4), (4,)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((0, 3, 4), (0, 4, 5)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_are_those_of_cpu(shapes: Any, dtype: str, backend: Any) -> None:
    agree(both(turnout.matmul, dtype, *shapes), dtype)


VIEWS: list[Any] = [
    lambda a, b: turnout.mm(a.t(), b), lambda a, b: turnout.mm(a.t(), b.t().contiguous().t()), lambda a, b: a[:, ::2].t() @ b,
    lambda a, b: a[1:3].t() @ b[1:3], lambda a, b: a[:, 1:].t() @ b[:, 2:], lambda a, b: a[:, :1].t() @ b,
    lambda a, b: a[:1].t() @ b[:1],
    lambda a, b: turnout.bmm(a.expand(3, 4, 6).transpose(1, 2), b.expand(3, 4, 7)),
    lambda a, b: turnout.bmm(a.view(2, 2, 6), b[:2].view(2, 7, 1)[:, :6]),
    lambda a, b: turnout.matmul(a.view(2, 2, 2, 3).transpose(0, 1), b.view(2, 2, 7, 1)[:, :, :3]),
    lambda a, b: turnout.bmm(a.view(4, 2, 3)[::2], b.view(4, 7, 1)[::2, :3]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("index", range(len(VIEWS)))
def test_matrices_of_any_layout_are_multiplied(index: int, dtype: str, backend: Any) -> None:
    agree(both(VIEWS[index], dtype, (4, 6), (4, 7)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_with_a_product_are_those_of_cpu(dtype: str, backend: Any) -> None:
    for beta, alpha in ((1, 1), (0.5, 2), (0, 1), (0, 0.5)):
        options = {"beta": beta, "alpha": alpha}
        agree(both(lambda c, a, b, o=options: turnout.addmm(c, a, b, **o), dtype, (5,), (3, 4), (4, 5)), dtype)
        agree(both(lambda c, a, b, o=options: turnout.addmm(c, a, b, **o), dtype, (3, 5), (3, 0), (0, 5)), dtype)
        agree(both(lambda c, a, b, o=options: turnout.addmv(c, a, b, **o), dtype, (3,), (3, 4), (4,)), dtype)
        agree(both(lambda c, a, b, o=options: turnout.baddbmm(c, a, b, **o), dtype, (3, 5), (2, 3, 4), (2, 4, 5)), dtype)
    agree(both(nn.functional.linear, dtype, (6, 4), (5, 4), (5,)), dtype)


def test_a_sum_may_be_its_own_output_and_nan_is_ignored_without_it(backend: Any) -> None:
    def run(c: Any, a: Any, b: Any) -> Any:
        c.addmm_(a, b, beta=2)
        return turnout.addmm(turnout.full_like(c, float("nan")), a, b, beta=0) + c

    agree(both(run, "float32", (3, 5), (3, 4), (4, 5)), "float32")


def test_outputs_of_any_layout_are_written(backend: Any) -> None:
    def run(a: Any, b: Any) -> Any:
        out = turnout.zeros(5, 3, dtype=a.dtype, device=a.device)
        turnout.mm(a, b, out=out.t())
        return out

    agree(both(run, "float32", (3, 4), (4, 5)), "float32")


def test_a_batch_is_one_call_that_copies_nothing(backend: Any) -> None:
    a, b = turnout.ones(3, 2, 4, device="pretended"), turnout.ones(3, 5, 4, device="pretended")
    cublas_stand_in.calls.clear()
    turnout.bmm(a, b.transpose(1, 2))
    turnout.matmul(a, b[0].t())
    assert [(c["batch"], c["sizes"], c["steps"]) for c in cublas_stand_in.calls] == [
        (3, (5, 2, 4), (20, 8)),
        (1, (5, 6, 4), (0, 0)),
    ]


def test_integers_are_multiplied_by_loops(backend: Any) -> None:
    cublas_stand_in.calls.clear()
    x = turnout.arange(6, device="pretended").view(2, 3)
    assert (x @ x.t()).tolist() == [[5, 14], [14, 50]]
    assert cublas_stand_in.calls == []


def test_float32_is_multiplied_as_the_setting_says(backend: Any) -> None:
    x = turnout.ones(2, 2, device="pretended")
    cublas_stand_in.calls.clear()
    try:
        for PRECISION[0] in ("highest", "high"):
            turnout.mm(x, x)
            turnout.mm(x.double(), x.double())
        assert [c["compute"] for c in cublas_stand_in.calls] == [68, 70, 77, 70]
        PRECISION[0] = "medium"
        with pytest.raises(ArgumentError) as caught:
            turnout.mm(x, x)
    finally:
        PRECISION[0] = "highest"
    assert str(caught.value) == "plugin.cuda.matmul_precision: expected one of highest, high, got 'medium'"


def test_a_failure_of_cublas_names_the_function(backend: Any) -> None:
    wide = turnout.ones(1, (1 << 20) + 1, device="pretended")
    with pytest.raises(RuntimeError) as caught:
        turnout.mm(wide.t()[:1], wide)
    assert "cuBLAS: cublasGemmEx failed with status 7" in str(caught.value)


def test_shapes_that_do_not_fit_are_the_error_that_they_are_on_cpu(backend: Any) -> None:
    def error(device: str) -> str:
        a, b, c = (turnout.ones(*s, device=device) for s in ((1, 2, 3), (4, 3, 2), (4, 2, 2)))
        texts = []
        calls = (lambda: turnout.bmm(a, b), lambda: turnout.baddbmm(c, a, b), lambda: turnout.addmv(a[:, :, 0], a[0], b[0, :, 0]))
        for call in calls:
            with pytest.raises(turnout.errors.ShapeError) as caught:
                call()
            texts.append(str(caught.value).partition("\n")[0])
        return "; ".join(texts)

    assert error("pretended") == error("cpu")
