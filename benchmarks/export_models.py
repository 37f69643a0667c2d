"""Small models with random weights, written with PyTorch, and a script that exports them into .pt2 files.

    python benchmarks/export_models.py FOLDER

The architectures are those that people export most; sizes are small, so that a suite of tests can run them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """As ResNet-18: a stem, stages of residual blocks, a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.Sequential(ResidualBlock(16, 16, 1), ResidualBlock(16, 32, 2), ResidualBlock(32, 64, 2))
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.stages(self.stem(x)), 1), 1))


class InvertedResidual(nn.Module):
    """Expand, convolve each channel alone, project."""

    def __init__(self, inside: int, outside: int, stride: int, activation: type[nn.Module], squeeze: bool) -> None:
        super().__init__()
        width = inside * 4
        self.expand = nn.Sequential(nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), activation())
        self.depth = nn.Sequential(
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False), nn.BatchNorm2d(width), activation()
        )
        self.squeeze = nn.Sequential(nn.Conv2d(width, 4, 1), nn.SiLU(), nn.Conv2d(4, width, 1), nn.Sigmoid()) if squeeze else None
        self.project = nn.Sequential(nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.shortcut = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        y = self.depth(self.expand(x))
        if self.squeeze is not None:
            y = y * self.squeeze(y.mean((2, 3), keepdim=True))
        y = self.project(y)
        return x + y if self.shortcut else y


class MobileNet(nn.Module):
    """As MobileNetV2, or with squeeze and SiLU as EfficientNet."""

    def __init__(self, activation: type[nn.Module] = nn.ReLU6, squeeze: bool = False) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), activation())
        blocks = ((8, 8, 1), (8, 16, 2), (16, 16, 1))
        self.blocks = nn.Sequential(*[InvertedResidual(*block, activation, squeeze) for block in blocks])
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class UNet(nn.Module):
    """Down, up again, and a shortcut between the halves."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.inner = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.1))
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.last = nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        shallow = self.down(x)
        deep = self.inner(F.max_pool2d(shallow, 2))
        wide = F.interpolate(deep, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.last(torch.cat([shallow, self.up(deep) + wide[:, :8]], 1))


class Attention(nn.Module):
    """Several heads in one matrix."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, n, width = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, n, width))


class Layer(nn.Module):
    """Attention and two linear layers, each normalised before."""

    def __init__(self, width: int, heads: int, causal: bool = False, approximate: str = "none") -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.approximate = approximate

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.first(x), mask)
        return x + self.narrow(F.gelu(self.wide(self.second(x)), approximate=self.approximate))


class ViT(nn.Module):
    """Patches of an image as the words of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.first = nn.Parameter(torch.randn(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32))
        self.layers = nn.ModuleList([Layer(32, 4) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.first.expand(y.shape[0], -1, -1), y], 1) + self.places
        for layer in self.layers:
            y = layer(y)
        return self.head(self.norm(y)[:, 0])


class GPT2(nn.Module):
    """A causal transformer whose output layer is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(100, 32), nn.Embedding(24, 32)
        self.layers = nn.ModuleList([Layer(32, 4, causal=True, approximate="tanh") for _ in range(2)])
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 100, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        y = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            y = layer(y)
        return self.head(self.norm(y))


class BERT(nn.Module):
    """A transformer that sees everything but what is masked, with a pooled and a full result."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds, self.places = nn.Embedding(100, 32, padding_idx=0), nn.Embedding(2, 32), nn.Embedding(24, 32)
        self.norm = nn.LayerNorm(32, eps=1e-12)
        self.layers = nn.ModuleList([Layer(32, 4) for _ in range(2)])
        self.pool = nn.Linear(32, 32)

    def forward(self, tokens: Tensor, present: Tensor) -> dict[str, Tensor]:
        y = self.words(tokens) + self.kinds(torch.zeros_like(tokens)) + self.places.weight[: tokens.shape[1]]
        mask = (1.0 - present[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        y = self.norm(y)
        for layer in self.layers:
            y = layer(y, mask)
        return {"all": y, "pooled": torch.tanh(self.pool(y[:, 0]))}


class RMSNorm(nn.Module):
    """The root of the mean square as a scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Llama(nn.Module):
    """Rotary places, grouped heads, gated layers, and a cache of keys and values that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.norms = nn.ModuleList([RMSNorm(32) for _ in range(3)])
        self.q, self.k, self.v = nn.Linear(32, 32, bias=False), nn.Linear(32, 16, bias=False), nn.Linear(32, 16, bias=False)
        self.o = nn.Linear(32, 32, bias=False)
        self.gate, self.up, self.down = (
            nn.Linear(32, 64, bias=False),
            nn.Linear(32, 64, bias=False),
            nn.Linear(64, 32, bias=False),
        )
        self.head = nn.Linear(32, 100, bias=False)
        self.register_buffer("keys", torch.zeros(1, 2, 16, 8))
        self.register_buffer("values", torch.zeros(1, 2, 16, 8))
        self.register_buffer("speeds", 1.0 / 10000 ** (torch.arange(0, 8, 2) / 8), persistent=False)

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        angles = torch.outer(places.to(torch.float32), self.speeds)
        angles = torch.cat([angles, angles], -1)
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        x = self.words(tokens)
        b, n, _ = x.shape
        y = self.norms[0](x)
        q = self.turned(self.q(y).view(b, n, 4, 8).transpose(1, 2), places)
        self.keys[:, :, places] = self.turned(self.k(y).view(b, n, 2, 8).transpose(1, 2), places).detach()
        self.values[:, :, places] = self.v(y).view(b, n, 2, 8).transpose(1, 2).detach()
        allowed = torch.arange(16, device=tokens.device)[None, :] <= places[:, None]
        k, v = self.keys.repeat_interleave(2, 1), self.values.repeat_interleave(2, 1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        x = x + self.o(y.transpose(1, 2).reshape(b, n, 32))
        y = self.norms[1](x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return self.head(self.norms[2](x))


class Recurrent(nn.Module):
    """An embedding, a recurrent layer of two, and a classifier."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.cell = kind(12, 16, num_layers=2, batch_first=True, **options)
        self.head = nn.Linear(32 if options.get("bidirectional") else 16, 5)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.cell(self.words(tokens))
        return self.head(y[:, -1]), state[0] if isinstance(state, tuple) else state


class AutoEncoder(nn.Module):
    """Two linear halves, and noise that a seed of ones stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 16), nn.ELU(), nn.Linear(16, 8))
        self.decode = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 20), nn.Sigmoid())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = self.encode(x).chunk(2, -1)
        return self.decode(mean + torch.exp(spread / 2)), mean, torch.clamp(spread, -3, 3)


class TextCNN(nn.Module):
    """Convolutions over words, the largest of each."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(60, 16)
        self.convolutions = nn.ModuleList([nn.Conv1d(16, 8, width) for width in (2, 3, 4)])
        self.head = nn.Linear(24, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        y = self.words(tokens).transpose(1, 2)
        return F.log_softmax(self.head(torch.cat([F.relu(c(y)).amax(-1) for c in self.convolutions], 1)), -1)


def _image(channels: int = 3, size: int = 32) -> tuple[Tensor, ...]:
    return (torch.randn(2, channels, size, size),)


def _tokens(most: int, length: int = 12) -> Tensor:
    return torch.randint(1, most, (2, length))


# name -> the model, and its inputs
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "resnet": (ResNet, lambda: _image(size=64)),
    "mobilenet": (MobileNet, _image),
    "efficientnet": (lambda: MobileNet(nn.SiLU, squeeze=True), _image),
    "unet": (UNet, lambda: _image(1, 16)),
    "vit": (ViT, _image),
    "gpt2": (GPT2, lambda: (_tokens(100),)),
    "bert": (BERT, lambda: (_tokens(100), torch.ones(2, 12).index_fill_(1, torch.tensor([10, 11]), 0))),
    "llama": (Llama, lambda: (torch.randint(0, 100, (1, 4)), torch.arange(4))),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: (_tokens(50),)),
    "gru": (lambda: Recurrent(nn.GRU, bidirectional=True), lambda: (_tokens(50),)),
    "autoencoder": (AutoEncoder, lambda: (torch.randn(4, 20),)),
    "textcnn": (TextCNN, lambda: (_tokens(60),)),
}


def made(name: str, *, training: bool = False) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A model and its inputs; the same in each process."""
    torch.manual_seed(sum(map(ord, name)))
    model, inputs = MODELS[name]
    found = model()
    with torch.no_grad():
        for key, buffer in found.named_buffers():  # as after training, where they are not 0 and 1
            if key.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
            elif key.endswith("running_mean"):
                buffer.normal_(0, 0.1)
    return found.train(training), inputs()


def exported(name: str, *, core: bool) -> Any:
    """The program of a model, in Core ATen or as it is trained."""
    model, inputs = made(name)
    program = torch.export.export(model, inputs)
    return program.run_decompositions() if core else program


def main(folder: Path) -> None:
    """Write NAME.pt2 for each model."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        torch.export.save(exported(name, core=True), folder / f"{name}.pt2")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
