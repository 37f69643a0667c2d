"""The layers of a transformer, Vaswani et al. (2017), and the stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from turnout.nn import functional

from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn import init
from turnout_nn.module import Module
from turnout_nn.modules.attention import MultiheadAttention, causal_mask
from turnout_nn.modules.containers import ModuleList
from turnout_nn.modules.dropout import Dropout
from turnout_nn.modules.linear import Linear
from turnout_nn.modules.normalisation import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]


def _function(activation: Activation) -> Callable[[Tensor], Tensor]:
    if callable(activation):
        return activation
    if activation not in ("relu", "gelu"):
        raise ArgumentError(f"transformer layers: activation must be 'relu', 'gelu' or a function, got {activation!r}")
    return functional.relu if activation == "relu" else functional.gelu


class _Layer(Module):
    """Parts of which each adds to its input what a function makes of it, with a norm before or after it."""

    self_attn: MultiheadAttention
    linear1: Linear
    linear2: Linear
    dropout: Dropout
    norm_first: bool
    activation: Callable[[Tensor], Tensor]

    def __init__(
        self, attentions: tuple[str, ...], d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: Activation,
        layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        parts = range(1, len(attentions) + 2)
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _function(activation)

    def _added(self, x: Tensor, part: int, function: Callable[[Tensor], Tensor]) -> Tensor:
        """x and what the function makes of it, with the norm and the dropout of that part."""
        norm, dropout = getattr(self, f"norm{part}"), getattr(self, f"dropout{part}")
        if self.norm_first:
            return x + dropout(function(norm(x)))
        return norm(x + dropout(function(x)))

    def _fed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    @staticmethod
    def _attended(attention: Module, x: Tensor, memory: Tensor, mask: Any, padding: Any, is_causal: bool) -> Tensor:
        return attention(x, memory, memory, key_padding_mask=padding, need_weights=False, attn_mask=mask, is_causal=is_causal)[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear layers with a nonlinearity between them, each added to its input and normalised.

    Example:
        >>> layer = turnout.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> layer(turnout.zeros(1, 5, 8)).shape
        turnout.Size([1, 5, 8])
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = functional.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            ("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            device, dtype,
        )  # fmt: skip

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """The output of the layer, of the shape of `src`.

        Arguments:
            src: a sequence [S, N, d_model], [N, S, d_model] with `batch_first`, or [S, d_model]
            src_mask: the pairs of places that do not attend to each other, [S, S] or [N * heads, S, S]
            src_key_padding_mask: the places of each sequence that take no part, [N, S]
            is_causal: a hint that `src_mask`, which is needed, is causal
        """
        attention = self.self_attn
        x = self._added(src, 1, lambda x: self._attended(attention, x, x, src_mask, src_key_padding_mask, is_causal))
        return self._added(x, 2, self._fed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, then two linear layers, each added to its input and normalised.

    Example:
        >>> layer = turnout.nn.TransformerDecoderLayer(8, 2, 16)
        >>> layer(turnout.zeros(3, 1, 8), turnout.zeros(5, 1, 8)).shape
        turnout.Size([3, 1, 8])
    """

    multihead_attn: MultiheadAttention

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = functional.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            ("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype,
        )  # fmt: skip

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The output of the layer, of the shape of `tgt`.

        Arguments:
            tgt: a sequence [T, N, d_model], [N, T, d_model] with `batch_first`, or [T, d_model]
            memory: the output of an encoder
            tgt_mask: the pairs of places of `tgt` that do not attend to each other
            memory_mask: the pairs of places of `tgt` and the memory that do not attend to each other
            tgt_key_padding_mask: the places of each sequence that take no part, [N, T]
            memory_key_padding_mask: the places of each memory that take no part, [N, S]
            tgt_is_causal: a hint that `tgt_mask`, which is needed, is causal
            memory_is_causal: a hint that `memory_mask`, which is needed, is causal
        """
        own, other = self.self_attn, self.multihead_attn
        x = self._added(tgt, 1, lambda x: self._attended(own, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._added(x, 2, lambda x: self._attended(other, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self._added(x, 3, self._fed_forward)


class _Stack(Module):
    """Copies of one layer, one above the other, and a norm at the end."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm


class TransformerEncoder(_Stack):
    """A stack of encoder layers, which begin as copies of one.

    Arguments:
        encoder_layer: the layer
        enable_nested_tensor: without effect
        mask_check: without effect

    Example:
        >>> encoder = turnout.nn.TransformerEncoder(turnout.nn.TransformerEncoderLayer(8, 2, 16), num_layers=2)
        >>> encoder(turnout.zeros(5, 1, 8)).shape
        turnout.Size([5, 1, 8])
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Tensor:
        """The output of the last layer.

        Arguments:
            src: the sequence; see the layer
            mask: the pairs of places that do not attend to each other
            src_key_padding_mask: the places of each sequence that take no part
            is_causal: a hint that `mask`, which is needed, is causal
        """
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(_Stack):
    """A stack of decoder layers, which begin as copies of one.

    Arguments:
        decoder_layer: the layer

    Example:
        >>> decoder = turnout.nn.TransformerDecoder(turnout.nn.TransformerDecoderLayer(8, 2, 16), num_layers=2)
        >>> decoder(turnout.zeros(3, 1, 8), turnout.zeros(5, 1, 8)).shape
        turnout.Size([3, 1, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The output of the last layer.

        Arguments:
            tgt: the sequence; see the layer
            memory: the output of an encoder
            tgt_mask: the pairs of places of `tgt` that do not attend to each other
            memory_mask: the pairs of places of `tgt` and the memory that do not attend to each other
            tgt_key_padding_mask: the places of each sequence that take no part
            memory_key_padding_mask: the places of each memory that take no part
            tgt_is_causal: a hint that `tgt_mask`, which is needed, is causal
            memory_is_causal: a hint that `memory_mask`, which is needed, is causal
        """
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder and a decoder. All matrices begin Glorot-uniform.

    Arguments:
        num_encoder_layers: the number of layers of the encoder
        num_decoder_layers: the number of layers of the decoder
        dim_feedforward: the length between the two linear layers of a layer
        custom_encoder: a module in place of the encoder
        custom_decoder: a module in place of the decoder

    Example:
        >>> model = turnout.nn.Transformer(8, 2, 1, 1, 16)
        >>> model(turnout.zeros(5, 1, 8), turnout.zeros(3, 1, 8)).shape
        turnout.Size([3, 1, 8])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = functional.relu,
        custom_encoder: Module | None = None, custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        layer: tuple[Any, ...] = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder: Module = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*layer), num_encoder_layers, norm())
        self.decoder: Module = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*layer), num_decoder_layers, norm())
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The output of the decoder, of the shape of `tgt`. Raises ShapeError for sequences that do not fit each other.

        Arguments:
            src: the sequence for the encoder [S, N, d_model], [N, S, d_model] with `batch_first`, or [S, d_model]
            tgt: the sequence for the decoder [T, N, d_model], [N, T, d_model] with `batch_first`, or [T, d_model]
            src_mask: the pairs of places of `src` that do not attend to each other
            tgt_mask: the pairs of places of `tgt` that do not attend to each other
            memory_mask: the pairs of places of `tgt` and the encoder's output that do not attend to each other
            src_key_padding_mask: the places of each `src` that take no part
            tgt_key_padding_mask: the places of each `tgt` that take no part
            memory_key_padding_mask: the places of each of the encoder's outputs that take no part
            src_is_causal: a hint that `src_mask`, which is needed, is causal
            tgt_is_causal: a hint that `tgt_mask`, which is needed, is causal
            memory_is_causal: a hint that `memory_mask`, which is needed, is causal
        """
        batch = 0 if self.batch_first else 1
        if src.ndim not in (2, 3) or tgt.ndim != src.ndim:
            found = f"{list(src.shape)} and {list(tgt.shape)}"
            raise ShapeError(f"Transformer: src and tgt must both have 2 dimensions, or both 3; got shapes {found}")
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError(f"Transformer: src and tgt have batches of {src.shape[batch]} and {tgt.shape[batch]}")
        for what, x in (("src", src), ("tgt", tgt)):
            if x.shape[-1] != self.d_model:
                raise ShapeError(f"Transformer: {what} must have vectors of length {self.d_model}, got {x.shape[-1]}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask to be added [sz, sz]: minus infinity where a key is later than the query, 0 elsewhere.

        Arguments:
            sz: the length of the sequence
            device: where the mask is
            dtype: its dtype

        Example:
            >>> turnout.nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        return causal_mask(sz, device, dtype)


describe(
    globals(),
    d_model="the length of the vectors",
    nhead="the number of heads, which divides `d_model`",
    dim_feedforward="the length between the two linear layers",
    dropout="the probability to drop a value in training",
    activation='"relu", "gelu" or a function',
    layer_norm_eps="what the norms add to the variance",
    batch_first="whether the batch is the first dimension",
    norm_first="whether a norm is before its part, rather than behind the sum",
    bias="whether the linear layers and the norms have biases",
    device="where the parameters are",
    dtype="their dtype",
    num_layers="how many there are",
    norm="a norm of the result",
)
