"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import turnout
from turnout import Tensor
from turnout.errors import CallError, ShapeError


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters in one vector. Raises ShapeError for a parameter of a lazy module that has no shape yet.

    Arguments:
        parameters: the parameters, such as `module.parameters()`

    Example:
        >>> turnout.nn.utils.parameters_to_vector([turnout.ones(2), turnout.zeros(1, 2)])
        tensor([1., 1., 0., 0.])
    """
    return turnout.cat([parameter.reshape((parameter.shape.numel(),)) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the elements of a vector, whose memory they then share.

    Raises CallError for a vector that is not a tensor, ShapeError for one with fewer elements than the parameters have.

    Arguments:
        vec: the vector
        parameters: the parameters, such as `module.parameters()`

    Example:
        >>> w = turnout.nn.Parameter(turnout.zeros(1, 2))
        >>> turnout.nn.utils.vector_to_parameters(turnout.tensor([1.0, 2.0]), [w])
        >>> w
        tensor([[1., 2.]], requires_grad=True)
    """
    if not isinstance(vec, Tensor):
        raise CallError(f"vector_to_parameters: vec must be a tensor, got {type(vec).__name__}")
    each = list(parameters)
    wanted = sum(parameter.shape.numel() for parameter in each)
    if vec.numel() < wanted:
        raise ShapeError(f"vector_to_parameters: the parameters have {wanted} elements, and the vector {vec.numel()}")
    start = 0
    for parameter in each:
        parameter.data = vec[start : start + parameter.numel()].view_as(parameter).data
        start += parameter.numel()
