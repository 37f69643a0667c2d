"""Copying, pickling, saving and loading tensors."""

from __future__ import annotations

import copy
import io
import pickle
from collections import Counter, namedtuple
from pathlib import Path

import pytest

import turnout
from outcomes import refused
from turnout.errors import AliasError, CallError, FileFormatError
from turnout_aten.tensor.taking_over import is_alone


def pair() -> tuple[turnout.Tensor, turnout.Tensor]:
    """Two views of one storage."""
    x = turnout.arange(6, dtype=turnout.float32).view(2, 3)
    return x.t(), x.select(0, 1)


def saved(obj: object) -> object:
    file = io.BytesIO()
    turnout.save(obj, file)
    file.seek(0)
    return turnout.load(file)


WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda o: pickle.loads(pickle.dumps(o)), "save": saved}


@pytest.mark.parametrize("way", WAYS)
def test_values_strides_and_sharing_survive(way: str) -> None:
    columns, row = pair()
    new_columns, new_row = WAYS[way]([columns, row])
    assert new_columns.tolist() == columns.tolist()
    assert (new_columns.stride(), new_row.storage_offset()) == ((1, 3), 3)
    assert new_columns.is_alias_of(new_row)
    new_row.fill_(9)
    assert new_columns.tolist() == [[0, 9], [1, 9], [2, 9]]
    assert row.tolist() == [3, 4, 5]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", sorted(turnout.dtypes.DTYPES))
def test_every_dtype_survives(way: str, name: str) -> None:
    x = turnout.tensor([1, 0, 1], dtype=turnout.dtypes.dtype_named(name))
    again = WAYS[way](x)
    assert again.dtype is x.dtype
    assert again.tolist() == x.tolist()


@pytest.mark.parametrize("way", WAYS)
def test_special_shapes_survive(way: str) -> None:
    for x in (turnout.tensor(5.0), turnout.zeros(0, 3), turnout.ones(1).expand(4), turnout.ones(2, 3, device="meta")):
        again = WAYS[way](x)
        assert (again.shape, again.dtype, again.device, again.stride()) == (x.shape, x.dtype, x.device, x.stride())


@pytest.mark.parametrize("way", WAYS)
def test_a_leaf_still_requires_its_gradient(way: str) -> None:
    x = turnout.tensor([1.0]).requires_grad_()
    again = WAYS[way](x)
    assert again.requires_grad
    assert again.is_leaf


def test_deepcopy_copies_a_tensor_once_and_its_gradient() -> None:
    x = turnout.tensor([1.0])
    x.grad = turnout.tensor([2.0])
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first.grad.tolist() == [2.0]
    assert first.grad is not x.grad


@pytest.mark.parametrize("way", WAYS)
def test_one_tensor_that_is_met_twice_is_one_in_the_copy(way: str) -> None:
    x = turnout.ones(2)
    first, inner, view = WAYS[way]([x, {"again": x}, x.view(2, 1)])
    assert inner["again"] is first
    assert view is not first
    assert view.is_alias_of(first)


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_slice_behind_the_end_of_its_storage_survives(way: str) -> None:
    x = turnout.zeros(0, 3)
    for parts in ([x, x[:, 1:]], [x[:, 1:], x], [turnout.ones(1, 5).t()[:, 1:], x]):
        for again, part in zip(WAYS[way](parts), parts, strict=True):
            assert (again.shape, again.storage_offset()) == (part.shape, part.storage_offset())
            assert again.fill_(1).tolist() == part.tolist()


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_that_is_all_of_its_memory_is_alone_with_it(way: str) -> None:
    for x in (turnout.ones(2, 3), turnout.tensor(5.0), turnout.zeros(0, 3), turnout.arange(6)[:4].clone()):
        again = WAYS[way](x)
        assert is_alone(again)
        view = again.view(-1)
        assert not is_alone(again)
        assert view.is_alias_of(again)
    assert not any(map(is_alone, WAYS[way](list(pair()))))
    x = turnout.arange(6).view(2, 3)
    for parts in ([x, x[1]], [x[1], x]):
        again = WAYS[way](parts)
        assert not any(map(is_alone, again))
        again[0].fill_(9)
        for each, part in zip(again, parts, strict=True):
            assert each.as_strided((3,), (1,), 3).tolist() == [9, 9, 9]
            assert (each.storage_offset(), each.shape) == (part.storage_offset(), part.shape)


class Named(turnout.Tensor):
    """A subclass with attributes."""


class Slotted(Named):
    __slots__ = ("unit",)


class Seen(turnout.Tensor):
    """A subclass that takes part in its calls, with a state of its own."""

    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):  # type: ignore[no-untyped-def]
        return op.redispatch(ks, *args)

    def __getstate__(self) -> object:
        return {"word": self.word}

    def __setstate__(self, state: dict[str, str]) -> None:
        self.word = state["word"] + "!"


@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_instance_of_a_subclass_keeps_class_and_attributes(way: str, requires_grad: bool) -> None:
    copied = (WAYS | {"copy": copy.copy})[way]
    x = turnout.as_subclass(turnout.tensor([1.0, 2.0]), Slotted).requires_grad_(requires_grad)
    x.note, x.unit = ["m"], "kg"
    again = copied(x)
    assert (type(again), again.note, again.unit, again.tolist()) == (Slotted, ["m"], "kg", [1.0, 2.0])
    assert (again.requires_grad, again.is_leaf) == (requires_grad, True)
    assert (again.note is x.note) == again.is_alias_of(x) == (way == "copy")
    seen = turnout.as_subclass(turnout.tensor([1.0]), Seen)
    seen.word = "hey"
    again = copied([seen, seen.view(1)]) if way != "copy" else [copied(seen)]
    assert (type(again[0]), again[0].word, again[0].keys) == (Seen, "hey!", seen.keys)


def test_files_hold_no_instances_of_subclasses() -> None:
    assert refused(CallError, lambda: saved({"w": turnout.as_subclass(turnout.ones(1), Named)})) == (
        "save: obj['w'] is a Named; files hold data, not classes\n"
        "  to fix  save turnout.as_subclass(t, turnout.Tensor), or use pickle"
    )


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 4, 0, 3, 2]])
def test_deepcopy_keeps_views_of_every_dtype_over_one_memory(order: list[int]) -> None:
    x = turnout.arange(6, dtype=turnout.float32).reshape(3, 2)
    tensors = [x, x.view(turnout.int32)[1:], x.view(turnout.int16), turnout.view_as_complex(x)[1:], x.view(turnout.int32).data]
    given = [tensors[i] for i in order]
    made = copy.deepcopy(given)
    assert [each.tolist() for each in made] == [each.tolist() for each in given]
    for tensor in made:
        before = [each.clone() for each in made]
        tensor.fill_(7)
        assert all(not turnout.equal(each, old) for each, old in zip(made, before, strict=True))
        assert turnout.equal(made[order.index(0)].view(turnout.int16), made[order.index(2)])
        tensor.copy_(before[[each is tensor for each in made].index(True)])
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert all(a.shares_memory_with(b) for a in made for b in made)
    assert not made[0].shares_memory_with(given[0])


def test_deepcopy_of_a_tensor_with_history_is_refused() -> None:
    x = turnout.tensor([1.0]).requires_grad_() * 2
    assert refused(AliasError, copy.deepcopy, x) == (
        "deepcopy: only leaves can be copied with their gradient state; use .detach() first"
    )


def test_copy_shares_memory() -> None:
    x = turnout.zeros(2)
    copy.copy(x).fill_(1)
    assert x.tolist() == [1.0, 1.0]


def test_nested_objects_come_back() -> None:
    obj = {"a": [1, 2.5, None, True, "s"], 3: (1j, float("inf"), {"b": ()}), "d": turnout.float16, "t": turnout.ones(2)}
    again = saved(obj)
    assert again.pop("t").tolist() == [1.0, 1.0]
    obj.pop("t")
    assert again == obj
    assert type(again["a"][3]) is bool


def test_map_location_moves_everything(tmp_path: Path) -> None:
    turnout.save({"x": turnout.ones(2)}, tmp_path / "x")
    for location in ("meta", {"cpu": "meta"}, lambda place: "meta", turnout.device("meta")):
        assert turnout.load(tmp_path / "x", map_location=location)["x"].is_meta
    assert not turnout.load(tmp_path / "x", map_location=lambda place: None)["x"].is_meta


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({"a": [1, {2}]}, "save: obj['a'][1] has type set; files hold tensors, numbers, strings, None, dicts, lists, tuples"),
        (Point(1, 2), ("save: obj has type Point; files hold tensors, numbers, strings, None, dicts, lists, tuples\n"
         "  to fix  save tuple(obj), or use pickle")),
        ([Counter("ab")],
         ("save: obj[0] has type Counter; files hold tensors, numbers, strings, None, dicts, lists, tuples\n"
         "  to fix  save dict(obj[0]), or use pickle")),
    ],
    ids=["a set", "a tuple of a class", "a dict of a class"],
)  # fmt: skip
def test_other_objects_are_refused_and_leave_no_file(tmp_path: Path, obj: object, text: str) -> None:
    assert refused(CallError, lambda: turnout.save(obj, tmp_path / "x")) == text
    assert list(tmp_path.iterdir()) == []


def test_an_object_that_contains_itself_is_refused() -> None:
    obj: list[object] = []
    obj.append(obj)
    assert refused(CallError, saved, obj) == "save: obj[0] contains itself"


def test_a_file_that_exists_is_kept_when_saving_fails(tmp_path: Path) -> None:
    turnout.save(1, tmp_path / "x")
    refused(CallError, lambda: turnout.save({"a": object()}, tmp_path / "x"))
    assert turnout.load(tmp_path / "x") == 1


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"something")
    assert refused(FileFormatError, lambda: turnout.load(tmp_path / "x")) == (
        f"load: {tmp_path / 'x'} was not written by turnout.save, or is damaged: it does not end as an archive ends"
    )
