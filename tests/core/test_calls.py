"""Bad input in calls: each error names the argument and what was expected, and leaves the registry as it was."""

from __future__ import annotations

import pytest
from plain_objects import backends, box, state_of_registry  # noqa: F401

import turnout
from outcomes import refused
from turnout.errors import CallError, DTypeError, NoKernelError, OverloadError, UnknownOperatorError
from turnout.registry import REGISTRY, Registrations

SCHEMA = """calltest::all(
    Tensor a, Tensor? b, Tensor[] c, Tensor?[] d, Scalar e, int f, int[2] g, float h, bool i, str j, ScalarType k, Device l,
    Generator? m, *, int[]? n=None, bool[3] o=[True, False, True], Scalar[] p=[], float[] q=[], SymInt? r=None, Layout? s=None
) -> Tensor""".replace("\n", "")
NAMES = "abcdefghijklmnopqrs"


class Thing:
    """No argument of any kind."""

    def __repr__(self) -> str:
        return "Thing()"


class Dice:
    """A generator: it says so itself."""

    schema_type = "Generator"
    keys = 0

    def __repr__(self) -> str:
        return "dice"


class Plain:
    """What does not say what it is, and has keys, is a tensor."""

    keys = 0

    def __repr__(self) -> str:
        return "plain"


@pytest.fixture(autouse=True)
def operators(backends):  # noqa: F811
    """An operator with every kind of argument that returns what it got, and a packet of two overloads."""
    with Registrations("calltest", distribution="calltest", version="1") as library:
        library.define(SCHEMA)
        library.impl("all", "CompositeExplicitAutograd", lambda *args, **kwargs: (*args, *kwargs.values()))
        for schema in ("scale(Tensor x, Scalar by) -> Tensor", "scale.int(Tensor x, int[] by, *, bool up=False) -> Tensor"):
            library.define(schema)
        before = state_of_registry()
        yield turnout.ops.calltest
        assert state_of_registry() == before


def good() -> dict:
    x = box(1.0, 2.0)
    return {
        "a": x, "b": None, "c": [x], "d": [None, x], "e": 1, "f": 2, "g": [3, 4], "h": 0.5, "i": True, "j": "text",
        "k": turnout.float32, "l": "shelf", "m": None,
    }  # fmt: skip


def error_of(call, *args, **kwargs) -> str:
    return refused(TypeError, call, *args, **kwargs)


def test_a_kernel_gets_every_argument_in_the_schemas_order_converted_and_with_defaults(operators):
    given = good()
    found = operators.all(**given)
    x = given["a"]
    assert found == (
        x, None, [x], [None, x], 1, 2, (3, 4), 0.5, True, "text", turnout.float32, turnout.device("shelf"), None,
        None, (True, False, True), (), (), None, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "given", "expected"),
    [
        ("f", True, 1),
        ("h", 3, 3.0),
        ("g", 5, (5, 5)),
        ("k", float, turnout.float64),
        ("k", int, turnout.int64),
        ("o", False, (False, False, False)),
        ("p", [1, 2.5, True], (1, 2.5, True)),
        ("q", [1, 2.5], (1.0, 2.5)),
        ("n", range(3), (0, 1, 2)),
    ],
)
def test_what_stands_for_an_argument_is_converted(operators, argument, given, expected):
    found = operators.all(**{**good(), argument: given})[NAMES.index(argument)]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("argument", "given", "expected"),
    [
        ("a", 3, "Tensor, got int 3"),
        ("a", None, "Tensor, got None"),
        ("b", "x", "Tensor?, got str 'x'"),
        ("b", [1], "Tensor?, got list [1]"),
        ("c", None, "a list of tensors, got None"),
        ("c", "xy", "a list of tensors, got str 'xy'"),
        ("c", [1], "Tensor[], got list [1]"),
        ("c", [None], "Tensor[], got list [None]"),
        ("d", 3, "a list of tensors, got int 3"),
        ("d", [None, 3], "Tensor?[], got list [None, 3]"),
        ("e", "1", "a number, got str '1'"),
        ("e", None, "a number, got None"),
        ("f", 1.5, "int, got float 1.5"),
        ("f", [1], "int, got list [1]"),
        ("g", 1.5, "int[2], got float 1.5"),
        ("g", [1, "2"], "int[2], got list [1, '2']"),
        ("h", "0.5", "float, got str '0.5'"),
        ("h", None, "float, got None"),
        ("i", 1, "bool, got int 1"),
        ("i", "yes", "bool, got str 'yes'"),
        ("j", 3, "str, got int 3"),
        ("j", None, "str, got None"),
        ("k", "float32", "a dtype such as turnout.float32, got str 'float32'"),
        ("k", Thing(), "a dtype such as turnout.float32, got Thing Thing()"),
        ("l", 0, "a device, got int 0"),
        ("m", 7, "a turnout.Generator, got int 7"),
        ("a", Dice(), "Tensor, got Dice dice"),
        ("c", [Dice()], "Tensor[], got list [dice]"),
        ("m", Plain(), "a turnout.Generator, got Plain plain"),
        ("n", [1.0], "int[], got list [1.0]"),
        ("n", 3, "int[], got int 3"),
        ("o", [True, False], "bool[3], got list [True, False]"),
        ("o", 1, "bool[3], got int 1"),
        ("p", 3, "Scalar[], got int 3"),
        ("p", ["3"], "a number, got str '3'"),
        ("q", ["3"], "float[], got list ['3']"),
        ("r", "3", "int, got str '3'"),
    ],
)
def test_an_argument_of_the_wrong_type_is_named_with_what_was_expected(operators, argument, given, expected):
    error = DTypeError if argument == "k" else CallError
    assert refused(error, operators.all, **{**good(), argument: given}) == (
        f"calltest::all: argument '{argument}' must be {expected}"
    )


USED_BY_STUBS = ["state", "ks", "kernel", "each", "miss", "CACHE", "DISPATCH", "FRESH", "Device", "ONE", "TypeError", "as_int"]


@pytest.mark.parametrize("name", USED_BY_STUBS)
def test_an_argument_may_have_a_name_that_its_stub_uses(operators, name):
    with Registrations("calltest", distribution="calltest", version="1") as library:
        library.define(f"calltest::f(Tensor x, int {name}, int last=1) -> Tensor")
        library.impl("f", "CompositeExplicitAutograd", lambda *args: args)
        x = box(1.0)
        assert turnout.ops.calltest.f(x, 3) == (x, 3, 1)
        assert error_of(turnout.ops.calltest.f, x, 3.5) == f"calltest::f: argument '{name}' must be int, got float 3.5"


@pytest.mark.parametrize("kind", ["int", "int?", "SymInt", "SymInt?", "Scalar", "Scalar?"])
@pytest.mark.parametrize("default", [-1, 0, 1, 2, 7])
def test_whatever_the_default_of_a_number_other_values_are_checked(operators, kind, default):
    with Registrations("calltest", distribution="calltest", version="1") as library:
        library.define(f"calltest::f(Tensor x, {kind} n={default}) -> Tensor")
        library.impl("f", "CompositeExplicitAutograd", lambda x, n: n)
        f, x = turnout.ops.calltest.f, box(1.0)
        assert [f(x), f(x, n=default), f(x, -1), f(x, 0), f(x, 1), f(x, 2**40)] == [default, default, -1, 0, 1, 2**40]
        assert type(f(x, True)) is (bool if kind.startswith("Scalar") else int)
        expected = "a number" if kind.startswith("Scalar") else "int"
        assert error_of(f, x, "1") == f"calltest::f: argument 'n' must be {expected}, got str '1'"
        if kind.endswith("?"):
            assert f(x, None) is None
        else:
            assert error_of(f, x, None) == f"calltest::f: argument 'n' must be {expected}, got None"


def test_the_cache_of_an_operator_has_the_very_key_set_that_tensors_share(operators):
    """A look-up compares objects first; equal ints that are not one object cost another 20 ns."""
    x, y = box(1.0), box(2.0)
    operators.all(**good())
    assert x.keys is y.keys
    assert [key is x.keys for key in REGISTRY.operators["calltest::all"].cache] == [True]


def test_a_long_value_is_cut_in_the_message(operators):
    text = error_of(operators.all, **{**good(), "f": "x" * 100})
    assert text == f"calltest::all: argument 'f' must be int, got str '{'x' * 36}..."


def test_a_device_that_nobody_has_is_an_error_where_it_is_named(operators):
    assert str(operators.all(**{**good(), "l": "shelf:3"})[NAMES.index("l")]) == "shelf:3"
    text = refused(RuntimeError, operators.all, **{**good(), "l": "nosuch:3"})
    assert text.startswith("device 'nosuch': there is no such device")
    assert refused(RuntimeError, operators.all, **{**good(), "l": "no such"}) == (
        "a device is written TYPE or TYPE:INDEX, got 'no such'"
    )


def test_missing_and_surplus_arguments_are_named(operators):
    x = box(1.0)
    op = operators.scale.int
    assert error_of(op, x) == "calltest::scale.int() missing 1 required positional argument: 'by'"
    assert error_of(op, x, [1], True) == "calltest::scale.int() takes 2 positional arguments but 3 were given"
    assert error_of(op, x, [1], down=True) == "calltest::scale.int() got an unexpected keyword argument 'down'"
    assert error_of(op, x, [1], x=x) == "calltest::scale.int() got multiple values for argument 'x'"


def test_redispatch_and_direct_kernel_calls_check_number_and_names_too(operators):
    x = box(1.0)
    op = operators.scale.int
    assert error_of(op.redispatch, x.keys, x) == "calltest::scale.int: argument 'by' (int[]) is missing"
    assert error_of(op.redispatch, x.keys, x, [1], True, 4) == "calltest::scale.int: takes 2 positional arguments, got 4"
    text = "calltest::scale.int: no argument 'down'; there are x, by, up"
    assert error_of(op.redispatch, x.keys, x, [1], down=True) == text
    text = "calltest::scale.int: argument 'x' is given twice"
    assert error_of(op.redispatch, x.keys, x, [1], x=x) == text


def test_a_packet_without_a_matching_overload_says_why_each_does_not_match(operators):
    x = box(1.0)
    assert refused(OverloadError, operators.scale, x, "2") == (
        "calltest::scale: no overload takes (Tensor, str)\n"
        "  default  by: expected Scalar, got str\n"
        "  int      by: expected int[], got str"
    )
    assert refused(OverloadError, operators.scale, x, 2, up=True) == (
        "calltest::scale: no overload takes (Tensor, int, up=bool)\n"
        "  default  has no argument up\n"
        "  int      by: expected int[], got int"
    )


def test_names_that_do_not_exist_are_errors_that_show_near_ones(operators):
    assert refused(UnknownOperatorError, lambda: operators.scal) == (
        "no operator calltest::scal; did you mean calltest::scale or calltest::all or calltest::scale.int?"
    )
    assert refused(UnknownOperatorError, lambda: operators.scale.flot) == (
        "calltest::scale has no overload 'flot'; it has default, int"
    )


@pytest.mark.parametrize("name", ["", "  ", "::", "."])
def test_an_empty_name_is_an_error_that_shows_how_a_name_is_written(name):
    assert refused(UnknownOperatorError, turnout.explain, name) == (
        f"no operator is named {name!r}: a name is written like add, add.Tensor or mylib::scale"
    )


def test_a_call_that_no_kernel_serves_says_which_argument_asked_for_it(operators):
    x = box(1.0)
    assert refused(NoKernelError, operators.scale, x, 2).splitlines()[:3] == [
        "calltest::scale: no kernel for Shelf",
        "  asked for by  x: Box [1.0] on shelf",
        "  kernels       none",
    ]


def test_a_class_says_which_type_of_the_schema_its_instances_stand_for(operators):
    dice, plain = Dice(), Plain()
    found = operators.all(**{**good(), "b": plain, "m": dice})
    assert (found[1], found[12]) == (plain, dice)
