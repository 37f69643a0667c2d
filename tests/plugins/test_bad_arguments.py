"""Every operator of the table of cases with an argument that is wrong: what it raises names the operator, in Turnout's words."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import turnout
from outcomes import refused
from random_programs import bad_arguments
from turnout.errors import ArgumentError, DimError, DTypeError, OutOfMemoryError, RangeError, ShapeError, TurnoutError
from turnout_conformance.cases import CASES

aten = turnout.ops.aten


def test_an_error_of_any_operator_is_one_of_turnout_and_names_the_operator(seeds: Callable[[int], range]) -> None:
    for seed in seeds(2 * len(CASES)):
        program = bad_arguments.program(seed)
        found = bad_arguments.fault(program)
        if found:
            pytest.fail(f"seed {seed}: {found}\n\n{program}\n\n--seed {seed} --programs 1 runs it again")


def test_the_sweep_reaches_every_case() -> None:
    assert {bad_arguments.program(seed).op for seed in range(len(CASES))} == {case.op for case in CASES}


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("bad"), "ValueError is not an error of Turnout: bad"),
        (ShapeError("shapes do not fit"), "the text names no operator: shapes do not fit"),
        (TypeError("f() got an unexpected keyword argument 'x'"), "TypeError is not an error of Turnout: f() got an"),
    ],
)
def test_the_sweep_finds_an_error_that_is_not_as_it_should_be(error: Exception, why: str) -> None:
    assert bad_arguments.judged(error).startswith(why)


def test_the_sweep_finds_the_text_of_an_array_library() -> None:
    error = DimError("aten::index.Tensor: axis 9 is out of bounds")
    error.__cause__ = IndexError("axis 9 is out of bounds")
    assert bad_arguments.judged(error) == "the text is that of a IndexError: aten::index.Tensor: axis 9 is out of bounds"
    assert bad_arguments.judged(ShapeError("cat: shapes do not fit")) == ""


def test_a_tensor_that_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad_arguments, "find_operator", lambda name: lambda x: x.add_(1))
    program = bad_arguments.Program("exp", "float32", (bad_arguments.T([1.0]),), {})
    assert bad_arguments.fault(program) == "a tensor among the arguments has changed"


x = turnout.arange(6.0).reshape(2, 3)
HUGE = 2**70
# ruff: noqa: E501 - rows of a table
# fmt: off
TEXTS: list[tuple[Callable[[], object], type[TurnoutError], str]] = [
    (lambda: x + turnout.ones(2, 2), ShapeError, "add: shapes [2, 3] and [2, 2] do not broadcast: 3 against 2 at dim 1"),
    (lambda: x.sum(2), DimError, "sum: dim 2 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    (lambda: x.transpose(0, 5), DimError, "transpose: dim 5 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    (lambda: x.transpose_(0, 5), DimError, "transpose_: dim 5 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    (lambda: x.unbind(4), DimError, "unbind: dim 4 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    (lambda: x.unique_consecutive(dim=-7), DimError, "unique_consecutive: dim -7 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    (lambda: aten.hardshrink(x.long()), TurnoutError, "hardshrink is not defined for int64 tensors"),
    (lambda: aten._upsample_nearest_exact1d(x[None], [5], 10**400), RangeError, "aten::_upsample_nearest_exact1d: argument 'scales' must be a number that fits in a float, got int 0x"),
    (lambda: aten.upsample_nearest1d.vec(x[None], None, [10**400]), RangeError, "aten::upsample_nearest1d.vec: argument 'scale_factors' must be a number that fits in a float, got int 0x"),
    (lambda: aten.upsample_nearest1d.vec(x[None], None, [math.inf]), ArgumentError, "upsample: scale_factors must be finite, got [inf]"),
    (lambda: x[turnout.tensor([0, 7])], DimError, "index: index 7 is out of bounds for a dimension of size 2"),
    (lambda: aten.index_put(x, [None, turnout.tensor([-4])], turnout.zeros(2, 1)), DimError, "index_put: index -4 is out of bounds for a dimension of size 3"),
    (lambda: aten._unsafe_masked_index(x[0], x[0] > 0, [x[0].long()] * 2, 0), DimError, "unsafe_masked_index: too many indices: 2 for a tensor of 1 dimensions"),
    (lambda: aten.nonzero_static(x, size=2, fill_value=HUGE), RangeError, f"aten::nonzero_static: argument 'fill_value' must be an int in -2**63 to 2**63 - 1, got int {HUGE}"),
    (lambda: aten.vander(x[0], 2**62), OutOfMemoryError, "aten::vander: cpu has no room for the result"),
    (lambda: aten.im2col(x[None, None], [1, 1], [1, 1], [0, 0], [2**62, 1]), RangeError, "aten::im2col: a number among the arguments, or a size that they lead to, exceeds 64 bits"),
    (lambda: x.std(1, correction=1j), DTypeError, "std: correction must be a real number, got 1j"),
    (lambda: aten.upsample_linear1d_backward(x[:1, None].to(turnout.complex64), [3], [1, 1, 2], False), DTypeError, "upsample_linear1d_backward: not defined for complex64 tensors"),
    (lambda: aten._softmax_backward_data(x, x, -1, turnout.complex64), DTypeError, "softmax_backward_data: not defined for complex64 tensors"),
    (lambda: turnout.tensordot(x, turnout.tensor(1.0), dims=([0], [0])), DimError, "tensordot: other has no dimensions, got dims [0]"),
    (lambda: turnout.tensordot(turnout.tensor(1.0), x, dims=1), ArgumentError, "tensordot: dims must be two lists, or a number of dimensions that both shapes [] and [2, 3] have, got 1"),
    (lambda: turnout.tensordot(x, x, dims=[1]), ArgumentError, "tensordot: dims must be two lists, or a number of dimensions that both shapes [2, 3] and [2, 3] have, got [1]"),
    (lambda: turnout.linalg.vander(turnout.tensor(2.0)), ShapeError, "linalg.vander: N must be greater than 1, got 1"),
    (lambda: aten._fft_r2c(x, [1], 3, True), ArgumentError, "fft: normalization must be 0 (none), 1 (by the root of n) or 2 (by n), got 3"),
    (lambda: turnout.fft.fftshift(turnout.tensor(1.0), [0]), DimError, "fft: dim 0 cannot be shifted, because the tensor has no dimensions"),
    (lambda: aten.mvlgamma(x, 10**15), ArgumentError, "mvlgamma: p must be at most 1000000, got 1000000000000000"),
    (lambda: turnout.special.chebyshev_polynomial_t(x, 1e30), ArgumentError, "special_chebyshev_polynomial_t: 'n' must be at most 1000000, got 1e+30"),
    (lambda: aten.ormqr(x[0], x[0], x), ShapeError, "ormqr: reflections of shape [3] do not fit a matrix of shape [2, 3]"),
    (lambda: aten.glu_backward(x[0, 0], x[0, 0], 0), ShapeError, "glu_backward: needs at least one dimension, got a 0-dim tensor"),
    (lambda: aten.lu_unpack(turnout.eye(2), turnout.tensor([0, 2], dtype=turnout.int32)), ArgumentError, "lu_unpack: 'LU_pivots' must lie between 1 and 2, as those of lu_factor do"),
]
# fmt: on


@pytest.mark.parametrize(("call", "kind", "says"), TEXTS, ids=[row[2][:50] for row in TEXTS])
def test_what_the_sweep_found_is_said_in_turnouts_words(call: Callable[[], object], kind: type[TurnoutError], says: str) -> None:
    assert refused(kind, call).partition("\n")[0].startswith(says)


@pytest.mark.parametrize("pivots", [[0, 2], [3, 2], [1, -2], [-2, 1], [-3, -3], [-1, -2]])
def test_pivots_that_would_make_lapack_write_outside_its_matrices_are_refused(pivots: list[int]) -> None:
    LD = turnout.tensor([[2.0, 0.0], [0.5, 3.0]])
    assert refused(ArgumentError, lambda: turnout.linalg.ldl_solve(LD, turnout.tensor(pivots), turnout.ones(2, 1))) == (
        "linalg.ldl_solve: 'pivots' must be those of linalg.ldl_factor, from 1 to 2, or two equal ones from -2 to -1 in a row; "
        f"got {pivots}"
    )


def test_pivots_of_blocks_of_two_rows_are_solved_with() -> None:
    A = turnout.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    LD, pivots = turnout.linalg.ldl_factor(A)
    assert min(pivots.tolist()) < 0
    turnout.testing.assert_close(A @ turnout.linalg.ldl_solve(LD, pivots, turnout.ones(3, 1)), turnout.ones(3, 1))


def test_a_polynomial_of_degree_nan_is_0_as_one_of_negative_degree() -> None:
    n = turnout.tensor([math.nan, -math.inf, -3.0, 1.0])
    assert turnout.special.chebyshev_polynomial_t(turnout.tensor(0.5), n).tolist() == [0.0, 0.0, 0.0, 0.5]


def test_one_target_of_one_row_may_have_a_dimension() -> None:
    row = turnout.tensor([0.5, 2.0, 3.0])
    assert turnout.nn.functional.nll_loss(row, turnout.tensor([2])).item() == -3.0


def test_a_tensor_of_one_integer_is_an_index_whatever_its_shape() -> None:
    assert [[7, 8, 9][turnout.tensor(i)] for i in (2, [1], [[0]], [True])] == [9, 8, 7, 8]


def test_values_of_another_dtype_are_searched_for_in_the_common_one() -> None:
    integers, bounds = turnout.tensor([1, 2, 3]), turnout.tensor([0.1, 0.2])
    assert turnout.searchsorted(integers, turnout.tensor([2.5])).tolist() == [2]
    assert turnout.searchsorted(integers.to(turnout.uint8), turnout.tensor([300])).tolist() == [3]
    assert turnout.searchsorted(bounds, turnout.tensor([0.1, 0.2], dtype=turnout.float64)).tolist() == [0, 1]
    assert turnout.bucketize(turnout.tensor([2.5, 0.5]), integers).tolist() == [2, 0]


def test_more_singular_values_may_be_asked_for_than_a_matrix_has() -> None:
    U, S, V = turnout.svd_lowrank(turnout.ones(3, 2), q=3)
    assert (U.shape, S.shape, V.shape) == ((3, 2), (2,), (2, 2))
