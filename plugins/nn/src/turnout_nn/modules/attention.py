"""Multi-head attention as a module."""

from __future__ import annotations

from typing import Any, ClassVar

from turnout.nn import functional

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn import init
from turnout_nn.module import Module
from turnout_nn.modules.linear import Linear
from turnout_nn.parameters import Parameter, empty_parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Multi-head attention, Vaswani et al. (2017).

    Queries are [L, N, embed_dim], keys [S, N, kdim] and values [S, N, vdim]; with `batch_first` the batch N comes first, and
    without a batch each has 2 dimensions. The input projections are Glorot-uniform, their biases are zero.

    Arguments:
        embed_dim: the length of a query
        num_heads: the number of heads, which divides `embed_dim`
        dropout: the probability to drop a weight in training
        bias: whether the projections have biases
        add_bias_kv: whether a trained key and a trained value are appended
        kdim: the length of a key; by default, that of a query
        vdim: the length of a value; by default, that of a query
        batch_first: whether the batch is the first dimension
        device: where the parameters are
        dtype: their dtype

    Raises:
        ArgumentError: a size is not above 0, or `num_heads` does not divide `embed_dim`.

    Example:
        >>> attention = turnout.nn.MultiheadAttention(4, 2, batch_first=True)
        >>> x = turnout.zeros(1, 3, 4)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (turnout.Size([1, 3, 4]), turnout.Size([1, 3, 3]))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None
    __function__: ClassVar[Any] = functional.multi_head_attention_forward

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentError(f"MultiheadAttention: num_heads must divide embed_dim, got {num_heads} and {embed_dim}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        together = self.kdim == self.vdim == embed_dim
        shapes = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
            "q_proj_weight": None if together else (embed_dim, embed_dim),
            "k_proj_weight": None if together else (embed_dim, self.kdim),
            "v_proj_weight": None if together else (embed_dim, self.vdim),
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else empty_parameter(shape, device, dtype))
        # differs from torch: the projection of `nn.MultiheadAttention` is a `Linear`, not a class of its own for a quantiser.
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        self.out_proj.reset_parameters()
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)  # there is one if there is the other
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """(output, attention weights [N, L, S] or None).

        A bool mask is true where attention is not allowed; any other mask is added.

        Arguments:
            query: the queries
            key: the keys
            value: the values
            key_padding_mask: the keys of each example that take no part, [N, S]
            need_weights: whether the weights are returned; without them the fused operator is used
            attn_mask: the pairs of queries and keys that take no part, [L, S] or [N * heads, L, S]
            average_attn_weights: whether the weights returned are the means over the heads
            is_causal: a hint that `attn_mask`, which is needed, is causal
        """
        turned = self.batch_first and query.ndim == 3
        if turned:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        output, weights = type(self).__function__(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, self.in_proj_weight is None, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return output.transpose(0, 1) if turned else output, weights


def causal_mask(size: int, device: Any, dtype: Any) -> Tensor:
    """A mask to be added [size, size]: minus infinity where a key is later than the query."""
    return turnout.full((size, size), float("-inf"), dtype=dtype, device=device).triu(1)


describe(globals())
