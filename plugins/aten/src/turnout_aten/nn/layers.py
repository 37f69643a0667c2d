"""The part of `turnout.nn.functional` for dropout, embeddings and attention.

Dropout functions raise ArgumentError for a probability outside [0, 1].
"""

from __future__ import annotations

from turnout.errors import ArgumentError, CallError, ShapeError
from turnout.errors import calls as texts
from turnout.operators.tracebacks import shorten, shortening
from turnout.operators.values import is_tensor
from turnout_aten.errors import arguments as argument_texts
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

_BAGS = ("sum", "mean", "max")


def _dropped(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, plain: Callable[..., Any], writing: Callable[..., Any]
) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(argument_texts.no_probability(name, "p", p))
    return (writing if inplace else plain)(input, p, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, sets a random fraction `p` of the elements to 0 and scales the others by 1 / (1 - p). Else the input.

    Example:
        >>> turnout.nn.functional.dropout(turnout.ones(2), training=False)
        tensor([1., 1.])
    """
    try:
        return _dropped("dropout", input, p, training, inplace, _functions.dropout, _functions.dropout_)
    except Exception as error:
        shorten(error)
        raise


@shortening
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for selu: dropped elements take its lowest value, and mean and variance are preserved.

    Example:
        >>> turnout.nn.functional.alpha_dropout(turnout.ones(2))
        tensor([1., 1.])
    """
    return _dropped("alpha_dropout", input, p, training, inplace, _functions.alpha_dropout, _functions.alpha_dropout_)


@shortening
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout for whole channels of [N, C, ...].

    Example:
        >>> turnout.nn.functional.feature_alpha_dropout(turnout.ones(1, 2))
        tensor([[1., 1.]])
    """
    return _dropped(
        "feature_alpha_dropout", input, p, training, inplace, _functions.feature_alpha_dropout,
        _functions.feature_alpha_dropout_,
    )  # fmt: skip


def _channels(name: str, ndim: int, input: Tensor, p: float, training: bool, inplace: bool, single: bool) -> Tensor:
    if input.ndim not in (ndim + 1, ndim + 2):
        import warnings

        warnings.warn(
            f"{name}: 'input' should have {ndim + 1} or {ndim + 2} dimensions, got shape {list(input.shape)}; channels are dim 1",
            UserWarning,
            stacklevel=4,
        )
    lone = single and input.ndim == ndim + 1
    x = input.unsqueeze_(0) if lone and inplace else input.unsqueeze(0) if lone else input
    made = _dropped(name, x, p, training, inplace, _functions.feature_dropout, _functions.feature_dropout_)
    return made if not lone else made.squeeze_(0) if inplace else made.squeeze(0)


@shortening
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of [N, C, L] or [C, L].

    Example:
        >>> turnout.nn.functional.dropout1d(turnout.ones(2, 3), training=False)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    return _channels("dropout1d", 1, input, p, training, inplace, True)


@shortening
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of [N, C, H, W]. With three dims, dim 1 also holds the channels.

    Example:
        >>> turnout.nn.functional.dropout2d(turnout.ones(1, 2, 2), training=False).shape
        turnout.Size([1, 2, 2])
    """
    return _channels("dropout2d", 2, input, p, training, inplace, False)


@shortening
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of [N, C, D, H, W] or [C, D, H, W].

    Example:
        >>> turnout.nn.functional.dropout3d(turnout.ones(1, 1, 2, 2), training=False).shape
        turnout.Size([1, 1, 2, 2])
    """
    return _channels("dropout3d", 3, input, p, training, inplace, True)


# ---- embeddings


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of weight [n, d] at the indices; row `padding_idx` gets no gradient.

    With `max_norm`, the selected rows of `weight` are first scaled down to it in place. Raises ArgumentError for a padding_idx
    that is not a row.

    Arguments:
        input: the indices, of any shape
        padding_idx: a row that gets no gradient

    Example:
        >>> turnout.nn.functional.embedding(turnout.tensor([1, 0]), turnout.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [1., 2.]])
    """
    try:
        padding = _padding(padding_idx, weight)
        if max_norm is not None:
            _functions.embedding_renorm_(weight.detach(), input.contiguous(), max_norm, norm_type)
        return _functions.embedding(weight, input, padding, scale_grad_by_freq, sparse)
    except Exception as error:
        shorten(error)
        raise


def _padding(padding_idx: int | None, weight: Tensor) -> int:
    if padding_idx is None:
        return -1
    if not is_tensor(weight):
        raise CallError(texts.wrong_type("embedding", "weight", "a tensor", weight))
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        raise ArgumentError(f"embedding: padding_idx must name one of {n} rows, got {padding_idx}")
    return padding_idx % n


@shortening
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or max of the rows of weight at each bag of indices.

    Bags are the rows of a 2-dim input, or start at `offsets` in a 1-dim one. Raises ArgumentError for arguments that do not fit
    each other.

    Arguments:
        input: the indices [bags, length], or all in a row
        offsets: where each bag begins, for indices in a row
        mode: "sum", "mean" or "max"
        per_sample_weights: a factor for each index, with mode "sum"
        include_last_offset: whether `offsets` ends with the number of indices
        padding_idx: a row that takes no part

    Example:
        >>> turnout.nn.functional.embedding_bag(turnout.tensor([[0, 1]]), turnout.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[2., 3.]])
    """
    if mode not in _BAGS:
        raise ArgumentError(argument_texts.not_one_of("embedding_bag", "mode", _BAGS, mode))
    if per_sample_weights is not None and (input.shape != per_sample_weights.shape):
        raise ArgumentError(
            f"embedding_bag: per_sample_weights must have the shape of input, {list(input.shape)}, got "
            f"{list(per_sample_weights.shape)}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(f"embedding_bag: per_sample_weights need mode 'sum', got {mode!r}")
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError("embedding_bag: a 2-dim input has one bag per row; omit offsets")
        count, length = input.shape
        offsets = _functions.arange(0, count * length, length or 1, dtype=input.dtype, device=input.device)
        if not length:
            offsets = _functions.zeros(count, dtype=input.dtype, device=input.device)
        input = input.reshape((-1,))
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape((-1,))
    elif input.ndim != 1:
        raise ArgumentError(f"embedding_bag: input must have 1 or 2 dimensions, got shape {list(input.shape)}")
    elif offsets is None or offsets.ndim != 1:
        raise ArgumentError("embedding_bag: a 1-dim input needs offsets of one dimension")
    if max_norm is not None:
        _functions.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    made = _functions.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, _BAGS.index(mode), sparse, per_sample_weights, include_last_offset,
        padding_idx,
    )  # fmt: skip
    return made[0]


# ---- attention


def _projected(
    query: Tensor, key: Tensor, value: Tensor, in_proj_weight: Tensor | None, separate: tuple[Any, Any, Any],
    use_separate: bool, bias: Tensor | None,
) -> list[Tensor]:  # fmt: skip
    """query, key and value, each multiplied by its part of the input projection."""
    width = query.shape[-1]
    weights: Any = separate if use_separate else None if in_proj_weight is None else in_proj_weight.split(width)
    if weights is None or any(w is None for w in weights):
        raise ArgumentError("multi_head_attention_forward: the weights of the input projection are missing")
    biases: Any = (None, None, None) if bias is None else bias.split(width)
    return [_generated.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]


def _as_summand(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """An additive mask: minus infinity where a bool mask is true."""
    from turnout.dtypes import bool_

    if mask is None or mask.dtype is not bool_:
        return mask
    return _functions.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))


@shortening
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Multi-head attention, Vaswani et al. (2017): (output [L, N, E], weights [N, L, S] or None).

    query is [L, N, E] or [L, E], key and value are [S, N, E] or [S, E]. A bool mask is true where attention is not allowed; any
    other mask is added: `attn_mask` [L, S] or [N * heads, L, S], `key_padding_mask` [N, S] or [S]. By default the weights are
    averaged over heads.
    Raises ArgumentError and ShapeError for arguments that do not fit each other.

    Arguments:
        query: the queries
        key: the keys
        value: the values
        embed_dim_to_check: the length E of a query
        num_heads: the number of heads, which divides E
        in_proj_weight: the projections of queries, keys and values, [3 E, E]
        in_proj_bias: what is added to the projections, [3 E]
        bias_k: a key that is appended
        bias_v: a value that is appended
        add_zero_attn: whether a key and a value of zeros are appended
        dropout_p: the probability that a weight is dropped in training
        out_proj_weight: the projection of the result, [E, E]
        out_proj_bias: what is added to the result, [E]
        training: whether weights are dropped
        key_padding_mask: the keys of each example that take no part, [N, S]
        need_weights: whether the weights are returned
        attn_mask: the pairs of queries and keys that take no part, [L, S] or [N * heads, L, S]
        use_separate_proj_weight: whether the next three projections are used instead of `in_proj_weight`
        q_proj_weight: the projection of queries
        k_proj_weight: the projection of keys
        v_proj_weight: the projection of values
        static_k: projected keys, in place of `key`
        static_v: projected values, in place of `value`
        average_attn_weights: whether the weights returned are the means over the heads
        is_causal: whether a query sees only keys up to its own place; needs `attn_mask`

    Example:
        >>> q, eye = turnout.ones(1, 1, 2), turnout.eye(2)
        >>> projections = turnout.cat([eye, eye, eye]), None, None, None, False, 0.0, eye, None
        >>> turnout.nn.functional.multi_head_attention_forward(q, q, q, 2, 1, *projections)[0].shape
        turnout.Size([1, 1, 2])
    """
    single = query.ndim == 2
    if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
        shapes = f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        raise ShapeError(
            f"multi_head_attention_forward: 'query', 'key' and 'value' must all have 2 dimensions, or all 3; got shapes {shapes}"
        )
    if single:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, n, width = query.shape
    if width != embed_dim_to_check:
        raise ArgumentError(f"multi_head_attention_forward: 'query' must have width {embed_dim_to_check}, got {width}")
    if width % num_heads:
        raise ArgumentError(f"multi_head_attention_forward: the width {width} must be a multiple of the {num_heads} heads")
    if is_causal and attn_mask is None:
        raise ArgumentError("multi_head_attention_forward: is_causal needs the mask in attn_mask as well")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _projected(query, key, value, in_proj_weight, separate, use_separate_proj_weight, in_proj_bias)
    mask, padding = _as_summand(attn_mask, q), _as_summand(key_padding_mask, q)
    if is_causal and key_padding_mask is None and not need_weights:
        mask = _functions.triu(_functions.full_like(q.new_empty((length, k.shape[0])), float("-inf")), 1)
    added = 0
    if bias_k is not None and bias_v is not None:
        k, v = (_functions.cat([x, b.expand((1, n, -1))]) for x, b in ((k, bias_k), (v, bias_v)))
        added += 1
    head = width // num_heads

    def heads(x: Tensor, static: Tensor | None) -> Tensor:
        return x.reshape((x.shape[0], n * num_heads, head)).transpose(0, 1) if static is None else static

    q, k, v = heads(q, None), heads(k, static_k), heads(v, static_v)
    if add_zero_attn:
        k, v = (_functions.cat([x, x.new_zeros((x.shape[0], 1, head))], 1) for x in (k, v))
        added += 1
    if added:
        mask, padding = (None if m is None else _generated.pad(m, (0, added)) for m in (mask, padding))
    source = k.shape[1]
    if mask is not None and mask.ndim == 2:
        mask = mask.unsqueeze(0)
    if padding is not None:
        padding = padding.view((n, 1, 1, source)).expand((-1, num_heads, -1, -1)).reshape((n * num_heads, 1, source))
        mask = padding if mask is None else mask + padding
    output, weights = _attended(q, k, v, mask, dropout_p if training else 0.0, need_weights)
    output = output.transpose(0, 1).reshape((length * n, width))
    output = _generated.linear(output, out_proj_weight, out_proj_bias).view((length, n, out_proj_weight.shape[0]))
    if weights is not None:
        weights = weights.view((n, num_heads, length, source))
        weights = weights.mean(1) if average_attn_weights else weights
    if single:
        return output.squeeze(1), None if weights is None else weights.squeeze(0)
    return output, weights


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """(attention of [N * heads, L, head], its weights if requested)."""
    if not need_weights:
        return _generated.scaled_dot_product_attention(q, k, v, mask, dropout_p), None
    scores = _functions.matmul(q * (1 / q.shape[-1]) ** 0.5, k.transpose(-2, -1))
    weights = _functions.softmax(scores if mask is None else scores + mask, -1)
    if dropout_p:
        weights = _functions.dropout(weights, dropout_p, True)
    return _functions.matmul(weights, v), weights


__all__ = describe(
    globals(),
    input="a tensor of any shape",
    p="the probability of an element, or a channel, to be dropped",
    training="whether anything is dropped",
    inplace="whether the result is written into `input`",
    weight="the table [n, d]",
    max_norm="the largest norm of a row that is used",
    norm_type="the order of that norm",
    scale_grad_by_freq="whether gradients are divided by how often an index occurs",
    sparse="without effect; gradients are dense",
)
