"""What the generator says about tangents that an entry does not allow, and what it makes of those it does."""

from __future__ import annotations

import subprocess
import sys

import pytest

SIN = "- name: sin(Tensor self) -> Tensor\n  self: grad * conj(self).cos()\n"
ADD = "- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n  self: grad\n  other: scaled(grad, alpha)\n"


def problems(text):
    from turnout_aten.declarations.reading import load
    from turnout_aten.errors.declarations import DeclarationError
    from turnout_autograd.declarations.entries import parse
    from turnout_autograd.generation.files import FUNCTIONS, callables

    functions = load(FUNCTIONS)
    with pytest.raises(DeclarationError) as caught:
        parse({"d.yaml": text}, functions, callables(functions))
    return [str(p) for p in caught.value.problems if not str(p).startswith("declarations:")]


def test_an_entry_with_gradients_must_say_its_tangent():
    assert problems(SIN) == ["d.yaml:1: sin: 'result' must say once what the tangent of that output is"]


def test_an_output_without_gradients_has_no_tangent():
    text = "- name: sign(Tensor self) -> Tensor\n  output_differentiability: [False]\n  result: self_t\n"
    assert problems(text) == ["d.yaml:3: sign: 'result': this output has no tangent"]


def test_a_gradient_that_reads_the_values_is_not_linear():
    assert problems(SIN + "  result: auto_linear\n") == [
        "d.yaml:3: sin: auto_linear: not linear, for the gradient of self reads self"
    ]


def test_a_gradient_that_reads_the_result_is_not_linear():
    text = "- name: exp(Tensor self) -> Tensor\n  self: grad * conj(result)\n  result: auto_linear\n"
    assert problems(text) == ["d.yaml:3: exp: auto_linear: not linear, for the gradient of self reads result"]


def test_an_operator_with_an_argument_that_has_no_gradient_is_not_said_to_be_linear():
    text = ADD.replace("scaled(grad, alpha)", 'not_implemented("why")') + "  result: auto_linear\n"
    assert problems(text) == ["d.yaml:4: add.Tensor: auto_linear: there is no gradient with respect to other"]


def test_an_operator_that_mixes_elements_is_not_element_wise():
    text = "- name: cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor\n  self: cumsum_grad(grad, dim)\n"
    assert problems(text + "  result: auto_element_wise\n") == [
        "d.yaml:3: cumsum: auto_element_wise: the operator is not tagged pointwise"
    ]


def test_a_gradient_that_turns_complex_numbers_is_not_element_wise():
    text = "- name: sin(Tensor self) -> Tensor\n  self: conj(grad) * self\n  result: auto_element_wise\n"
    assert problems(text) == [
        "d.yaml:3: sin: auto_element_wise: 'conj(grad)' is not linear over complex numbers; write the tangent"
    ]


def test_an_expression_reads_every_tangent_and_in_each_term_one():
    assert problems(ADD + "  result: self_t + alpha\n") == [
        "d.yaml:4: add.Tensor: the tangent of result does not read other_t",
        "d.yaml:4: add.Tensor: the term 'alpha' reads no tangent",
    ]


def test_a_value_is_written_with_its_mark():
    assert problems(SIN + "  result: self_t * self.cos()\n") == [
        "d.yaml:3: sin: 'self': write self_p for the value of self, self_t for its tangent"
    ]


def test_a_term_of_several_tangents_passes_them_to_a_function():
    (found,) = problems(ADD + "  result: (self_t + other_t) * 2\n")
    assert found == (
        "d.yaml:4: add.Tensor: the term '(self_t + other_t) * 2' reads several tangents, any of which may be None: "
        "pass them to a function of `tangents`"
    )


def test_an_expression_uses_only_what_there_is():
    assert problems(SIN + "  result: self_t * nonsense(grad)\n") == [
        "d.yaml:3: sin: 'grad' is neither an argument, a tangent, a result, an operator, nor a known function",
        "d.yaml:3: sin: 'nonsense' is neither an argument, a tangent, a result, an operator, nor a known function",
    ]
    assert problems(SIN + "  result: self_t *\n") == ["d.yaml:3: sin: 'self_t *' is not a Python expression: invalid syntax"]


def test_a_first_rule_loads_only_the_family_of_its_operator():
    code = (
        "import sys, turnout\n"
        "from turnout.registry import REGISTRY\n"
        "turnout.ones(1)\n"
        "from turnout_autograd.tangents import rule\n"
        "rule(REGISTRY.find('aten::sin'))\n"
        "print(sorted(m.rpartition('.')[2] for m in sys.modules if m.startswith('turnout_autograd.generated.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['pointwise', 'tangents']\n"


def test_factors_are_conjugated_by_their_parts():
    import ast

    from turnout_autograd.generation.tangent_source import conjugated

    def made(text):
        return ast.unparse(ast.fix_missing_locations(conjugated(ast.parse(text, mode="eval").body, "self_t")))

    assert made("grad") == "self_t"
    assert made("grad * conj(result) * LOG_2") == "self_t * result * LOG_2"
    assert made("-grad / (2 * other)") == "-self_t / (2 * conj(other))"
    assert made("where(self > 0, grad, 0)") == "where(self > 0, self_t, 0)"
    assert made("grad if exact else zeros_like(grad)") == "self_t if exact else zeros_like(self_t)"
    assert made("gelu_backward(grad, self)") == "conj(gelu_backward(conj(self_t), self))"
