"""Calls that PyTorch takes, each with what it gives there: `t` is the library and `F` its `nn.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

# What is shown is the value as text, with `t` for the library's name.
CALLS = {
    # factories, sizes by name and outputs
    "t.rand(size=(2, 3)).shape, t.randn(size=(2,)).shape": "(t.Size([2, 3]), t.Size([2]))",
    "t.randperm(3, out=t.empty(0, dtype=t.int64)).sort().values": "tensor([0, 1, 2])",
    "t.randperm(3, generator=t.Generator(), out=t.empty(0, dtype=t.int32)).shape": "t.Size([3])",
    "t.randint(0, 1, (2,), out=t.empty(0, dtype=t.int32))": "tensor([0, 0], dtype=t.int32)",
    "t.randint(1, (2,), generator=t.Generator(), out=t.empty(0, dtype=t.int64))": "tensor([0, 0])",
    "t.linspace(0, 1, 3, dtype=t.float64, out=t.empty(3, dtype=t.float64))": "tensor([0.0000, 0.5000, 1.0000], dtype=t.float64)",
    "t.asarray([1.0], requires_grad=True), t.asarray(t.ones(1, requires_grad=True)).requires_grad": (
        "(tensor([1.], requires_grad=True), True)"
    ),
    # arguments that may be left out, and None
    "t.ones(3).bernoulli_().shape, t.ones(3).bernoulli_(1.0), t.ones(2).bernoulli_(t.tensor(0.0))": (
        "(t.Size([3]), tensor([1., 1., 1.]), tensor([0., 0.]))"
    ),
    "t.normal(t.ones(3)).shape, t.normal(mean=t.ones(3)).shape": "(t.Size([3]), t.Size([3]))",
    "t.roll(t.arange(3), 1, None), t.arange(3).roll(1, dims=None)": "(tensor([2, 0, 1]), tensor([2, 0, 1]))",
    "t.amax(t.arange(3), None), t.arange(3).amin(dim=None)": "(tensor(2), tensor(0))",
    "t.max_pool1d(t.ones(1, 4), 2, None), t.avg_pool1d(t.ones(1, 4), 2, None)": "(tensor([[1., 1.]]), tensor([[1., 1.]]))",
    # memory of others
    "t.frombuffer(bytearray([1, 0, 2, 0, 3]), dtype=t.int16, count=2)": "tensor([1, 2], dtype=t.int16)",
    "t.frombuffer(bytearray(b'abcd'), dtype=t.uint8, offset=2)": "tensor([ 99, 100], dtype=t.uint8)",
    "t.from_dlpack(np.arange(2), copy=True), t.from_dlpack(t.arange(2), device='cpu', copy=False)": (
        "(tensor([0, 1]), tensor([0, 1]))"
    ),
    "[t.can_cast(t.float64, t.int32), t.can_cast(t.uint8, t.int8), t.can_cast(t.int8, t.bool)]": "[False, True, False]",
    "type(t.ones(1).as_subclass(type('Mine', (t.Tensor,), {}))).__name__": "'Mine'",
    # dtypes of results
    "t.tensordot(t.ones(1, 2, dtype=t.int8), t.ones(3, 2, dtype=t.int8), ([0], [0]))": (
        "tensor([[3, 3],\n        [3, 3]], dtype=t.int8)"
    ),
    "F.bilinear(*[t.ones(s, dtype=t.int16) for s in ((2, 2), (2, 2), (1, 2, 2))])": "tensor([[4],\n        [4]], dtype=t.int16)",
    "t.lcm(t.tensor([2**62 + 1, 2**40]), t.tensor([3, 2**40 + 1]))": "tensor([4611686018427387901,       1099511627776])",
    "t.lcm(t.tensor([2**30 + 1], dtype=t.int32), t.tensor([3]).int())": "tensor([1073741821], dtype=t.int32)",
    "t.lcm(t.tensor([127, -100], dtype=t.int8), t.tensor([3, 99]).char())": "tensor([125, -84], dtype=t.int8)",
    "F.mse_loss(t.tensor(1.0, dtype=t.float64), t.empty(0, dtype=t.bfloat16)).dtype": "t.float64",
    "F.l1_loss(t.ones(2, dtype=t.bfloat16), t.tensor(1.0, dtype=t.float64)).dtype": "t.float64",
    "F.huber_loss(t.ones(2, dtype=t.bfloat16), t.ones(2, dtype=t.float64)).dtype": "t.bfloat16",
    "F.smooth_l1_loss(t.ones(2, dtype=t.bfloat16), t.ones(2, dtype=t.float64)).dtype": "t.float64",
}


def shown(expression: str, library: Any) -> str:
    """The text of an expression's value."""
    names = {"t": library, "F": library.nn.functional, "np": np}
    return repr(eval(expression, names)).replace(f"{library.__name__}.", "t.")
