"""check_kernel_signature: which Python functions can be kernels of a schema."""

import operator

import pytest

from outcomes import refused
from turnout.dtypes import DTYPES
from turnout.errors import KernelSignatureError
from turnout.schema import FunctionSchema, check_kernel_signature

SUM = FunctionSchema.parse("sum(Tensor self, int[1] dim=[], bool keepdim=False, *, ScalarType dtype=long) -> Tensor")
int64 = DTYPES["int64"]


def exact(self, dim, keepdim, *, dtype): ...
def renamed(x, axes, keep, *, dtype): ...
def with_defaults(self, dim=(), keepdim=False, *, dtype=int64): ...
def keyword_by_position(self, dim, keepdim, dtype): ...
def more(self, dim, keepdim, extra=None, *, dtype, other=1): ...
def everything(*args, **kwargs): ...
def words(self, *args, **kwargs): ...
def positional_only(self, dim, keepdim, /, *, dtype): ...


class Callable:
    def __call__(self, x, dim, keepdim, *, dtype): ...

    def method(self, x, dim, keepdim, *, dtype): ...


@pytest.mark.parametrize(
    "function",
    [
        exact, renamed, with_defaults, keyword_by_position, more, everything, words, positional_only,
        Callable(), Callable().method, lambda a, b, c, dtype: None,
    ],
)  # fmt: skip
def test_a_function_that_the_schema_can_call_is_accepted(function):
    check_kernel_signature(function, SUM)


def test_a_builtin_without_a_signature_is_accepted():
    check_kernel_signature(max, SUM)
    check_kernel_signature(operator.itemgetter(0), FunctionSchema.parse("f(Tensor x) -> Tensor"))


def test_the_key_set_comes_first_when_the_kernel_asks_for_it():
    def kernel(keyset, self, dim, keepdim, *, dtype): ...

    check_kernel_signature(kernel, SUM, with_keyset=True)
    assert refused(KernelSignatureError, check_kernel_signature, exact, SUM, with_keyset=True) == (
        "kernel does not fit its schema: it takes 3 positional arguments, and is given the key set and 3\n"
        f"  schema  {SUM}\n  kernel  exact(self, dim, keepdim, *, dtype)"
    )


def too_few(self, dim, *, dtype): ...
def no_dtype(self, dim, keepdim): ...
def requires(self, dim, keepdim, *, dtype, other): ...
def requires_position(self, dim, keepdim, other, *, dtype): ...
def taken(self, dtype, keepdim, **rest): ...
def other_default(self, dim, keepdim=True, *, dtype): ...
def other_list(self, dim=None, keepdim=False, *, dtype): ...
def other_dtype(self, dim, keepdim, *, dtype=DTYPES["int32"]): ...
def number_for_bool(self, dim, keepdim=0, *, dtype): ...
def exchanged(self, keepdim, dim, *, dtype): ...


@pytest.mark.parametrize(("function", "problem"), [
    (too_few, "it takes 2 positional arguments, and is given 3"),
    (no_dtype, "it has no keyword argument dtype"),
    (requires, "it requires other, which the schema does not have"),
    (requires_position, "it requires other, which the schema does not have"),
    (taken, "dtype is given by keyword, and its place is taken by a positional argument"),
    (other_default, "keepdim defaults to True, and to False in the schema"),
    (other_list, "dim defaults to None, and to [] in the schema"),
    (other_dtype, "dtype defaults to turnout.int32, and to long in the schema"),
    (number_for_bool, "keepdim defaults to 0, and to False in the schema"),
    (exchanged, "it takes self, keepdim, dim by position, and is given self, dim, keepdim"),
])  # fmt: skip
def test_a_function_that_does_not_fit_is_an_error_that_shows_both_signatures(function, problem):
    first, schema, kernel = refused(KernelSignatureError, check_kernel_signature, function, SUM).splitlines()
    assert first == f"kernel does not fit its schema: {problem}"
    assert schema == f"  schema  {SUM}"
    assert kernel.startswith(f"  kernel  {function.__name__}(self, ")


@pytest.mark.parametrize(("argument", "own", "agrees"), [
    ("int[2] x=1", 1, True),
    ("int[2] x=1", (1, 1), True),
    ("int[2] x=1", [1, 2], False),
    ("float x=1", 1, True),
    ("float x=nan", float("nan"), True),
    ("float x=nan", 0.0, False),
    ("str s='a'", "a", True),
    ("str s='a'", None, False),
    ("Device d='cpu'", "cpu", True),
    ("MemoryFormat m=contiguous_format", "contiguous_format", True),
    ("Tensor? x=None", None, True),
    ("Tensor? x=[]", None, True),
    ("int x=1", True, False),
    ("int x=1", object(), False),
])  # fmt: skip
def test_defaults_agree_by_value(argument, own, agrees):
    schema = FunctionSchema.parse(f"f({argument}) -> ()")

    def kernel(x=own): ...

    if agrees:
        check_kernel_signature(kernel, schema)
    else:
        refused(KernelSignatureError, check_kernel_signature, kernel, schema)


def test_a_default_of_the_kernel_alone_is_accepted():
    def kernel(x, dim=0): ...

    check_kernel_signature(kernel, FunctionSchema.parse("f(Tensor x, int dim) -> Tensor"))
