"""Raw CUDA kernels without a GPU: reading at indices, triangles, reductions with indices, running sums."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy_stand_in
import numpy as np
import pytest
from pretended_cuda import pretended
from test_cuda_kernels import DTYPES, NVCC, Case, Devices, agree, check, flat, kernels_of, launched_by, makers, numbers, rows

import turnout
from turnout import nn, ops
from turnout_cuda import picking, programs
from turnout_cuda.picking import spread

aten = ops.aten
# The programs whose kernels are launched by the cases of this file.
OWN = ("picking", "reduce", "scan", "sort")


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


def places(shape: tuple[int, ...], length: int, seed: int = 5, low: int = 0) -> Any:
    return np.random.default_rng(seed).integers(low, length, shape)


# ---- cases


def picked(*shape: int, dim: int, count: int) -> Iterator[Case]:
    """Slices and elements at indices along a dim."""
    where = f"{list(shape)} along {dim} at {count}"
    length, behind = shape[dim], (*shape[:dim], count, *shape[dim + 1 :])

    def selected(t: Devices) -> Any:
        return turnout.index_select(t(numbers(shape, 1)), dim, t(places((count,), length)))

    def indexed(t: Devices) -> Any:
        return t(numbers(shape, 1))[(*(slice(None),) * dim, t(places((count, 2), length, low=-length)))]

    def gathered(t: Devices) -> Any:
        return turnout.gather(t(numbers(shape, 1)), dim, t(places(behind, length)))

    def gathered_fewer(t: Devices) -> Any:
        less = tuple([n if i == dim else max(n - 1, 1) for i, n in enumerate(behind)])
        return turnout.gather(t(numbers(shape, 1)), dim, t(places(less, length)))

    yield f"index_select {where}", {"pick_rows"}, selected
    yield f"index {where}", {"pick_rows"}, indexed
    yield f"gather {where}", {"pick_elements"}, gathered
    yield f"gather {where} of a part", {"pick_elements"}, gathered_fewer


def triangles(*shape: int) -> Iterator[Case]:
    for diagonal in (0, 1, -2, 100, -100):
        for op in (turnout.triu, turnout.tril):
            yield (
                f"{op.__name__} {list(shape)} from {diagonal}",
                {"triangle"},
                lambda t, op=op, diagonal=diagonal: op(t(numbers(shape, 1)), diagonal),
            )


def reduced(*shape: int, dim: int = -1) -> Iterator[Case]:
    """Extremes with their indices, variances and norms along a dim."""
    kind = "rows" if dim in (-1, len(shape) - 1) else "columns"
    for keepdim in (False, True):
        where = f"{list(shape)} along {dim}{' kept' if keepdim else ''}"
        for name in ("max", "min"):
            op, find = getattr(turnout, name), getattr(turnout, f"arg{name}")
            kernels = {f"extreme_{kind}"}

            def extreme(t: Devices, op: Any = op, keepdim: bool = keepdim) -> Any:
                return tuple(op(t(np.round(numbers(shape, 3))), dim, keepdim))  # many are equal

            yield f"{name} {where}", kernels, extreme
            yield (
                f"arg{name} {where}",
                kernels,
                lambda t, find=find, keepdim=keepdim: find(t(np.round(numbers(shape, 3))), dim, keepdim),
            )
        for name in ("var", "std"):
            op = getattr(turnout, name)
            for correction in (0, 1):
                yield (
                    f"{name} {where} less {correction}",
                    {f"spread_{kind}"},
                    lambda t, op=op, keepdim=keepdim, correction=correction: op(
                        t(numbers(shape, 2) + 3), dim, correction=correction, keepdim=keepdim
                    ),
                )
        for order in (1, 2, float("inf")):
            yield (
                f"norm {order} {where}",
                {f"norm_{kind}"},
                lambda t, keepdim=keepdim, order=order: turnout.linalg.vector_norm(t(numbers(shape, 4)), order, dim, keepdim),
            )


def several(*shape: int, dims: Any, kernel: str) -> Iterator[Case]:
    """Variances and norms over several dims that are neighbours, or all."""
    where = f"{list(shape)} over {dims}"
    if kernel != "parts":
        yield f"var {where}", {f"spread_{kernel}"}, lambda t: turnout.var(t(numbers(shape, 2)), dims)
    for order in (1, 2, float("inf")):
        names = {f"norm_{kernel}"} | ({"norm_total"} if kernel == "parts" else set())
        yield (
            f"norm {order} {where}",
            names,
            lambda t, order=order: turnout.linalg.vector_norm(t(numbers(shape, 4)), order, dims),
        )


def running(*shape: int, dim: int = -1) -> Iterator[Case]:
    """Running sums and products along a dim."""
    where = f"{list(shape)} along {dim}"
    kind = "rows" if dim in (-1, len(shape) - 1) else "columns"
    for name in ("cumsum", "cumprod"):
        op = getattr(turnout, name)
        yield f"{name} {where}", {f"running_total_{kind}"}, lambda t, op=op: op(t(1 + 0.1 * numbers(shape, 4)), dim)
        given = places(shape, 9, low=-8)
        yield f"{name} of integers {where}", {f"running_whole_{kind}"}, lambda t, op=op, given=given: op(t(given), dim)


def in_order(*shape: int, dim: int = -1) -> Iterator[Case]:
    """Sorting along a dim, and the first elements in order."""
    where = f"{list(shape)} along {dim}"
    different = np.argsort(numbers(shape, 9), dim).astype("f8") - 3
    for down in (False, True):

        def ordered(t: Devices, down: bool = down) -> Any:
            return tuple(turnout.sort(t(np.round(numbers(shape, 3))), dim=dim, descending=down, stable=True))  # many are equal

        yield f"sort {where}{' downwards' if down else ''}", {"sort_rows"}, ordered
        for k in {1, min(shape[dim], 5), shape[dim]}:

            def first(t: Devices, k: int = k, down: bool = down) -> Any:
                return tuple(turnout.topk(t(different), k, dim, largest=down))

            yield f"topk {k} {where}{' downwards' if down else ''}", {"sort_rows"}, first


def joined() -> Iterator[Case]:
    """Tensors beside each other."""
    for dim, shapes in ((0, [(3, 4), (2, 4)]), (1, [(3, 4), (3, 1), (3, 8)]), (-1, [(2, 3, 8), (2, 3, 8)]), (0, [(5,), (300,)])):

        def together(t: Devices, dim: int = dim, shapes: Any = shapes) -> Any:
            return turnout.cat([t(numbers(shape, i)) for i, shape in enumerate(shapes)], dim)

        yield f"cat {shapes} along {dim}", {"place_rows"}, together
    yield "cat with an empty one", {"place_rows"}, lambda t: turnout.cat([t(numbers((0,), 1)), t(numbers((2, 3), 2))], 1)


CASES: list[Case] = [
    *joined(),
    *picked(1, dim=0, count=1), *picked(5, 3, dim=0, count=9), *picked(2, 5, 3, dim=1, count=7), *picked(4, dim=0, count=300),
    *picked(3, 40, dim=1, count=500), *picked(6, 32, dim=0, count=5), *picked(7, 2, 600, dim=0, count=3),
    *picked(2, 3, 4, 5, dim=-2 % 4, count=6),
    *triangles(1, 1), *triangles(5, 4), *triangles(2, 3, 3, 7), *triangles(3, 700),
    *reduced(1), *reduced(3, 5), *reduced(2, 33), *reduced(5, 37, dim=0), *reduced(2, 7, 3, dim=1), *reduced(2, 1100),
    *reduced(300, 2, dim=0), *reduced(3, 2, 40, dim=0),
    *several(3, 4, 5, dims=[-1, 1], kernel="rows"), *several(3, 4, 5, dims=[0, 1], kernel="columns"),
    *several(2, 1, 4, 3, dims=[0, 2], kernel="columns"), *several(3, 4, dims=None, kernel="rows"),
    *several(2, 20_000, dims=None, kernel="parts"), *several(3, 33_000, dims=[1], kernel="parts"),
    *running(1), *running(3, 5), *running(2, 128), *running(3, 201), *running(5, 37, dim=0), *running(2, 7, 3, dim=1),
    *running(2, 1100), *running(2, 2049), *running(300, 2, dim=0),
    *in_order(1), *in_order(3, 5), *in_order(2, 33), *in_order(2, 200), *in_order(1, 256, dim=1), *in_order(9, 4, dim=0),
    *in_order(2, 7, 3, dim=1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_raw_kernel_gives_what_cpu_gives(case: Case, dtype: str, backend: Any) -> None:
    check(case, dtype)


def test_every_kernel_is_launched_by_some_case(backend: Any) -> None:
    assert kernels_of(*OWN) <= launched_by((*CASES, *rows(2, 3)))


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("dtype", programs.MOVED.values())
def test_nvcc_compiles_what_moves_elements_for_each_size(dtype: str, arch: str, tmp_path: Path) -> None:
    assert NVCC is not None
    source = tmp_path / "picking.cu"
    source.write_text(programs.source("picking"), encoding="utf-8")
    flags = ["-Werror=all-warnings", f"-arch={arch}", "-cubin", *programs.options(dtype)]
    made = [NVCC, *flags, "-o", str(tmp_path / "picking.cubin"), str(source)]
    done = subprocess.run(made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- moving elements

ALL_DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
MOVING: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("pick_rows", lambda x, at: x.index_select(0, at)),
    ("pick_rows", lambda x, at: x.index_select(1, at)),
    ("pick_rows", lambda x, at: x[at]),
    ("pick_rows", lambda x, at: x[:, at]),
    ("pick_rows", lambda x, at: x[:, :, at.reshape(2, 2)]),
    ("pick_elements", lambda x, at: x.gather(1, at.reshape(1, 4, 1).expand(5, 4, 8).contiguous())),
    ("pick_elements", lambda x, at: x.gather(2, at.reshape(1, 1, 4).expand(5, 6, 4).contiguous())),
    ("triangle", lambda x, at: x.triu(1)),
    ("triangle", lambda x, at: x.tril(-1)),
]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("kernel", "op"), MOVING)
def test_elements_of_each_dtype_are_moved_as_they_are(kernel: str, op: Any, dtype: str, backend: Any) -> None:
    x = turnout.from_numpy(np.round(numbers((5, 6, 8), 1) * 3)).to(getattr(turnout, dtype))
    at = turnout.tensor([3, 0, 4, 3])
    cupy_stand_in.launched.clear()
    found = op(x.to("pretended"), at.to("pretended"))
    assert cupy_stand_in.launched == [(kernel, 0)]
    assert found.dtype is x.dtype
    assert found.tolist() == op(x, at).tolist()


def test_rows_are_moved_in_the_largest_pieces_that_fit(backend: Any) -> None:
    used: list[str] = []
    kept = programs.Programs.start

    def start(self: Any, name: str, dtype: str, *rest: Any) -> None:
        used.append(dtype)
        kept(self, name, dtype, *rest)

    at = turnout.tensor([1, 0], device="pretended")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs.Programs, "start", start)
        for width in (8, 4, 6, 3):
            turnout.ones(2, width, device="pretended")[at]
            turnout.ones(2, width, device="pretended", dtype=turnout.int8)[at]
    assert used == ["complex128", "uint64", "complex128", "uint32", "uint64", "uint16", "uint32", "uint8"]


def test_rows_are_spread_over_blocks() -> None:
    assert spread(5, 1) == ((1, 1), (1, 256))
    assert spread(1000, 3) == ((16, 1), (4, 64))
    assert spread(32_768, 1024) == ((32_768, 1), (256, 1))
    assert spread(1, 10**8) == ((1, 4096), (256, 1))
    assert spread(10**7, 1024) == ((65_535, 1), (256, 1))


@pytest.mark.parametrize(
    "view", [lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[:, :1].expand(6, 6), lambda x: x[1:, 1:].t()]
)
def test_arrays_in_any_layout_are_served(view: Callable[[Any], Any], backend: Any) -> None:
    here, there = makers("float64")
    x = numbers((6, 6), 1)
    at = np.array([2, 0, 1, 1, 2, 0, 1])
    for op in (
        lambda x, at: x.triu(), lambda x, at: x[at], lambda x, at: x[:, at], lambda x, at: x.index_select(1, at),
        lambda x, at: x.gather(0, at.reshape(7, 1)), lambda x, at: x.gather(1, at.reshape(1, 7)),
        lambda x, at: tuple(x.max(0)), lambda x, at: x.argmin(1), lambda x, at: x.var(1), lambda x, at: x.norm(),
        lambda x, at: x.cumsum(0), lambda x, at: x.cumprod(1), lambda x, at: tuple(x.sort(dim=0, stable=True)),
        lambda x, at: tuple(x.sort(dim=1, stable=True)),
    ):  # fmt: skip
        agree(op(view(here(x)), here(at)), op(view(there(x)), there(at)), "float64")


def test_outputs_of_any_layout_are_written(backend: Any) -> None:
    def run(t: Devices) -> Any:
        x, at = t(numbers((5, 4), 1)), t(np.array([3, 1, 0, 0, 2]))
        outs = [t(np.zeros((n, m))).t() for n, m in ((4, 5), (4, 5), (5, 5), (4, 5), (4, 5))]
        turnout.triu(x, out=outs[0])
        turnout.index_select(x, 0, at, out=outs[1])
        turnout.index_select(x, 1, at, out=outs[2])
        turnout.gather(x, 1, at.reshape(5, 1).expand(5, 4).contiguous(), out=outs[3])
        turnout.cumsum(x, 1, out=outs[4])
        return tuple(outs)

    here, there = makers("float32")
    agree(run(here), run(there), "float32")


def test_outputs_may_be_the_inputs(backend: Any) -> None:
    def run(t: Devices) -> Any:
        made = [t(numbers((6, 6), seed)) for seed in range(5)]
        made[0].triu_()
        made[1].t().tril_(1)
        made[2].cumsum_(0)
        made[3].cumsum_(1)
        turnout.gather(made[4], 1, t(places((6, 6), 6)), out=made[4])
        return tuple(made)

    here, there = makers("float64")
    agree(run(here), run(there), "float64")


READING: list[tuple[str, bool, Callable[[Any, Any], Any]]] = [  # (kernel, whether negative indices count from the end, call)
    ("pick_rows", False, lambda x, at: x.index_select(0, at)),
    ("pick_rows", True, lambda x, at: x[at]),
    ("pick_rows", True, lambda x, at: x[:, at]),
    ("pick_rows", False, lambda x, at: nn.functional.embedding(at, x)),
    ("pick_elements", False, lambda x, at: x.gather(0, at.reshape(2, 1))),
]


@pytest.mark.parametrize("given", [[0, 3], [-4, 1], [2, -1], [1, 2**40]])
@pytest.mark.parametrize(("kernel", "wraps", "op"), READING)
def test_a_wrong_index_is_the_error_of_cpu(kernel: str, wraps: bool, op: Any, given: list[int], backend: Any) -> None:
    x, at = turnout.arange(9.0).reshape(3, 3), turnout.tensor(given)
    cupy_stand_in.launched.clear()
    if wraps and given == [2, -1]:
        assert op(x.to("pretended"), at.to("pretended")).tolist() == op(x, at).tolist()
    else:
        for place in ("cpu", "pretended"):
            with pytest.raises(IndexError, match="is out of bounds for a dimension of size 3"):
                op(x.to(place), at.to(place))
    assert {name for name, _ in cupy_stand_in.launched} == {kernel}


def test_nothing_waits_while_work_is_recorded(backend: Any) -> None:
    x = turnout.arange(12.0, device="pretended").reshape(3, 4)
    at, out = turnout.tensor([2, 7], device="pretended"), turnout.zeros(2, 4, device="pretended")
    cuda = backend.cupy.cuda
    with cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        turnout.index_select(x, 0, at, out=out)
        graph = stream.end_capture()
    graph.launch()
    assert out.tolist() == [[8.0, 9.0, 10.0, 11.0], [0.0] * 4]


def test_embeddings_and_their_gradients(backend: Any) -> None:
    def run(t: Devices) -> Any:
        weight = t(numbers((7, 12), 1)).requires_grad_()
        rows = nn.functional.embedding(t(places((4, 3), 7)), weight)
        (rows * t(numbers((4, 3, 12), 2))).sum().backward()
        return rows.detach(), weight.grad

    here, there = makers("float32")
    cupy_stand_in.launched.clear()
    agree(run(here), run(there), "float32")
    assert ("pick_rows", 0) in cupy_stand_in.launched


@pytest.mark.parametrize(
    "op",
    [
        lambda x, at: x[at], lambda x, at: x.index_select(1, at), lambda x, at: x.gather(1, at.reshape(1, 4)),
        lambda x, at: x.triu(), lambda x, at: x.max(1)[0], lambda x, at: x.var(0), lambda x, at: x.std(1), lambda x, at: x.norm(),
        lambda x, at: turnout.linalg.vector_norm(x, float("inf"), 1), lambda x, at: x.cumsum(1), lambda x, at: x.cumprod(0),
        lambda x, at: x.sort(1)[0], lambda x, at: x.topk(2, 0)[0],
    ],
)  # fmt: skip
def test_gradients_flow_through_raw_kernels(op: Any, backend: Any) -> None:
    def run(t: Devices) -> Any:
        x = t(numbers((5, 6), 1)).requires_grad_()
        y = op(x, t(np.array([3, 0, 4, 3])))
        (y * t(numbers(tuple(y.shape), 2))).sum().backward()
        return x.grad

    here, there = makers("float64")
    cupy_stand_in.launched.clear()
    agree(run(here), run(there), "float64")
    assert cupy_stand_in.launched


# ---- numbers that are none, and tensors without any


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("length", [1, 3, 40, 1200])
def test_rows_with_infinities_and_nan_are_those_of_cpu(length: int, value: float, backend: Any) -> None:
    here, there = makers("float32")
    x = numbers((4, length), 1)
    x[0], x[1, 0], x[2, -1], x[3, length // 2 :] = value, value, value, -np.inf
    x[1, -1] = value
    for op in (
        lambda x: x.max(1), lambda x: x.min(1), lambda x: x.argmax(1), lambda x: x.argmin(1), lambda x: x.t().contiguous().max(0),
        lambda x: x.t().contiguous().argmin(0), lambda x: x.var(1), lambda x: x.std(1), lambda x: x.cumsum(1),
        lambda x: x.cumprod(1), lambda x: x.norm(), lambda x: turnout.linalg.vector_norm(x, 1, 1),
        lambda x: turnout.linalg.vector_norm(x, float("inf"), 1), lambda x: turnout.linalg.vector_norm(x, float("inf"), 0),
        lambda x: x.triu(), lambda x: x.sort(dim=1, stable=True), lambda x: x.sort(dim=0, descending=True, stable=True),
        lambda x: x.topk(x.shape[1], 1), lambda x: x.topk(x.shape[1], 1, largest=False),
    ):  # fmt: skip
        agree(tuple(flat(op(here(x)))), tuple(flat(op(there(x)))), "float32")


@pytest.mark.parametrize("correction", [0, 1, 2.5, 3, 7])
def test_variances_of_few_elements(correction: float, backend: Any) -> None:
    here, there = makers("float32")
    for x in (numbers((4, 3), 1), np.zeros((2, 3)), numbers((5, 1), 1)):
        for dim in (0, 1):
            agree(here(x).var(dim, correction=correction), there(x).var(dim, correction=correction), "float32")


def test_sums_of_many_numbers_keep_their_digits(backend: Any) -> None:
    x = turnout.full((1, 200_000), 0.1, device="pretended")
    wanted = 0.1 * np.sqrt(200_000)
    assert abs(float(x.norm()) / wanted - 1) < 1e-6
    assert abs(float(turnout.linalg.vector_norm(x.reshape(-1, 2), 1, 0)[0]) / 1e4 - 1) < 1e-6
    assert float(x.reshape(-1, 20_000).std(1).max()) < 1e-7
    assert abs(float(x.reshape(-1, 20_000).cumsum(1)[0, -1]) / 2000 - 1) < 1e-6


def test_tensors_without_elements_launch_nothing(backend: Any) -> None:
    here, there = makers("float32")
    cupy_stand_in.launched.clear()
    nothing = np.zeros((0,), "i8")
    for op in (
        lambda x, at: x.index_select(0, at), lambda x, at: x[at], lambda x, at: x.gather(1, at.reshape(0, 1)),
        lambda x, at: x.triu(), lambda x, at: x.max(1), lambda x, at: x.argmax(1), lambda x, at: x.var(1), lambda x, at: x.var(0),
        lambda x, at: x.norm(), lambda x, at: x.cumsum(1), lambda x, at: x.cumprod(0), lambda x, at: x.sort(1),
        lambda x, at: x.topk(2, 1),
    ):  # fmt: skip
        found, wanted = op(here(np.zeros((0, 4))), here(nothing)), op(there(np.zeros((0, 4))), there(nothing))
        agree(tuple(flat(found)), tuple(flat(wanted)), "float32")
    assert cupy_stand_in.launched == []


def test_tensors_without_dims_go_to_the_shared_kernels(backend: Any) -> None:
    here, there = makers("float32")
    x, at = np.asarray([2.5]), np.asarray([0])
    cupy_stand_in.launched.clear()
    for op in (
        lambda x, at: x.index_select(0, at), lambda x, at: x.gather(0, at), lambda x, at: x.max(0), lambda x, at: x.argmin(0),
        lambda x, at: x.var(0, correction=0), lambda x, at: x.norm(), lambda x, at: x.cumsum(0),
    ):  # fmt: skip
        found, wanted = [op(t(x).reshape(()), t(at).reshape(())) for t in (here, there)]
        agree(tuple(flat(found)), tuple(flat(wanted)), "float32")
    assert cupy_stand_in.launched == []


def test_what_has_no_kernel_goes_to_the_shared_ones(backend: Any) -> None:
    here, there = makers("float32")
    x, at = numbers((3, 4, 5), 1), np.array([2, 0, 1])
    cupy_stand_in.launched.clear()
    for op in (
        lambda x, at: x[at, at], lambda x, at: x.var([0, 2]), lambda x, at: turnout.linalg.vector_norm(x, 3, 1),
        lambda x, at: x.reshape(-1)[:1].expand(40_000).max(0), lambda x, at: x.reshape(-1)[:1].expand(40_000).cumsum(0),
        lambda x, at: at.argmax(0), lambda x, at: x.reshape(-1)[:1].expand(2049).sort(stable=True), lambda x, at: at.sort(),
        lambda x, at: x.t()[at] if x.ndim == 2 else x.permute(2, 1, 0)[at],
    ):  # fmt: skip
        agree(tuple(flat(op(here(x), here(at)))), tuple(flat(op(there(x), there(at)))), "float32")
    assert cupy_stand_in.launched == []


def test_arrays_too_large_for_32_bits_are_numbered_in_64(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "_NARROW", 0)
    for dtype in ("float16", "float64"):
        here, there = makers(dtype)
        for _, _, run in (*picked(2, 5, 3, dim=1, count=7), *picked(3, 40, dim=1, count=500), *triangles(2, 3, 7)):
            agree(run(here), run(there), dtype)
