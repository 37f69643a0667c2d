"""Whether Turnout's gradients are PyTorch's, for all samples of an OpInfo: first order, and second order where PyTorch has it.

Both sides get the same tensors and the same gradients of the outputs. No gradient and zeros are the same answer. The function
is the one of PyTorch's own gradient tests (`gradcheck_wrapper`): a matrix of which one triangle is read is given as a triangle.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

import turnout
from op_db import judging
from op_db.bridge import Missing, Redirect, array_of, find, here, stand, tensor_here

# Arguments that turn random elements off: the rest of these operators is judged without them.
WITHOUT_DROPPING: dict[str, dict[str, Any]] = {
    "nn.functional.scaled_dot_product_attention": {"dropout_p": 0.0},
    "nn.functional.multi_head_attention_forward": {"training": False},
}


def first(info: Any, dtype: torch.dtype) -> str | None:
    """The first difference between gradients."""
    return _over_samples(info, dtype, 1)


def second(info: Any, dtype: torch.dtype) -> str | None:
    """The first difference between gradients of gradients."""
    return _over_samples(info, dtype, 2) if info.supports_gradgrad else None


def _over_samples(info: Any, dtype: torch.dtype, order: int) -> str | None:
    if info.name in judging.RANDOM:
        return None  # the numbers that were drawn decide
    for number, sample in enumerate(judging.samples(info, dtype, requires_grad=True)):
        sample.kwargs |= {k: v for k, v in WITHOUT_DROPPING.get(info.name, {}).items() if k in sample.kwargs}
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
            except Missing as error:
                return f"missing {error}"
            except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
                return f"sample {number} {judging._brief(sample)}: raises {judging._error(error)}"
        for position, (e, f) in enumerate(zip(expected, found, strict=True)):
            difference = _compare(info, e, f)
            if difference:
                return f"sample {number} {judging._brief(sample)}: gradient {position}: {difference}"
    return None


def _tensors(value: Any) -> list[Any]:
    """All tensors inside a value, in order."""
    if isinstance(value, torch.Tensor | turnout.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in _tensors(v)] if isinstance(value, tuple | list) else []


def _cotangent(shape: Any, dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tuple(shape), dtype=dtype, generator=generator)


def _wrapped(info: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """The call by way of the OpInfo's wrapper, but for masked operators: what theirs hide is the same in both libraries."""
    if info.name.startswith("masked."):
        return function(*args, **kwargs)
    return info.gradcheck_wrapper(function, *args, **kwargs)


class _Theirs:
    """PyTorch's side of a sample."""

    def __init__(self, info: Any, sample: Any) -> None:
        values = (sample.input, *sample.args), sample.kwargs
        self.leaves = [t for t in _tensors(values) if t.requires_grad]
        torch.manual_seed(0)
        result = _wrapped(info, info.op, sample.input, *sample.args, **sample.kwargs)
        if sample.output_process_fn_grad is not None:
            result = sample.output_process_fn_grad(result)
        outputs = _tensors(result)
        self.differentiable = [i for i, t in enumerate(outputs) if t.requires_grad]
        self.outputs = [outputs[i] for i in self.differentiable]

    def gradients(self, order: int) -> list[torch.Tensor | None]:
        if not self.outputs or not self.leaves:
            return []
        given = [_cotangent(o.shape, o.dtype, i) for i, o in enumerate(self.outputs)]
        if order == 1:
            return list(torch.autograd.grad(self.outputs, self.leaves, given, allow_unused=True))
        for g in given:
            g.requires_grad_()
        made = torch.autograd.grad(self.outputs, self.leaves, given, allow_unused=True, create_graph=True)
        again = [g for g in made if g is not None and g.requires_grad]
        if not again:
            return []
        weights = [_cotangent(g.shape, g.dtype, 100 + i) for i, g in enumerate(made) if g is not None and g.requires_grad]
        return list(torch.autograd.grad(again, [*self.leaves, *given], weights, allow_unused=True))


class _Ours:
    """Turnout's side: the same leaves, and the outputs that are differentiable in PyTorch."""

    def __init__(self, info: Any, sample: Any, differentiable: list[int]) -> None:
        known: dict[int, Any] = {}

        def brought(value: Any) -> Any:
            """Turnout's tensor for each of PyTorch's, one where one is given twice."""
            if isinstance(value, torch.Tensor):
                if id(value) not in known:
                    known[id(value)] = tensor_here(value, "cpu")
                return known[id(value)]
            if type(value) in (tuple, list):
                return type(value)(brought(v) for v in value)
            if isinstance(value, dict):
                return {k: brought(v) for k, v in value.items()}
            return value

        args, kwargs = brought((sample.input, *sample.args)), brought(sample.kwargs)
        self.leaves = [t for t in _tensors((args, kwargs)) if t.requires_grad]
        function = find(info.op)

        def called(*args: Any, **kwargs: Any) -> Any:
            return stand(function(*here(args), **here(kwargs)))

        with Redirect("cpu"):
            result = _wrapped(info, called if function else info.op, *stand(args), **stand(kwargs))
            if sample.output_process_fn_grad is not None:
                result = sample.output_process_fn_grad(result)
        result = here(result)
        outputs = _tensors(result)
        self.outputs = [outputs[i] for i in differentiable]

    def gradients(self, order: int) -> list[Any]:
        """None where nothing is recorded."""
        given = [tensor_here(_cotangent(o.shape, getattr(torch, o.dtype.name), i), "cpu") for i, o in enumerate(self.outputs)]
        for g in given:
            g.requires_grad_(order == 2)
        made = _grad(self.outputs, self.leaves, given, order == 2)
        if order == 1:
            return made
        present = [(i, g) for i, g in enumerate(made) if g is not None]
        weights = [tensor_here(_cotangent(g.shape, getattr(torch, g.dtype.name), 100 + i), "cpu") for i, g in present]
        return _grad([g for _, g in present], [*self.leaves, *given], weights, False)


def _grad(outputs: list[Any], inputs: list[Any], given: list[Any], create_graph: bool) -> list[Any]:
    """turnout.autograd.grad of those outputs that are recorded."""
    pairs = [(o, g) for o, g in zip(outputs, given, strict=True) if o.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    recorded, theirs = zip(*pairs, strict=True)
    return list(turnout.autograd.grad(recorded, inputs, theirs, allow_unused=True, create_graph=create_graph))


def _compare(info: Any, expected: torch.Tensor | None, found: Any) -> str | None:
    if expected is None and found is None:
        return None
    if expected is None:
        expected = torch.zeros(tuple(found.shape), dtype=getattr(torch, found.dtype.name))
    if found is None:
        return None if not expected.any() else f"there is none, expected one of shape {tuple(expected.shape)}"
    if tuple(expected.shape) != tuple(found.shape) or str(expected.dtype)[6:] != found.dtype.name:
        return f"expected {expected.dtype} {tuple(expected.shape)}, got {found.dtype} {tuple(found.shape)}"
    rtol, atol = judging.tolerance(info, expected.dtype)
    try:
        torch.testing.assert_close(
            array_of(found), expected.detach().resolve_conj().resolve_neg().contiguous(), equal_nan=True,
            rtol=max(rtol, 1e-6), atol=max(atol, 1e-6),
        )  # fmt: skip
    except AssertionError as error:
        return " ".join(str(error).split())
    return None
