"""Sets of samples on each device, against cpu in float64: special values, large arrays, operands that lie anyhow in memory.

The sets are those of `turnout_conformance.cases.sets`; which of them a device is asked is said in `DEVICES`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from pretended_cuda import pretended

import turnout
from random_programs.on_device import let_go_of_programs
from turnout_aten.backend import host_fallback as hosting
from turnout_conformance.accuracy import Accuracy, differs
from turnout_conformance.cases import SETS
from turnout_conformance.cases.sets.limits import Limit
from turnout_cuda import pointwise

pytestmark = pytest.mark.filterwarnings("error::turnout.errors.KernelWarning")


def on_the_host(operator: str) -> str:
    """What ran on the host since it was asked last."""
    said = hosting.report() if hosting.calls() else ""
    hosting.reset_calls()
    return said and f"it ran on the host: {said.strip()}"


@dataclass(frozen=True)
class Device:
    """A device and what it is asked.

    device  its name in turnout
    sets    the names of the sets
    start   a context in which the device is there, entered before its first test and left after the last one of the module
    during  a context around each test
    watch, without, limits  those of `Accuracy`
    """

    device: str
    sets: tuple[str, ...]
    start: Callable[[pytest.FixtureRequest], AbstractContextManager[Any]]
    during: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    watch: Callable[[str], str] = lambda operator: ""
    without: tuple[str, ...] = ()
    limits: Mapping[str, Limit] = field(default_factory=dict)

    def problems(self, name: str, operator: str) -> list[str]:
        with self.during():
            return list(Accuracy(self.device, self.without, self.limits, self.watch).problems(name, operator))


@contextlib.contextmanager
def opencl(request: pytest.FixtureRequest) -> Iterator[None]:
    request.getfixturevalue("need_device")("opencl")
    yield


@contextlib.contextmanager
def few_programs() -> Iterator[None]:
    yield
    let_go_of_programs()


@contextlib.contextmanager
def emulated_cuda(request: pytest.FixtureRequest) -> Iterator[None]:
    """The CUDA backend over a stand-in for CuPy."""
    with pretended():
        yield


@contextlib.contextmanager
def raw_kernels() -> Iterator[None]:
    """Few elements are enough for a raw kernel of CUDA."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pointwise, "LIMIT", 1)
        yield


@contextlib.contextmanager
def two_stages() -> Iterator[None]:
    """Work-groups may not count on what others have written, and pieces are so long that vectors stand apart in them."""
    from turnout_opencl import reductions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turnout.empty(1, device="opencl").array.place, "joins", False)
        patch.setattr(reductions, "_SHARES", 1)
        yield


@contextlib.contextmanager
def whole_lines() -> Iterator[None]:
    """No line is cut, as where there are many."""
    from turnout_opencl import reductions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reductions, "COUNTS", 0)
        yield


# The others are those of compiled kernels and of raw kernels of CUDA, whose suites ask for them.
OF_OPENCL = tuple(name for name in SETS if name not in ("anyhow", "sizes"))
DEVICES = {
    "opencl": Device("opencl", OF_OPENCL, opencl, few_programs, on_the_host, ("complex128",)),
    "opencl in two stages": Device("opencl", ("lines",), opencl, two_stages, on_the_host),
    "opencl in whole lines": Device("opencl", ("lines",), opencl, whole_lines, on_the_host),
    "cuda": Device("pretended", ("special",), emulated_cuda, raw_kernels),
}


@pytest.fixture(scope="module")
def started(request: pytest.FixtureRequest) -> Iterator[Callable[[str], None]]:
    """Starts a device at its first test; all of them end with the module."""
    with contextlib.ExitStack() as stack:
        there: set[str] = set()

        def start(name: str) -> None:
            if name not in there:
                stack.enter_context(DEVICES[name].start(request))
                there.add(name)

        yield start


# The devices follow one another at each operator, so that what is expected is computed once.
GRID = [
    pytest.param(name, operator, device, id=f"{name}-{operator}-{device}")
    for name, rows in SETS.items()
    for operator in rows
    for device, facts in DEVICES.items()
    if name in facts.sets
]


@pytest.mark.parametrize(("name", "operator", "device"), GRID)
def test_results_are_near_exact_ones(name: str, operator: str, device: str, started: Callable[[str], None]) -> None:
    started(device)
    wrong = DEVICES[device].problems(name, operator)
    assert not wrong, "\n".join(wrong)


ULP = 2.0**-23
DISTANCES: list[tuple[float, float, str, Limit | float, str]] = [
    (1 + 2 * ULP, 1.0, "float32", Limit(2), ""),
    (1 + 3 * ULP, 1.0, "float32", Limit(2), "by 3 ulp, more than 2"),
    (1 + 3 * ULP, 1.0, "float32", Limit(2, floor=2.0), ""),
    (1 + ULP, 1.0, "float64", Limit(2), "by 5.369e+08 ulp, more than 2"),
    (1 + 2**-10, 1 + 2**-11, "float16", Limit(), ""),  # rounded once
    (1 + 2**-9, 1 + 2**-10, "float16", Limit(), "by 1 ulp, more than 0.51"),
    (1 + 2**-6, 1 + 2**-7, "bfloat16", Limit(), "by 1 ulp, more than 0.51"),
    (2**-148, 2**-149, "float32", Limit(1), ""),  # below the normal numbers
    (2**-132, 2**-133, "bfloat16", Limit(), "by 1 ulp, more than 0.51"),
    (2**-23, 2**-24, "float16", Limit(), "by 1 ulp, more than 0.51"),
    (-0.0, 0.0, "float64", Limit(), "-0.0"),
    (-0.0, 0.0, "float64", Limit(signs=False), ""),
    (-0.0, 0.0, "float64", 1.0, ""),
    (np.nan, np.nan, "float32", Limit(), ""),
    (np.nan, np.inf, "float32", Limit(), "nan"),
    (np.inf, 3.5e38, "float32", Limit(), ""),
    (1 + 3e-6, 1.0, "float32", 1.0, ""),
    (1 + 5e-6, 1.0, "float32", 1.0, "more than 4e-06"),
    (complex(1, np.inf), complex(1, np.inf), "complex64", Limit(), ""),
    (complex(1, 1 + 5 * ULP), complex(1, 1), "complex64", Limit(), "by 5 ulp"),
    (3, 2, "int64", Limit(), "3"),
]


@pytest.mark.parametrize(("found", "exact", "dtype", "limit", "said"), DISTANCES)
def test_distances_are_counted_in_units_of_the_dtype(
    found: float, exact: float, dtype: str, limit: Limit | float, said: str
) -> None:
    wrong = differs(np.array([found]), np.array([exact]), dtype, limit)
    assert said in wrong
    assert bool(wrong) is bool(said)


def test_what_is_wrong_beside_numbers_is_said_of_every_form_of_an_operator() -> None:
    wrong = list(Accuracy("cpu", watch=lambda operator: operator and f"{operator} was slow").problems("special", "square"))
    assert {each.partition(" ")[0] for each in wrong} == {"aten::square", "aten::square_", "aten::square.out"}
    assert all(": square" in each and each.endswith(" was slow") for each in wrong)
    assert not list(Accuracy("cpu").problems("special", "square"))
