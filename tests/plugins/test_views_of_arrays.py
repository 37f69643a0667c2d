"""Views lie where their geometry says, however the array module made them; short ways of calls give what the long ones give."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from outcomes import refused
from turnout.library import Library
from turnout_aten.views import geometry, kernels


def _base(draw: random.Random) -> Any:
    shape = [draw.choice([1, 1, 2, 3, 4]) for _ in range(draw.randrange(4))]
    dtype = draw.choice([turnout.float32, turnout.int8, turnout.bfloat16, turnout.complex64])
    count = 1
    for length in shape:
        count *= length
    made = turnout.arange(count).to(dtype).reshape(shape)
    if shape and draw.random() < 0.5:
        made = made.permute(draw.sample(range(len(shape)), len(shape)))
    if shape and draw.random() < 0.5:
        made = made.clone()  # dense, in the order of the dims that were permuted
    return made


def _view(draw: random.Random, x: Any) -> Any:
    """A random view of x, of those that the array module may take and those that it may not."""
    n = x.ndim
    dim = draw.randrange(n) if n else 0
    order = draw.sample(range(n), n)
    kinds: list[Callable[[], Any]] = [lambda: x.permute(order), lambda: x.unsqueeze(draw.randrange(n + 1)), lambda: x.squeeze()]
    if n and x.numel():
        start = draw.randrange(x.shape[dim])
        kinds += [
            lambda: x.select(dim, start),
            lambda: x.narrow(dim, start, draw.randrange(1, x.shape[dim] - start + 1)),
            lambda: turnout.ops.aten.slice.Tensor(x, dim, start, None, draw.randrange(1, 4)),
            lambda: x.transpose(dim, n - 1),
            lambda: x.squeeze(dim),
            lambda: x.expand(2, *x.shape),
        ]
    if n == 2:
        kinds += [x.t, x.diagonal]
    if x.is_contiguous() and x.numel():
        kinds += [lambda: x.view(-1), lambda: x.view(1, x.numel()), lambda: x.reshape(*x.shape, 1)]
    return draw.choice(kinds)()


def test_each_view_lies_where_its_geometry_says(seeds: Callable[[int], range]) -> None:
    for seed in seeds(400):
        draw = random.Random(seed)
        x = _base(draw)
        for _ in range(4):
            view = _view(draw, x)
            root = view.storage.array
            start = view.array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            assert start == view.storage_offset() * view.element_size(), seed
            # The same view over the memory, without the array module's way.
            expected = view.device.backend.strided(root, tuple(view.shape), view.stride(), view.storage_offset())
            assert (view.array.shape, view.array.strides) == (expected.shape, expected.strides), seed
            assert bytes(view.device.backend.to_host(view.array)) == bytes(view.device.backend.to_host(expected)), seed
            x = view


@pytest.mark.parametrize(
    ("shape", "strides", "wanted", "steps", "start", "has_one"),
    [
        ((4,), (4,), (), (), 8, True),  # x[2]
        ((4,), (4,), (2,), (8,), 4, True),  # x[1::2]
        ((2, 3), (12, 4), (3, 2), (4, 12), 0, True),  # x.t()
        ((2, 3, 1), (12, 4, 4), (1, 2, 3), (4, 12, 4), 0, True),  # permuted
        ((2, 3), (12, 4), (6,), (4,), 0, True),  # x.view(6)
        ((3, 3), (12, 4), (3,), (16,), 0, False),  # a diagonal
        ((1, 3), (12, 4), (2, 3), (0, 4), 0, False),  # expanded
        ((4,), (4,), (1,), (1 << 63,), 0, False),  # a step that no index has
        ((2,), (4,), (3,), (4,), 0, False),  # beyond the end
    ],
)
def test_the_array_module_makes_the_views_that_it_can(
    shape: Any, strides: Any, wanted: Any, steps: Any, start: int, has_one: bool
) -> None:
    assert (kernels._way(shape, strides, wanted, steps, start, 4) is not None) == has_one


def test_geometries_that_are_remembered_are_bounded() -> None:
    asked: list[int] = []

    def answer(n: int) -> int:
        asked.append(n)
        return n

    remembered = kernels.Remembered(answer)
    for n in range(2000):
        assert remembered[(n,)] == n
    assert len(remembered) <= 512
    assert asked == list(range(2000))


def test_arguments_may_have_the_names_that_generated_texts_use() -> None:
    library = Library("waynames", "DEF")
    try:
        library.define("whole(Tensor fn, Tensor view, Tensor result, *, int error=1, bool settle=False) -> Tensor")
        library.define("write_(Tensor(a!) call, Tensor view, Tensor storage, int cache=2) -> Tensor(a!)")
        library.impl("whole", lambda fn, view, result, *, error, settle: fn + view * result + error, "CompositeImplicitAutograd")
        library.impl("write_", lambda call, view, storage, cache: call.copy_(view + storage + cache), "CPU")
        one, two = turnout.ones(2), turnout.full((2,), 2.0)
        assert turnout.ops.waynames.whole(one, two, two, error=3).tolist() == [8.0, 8.0]
        target = turnout.zeros(2)
        made = turnout.ops.waynames.write_(target, one, two)
        assert made is target
        assert target.tolist() == [5.0, 5.0]
        assert target._version > 0
    finally:
        library.undo()


def test_writes_between_linear_and_its_backward_are_noticed() -> None:
    x, weight = turnout.ones(2, 3, requires_grad=True), turnout.ones(4, 3)
    made = turnout.nn.functional.linear(x, weight, turnout.zeros(4))
    weight.mul_(2.0)
    with pytest.raises(turnout.errors.TurnoutError, match=r"modified|written|in place"):
        made.sum().backward()


def test_linear_takes_a_kernel_for_t_that_somebody_registered() -> None:
    library, seen = Library("aten", "IMPL"), []

    def t(self: Any) -> Any:
        seen.append(tuple(self.shape))
        return self.transpose(0, 1)

    try:
        library.impl("t", t, "CPU")
        turnout.nn.functional.linear(turnout.ones(2, 3), turnout.ones(4, 3), turnout.zeros(4))
        assert seen == [(4, 3)]
    finally:
        library.undo()


def test_large_sizes_are_checked_as_small_ones() -> None:
    x = turnout.ones(2)
    with pytest.raises(turnout.errors.RangeError, match="2\\*\\*63"):
        x.reshape(1 << 63, 1)
    assert "reshape" in refused(turnout.errors.ShapeError, lambda: x.reshape(1 << 40, 1))
    with pytest.raises(turnout.errors.RangeError, match="2\\*\\*63"):
        x.sum(1 << 63)
    assert x[: 1 << 40].tolist() == [1.0, 1.0]


def test_strides_of_a_view_merge_and_split_blocks() -> None:
    assert geometry.viewed_strides((2, 3), (3, 1), (6,)) == (1,)
    assert geometry.viewed_strides((3, 2), (1, 3), (6,)) is None
    assert geometry.viewed_strides((3, 2), (1, 3), (3, 1, 2)) is not None
    assert geometry.viewed_strides((4, 6), (12, 2), (2, 2, 3, 2)) == (24, 12, 4, 2)
