"""What the variants of an operator share."""

from turnout.schema import FunctionSchema
from turnout_aten.declarations.signatures import signature, tensor_options

parse = FunctionSchema.parse

VARIANTS = [
    "ns::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!) result",
]


def test_all_variants_of_one_operator_have_one_signature():
    found = {signature(parse(text)) for text in VARIANTS}
    assert [str(s) for s in found] == ["add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"]


def test_a_signature_returns_what_was_written_and_drops_tensor_options():
    mutable = parse("f(Tensor self, Tensor(a!) mean, Tensor(b!) var) -> Tensor out")
    assert str(signature(mutable)) == "f(Tensor self, Tensor mean, Tensor var) -> (Tensor, Tensor, Tensor)"
    factory = parse(
        "zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"
    )
    assert str(signature(factory)) == "zeros(int[] size, *, MemoryFormat? memory_format=None) -> Tensor"


def test_tensor_options_are_four_keywords_that_follow_each_other():
    schema = parse(
        "f(Tensor cond, Tensor(a!) self, int n=1, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, Tensor(b!) out) -> Tensor(b!)"
    )
    assert [a.name for a in tensor_options(schema)] == ["dtype", "layout", "device", "pin_memory"]
    assert tensor_options(parse("f(*, ScalarType? dtype=None, Device? device=None) -> Tensor")) == ()
