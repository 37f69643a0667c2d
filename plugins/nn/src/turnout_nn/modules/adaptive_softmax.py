"""A softmax over many classes that differ in frequency, with a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn.module import Module
from turnout_nn.modules.containers import ModuleList, Sequential
from turnout_nn.modules.linear import Linear


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of many classes that differ in frequency, Grave et al. (2017).

    Classes are sorted by frequency. The first cutoffs[0] of them are the head; the classes between two cutoffs are a cluster,
    with its own, shorter projection. A call returns (log-probability of each target, their negative mean).

    Arguments:
        n_classes: the number of classes
        cutoffs: the first class of each cluster, increasing
        div_value: how many times shorter the projection of each cluster is than that before it
        head_bias: whether the head has a bias

    Raises:
        ArgumentError: the cutoffs are not increasing class numbers, or a projection would have the length 0.

    Example:
        >>> softmax = turnout.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 6], div_value=2.0)
        >>> output, loss = softmax(turnout.zeros(3, 4), turnout.tensor([0, 5, 9]))
        >>> output.shape
        turnout.Size([3])
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        ends = list(cutoffs)
        if not ends or ends != sorted(set(ends)) or ends[0] <= 0 or ends[-1] >= n_classes or any(int(c) != c for c in ends):
            raise ArgumentError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs must be increasing ints from 1 to {n_classes - 1}, got {cutoffs}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            length = int(in_features // div_value ** (i + 1))
            if length < 1:
                # differs from torch: `AdaptiveLogSoftmaxWithLoss` refuses sizes that give a cluster no features. PyTorch makes a
                # layer whose result for the cluster depends on nothing.
                raise ArgumentError(
                    f"AdaptiveLogSoftmaxWithLoss: the projection of cluster {i} would have the length 0: "
                    f"in_features={in_features} is too small, or div_value={div_value} too large"
                )
            maps = (Linear(in_features, length, False, device, dtype), Linear(length, end - start, False, device, dtype))
            self.tail.append(Sequential(*maps))

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> tuple[Tensor, Tensor]:
        """(the log-probability of each target, their negative mean).

        Arguments:
            input_: [N, in_features] or [in_features]
            target_: the classes [N] or []

        Raises:
            ShapeError: the targets do not fit the inputs.
        """
        single = target_.ndim == 0
        if input_.ndim != 2 - single or (not single and input_.shape[0] != target_.shape[0]):
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: there must be one target for each input, got shapes {list(input_.shape)} and "
                f"{list(target_.shape)}"
            )
        x, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        # Every target takes part in every cluster, and a mask picks: the sizes do not depend on the targets' values.
        # differs from torch: in `AdaptiveLogSoftmaxWithLoss` a cluster without a target has zeros as gradient, not None.
        head = self.head(x).log_softmax(1)
        output = head.gather(1, target.clamp(max=self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            # A class that does not exist is out of bounds in the last cluster, and so an error.
            last = None if end == self.n_classes else end - start - 1
            place = (target - start).clamp(0, last).unsqueeze(1)
            inside = head[:, self.shortlist_size + i] + self.tail[i](x).log_softmax(1).gather(1, place).squeeze(1)
            output = turnout.where(target >= start, inside, output)
        loss = (-output).mean()
        return output.squeeze(0) if single else output, loss

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, [N, n_classes].

        Arguments:
            input: [N, in_features]
        """
        head = self.head(input).log_softmax(1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(cluster(input).log_softmax(1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return turnout.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each input, [N].

        Arguments:
            input: [N, in_features]
        """
        return self.log_prob(input).argmax(1)


describe(globals(), in_features="the length of an input", device="where the parameters are", dtype="their dtype")
