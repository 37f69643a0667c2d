"""Compiled convolutions with many channels, and their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from instruction_sets import available
from turnout.nn import functional as F

import turnout
from turnout_conformance.pairwise import pairwise

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import convolutions

Served = Callable[..., list[str]]
RNG = np.random.default_rng(7)


def convolution_in_float64(x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """One product of matrices for each kernel element."""
    x = np.pad(x.astype("d"), ((0, 0), (0, 0), *[(p, p) for p in padding]))
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)]
    made = np.zeros((x.shape[0], groups, w.shape[0] // groups, *counts))
    for place in itertools.product(*map(range, w.shape[2:])):
        seen = [slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(place, dilation, counts, stride, strict=True)]
        under = x[(..., *seen)].reshape(x.shape[0], groups, -1, *counts)
        made += np.einsum("goi,ngi...->ngo...", w[(..., *place)].astype("d").reshape(groups, -1, w.shape[1]), under)
    return made.reshape(x.shape[0], -1, *counts) + b.astype("d").reshape(-1, *(1,) * len(counts))


CONVOLUTIONS = [  # shapes of images and weights, stride, padding, dilation, groups
    ((2, 9, 34, 41), (20, 9, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 16, 40, 40), (16, 16, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((1, 12, 50, 37), (22, 6, 5, 2), (1, 3), (4, 0), (2, 1), 2),
    ((2, 8, 60, 60), (8, 8, 1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((2, 8, 64, 48), (32, 8, 4, 4), (4, 4), (0, 0), (1, 1), 1),
    ((4, 24, 900), (17, 24, 5), (1,), (2,), (3,), 1),
]


@pytest.mark.parametrize(
    ("sizes", "dtype", "instructions"), pairwise(CONVOLUTIONS, ["f", "d"], available()), indirect=["instructions"], ids=str
)
def test_convolutions_with_many_channels_agree_with_float64(
    sizes: Any, dtype: str, instructions: str, monkeypatch: pytest.MonkeyPatch, served: Served
):
    image, kernel, stride, padding, dilation, groups = sizes
    monkeypatch.setattr(convolutions, "_FEW", 0)
    names = served(convolutions)
    x, w = RNG.standard_normal(image).astype(dtype), RNG.standard_normal(kernel).astype(dtype)
    b = RNG.standard_normal(kernel[0]).astype(dtype)
    function = F.conv1d if len(image) == 3 else F.conv2d
    found = function(*map(turnout.from_numpy, (x, w, b)), stride=stride, padding=padding, dilation=dilation, groups=groups)
    exact = convolution_in_float64(x, w, b, stride, padding, dilation, groups)
    assert names == ([] if kernel[2:] == (1, 1) else ["convolve"])
    np.testing.assert_allclose(found.numpy(), exact, rtol=0, atol=(3e-5 if dtype == "f" else 1e-12) * np.abs(exact).max() / 4)


@pytest.mark.parametrize("sizes", [CONVOLUTIONS[0], CONVOLUTIONS[-1]], ids=str)
def test_where_an_image_lies_changes_neither_a_convolution_nor_its_kernel(
    sizes: Any, monkeypatch: pytest.MonkeyPatch, served: Served
):
    image, kernel, stride, padding, dilation, groups = sizes
    monkeypatch.setattr(convolutions, "_FEW", 0)
    names = served(convolutions)
    w = turnout.from_numpy(RNG.standard_normal(kernel).astype("f"))
    x = turnout.from_numpy(RNG.standard_normal(tuple(n + 2 for n in image)).astype("f"))[(..., *[slice(1, -1)] * len(image))]
    across = x.transpose(-1, 1).contiguous().transpose(-1, 1)
    function = F.conv1d if len(image) == 3 else F.conv2d
    found = []
    for each in (x.contiguous(), x, across):
        each = each.detach().requires_grad_()
        weight = w.clone().requires_grad_()
        made = function(each, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
        made.transpose(-1, 1).square().sum().backward()  # the gradient that comes in lies across, too
        found.append([made.detach().numpy(), each.grad.numpy(), weight.grad.numpy()])
    assert names[: len(names) // 3] * 3 == names
    assert "convolve" in names
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            assert np.array_equal(one, another)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_of_two_byte_floats_are_those_in_float32_rounded(transposed: bool, dtype: str, served: Served):
    names = served(convolutions)
    narrow = getattr(turnout, dtype)
    x, w, b = (
        turnout.from_numpy(RNG.standard_normal(s).astype("f")).to(narrow) for s in ((2, 16, 40, 40), (16, 16, 3, 3), (16,))
    )
    function = F.conv_transpose2d if transposed else F.conv2d
    found = function(x, w, b, padding=1)
    assert names == ["convolve"]
    assert turnout.equal(found, function(x.float(), w.float(), b.float(), padding=1).to(narrow))


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_gradients_of_convolutions_with_many_channels_agree_with_float64(dtype: str, instructions: str, served: Served):
    names = served(convolutions)
    x, w = RNG.standard_normal((3, 20, 33, 38)).astype(dtype), RNG.standard_normal((18, 10, 3, 2)).astype(dtype)
    leaves = [turnout.from_numpy(a).requires_grad_() for a in (x, w, np.zeros(18, dtype))]
    out = F.conv2d(*leaves, padding=(1, 1), dilation=(2, 1), groups=2)
    g = RNG.standard_normal(tuple(out.shape)).astype(dtype)
    found = turnout.autograd.grad(out, leaves, turnout.from_numpy(g))
    assert names == ["convolve", "convolve", "convolve_weights"]
    # The sum of g times the output is linear in each argument: its change under a direction is the gradient times that.
    for at, gradient in enumerate(found):
        arguments = [x, w, np.zeros(18)]
        arguments[at] = direction = RNG.standard_normal(gradient.shape)
        if at == 2:
            arguments[0] = np.zeros_like(x)
        exact = (convolution_in_float64(*arguments, (1, 1), (1, 1), (2, 1), 2) * g).sum()
        size = np.abs(gradient.numpy() * direction).sum()
        assert abs((gradient.numpy().astype("d") * direction).sum() - exact) < (1e-6 if dtype == "f" else 1e-14) * size


def test_an_infinite_element_is_in_the_gradients_only_of_the_weights_that_meet_it():
    x = RNG.standard_normal((2, 16, 30, 30)).astype("f")
    x[1, 3, 0, 0] = np.inf
    leaves = [turnout.from_numpy(a).requires_grad_() for a in (x, RNG.standard_normal((16, 16, 3, 3)).astype("f"))]
    out = F.conv2d(*leaves, padding=1)
    _, of_weight = turnout.autograd.grad(out, leaves, turnout.ones(out.shape))
    meets = np.zeros((16, 16, 3, 3), bool)
    meets[:, 3, :2, :2] = True  # the corner lies under these four only
    assert np.array_equal(np.isinf(of_weight.numpy()), meets)
    assert not np.isnan(of_weight.numpy()).any()
