"""`GPT`, a transformer that predicts the next token; its parameters have the names of GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import turnout
from turnout import Tensor, nn


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model: `context` is the number of tokens that it sees, `width` the length of a token's vector."""

    vocabulary: int
    context: int = 64
    layers: int = 4
    heads: int = 4
    width: int = 128
    dropout: float = 0.0


class Attention(nn.Module):
    """Each token looks at those before it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.dropout = sizes.dropout
        self.c_attn = nn.Linear(sizes.width, 3 * sizes.width)
        self.c_proj = nn.Linear(sizes.width, sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        found = nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        made: Tensor = self.c_proj(found.transpose(1, 2).reshape(batch, length, width))
        return made


class Block(nn.Module):
    """Attention, and a network for each token; both add to what passes through."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(sizes.width)
        self.attn = Attention(sizes)
        self.ln_2 = nn.LayerNorm(sizes.width)
        self.mlp = nn.ModuleDict(
            {"c_fc": nn.Linear(sizes.width, 4 * sizes.width), "c_proj": nn.Linear(4 * sizes.width, sizes.width)}
        )
        self.drop = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.ln_1(x)))
        hidden = nn.functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        made: Tensor = x + self.drop(self.mlp["c_proj"](hidden))
        return made


class GPT(nn.Module):
    """Logits [N, length, vocabulary] of the next token after each of [N, length], at most `context` of them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.wte = nn.Embedding(sizes.vocabulary, sizes.width)
        self.wpe = nn.Embedding(sizes.context, sizes.width)
        self.h = nn.ModuleList([Block(sizes) for _ in range(sizes.layers)])
        self.ln_f = nn.LayerNorm(sizes.width)
        self.apply(self._fill)

    def _fill(self, module: Any) -> None:
        """GPT-2's initial values: those that add to what passes through are smaller, the more there are."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, Block):
            for last in (module.attn.c_proj, module.mlp["c_proj"]):
                nn.init.normal_(last.weight, std=0.02 / sqrt(2 * self.sizes.layers))

    def forward(self, tokens: Tensor) -> Tensor:
        places = turnout.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        for block in self.h:
            x = block(x)
        made: Tensor = nn.functional.linear(self.ln_f(x), self.wte.weight)
        return made


@turnout.no_grad()  # type: ignore[untyped-decorator]
def sample(model: GPT, tokens: list[int], count: int, temperature: float = 0.8) -> list[int]:
    """`count` more tokens, each drawn from what the model predicts. A lower temperature draws what is likely more often."""
    was_training = model.training
    model.eval()
    found = list(tokens)
    device = model.wte.weight.device
    for _ in range(count):
        seen = turnout.tensor([found[-model.sizes.context :]], device=device)
        odds = turnout.softmax(model(seen)[0, -1].float() / temperature, -1)
        found.append(int(turnout.multinomial(odds, 1)))
    model.train(was_training)
    return found[len(tokens) :]
