"""Classifiers for handwritten digits: two networks of modules, cross entropy, SGD with momentum.

The data are the 1,797 images of 8 x 8 pixels that scikit-learn ships (UCI, "Optical Recognition of Handwritten
Digits"). Everything random comes from one generator, so that a seed gives the same result on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import turnout
from turnout import Tensor, nn

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


class Classifier(nn.Module):
    """What the networks have in common: how they are made, and how forwards are run. Of images [n, 64] they make logits [n, 10].

    amp     the lower precision of its `precision` context, None for none
    epochs  how many it needs
    rate    the learning rate that suits it
    """

    epochs: int
    rate: float

    def __init__(self, device: str, generator: turnout.Generator, amp: turnout.DType | None = None) -> None:
        super().__init__()
        self.amp = amp
        self.device_type = turnout.device(device).type
        self.build(device)
        for parameter in self.parameters():
            if parameter.ndim == 1:
                nn.init.zeros_(parameter)
            else:  # keeps the variance through a rectifier
                nn.init.kaiming_uniform_(parameter, nonlinearity="relu", generator=generator)

    def build(self, device: str) -> None:
        """Make the layers."""
        raise NotImplementedError

    def explain(self, images: Tensor) -> tuple[str, str]:
        """A call of the first layer as source text, and why what runs there does."""
        raise NotImplementedError

    def precision(self) -> AbstractContextManager[object]:
        """The context of a forward: mixed precision where it was asked for, else what the configuration says."""
        return nullcontext() if self.amp is None else turnout.autocast(self.device_type, self.amp)


class Perceptron(Classifier):
    """64 -> 128 -> 10 with a rectifier between."""

    epochs = 40
    rate = 0.2

    def build(self, device: str) -> None:
        self.hidden = nn.Linear(PIXELS, 128, device=device)
        self.last = nn.Linear(128, CLASSES, device=device)

    def forward(self, images: Tensor) -> Tensor:
        return self.last(nn.functional.relu(self.hidden(images)))

    def explain(self, images: Tensor) -> tuple[str, str]:
        with self.precision():
            explained = turnout.explain(turnout.addmm, self.hidden.bias, images, self.hidden.weight.t())
        return "turnout.addmm(bias, images, weight.t())", str(explained)


class Convolutional(Classifier):
    """Two convolutions of 3 x 3, to 16 and 32 channels, each with a rectifier and the maximum of 2 x 2; then 128 -> 10."""

    epochs = 15
    rate = 0.05

    def build(self, device: str) -> None:
        self.layers = nn.Sequential(
            nn.Unflatten(1, (1, SIDE, SIDE)),
            nn.Conv2d(1, 16, 3, padding=1, device=device), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, device=device), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * (SIDE // 4) ** 2, CLASSES, device=device),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)

    def explain(self, images: Tensor) -> tuple[str, str]:
        first = self.layers[1]
        tensors = images.view(-1, 1, SIDE, SIDE), first.weight, first.bias
        if self.amp is None:  # not conv2d, which only calls this
            explained = turnout.explain(turnout.convolution, *tensors, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
            return "turnout.convolution(images, weight, bias, ...)", str(explained)
        with self.precision():  # which is about conv2d
            return "turnout.conv2d(images, weight, bias, padding=1)", str(turnout.explain(turnout.conv2d, *tensors, padding=1))


MODELS: dict[str, type[Classifier]] = {"mlp": Perceptron, "cnn": Convolutional}


def optimiser_of(model: Classifier) -> turnout.optim.SGD:
    """Gradient descent with momentum."""
    return turnout.optim.SGD(model.parameters(), model.rate, momentum=MOMENTUM)


def train_step(model: Classifier, optimiser: turnout.optim.SGD, images: Tensor, labels: Tensor, scaler: Any = None) -> Tensor:
    """One step; the loss before it. `scaler` is a GradScaler, for float16."""
    with model.precision():
        loss = nn.functional.cross_entropy(model(images), labels)
    if scaler is None:
        loss.backward()
        optimiser.step()
    else:
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
    optimiser.zero_grad()
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
