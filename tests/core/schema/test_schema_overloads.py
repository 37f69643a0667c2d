"""Overload choice: the most specific one that accepts the arguments, whatever the order of definition."""

import itertools

import pytest

from outcomes import refused
from turnout.dtypes import float32
from turnout.errors import OverloadError, SchemaError
from turnout.schema import FunctionSchema, SchemaSyntaxError, check_no_tie, choose, decided_by_types
from turnout.schema.types import BASE_TYPES


class Tensor:
    def __init__(self, *shape):
        self.shape = shape


class Device:
    pass


class Generator:
    pass


def is_tensor(value):
    return isinstance(value, Tensor)


def overloads(*texts):
    return [FunctionSchema.parse(text) for text in texts]


def chosen(schemas, *args, **kwargs):
    """The overload's name; the same for every order of definition."""
    names = set()
    for order in itertools.islice(itertools.permutations(schemas), 24):
        names.add(order[choose(order, args, kwargs, is_tensor)].name.overload)
    assert len(names) == 1
    return names.pop()


X, ZERO_DIM = Tensor(2, 3), Tensor()


def mismatch(schema, args, kwargs=None):
    """Why a schema does not accept a call, "" when it does."""
    try:
        choose([schema], args, kwargs or {}, is_tensor)
    except OverloadError as error:
        return str(error).rpartition(f"\n  {schema.name.overload or 'default'}  ")[2]
    return ""


@pytest.mark.parametrize(("type", "good", "bad"), [
    ("Tensor", [X, ZERO_DIM], [1, None, [X], "x"]),
    ("Tensor?", [X, None], [1]),
    ("Tensor[]", [[X], (X, X), []], [X, [1], [None], None]),
    ("Tensor?[]", [[X, None], []], [None, [1]]),
    ("int", [1, -2], [True, 1.0, None, "1", X, ZERO_DIM]),
    ("SymInt", [1], [True, 1.5]),
    ("float", [1, 1.5], [True, 1j, ZERO_DIM]),
    ("complex", [1, 1.5, 1j], [True, "1"]),
    ("Scalar", [1, 1.5, 1j, True, ZERO_DIM], [X, None, "1"]),
    ("Scalar?", [None, 1, ZERO_DIM], [X]),
    ("bool", [True, False], [0, 1, None]),
    ("bool?", [None, True], [1]),
    ("str", ["x"], [1, None]),
    ("int[]", [[1, 2], (), (1,)], [1, [1.5], [True], X]),
    ("int[2]", [1, [1, 2], [1, 2, 3]], [1.5, [1.5], True]),
    ("int[1]?", [1, None, [1]], ["x"]),
    ("bool[3]", [True, [True, False, True]], [1, [1]]),
    ("float[]", [[1, 1.5]], [1.5, ["x"]]),
    ("ScalarType", [float32], ["float32", None, 1]),
    ("Device", ["cpu", Device()], [1, None]),
    ("MemoryFormat", ["contiguous_format"], [1]),
    ("Generator?", [None, Generator()], [1]),
])  # fmt: skip
def test_each_type_accepts_its_values_and_no_others(type, good, bad):
    schema = FunctionSchema.parse(f"f({type} x) -> ()")
    for value in good:
        assert mismatch(schema, (value,)) == "", value
    for value in bad:
        assert mismatch(schema, (value,)).startswith(f"x: expected {type}, got "), value


# A default of each type, as a schema has it, or a value of a type that has none.
DEFAULTS = {
    "Tensor": "[]", "bool": "True", "int": "Mean", "SymInt": "1", "DeviceIndex": "1", "float": "1", "SymFloat": "inf",
    "complex": "1", "Scalar": "True", "SymBool": "False", "str": "'x'", "ScalarType": "long", "Device": "'cpu'",
    "Layout": "strided", "MemoryFormat": "contiguous_format", "QScheme": "per_tensor_affine", "TensorOptions": "[]",
}  # fmt: skip
WITHOUT = {"Generator": Generator(), "DimVector": [1, 2], "Dimname": "N"}
WITHOUT |= {name: type(name, (), {})() for name in ("Storage", "Stream", "GraphModule")}


def test_each_base_type_has_a_default_or_none():
    assert sorted([*DEFAULTS, *WITHOUT]) == sorted(BASE_TYPES)


@pytest.mark.parametrize("type", DEFAULTS)
def test_a_type_accepts_its_defaults(type):
    schema = FunctionSchema.parse(f"f({type} x={DEFAULTS[type]}) -> ()")
    assert mismatch(schema, (schema.arguments[0].default,)) == ""


@pytest.mark.parametrize("type", WITHOUT)
def test_a_type_without_a_default_accepts_a_value(type):
    assert mismatch(FunctionSchema.parse(f"f({type} x) -> ()"), (WITHOUT[type],)) == ""
    for text in ("1", "[]", "[1]", "'x'", "True"):
        said = refused(SchemaSyntaxError, FunctionSchema.parse, f"f({type} x={text}) -> ()")
        assert f"no default, because a {type} has none" in said


def test_an_undefined_tensor_is_none_where_the_default_says_so():
    schema = FunctionSchema.parse("f(Tensor x, Tensor y=[]) -> ()")
    assert mismatch(schema, (None,)) == "x: expected Tensor, got None"
    assert mismatch(schema, (Tensor(), None)) == ""


ADD = overloads(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    "add.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
)
POW = overloads(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
)
MAX = overloads(
    "max(Tensor self) -> Tensor",
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "max.other(Tensor self, Tensor other) -> Tensor",
)
STD = overloads(
    "std(Tensor self, bool unbiased=True) -> Tensor",
    "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
)
SUM = overloads(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
)
SPLIT = overloads(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
)
WHERE = overloads(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    "where(Tensor condition) -> Tensor[]",
)
CLAMP = overloads(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
)


@pytest.mark.parametrize(("schemas", "args", "kwargs", "overload"), [
    (ADD, (X, X), {}, "Tensor"),
    (ADD, (X, ZERO_DIM), {}, "Tensor"),
    (ADD, (X, 2), {}, "Scalar"),
    (ADD, (X, 2, 3), {}, "Scalar"),
    (ADD, (X, X), {"alpha": ZERO_DIM}, "Tensor"),
    (ADD, (X,), {"other": 2.5}, "Scalar"),
    (ADD, (X, X), {"out": X}, "out"),
    (ADD, (X, 1), {"out": X}, "Scalar_out"),
    (POW, (X, X), {}, "Tensor_Tensor"),
    (POW, (2, X), {}, "Scalar"),
    (POW, (ZERO_DIM, X), {}, "Tensor_Tensor"),
    (POW, (X, 2), {}, "Tensor_Scalar"),
    (MAX, (X,), {}, ""),
    (MAX, (X, 1), {}, "dim"),
    (MAX, (X, X), {}, "other"),
    (STD, (X,), {}, ""),
    (STD, (X, True), {}, ""),
    (STD, (X, 0), {}, "dim"),
    (STD, (X, None), {}, "dim"),
    (STD, (X, [0, 1]), {"correction": 0}, "correction"),
    (STD, (X,), {"keepdim": True}, "correction"),
    (SUM, (X,), {}, ""),
    (SUM, (X,), {"dtype": float32}, ""),
    (SUM, (X, 0), {}, "dim_IntList"),
    (SUM, (X, None, True), {}, "dim_IntList"),
    (SPLIT, (X, 2), {}, "Tensor"),
    (SPLIT, (X, [1, 1]), {}, "sizes"),
    (WHERE, (X,), {}, ""),
    (WHERE, (X, X, X), {}, "self"),
    (WHERE, (X, 1, X), {}, "ScalarSelf"),
    (WHERE, (X, X, 1), {}, "ScalarOther"),
    (WHERE, (X, 1, 2.5), {}, "Scalar"),
    (CLAMP, (X,), {}, ""),
    (CLAMP, (X, 0), {}, ""),
    (CLAMP, (X, ZERO_DIM), {}, "Tensor"),
    (CLAMP, (X,), {"max": X}, "Tensor"),
])  # fmt: skip
def test_the_most_specific_overload_is_chosen_in_every_order_of_definition(schemas, args, kwargs, overload):
    assert chosen(schemas, *args, **kwargs) == overload


def test_no_overload_is_an_error_that_says_why_for_each():
    with pytest.raises(OverloadError) as caught:
        choose(ADD, (X, "x"), {"foo": 1}, is_tensor)
    assert str(caught.value) == (
        "no overload takes (Tensor, str, foo=int)\n"
        "  Tensor      other: expected Tensor, got str\n"
        "  Scalar      other: expected Scalar, got str\n"
        "  out         other: expected Tensor, got str\n"
        "  Scalar_out  other: expected Scalar, got str"
    )
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(("args", "kwargs", "reason"), [
    ((X, X), {}, ""),
    ((X, X, 2), {}, "takes 2 positional arguments, got 3"),
    ((X,), {}, "needs other"),
    ((), {}, "needs self, other"),
    ((X, X), {"beta": 1}, "has no argument beta"),
    ((X, X), {"other": X}, "other was given twice"),
    ((X, [1, X]), {}, "other: expected Tensor, got list of int and Tensor"),
    ((X, None), {}, "other: expected Tensor, got None"),
    ((X, X), {"alpha": X}, "alpha: expected Scalar, got Tensor"),
])  # fmt: skip
def test_a_mismatch_names_the_argument_and_what_was_expected(args, kwargs, reason):
    assert mismatch(ADD[0], args, kwargs) == reason


def test_a_choice_is_decided_by_types_unless_a_tensor_was_taken_for_a_number():
    only_scalar = FunctionSchema.parse("f(Tensor self, Scalar other) -> Tensor")
    assert decided_by_types(ADD[0], (X, ZERO_DIM), {}, is_tensor)
    assert decided_by_types(only_scalar, (X, 2), {}, is_tensor)
    assert not decided_by_types(only_scalar, (X, ZERO_DIM), {}, is_tensor)
    assert not decided_by_types(only_scalar, (X, X), {}, is_tensor)


def test_two_overloads_that_tie_are_an_error_when_the_second_is_defined():
    first, second = overloads("f.a(Tensor x, int y=1) -> Tensor", "f(Tensor x, int z=2) -> Tensor")
    for existing, new in ((first, second), (second, first)):
        assert refused(SchemaError, check_no_tie, [existing], new) == (
            f"schema: two overloads tie\n  {existing}\n  {new}\n"
            "  found   both accept (x=Tensor), neither is more specific\n"
            "  to fix  change a type, a required argument or the number of arguments of one of them"
        )
    assert (
        refused(OverloadError, choose, [FunctionSchema.parse("f.b(Tensor x, int z=2) -> Tensor"), first], (X,), {}, is_tensor)
        == "overloads f.b, f.a tie for (Tensor)"
    )


@pytest.mark.parametrize(("first", "second", "ties"), [
    ("f.a(Tensor x) -> Tensor", "f.b(Tensor y) -> Tensor", True),
    ("f.a(Tensor x) -> Tensor", "f.b(BoolTensor x) -> Tensor", True),
    ("f.a(Tensor x) -> Tensor", "f.b(Tensor(a!) x) -> Tensor(a!)", True),
    ("f.a(Tensor x, *, int p=0) -> Tensor", "f.b(Tensor x, *, int q=0) -> Tensor", True),
    ("f.a(Tensor x, *, int p) -> Tensor", "f.b(Tensor x, *, int q) -> Tensor", False),
    ("f.a(Tensor x, int y) -> Tensor", "f.b(Tensor x, float y) -> Tensor", False),
    ("f.a(Tensor x, int y) -> Tensor", "f.b(Tensor x, SymInt y) -> Tensor", False),
    ("f.a(Tensor x, int[2] y) -> Tensor", "f.b(Tensor x, int[] y) -> Tensor", False),
    ("f.a(Tensor x, int[2] y) -> Tensor", "f.b(Tensor x, int[3] y) -> Tensor", False),
    ("f.a(Tensor x) -> Tensor", "f.b(Tensor x, int y=0) -> Tensor", False),
    ("f.a(int a, Tensor b) -> Tensor", "f.b(Tensor a, int b) -> Tensor", False),
    ("f.a(Tensor a, *, int b) -> Tensor", "f.b(Tensor a, int b) -> Tensor", True),
])  # fmt: skip
def test_a_tie_is_a_call_that_gives_both_the_same_types(first, second, ties):
    a, b = overloads(first, second)
    if not ties:
        check_no_tie([a], b)
        return
    refused(SchemaError, check_no_tie, [a], b)
