"""Second derivatives of activations."""

from __future__ import annotations

from math import pi, sqrt

from turnout_aten.tensor.tensor import Tensor


def gelu_second_grad(grad: Tensor, grad_output: Tensor, self: Tensor, approximate: str) -> Tensor:
    """The second derivative of gelu.

    none: f' = Phi(x) + x phi(x), f'' = phi(x) (2 - x^2). tanh: u = a (x + b x^3), f'' = (1 - t^2) (u' + x u''/2 - x t u'^2).
    """
    x = self
    if approximate == "none":
        second = (x * x * -0.5).exp() * (1 / sqrt(2 * pi)) * (2 - x * x)
    else:
        a, b = sqrt(2 / pi), 0.044715
        t = ((x + x * x * x * b) * a).tanh()
        first = (x * x * (3 * b) + 1) * a
        second = (1 - t * t) * (first + x * x * (3 * a * b) - x * t * first * first)
    return grad * grad_output * second


def silu_second_grad(grad: Tensor, grad_output: Tensor, self: Tensor) -> Tensor:
    """The second derivative of silu, conjugated: with the sigmoid s, f'' = s (1 - s) (2 + x (1 - 2 s))."""
    gate = self.sigmoid()
    second = gate * (1 - gate) * (2 + self * (1 - 2 * gate))
    return grad.conj() * grad_output * second.conj()
