"""Classifiers for handwritten digits in Turnout's operators only: two networks, cross entropy, SGD with momentum.

The data are the 1,797 images of 8 x 8 pixels that scikit-learn ships (UCI, "Optical Recognition of Handwritten
Digits"). Everything random comes from one generator, so that a seed gives the same result on every run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import turnout
from turnout import Tensor
from turnout_aten.nn import functional

SIDE = 8
PIXELS = SIDE * SIDE
CLASSES = 10
BATCH = 64
HELD_OUT = 360
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


class Classifier(ABC):
    """What the networks have in common: parameters, which are plain tensors that require gradients, and how forwards are run.

    amp     the lower precision of its `precision` context, None for none
    epochs  how many it needs
    rate    the learning rate that suits it
    """

    epochs: int
    rate: float

    def __init__(self, device: str, generator: turnout.Generator, amp: turnout.DType | None = None) -> None:
        self.amp = amp
        self.device = turnout.device(device)
        self.generator = generator
        self.parameters: list[Tensor] = []
        self.build()

    @abstractmethod
    def build(self) -> None:
        """Make the parameters."""

    @abstractmethod
    def __call__(self, images: Tensor) -> Tensor:
        """Logits [n, 10] of images [n, 64]."""

    @abstractmethod
    def explain(self, images: Tensor) -> tuple[str, str]:
        """A call of the first layer as source text, and why what runs there does."""

    def layer(self, *shape: int) -> tuple[Tensor, Tensor]:
        """A weight [outputs, ...] and the bias [outputs] that goes with it, now parameters."""
        bound = math.sqrt(6 / math.prod(shape[1:]))  # keeps the variance through a rectifier (He et al. 2015)
        weight = turnout.rand(shape, generator=self.generator, device=self.device).mul_(2 * bound).sub_(bound)
        bias = turnout.zeros(shape[0], device=self.device)
        self.parameters += [weight.requires_grad_(), bias.requires_grad_()]
        return weight, bias

    def precision(self) -> AbstractContextManager[object]:
        """The context of a forward: mixed precision where it was asked for, else what the configuration says."""
        return nullcontext() if self.amp is None else turnout.autocast(self.device.type, self.amp)


class Perceptron(Classifier):
    """64 -> 128 -> 10 with a rectifier between."""

    epochs = 40
    rate = 0.2

    def build(self) -> None:
        self.weight1, self.bias1 = self.layer(128, PIXELS)
        self.weight2, self.bias2 = self.layer(CLASSES, 128)

    def __call__(self, images: Tensor) -> Tensor:
        hidden = functional.relu(functional.linear(images, self.weight1, self.bias1))
        return functional.linear(hidden, self.weight2, self.bias2)

    def explain(self, images: Tensor) -> tuple[str, str]:
        with self.precision():
            explained = turnout.explain(turnout.addmm, self.bias1, images, self.weight1.t())
        return "turnout.addmm(bias, images, weight.t())", str(explained)


class Convolutional(Classifier):
    """Two convolutions of 3 x 3, to 16 and 32 channels, each with a rectifier and the maximum of 2 x 2; then 128 -> 10."""

    epochs = 15
    rate = 0.05

    def build(self) -> None:
        self.weight1, self.bias1 = self.layer(16, 1, 3, 3)
        self.weight2, self.bias2 = self.layer(32, 16, 3, 3)
        self.weight3, self.bias3 = self.layer(CLASSES, 32 * (SIDE // 4) ** 2)

    def __call__(self, images: Tensor) -> Tensor:
        planes = images.view(-1, 1, SIDE, SIDE)
        for weight, bias in ((self.weight1, self.bias1), (self.weight2, self.bias2)):
            planes = functional.relu(functional.conv2d(planes, weight, bias, padding=1))
            planes = functional.max_pool2d(planes, 2)
        return functional.linear(planes.flatten(1), self.weight3, self.bias3)

    def explain(self, images: Tensor) -> tuple[str, str]:
        planes = images.view(-1, 1, SIDE, SIDE)
        tensors = planes, self.weight1, self.bias1
        if self.amp is None:  # not conv2d, which only calls this
            explained = turnout.explain(turnout.convolution, *tensors, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
            return "turnout.convolution(images, weight, bias, ...)", str(explained)
        with self.precision():  # which is about conv2d
            return "turnout.conv2d(images, weight, bias, padding=1)", str(turnout.explain(turnout.conv2d, *tensors, padding=1))


MODELS: dict[str, type[Classifier]] = {"mlp": Perceptron, "cnn": Convolutional}


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


def order(digits: Digits, generator: turnout.Generator) -> Tensor:
    """The positions of the training images in a new order, for one epoch."""
    return turnout.randperm(digits.images.shape[0], generator=generator, device=str(digits.images.device))


def batches(digits: Digits, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch of batches in an order."""
    for start in range(0, digits.images.shape[0], BATCH):
        chosen = order[start : start + BATCH]
        yield digits.images.index_select(0, chosen), digits.labels.index_select(0, chosen)


def predict(model: Classifier, images: Tensor) -> list[int]:
    """The digit of each image."""
    with turnout.no_grad(), model.precision():
        return [int(digit) for digit in model(images).argmax(1).tolist()]
