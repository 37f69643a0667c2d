"""What Turnout asks of a device apart from its kernels: memory, views, random numbers, other libraries, threads, errors."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.dtypes import dtype_named
from turnout.errors import AliasError, DeviceError
from turnout_conformance.cases import CASES, Sample
from turnout_conformance.comparing import Raised, check, find, outcome, shown
from turnout_conformance.making import LAYOUTS, arguments, dtypes_of, row_major, samples
from turnout_conformance.replays import reversed_data

HOST = 1  # the host's memory, in the words of DLPack
VALUES = [[0, 1, 2], [3, 4, 5]]
EXAMPLES: tuple[Any, ...] = (VALUES, [[0, 1], [1, 0]], 1, [], [[], []])
# Views and, for each, whether an element of it may be written.
VIEWS: dict[str, tuple[Callable[[turnout.Tensor], turnout.Tensor], bool]] = {
    "t": (lambda x: x.t(), True),
    "row": (lambda x: x[1], True),
    "columns": (lambda x: x[:, ::2], True),
    "inner": (lambda x: x[1:, 1:], True),
    "element": (lambda x: x[1, 2], True),
    "flat": (lambda x: x.view(6), True),
    "diagonal": (lambda x: x.diagonal(), True),
    "unsqueezed": (lambda x: x.unsqueeze(1).transpose(0, 2), True),
    "strided": (lambda x: x.as_strided((2, 2), (1, 3), 1), True),
    "of a view": (lambda x: x[1:].t()[1:], True),
    "empty": (lambda x: x[2:], False),
    "expanded": (lambda x: x[:1].expand(4, 3), False),
    "unfolded": (lambda x: x.unfold(1, 2, 1), False),
}


def number(device: str) -> turnout.Tensor:
    """A matrix of floats on the device."""
    return turnout.tensor(VALUES, dtype=turnout.float32, device=device)


# ---- memory


def test_values_of_every_dtype_survive_the_way_there_and_back(turnout_device: str) -> None:
    assert "float32" in dtypes_of(turnout_device)
    for name in sorted(dtypes_of(turnout_device)):
        for data in EXAMPLES:
            here = turnout.tensor(data, dtype=turnout.float64, device="cpu").to(dtype_named(name))
            for way in (here, here.t() if here.dim() == 2 else here):
                there = way.to(turnout_device)
                assert (there.device.type, there.dtype, there.shape) == (turnout_device, here.dtype, way.shape)
                assert there.cpu().tolist() == way.tolist()
                assert there.tolist() == way.tolist()
            made = turnout.tensor(data, dtype=here.dtype, device=turnout_device)
            assert (made.dtype, made.tolist()) == (here.dtype, here.tolist())


def test_an_item_is_the_python_number_that_cpu_gives(turnout_device: str) -> None:
    for name in sorted(dtypes_of(turnout_device)):
        here = turnout.tensor([0, 1], dtype=turnout.float64, device="cpu").to(dtype_named(name))
        for place in (0, 1):
            mine, theirs = here.to(turnout_device)[place].item(), here[place].item()
            assert (type(mine), mine) == (type(theirs), theirs)


def test_copies_convert_dtypes_as_cpu_does(turnout_device: str) -> None:
    data = [[0.0, 1.0, 2.5], [-3.5, 4.0, 100.0]]
    for source in sorted(dtypes_of(turnout_device)):
        for target in sorted(dtypes_of(turnout_device)):
            here = turnout.tensor(data, dtype=turnout.float64, device="cpu").abs().to(dtype_named(source))
            if dtype_named(source).is_complex and not dtype_named(target).is_complex:
                continue
            assert here.to(turnout_device).to(dtype_named(target)).tolist() == here.to(dtype_named(target)).tolist()
            into = turnout.zeros(3, 2, dtype=dtype_named(target), device=turnout_device)
            assert into.copy_(here.to(turnout_device).t()).tolist() == here.t().to(dtype_named(target)).tolist()


def test_integers_that_do_not_fit_wrap_around(turnout_device: str) -> None:
    whole = [name for name in sorted(dtypes_of(turnout_device)) if "int" in name]
    for source in whole:
        here = turnout.tensor([-1, -129, 255, 256, 2**40 + 3], dtype=turnout.int64, device="cpu").to(dtype_named(source))
        for target in whole:
            expected = here.to(dtype_named(target)).tolist()
            assert here.to(turnout_device).to(dtype_named(target)).tolist() == expected, (source, target)


def test_memory_has_the_strides_that_were_asked_for(turnout_device: str) -> None:
    for shape, strides in (((2, 3), (1, 2)), ((2, 3), (3, 1)), ((2, 1, 3), (3, 9, 1)), ((), ()), ((0, 3), (3, 1))):
        made = turnout.empty_strided(shape, strides, device=turnout_device)
        assert (made.shape, made.stride(), made.storage_offset()) == (shape, strides, 0)
        made.fill_(3)
        assert made.tolist() == turnout.full(shape, 3.0, device="cpu").tolist()


# ---- views


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_the_elements_and_the_memory_of_its_base(turnout_device: str, name: str) -> None:
    view, writable = VIEWS[name]
    here, there = number("cpu"), number(turnout_device)
    mine, theirs = view(there), view(here)
    assert (mine.shape, mine.stride(), mine.storage_offset()) == (theirs.shape, theirs.stride(), theirs.storage_offset())
    check([mine], [theirs], turnout_device, 0)
    for x, v in ((here, theirs), (there, mine)):
        x.mul_(2)
        if writable:
            v.fill_(-7)
            v.add_(v)
    assert there.tolist() == here.tolist()
    assert mine.tolist() == theirs.tolist()
    assert (there.version(), mine.version()) == (here.version(), theirs.version())


def test_elements_are_written_and_read_by_index(turnout_device: str) -> None:
    found = []
    for device in ("cpu", turnout_device):
        x = number(device)
        x[0, 1] = 9
        x[1] = x[0]
        x[:, 2] += 5
        x[x > 8] = -1
        found.append((x.tolist(), x[[1, 0]].tolist(), x.version()))
    assert found[0] == found[1]


def test_a_write_that_overlaps_what_it_reads_is_refused_or_reads_first(turnout_device: str) -> None:
    for moved in (lambda x: (x[1:], x[:-1]), lambda x: (x[:-1], x[1:])):
        expected, source = moved(turnout.arange(1.0, 7.0, device="cpu"))
        right = (expected * source.clone()).tolist()
        target, read = moved(turnout.arange(1.0, 7.0, device=turnout_device))
        found = outcome(target.mul_, read)
        assert found.kind is AliasError if isinstance(found, Raised) else target.tolist() == right


# ---- random numbers


def drawn(device: str, seed: int) -> list[list[Any]]:
    """Numbers of several distributions, one after the other."""
    turnout.manual_seed(seed)
    x = turnout.ones(40, device=device)
    made = [turnout.rand(40, device=device), turnout.randn(40, device=device), turnout.rand(40, device=device)]
    made += [turnout.empty_like(x).uniform_(), turnout.nn.functional.dropout(x, 0.5), turnout.bernoulli(x * 0.5)]
    assert {t.device.type for t in made} == {device}
    return [t.tolist() for t in made]


def test_random_numbers_depend_on_the_seed_and_on_what_was_drawn_before(turnout_device: str) -> None:
    first = drawn(turnout_device, 3)
    assert first == drawn(turnout_device, 3)
    assert first != drawn(turnout_device, 4)
    assert first[0] != first[2]


def test_random_numbers_are_spread_as_their_distribution_says(turnout_device: str) -> None:
    turnout.manual_seed(5)
    uniform = np.array(turnout.rand(4000, device=turnout_device).tolist())
    assert 0 <= uniform.min() <= uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.03
    assert abs(uniform.var() - 1 / 12) < 0.01
    assert len(set(uniform)) > 3900
    assert abs(np.corrcoef(uniform[:-1], uniform[1:])[0, 1]) < 0.06
    normal = np.array(turnout.randn(4000, device=turnout_device).tolist())
    assert abs(normal.mean()) < 0.06
    assert abs(normal.std() - 1) < 0.06
    if "int64" in dtypes_of(turnout_device):
        assert sorted(turnout.randperm(50, device=turnout_device).tolist()) == list(range(50))


# ---- other libraries, copies


def test_dlpack_shares_the_memory_or_refuses(turnout_device: str) -> None:
    x = number(turnout_device)
    try:
        place = x.__dlpack_device__()
        turnout.from_dlpack(x)
    except BufferError as error:
        assert turnout_device in str(error)  # noqa: PT017 - both outcomes are tested
        with pytest.raises(BufferError):
            turnout.from_dlpack(x)
        return
    # An array whose memory is the host's comes back as a tensor on cpu.
    devices = (turnout_device, "cpu") if place[0] == HOST else (turnout_device,)
    for view in (x, x.t(), x[1:, ::2], x[0, 0]):
        again = turnout.from_dlpack(view)
        assert again.device.type in devices
        assert (again.dtype, again.shape) == (x.dtype, view.shape)
        assert again.tolist() == view.tolist()
        view.add_(1)
        assert again.tolist() == view.tolist()


def test_a_numpy_array_shares_the_memory_or_is_refused(turnout_device: str) -> None:
    x = number(turnout_device)
    found = outcome(x.numpy)
    if isinstance(found, Raised):
        assert turnout_device in found.text
    else:
        x.mul_(2)
        assert found[0].tolist() == x.tolist()
    assert x.cpu().numpy().tolist() == x.tolist()


def test_a_tensor_is_copied_pickled_and_printed(turnout_device: str) -> None:
    x = number(turnout_device).t()
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert (again.device, again.tolist()) == (x.device, x.tolist())
        again.zero_()
        assert x.tolist() == number("cpu").t().tolist()
    mine, theirs = repr(x), repr(x.cpu())
    assert mine == theirs if turnout_device == "cpu" else mine.replace(f", device='{x.device}'", "") == theirs


# ---- threads


def test_threads_get_the_results_that_one_thread_gets(turnout_device: str) -> None:
    """Four threads make the same calls at the same time, two of them with other values."""
    calls = []
    for case in CASES[:: max(len(CASES) // 24, 1)]:
        for sample, dtype in list(samples(case, turnout_device))[:1]:
            others = Sample(tuple(reversed_data(a) for a in sample.args), sample.kwargs)
            given = [arguments(each, dtype, row_major(turnout_device)) for each in (sample, others)]
            op = find(case.op)
            calls.append((op, given, [shown(outcome(op, *args, **kwargs)) for args, kwargs in given]))
    wrong: list[str] = []
    together = threading.Barrier(4)

    def run(number: int) -> None:
        for op, given, expected in calls:
            args, kwargs = given[number % 2]
            together.wait()
            found = shown(outcome(op, *args, **kwargs))
            if found != expected[number % 2]:
                wrong.append(f"{op.qualified_name} gave {found}, and alone {expected[number % 2]}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- errors


def test_tensors_of_two_devices_are_refused_and_0_dim_tensors_of_cpu_are_not(turnout_device: str) -> None:
    x = number(turnout_device)
    assert (x * turnout.tensor(2.0, device="cpu")).tolist() == (number("cpu") * 2).tolist()
    if turnout_device == "cpu":
        return
    for call in (lambda: x + number("cpu"), lambda: number("cpu") + x, lambda: x.add_(number("cpu"))):
        with pytest.raises(DeviceError, match="tensors on two devices"):
            call()
    assert x.tolist() == number("cpu").tolist()


def _written(x: turnout.Tensor, index: Any, value: Any) -> turnout.Tensor:
    x = x.clone()
    x[index] = value
    return x


def _gradient(x: turnout.Tensor, index: Any) -> turnout.Tensor:
    x = x.clone().requires_grad_()
    (x[index] * x[index]).sum().backward()
    assert x.grad is not None
    return x.grad


# Reads and writes of a tensor by an index.
INDEXED: tuple[Callable[[turnout.Tensor, Any], turnout.Tensor], ...] = (
    lambda x, index: x[index],
    lambda x, index: _written(x, index, 5.0),
    lambda x, index: _written(x, index, turnout.tensor(5.0, device="cpu")),
    lambda x, index: _written(x, index, x[index] * 2),
    _gradient,
)


@pytest.mark.parametrize("index", ["one", "two", "mask", "mask of all", "between", "none"])
def test_indices_and_masks_of_cpu_select_from_tensors_of_any_device(turnout_device: str, index: str) -> None:
    rows, columns = turnout.tensor([2, 0, 2], device="cpu"), turnout.tensor([1, 1, 0], device="cpu")
    like = turnout.arange(12.0, device="cpu").reshape(4, 3)
    given: Any = {
        "one": rows, "two": (rows, columns), "mask": turnout.tensor([True, False, True, True], device="cpu"),
        "mask of all": like > 4, "between": (slice(1, None), rows), "none": rows[:0],
    }[index]  # fmt: skip
    x = like.to(turnout_device)
    for call in INDEXED:
        found = call(x, given)
        assert (found.device, found.tolist()) == (x.device, call(like, given).tolist())
    if turnout_device != "cpu":
        with pytest.raises(DeviceError, match="tensors on two devices: self on cpu, indices"):
            like[rows.to(turnout_device)]
        with pytest.raises(DeviceError, match=r"tensors on two devices: self on .*, values on cpu"):
            x[rows] = turnout.ones(3, 3, device="cpu")
        assert x.tolist() == like.tolist()


# Calls of a matrix and of a vector that does not fit.
REFUSED: tuple[Callable[[turnout.Tensor, turnout.Tensor], Any], ...] = (
    lambda x, wrong: x.add_(wrong),
    lambda x, wrong: x.view(5),
    lambda x, wrong: x[4],
    lambda x, wrong: x @ wrong,
    lambda x, wrong: turnout.cat([x, wrong]),
)


def test_an_error_leaves_everything_as_it_was(turnout_device: str) -> None:
    found = []
    for device in ("cpu", turnout_device):
        x, wrong = number(device), turnout.ones(7, device=device)
        errors = [outcome(call, x, wrong) for call in REFUSED]
        assert all(isinstance(error, Raised) for error in errors), errors
        kinds = [error.kind for error in errors if isinstance(error, Raised)]
        found.append((kinds, x.tolist(), x.version(), (x + 1).tolist()))
    assert found[0] == found[1]


def test_layouts_do_what_their_names_say(turnout_device: str) -> None:
    for name, make in LAYOUTS.items():
        made = make(turnout_device)(VALUES, "float32")
        assert made.tolist() == number("cpu").tolist()
        assert made.is_contiguous() is (name == "row-major")
