"""Linear layers: `Linear`, `Bilinear`, and `Identity`."""

from __future__ import annotations

from math import sqrt
from typing import Any

from turnout.nn import functional

from turnout import Tensor, no_grad
from turnout_aten.plugin_api import check_count
from turnout_nn.module import Module
from turnout_nn.parameters import Parameter, empty_parameter


class Identity(Module):
    """Returns its argument. It takes any further arguments, and ignores them.

    Arguments:
        args: ignored
        kwargs: ignored

    Example:
        >>> turnout.nn.Identity(54, unused=0.1)(turnout.tensor([1.0]))
        tensor([1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input.

        Arguments:
            input: anything
        """
        return input


class Linear(Module):
    """`input @ weight.T + bias`, with `weight` of shape [out_features, in_features].

    Both begin with uniform values in ±1/sqrt(in_features).

    Arguments:
        in_features: the length of the last dimension of inputs
        out_features: that of outputs
        bias: whether a bias is added
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> turnout.nn.Linear(3, 2)(turnout.zeros(4, 3)).shape
        turnout.Size([4, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), device, dtype)
        self.register_parameter("bias", empty_parameter((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        fill_uniform(self, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        """The outputs, [..., out_features].

        Arguments:
            input: [..., in_features]
        """
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """`input1 @ weight[k] @ input2 + bias[k]` for each output k.

    The parameters begin with uniform values in ±1/sqrt(in1_features).

    Raises ArgumentError for inputs without features.

    Arguments:
        in1_features: the length of the last dimension of the first input
        in2_features: of the second
        out_features: of outputs
        bias: whether a bias is added
        device: where the parameters are
        dtype: their dtype

    Example:
        >>> turnout.nn.Bilinear(2, 3, 4)(turnout.zeros(5, 2), turnout.zeros(5, 3)).shape
        turnout.Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        check_count("Bilinear", "in1_features", in1_features)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", empty_parameter((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        fill_uniform(self, self.in1_features)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The outputs, [..., out_features].

        Arguments:
            input1: [..., in1_features]
            input2: [..., in2_features]
        """
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


def fill_uniform(module: Module, fan_in: int) -> None:
    """Fill all parameters of a module itself with uniform values in ±1/sqrt(fan_in), which keeps the scale of inputs.

    # differs from torch: `nn.Linear` and the other layers draw other initial numbers from the same seed.
    """
    bound = 1 / sqrt(fan_in) if fan_in > 0 else 0.0
    with no_grad():
        for parameter in module.parameters(recurse=False):
            parameter.uniform_(-bound, bound)
