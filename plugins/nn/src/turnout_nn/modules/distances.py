"""Distances of vectors as modules."""

from __future__ import annotations

from turnout.nn import functional

from turnout import Tensor
from turnout_aten.plugin_api import describe
from turnout_nn.layers import Layer, layer


@layer
class CosineSimilarity(Layer):
    """The cosine of the angle between the vectors along a dimension.

    Arguments:
        dim: the dimension of the vectors
        eps: the smallest product of their norms

    Example:
        >>> turnout.nn.CosineSimilarity(0)(turnout.tensor([1.0, 0.0]), turnout.tensor([2.0, 0.0]))
        tensor(1.)
    """

    dim: int = 1
    eps: float = 1e-8
    shows = ""
    __function__ = functional.cosine_similarity

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosines."""
        return type(self).__function__(x1, x2, self.dim, self.eps)


@layer
class PairwiseDistance(Layer):
    """The p-norm of the difference of vectors, which are in the last dimension.

    Example:
        >>> turnout.nn.PairwiseDistance(1.0, eps=0.0)(turnout.tensor([[1.0, 2.0]]), turnout.tensor([[0.0, 4.0]]))
        tensor([3.])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False
    shows = ""
    __function__ = functional.pairwise_distance

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distances."""
        return type(self).__function__(x1, x2, self.p, self.eps, self.keepdim)


describe(globals())
