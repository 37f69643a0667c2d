"""`turnout.Size`: what shapes are, and that every call takes them as it takes tuples."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import turnout
from outcomes import refused
from turnout import Size


def test_shapes_are_sizes_on_every_device_and_inside_vmap() -> None:
    x = turnout.ones(2, 3)
    seen = []
    turnout.vmap(lambda row: (seen.append(row.shape), row)[1])(x)
    for shape in (x.shape, x.size(), x.t().shape, turnout.empty(2, 3, device="meta").shape, *seen):
        assert type(shape) is Size
    assert seen == [(3,)]
    assert type(turnout.broadcast_shapes((2, 1), (3,))) is Size


def test_a_size_is_a_tuple_that_counts_elements() -> None:
    size = turnout.ones(2, 3).shape
    assert size == (2, 3)
    assert hash(size) == hash((2, 3))
    assert (size.numel(), Size().numel(), Size([2, 0]).numel()) == (6, 1, 0)
    assert (repr(size), str(size), repr(Size())) == ("turnout.Size([2, 3])", "turnout.Size([2, 3])", "turnout.Size([])")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Size([2, 3])[1:], (3,)), (Size([2, 3])[::-1], (3, 2)), (Size([2]) + (3,), (2, 3)), ((2,) + Size([3]), (2, 3)),
        (Size([2]) + Size([3]), (2, 3)), (Size([2]) * 2, (2, 2)), (2 * Size([2]), (2, 2)), (Size(range(3)), (0, 1, 2)),
        (Size([True, turnout.tensor(3)]), (1, 3)), (copy.deepcopy(Size([2])), (2,)),
        (pickle.loads(pickle.dumps(Size([2]))), (2,)),
    ],
)  # fmt: skip
def test_what_is_made_of_a_size_is_a_size(made: Any, expected: tuple[int, ...]) -> None:
    assert type(made) is Size
    assert made == expected
    assert all(type(length) is int for length in made)


def test_one_length_is_an_int() -> None:
    assert type(Size([2, 3])[-1]) is int
    assert [type(length) for length in Size([2, 3])] == [int, int]


def test_other_elements_are_refused() -> None:
    assert refused(TypeError, Size, [2, 2.5]) == "Size: expected ints, got float at position 1"
    assert refused(TypeError, Size, 2) == "Size: expected ints in a sequence, got int"
    assert refused(TypeError, lambda: Size([2]) + ("3",)) == "Size: expected ints, got str at position 0"
    with pytest.raises(TypeError):
        Size([2]) + [3]  # type: ignore[operator]


def test_calls_take_sizes_as_they_take_tuples() -> None:
    x = turnout.arange(6).reshape(2, 3)
    size = Size([3, 2])
    assert x.reshape(size).tolist() == x.view(size).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert turnout.zeros(size).shape == turnout.ones(size, dtype=turnout.int8).shape == turnout.empty(size, device="meta").shape
    assert turnout.ones(1, 2).expand(size).shape == turnout.full(size, 3).shape == x.new_zeros(size).shape == size
    assert turnout.ops.aten.reshape(x, size).tolist() == x.reshape(3, 2).tolist()
    assert x.sum(Size([0, 1])).item() == 15


def test_a_size_is_saved_and_loaded_as_a_size() -> None:
    file = io.BytesIO()
    turnout.save({"shape": Size([2, 3]), "plain": (2, 3)}, file)
    file.seek(0)
    loaded = turnout.load(file)
    assert loaded == {"shape": (2, 3), "plain": (2, 3)}
    assert (type(loaded["shape"]), type(loaded["plain"])) == (Size, tuple)


def test_a_traced_function_that_takes_a_size_does_so_after_its_graph_was_saved(tmp_path: Any) -> None:
    x = turnout.arange(6.0)
    graph = turnout.trace(lambda x, shape: x.reshape(shape) * 2)(x, Size([2, 3]))
    path = tmp_path / "graph.json"
    graph.save(path)
    assert turnout.graphs.load(path)(x, Size([2, 3])).tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
