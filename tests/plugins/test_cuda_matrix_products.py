"""Products of matrices through cuBLAS's C interface, over a stand-in for it: what it is asked for, and what it refuses.

What products give is checked by the samples of `turnout_conformance.cases.sets.sizes`, in `test_cuda_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cublas_stand_in
import pytest
from cuda_launches import Devices, agree, numbers
from pretended_cuda import pretended

import turnout
from outcomes import refused
from turnout_cuda.matrix_products import PRECISIONS

PRECISION = ["highest"]


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended(precision=lambda: PRECISION[0]) as made:
        yield made


def test_a_sum_may_be_its_own_output_and_nan_is_ignored_without_it(backend: Any) -> None:
    def run(t: Devices) -> Any:
        c, a, b = (t(numbers(shape, seed)) for seed, shape in enumerate(((3, 5), (3, 4), (4, 5))))
        c.addmm_(a, b, beta=2)
        return turnout.addmm(turnout.full_like(c, float("nan")), a, b, beta=0) + c

    agree(run)


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
    finally:
        PRECISION[0] = "highest"
    (manifest,) = (each for each in turnout.plugins.catalog().manifests if each.name == "cuda")
    assert manifest.options["matmul_precision"].choices == tuple(PRECISIONS)


def test_a_failure_of_cublas_names_the_function(backend: Any) -> None:
    wide = turnout.ones(1, (1 << 20) + 1, device="pretended")
    assert "cuBLAS: cublasGemmEx failed with status 7" in refused(RuntimeError, lambda: turnout.mm(wide.t()[:1], wide))


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


def rows_added() -> list[Any]:
    """The calls of cuBLASLt since the last `clear`."""
    return [(c["kind"], c["sizes"], c["compute"]) for c in cublas_stand_in.calls if "row" in c]


def again(call: Callable[[], Any]) -> Any:
    """What a call gives, the second time by its plan."""
    call()
    return call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_linear_layer_is_one_call_for_the_dtypes_that_cublaslt_adds_rows_in(dtype: str, backend: Any) -> None:
    def run(t: Devices) -> Any:
        x, w, b = (t(numbers(shape, seed)) for seed, shape in enumerate(((6, 8), (24, 8), (24,))))
        turned = x.t().contiguous().t(), w.t().contiguous()
        calls = [(b, x, w.t()), (b, *turned), (b, x[:1], w.t()), (b.expand(6, 24), x, w.t())]
        return [again(partial(turnout.nn.functional.linear, x, w, b)), *[again(partial(turnout.addmm, *args)) for args in calls]]

    cublas_stand_in.calls.clear()
    agree(run, dtype)
    kind, sums = {"float16": (2, 68), "bfloat16": (14, 68), "float32": (0, 68)}.get(dtype, (None, None))
    sizes = [(24, 6)] * 4 + [(24, 1)] if kind is not None else []
    assert rows_added() == [(kind, each, sums) for each in sizes]


def test_what_cublaslt_does_not_compute_is_computed_by_a_product_onto_copied_rows(backend: Any) -> None:
    def run(t: Devices) -> Any:
        x, w, b = (t(numbers(shape, seed)) for seed, shape in enumerate(((5, 8), (24, 8), (28,))))
        return [again(partial(turnout.addmm, b[i : i + 24], x, w.t())) for i in (0, 1, 4)]

    cublas_stand_in.calls.clear()
    agree(run)  # the second row begins between sixteen bytes
    assert len(rows_added()) == 3
    cublas_stand_in.calls.clear()
    cublas_stand_in.refused.append("algorithm")
    try:
        agree(lambda t: again(lambda: turnout.addmm(t(numbers((5,), 1)), t(numbers((3, 7), 2)), t(numbers((7, 5), 3)))))
    finally:
        cublas_stand_in.refused.clear()
    assert rows_added() == []


def test_a_linear_layer_is_computed_as_the_setting_says_and_where_cublaslt_fails_as_any_sum(backend: Any) -> None:
    x, w, b = (turnout.ones(*shape, device="pretended") for shape in ((2, 12), (4, 12), (4,)))
    cublas_stand_in.calls.clear()
    try:
        for PRECISION[0] in ("highest", "high"):
            again(lambda: turnout.addmm(b, x, w.t()))
        assert [sums for _, _, sums in rows_added()] == [68, 77, 77]
        cublas_stand_in.refused.append("product")
        assert turnout.addmm(b, x, w.t()).tolist() == [[13.0] * 4] * 2
        assert (len(rows_added()), "row" in cublas_stand_in.calls[-1]) == (3, False)
    finally:
        PRECISION[0] = "highest"
        cublas_stand_in.refused.clear()
