"""The programs of nested transforms, and random nestings, next to PyTorch's: values, dtypes, and what is tracked.

`NESTINGS=5000` in the environment runs that many of the random ones instead of a few.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

from transform_errors import ERRORS
from transform_functionalities import WITH_OTHERS
from transform_libraries import Transforms
from transform_nesting import Nesting
from transform_programs import PROGRAMS
from transform_tangents import TANGENTS
from turnout_aten import trees


class Torch:
    """PyTorch, in the same way."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.func, name) if hasattr(torch.func, name) else getattr(torch, name)

    def tensor(self, data: Any) -> torch.Tensor:
        return torch.tensor(data, dtype=torch.float64)

    def zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, dtype=torch.float64)

    def single(self, data: Any) -> torch.Tensor:
        return torch.tensor(data, dtype=torch.float32)

    def leaf(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().clone().requires_grad_()

    def float(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32)

    def code(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tensor(x.dtype.itemsize)

    def cast(self, enabled: bool = True) -> Any:
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled)

    def traced(self, function: Any, examples: tuple[Any, ...]) -> Any:
        return function

    def cubes(self) -> Any:
        return [lambda x: x * x * x] * 3

    def linearize(self, function: Any, *primals: Any) -> Any:
        """torch's own gives silently wrong tangents of functions that write in place; its jvp does not."""

        def run(*tangents: Any) -> Any:
            given = [torch.utils._pytree.tree_map(torch.clone, v) for v in (primals, tangents)]
            return torch.func.jvp(function, *given)

        return run(*torch.utils._pytree.tree_map(torch.zeros_like, primals))[0], lambda *tangents: run(*tangents)[1]

    def imperative_grad(self, y: Any, x: Any, v: Any) -> Any:
        return torch.autograd.grad(y, x, v, create_graph=True)[0]


# What torch refuses: any write into a captured tensor inside of grad, where values that are not tracked may be written here;
# and imperative gradients of tensors inside vmap, which are not tracked there.
# torch cannot differentiate a linear function of tangents again; of
# hessian(..., -1) it gives zeros.
REFUSED = {
    "47 a captured tensor written into, not tracked", "36 imperative gradients of examples",
    "derivatives of linear functions of tangents", "second derivatives by the last argument",
}  # fmt: skip


# What torch lets pass: a pullback that uses a value written since, and an example of an earlier vmap in the next one.
SILENT = {"45 a captured tensor written before the pullback", "54 an example used in the next vmap"}


@pytest.mark.filterwarnings("ignore:transforms.*has no batching rule")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # and linearize
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # operators that torch has no batching rule for
@pytest.mark.parametrize("name", [name for name in PROGRAMS | WITH_OTHERS | TANGENTS if name not in REFUSED])
def test_programs_give_what_torch_gives(name: str) -> None:
    program = (PROGRAMS | WITH_OTHERS | TANGENTS)[name]
    ours, theirs = trees.flatten(program(Transforms())), trees.flatten(program(Torch()))
    assert ours[1] == theirs[1]
    for one, other in zip(ours[0], theirs[0], strict=True):
        assert one.requires_grad == other.requires_grad
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-12, strict=True)


@pytest.mark.parametrize("name", [name for name in ERRORS if name not in SILENT])
def test_what_must_be_an_error_is_one_in_torch(name: str) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        ERRORS[name](Torch())
    with pytest.raises((RuntimeError, ValueError)):
        ERRORS[name](Transforms())


def rows(library: Any, draw: Any, modes: tuple[str, ...]) -> list[Any]:
    """What each example of nested vmaps drew."""
    t = library

    def function(x: Any) -> Any:
        return draw(t, x)

    for mode in reversed(modes):
        function = t.vmap(function, randomness=mode)
    return function(t.zeros(*(3,) * len(modes), 8) + 0.5).reshape(-1, 8).tolist()


def alike(found: list[Any]) -> list[list[bool]]:
    return [[a == b for b in found] for a in found]


@pytest.mark.parametrize("modes", [("same",), ("different",), ("same", "different"), ("different", "same")])
@pytest.mark.parametrize(
    "draw",
    [
        lambda t, x: t.rand(8),
        lambda t, x: t.rand_like(x),
        lambda t, x: t.randint(1 << 40, (8,)),
        lambda t, x: t.randn(8),
        lambda t, x: t.grad(lambda a: (a * t.rand(8)).sum())(x),
    ],
)
def test_which_examples_draw_the_same_numbers_is_as_in_torch(draw: Any, modes: tuple[str, ...]) -> None:
    assert alike(rows(Transforms(), draw, modes)) == alike(rows(Torch(), draw, modes))


# A result that is the same for all examples at another place than in front, and writes into tangents that are zero.
TORCH_CANNOT = ("must match the existing size (3) at non-singleton dimension", "ZeroTensors are immutable")
COUNT = int(os.environ.get("NESTINGS", "200"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
@pytest.mark.parametrize("start", range(0, COUNT, 50))
def test_random_nestings_give_what_torch_gives(start: int) -> None:
    wrong = {}
    for seed in range(start, min(start + 50, COUNT)):
        program = Nesting(seed)
        ours = program(Transforms())
        try:
            theirs = program(Torch())
        except RuntimeError as error:
            if not any(text in str(error) for text in TORCH_CANNOT):
                raise
            continue
        for one, other in zip(ours, theirs, strict=True):
            x, y = one.detach().numpy(), other.detach().numpy()
            if one.requires_grad != other.requires_grad or not np.allclose(x, y, rtol=1e-8, atol=1e-10):
                wrong[seed] = (program.names, x, y)
    assert not wrong


# What torch refuses besides, for reasons of its own.
TORCH_REFUSES = {
    **dict.fromkeys(TORCH_CANNOT, "see there"),
    "Batching rule not implemented for aten::_make_dual": "a tangent for each example of a tensor that is not batched",
    "vmap: inplace arithmetic": "a tensor that is the same for all examples, and is an input of a forward level here",
    "doesn't match the broadcast shape": "the same",
    "modified by an inplace operation": "a value that the gradient of Turnout does not need",
    "A view was created in no_grad mode": "where the write is not tracked, Turnout takes it",
}
# What Turnout refuses besides.
REFUSED_HERE = {"was changed in place after it was used": "a value that the gradient of torch does not need"}


def outcome(program: Any, library: Any) -> Any:
    """The results as arrays and whether they are tracked, or the error."""
    try:
        return [(t.detach().numpy(), t.requires_grad) for t in program(library)]
    except RuntimeError as error:
        return error


def agree(one: Any, other: Any) -> bool:
    """Whether two results do, up to the rounding errors of the largest of their elements."""
    size = np.abs(other[0]).max(initial=1.0)
    return one[1] == other[1] and np.allclose(one[0], other[0], rtol=1e-6, atol=1e-10 * size)


def difference(ours: Any, theirs: Any) -> str:
    """What is different and no library's own, in words."""
    if isinstance(theirs, RuntimeError):
        is_known = isinstance(ours, RuntimeError) or any(text in str(theirs) for text in TORCH_REFUSES)
        return "" if is_known else f"only torch refuses: {theirs}"
    if isinstance(ours, RuntimeError):
        return "" if any(text in str(ours) for text in REFUSED_HERE) else f"only Turnout refuses: {ours}"
    return "" if all(map(agree, ours, theirs)) else f"{ours} and not {theirs}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
def test_random_nestings_of_forward_mode_give_what_torch_gives(seeds: Any) -> None:
    """With writes into inputs, views and what gradients need, no_grad inside of tangents, hessian and linearize."""
    wrong = {}
    for seed in seeds(400):
        program = Nesting(seed, forward=True)
        found = difference(outcome(program, Transforms()), outcome(program, Torch()))
        if found:
            wrong[seed] = (program.names, found)
    assert not wrong, wrong
