"""The CPU plugin: silence of floating-point warnings, threads, what activation leaves behind."""

from __future__ import annotations

import platform
import threading
import warnings

import numpy as np
import pytest

import turnout
from outcomes import printed, refused
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import LARGE, Pool


def test_importing_turnout_imports_no_numpy() -> None:
    printed("import sys, turnout; assert 'numpy' not in sys.modules; turnout.zeros(1); assert 'numpy' in sys.modules")


DIVISIONS = """
import numpy, sys, turnout
x = turnout.tensor([1.0, 0.0])
turnout.ones(1)
sys.stderr = sys.stdout
for value in (x / 0, x / x, x.log(), (x * 1e38) * 1e38, turnout.ones(3_000_000) / 0):
    pass
"""


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_floating_point_warnings_do_not_reach_the_user(options: tuple[str, ...]) -> None:
    assert printed(DIVISIONS, options=options) == ""


def test_the_users_own_numpy_still_warns_and_deactivation_takes_the_filter_back() -> None:
    code = """
import numpy, sys, turnout, warnings
before = list(warnings.filters)
turnout.ones(1)
assert warnings.filters != before
sys.stderr = sys.stdout
numpy.array([1.0]) / 0
turnout.plugins.deactivate("cpu")
assert warnings.filters == before
"""
    assert "RuntimeWarning: divide by zero" in printed(code, options=())


def test_an_imaginary_part_is_not_cut_off_in_silence() -> None:
    x = turnout.ones(2)
    for call in (lambda: turnout.add(x, x, alpha=1j), lambda: turnout.lerp(x, x, 1j), lambda: turnout.threshold(x, 0, 1j)):
        refused(turnout.errors.DTypeError, call)


def test_results_are_right_where_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (turnout.tensor([1.0, 0.0]) / 0).tolist()[0] == float("inf")


# ---- threads


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_work_gives_the_same_result_on_any_number_of_threads(threads: int) -> None:
    pool = Pool(lambda: threads)
    table = kernels(pool)
    a, b = np.arange(LARGE + 5, dtype="f4"), np.ones(LARGE + 5, "f4")
    out = np.empty_like(a)
    assert np.array_equal(table["add.out"].fn(a, b, 1), a + b)
    assert table["mul.out"].fn(a, 2.5, out) is out
    assert np.array_equal(out, a * np.float32(2.5))
    assert np.array_equal(table["exp.out"].fn(-a), np.exp(-a))
    assert np.array_equal(table["add.out"].fn(a[::2], b[::2], 1), a[::2] + b[::2])
    pool.close()


def test_pieces_run_on_several_threads_and_are_not_cut_again() -> None:
    seen = []
    pool = Pool(lambda: 2)

    def ufunc(*arrays: np.ndarray) -> np.ndarray:
        seen.append((threading.current_thread().name, pool.count()))
        return np.add(*arrays)

    ones = np.ones((4, LARGE), "f4")
    assert pool.apply(ufunc, (ones, ones), np.empty_like(ones)) is not None
    names = {name for name, _ in seen}
    assert len(names) == 2
    assert {count for _, count in seen} == {1}
    assert pool.count() == 2
    pool.close()


def test_an_error_in_a_piece_reaches_the_caller_and_the_pool_goes_on() -> None:
    pool = Pool(lambda: 2)

    def broken(*arrays: np.ndarray) -> None:
        raise ValueError("broken")

    ones = np.ones(10, "f4")
    assert refused(ValueError, pool.apply, broken, (ones,), np.empty_like(ones)) == "broken"
    assert pool.apply(np.negative, (ones,), None).tolist() == [-1.0] * 10
    pool.close()


def test_option_threads_is_read_at_each_use() -> None:
    code = (
        "import threading, turnout; from turnout import config\n"
        f"x = turnout.ones({LARGE + 1})\n"
        "def workers(): return sum(t.name.startswith('turnout-cpu') for t in threading.enumerate())\n"
        "with config.override({'plugin.cpu.threads': 1}): x.sin()\n"
        "assert workers() == 0\n"
        "with config.override({'plugin.cpu.threads': 3}): x.sin()\n"
        "assert 1 <= workers() <= 2\n"
    )
    printed(code, options=())


def test_threads_work_in_a_forked_process() -> None:
    code = (
        "import os, warnings, turnout; warnings.simplefilter('ignore')\n"
        f"x = turnout.ones({LARGE + 1}); x + x\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        f"    os._exit(0 if (x + x).sum().item() == {2 * (LARGE + 1)} else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    printed(code, options=())


def test_a_closed_executor_leaves_the_work_to_the_caller() -> None:
    pool = Pool(lambda: 2)
    ones = np.ones(10, "f4")
    pool.apply(np.negative, (ones,), None)
    assert pool._executor is not None
    pool._executor.shutdown()
    assert pool.apply(np.negative, (ones,), None) is None


_FAULTS = """
import resource
import turnout

def steps(count):
    for _ in range(count):
        x = turnout.ones(200_000)
        y = x * 2
        del x, y

steps(5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
steps(100)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 100)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how memory is kept is the C library's own")
def test_memory_that_was_freed_is_used_again_without_page_faults() -> None:
    # One of three runs: a system that is short of memory may take it back all the same. 390 where it gets it after each step.
    assert any(float(printed(_FAULTS)) < 20 for _ in range(3))


# What needs bfloat16 first, and what is printed; none of it before ml_dtypes was imported for another reason.
FIRST_BFLOAT16 = {
    "a tensor is made": ("print(turnout.ones(2, dtype=turnout.bfloat16).dtype)", "turnout.bfloat16"),
    "many are converted": ("print(turnout.ones(70_000).to(turnout.bfloat16).sum().dtype)", "turnout.bfloat16"),
    "an array is taken": (
        "import ml_dtypes, numpy; print(turnout.from_numpy(numpy.ones(2, ml_dtypes.bfloat16)))",
        "tensor([1., 1.], dtype=turnout.bfloat16)",
    ),
    "an array of another dtype of that module is refused": (
        (
            "import ml_dtypes, numpy\n"
            "try:\n    turnout.from_numpy(numpy.ones(2, ml_dtypes.float8_e5m2))\n"
            "except turnout.errors.TurnoutError as error:\n    print(type(error).__name__, 'bfloat16' in str(error))"
        ),
        "DTypeError False",
    ),
    "eight threads make one": (
        (
            "import threading; start, made = threading.Barrier(8), []\n"
            "def make():\n    start.wait(); made.append(turnout.ones(2).to(turnout.bfloat16).tolist())\n"
            "threads = [threading.Thread(target=make) for _ in range(8)]\n"
            "for each in threads: each.start()\n"
            "for each in threads: each.join()\n"
            "print(made == [[1.0, 1.0]] * 8)"
        ),
        "True",
    ),
}


@pytest.mark.parametrize("case", FIRST_BFLOAT16)
def test_bfloat16_is_named_when_it_is_first_needed(case):
    program, shown = FIRST_BFLOAT16[case]
    head = "import sys, turnout; sys.setswitchinterval(1e-6); turnout.ones(2) + 1; print('ml_dtypes' in sys.modules)\n"
    assert printed(head + program) == f"False\n{shown}"


def test_the_first_operation_loads_no_module_that_only_errors_or_other_array_modules_need():
    unneeded = ["turnout.operators.missing", "turnout_arrays.functional", "heapq", "json", "pathlib"]
    names = ["turnout_arrays.pooling", *unneeded]
    shown = printed(f"import sys, turnout; turnout.ones(2) + 1; print([name for name in {names} if name in sys.modules])")
    assert shown == "['turnout_arrays.pooling']"
