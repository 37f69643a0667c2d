"""`x.data`: memory whose writes are counted apart; `x.data = y`: a tensor takes over another's memory."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import read_only_arrays
import turnout
from outcomes import refused
from turnout.errors import AliasError, CallError, DTypeError


def test_data_set_to_a_tensor_shares_its_memory_and_takes_its_shape_dtype_and_strides():
    x = turnout.ones(2, 2)
    y = turnout.arange(6.0, dtype=turnout.float64).reshape(2, 3)
    x.data = y.t()
    assert (x.shape, x.stride(), x.dtype) == ((3, 2), (1, 3), turnout.float64)
    x[0, 1] = 9.0
    assert y.tolist() == [[0.0, 1.0, 2.0], [9.0, 4.0, 5.0]]
    assert x.is_alias_of(y)


def test_history_grad_and_requires_grad_stay_when_data_is_set():
    x = turnout.ones(2, requires_grad=True)
    (x * x).sum().backward()
    node = (doubled := x * 2).grad_fn
    x.data = turnout.full((2,), 3.0)
    assert (x.tolist(), x.requires_grad, x.is_leaf, x.grad.tolist()) == ([3.0, 3.0], True, True, [2.0, 2.0])
    doubled.data = turnout.zeros(2)
    assert (doubled.tolist(), doubled.grad_fn) == ([0.0, 0.0], node)
    x.grad = None
    doubled.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_augmented_assignment_to_data_writes_into_the_tensor():
    x = turnout.ones(2, requires_grad=True)
    memory = x.numpy(force=True)
    x.data -= 0.5
    assert (x.tolist(), memory.tolist(), x.requires_grad, x._version) == ([0.5, 0.5], [0.5, 0.5], True, 0)


def test_a_tensor_that_was_saved_before_its_data_was_set_is_refused_at_backward():
    x = turnout.ones(2, requires_grad=True)
    y = (x * x).sum()
    x.data = turnout.zeros(2)
    with pytest.raises(AliasError, match=r"its saved '.*', a tensor float32 \[2\], was changed in place"):
        y.backward()


def test_the_tensor_whose_memory_was_taken_over_stays_as_it_was_until_it_is_written():
    x, y = turnout.ones(2), turnout.full((2,), 3.0, requires_grad=True)
    product = (y * y).sum()
    x.data = y
    product.backward(retain_graph=True)
    assert y.grad.tolist() == [6.0, 6.0]
    x.add_(1)
    assert "was changed in place" in refused(AliasError, product.backward)


def test_views_of_the_old_memory_keep_it_and_their_gradient():
    x = turnout.ones(4, requires_grad=True)
    part = x[1:3]
    x.data = turnout.zeros(4)
    assert (part.tolist(), part._base) == ([1.0, 1.0], None)
    (part * part).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_a_view_whose_data_is_set_leaves_its_base():
    base = turnout.ones(4, requires_grad=True)
    part = base[:2]
    part.data = turnout.full((2,), 7.0)
    assert (part.tolist(), part._base, base.tolist()) == ([7.0, 7.0], None, [1.0, 1.0, 1.0, 1.0])
    part.sum().backward()
    assert base.grad.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_data_set_twice_to_one_memory_is_newer_each_time():
    x, y = turnout.ones(2), turnout.zeros(4)
    versions = [x._version]
    for part in (y[:2], y[2:], y[1:3]):
        x.data = part
        versions.append(x._version)
    assert versions == sorted(set(versions))
    x.fill_(5)
    assert y.tolist() == [0.0, 5.0, 5.0, 0.0]


def test_data_moves_a_tensor_to_another_device():
    x = turnout.ones(2, requires_grad=True)
    x.data = turnout.ones(3, device="meta")
    assert (x.device.type, x.requires_grad, (x * 2).shape) == ("meta", True, (3,))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda x: 3, CallError, "data must be a tensor, not int"),
        (lambda x: None, CallError, "data must be a tensor, not NoneType"),
        (
            lambda x: turnout.ones(2, dtype=turnout.int64),
            DTypeError,
            "data of a tensor that requires a gradient must be floating-point or complex, this one is int64",
        ),
    ],
)
def test_data_that_cannot_be_set_is_refused_and_the_tensor_stays(make, error, text):
    x = turnout.ones(2, requires_grad=True)
    with pytest.raises(error) as caught:
        x.data = make(x)
    assert str(caught.value) == text
    assert x.tolist() == [1.0, 1.0]


def test_data_is_not_exchanged_between_inference_tensors_and_others():
    x = turnout.ones(2)
    with turnout.inference_mode():
        inference = turnout.zeros(2)
        other = turnout.ones(2)
        other.data = inference
        assert other.tolist() == [0.0, 0.0]
    with pytest.raises(AliasError) as caught:
        x.data = inference
    assert str(caught.value) == (
        "data: normal tensors and inference tensors cannot take over each other's memory; clone() outside inference_mode"
    )


def test_data_is_not_set_inside_vmap():
    def program(x):
        y = turnout.ones(2)
        y.data = x
        return y

    assert refused(AliasError, lambda: turnout.vmap(program)(turnout.ones(3, 2))) == (
        "data cannot be set inside vmap; write with copy_() instead"
    )


# ---- what `x.data` gives: memory whose writes are counted apart


@pytest.fixture(scope="module", autouse=True)
def readonly() -> Iterator[None]:
    library = read_only_arrays.register()
    yield
    library.undo()


@pytest.mark.parametrize("device", ["cpu", "readonly"])
def test_backward_takes_the_values_that_a_write_through_data_left(device):
    x = turnout.ones(3, requires_grad=True, device=device)
    y = (x * x).sum()
    x.data[0] = 5.0
    x.data.view(turnout.int32).mul_(1)
    assert (x._version, x.tolist(), x.data.requires_grad, x.data._version) == (0, [5.0, 1.0, 1.0], False, 0)
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [10.0, 2.0, 2.0]
    x.detach()[0] = 6.0  # which shares the counter
    assert "was changed in place" in refused(AliasError, y.backward)


class UncountedWrite(turnout.autograd.Function):
    """Rows of one matrix are written one after the other, each from those before it: what adaptive solvers do."""

    @staticmethod
    def forward(ctx, rows, value, at):
        ctx.at = at
        rows.data[at] = value
        return rows

    @staticmethod
    def backward(ctx, grad):
        return grad, grad[ctx.at], None


def test_a_matrix_whose_rows_are_written_through_data_has_the_gradient_of_all_rows():
    x = turnout.full((2,), 3.0, requires_grad=True)
    rows = turnout.zeros(3, 2)
    for at in range(3):
        rows = UncountedWrite.apply(rows, x + (rows[:at] * x).sum(0), at)
    assert rows.tolist() == [[3.0, 3.0], [12.0, 12.0], [48.0, 48.0]]
    rows.sum().backward()
    assert x.grad.tolist() == [48.0, 48.0]


WRITES = {"add": lambda x, number: x.__iadd__(number), "assign": lambda x, number: x.__setitem__(..., number)}


class Aliases:
    """A program that makes aliases of one memory in all ways, and writes through them; beside it, what each should see."""

    def __init__(self, seed: int, device: str) -> None:
        self.random = Random(seed)
        self.memory = np.arange(6, dtype=np.float32)
        self.counters = [0]
        self.tensors = [(turnout.arange(6.0, device=device), self.memory, 0)]
        self.lines: list[str] = []

    def step(self) -> None:
        k = self.random.randrange(len(self.tensors))
        tensor, seen, counter = self.tensors[k]
        way, number = self.random.choice(["view", "detach", "data", "bits", *WRITES]), self.random.randrange(9)
        self.lines.append(f"{way} of {k}")
        if way in WRITES:
            with np.errstate(all="ignore"):
                WRITES[way](tensor, number)
                WRITES[way](seen, number)
            self.counters[counter] += 1
            return
        if way == "data":
            self.counters.append(0)
            counter = len(self.counters) - 1
        bits = (turnout.int32, np.int32) if seen.dtype == np.float32 else (turnout.float32, np.float32)
        made = tensor[1:] if way == "view" else tensor.view(bits[0]) if way == "bits" else getattr(tensor, way)
        seen = seen[1:] if way == "view" else seen.view(bits[1]) if way == "bits" else seen
        self.tensors.append((made() if way == "detach" else made, seen, counter))

    def check(self) -> None:
        for k, (tensor, seen, counter) in enumerate(self.tensors):
            found = tensor._version, np.asarray(tensor.cpu()).tobytes()
            assert found == (self.counters[counter], seen.tobytes()), (k, self.lines)


@pytest.mark.parametrize("device", ["cpu", "readonly"])
def test_aliases_see_all_writes_and_count_those_of_their_own_counter(seeds: Callable[..., range], device: str) -> None:
    for seed in seeds(40, many=2000):
        program = Aliases(seed, device)
        for _ in range(14):
            program.step()
        program.check()


def written_through_data(x: Any) -> Any:
    x.data[1:].mul_(x.data[:1] + 1)
    return x * 2


@pytest.mark.parametrize("remove", ["", "mutations", "mutations_and_views"])
def test_transforms_see_writes_through_data_and_count_none(remove):
    function = turnout.func.functionalize(written_through_data, remove=remove) if remove else written_through_data
    x = turnout.ones(3)
    assert (function(x).tolist(), x.tolist(), x._version) == ([2.0, 4.0, 4.0], [1.0, 2.0, 2.0], 0)
    x = turnout.ones(3)
    graph = turnout.trace(function)(x)
    y = turnout.ones(3)
    assert (graph(y).tolist(), y.tolist()) == ([2.0, 4.0, 4.0], [1.0, 2.0, 2.0])
    x = turnout.ones(2, 3)
    assert turnout.vmap(function)(x).tolist() == [[2.0, 4.0, 4.0]] * 2
    assert (x.tolist(), x._version) == ([[1.0, 2.0, 2.0]] * 2, 0)


@pytest.mark.parametrize("size", [8, 20_000])
@pytest.mark.parametrize("write", [lambda x: x[1:].add_(x.data[:-1]), lambda x: x.data[1:].mul_(x[:-1])])
def test_a_write_that_overlaps_its_operand_in_data_is_refused(write, size):
    assert "share part of their memory" in refused(AliasError, lambda: write(turnout.ones(size)))


def test_a_tensor_and_its_data_share_memory_in_every_copy():
    x = turnout.ones(2)
    buffer = io.BytesIO()
    turnout.save((x, x.data), buffer)
    buffer.seek(0)
    pairs = [copy.deepcopy((x, x.data)), pickle.loads(pickle.dumps((x, x.data))), turnout.load(buffer)]
    mode, alias = turnout.FakeMode(), x.data
    fake, data = mode.from_tensor(x), mode.from_tensor(alias)
    assert all(a.is_alias_of(b) for a, b in [*pairs, (fake, data)])
    data.add_(1)
    assert (fake._version, data._version) == (0, 1)


def _kinds() -> dict[str, Any]:
    """By its kind: a tensor, the tensor that owns its memory, and whether its writes count for that one."""
    owner, retyped, apart, adopted = (turnout.ones(4) for _ in range(4))
    view, bits, alone, taken = owner[:2], retyped.view(turnout.int32), apart.data, turnout.zeros(2)
    taken.data = adopted
    with turnout.inference_mode():
        uncounted = turnout.ones(2)
    return {
        "own": (view, owner, True), "retyped": (bits, retyped, True), "apart": (alone, apart, False),
        "adopted": (taken, adopted, True), "uncounted": (uncounted, uncounted, False),
    }  # fmt: skip


def test_storages_are_of_one_class_and_say_their_kind():
    for kind, (tensor, owner, _) in _kinds().items():
        assert type(tensor.storage).__name__ == "Storage"
        assert tensor.storage.kind == kind
        assert tensor.storage.memory is owner.storage.memory
        assert owner.storage.kind == ("uncounted" if kind == "uncounted" else "own")


@pytest.mark.parametrize("write", [
    lambda t: t.fill_(2), lambda t: t.bump_version(), lambda t: t.__setitem__(0, 3), lambda t: t.unsqueeze_(0),
    lambda t: turnout.ops.aten.mul_.Tensor(t, t),
])  # fmt: skip
def test_a_write_counts_where_the_kind_of_its_storage_says(write: Callable[[Any], Any]):
    for kind, (tensor, owner, counts) in _kinds().items():
        with turnout.inference_mode(kind == "uncounted"):
            before, owners = tensor.version(), owner.version()
            write(tensor)
            assert tensor.version() - before == (kind != "uncounted"), kind
            assert owner.version() - owners == counts, kind


def test_views_of_each_kind_have_the_version_of_what_they_view():
    for kind, (tensor, _, _) in _kinds().items():
        with turnout.inference_mode(kind == "uncounted"):
            before = tensor.version()
            tensor.view(-1)[:1].fill_(3)
            assert tensor.version() - before == (kind != "uncounted"), kind
            assert tensor.reshape(-1)[0].item() == 3, kind
