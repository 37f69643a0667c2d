"""What the generator says about entries that it does not allow, what it makes of the others, and what is loaded of that."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from outcomes import printed
from turnout_aten.declarations.reading import load
from turnout_aten.errors.declarations import DeclarationError
from turnout_autograd import declarations
from turnout_autograd.declarations.entries import parse
from turnout_autograd.declarations.tangents import PROPERTIES
from turnout_autograd.generation.files import FUNCTIONS, GENERATED, callables, files
from turnout_autograd.generation.tangent_source import conjugated

SIN = "- name: sin(Tensor self) -> Tensor\n  self: grad * conj(self).cos()\n"
ADD = "- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n  self: grad\n  other: scaled(grad, alpha)\n"
SIGN = "- name: sign(Tensor self) -> Tensor\n  output_differentiability: [False]\n"
EXP = "- name: exp(Tensor self) -> Tensor\n  self: grad * conj(result)\n"
CUMSUM = "- name: cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor\n  self: cumsum_grad(grad, dim)\n"
TURNED = SIN.replace("grad * conj(self).cos()", "conj(grad) * self")
HALF = ADD.replace("scaled(grad, alpha)", 'not_implemented("why")')
UNKNOWN = "is neither an argument, a tangent, a result, an operator, nor a known function"


@cache
def known():
    """The functions of formulas, and what they may call."""
    functions = load(FUNCTIONS)
    return functions, callables(functions)


def problems(text):
    with pytest.raises(DeclarationError) as caught:
        parse({"d.yaml": text}, *known())
    return [str(p) for p in caught.value.problems]


def test_all_problems_of_the_derivatives_are_reported_with_their_lines():
    found = problems(
        "- name: exp(Tensor self) -> Tensor\n  self: grad * nonsense(result)\n  other: grad\n"
        "- name: sin(Tensor x) -> Tensor\n  x: grad\n"
        "- name: nothing(Tensor self) -> Tensor\n  self: grad\n"
        "- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n  self: grad +\n  alpha: grad\n"
        "- name: sinc(Tensor self) -> Tensor\n  self: grad * self\n  unless: {self: nothing}\n"
    )
    assert [p for p in found if not p.startswith("declarations:")] == [
        "d.yaml:2: exp: 'nonsense' is neither an argument, a result, an operator, nor a function of formulas",
        "d.yaml:3: exp: no argument 'other'; there are self",
        "d.yaml:4: sin: the operator is declared as sin(Tensor self) -> Tensor",
        "d.yaml:6: nothing: no operator has this name",
        "d.yaml:8: add.Tensor: nothing is said about other",
        "d.yaml:9: add.Tensor: 'grad +' is not a Python expression: invalid syntax",
        "d.yaml:10: add.Tensor: 'alpha' is Scalar, not a tensor",
        "d.yaml:11: sinc: unless: 'self: nothing' must be a Tensor and a bool among the arguments",
    ]
    assert "declarations:0: aten::abs: no entry: give formulas, or output_differentiability: [False]" in found
    assert "d.yaml:1: an entry must be a mapping with the field 'name'" in problems("- self: grad\n")


def test_what_a_formula_may_ask_of_its_arguments_is_what_the_package_says():
    assert re.findall(r"`xs?\.(\w+)`", declarations.__doc__ or "") == [*PROPERTIES]


def test_the_generated_kernels_are_those_of_the_declarations():
    made = files()
    stale = set(GENERATED.rglob("*.py")) ^ made.keys()
    stale |= {path for path, text in made.items() if path.exists() and path.read_text(encoding="utf-8") != text}
    assert not stale, "generate again: python -m turnout_autograd.generation"


def test_the_generator_needs_nothing_that_is_generated():
    code = "import sys, turnout_autograd.generation.__main__; print([m for m in sys.modules if 'generated' in m])"
    assert printed(code) == "[]"


def test_a_first_gradient_and_a_first_rule_load_only_the_families_of_their_operators():
    loaded = "print(sorted(m.rpartition('.')[2] for m in sys.modules if m.startswith('turnout_autograd.generated.')))\n"
    code = (
        "import sys, turnout\n"
        "x = turnout.ones(3).requires_grad_()\n"
        f"(x * x).sum().backward()\n{loaded}"
        "from turnout.registry import REGISTRY\n"
        "from turnout_autograd.tangents import rule\n"
        f"rule(REGISTRY.find('aten::sin'))\n{loaded}"
    )
    assert printed(code).splitlines() == ["['arithmetic', 'reductions']", "['arithmetic', 'pointwise', 'reductions', 'tangents']"]


# fmt: off
TANGENTS = {
    "an entry with gradients must say its tangent": (SIN, ["1: sin: 'result' must say once what the tangent of that output is"]),
    "an output without gradients has no tangent":
        (SIGN + "  result: self_t\n", ["3: sign: 'result': this output has no tangent"]),
    "a gradient that reads the values is not linear":
        (SIN + "  result: auto_linear\n", ["3: sin: auto_linear: not linear, for the gradient of self reads self"]),
    "a gradient that reads the result is not linear":
        (EXP + "  result: auto_linear\n", ["3: exp: auto_linear: not linear, for the gradient of self reads result"]),
    "an operator with an argument that has no gradient is not said to be linear":
        (HALF + "  result: auto_linear\n", ["4: add.Tensor: auto_linear: there is no gradient with respect to other"]),
    "an operator that mixes elements is not element-wise":
        (CUMSUM + "  result: auto_element_wise\n", ["3: cumsum: auto_element_wise: the operator is not tagged pointwise"]),
    "a gradient that turns complex numbers is not element-wise":
        (TURNED + "  result: auto_element_wise\n",
         ["3: sin: auto_element_wise: 'conj(grad)' is not linear over complex numbers; write the tangent"]),
    "an expression reads every tangent and in each term one":
        (ADD + "  result: self_t + alpha\n", ["4: add.Tensor: the tangent of result does not read other_t",
                                              "4: add.Tensor: the term 'alpha' reads no tangent"]),
    "a value is written with its mark":
        (SIN + "  result: self_t * self.cos()\n",
         ["3: sin: 'self': write self_p for the value of self, self_t for its tangent"]),
    "a term of several tangents passes them to a function":
        (ADD + "  result: (self_t + other_t) * 2\n",
         [("4: add.Tensor: the term '(self_t + other_t) * 2' reads several tangents, any of which may be None: pass them to a "
           "function of `tangents`")]),
    "an expression uses only what there is":
        (SIN + "  result: self_t * nonsense(grad)\n", [f"3: sin: 'grad' {UNKNOWN}", f"3: sin: 'nonsense' {UNKNOWN}"]),
    "an expression is one of Python":
        (SIN + "  result: self_t *\n", ["3: sin: 'self_t *' is not a Python expression: invalid syntax"]),
}
# fmt: on


@pytest.mark.parametrize("rule", TANGENTS)
def test_a_tangent_that_an_entry_does_not_allow_is_named(rule):
    text, expected = TANGENTS[rule]
    assert [p for p in problems(text) if not p.startswith("declarations:")] == [f"d.yaml:{each}" for each in expected]


def test_factors_are_conjugated_by_their_parts():
    def made(text):
        return ast.unparse(ast.fix_missing_locations(conjugated(ast.parse(text, mode="eval").body, "self_t")))

    assert made("grad") == "self_t"
    assert made("grad * conj(result) * LOG_2") == "self_t * result * LOG_2"
    assert made("-grad / (2 * other)") == "-self_t / (2 * conj(other))"
    assert made("where(self > 0, grad, 0)") == "where(self > 0, self_t, 0)"
    assert made("grad if exact else zeros_like(grad)") == "self_t if exact else zeros_like(self_t)"
    assert made("gelu_backward(grad, self)") == "conj(gelu_backward(conj(self_t), self))"
