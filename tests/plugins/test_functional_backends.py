"""Devices whose arrays are values: writes, views and gradients on read-only arrays, against the same on `cpu`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest
from turnout.func import functionalize

import read_only_arrays
import turnout
import turnout_arrays
from autograd_programs import Program as Smooth
from random_programs import chains, indexing, writes
from random_programs.functionalised import kinds_for
from random_programs.on_device import gradient_difference, judge
from random_programs.running import check
from turnout.errors import RegistrationError
from turnout.library import Library
from turnout.registry import Registrations
from turnout_aten.backend.functional_arrays import FunctionalArray
from turnout_aten.backend.functional_rows import Wanted, register_functional_kernels, register_functional_over
from turnout_aten.backend.paths import path_to, positions
from turnout_aten.errors.rows import RowError
from turnout_aten.kernels.tables import register_kernels
from turnout_functionalize.transform import REMOVE


@pytest.fixture(scope="module", autouse=True)
def readonly() -> Iterator[None]:
    library = read_only_arrays.register()
    yield
    library.undo()


READS: list[Callable[[Any, Any], Any]] = [
    lambda x, at: x[at], lambda x, at: x.index_select(1, at), lambda x, at: x.gather(1, at[None]), lambda x, at: x.take(at),
]  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_reads_at_indices_and_their_gradients_are_those_of_cpu(read: Callable[[Any, Any], Any]) -> None:
    found = []
    for place in ("cpu", "readonly"):
        x = turnout.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=place, requires_grad=True)
        y = read(x, turnout.tensor([0, 1, 0], device=place))
        (y * y).sum().backward()
        found.append((y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


# ---- random programs


@pytest.mark.parametrize("kind", [chains, indexing, writes], ids=["chains", "indexing", "writes"])
def test_programs_give_what_cpu_gives_with_the_strides_of_cpu(kind: Any, seeds: Callable[[int], range]) -> None:
    check({seed: kind.Program(seed).lines for seed in seeds(60)}, judge("readonly", strides=kind is writes))


@pytest.mark.parametrize("remove", ["", *REMOVE])
def test_gradients_of_programs_are_those_of_cpu(remove: str, seeds: Callable[[int], range]) -> None:
    change = partial(functionalize, remove=remove) if remove else lambda function: function
    for seed in seeds(40):
        if remove and remove not in kinds_for(seed):
            continue
        found = gradient_difference(seed, "readonly", change)
        assert not found, f"seed {seed}: {found}\n{Smooth(seed, smooth=True)}\n\n--seed {seed} --programs 1 runs it again"


def wrong_programs(count: int) -> list[int]:
    return [seed for seed in range(count) if judge("readonly")(writes.Program(seed).lines)]


def test_a_view_that_is_not_made_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_value(self: FunctionalArray) -> Any:
        self._value = self._read(self.memory.value()) if self._value is None else self._value
        return self._value

    monkeypatch.setattr(FunctionalArray, "value", first_value)
    assert wrong_programs(60)


def test_a_write_that_misses_its_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FunctionalArray, "_placed", lambda self, value, new: value)
    assert wrong_programs(60)


# ---- memory


def on_readonly(*data: Any) -> turnout.Tensor:
    return turnout.tensor(*data, device="readonly")


def value_of(tensor: turnout.Tensor) -> Any:
    return tensor.array.value()


def test_values_cannot_be_written_and_writes_work() -> None:
    x = on_readonly([[1.0, 2.0], [3.0, 4.0]])
    before = value_of(x)
    with pytest.raises(ValueError, match="read-only"):
        before[0, 0] = 5
    x[0].mul_(10)
    assert x.tolist() == [[10.0, 20.0], [3.0, 4.0]]
    assert before.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_clone_shares_the_value_until_one_of_the_two_is_written() -> None:
    x = on_readonly([1.0, 2.0])
    y = x.clone()
    assert value_of(y) is value_of(x)
    y.add_(1)
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0], [2.0, 3.0])


def test_a_view_is_made_once_for_each_generation_of_its_memory() -> None:
    x = on_readonly([[1.0, 2.0], [3.0, 4.0]])
    column = x.t()[1]
    first = value_of(column)
    assert value_of(column) is first
    x.add_(1)
    assert value_of(column) is not first
    assert column.tolist() == [3.0, 5.0]


def test_memory_that_was_never_written_is_zeros() -> None:
    made = turnout.empty(2, 2, device="readonly")
    made[0].fill_(3)
    assert made.tolist() == [[3.0, 3.0], [0.0, 0.0]]


def test_a_view_as_another_dtype_reads_and_writes_the_same_memory() -> None:
    for device in ("cpu", "readonly"):
        x = turnout.tensor([1.0, 2.0, 3.0], dtype=turnout.float32, device=device)
        bits = x.view(turnout.int32)
        bits[1] += 1 << 23
        x[2] = 1.0
        assert x.tolist() == [1.0, 4.0, 1.0]
        assert bits[2].item() == bits[0].item()
        pairs = turnout.zeros(3, dtype=turnout.complex64, device=device)
        turnout.view_as_real(pairs)[1:, 1] = 5
        assert pairs.tolist() == [0j, 5j, 5j]


def test_threads_write_different_parts_of_one_memory() -> None:
    x = turnout.zeros(8, 50, device="readonly")

    def add(row: int) -> None:
        for _ in range(50):
            x[row].add_(1)

    threads = [Thread(target=add, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.tolist() == [[50.0] * 50] * 8


# ---- rows


def test_rows_that_make_their_results_take_the_fast_path() -> None:
    x, row = on_readonly([1.0, 2.0]), on_readonly([[1.0, 2.0]])
    paths = {
        "add.Tensor (x, y)": ("text: array kernel, simple", [x, x]),
        "relu": ("text: array kernel, simple", [x]),  # by its steps
        "sum": ("text: array kernel, simple", [x]),
        "gt.Scalar": ("text: array kernel, simple", [x, 1.5]),
        "_softmax": ("text: array kernel", [x, 0, False]),
        "gelu": ("text: kept plan", [x]),
        "relu of a spread row": ("text: array kernel, simple", [row.expand(2, 2)]),
        "relu of columns": ("text: kept plan; self does not lie row by row", [on_readonly([[1.0, 2.0], [3.0, 4.0]]).t()]),
    }
    for name, (path, args) in paths.items():
        found = turnout.explain(f"aten::{name.partition(' ')[0]}", *args).path[-1].path
        assert found.startswith(path), (name, found)


def test_a_row_that_the_array_module_has_no_function_for_is_left_out() -> None:
    class Small:
        """NumPy without some functions."""

        def __getattr__(self, name: str) -> Any:
            if name in ("nextafter", "cumsum"):
                raise AttributeError(name)
            return getattr(np, name)

    whole, small = turnout_arrays.functional_kernels(np), turnout_arrays.functional_kernels(Small())
    assert {*whole} - {*small} == {"nextafter.out"}  # a running sum is combined step by step
    value = small["cumsum.out"].fn(np.arange(5.0), 0, None, Wanted((5,), turnout.float64, turnout.device("cpu")))
    assert value.tolist() == [0.0, 1.0, 3.0, 6.0, 10.0]


# ---- paths


def test_a_path_leads_to_the_elements_of_its_geometry(seeds: Callable[[int], range]) -> None:
    found = 0
    for seed in seeds(3000):
        draw = Random(seed)
        memory = tuple(draw.choice([1, 2, 3, 4, 6]) for _ in range(draw.randint(0, 4)))
        shape = tuple(draw.choice([1, 2, 3, 4]) for _ in range(draw.randint(0, 4)))
        strides = tuple(draw.choice([0, 1, 1, 2, 3, 4, 6, 12, 24]) for _ in shape)
        offset = draw.randint(0, 5)
        size = prod(memory)
        if offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) >= size:
            continue
        path = path_to(memory, shape, strides, offset)
        if path is None:
            continue
        found += 1
        value = np.arange(size).reshape(memory).reshape(path.grid)
        value = value if path.cuts is None else value[path.cuts]
        value = np.broadcast_to(value.transpose(path.order).reshape(path.single), shape)
        assert value.reshape(-1).tolist() == list(positions(shape, strides, offset)), (seed, memory, shape, strides, offset)
    assert found > len(seeds(3000)) // 20


def test_views_by_operators_have_paths() -> None:
    cases = {
        "transposed": ((3, 4), (4, 3), (1, 4), 0),
        "rows": ((3, 4), (2, 4), (4, 1), 4),
        "every other column": ((3, 4), (3, 2), (4, 2), 1),
        "a column": ((3, 4), (3,), (4,), 2),
        "flat": ((3, 4), (12,), (1,), 0),
        "split": ((3, 4), (3, 2, 2), (4, 2, 1), 0),
        "in another shape": ((3, 4), (6, 2), (2, 1), 0),
        "rows in another shape": ((4, 4), (4, 2), (2, 1), 8),
        "the diagonal": ((4, 4), (4,), (5,), 0),
        "expanded": ((3,), (2, 3), (0, 1), 0),
        "channels last": ((2, 3, 4, 5), (2, 4, 5, 3), (60, 5, 1, 20), 0),
    }
    assert [name for name, case in cases.items() if path_to(*case) is None] == []
    assert path_to((6,), (5, 2), (1, 1), 0) is None  # windows overlap


# ---- values in and out


class Given(np.ndarray):
    """Arrays of a package of their own, which nobody writes."""


class Taking(read_only_arrays.ReadOnlyBackend):
    name = "Taking"
    device_type = "taking"
    adopts = Given


def test_an_array_of_a_package_that_a_backend_adopts_is_a_tensor_of_its_device() -> None:
    array = np.arange(3.0).view(Given)
    assert turnout.as_tensor(array).device.type == "cpu"
    library = Registrations("taking")
    library.backend(Taking(), functional_only=True, adopts=(__name__,))
    try:
        x = turnout.as_tensor(array)
        assert (x.device.type, value_of(x) is array, turnout.asarray(array).device.type) == ("taking", True, "taking")
        assert turnout.as_tensor(array, device="cpu").device.type == turnout.tensor(array).device.type == "cpu"
        assert turnout.as_tensor(array, dtype=turnout.float32).device.type == "taking"
        assert turnout.as_tensor(np.arange(3.0)).device.type == "cpu"
    finally:
        library.undo()


# ---- rows over composite kernels


def test_a_row_over_a_composite_kernel_serves_what_it_does_not_leave_and_records_nothing() -> None:
    served: list[tuple[int, ...]] = []

    def products(self: Any, other: Any) -> Any:
        assert type(self) is type(other) is np.ndarray
        if self.ndim < 4:
            return NotImplemented
        served.append(self.shape)
        return self @ other

    def both(a: Any, b: Any) -> Any:
        with turnout.no_grad():
            plain = a @ b
        recorded = a @ b
        first = turnout.autograd.grad(recorded.sin().sum(), [a, b], create_graph=True)
        return plain, recorded, *first, *turnout.autograd.grad(sum(each.pow(2).sum() for each in first), [a, b])

    turnout.manual_seed(0)
    few, many = [[turnout.randn(2, 3, 4, 5)[at], turnout.randn(2, 3, 5, 6)[at]] for at in (0, ...)]
    library = Registrations("over")
    register_functional_over(library, turnout.device("readonly").backend, {"matmul": products})
    try:
        for given in (few, many):
            sides = [[each.to(place).detach().requires_grad_() for each in given] for place in ("readonly", "cpu")]
            for found, expected in zip(*[both(*side) for side in sides], strict=True):
                assert (found.device.type, found.stride()) == ("readonly", expected.stride())
                turnout.testing.assert_close(found.cpu(), expected)
        path = turnout.explain("aten::matmul", *[each.to("readonly") for each in many])
        assert "products, or the kernel below [kernel] (over, " in str(path).rpartition("\n->")[2]
    finally:
        library.undo()
    assert served == [(2, 3, 4, 5)], "calls that record a gradient stay composed"
    assert turnout.equal((many[0].to("readonly") @ many[1].to("readonly")).cpu(), many[0] @ many[1])
    assert len(served) == 1


def test_rows_over_composite_kernels_that_cannot_be_called_are_reported_when_they_are_registered() -> None:
    def one(self: Any) -> Any:
        return self

    library, backend = Registrations("over"), turnout.device("readonly").backend
    with pytest.raises(RegistrationError) as caught:
        register_functional_over(library, backend, {"matmul": one})
    assert re.sub(r" \(.*?\.py:\d+\)", "", str(caught.value)) == (
        f"{library.origin}: the table of ReadOnly has rows that cannot be called as their operators call them\n"
        "  aten::matmul  one takes 1 positional argument; it is called with 2: self, other"
    )
    with pytest.raises(RegistrationError) as caught:
        register_functional_over(library, backend, {"matmul": lambda self, other: NotImplemented, "nothing": one})
    assert str(caught.value) == f"{library.origin}: the table of ReadOnly names no operator: aten::nothing"


# ---- what is refused


class Plain(turnout_arrays.ArrayBackend):
    name = "Plain"
    device_type = "plain"


def test_a_backend_that_can_write_is_not_declared_functional_only() -> None:
    library = Registrations("plain")
    library.backend(backend := Plain(np), functional_only=True)
    try:
        with pytest.raises(RegistrationError) as caught:
            register_kernels(library, backend, {"neg.out": np.negative})
    finally:
        library.undo()
    assert str(caught.value) == (
        f"{library.origin}: the row of Plain says functional_only, but Plain is not a FunctionalBackend\n"
        "  to fix  derive it from turnout_aten.backend.functional_backend.FunctionalBackend, or take functional_only out of the "
        "manifest"
    )


class Undeclared(read_only_arrays.ReadOnlyBackend):
    name = "Undeclared"
    device_type = "undeclared"


def test_a_backend_of_values_is_declared_functional_only() -> None:
    library = Registrations("undeclared")
    library.backend(backend := Undeclared())
    try:
        with pytest.raises(RegistrationError) as caught:
            register_functional_kernels(library, backend, {"neg.out": lambda self, out: -self})
    finally:
        library.undo()
    assert str(caught.value) == (
        f"{library.origin}: Undeclared is a FunctionalBackend, but the row of Undeclared does not say that it cannot write\n"
        "  to fix  add `functional_only = true` to its [[provides.backend]] in the manifest"
    )


def called(row: Callable[..., Any], function: Callable[[turnout.Tensor], Any]) -> str:
    """The error of a call whose row is replaced."""
    library = Registrations("undeclared")
    library.backend(backend := Undeclared(), functional_only=True)
    try:
        register_functional_kernels(library, backend, {"aminmax.out": row, "neg.out": row})
        x = turnout.tensor([1.0, 2.0], device="undeclared")
        with pytest.raises(RowError) as caught:
            function(x)
        assert x.tolist() == [1.0, 2.0]
    finally:
        library.undo()
    return re.sub(r" \(.*?\.py:\d+\)", "", str(caught.value))


def test_a_row_that_returns_another_shape_is_named() -> None:
    def first(self: Any, *rest: Any) -> Any:
        return self[:1]

    expected = (
        "aten::neg.out: the row of Undeclared, first, gave an array of shape [1] and dtype float32; expected shape [2] and dtype"
    )
    assert called(first, lambda x: x.neg_()) == f"{expected} float32"


def test_a_row_that_returns_too_few_values_is_named() -> None:
    def one(self: Any, *rest: Any) -> Any:
        return self.min()

    assert called(one, lambda x: x.aminmax()) == "aten::aminmax.out: the row of Undeclared, one, returned 1 values; expected 2"


def test_a_custom_kernel_takes_and_returns_values() -> None:
    with Library("functional_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "ReadOnly", arrays=True)
        assert turnout.ops.functional_test.twice(on_readonly([1.0, 2.0])[1:]).tolist() == [4.0]


def test_a_custom_kernel_on_arrays_that_would_write_them_is_refused() -> None:
    with Library("functional_test", "DEF") as library:
        library.define("clear_(Tensor(a!) x) -> ()")
        library.impl("clear_", lambda x: None, "ReadOnly", arrays=True)
        with pytest.raises(RegistrationError) as caught:
            turnout.ops.functional_test.clear_(on_readonly([1.0, 2.0]))
    assert str(caught.value) == (
        "functional_test::clear_: a kernel on arrays of ReadOnly cannot write its arguments, because these arrays are values\n"
        "  to fix  register a kernel on tensors that calls operators"
    )


# ---- products, which do not broadcast as an array module's do

PRODUCTS = {
    "mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "matmul": (None, None), "addmm": (None, 2, 2),
    "baddbmm": (None, 3, 3), "addmv": (None, 2, 1), "addbmm": (None, 3, 3), "addr": (None, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_takes_the_shapes_that_cpu_takes(name: str) -> None:
    def outcome(device: str, shapes: list[tuple[int, ...]]) -> Any:
        try:
            return tuple(getattr(turnout, name)(*[turnout.ones(shape, device=device) for shape in shapes]).shape)
        except turnout.errors.TurnoutError as error:
            return type(error), str(error).partition("\n")[0]

    draw, taken = Random(name), 0
    for _ in range(300):
        ranks = [draw.randrange(5) if rank is None or draw.random() < 0.1 else rank for rank in PRODUCTS[name]]
        shapes = [tuple(draw.choice((1, 2, 2, 2)) for _ in range(rank)) for rank in ranks]
        expected = outcome("cpu", shapes)
        assert outcome("readonly", shapes) == expected, shapes
        taken += len(expected) != 2 or isinstance(expected[0], int)
    assert 20 < taken < 300
