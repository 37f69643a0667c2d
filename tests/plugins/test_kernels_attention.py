"""The compiled row of attention, against attention composed of operators."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built")

import turnout.nn.functional as F

import turnout
from outcomes import agree, refused
from turnout.errors import DTypeError
from turnout_kernels import attention


def call(seed):
    """Query, key and value in any layout, and the other arguments, drawn from a seed."""
    random, made = Random(seed), np.random.default_rng(seed)
    lead = random.choice([(2,), (1, 3), (2, 4), (2, 1, 2)])
    length, keys, width, depth = (random.choice([1, 2, 5, 8, 130, 300]) for _ in range(4))
    dtype = random.choice(["float32", "float64"])

    def tensor(*shape):
        array = made.standard_normal(shape).astype(dtype)
        how = random.choice(["contiguous", "transposed", "split"])
        if how == "transposed":  # heads beside each other, as a projection leaves them
            return turnout.tensor(np.ascontiguousarray(array.swapaxes(-2, -3))).transpose(-2, -3)
        return turnout.tensor(np.stack([array, array])).unbind(0)[1] if how == "split" else turnout.tensor(array)

    given = tensor(*lead, length, width), tensor(*lead, keys, width), tensor(*lead, keys, depth)
    options = {"scale": random.choice([None, 0.3])}
    mask = random.choice(["none", "causal", "bool", "float"])
    if mask == "causal":
        options["is_causal"] = True
    elif mask != "none":
        shape = [random.choice([1, n]) for n in (*lead, length, keys)][random.randint(0, len(lead)) :]
        allowed = made.random(shape) < random.choice([0.3, 0.9])
        options["attn_mask"] = turnout.tensor(
            allowed if mask == "bool" else np.where(allowed, made.random(shape), -np.inf).astype(dtype)
        )
    return given, options


def test_attention_is_that_of_the_operators(seeds, served):
    names = served(attention)
    for seed in seeds(120):
        (q, k, v), options = call(seed)
        names.clear()
        found = F.scaled_dot_product_attention(q, k, v, **options)
        assert names, f"--seed {seed}: the row did not take the call"
        expected = F.scaled_dot_product_attention(q.clone().requires_grad_(), k, v, **options)
        agree(found, expected, 2e-5 if q.dtype is turnout.float32 else 1e-11, strides=True)


def test_a_row_that_allows_no_key_gives_zeros_and_others_do_not():
    q, mask = turnout.ones(1, 2, 4), turnout.tensor([[True, False], [False, False]])
    assert F.scaled_dot_product_attention(q, q, q, mask).tolist() == [[[1.0] * 4, [0.0] * 4]]
    assert F.scaled_dot_product_attention(q, q * float("nan"), q, mask)[0, 1].tolist() == [0.0] * 4


def test_a_mask_of_another_dtype_is_refused_as_without_the_row():
    q, mask = turnout.ones(1, 2, 4), turnout.ones(2, 2, dtype=turnout.float64)
    said = refused(DTypeError, F.scaled_dot_product_attention, q, q, q, mask)
    assert said == "scaled_dot_product_attention: 'attn_mask' must be bool or float32, got float64"


def test_any_number_of_heads_at_once_gives_the_same(monkeypatch):
    made, found = np.random.default_rng(4), []
    q, k, v = (turnout.from_numpy(made.standard_normal((2, 7, 200, 64), np.float32)) for _ in range(3))
    expected = F.scaled_dot_product_attention(*[t.double() for t in (q, k, v)], is_causal=True)
    for room in (0, 1 << 17, 1 << 30):
        monkeypatch.setattr(attention, "_SCORES", room)
        found.append(F.scaled_dot_product_attention(q, k, v, is_causal=True))
    agree(found[0].double(), expected, 2e-5)
    agree(found[1:], found[:1] * 2)
