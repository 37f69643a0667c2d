"""infer_schema against torch.library.infer_schema on every form of annotation, default and mutates_args."""

# ruff: noqa: UP006, UP007, UP035, UP045 - older spellings are compared too
from __future__ import annotations

import collections.abc
import inspect
import itertools
import logging
import types
import typing
from random import Random
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch.library import infer_schema as torch_infer_schema  # noqa: E402

from turnout.errors import SchemaError  # noqa: E402
from turnout.schema import FunctionSchema  # noqa: E402
from turnout.schema.infer import infer_schema  # noqa: E402

CLASSES = {torch.Tensor: "Tensor", torch.dtype: "ScalarType", torch.device: "Device"}
Number = torch.types.Number
ERROR = "an error"

BASES = [
    Tensor, int, float, bool, str, Number, torch.dtype, torch.device, complex, bytes, object, type(None),
]  # fmt: skip


def forms(base: Any) -> list[Any]:
    return [
        base, Optional[base], Union[base, None], base | None, List[base], list[base], Sequence[base],
        collections.abc.Sequence[base], List[Optional[base]], list[base | None], Sequence[Optional[base]],
        Optional[List[base]], list[base] | None, Optional[Sequence[base]], Optional[List[Optional[base]]],
        Tuple[base, base], tuple[base, ...], tuple[base], Dict[str, base], List[List[base]], Set[base],
    ]  # fmt: skip


OTHERS = [
    list, tuple, List, Sequence, Any, typing.Callable, Union[int, float], int | float | bool, None, 1,
    "int", "Tensor", "Optional[Tensor]", "Tensor | None", "List[int]", "list[int] | None", "missing", "None",
    "torch.dtype",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet():
    """torch logs a line for every annotation that it does not support."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def function(annotation=Tensor, returns=None, default=inspect.Parameter.empty, kind=inspect.Parameter.POSITIONAL_OR_KEYWORD):
    def f(x): ...

    parameter = inspect.Parameter("x", kind, annotation=annotation, default=default)
    f.__signature__ = inspect.Signature([parameter], return_annotation=returns)
    return f


def theirs(f, **options):
    try:
        return torch_infer_schema(f, **options)
    except ValueError:
        return ERROR


def mine(f, **options):
    try:
        text = infer_schema(f, classes=CLASSES, **options)
    except SchemaError:
        return ERROR
    FunctionSchema.parse(text if text[0] != "(" else f"f{text}")
    return text


ANNOTATIONS = [form for base in BASES for form in forms(base)] + OTHERS


@pytest.mark.parametrize("mutates_args", [(), ("x",), "unknown", "x", ("y",)])
def test_every_annotation_has_the_same_type_or_is_an_error_in_both(mutates_args):
    for annotation in ANNOTATIONS:
        f = function(annotation)
        assert mine(f, mutates_args=mutates_args) == theirs(f, mutates_args=mutates_args), annotation


def test_every_return_annotation_has_the_same_text_or_is_an_error_in_both():
    tuples = [Tuple[a, Tensor] for a in ANNOTATIONS if isinstance(a, type) or typing.get_origin(a) is not None]
    for annotation in [*ANNOTATIONS, *tuples, tuple[()], tuple[Tensor, ...], inspect.Signature.empty]:
        f = function(returns=annotation)
        assert mine(f, mutates_args=(), op_name="f") == theirs(f, mutates_args=(), op_name="f"), annotation


def test_every_kind_of_parameter_is_treated_the_same():
    for kind in inspect._ParameterKind:
        f = function(kind=kind)
        assert mine(f, mutates_args=()) == theirs(f, mutates_args=()), kind
    f = function(inspect.Parameter.empty)
    assert mine(f, mutates_args=()) == theirs(f, mutates_args=()) == ERROR


GOOD_DEFAULTS = [
    (int, 1), (int, -1), (int | None, None), (int | None, 3), (float, 1), (float, 1.5), (float, 1e-05), (float, 1e20),
    (bool, True), (str, "x"), (str, ""), (str, "a'b"), (str | None, None), (Number, 1), (Number, 2.5), (Number, True),
    (torch.dtype, torch.float32), (torch.dtype, torch.int64), (torch.dtype | None, torch.bool), (torch.device, "cpu"),
    (torch.device, torch.device("cuda:0")), (Tensor | None, None), (List[int] | None, None), (float, float("inf")),
]  # fmt: skip


def test_every_default_that_fits_its_type_has_the_same_text():
    for annotation, default in GOOD_DEFAULTS:
        f = function(annotation, default=default)
        assert mine(f, mutates_args=()) == theirs(f, mutates_args=()) != ERROR, (annotation, default)


def test_a_default_that_does_not_fit_its_type_is_an_error_here_and_a_wrong_schema_there():
    for annotation, default in [(Tensor, None), (int, 1.5), (int, "x"), (bool, 1), (str, None), (List[int], None)]:
        f = function(annotation, default=default)
        assert mine(f, mutates_args=()) == ERROR
        text = theirs(f, mutates_args=())
        with pytest.raises(SchemaError):
            FunctionSchema.parse(f"f{text}")


def test_a_default_of_an_unsupported_class_is_an_error_in_both():
    for default in ([1], (1, 2), b"x", object()):
        f = function(int, default=default)
        assert mine(f, mutates_args=()) == theirs(f, mutates_args=()) == ERROR


def whole(
    a: Tensor, b: List[Tensor], n: int, *, c: Optional[Tensor] = None, d: float = 1e-05, e: str = "q"
) -> Tuple[Tensor, int]: ...


@pytest.mark.parametrize("mutates_args", [(), ("a", "c"), "unknown", ["b"], {"a"}])
def test_a_whole_function_has_the_same_schema(mutates_args):
    text = mine(whole, mutates_args=mutates_args, op_name="ns::op")
    assert text == theirs(whole, mutates_args=mutates_args, op_name="ns::op")


PARAMETERS = [
    (Tensor, None), (Tensor | None, None), (List[Tensor], None), (int, 3), (float, 0.5), (bool, True), (str, "s"),
    (List[int], None), (Optional[List[int]], None), (Number, 2), (torch.dtype, None), (complex, None), (Dict[str, int], None),
]  # fmt: skip
RETURNS = [
    None,
    Tensor,
    List[Tensor],
    int,
    Tuple[Tensor, Tensor],
    Tuple[Tensor, int],
    tuple[Tensor],
    str,
    inspect.Signature.empty,
]
TAGS = [(), "inplace", "out", ("inplace",), ("out", "pointwise"), ("inplace", "out")]


def drawn(random: Random) -> tuple[Any, dict[str, Any]]:
    """A function of up to five parameters, and the options of a call."""
    parameters, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = False
    for i in range(random.randint(1, 5)):
        if random.random() < 0.3:
            kind = inspect.Parameter.KEYWORD_ONLY
        annotation, default = random.choices(PARAMETERS, [8, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0.3, 0.3])[0]
        optional = typing.get_origin(annotation) in (Union, types.UnionType)
        defaults = defaults if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD else random.random() < 0.5
        defaults = defaults or (random.random() < 0.2 and (default is not None or optional))
        has_default = defaults and (default is not None or optional)
        defaults = has_default
        parameters.append(inspect.Parameter(f"a{i}", kind, annotation=annotation, default=default if has_default else EMPTY))
    if any(p.default is EMPTY and q.default is not EMPTY for q, p in itertools.pairwise(parameters)):
        parameters = [p.replace(default=EMPTY) for p in parameters]
    names = [p.name for p in parameters]
    written = "unknown" if random.random() < 0.1 else tuple(n for n in names if random.random() < 0.3)

    def f(*args): ...

    f.__signature__ = inspect.Signature(parameters, return_annotation=random.choice(RETURNS))
    return f, {"mutates_args": written, "tags": random.choice(TAGS)}


EMPTY = inspect.Parameter.empty


def test_whole_signatures_with_tags_have_the_same_schema_or_are_an_error_in_both(seeds):
    found = set()
    for seed in seeds(2000):
        f, options = drawn(Random(seed))
        named = (options["tags"],) if isinstance(options["tags"], str) else options["tags"]
        tags = [getattr(torch.Tag, name) for name in named]
        try:
            expected = torch_infer_schema(f, mutates_args=options["mutates_args"], tags=tags)
        except (ValueError, AssertionError):
            expected = ERROR
        assert mine(f, **options) == expected, (seed, f.__signature__, options)
        found.add(expected)
    assert ERROR in found
    assert len(found) >= 150 or len(seeds(2000)) < 2000
