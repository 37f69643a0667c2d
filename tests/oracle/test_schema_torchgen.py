"""Schemas against torchgen 2.13: every function of native_functions.yaml and of its autogen lines, field by field."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest

torchgen = pytest.importorskip("torchgen")
gen = pytest.importorskip("torchgen.gen")
yaml = pytest.importorskip("yaml")

from torchgen.model import SchemaKind  # noqa: E402

from turnout.errors import SchemaError  # noqa: E402
from turnout.schema import FunctionSchema, check_no_tie  # noqa: E402
from turnout_aten.declarations.conventions import check_conventions  # noqa: E402
from turnout_aten.declarations.signatures import signature, tensor_options  # noqa: E402

NATIVE = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"

# Turnout has no kind of its own for out variants with `_scratch_` arguments.
KINDS = {SchemaKind.scratch: "out"}


@pytest.fixture(scope="module")
def functions():
    parsed = gen.parse_native_yaml(str(NATIVE / "native_functions.yaml"), str(NATIVE / "tags.yaml"))
    pairs = [(f, FunctionSchema.parse(str(f.func))) for f in parsed.native_functions]
    assert len(pairs) == 3101
    return pairs


def test_all_func_strings_of_the_yaml_print_back_from_text_and_parts():
    entries = yaml.safe_load((NATIVE / "native_functions.yaml").read_text())
    texts = {entry["func"] for entry in entries}
    assert len(texts) == 2584
    for text in texts:
        schema = FunctionSchema.parse(text)
        assert str(schema) == text
        assert schema.canonical() == text


def test_names_are_equal(functions):
    for native, schema in functions:
        name = native.func.name
        assert schema.canonical() == str(native.func)
        assert schema.name.overload == name.overload_name
        assert schema.name.name == str(name.name)
        assert schema.name.is_inplace == name.name.inplace
        base = f"__{name.name.base}__" if name.name.dunder_method else name.name.base
        assert schema.name.base == base


def test_kinds_and_signatures_are_equal(functions):
    for native, schema in functions:
        kind = native.func.kind()
        assert schema.kind == KINDS.get(kind, kind.name)
        assert str(signature(schema)) == str(native.func.signature())
        assert schema.is_mutable == native.func.is_mutable


def test_arguments_types_defaults_and_annotations_are_equal(functions):
    for native, schema in functions:
        arguments = native.func.arguments
        theirs = list(native.func.schema_order_arguments())
        assert len(theirs) == len(schema.arguments)
        positional = len(arguments.flat_positional)
        for index, (a, b) in enumerate(zip(schema.arguments, theirs, strict=True)):
            assert (a.name, str(a.type), a.default_text, a.is_write) == (b.name, str(b.type), b.default, b.is_write)
            assert a.kwarg_only == (index >= positional)
            assert a.type.is_tensor_like == b.type.is_tensor_like()
            assert_same_annotation(a.annotation, b.annotation)
            if a.has_default:
                assert_default(a)
        assert [a.name for a in schema.out_arguments] == [a.name for a in arguments.out]
        own = arguments.self_arg
        assert (schema.self_argument and schema.self_argument.name) == (own and own.argument.name)
        options = arguments.tensor_options
        assert [a.name for a in tensor_options(schema)] == ([] if options is None else [a.name for a in options.all()])
        assert [a.name for a in schema.mutated_arguments] == arguments.mutable_arg_names()


def assert_same_annotation(mine, theirs):
    if theirs is None:
        assert mine is None
        return
    assert (mine.before, mine.is_write, mine.after) == (theirs.alias_set, theirs.is_write, theirs.alias_set_after)


def assert_default(argument):
    """The value, by a second reading of the text that knows only what the yaml uses."""
    text, value = argument.default_text, argument.default
    words = {"None": None, "True": True, "False": False, "Mean": 1, "long": "int64"}
    name = argument.type.base.canonical
    sized = getattr(argument.type, "size", None)
    if text in words:
        expected = words[text]
        value = getattr(value, "name", value)
    elif text[0] in "'\"":
        expected = eval(text)
    elif text[0] == "[":
        expected = None if name == "Tensor" else eval(text)
    elif text[0] in "-0123456789.":
        expected = eval(text)
        if sized:
            expected = [expected] * sized
    else:
        expected = text
    assert value == expected, argument
    if name == "float" and value is not None:
        assert isinstance(value, (float, list))


def test_returns_and_their_aliases_are_equal(functions):
    for native, schema in functions:
        assert len(schema.returns) == len(native.func.returns)
        for a, b in zip(schema.returns, native.func.returns, strict=True):
            assert (a.name, str(a.type), a.is_write) == (b.name, str(b.type), b.is_write)
            assert_same_annotation(a.annotation, b.annotation)
        # torchgen compares annotations as a whole and so misses `(a -> *)`, whose set `(a)` the return is in.
        for names, theirs in zip(schema.return_aliases, native.func.aliased_return_names(), strict=True):
            wildcard = [a.name for a in schema.arguments if a.annotation is not None and "*" in a.annotation.sets]
            assert names == ((theirs,) if theirs is not None else tuple(wildcard))


def test_views_are_equal_but_for_those_that_only_a_tag_declares(functions):
    for native, schema in functions:
        assert schema.is_view == (native.is_view_op and "inplace_view" not in native.tags)


def test_every_function_keeps_the_historic_conventions_and_most_keep_the_strict_ones(functions):
    broken = []
    for _, schema in functions:
        check_conventions(schema, historic=True)
        try:
            check_conventions(schema)
        except SchemaError as error:
            broken.append(str(error))
    assert len(broken) == 119
    assert all("out arguments are keyword-only, named out" in text for text in broken)


def test_no_two_overloads_of_a_packet_tie(functions):
    packets = collections.defaultdict(list)
    for _, schema in functions:
        check_no_tie(packets[schema.name.packet], schema)
        packets[schema.name.packet].append(schema)
    for schemas in packets.values():
        for new in schemas:
            check_no_tie([other for other in schemas if other is not new], new)
