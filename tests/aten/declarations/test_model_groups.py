"""Entries together: variants in groups, delegation, and the variants that autogen makes."""

from __future__ import annotations

import pytest

from refusal_tables import rows
from turnout_aten.declarations.reading import parse
from turnout_aten.errors.declarations import DeclarationError


def problems(text, **options):
    with pytest.raises(DeclarationError) as caught:
        parse(text, source="f.yaml", **options)
    return [str(p) for p in caught.value.problems]


OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
OUT = "- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"

STRUCTURED = """\
- func: f(Tensor self, Tensor other) -> Tensor
  structured_delegate: f.out
- func: f.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
"""


def test_a_scalar_overload_may_delegate_to_the_tensor_operator():
    functions = parse(STRUCTURED + "- func: f.Scalar(Tensor self, Scalar other) -> Tensor\n  structured_delegate: f.out")
    scalar = functions["f.Scalar"]
    assert functions.delegate_of(scalar) is functions["f.out"]
    assert [f.name for f in functions.group_of(scalar)] == ["f.Scalar"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("- func: f.int(Tensor self, int other) -> Tensor", "structured_delegate: f.out has other arguments"),
        ("- func: f.one(Tensor self) -> Tensor", "structured_delegate: f.out has other arguments"),
        ("- func: g(Tensor self, Scalar other) -> Tensor", "structured_delegate: f.out has other arguments"),
    ],
)
def test_delegating_to_an_operator_with_other_arguments_is_a_problem(entry, expected):
    (text,) = problems(f"{STRUCTURED}{entry}\n  structured_delegate: f.out")
    assert expected in text
    assert text.startswith("f.yaml:5: ")


DELEGATE = "- func: f(Tensor self) -> Tensor\n  structured_delegate: "
STACK = "- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    {}: autogen:out"
# A file in source, and below it each problem of it, after its name.
PROBLEMS = r"""
STRUCTURED + "- func: f.too(Tensor self, Tensor other) -> Tensor"
    5: f.too: has the same arguments as f in line 1, so calls would be ambiguous
DELEGATE + "f.uot\n" + OUT
    1: f: structured_delegate: no operator 'f.uot'
DELEGATE + "f.out\n" + OUT
    1: f: structured_delegate: f.out in line 3 is not structured; write structured: True there
"- func: f(Tensor self) -> Tensor\n  structured: True"
    1: f: structured belongs on the out variant; the others name it with structured_delegate
"- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True"
    1: f.out: structured: there is no functional variant with the same arguments
STRUCTURED.replace("  structured_delegate: f.out\n", "")
    1: f: its out variant f.out is structured: write structured_delegate: f.out
STRUCTURED.replace("f.out\n", "f.out\n  dispatch: {CPU: k, SparseCPU: s}\n", 1)
    3: f: dispatch: kernels for CPU come from f.out; drop this key
STRUCTURED.replace("  structured: True", "  structured: True\n  device_guard: False")
    3: f.out: device_guard: False has no effect on structured operators; drop it
"- func: f(Tensor x) -> Tensor\n  variants: method"
    1: f: variants: a method needs an argument 'Tensor self'
f"- func: f(Tensor self) -> Tensor\n{OUT}\n  variants: method"
    2: f.out: variants: an out variant is a function only: x.f(out=y) would be ambiguous
"- func: f(Tensor self) -> Tensor\n  variants: method\n  python_module: nn"
    1: f: python_module: functions of nn cannot be methods; drop 'method' from variants
"- func: f(Tensor self) -> Tensor\n- func: f(Tensor self, int x) -> Tensor"
    2: f: declared twice, first in line 1
"- func: f(Tensor self) -> Tensor\n  autogen: f.uot"
    1: f: autogen: cannot make f.uot; did you mean 'f.out'?; this entry can make f.out
"- func: f(Tensor self) -> bool\n  autogen: f.out"
    1: f: autogen: cannot make f.out; this entry cannot make any variant
f"- func: f(Tensor self) -> Tensor\n  autogen: f.out\n{OUT}"
    1: f: autogen: f.out exists already, in line 3
STACK.format("CompositeExplicitAutograd")
    1: f.out: dispatch: autogen:out needs an out variant with a functional variant of the same arguments
"- func: f(Tensor self) -> Tensor\n" + STACK.format("CPU")
    2: f.out: dispatch: autogen:out belongs at CompositeExplicitAutograd, with no kernel beside it
"""


@pytest.mark.parametrize(("text", "problem"), rows(PROBLEMS))
def test_entries_that_do_not_fit_together_are_a_problem(text, problem):
    assert problems(eval(text)) == [f"f.yaml:{problem}"]


def test_conventions_are_strict_outside_aten():
    text = "- func: f(Tensor self, *, Tensor(a!) result) -> Tensor(a!)"
    assert len(parse(text)) == 1
    (found,) = problems(text, namespace="mine")
    assert found.startswith("f.yaml:1: f: schema: out arguments are keyword-only, named out")


# ---- autogen


def schemas(text):
    return {f.name: str(f.schema) for f in parse(text) if f.is_generated}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- func: f(Tensor self, *, bool flag=False) -> Tensor\n  autogen: f.out",
            {"f.out": "f.out(Tensor self, *, bool flag=False, Tensor(a!) out) -> Tensor(a!)"},
        ),
        (
            "- func: f.ov(Tensor self) -> (Tensor values, Tensor indices)\n  autogen: f.ov_out",
            {"f.ov_out": "f.ov_out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))"},
        ),
        ("- func: f(Tensor self) -> Tensor[]\n  autogen: f.out", {"f.out": "f.out(Tensor self, *, Tensor(a!)[] out) -> ()"}),
        (
            f"- func: f(Tensor self, *, {OPTIONS}) -> Tensor\n  autogen: f.out",
            {"f.out": "f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"},
        ),
        (
            "- func: f_(Tensor(a!) self, int n) -> Tensor(a!)\n  autogen: f, f.out",
            {"f.out": "f.out(Tensor self, int n, *, Tensor(a!) out) -> Tensor(a!)", "f": "f(Tensor self, int n) -> Tensor"},
        ),
        (
            "- func: f(Tensor x, Tensor(a!) state) -> Tensor\n  autogen: f_functional, f.out",
            {
                "f.out": "f.out(Tensor x, Tensor(a!) state, *, Tensor(b!) out) -> Tensor(b!)",
                "f_functional": "f_functional(Tensor x, Tensor state) -> (Tensor, Tensor state_out)",
            },
        ),
    ],
)
def test_autogen_makes_the_missing_variants(text, expected):
    assert schemas(text) == expected


def test_generated_variants_carry_the_tag_and_join_the_group():
    functions = parse("- func: f(Tensor self) -> Tensor\n  tags: nondeterministic_seeded\n  autogen: f.out")
    made = functions["f.out"]
    assert made.tags == {"generated", "nondeterministic_seeded"}
    assert dict(made.dispatch) == {"CompositeExplicitAutograd": "autogen:out"}
    assert (made.device_check, made.device_guard) == ("NoCheck", False)
    assert made.base is functions["f"]
    assert functions.group_of(made).functional is functions["f"]


def test_an_out_variant_with_names_of_its_own_may_have_the_kernel_that_autogen_makes():
    entry = "- func: f(Tensor self) -> (Tensor a, Tensor b)\n  dispatch:\n    CompositeImplicitAutograd: f\n"
    out = "- func: f.out(Tensor self, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!) a, Tensor(b!) b)\n"
    functions = parse(entry + out + "  dispatch:\n    CompositeExplicitAutograd: autogen:out")
    made = functions["f.out"]
    assert made.base is functions["f"]
    assert (made.device_check, made.device_guard) == ("NoCheck", False)
    assert functions.group_of(made).out is made
