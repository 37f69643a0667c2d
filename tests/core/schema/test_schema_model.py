"""The values of a schema: defaults, parts, kind, aliases."""

import copy
import math
import pickle

import pytest

from outcomes import refused
from turnout.dtypes import DTYPES
from turnout.schema import FunctionSchema, SchemaSyntaxError
from turnout.schema.types import Type


def parse(text: str) -> FunctionSchema:
    return FunctionSchema.parse(text)


def default(argument: str):
    return parse(f"f({argument}) -> ()").arguments[0].default


@pytest.mark.parametrize(("argument", "value"), [
    ("int x=-1", -1),
    ("int x=Mean", 1),
    ("int x=Sum", 2),
    ("SymInt x=0", 0),
    ("float x=1", 1.0),
    ("float x=-1e-5", -1e-5),
    ("float x=-inf", -math.inf),
    ("complex x=1", 1 + 0j),
    ("Scalar x=1", 1),
    ("Scalar x=1.0", 1.0),
    ("Scalar x=True", True),
    ("Scalar x=1j", 1j),
    ("bool x=False", False),
    ("bool? x=None", None),
    ("str x='abc'", "abc"),
    ("str x=\"a\\\"b'\"", "a\"b'"),
    ("Device d='cuda:1'", "cuda:1"),
    ("ScalarType d=long", DTYPES["int64"]),
    ("ScalarType? d=float", DTYPES["float32"]),
    ("ScalarType d=complex64", DTYPES["complex64"]),
    ("MemoryFormat m=contiguous_format", "contiguous_format"),
    ("Layout l=strided", "strided"),
    ("Tensor x=[]", None),
    ("Tensor? x=[]", None),
    ("TensorOptions o=[]", None),
    ("Tensor[] x=[]", []),
    ("Tensor?[] x=[None]", [None]),
    ("int[2] x=1", [1, 1]),
    ("int[2]? x=1", [1, 1]),
    ("int[2] x=[]", []),
    ("int[1] x=[-2,-1]", [-2, -1]),
    ("int[] x=[0, 0]", [0, 0]),
    ("float[2] x=[1, 2]", [1.0, 2.0]),
    ("bool[2] x=True", [True, True]),
])  # fmt: skip
def test_a_default_is_the_python_value_a_kernel_receives(argument, value):
    found = default(argument)
    assert found == value
    assert type(found) is type(value)


def test_a_default_that_is_nan_is_nan():
    assert math.isnan(default("float x=nan"))


def test_a_list_default_is_a_new_list_each_time():
    argument = parse("f(int[2] x=1) -> ()").arguments[0]
    argument.default.append(3)
    assert argument.default == [1, 1]


def test_an_argument_without_a_default_has_no_value():
    argument = parse("f(int x) -> ()").arguments[0]
    assert not argument.has_default
    assert refused(LookupError, lambda: argument.default) == "argument x has no default"


def test_values_are_frozen_hashable_and_survive_pickle_and_copy():
    schema = parse("ns::f_(Tensor(a!) self, int[2]? x=[1,2], *, float y=1e-05) -> Tensor(a!)")
    assert schema.kind == "inplace"
    parts = (schema.name, schema.arguments[1], schema.arguments[1].type, schema.returns[0], schema.arguments[0].annotation)
    for value in (schema, *parts):
        refused(AttributeError, setattr, value, value.__match_args__[0], None)
        assert copy.deepcopy(value) == value
        assert hash(copy.deepcopy(value)) == hash(value)
    assert refused(AttributeError, setattr, schema, "kind", "out") == "a schema cannot be changed, and kind would be"
    assert schema == parse(f" {schema} ") != parse(f"{schema.name}() -> ()")
    assert hash(schema) == hash(parse(f" {schema} "))
    assert schema != schema[:3]
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert str(copy.deepcopy(schema)) == str(schema)


def test_types_are_equal_when_their_spelling_is():
    schema = parse("f(int a, int? b, int[] c, int[2] d, int[2]? e, Tensor f, BoolTensor g) -> ((int))")
    types = [*(a.type for a in schema.arguments), schema.returns[0].type]
    assert len({*types, *map(copy.deepcopy, types)}) == len(types)
    assert [[one == other for other in types] for one in types] == [[one is other for other in types] for one in types]
    assert types[0] != "int"
    assert repr(types[4]) == "<OptionalType int[2]?>"


def test_a_syntax_error_survives_pickle():
    with pytest.raises(SchemaSyntaxError) as caught:
        parse("f(Foo x) -> ()")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.column) == (str(caught.value), 2)


@pytest.mark.parametrize(("text", "namespace", "base", "overload", "inplace", "packet"), [
    ("add", "", "add", "", False, "add"),
    ("aten::add_.Tensor", "aten", "add", "Tensor", True, "aten::add_"),
    ("__add__", "", "__add__", "", False, "__add__"),
    ("__iadd__.Scalar", "", "__add__", "Scalar", True, "__iadd__"),
    ("__init__", "", "__init__", "", False, "__init__"),
    ("norm_functional", "", "norm", "", False, "norm_functional"),
    ("_", "", "_", "", False, "_"),
])  # fmt: skip
def test_an_operator_name_knows_its_parts(text, namespace, base, overload, inplace, packet):
    name = parse(f"{text}(Tensor(a!) self) -> Tensor(a!)").name
    assert (name.namespace, name.base, name.overload, name.is_inplace, name.packet) == (
        namespace, base, overload, inplace, packet,
    )  # fmt: skip
    assert str(name) == text


@pytest.mark.parametrize(("annotation", "before", "write", "after"), [
    ("(a)", ("a",), False, ()),
    ("(a!)", ("a",), True, ()),
    ("!", (), True, ()),
    ("(a! -> a|b)", ("a",), True, ("a", "b")),
    ("(a|b|c)", ("a", "b", "c"), False, ()),
    ("(a -> *)", ("a",), False, ("*",)),
    ("(*)", ("*",), False, ()),
])  # fmt: skip
def test_an_annotation_knows_its_sets(annotation, before, write, after):
    found = parse(f"f(Tensor{annotation}[] x) -> ()").arguments[0].annotation
    assert (found.before, found.is_write, found.after, str(found)) == (before, write, after, annotation)
    assert found.is_shorthand == (annotation == "!")
    assert ("*" in found.sets) == ("*" in annotation)


@pytest.mark.parametrize(("text", "kind", "mutable", "view"), [
    ("abs(Tensor self) -> Tensor", "functional", False, False),
    ("abs_(Tensor(a!) self) -> Tensor(a!)", "inplace", True, False),
    ("__iadd__(Tensor(a!) self, Tensor other) -> Tensor(a!)", "inplace", True, False),
    ("abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "out", True, False),
    ("f(Tensor self, Tensor(a!) running) -> Tensor", "mutable", True, False),
    ("f(Tensor! x) -> ()", "mutable", True, False),
    ("set_data(Tensor(a!) self, Tensor new_data) -> ()", "functional", True, False),
    ("t(Tensor(a) self) -> Tensor(a)", "functional", False, True),
    ("chunk(Tensor(a -> *) self, int chunks) -> Tensor(a)[]", "functional", False, True),
    ("zeros(SymInt[] size) -> Tensor", "functional", False, False),
    ("zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", "out", True, False),
    ("zeros_like(Tensor self) -> Tensor", "functional", False, False),
    ("cat(Tensor[] tensors) -> Tensor", "functional", False, False),
    ("version() -> int", "functional", False, False),
])  # fmt: skip
def test_what_a_schema_does_is_read_from_its_annotations(text, kind, mutable, view):
    schema = parse(text)
    assert (schema.kind, schema.is_mutable, schema.is_view) == (kind, mutable, view)


def test_arguments_are_found_by_their_part():
    schema = parse(
        "f(Tensor cond, Tensor(a!) self, int n=1, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, Tensor(b!) out) -> Tensor(b!)"
    )
    assert [a.name for a in schema.positional] == ["cond", "self", "n"]
    assert [a.name for a in schema.kwarg_only] == ["dtype", "layout", "device", "pin_memory", "out"]
    assert [a.name for a in schema.out_arguments] == ["out"]
    assert [a.name for a in schema.mutated_arguments] == ["self", "out"]
    assert schema.self_argument is schema.argument("self")
    assert schema.return_aliases == (("out",),)
    refused(KeyError, schema.argument, "missing")


def test_the_arguments_of_a_call_are_split_as_the_schema_has_them():
    schema = FunctionSchema.parse("f(Tensor x, int n, *, int a, int b=1) -> Tensor")
    assert schema.by_keyword(("x", 2, 3, 4)) == (("x", 2), {"a": 3, "b": 4})
    with pytest.raises(ValueError, match="argument 2 is longer"):
        schema.by_keyword(("x", 2, 3, 4, 5))


def test_returns_name_the_arguments_they_may_share_memory_with():
    schema = parse("f(Tensor(a! -> a|b) x, Tensor(c) y, Tensor z) -> (Tensor(b), Tensor(c), Tensor)")
    assert schema.return_aliases == (("x",), ("y",), ())


def test_renaming_keeps_everything_else():
    schema = parse("f(Tensor  x)->Tensor").with_name("ns", "g", "out")
    assert str(schema) == "ns::g.out(Tensor x) -> Tensor"


def test_a_tuple_of_one_is_a_return_of_its_own():
    schema = parse("f(Tensor x) -> ((Tensor))")
    assert len(schema.returns) == 1
    assert str(schema.returns[0].type) == "(Tensor)"
    assert schema != parse("f(Tensor x) -> (Tensor)")


def test_a_class_of_types_says_what_it_has_to_define():
    class Odd(Type):
        pass

    assert "Odd must define canonical" in refused(NotImplementedError, lambda: Odd().canonical)
