"""What a row prepares for its plans computes what its kernel does, to the last bit, and raises the same errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
import turnout_arrays
from turnout.dtypes import dtype_named
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.specs import Out
from turnout_cpu.kernels import kernels as cpu_kernels
from turnout_cpu.pool import Pool

FLOATS = ("float32", "float64")
SPECIAL = [-0.0, float("nan")]


def finite(dtype: str, *shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def floats(dtype: str, *shape: int, seed: int = 0) -> Any:
    """Numbers, of which some are special."""
    made = finite(dtype, *shape, seed=seed)
    made.reshape(-1)[:4:2] = SPECIAL
    return made


MASK = np.array([True, False, True, False])
Case = tuple[str, Callable[[str], tuple[Any, ...]], tuple[tuple[int, ...], ...], tuple[str, ...]]
SAME = "same"  # an output of the dtype of the floats
# Operator, arguments, the shapes of the outputs, their dtypes.
CASES: list[Case] = [
    ("lerp.Scalar_out", lambda t: (floats(t, 4), floats(t, 4, seed=1), 0.25), ((4,),), (SAME,)),
    ("lerp.Scalar_out", lambda t: (floats(t, 3, 1), floats(t, 4, seed=1), 0.75), ((3, 4),), (SAME,)),
    ("where.self_out", lambda t: (MASK, floats(t, 4), floats(t, 4, seed=1)), ((4,),), (SAME,)),
    ("where.self_out", lambda t: (MASK, 2.5, floats(t, 4)), ((4,),), (SAME,)),
    ("where.self_out", lambda t: (MASK, floats(t, 3, 4), -0.0), ((3, 4),), (SAME,)),
    ("tril.out", lambda t: (floats(t, 2, 3, 4), 1), ((2, 3, 4),), (SAME,)),
    ("tril.out", lambda t: (floats(t, 4, 3)[::2], -1), ((2, 3),), (SAME,)),
    ("triu.out", lambda t: (floats(t, 3, 4), 0), ((3, 4),), (SAME,)),
    ("any.all_out", lambda t: (MASK,), ((),), ("bool",)),
    ("all.all_out", lambda t: (np.zeros((2, 0), bool),), ((),), ("bool",)),
    ("scatter.value_out", lambda t: (floats(t, 3, 4), 1, np.array([[0, 3], [1, 1]]), 1.5), ((3, 4),), (SAME,)),
    ("scatter.value_out", lambda t: (floats(t, 4), 0, np.array([3, 0]), -0.0), ((4,),), (SAME,)),
    ("cumsum.out", lambda t: (finite(t, 3, 4), 1, None), ((3, 4),), (SAME,)),
    ("cumprod.out", lambda t: (finite(t, 3, 4)[::2], 0, None), ((2, 4),), (SAME,)),
    ("sort.values_stable", lambda t: (floats(t, 3, 4), False, 1, False), ((3, 4),) * 2, (SAME, "int64")),
    ("sort.values_stable", lambda t: (floats(t, 4), True, 0, True), ((4,),) * 2, (SAME, "int64")),
    ("sort.values_stable", lambda t: (np.round(finite(t, 5, 3)), True, 0, True), ((5, 3),) * 2, (SAME, "int64")),
    ("topk.values", lambda t: (floats(t, 4), 2, 0, True, True), ((2,),) * 2, (SAME, "int64")),
    ("topk.values", lambda t: (np.round(finite(t, 4, 3)), 4, 0, True, True), ((4, 3),) * 2, (SAME, "int64")),
    ("topk.values", lambda t: (floats(t, 3, 4), 3, 1, False, True), ((3, 3),) * 2, (SAME, "int64")),
    ("max.dim_max", lambda t: (floats(t, 3, 4), 1, False), ((3,),) * 2, (SAME, "int64")),
    ("min.dim_min", lambda t: (floats(t, 3, 4), 0, True), ((1, 4),) * 2, (SAME, "int64")),
    ("max.dim_max", lambda t: (floats(t, 4), -1, False), ((),) * 2, (SAME, "int64")),
    ("constant_pad_nd.out", lambda t: (floats(t, 2, 3), (1, 2), 0.5), ((2, 6),), (SAME,)),
    ("constant_pad_nd.out", lambda t: (floats(t, 2, 3), (-1, 2, 1, 0), -0.0), ((3, 4),), (SAME,)),
    ("index_select.out", lambda t: (floats(t, 3, 4), 1, np.array([3, 0, 3])), ((3, 3),), (SAME,)),
    ("gather.out", lambda t: (floats(t, 4), 0, np.array([3, 0, 3]), False), ((3,),), (SAME,)),
    ("nll_loss_forward.output", lambda t: (finite(t, 3, 4), np.array([3, 0, 1]), None, 1, -100), ((), ()), (SAME, SAME)),
    ("nll_loss_forward.output", lambda t: (finite(t, 3, 4), np.array([3, 0, 1]), None, 2, -100), ((), ()), (SAME, SAME)),
    *(
        ("convolution.out", lambda t, a=a: tuple(v(t) if callable(v) else v for v in a), (shape,), (SAME,))
        for a, shape in [
            (
                (lambda t: finite(t, 1, 2, 4, 4), lambda t: finite(t, 2, 2, 3, 3), None, (1,), (0,), (1,), False, (0,), 1),
                (1, 2, 2, 2),
            ),
            (
                (lambda t: finite(t, 3, 4, 5, 4), lambda t: finite(t, 6, 2, 3, 2), lambda t: finite(t, 6),
                 (2, 1), (1, 0), (1, 2), False, (0,), 2), (3, 6, 3, 2),
            ),
            ((lambda t: finite(t, 2, 3, 7), lambda t: finite(t, 4, 3, 2), None, (2,), (1,), (1,), False, (0,), 1), (2, 4, 4)),
        ]
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables() -> list[dict[str, Row]]:
    """The tables of an array module alone, and of the device cpu."""
    made = [turnout_arrays.kernels(np), cpu_kernels(Pool(lambda: 1))]
    return [{name: row for name, row in table.items() if isinstance(row, Row)} for table in made]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("at", range(len(CASES)))
def test_a_prepared_function_gives_the_bits_of_the_kernel(tables: list[dict[str, Row]], at: int, dtype: str) -> None:
    name, arguments, shapes, dtypes = CASES[at]
    kinds = [dtype if kind == SAME else kind for kind in dtypes]
    outs = [Out(shape, dtype_named(kind)) for shape, kind in zip(shapes, kinds, strict=True)]
    for table in tables:
        row, args = table[name], arguments(dtype)
        assert row.prepares is not None
        prepared = row.prepares(outs, *args)
        assert prepared is not None, name
        wanted, found = ([np.full(s, 3, k) for s, k in zip(shapes, kinds, strict=True)] for _ in range(2))
        row.fn(*args, *wanted)
        prepared(*args, *found)
        assert [a.tobytes() for a in wanted] == [a.tobytes() for a in found]


def test_a_loss_that_ignores_a_row_is_no_prepared_one() -> None:
    logs = turnout.tensor([[-1.0, -2.0], [-3.0, -4.0]])
    for _ in range(3):
        assert turnout.nn.functional.nll_loss(logs, turnout.tensor([0, 1])).item() == 2.5
        assert turnout.nn.functional.nll_loss(logs, turnout.tensor([0, -100])).item() == 1.0


def test_rows_of_compiled_kernels_prepare_too() -> None:
    functional = turnout.nn.functional
    q = turnout.tensor(finite("float32", 1, 2, 4, 4).tolist())
    weight = turnout.tensor([0.5, 2.0])
    calls: dict[str, Callable[[turnout.Tensor], turnout.Tensor]] = {
        "pooling": lambda x: functional.max_pool2d(x, 2),
        "windows over the edge": lambda x: functional.max_pool2d(x, 3, 1, 1),
        "groups": lambda x: functional.group_norm(x, 2),
        "groups with parameters": lambda x: functional.group_norm(x, 1, weight, weight),
        "batches": lambda x: functional.batch_norm(x, weight, weight, training=False),
        "batches with parameters": lambda x: functional.batch_norm(x, weight, weight, weight, weight),
    }
    for name, call in calls.items():
        found = {call(x).numpy().tobytes() for x in (q, q.clone(), q.clone())}
        assert len(found) == 1, name
        between = q.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # the same numbers in another order
        assert np.allclose(call(between).contiguous().numpy(), call(q).numpy()), name
