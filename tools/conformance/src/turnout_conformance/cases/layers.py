"""Softmax, losses and the operators that layers are made of."""

from __future__ import annotations

from typing import Any

from turnout_aten.shapes.losses import MEAN, NONE, SUM
from turnout_conformance.cases.model import POSITIVE, M, OperatorCase, S, T, row, some


def _softmax(np: Any, x: Any, dim: int) -> Any:
    e = np.exp(x - np.max(x, axis=dim, keepdims=True)) if x.size else x
    return e / np.sum(e, axis=dim, keepdims=True)


def _nll(np: Any, x: Any, target: Any, weight: Any, reduction: int, ignore: int) -> Any:
    rows = np.atleast_2d(x)
    wanted = np.atleast_1d(target)
    kept = wanted != ignore
    safe = np.where(kept, wanted, 0)
    w = (np.ones(rows.shape[1], x.dtype) if weight is None else weight)[safe] * kept
    losses = -rows[np.arange(len(rows)), safe] * w
    if reduction == NONE:
        return losses.reshape(target.shape), np.zeros((), x.dtype)
    return (losses.sum() / w.sum() if reduction == MEAN else losses.sum()), w.sum()


def _cross_entropy(np: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore: int = -100) -> Any:
    logs = np.log(_softmax(np, x, 1))
    if target.dtype.kind == "f":
        return -(logs * target).sum() / len(x)
    return _nll(np, logs, target, weight, reduction, ignore)[0]


def _bags(
    np: Any,
    w: Any,
    index: Any,
    starts: Any,
    by_frequency: bool = False,
    mode: int = 0,
    sparse: bool = False,
    each: Any = None,
    last: bool = False,
    padding: int = -1,
) -> Any:
    """The four results of an embedding bag."""
    ends = [*starts[1:], len(index)][: len(starts) - last]
    made, bag, sizes, largest = [], np.zeros(len(index), np.int64), [], []
    for b, (start, end) in enumerate(zip(starts, ends, strict=False)):
        kept = [i for i in range(start, end) if index[i] != padding]
        bag[start:end] = b
        rows = w[index[kept]] * (1 if each is None else each[kept][:, None])
        sizes.append(len(kept))
        if mode == 2:
            made.append(rows.max(0) if kept else np.zeros(w.shape[1]))
            largest.append(index[kept][rows.argmax(0)] if kept else np.zeros(w.shape[1], int))
        else:
            made.append(rows.sum(0) / (max(len(kept), 1) if mode == 1 else 1))
    if mode == 0:
        none = np.zeros(len(sizes), int)
        return np.array(made, w.dtype), bag[:0] if padding < 0 and w.dtype == np.float32 else bag, none, none
    return np.array(made, w.dtype), bag, np.array(sizes), np.array(largest) if mode == 2 else np.array(sizes)


def _dense_backward(np: Any, g: Any, index: Any, rows: int, padding: int, by_frequency: bool) -> Any:
    made = np.zeros((rows, g.shape[-1]), g.dtype)
    for at, line in zip(index.reshape(-1), g.reshape(-1, g.shape[-1]), strict=True):
        made[at] += 0 if at == padding else line / ((index == at).sum() if by_frequency else 1)
    return made


def _renormed(np: Any, w: Any, index: Any, limit: float, p: float) -> Any:
    norms = (abs(w) ** p).sum(1) ** (1 / p)
    named = np.isin(np.arange(len(w)), index) & (norms > limit)
    return np.where(named[:, None], w * (limit / (norms + 1e-7))[:, None], w)


def _products(np: Any, q: Any, k: Any, scale: Any) -> Any:
    return q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)


def _flash_scores(np: Any, q: Any, k: Any, causal: bool, mask: Any, scale: Any) -> Any:
    scores = _products(np, q, k, scale)
    scores = scores if mask is None else scores + mask
    return np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf) if causal else scores


def _flash(np: Any, q: Any, k: Any, v: Any, p: float = 0, causal: bool = False, attn_mask: Any = None, scale: Any = None) -> Any:
    scores = _flash_scores(np, q, k, causal, attn_mask, scale)
    total = np.log(np.exp(scores).sum(-1))
    return np.exp(scores - total[..., None]) @ v, total


def _flash_backward(
    np: Any,
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    total: Any,
    p: float,
    causal: bool,
    attn_mask: Any = None,
    scale: Any = None,
) -> Any:
    weights = np.exp(_flash_scores(np, q, k, causal, attn_mask, scale) - total[..., None])
    inner = weights * (g @ np.swapaxes(v, -1, -2) - (g * out).sum(-1, keepdims=True))
    inner = inner * (q.shape[-1] ** -0.5 if scale is None else scale)
    return inner @ k, np.swapaxes(inner, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ g


def _attention(
    np: Any, q: Any, k: Any, v: Any, mask: Any = None, p: float = 0.0, causal: bool = False, *, scale: Any = None,
    enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = _products(np, q, k, scale)
    if causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return _softmax(np, scores, -1) @ v


def _sigmoid(np: Any, x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _lstm(np: Any, x: Any, state: Any, w: Any, u: Any, b: Any = 0, c: Any = 0) -> Any:
    h, cell = state
    i, f, g, o = np.split(x @ w.T + b + h @ u.T + c, 4, -1)
    cell = _sigmoid(np, f) * cell + _sigmoid(np, i) * np.tanh(g)
    return _sigmoid(np, o) * np.tanh(cell), cell


def _gru(np: Any, x: Any, h: Any, w: Any, u: Any, b: Any = 0, c: Any = 0) -> Any:
    (i_r, i_z, i_n), (h_r, h_z, h_n) = np.split(x @ w.T + b, 3, -1), np.split(h @ u.T + c, 3, -1)
    z = _sigmoid(np, i_z + h_z)
    return (1 - z) * np.tanh(i_n + _sigmoid(np, i_r + h_r) * h_n) + z * h


def _sequence(cell: Any, state_count: int) -> Any:
    """A recurrent layer, each layer and direction in turn."""

    def reference(
        np: Any, x: Any, hx: Any, params: Any, biases: bool, layers: int, p: float, train: bool, both: bool, batch_first: bool
    ) -> Any:
        hx = hx if state_count > 1 else [hx]
        each, steps, ends = 4 if biases else 2, list(np.swapaxes(x, 0, 1) if batch_first else x), []
        for layer in range(layers):
            outputs = []
            for d in range(2 if both else 1):
                at = layer * (2 if both else 1) + d
                state, made = [h[at] for h in hx], []
                for step in steps[::-1] if d else steps:
                    new = cell(np, step, state if state_count > 1 else state[0], *params[each * at : each * (at + 1)])
                    state = list(new) if state_count > 1 else [new]
                    made.append(state[0])
                outputs.append(made[::-1] if d else made)
                ends.append(state)
            steps = [np.concatenate(pair, -1) for pair in zip(*outputs, strict=True)]
        output = np.stack(steps, 1 if batch_first else 0)
        return output, *[np.stack(parts) for parts in zip(*ends, strict=True)]

    return reference


def _plain(function: str) -> Any:
    return lambda np, x, h, w, u, b=0, c=0: (np.tanh if function == "tanh" else lambda v: np.maximum(v, 0))(
        x @ w.T + b + h @ u.T + c
    )


def _weights(gates: int, width: int = 3, seed: int = 1) -> tuple[T, T, T, T]:
    """Parameters of one layer and direction, of hidden size 2."""
    rows = 2 * gates
    return some(rows, width, seed=seed), some(rows, 2, seed=seed + 2), some(rows, seed=seed + 4), some(rows, seed=seed + 6)


H = some(2, 2, seed=9)
STATE = some(1, 2, 2, seed=9)
BOTH = some(2, 2, 2, seed=9)
STEPS = some(2, 2, 3, seed=3)
BAG = T([1, 3, 0, 1, 2], "int64")
Q, K, V = (some(2, 2, 3, seed=s) for s in (1, 3, 5))
Q4, K4, V4 = some(1, 2, 2, 2), some(1, 2, 3, 2, seed=3), some(1, 2, 3, 2, seed=5)

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    # ---- softmax and losses
    row("_softmax", (S(M, 1, False), S(M, 0, False)), lambda np, x, d, h: _softmax(np, x, d)),
    row("_log_softmax", (S(M, 1, False), S(M, 0, False)), lambda np, x, d, h: np.log(_softmax(np, x, d))),
    row("softmax.int", (S(M, 1), S(M, -2)), _softmax),
    row("special_softmax", S(M, -1), _softmax),
    row("special_log_softmax", S(M, 0), lambda np, x, d: np.log(_softmax(np, x, d))),
    row("_safe_softmax", S(M, -1), _softmax),
    row("log_softmax.int", (S(M, 1), S(M, -2)), lambda np, x, d: np.log(_softmax(np, x, d))),
    row("nll_loss_forward", tuple(S(some(3, 4), T([1, 0, 3], "int64"), weight, reduction, ignore) for weight in (None, some(4, **POSITIVE)) for reduction in (NONE, MEAN, SUM) for ignore in (-100, 0)), _nll),
    row("nll_loss", (S(some(3, 4), T([1, 0, 3], "int64")), S(some(4), T(2, "int64"))), lambda np, x, t: _nll(np, x, t, None, 1, -100)[0]),
    row("cross_entropy_loss", (S(some(3, 4), T([1, 0, 3], "int64")), S(some(3, 4), T([1, 0, 3], "int64"), some(4, **POSITIVE), 2), S(some(3, 4), some(3, 4, seed=5, low=0.1, high=1.0))), _cross_entropy),
    row("mse_loss", (S(M, some(2, 3, seed=3)), S(M, some(2, 3, seed=3), 0), S(M, some(2, 3, seed=3), 2)), lambda np, x, y, r=1: (lambda d: d if r == 0 else d.mean() if r == 1 else d.sum())((x - y) ** 2)),
    # ---- layers
    row("linear", (S(M, some(4, 3, seed=3), some(4, seed=5)), S(some(2, 2, 3), some(4, 3, seed=3))), lambda np, x, w, b=0: x @ w.T + b),
    row("embedding", S(some(4, 2), T([[1, 0], [3, 1]], "int64")), lambda np, w, i: w[i]),
    row("embedding_dense_backward", (S(some(2, 2, 2), T([[1, 0], [1, 3]], "int64"), 4, -1, True), S(some(3, 2), T([1, 0, 1], "int64"), 2, 0, False)), _dense_backward),
    row("embedding_renorm", S(some(4, 2), T([1, 3, 1], "int64"), 1.0, 2.0), _renormed, tolerance=1e-8),
    row("embedding_bag", (S(some(4, 2), BAG, T([0, 0, 0], "int64"), False, 0, False, some(5, seed=3)), S(some(4, 2), BAG, T([0, 0], "int64"), False, 2)), _bags),
    row("_embedding_bag", S(some(4, 2), BAG, T([0, 0], "int64"), False, 0, False, None, False, 1), _bags),
    row("embedding_bag.padding_idx", S(some(4, 2), BAG, T([0, 0], "int64"), False, 1, False, None, False, -3), lambda np, w, i, o, f, m, s, e, last, p: _bags(np, w, i, o, f, m, s, e, last, p % len(w))),
    row("bilinear", (S(M, some(2, 2, seed=3), some(2, 3, 2, seed=5), some(2)), S(some(3), some(2, seed=3), some(1, 3, 2, seed=5))), lambda np, a, b, w, c=0: np.einsum("...i,kij,...j->...k", a, w, b) + c),
    row("scaled_dot_product_attention", (S(Q, K, V), S(Q, K, V, T([[True, False], [True, True]], "bool")), S(Q, K, V, None, 0.0, True, scale=0.7), S(some(2, 1, 3), some(1, 2, 3, seed=3), some(1, 2, 2, seed=5), some(1, 2), enable_gqa=True)), _attention, tolerance=1e-8),
    row("_scaled_dot_product_flash_attention_for_cpu", (S(Q4, K4, V4), S(Q4, K4, V4, 0.0, True, scale=0.7), S(Q4, K4, V4, attn_mask=some(2, 3, seed=9))), _flash, tolerance=1e-8),
    row("_scaled_dot_product_flash_attention_for_cpu_backward", (S(some(1, 2, 2, 2, seed=11), Q4, K4, V4, some(1, 2, 2, 2, seed=13), some(1, 2, 2, seed=15), 0.0, False), S(some(1, 2, 2, 2, seed=11), Q4, K4, V4, some(1, 2, 2, 2, seed=13), some(1, 2, 2, seed=15), 0.0, True, scale=0.7)), _flash_backward, tolerance=1e-8),
    # ---- recurrent
    row("rnn_tanh_cell", S(M, H, *_weights(1)), _plain("tanh")),
    row("rnn_relu_cell", S(M, H, *_weights(1)[:2]), _plain("relu")),
    row("lstm_cell", S(M, [H, some(2, 2, seed=11)], *_weights(4)), _lstm),
    row("gru_cell", S(M, H, *_weights(3)), _gru),
    row("rnn_tanh.input", S(STEPS, BOTH, [*_weights(1), *_weights(1, seed=5)], True, 1, 0.0, False, True, True), _sequence(_plain("tanh"), 1)),
    row("rnn_relu.input", S(STEPS, STATE, list(_weights(1)[:2]), False, 1, 0.0, False, False, False), _sequence(_plain("relu"), 1)),
    row("gru.input", S(STEPS, BOTH, [*_weights(3)[:2], *_weights(3, width=2, seed=5)[:2]], False, 2, 0.0, False, False, False), _sequence(_gru, 1)),
    row("lstm.input", S(STEPS, [STATE, some(1, 2, 2, seed=11)], list(_weights(4)), True, 1, 0.0, True, False, True), _sequence(_lstm, 2)),
    # ---- dropout
    row("feature_dropout", S(some(1, 2, 2), 0.5, False), lambda np, x, p, train: x),
    row("alpha_dropout", S(M, 0.5, False), lambda np, x, p, train: x),
    row("feature_alpha_dropout", S(M, 0.5, False), lambda np, x, p, train: x),
    row("dropout", (S(M, 0.5, False), S(M, 0.0, True)), lambda np, x, p, train: x),
)
# fmt: on
