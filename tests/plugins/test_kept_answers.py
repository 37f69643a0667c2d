"""What a shape function answered is kept, and never decides a call that it does not fit."""

from __future__ import annotations

from typing import Any

import pytest

import turnout
from turnout_aten.kernels import plans
from turnout_aten.shapes import indexing, promotion


def test_calls_that_look_alike_ask_the_shape_function_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def counting(self: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
        asked.append((self.array.shape, self.stride(), dim))
        return gather(self, dim, index, sparse_grad)

    gather = indexing.SHAPES["gather.out"]
    op = turnout.ops.aten.gather.default
    x, index = turnout.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), turnout.tensor([[2, 0]])
    with monkeypatch.context() as patch:
        patch.setitem(indexing.SHAPES, "gather.out", counting)
        op.cache.clear()  # the next call binds the kernel anew
        for _ in range(3):
            assert x.gather(1, index).tolist() == [[3.0, 1.0]]
        assert asked == [((2, 3), (3, 1), 1)]
        for _ in range(2):
            assert x.t().gather(1, turnout.tensor([[1, 0]])).tolist() == [[4.0, 1.0]]
            assert x.gather(0, turnout.tensor([[1, 0, 1]])).tolist() == [[4.0, 2.0, 6.0]]
        assert asked[1:] == [((3, 2), (1, 3), 1), ((2, 3), (3, 1), 0)]
    op.cache.clear()


def test_one_and_true_and_one_point_zero_have_answers_of_their_own() -> None:
    x = turnout.tensor([2, 3], dtype=turnout.int32)
    mask = turnout.tensor([True, False])
    dtypes = [turnout.where(mask, x, number).dtype for number in (1, 1.0, True, 1, 1.0, True)]
    assert dtypes == [turnout.int32, turnout.float32, turnout.int32] * 2


def test_an_answer_that_depends_on_the_default_dtype_is_not_kept() -> None:
    x, mask = turnout.tensor([2, 3]), turnout.tensor([True, False])
    assert turnout.where(mask, x, 0.5).dtype is turnout.float32
    assert turnout.var(turnout.tensor([1.0, 2.0])).dtype is turnout.float32
    turnout.set_default_dtype(turnout.float64)
    try:
        assert turnout.where(mask, x, 0.5).dtype is turnout.float64
        assert turnout.atan2(x, x).dtype is turnout.float64
        assert turnout.var(turnout.tensor([1.0, 2.0], dtype=turnout.float32)).dtype is turnout.float32
    finally:
        turnout.set_default_dtype(turnout.float32)
    assert turnout.where(mask, x, 0.5).dtype is turnout.float32
    assert turnout.atan2(x, x).dtype is turnout.float32


def test_masks_select_by_their_values_whatever_was_selected_before() -> None:
    x = turnout.tensor([1, 2, 3])
    for values in ([True, False, True], [False, False, False], [True, True, True], [False, True, False]):
        mask = turnout.tensor(values)
        assert x[mask].tolist() == [v for v, chosen in zip([1, 2, 3], values, strict=True) if chosen]
        written = x.clone()
        written[mask] = 0
        assert written.tolist() == [0 if chosen else v for v, chosen in zip([1, 2, 3], values, strict=True)]


def test_an_error_is_the_same_at_every_call() -> None:
    x = turnout.tensor([1.0, 2.0])
    texts = []
    for _ in range(3):
        with pytest.raises(turnout.errors.ShapeError) as raised:
            turnout.cat([x, turnout.ones(2, 2)])
        texts.append(str(raised.value))
    assert texts == ["cat: shapes [2] and [2, 2] must be equal apart from dim 0"] * 3
    for _ in range(2):
        with pytest.raises(turnout.errors.DimError, match="index 7 is out of bounds for a dimension of size 2"):
            x.index_select(0, turnout.tensor([7]))
        assert x.index_select(0, turnout.tensor([1])).tolist() == [2.0]


def test_an_operator_keeps_a_bounded_number_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "LIMIT", 4)
    x = turnout.arange(40)
    kept = plans.Plans(x.device.backend, ["self"], ["n"], {})
    for n in range(10):
        kept.answer(n, lambda n: turnout_result(n), n)
        assert len(kept.known) == len(kept.results) <= 4


def turnout_result(n: int) -> Any:
    from turnout_aten.shapes.specs import Out, Result

    return Result(Out((n,), turnout.float32))


def test_what_promotion_reads_of_the_default_dtype_is_noticed() -> None:
    whole, real = turnout.tensor([1]), turnout.tensor([1.0])
    for values, reads in [((whole, 0.5), True), ((real, 0.5), False), ((0.5, real), False), ((whole, 1), False), ((0.5,), True)]:
        promotion.DEFAULT_READ[0] = mark = object()
        promotion.result_type(*values)
        assert (promotion.DEFAULT_READ[0] is not mark) is reads, values


def test_zeros_of_both_signs_are_told_apart() -> None:
    x = turnout.tensor([1.0, 2.0])
    mask = turnout.tensor([True, False])
    signs = [str(turnout.where(mask, number, x)[0].item()) for number in (0.0, -0.0, 0.0)]
    assert signs == ["0.0", "-0.0", "0.0"]


def test_a_kernel_that_is_called_with_a_list_in_place_of_a_tuple_asks_each_time() -> None:
    x, out = turnout.tensor([1.0, 2.0]), turnout.zeros(2)
    functional, writing = turnout.ops.aten.flip.default, turnout.ops.aten.flip.out
    for _ in range(2):
        assert functional.resolve(x.keys)(x.keys, x, [0]).tolist() == [2.0, 1.0]
        assert writing.resolve(x.keys)(x.keys, x, [0], out).tolist() == [2.0, 1.0]
