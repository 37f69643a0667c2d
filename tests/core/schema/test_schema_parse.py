"""Schema texts: what is accepted and prints back, what is rejected and where."""

# ruff: noqa: ISC004 - messages of several lines in tables

import json
import random
from pathlib import Path

import pytest

from outcomes import refused
from turnout.errors import SchemaError
from turnout.schema import FunctionSchema, SchemaSyntaxError

TEXTS = json.loads((Path(__file__).parent / "schemas.json").read_text())


def parse(text: str) -> FunctionSchema:
    return FunctionSchema.parse(text)


def test_every_accepted_text_prints_back_from_its_text_and_from_its_parts():
    assert len(TEXTS["accept"]) == 1308
    for text in TEXTS["accept"]:
        schema = parse(text)
        assert str(schema) == text
        assert schema.canonical() == text
        assert parse(schema.canonical()) == schema


# fmt: off
REJECTED_AT = {
    "f(Tensor x, int y=1, int z) -> Tensor": 26,
    "f(Tensor x, Tensor x) -> Tensor": 19,
    "f(int x=1.5) -> Tensor": 8,
    "f(bool x=1) -> Tensor": 9,
    "f(int[2] x=[1,2,3]) -> Tensor": 11,
    "f(bool[5] m) -> Tensor": 7,
    "f(Tensor x) -> Tensor(a)": 22,
    "f(Tensor(a) x) -> Tensor(a!)": 25,
    "f.(Tensor x) -> Tensor": 2,
    "f.default(Tensor x) -> Tensor": 2,
    "(Tensor x) -> Tensor": 0,
    "f(Tensor x)": 11,
    "f(Tensor x) ->": 14,
    "f(Tensor x,) -> Tensor": 11,
    "a::b::f(Tensor x) -> Tensor": 4,
    "f(Foo x) -> ()": 2,
    "f(Tensor x) -> Tensor x=1": 23,
    "f(Tensor x=None) -> Tensor": 11,
}
# fmt: on


def test_every_rejected_text_of_the_oracle_is_an_error_at_its_column():
    assert set(REJECTED_AT) == set(TEXTS["reject"])
    for text, column in REJECTED_AT.items():
        with pytest.raises(SchemaSyntaxError) as caught:
            parse(text)
        assert caught.value.column == column, text
        assert caught.value.expected
        assert isinstance(caught.value, SchemaError)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("text", "message"), [
    ("f(int x=1.5) -> ()",
     "schema: expected an integer, found '1.5'\n  f(int x=1.5) -> ()\n          ^"),
    ("f(Tensor x, int y=1, int z) -> ()",
     "schema: expected a default: y before it has one, found none for z\n"
     "  f(Tensor x, int y=1, int z) -> ()\n                            ^"),
    ("f(Tensor x) -> Tensor(a)",
     "schema: expected an alias set of an argument, found 'a', which no argument has\n"
     "  f(Tensor x) -> Tensor(a)\n                        ^"),
    ("f(Tensor(a) x) -> Tensor(a!)",
     "schema: expected a return that is not written, or '!' on its argument, found (a!), which is only read\n"
     "  f(Tensor(a) x) -> Tensor(a!)\n                           ^"),
    ("f(str x='a) -> ()",
     "schema: expected a closed string, found a string without its closing '\n  f(str x='a) -> ()\n          ^"),
    ("f(int x=1_0) -> ()",
     "schema: expected a decimal number, found '1_0'\n  f(int x=1_0) -> ()\n          ^"),
    ("f(Tensor x;) -> ()",
     "schema: expected a name, a number, a string or one of ( ) [ ] * , = ? ! | . - -> ::, found ';'\n"
     "  f(Tensor x;) -> ()\n            ^"),
    ("f(Tensor x,\n  Tensor y,\n  Foo z) -> ()",
     "schema: expected an argument's type (Tensor, int, float, bool, str, Scalar, ...), found 'Foo'\n"
     "    Foo z) -> ()\n    ^"),
    ("", "schema: expected the operator's name, found the end\n  \n  ^"),
    ("f(bool[3] m=[True]) -> ()",
     "schema: expected 3 values for bool[3], found 1\n  f(bool[3] m=[True]) -> ()\n              ^"),
    ("f(Tensor x) -> Tensor?",
     "schema: expected a return that is not optional: an undefined tensor is None without '?', found '?'\n"
     "  f(Tensor x) -> Tensor?\n                       ^"),
])  # fmt: skip
def test_a_syntax_error_shows_the_line_a_caret_and_what_was_expected(text, message):
    assert refused(SchemaSyntaxError, parse, text) == message


@pytest.mark.parametrize(
    "text",
    [
        "f(*) -> ()",
        "f(Tensor x, *) -> ()",
        "f(*, int a, *, int b) -> ()",
        "f(Tensor) -> ()",
        "f(Tensor x) -> Tensor y z",
        "f(Tensor x) -> (Tensor x, Tensor x)",
        "f(int?? x) -> ()",
        "f(int[0] x) -> ()",
        "f(int[-1] x) -> ()",
        "f(int[1.5] x) -> ()",
        "f(int(a) x) -> ()",
        "f(Tensor[](a) x) -> ()",
        "f(Tensor?(a) x) -> ()",
        "f(Tensor(a!)! x) -> ()",
        "f(Tensor(a|b!) x) -> ()",
        "f(Tensor() x) -> ()",
        "f(Tensor(a ->) x) -> ()",
        "f(Tensor(a x) -> ()",
        "f(Tensor(a!) x) -> Tensor(b!)",
        "f(Tensor(a) x, Tensor(b!) y) -> Tensor(a!)",
        "f(int x=) -> ()",
        "f(int x=[) -> ()",
        "f(int x=-) -> ()",
        "f(int x=None) -> ()",
        "f(int x=foo) -> ()",
        "f(int x=True) -> ()",
        "f(int x='1') -> ()",
        "f(int[] x=1) -> ()",
        "f(int[] x=[1,]) -> ()",
        "f(int[] x=[1 2]) -> ()",
        "f(int[] x=[1.5]) -> ()",
        "f(float x=1j) -> ()",
        "f(float x=0x10) -> ()",
        "f(bool x=true) -> ()",
        "f(str x=abc) -> ()",
        "f(Device d=cpu) -> ()",
        "f(ScalarType d=foo) -> ()",
        "f(MemoryFormat m=strided) -> ()",
        "f(Generator g=None) -> ()",
        "f(Generator? g=1) -> ()",
        "f(Tensor x=1) -> ()",
        "f(Tensor x=[1]) -> ()",
        "f.out.x() -> ()",
        "f.1() -> ()",
        "f.__x() -> ()",
        "1f() -> ()",
        "f. out() -> ()",
        "::f() -> ()",
        "f(Tensor x) -> Tensor trailing, Tensor",
        "f(Tensor x) -> (Tensor",
        "f(Tensor x -> ()",
        "f Tensor x -> ()",
        "f(__torch__.torch.classes. x) -> ()",
    ],
)
def test_other_texts_that_break_the_grammar_or_its_rules_are_rejected(text):
    with pytest.raises(SchemaSyntaxError) as caught:
        parse(text)
    assert 0 <= caught.value.column <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "f(Tensor x)->Tensor",
        "f( Tensor x , int y = 1 ) -> ( Tensor , Tensor )",
        "f(Tensor x,\n  int[] y=[1,  2]) -> Tensor",
        "f(Tensor x) -> (Tensor)",
    ],
)
def test_white_space_and_spare_parentheses_are_kept_as_written_and_do_not_count(text):
    schema = parse(text)
    assert str(schema) == text
    assert parse(schema.canonical()).returns == schema.returns


def test_schemas_are_equal_by_their_parts():
    assert parse("f(Tensor  x)->Tensor") == parse("f(Tensor x) -> Tensor")
    assert hash(parse("f(Tensor  x)->Tensor")) == hash(parse("f(Tensor x) -> Tensor"))
    assert parse("f(float x=1) -> ()") != parse("f(float x=1.0) -> ()")


@pytest.mark.parametrize("name", ["BoolTensor", "IndexTensor", "IntegerTensor", "ByteTensor"])
def test_historic_spellings_of_tensor_are_accepted_and_mean_tensor(name):
    text = f"where({name} cond, Tensor(a!) self, {name}(b)? other=[]) -> Tensor(a!)"
    schema = parse(text)
    assert schema.canonical() == text
    assert [a.type.canonical for a in schema.arguments] == ["Tensor", "Tensor", "Tensor?"]


def test_a_custom_class_is_a_type():
    text = "f(__torch__.torch.classes.quantized.Packed w) -> __torch__.torch.classes.quantized.Packed"
    assert parse(text).canonical() == text


def _random_schema(rng: random.Random) -> str:
    """A valid text in canonical form, from the grammar."""
    defaults = {
        "int": ["0", "-1", "Mean", "007"],
        "float": ["1e-05", "1", ".5", "-inf"],
        "Scalar": ["1", "True", "-2.50", "1j"],
        "bool": ["True", "False"],
        "str": ["'a, b)'", '"q\\""'],
        "int[2]": ["2", "[2,2]", "[0, 0]", "[]"],
        "int[1]?": ["None", "[1,2,3]"],
        "Tensor": ["[]"],
        "Tensor?": ["None", "[]"],
        "ScalarType": ["long", "float32"],
        "MemoryFormat?": ["contiguous_format", "None"],
        "bool[3]": ["[True, False,True]"],
        "float[]?": ["[1, 2.0]"],
    }
    sets, parts, defaulted, star = [], [], False, False
    for index in range(rng.randrange(7)):
        if not star and rng.random() < 0.2:
            parts.append("*")
            star = True
        kind = rng.choice(list(defaults))
        carried = []
        text = kind
        if kind.startswith("Tensor") and rng.random() < 0.5:
            name = chr(ord("a") + index)
            mark = rng.choice(["(%s)", "(%s!)", "!", "(%s -> *)", "(%s! -> %s|z)", "(%s|y)"])
            if "%s" in mark:
                carried = [(name, "!" in mark)]
                mark = mark.replace("%s", name)
            text = f"Tensor{mark}{kind[6:]}"
            if rng.random() < 0.2 and kind == "Tensor":
                text += "[]"
                kind = ""
        has_default = bool(kind) and ((defaulted and not star) or rng.random() < 0.3)
        if defaulted and not star and not kind:
            continue
        sets += carried
        parts.append(f"{text} x{index}" + (f"={rng.choice(defaults[kind])}" if has_default else ""))
        defaulted = defaulted or has_default
    if parts and parts[-1] == "*":
        parts.pop()
    returns = []
    for index in range(rng.randrange(4)):
        text = rng.choice(["Tensor", "int", "Tensor[]", "SymInt"])
        if text.startswith("Tensor") and sets and rng.random() < 0.6:
            name, write = rng.choice(sets)
            text = f"Tensor({name}{'!' if write and rng.random() < 0.5 else ''}){text[6:]}"
        returns.append(text + (f" r{index}" if rng.random() < 0.3 else ""))
    joined = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
    name = rng.choice(["f", "ns::f", "f_", "__iadd__", "ns::f.out", "_f.from"])
    return f"{name}({', '.join(parts)}) -> {joined}"


def test_random_texts_of_the_grammar_print_back_from_their_parts():
    rng = random.Random(0)
    for _ in range(2000):
        text = _random_schema(rng)
        assert parse(text).canonical() == text


def test_a_text_cut_anywhere_is_an_error_and_never_anything_else():
    text = "ns::f.out(Tensor(a! -> a|b)? self, int[2] y=[1, -2], *, str s='q', Tensor(c!) out) -> (Tensor(c!) r, int)"
    parse(text)
    for stop in range(len(text)):
        with pytest.raises(SchemaSyntaxError) as caught:
            parse(text[:stop])
        assert caught.value.column <= stop


def test_a_text_with_one_character_changed_is_valid_or_an_error_with_a_column():
    rng = random.Random(1)
    text = "ns::f.out(Tensor(a! -> a|b)? self, int[2] y=[1, -2], *, str s='q', Tensor(c!) out) -> (Tensor(c!) r, int)"
    columns = []
    for _ in range(3000):
        at = rng.randrange(len(text))
        changed = text[:at] + rng.choice("()[]*,=?!|.-> :'\"a1é\n") + text[at + rng.randrange(2) :]
        try:
            schema = parse(changed)
        except SchemaSyntaxError as error:
            columns.append((error.column, len(changed)))
        else:
            assert str(schema) == changed
    assert len(columns) > 1000
    assert all(0 <= column <= length for column, length in columns)


def test_a_return_may_be_written_in_a_set_of_its_own():
    schema = FunctionSchema.parse("t::f(Tensor! x) -> Tensor!")
    assert str(schema) == "t::f(Tensor! x) -> Tensor!"
    assert (schema.kind, schema.is_view, schema.return_aliases) == ("mutable", False, ((),))


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("Tensor x=3", "expected [] (undefined), or the type Tensor? for None, found '3'"),
        ("str x=3", "expected a quoted string, found '3'"),
        ("int[] x=[1 2]", "expected ',' or ']', found '2'"),
        ("Generator x=3", "expected no default, because a Generator has none; a Generator? may have None, found '3'"),
    ],
)
def test_a_default_that_its_type_does_not_have_is_refused(argument, text):
    assert refused(SchemaSyntaxError, FunctionSchema.parse, f"f({argument}) -> Tensor").startswith(f"schema: {text}\n")
