"""The conventions of declared operators, with the full text of every error."""

import pytest

from outcomes import refused
from turnout.errors import SchemaError
from turnout.schema import FunctionSchema
from turnout_aten.declarations.conventions import check_conventions

INPLACE = "schema: the name of an in-place operator ends in '_', and it writes and returns self"
OUT = "schema: out arguments are keyword-only, named out or out0, out1, ..., written, and returned in order"
VIEW = "schema: a view carries its alias set on both sides"


@pytest.mark.parametrize(
    "text",
    [
        "abs(Tensor self) -> Tensor",
        "abs_(Tensor(a!) self) -> Tensor(a!)",
        "abs_(Tensor(a!) x) -> Tensor(a!)",
        "_foreach_abs_(Tensor(a!)[] self) -> ()",
        "__iadd__(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "__add__(Tensor self, Tensor other) -> Tensor",
        "abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "qr.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!) Q, Tensor(b!) R)",
        "_foreach_abs.out(Tensor[] self, *, Tensor(a!)[] out) -> ()",
        "t(Tensor(a) self) -> Tensor(a)",
        "chunk(Tensor(a -> *) self, int chunks) -> Tensor(a)[]",
        "set_data(Tensor(a!) self, Tensor new_data) -> ()",
        "sum(Tensor! x, int output_nr) -> ()",
    ],
)
def test_schemas_that_keep_the_conventions_pass(text):
    check_conventions(FunctionSchema.parse(text))
    check_conventions(FunctionSchema.parse(text), historic=True)


@pytest.mark.parametrize(("text", "rule", "fact", "remedy"), [
    ("f_(Tensor self) -> Tensor", INPLACE, "Tensor self is only read", "write 'Tensor' with (a!)"),
    ("f_(int n) -> int", INPLACE, "no tensor to write", "make the first argument 'Tensor(a!) self'"),
    ("f_(Tensor(a!) self) -> ()", INPLACE, "Tensor(a!) self is not what it returns", "return Tensor(a!)"),
    ("f_(Tensor(a!)[] self) -> Tensor(a!)[]", INPLACE, "a list is written, and something returned", "return ()"),
    ("f(Tensor(a!) self) -> Tensor(a!)", INPLACE, "Tensor(a!) self is written and returned", "name it f_"),
    ("f_(Tensor(a!) self, *, Tensor(b!) out) -> Tensor(a!)", INPLACE, "out written too",
     "declare the out variant as an operator of its own"),
    ("f.out(Tensor x, Tensor(a!) out) -> Tensor(a!)", OUT, "Tensor(a!) out is positional",
     "put it behind '*' and write it with (a!)"),
    ("f.out(Tensor x, *, Tensor out) -> Tensor", OUT, "Tensor out is only read",
     "put it behind '*' and write it with (a!)"),
    ("f.out(Tensor x, *, Tensor(a!) out, int n) -> Tensor(a!)", OUT,
     "an argument that is only read behind one that is written", "put out arguments last"),
    ("f.out(Tensor x, *, Tensor(a!) values) -> Tensor(a!)", OUT, "values", "name them out"),
    ("f.out(Tensor x, *, Tensor(a!) out, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))", OUT, "out, out1",
     "name them out0, out1"),
    ("f.out(Tensor x, *, Tensor(a!) out) -> ()", OUT, "nothing returned", "return Tensor(a!)"),
    ("f.out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(b!), Tensor(a!))", OUT,
     "Tensor(b!), Tensor(a!) returned", "return (Tensor(a!), Tensor(b!))"),
    ("f.out(Tensor x, *, Tensor(a!)[] out) -> Tensor(a!)[]", OUT, "a list is written, and something returned",
     "return ()"),
    ("f(Tensor(a) self) -> Tensor", VIEW, "Tensor(a) self shares memory with nothing that is returned",
     "drop (a), or write it on the return"),
])  # fmt: skip
def test_a_broken_convention_is_an_error_with_the_fact_and_the_remedy(text, rule, fact, remedy):
    assert refused(SchemaError, check_conventions, FunctionSchema.parse(text)) == (
        f"{rule}\n  {text}\n  found   {fact}\n  to fix  {remedy}"
    )


def test_historic_schemas_may_name_out_arguments_freely_and_keep_scratch_ones():
    text = "max.dim_max(Tensor self, int dim, *, Tensor(a!) max, Tensor(b!) _scratch_x) -> Tensor(a!) values"
    check_conventions(FunctionSchema.parse(text), historic=True)
    refused(SchemaError, check_conventions, FunctionSchema.parse(text))
