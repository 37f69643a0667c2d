"""infer_schema: annotations to schema text, and its errors."""

# ruff: noqa: UP006, UP007, UP035, UP045, ISC004 - older spellings are tested too; messages of several lines
import collections.abc
import numbers
import typing
from typing import List, Optional, Sequence, Tuple, Union

import pytest

from outcomes import refused
from turnout.dtypes import DType, float32
from turnout.errors import SchemaError
from turnout.schema import FunctionSchema
from turnout.schema.infer import infer_schema


class Tensor:
    pass


class Device:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


CUDA = Device("cuda:0")
CLASSES = {Tensor: "Tensor", DType: "ScalarType", Device: "Device"}


def infer(function, mutates_args=(), **options):
    text = infer_schema(function, mutates_args=mutates_args, classes=CLASSES, **options)
    assert str(FunctionSchema.parse(text if "op_name" in options else "f" + text))
    return text


def of(annotation):
    def f(x): ...

    f.__annotations__ = {"x": annotation, "return": None}
    return f


@pytest.mark.parametrize(("annotation", "type"), [
    (Tensor, "Tensor"),
    ("Tensor", "Tensor"),
    (Optional[Tensor], "Tensor?"),
    (Tensor | None, "Tensor?"),
    (Union[None, Tensor], "Tensor?"),
    ("Tensor | None", "Tensor?"),
    (Optional["Tensor"], "Tensor?"),
    (list[Tensor], "Tensor[]"),
    (List[Tensor], "Tensor[]"),
    (Sequence[Tensor], "Tensor[]"),
    (collections.abc.Sequence[Tensor], "Tensor[]"),
    (list["Tensor"], "Tensor[]"),
    (list[Tensor | None], "Tensor?[]"),
    (List[Optional[Tensor]], "Tensor?[]"),
    (int, "SymInt"),
    (int | None, "SymInt?"),
    (list[int], "SymInt[]"),
    (list[int] | None, "SymInt[]?"),
    (Optional[Sequence[int]], "SymInt[]?"),
    (float, "float"),
    (Optional[List[float]], "float[]?"),
    (bool, "bool"),
    (list[bool], "bool[]"),
    (str, "str"),
    (str | None, "str?"),
    (int | float | bool, "Scalar"),
    (Union[bool, int, float, None], "Scalar?"),
    (numbers.Number, "Scalar"),
    (list[int | float | bool], "Scalar[]"),
    (DType, "ScalarType"),
    (DType | None, "ScalarType?"),
    (Device, "Device"),
])  # fmt: skip
def test_every_annotation_form_has_its_type(annotation, type):
    assert infer(of(annotation)) == f"({type} x) -> ()"


@pytest.mark.parametrize(
    "annotation",
    [
        list, tuple, dict, object, complex, bytes, typing.Any, 1,
        list[str], list[list[int]], list[int | None], Optional[List[Tensor]], dict[str, int], int | float,
        list[DType], Optional[List[Optional[int]]], List,
    ],
)  # fmt: skip
def test_other_annotations_are_errors_that_name_the_parameter_and_what_is_supported(annotation):
    first, _, last = refused(SchemaError, infer, of(annotation)).splitlines()
    assert first.startswith("infer_schema: parameter x has the unsupported type ")
    assert last == (
        f"  to fix    {'use list instead of tuple; supported are' if annotation is tuple else 'use one of'} "
        "Tensor, int, float, bool, str, int | float | bool, dtype, Device, `T | None`, list[T], list[Tensor | None]"
    )


@pytest.mark.parametrize(("annotation", "text"), [
    (None, "()"),
    ("None", "()"),
    (Tensor, "Tensor"),
    ("Tensor", "Tensor"),
    (list[Tensor], "Tensor[]"),
    (List[Tensor], "Tensor[]"),
    (int, "SymInt"),
    (float, "float"),
    (bool, "bool"),
    (int | float | bool, "Scalar"),
    (tuple[Tensor, Tensor], "(Tensor, Tensor)"),
    (Tuple[Tensor, int, List[Tensor]], "(Tensor, SymInt, Tensor[])"),
    (tuple[Tensor], "((Tensor))"),
    (tuple[()], "()"),
])  # fmt: skip
def test_every_return_annotation_has_its_text(annotation, text):
    def f(): ...

    f.__annotations__ = {"return": annotation}
    assert infer(f) == f"() -> {text}"


@pytest.mark.parametrize("annotation", [str, Optional[Tensor], tuple, tuple[Tensor, ...], tuple[str, int], Sequence[Tensor]])
def test_other_return_annotations_are_errors(annotation):
    def f(): ...

    f.__annotations__ = {"return": annotation}
    assert refused(SchemaError, infer, f).startswith("infer_schema: the return has the unsupported type ")


def test_defaults_names_stars_and_mutation_are_written_as_the_schema_writes_them():
    def f(
        x: Tensor, y: list[Tensor], n: int = -1, *, p: float = 1e-05, s: str = 'q"', t: Tensor | None = None,
        d: DType = float32, dev: Device = CUDA, k: bool = True,
    ) -> Tensor: ...  # fmt: skip

    rest = 'SymInt n=-1, *, float p=1e-05, str s="q\\"", {}Tensor? t=None, ScalarType d=float32, Device dev="cuda:0", bool k=True'
    assert infer(f) == f"(Tensor x, Tensor[] y, {rest.format('')}) -> Tensor"
    assert infer(f, ["y"], op_name="ns::g.out") == f"ns::g.out(Tensor x, Tensor(a1!)[] y, {rest.format('')}) -> Tensor"
    written = rest.replace("{}Tensor?", "Tensor(a5!)?")
    assert infer(f, "unknown") == f"(Tensor(a0!) x, Tensor(a1!)[] y, {written}) -> Tensor"


def _function(x: Tensor, n: int = 0) -> Tensor: ...


@pytest.mark.parametrize(("function", "mutates", "message"), [
    (_function, "x", "infer_schema: mutates_args is 'x'\n  function  {}\n"
     '  to fix    give a list of argument names, or "unknown"'),
    (_function, ["z"], "infer_schema: mutates_args names z\n  function  {}\n"
     "  to fix    name parameters of the function"),
    (_function, ["n"], "infer_schema: parameter n is in mutates_args, but is a SymInt\n  function  {}\n"
     "  to fix    name tensors and lists of tensors only"),
])  # fmt: skip
def test_a_wrong_mutates_args_is_an_error(function, mutates, message):
    with pytest.raises(SchemaError) as caught:
        infer(function, mutates)
    shown = f"_function(x: {__name__}.Tensor, n: int = 0) -> {__name__}.Tensor"
    assert str(caught.value) == message.format(shown)


def _no_annotation(x): ...
def _star(*x: Tensor) -> None: ...
def _slash(x: Tensor, /) -> None: ...
def _no_return(x: Tensor): ...
def _missing(x: "Missing") -> None: ...  # noqa: F821
def _none(x: Tensor = None) -> None: ...
def _half(x: int = 1.5) -> None: ...
def _list(x: list[int] = [1]) -> None: ...  # noqa: B006


@pytest.mark.parametrize(("function", "problem", "remedy"), [
    (_no_annotation, "parameter x has no annotation", "annotate it with one of Tensor, int"),
    (_star, "has no schema", "declare every argument by name, without * and /"),
    (_slash, "has no schema", "declare every argument by name, without * and /"),
    (_no_return, "the return has no annotation", "annotate it with Tensor, list[Tensor]"),
    (_missing, "parameter x is annotated 'Missing', which cannot be read (NameError: name 'Missing' is not defined)",
     "make the names it uses importable at the top of the function's module"),
    (_none, "the default of x is None, which is not a Tensor", "annotate x with `... | None`"),
    (_half, "the default of x is 1.5, which is not a SymInt", "use an integer"),
    (_list, "the default of x is a list", "use None, a number, bool, str, dtype or device"),
])  # fmt: skip
def test_a_function_that_has_no_schema_is_an_error_that_says_why(function, problem, remedy):
    first, second, third = refused(SchemaError, infer, function).splitlines()
    assert problem in first
    assert second.startswith(f"  function  {function.__name__}(")
    assert third.startswith(f"  to fix    {remedy}")


class Board:
    schema_type = "Tensor"


class Dice:
    schema_type = "Generator"


class Finish:
    schema_type = "ScalarType"

    def __repr__(self):
        return "paint.float32"


class Unknown:
    schema_type = 3


@pytest.mark.parametrize(("annotation", "type"), [
    (Board, "Tensor"),
    (Board | None, "Tensor?"),
    (list[Board], "Tensor[]"),
    (list[Board | None], "Tensor?[]"),
    (Dice, "Generator"),
    (Dice | None, "Generator?"),
    (Finish, "ScalarType"),
])  # fmt: skip
def test_a_class_says_itself_which_type_its_instances_stand_for(annotation, type):
    assert infer_schema(of(annotation), mutates_args=()) == f"({type} x) -> ()"


def test_what_a_class_says_is_used_for_defaults_and_writes_too():
    def f(x: Board, kind: Finish = Finish()) -> Board: ...  # noqa: B008

    assert infer_schema(f, mutates_args=["x"]) == "(Tensor(a0!) x, ScalarType kind=float32) -> Tensor"


@pytest.mark.parametrize("annotation", [list[Dice], list[Finish], Unknown])
def test_a_class_in_a_place_where_its_type_cannot_stand_is_an_error(annotation):
    assert "parameter x has the unsupported type" in refused(SchemaError, infer_schema, of(annotation), mutates_args=())


def test_the_class_that_is_given_counts_before_what_a_class_says():
    assert infer_schema(of(Board), mutates_args=(), classes={Board: "Device"}) == "(Device x) -> ()"
