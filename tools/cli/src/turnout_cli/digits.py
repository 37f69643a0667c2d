"""A classifier for handwritten digits in Turnout's operators only: two layers, cross entropy, SGD with momentum.

The data are the 1,797 images of 8 x 8 pixels that scikit-learn ships (UCI, "Optical Recognition of Handwritten
Digits"). Everything random comes from one generator, so that a seed gives the same result on every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import turnout
from turnout import Tensor
from turnout.nn import functional

PIXELS = 64
CLASSES = 10
BATCH = 64
HELD_OUT = 360
LEARNING_RATE = 0.2
MOMENTUM = 0.9


@dataclass(frozen=True)
class Digits:
    """Images [n, 64] float32 in 0..1 and labels [n] int64, for training and held out."""

    images: Tensor
    labels: Tensor
    held_out_images: Tensor
    held_out_labels: Tensor


def load(device: str, generator: turnout.Generator) -> Digits:
    """The images in an order of the generator's, the last 360 held out. Raises ImportError without scikit-learn."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = turnout.randperm(len(data.target), generator=generator, device=device)
    images = turnout.tensor(data.data, dtype=turnout.float32, device=device).div(16.0).index_select(0, order)
    labels = turnout.tensor(data.target, dtype=turnout.int64, device=device).index_select(0, order)
    count = len(data.target) - HELD_OUT
    return Digits(images[:count], labels[:count], images[count:], labels[count:])


class Classifier:
    """64 -> hidden -> 10 with a rectifier between; the parameters are plain tensors that require gradients.

    `amp` is the lower precision of its `precision` context, None for none.
    """

    def __init__(
        self, hidden: int, device: str, generator: turnout.Generator, amp: turnout.DType | None = None
    ) -> None:
        self.amp = amp

        def uniform(outputs: int, inputs: int) -> Tensor:
            bound = math.sqrt(6 / inputs)  # keeps the variance through a rectifier (He et al. 2015)
            values = turnout.rand((outputs, inputs), generator=generator, device=device)
            return values.mul_(2 * bound).sub_(bound).requires_grad_()

        self.weight1 = uniform(hidden, PIXELS)
        self.bias1 = turnout.zeros(hidden, device=device).requires_grad_()
        self.weight2 = uniform(CLASSES, hidden)
        self.bias2 = turnout.zeros(CLASSES, device=device).requires_grad_()

    @property
    def parameters(self) -> list[Tensor]:
        return [self.weight1, self.bias1, self.weight2, self.bias2]

    def precision(self) -> turnout.autocast:
        """The context of a forward: mixed precision where it was asked for."""
        return turnout.autocast(self.weight1.device.type, self.amp, enabled=self.amp is not None)

    def __call__(self, images: Tensor) -> Tensor:
        """Logits [n, 10]."""
        hidden = turnout.relu(functional.linear(images, self.weight1, self.bias1))
        return functional.linear(hidden, self.weight2, self.bias2)


class Momentum:
    """Gradient descent with momentum: velocity = 0.9 velocity + gradient; parameter -= rate velocity."""

    def __init__(self, parameters: list[Tensor], rate: float) -> None:
        self.param_groups = [{"params": parameters}]  # what GradScaler reads
        self.parameters = parameters
        self.rate = rate
        self.velocities = [turnout.zeros_like(p) for p in parameters]

    def step(self) -> None:
        """Use the gradients."""
        with turnout.no_grad():
            for parameter, velocity in zip(self.parameters, self.velocities, strict=True):
                if parameter.grad is None:
                    continue
                velocity.mul_(MOMENTUM).add_(parameter.grad)
                parameter.sub_(velocity, alpha=self.rate)

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None


def train_step(model: Classifier, optimiser: Momentum, images: Tensor, labels: Tensor, scaler: Any = None) -> Tensor:
    """One step; the loss before it. `scaler` is a GradScaler, for float16."""
    with model.precision():
        loss = functional.cross_entropy(model(images), labels)
    if scaler is None:
        loss.backward()
        optimiser.step()
    else:
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
    optimiser.clear()
    return loss.detach()


def batches(digits: Digits, generator: turnout.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch of batches in a new order."""
    count = digits.images.shape[0]
    order = turnout.randperm(count, generator=generator, device=str(digits.images.device))
    for start in range(0, count, BATCH):
        chosen = order[start : start + BATCH]
        yield digits.images.index_select(0, chosen), digits.labels.index_select(0, chosen)


def predict(model: Classifier, images: Tensor) -> list[int]:
    """The digit of each image."""
    with turnout.no_grad(), model.precision():
        return [int(digit) for digit in model(images).argmax(1).tolist()]
