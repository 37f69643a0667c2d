"""`opcheck` itself: the report, the error, the smallest call, and the pytest plugin."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import turnout
from outcomes import refused
from turnout import Tensor, library
from turnout.errors import ArgumentError, CallError
from turnout.registry import find_operator
from turnout_opcheck.checking import CHECKS
from turnout_opcheck.report import OpCheckError

pytest_plugins = ["pytester"]


@pytest.fixture
def lib():
    with library.Library("checked", "DEF") as made:
        yield made


def define(lib, schema, kernel, key="CompositeExplicitAutograd"):
    name = lib.define(schema)
    lib.impl(name, kernel, key)
    return getattr(turnout.ops.checked, name)


def writes(x):
    x.add_(1)
    return x * 2


def test_a_fault_raises_an_error_with_the_check_the_smallest_call_and_the_remedy(lib):
    op = define(lib, "f(Tensor x) -> Tensor", writes)
    with pytest.raises(OpCheckError) as caught:
        library.opcheck(op, (turnout.tensor([[1.0, 2.0], [3.0, 4.0]]),), test_utils="test_schema")
    assert str(caught.value) == (
        "checked::f: opcheck found 1 fault\n"
        "test_schema: the operator writes x, and its schema does not say so: checked::f(Tensor x) -> Tensor\n"
        "  call    checked::f(float32[1, 1] [[1]])\n"
        "  to fix  declare the write, Tensor(a!) x, or work on a copy, x.clone()"
    )
    assert isinstance(caught.value, AssertionError)
    assert caught.value.report["test_schema"].startswith("test_schema: the operator writes x")


def test_the_report_says_what_passed_what_was_not_tried_and_why(lib):
    op = define(lib, "f(Tensor x) -> Tensor", lambda x: x * 2, "CompositeImplicitAutograd")
    report = library.opcheck(op, (turnout.tensor([1.0, 2.0]),), test_utils=("test_schema", "test_defaults", "test_autocast"))
    assert report == {"test_schema": "SUCCESS", "test_defaults": "SUCCESS", "test_autocast": "SUCCESS"}
    assert report.untried == {"test_defaults": "no argument has a default", "test_autocast": "it has no rule for autocast"}
    assert str(report) == (
        "opcheck of checked::f\n"
        "  tried          the given arguments, other values, the first dim fastest, gaps in memory, repeated elements, "
        "dims of length 1, first dim of length 1, no elements, 0 dims, float64 in place of float32, float16 in place of float32\n"
        "  test_schema    passed\n"
        "  test_defaults  not tried: no argument has a default\n"
        "  test_autocast  not tried: it has no rule for autocast"
    )


def test_the_report_says_which_derived_arguments_the_operator_refuses(lib):
    def first(x):
        if x.ndim != 1 or not x.numel():
            raise ValueError("first: x has one dim and an element")
        return x[0].clone()

    op = define(lib, "first(Tensor x) -> Tensor", first)
    report = library.opcheck(op, (turnout.tensor([1.0, 2.0]),))
    assert report.refused == ["no elements", "0 dims"]


def test_all_checks_are_made_by_default_and_one_can_be_chosen(lib):
    op = define(lib, "f(Tensor x) -> Tensor", lambda x: x * 2)
    x = turnout.tensor([1.0, 2.0])
    assert list(library.opcheck(op, (x,))) == list(CHECKS)
    assert list(library.opcheck(op, (x,), test_utils="test_schema")) == ["test_schema"]
    assert refused(ArgumentError, library.opcheck, op, (x,), test_utils="test_shape") == (
        f"opcheck: there is no check 'test_shape'; the checks are {', '.join(CHECKS)}"
    )


def test_the_readme_has_a_row_for_each_check():
    readme = (Path(__file__).parents[2] / "plugins" / "opcheck" / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE) == list(CHECKS)


def test_an_operator_is_given_by_name_as_an_operator_or_as_a_handle():
    @library.custom_op("checked::handle", mutates_args=())
    def handle(x: Tensor) -> Tensor:
        return x * 2

    handle.register_fake(turnout.empty_like)
    x = turnout.tensor([1.0])
    try:
        for op in (handle, "checked::handle", turnout.ops.checked.handle, handle.operator):
            assert library.opcheck(op, (x,), test_utils="test_schema")["test_schema"] == "SUCCESS"
    finally:
        handle.undo()
    assert refused(CallError, library.opcheck, 3, (x,)) == (
        "opcheck: an operator is given by its name, as an operator or as what custom_op returned, got int"
    )


@pytest.mark.parametrize(
    "given", [lambda: turnout.ones(2, device="meta"), lambda: turnout.FakeMode().from_tensor(turnout.ones(2))]
)
def test_arguments_without_data_are_an_error(lib, given):
    op = define(lib, "f(Tensor[] xs) -> Tensor", lambda xs: xs[0] * 2)
    x = given()
    assert refused(CallError, library.opcheck, op, ([x],)) == (
        f"opcheck: xs[0] is a {x.device.type} tensor without data; give arguments with data"
    )


def test_an_operator_that_does_not_accept_the_given_arguments_raises_its_own_error(lib):
    def refuses(x):
        raise ValueError("never")

    op = define(lib, "f(Tensor x) -> Tensor", refuses)
    assert "never" in refused(ValueError, lambda: library.opcheck(op, (turnout.ones(1),)))


def test_the_given_tensors_and_all_modes_are_as_they_were(lib):
    def rude(x):
        x.add_(1)
        turnout.set_default_dtype(turnout.float64)
        turnout.set_grad_enabled(False)
        return x + turnout.rand(())

    op = define(lib, "f(Tensor x) -> Tensor", rude)
    x = turnout.tensor([1.0, 2.0])
    turnout.manual_seed(5)
    state = turnout.Generator().manual_seed(5).get_state()
    report = library.opcheck(op, (x,), raise_exception=False)
    assert {"test_schema", "test_determinism"} <= {each.check for each in report.found}
    assert x.tolist() == [1, 2]
    assert turnout.get_default_dtype() is turnout.float32
    assert turnout.is_grad_enabled()
    assert turnout.rand(3).tolist() == turnout.rand(3, generator=turnout.Generator().set_state(state)).tolist()


def test_the_error_survives_pickling(lib):
    import pickle

    op = define(lib, "f(Tensor x) -> Tensor", writes)
    with pytest.raises(OpCheckError) as caught:
        library.opcheck(op, (turnout.ones(2),), test_utils="test_schema")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_a_race_is_found_where_a_lock_is_missing_and_not_where_it_is_held(lib):
    import threading

    held, memory = threading.Lock(), np.zeros(8)

    def raced(x):
        memory[:2] = x.numpy() * 2
        return turnout.from_numpy(memory[:2].copy())

    def locked(x):
        with held:
            return raced(x)

    x = turnout.tensor([1.0, 2.0], dtype=turnout.float64)
    bad, good = define(lib, "bad(Tensor x) -> Tensor", raced), define(lib, "good(Tensor x) -> Tensor", locked)
    report = library.opcheck(bad, (x,), test_utils="test_threads", raise_exception=False)
    assert "a call that another thread interrupts" in report["test_threads"]
    assert library.opcheck(good, (x,), test_utils="test_threads")["test_threads"] == "SUCCESS"


def test_a_composite_may_return_its_input_and_another_kernel_may_not(lib):
    composite = define(lib, "composite(Tensor x) -> Tensor", lambda x: x, "CompositeImplicitAutograd")
    kernel = define(lib, "kernel(Tensor x) -> Tensor", lambda x: x)
    x, checks = turnout.ones(2), ("test_schema", "test_faketensor")
    assert set(library.opcheck(composite, (x,), test_utils=checks).values()) == {"SUCCESS"}
    found = library.opcheck(kernel, (x,), test_utils=checks, raise_exception=False).found
    assert {each.check for each in found} == set(checks)


SUITE = """
import pytest
import turnout
from turnout import library

LIB = library.Library("suite", "DEF")
LIB.define("good(Tensor x) -> Tensor")
LIB.impl("good", lambda x: x * 2, "CompositeExplicitAutograd")
LIB.define("bad(Tensor x, int n=1) -> Tensor")
LIB.impl("bad", lambda x, n=1: x.add_(n), "CompositeExplicitAutograd")


def teardown_module():
    LIB.undo()


@pytest.mark.opcheck("suite")
def test_marked():
    assert turnout.ops.suite.bad(turnout.ones(2)).tolist() == [2.0, 2.0]


def test_plain():
    assert turnout.ops.suite.good(turnout.ones(2)).tolist() == [2.0, 2.0]


def test_bad_again():
    turnout.ops.suite.bad(turnout.ones(2, 2))


def test_fails_itself():
    turnout.ops.suite.bad(turnout.ones(3, 3, 3))
    assert False
"""


def run(pytester, *options, suite=SUITE):
    """A suite as pytest runs it, without plugins that take seconds to import."""
    pytester.makepyfile(test_suite=suite)
    left_out = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "zarr")]
    return pytester.runpytest_inprocess(*left_out, "-n", "0", *options)


def test_the_marker_checks_what_a_test_calls_with_its_inputs(pytester):
    result = run(pytester, "-k", "marked or plain", "--strict-markers")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*suite::bad: opcheck found*", "*the operator writes x*", "*call    suite::bad(float32[[]1*"])


def test_the_option_checks_all_tests_once_for_each_kind_of_call(pytester):
    result = run(pytester, "--opcheck", "suite")
    result.assert_outcomes(passed=1, failed=3)
    assert "test_plain" not in result.stdout.str()


def test_the_option_says_what_was_checked_or_that_nothing_was(pytester):
    result = run(pytester, "--opcheck", "suite", "-k", "plain or again")
    result.stdout.fnmatch_lines(["opcheck: suite::bad (1 kind of call), suite::good (1 kind of call)"])
    result = run(pytester, "--opcheck", "siute", "-k", "plain")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["opcheck: no test called an operator of siute"])


def test_calls_without_data_are_not_checked_and_those_of_each_device_are(pytester, need_device):
    need_device("opencl")
    suite = """
import pytest
import turnout
from turnout import library

LIB = library.Library("suite", "DEF")
LIB.define("f(Tensor x) -> Tensor")
LIB.impl("f", lambda x: x * 2, "CompositeImplicitAutograd")

def teardown_module():
    LIB.undo()

@pytest.mark.parametrize("device", ["cpu", "meta", "opencl"])
def test_it(device):
    turnout.ops.suite.f(turnout.ones(2, device=device))

def test_fake():
    with turnout.FakeMode():
        turnout.ops.suite.f(turnout.ones(2, 2))
"""
    result = run(pytester, "--opcheck", "suite", suite=suite)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["opcheck: suite::f (2 kinds of call)"])


def test_one_operator_can_be_named(pytester):
    run(pytester, "--opcheck", "suite::good", "-k", "plain or again").assert_outcomes(passed=2)


def test_without_being_asked_nothing_is_checked(pytester):
    run(pytester, "-k", "plain or again").assert_outcomes(passed=2)


def test_a_marker_without_a_namespace_says_what_to_write(pytester):
    result = run(pytester, suite="import pytest\n@pytest.mark.opcheck\ndef test_it():\n    pass\n")
    result.stdout.fnmatch_lines(["*pytest.mark.opcheck names no namespace*", "*  to fix  @pytest.mark.opcheck('mylib')*"])


def numbers(lib):
    return define(lib, "number(Tensor x) -> float", lambda x: 1.0)


def on_cpu(lib):
    return define(lib, "on_cpu(Tensor x) -> Tensor", lambda x: x + 1, "CPU")


def of_a_number(lib):
    return define(lib, "of_a_number(int n) -> int", lambda n: n)


def filled(lib):
    return define(lib, "filled(int n) -> Tensor", lambda n: turnout.ones(n))


def by_values(lib):
    return define(lib, "by_values(Tensor x) -> Tensor", lambda x: x * 2 if x.sum() > 0 else x, "CompositeImplicitAutograd")


def to_an_array(lib):
    return define(lib, "array(Tensor x) -> Tensor", lambda x: turnout.tensor(x.numpy()), "CompositeImplicitAutograd")


def cast(lib):
    op = define(lib, "cast(Tensor x) -> Tensor", lambda x: x.clone())
    library.register_autocast("checked::cast", "cpu", turnout.float16, lib=lib)
    return op


def standard(name):
    return lambda lib: find_operator(name)


FLOATS, INTS = turnout.ones(2), turnout.tensor([1, 2])
NO_FLOATS = "no argument is a floating or complex tensor that the operator only reads"
DEPENDENT = "its examples are not independent: it draws, writes, returns views or sizes that depend on data"


@pytest.mark.parametrize(
    ("find", "args", "check", "why"),
    [
        (standard("aten::matmul"), (INTS, INTS), "test_autograd_registration", NO_FLOATS),
        (standard("aten::matmul"), (INTS, INTS), "test_gradients", NO_FLOATS),
        (standard("aten::argmax"), (FLOATS,), "test_gradients", "no result requires a gradient"),
        (
            standard("aten::add.out"),
            (FLOATS, FLOATS),
            "test_autograd_registration",
            "outputs that the caller gives take no gradient",
        ),
        (standard("aten::add.out"), (FLOATS, FLOATS), "test_gradients", "outputs that the caller gives take no gradient"),
        (standard("aten::add.out"), (FLOATS, FLOATS), "test_batching", DEPENDENT),
        (standard("aten::empty_like"), (FLOATS,), "test_determinism", "its results are not initialised"),
        (standard("aten::empty_like"), (FLOATS,), "test_threads", "its kernel is not a Python function"),
        (standard("aten::bernoulli"), (FLOATS,), "test_threads", "it draws from a generator, which calls share"),
        (of_a_number, (2,), "test_faketensor", "the operator returns no tensor"),
        (of_a_number, (2,), "test_batching", "the operator takes no tensor"),
        (of_a_number, (2,), "test_aot_dispatch_static", "the operator takes no tensor"),
        (of_a_number, (2,), "test_aot_dispatch_dynamic", "the operator takes no tensor"),
        (filled, (2,), "test_faketensor", "no argument says on which device the result is"),
        (numbers, (FLOATS,), "test_batching", "the operator returns a number, which differs between examples"),
        (numbers, (FLOATS,), "test_aot_dispatch_static", "the operator returns a number, which a graph cannot compute"),
        (by_values, (FLOATS,), "test_faketensor", "a part of the composite needs the values of a tensor"),
        (
            to_an_array,
            (FLOATS,),
            "test_aot_dispatch_static",
            "it cannot be traced: numpy: the tensor requires a gradient; use .detach().numpy(), or .numpy(force=True)",
        ),
        (cast, (INTS,), "test_autocast", "no argument is a floating tensor"),
        (on_cpu, (FLOATS,), "test_backends", "it has a kernel for CPU only"),
    ],
)
def test_a_check_that_says_nothing_of_an_operator_gives_the_reason(lib, find, args, check, why):
    out = {"out": turnout.ones(2)} if len(args) == 2 and args[0] is FLOATS else {}
    report = library.opcheck(find(lib), args, out, test_utils=check)
    assert (report.untried, report[check]) == ({check: why}, "SUCCESS")
