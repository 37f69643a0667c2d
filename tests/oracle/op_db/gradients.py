"""Whether Turnout's gradients are PyTorch's, for all samples of an OpInfo: first order, and second order where PyTorch has it.

Both sides get the same tensors and the same gradients of the outputs. No gradient and zeros are the same answer. The function
is the one of PyTorch's own gradient tests (`gradcheck_wrapper`): a matrix of which one triangle is read is given as a triangle.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch

import turnout
from op_db import judging
from op_db.bridge import Redirect, array_of, here, mapped, stand, taking_stands, tensor_here, tensors

# Arguments that turn random elements off: the rest of these operators is judged without them.
WITHOUT_DROPPING: dict[str, dict[str, Any]] = {
    "nn.functional.scaled_dot_product_attention": {"dropout_p": 0.0},
    "nn.functional.multi_head_attention_forward": {"training": False},
}


def samples(info: Any, dtype: torch.dtype) -> list[Any]:
    """The samples, whose tensors require gradients, without random elements."""
    found = judging.samples(info, dtype, requires_grad=True)
    for sample in found:
        sample.kwargs |= {k: v for k, v in WITHOUT_DROPPING.get(info.name, {}).items() if k in sample.kwargs}
    return found


def first(info: Any, dtype: torch.dtype) -> str | None:
    """The first difference between gradients."""
    return _over_samples(info, dtype, 1)


def second(info: Any, dtype: torch.dtype) -> str | None:
    """The first difference between gradients of gradients."""
    return _over_samples(info, dtype, 2) if info.supports_gradgrad else None


def _over_samples(info: Any, dtype: torch.dtype, order: int) -> str | None:
    if info.name in judging.RANDOM:
        return None  # the numbers that were drawn decide
    for number, sample in enumerate(samples(info, dtype)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = _Theirs(info, sample)
                expected = theirs.gradients(order)
            except Exception:  # noqa: BLE001 - a sample that PyTorch itself refuses says nothing here
                continue
            if not expected:
                continue
            try:
                found = _Ours(info, sample, theirs.differentiable).gradients(order)
            except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
                return f"sample {number} {judging._brief(sample)}: {judging.raised(error)}"
        for position, (e, f) in enumerate(zip(expected, found, strict=True)):
            difference = differs(info, e, f)
            if difference:
                return f"sample {number} {judging._brief(sample)}: gradient {position}: {difference}"
    return None


def cotangent(shape: Any, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Random numbers from a seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tuple(shape), dtype=dtype, generator=generator)


def wrapped(info: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """The call by way of the OpInfo's wrapper, but for masked operators: what theirs hide is the same in both libraries."""
    if info.name.startswith("masked."):
        return function(*args, **kwargs)
    return info.gradcheck_wrapper(function, *args, **kwargs)


class _Theirs:
    """PyTorch's side of a sample."""

    def __init__(self, info: Any, sample: Any) -> None:
        values = (sample.input, *sample.args), sample.kwargs
        self.leaves = [t for t in tensors(values) if t.requires_grad]
        torch.manual_seed(0)
        result = wrapped(info, info.op, sample.input, *sample.args, **sample.kwargs)
        if sample.output_process_fn_grad is not None:
            result = sample.output_process_fn_grad(result)
        outputs = tensors(result)
        self.differentiable = [i for i, t in enumerate(outputs) if t.requires_grad]
        self.outputs = [outputs[i] for i in self.differentiable]

    def gradients(self, order: int) -> list[torch.Tensor | None]:
        if not self.outputs or not self.leaves:
            return []
        given = [cotangent(o.shape, o.dtype, i) for i, o in enumerate(self.outputs)]
        if order == 1:
            return list(torch.autograd.grad(self.outputs, self.leaves, given, allow_unused=True))
        for g in given:
            g.requires_grad_()
        made = torch.autograd.grad(self.outputs, self.leaves, given, allow_unused=True, create_graph=True)
        again = [g for g in made if g is not None and g.requires_grad]
        if not again:
            return []
        weights = [cotangent(g.shape, g.dtype, 100 + i) for i, g in enumerate(made) if g is not None and g.requires_grad]
        return list(torch.autograd.grad(again, [*self.leaves, *given], weights, allow_unused=True))


class _Ours:
    """Turnout's side: the same leaves, and the outputs that are differentiable in PyTorch."""

    def __init__(self, info: Any, sample: Any, differentiable: list[int]) -> None:
        brought = cache(lambda tensor: tensor_here(tensor, "cpu"))  # one where one is given twice
        given = (sample.input, *sample.args), sample.kwargs
        args, kwargs = mapped(given, lambda v: brought(v) if isinstance(v, torch.Tensor) else v)
        self.leaves = [t for t in tensors((args, kwargs)) if t.requires_grad]
        with Redirect("cpu"):
            result = wrapped(info, taking_stands(info.op), *stand(args), **stand(kwargs))
            if sample.output_process_fn_grad is not None:
                result = sample.output_process_fn_grad(result)
        outputs = tensors(here(result))
        self.outputs = [outputs[i] for i in differentiable]

    def gradients(self, order: int) -> list[Any]:
        """None where nothing is recorded."""
        given = [tensor_here(cotangent(o.shape, getattr(torch, o.dtype.name), i), "cpu") for i, o in enumerate(self.outputs)]
        for g in given:
            g.requires_grad_(order == 2)
        made = _grad(self.outputs, self.leaves, given, order == 2)
        if order == 1:
            return made
        present = [(i, g) for i, g in enumerate(made) if g is not None]
        weights = [tensor_here(cotangent(g.shape, getattr(torch, g.dtype.name), 100 + i), "cpu") for i, g in present]
        return _grad([g for _, g in present], [*self.leaves, *given], weights, False)


def _grad(outputs: list[Any], inputs: list[Any], given: list[Any], create_graph: bool) -> list[Any]:
    """turnout.autograd.grad of those outputs that are recorded."""
    pairs = [(o, g) for o, g in zip(outputs, given, strict=True) if o.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    recorded, theirs = zip(*pairs, strict=True)
    return list(turnout.autograd.grad(recorded, inputs, theirs, allow_unused=True, create_graph=create_graph))


def differs(info: Any, expected: torch.Tensor | None, found: Any) -> str | None:
    """What differs between gradients; none and zeros are the same."""
    if expected is None and found is None:
        return None
    if expected is None:
        expected = torch.zeros(tuple(found.shape), dtype=getattr(torch, found.dtype.name))
    if found is None:
        return None if not expected.any() else f"there is none, expected one of shape {tuple(expected.shape)}"
    if tuple(expected.shape) != tuple(found.shape) or str(expected.dtype)[6:] != found.dtype.name:
        return f"expected {expected.dtype} {tuple(expected.shape)}, got {found.dtype} {tuple(found.shape)}"
    return judging.apart(array_of(found), expected, *judging.tolerance(info, expected.dtype, 1e-6))
