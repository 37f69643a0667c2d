"""Whether Turnout's functional transforms are PyTorch's, for the smallest sample of an OpInfo.

Both sides take the same function: the OpInfo's, of those tensors of the sample that require gradients, to the list of the results
that have them in PyTorch. Tangents and cotangents are the same too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import turnout
from op_db import judging
from op_db.bridge import Redirect, here, mapped, stand, taking_stands, tensor_here, tensors
from op_db.gradients import cotangent, differs, samples, wrapped

Function = Callable[..., Any]


class Side:
    """One library's side of a sample: the transforms, and the function between lists of tensors.

    library  torch or turnout
    inputs   the tensors of the sample that require gradients
    here     the library's tensor for one of PyTorch's
    """

    def __init__(self, library: Any, function: Function, inputs: list[torch.Tensor], here: Function) -> None:
        self.library, self.func, self.here = library, library.func, here
        self.function = function
        self.plain = inputs
        self.complex = [t.is_complex() for t in inputs]
        self.inputs = [here(t) for t in inputs]
        self.places: list[int] = []
        self.shapes: list[torch.Tensor] = []

    def __call__(self, *tensors: Any) -> list[Any]:
        results = self.function(*tensors)
        return [results[i] for i in self.places]

    def real(self, *tensors: Any) -> list[Any]:
        """The function with the parts of complex numbers in a last dim."""
        pairs = zip(tensors, self.complex, strict=True)
        results = self(*[self.library.view_as_complex(t) if c else t for t, c in pairs])
        return [self.library.view_as_real(t) if t.is_complex() else t for t in results]

    def number(self, *tensors: Any) -> Any:
        """A sum of all results with weights: real, and different for each element."""
        total = None
        for t, weight in zip(self(*tensors), self.weights, strict=True):
            term = (t * weight).sum()
            term = term.real if term.is_complex() else term
            total = term if total is None else total + term
        return total

    def expect(self, results: list[torch.Tensor], places: list[int]) -> None:
        """Which results are taken, and what they look like."""
        self.places = places
        taken = [results[i] for i in places]
        self.weights = self.random(taken, 7)
        self.cotangents = self.random(taken, 20)
        self.tangents = self.random(self.plain, 40)
        self.every = tuple(range(len(self.plain)))

    def random(self, like: list[torch.Tensor], seed: int) -> list[Any]:
        """The same numbers on both sides."""
        return [self.here(cotangent(t.shape, t.dtype, seed + i)) for i, t in enumerate(like)]

    def parts(self) -> list[Any]:
        """The inputs of `real`."""
        return [self.here(torch.view_as_real(t) if t.is_complex() else t) for t in self.plain]

    def batch(self) -> list[Any]:
        """Two examples of the inputs."""
        return [self.here(torch.stack([t, t.flip(tuple(range(t.ndim)))])) for t in self.plain]


def vjp(side: Side) -> Any:
    results, pull = side.func.vjp(side, *side.inputs)
    return results, pull(side.cotangents)


def jvp(side: Side) -> Any:
    return side.func.jvp(side, tuple(side.inputs), tuple(side.tangents))


def jacrev(side: Side) -> Any:
    return side.func.jacrev(side.real, side.every)(*side.parts())


def jacfwd(side: Side) -> Any:
    return side.func.jacfwd(side.real, side.every)(*side.parts())


def hessian(side: Side) -> Any:
    def number(*tensors: Any) -> Any:
        pairs = zip(tensors, side.complex, strict=True)
        return side.number(*[side.library.view_as_complex(t) if c else t for t, c in pairs])

    return side.func.jacrev(side.func.jacrev(number, side.every), side.every)(*side.parts())


def vmap_grad(side: Side) -> Any:
    return side.func.vmap(side.func.grad(side.number, side.every))(*side.batch())


CHECKS = {"vjp": vjp, "jvp": jvp, "jacrev": jacrev, "jacfwd": jacfwd, "hessian": hessian, "vmap_grad": vmap_grad}
# The largest number of elements of the inputs.
LIMITS = {"jacrev": 200, "jacfwd": 200, "hessian": 30}


def sides(info: Any, sample: Any) -> tuple[Side, Side]:
    """PyTorch's side and Turnout's."""
    torch.manual_seed(0)
    given = [t for t in tensors(((sample.input, *sample.args), sample.kwargs)) if t.requires_grad]
    given = list({id(t): t for t in given}.values())
    finish = sample.output_process_fn_grad or (lambda result: result)
    values = (sample.input, *sample.args), sample.kwargs

    def theirs(*inputs: torch.Tensor) -> list[torch.Tensor]:
        (first, *rest), named = _put(values, given, inputs, lambda t: t.detach().clone())
        return tensors(finish(wrapped(info, info.op, first, *rest, **named)))

    function = taking_stands(info.op)

    def ours(*inputs: turnout.Tensor) -> list[turnout.Tensor]:
        (first, *rest), named = _put(values, given, inputs, lambda t: tensor_here(t.detach(), "cpu"))
        with Redirect("cpu"):
            args = stand((first, *rest))
            return tensors(here(finish(wrapped(info, function, *args, **stand(named)))))

    plain = [t.detach() for t in given]
    both = Side(torch, theirs, plain, lambda t: t), Side(turnout, ours, plain, lambda t: tensor_here(t, "cpu"))
    results = theirs(*given)
    for side in both:
        side.expect(results, [i for i, t in enumerate(results) if t.requires_grad])
    return both


def _put(value: Any, given: list[Any], inputs: Any, other: Function) -> Any:
    """The structure with `inputs` in the places of `given`, and other tensors made anew."""
    put = dict(zip(map(id, given), inputs, strict=True))
    return mapped(value, lambda v: v if not isinstance(v, torch.Tensor) else put[id(v)] if id(v) in put else other(v))


def smallest(info: Any, dtype: torch.dtype, count: int) -> list[Any]:
    """The samples with the fewest elements that are not empty."""
    sized = []
    for number, sample in enumerate(samples(info, dtype)):
        given = tensors(((sample.input, *sample.args), sample.kwargs))
        elements = sum(t.numel() for t in given if t.requires_grad)
        if elements and all(t.numel() for t in given):
            sized.append((elements, number, sample))
    return [sample for _, _, sample in sorted(sized, key=lambda each: each[:2])[:count]]


def judge(info: Any, dtype: torch.dtype, count: int = 2) -> dict[str, str]:
    """The first difference for each transform that differs, over the smallest samples."""
    found: dict[str, str] = {}
    if info.name in judging.RANDOM:
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in smallest(info, dtype, count):
            try:
                left, right = sides(info, sample)
            except Exception:  # noqa: BLE001 - a sample that PyTorch itself refuses says nothing here
                continue
            size = sum(t.numel() for t in left.plain)
            for name, check in CHECKS.items() if left.places else ():
                if size <= LIMITS.get(name, size) and name not in found:
                    verdict = _verdict(info, check, left, right)
                    if verdict:
                        found[name] = f"{judging._brief(sample)}: {verdict}"
    return found


def _verdict(info: Any, check: Function, left: Side, right: Side) -> str | None:
    try:
        expected = tensors(check(left))
    except Exception:  # noqa: BLE001 - what PyTorch cannot do says nothing here
        return None
    try:
        found = tensors(check(right))
    except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
        return judging.raised(error)
    if len(expected) != len(found):
        return f"expected {len(expected)} tensors, got {len(found)}"
    for position, (e, f) in enumerate(zip(expected, found, strict=True)):
        difference = differs(info, e, f)
        if difference:
            return f"{position}: {difference}"
    return None
