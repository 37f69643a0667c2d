"""Random programs of views, writes and pointwise operators, run by PyTorch and here: values, gradients, and which step refuses.

A program is a list of steps over numbered tensors. Both sides make the same choices because a step names its operands by
number. Where a step raises on one side it must raise on the other, and the program goes on without it.
"""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

import turnout  # noqa: E402

PROGRAMS = 400
STEPS = 14


class Side:
    """One library under the names the programs use."""

    def __init__(self, library, make):
        self.library = library
        self.make = make
        self.tensors = []

    def leaf(self, data, tracked):
        tensor = self.make(data)
        return tensor.requires_grad_() if tracked else tensor


def to_torch(data):
    return torch.tensor(data, dtype=torch.float64)


def to_turnout(data):
    return turnout.tensor(data, dtype=turnout.float64)


# name -> how many operands and the step; every tensor has 2 dims of length 3, or fewer dims after a view
VIEWS = {
    "row": lambda x: x[1],
    "head": lambda x: x[:2],
    "turn": lambda x: x.transpose(0, -1),
    "flat": lambda x: x.reshape(-1),
    "diagonal": lambda x: x.diagonal(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "again": lambda x: x.view(x.shape),
    "widen": lambda x: x.expand((2, *x.shape)),
    "first": lambda x: x.unbind(0)[0],
    "part": lambda x: x.split(2)[0],
    "detach": lambda x: x.detach(),
}
FUNCTIONS = {
    "mul": lambda x, y: x * y,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - 2 * y,
    "sin": lambda x, y: x.sin(),
    "tanh": lambda x, y: x.tanh(),
    "exp": lambda x, y: (x * 0.1).exp(),
    "sum": lambda x, y: x.sum(),
    "clone": lambda x, y: x.clone(),
    "max": lambda x, y: x.max(0)[0],
}
WRITES = {
    "mul_": lambda x, y: x.mul_(y),
    "add_": lambda x, y: x.add_(y),
    "copy_": lambda x, y: x.copy_(y),
    "zero_": lambda x, y: x.zero_(),
    "sin_": lambda x, y: x.sin_(),
    "tanh_": lambda x, y: x.tanh_(),
    "scale_": lambda x, y: x.mul_(0.5),
    "fill_": lambda x, y: x.fill_(0.25),
    "masked_fill_": lambda x, y: x.masked_fill_(x > 0.3, 0.1),
    "set": lambda x, y: x.__setitem__(0, y.sum() * 0.1) or x,
}


def program(rng):
    """Steps as (kind, name, operand, operand, under no_grad)."""
    steps = []
    for _ in range(STEPS):
        table = rng.choices((VIEWS, FUNCTIONS, WRITES), (4, 3, 4))[0]
        steps.append((table, rng.choice(sorted(table)), rng.random(), rng.random(), rng.random() < 0.06))
    return steps


def run_step(side, step):
    table, name, first, second, unrecorded = step
    x = side.tensors[int(first * len(side.tensors))]
    y = side.tensors[int(second * len(side.tensors))]
    mode = side.library.no_grad() if unrecorded else side.library.enable_grad()
    try:
        with mode:
            return table[name](x) if table is VIEWS else table[name](x, y)
    except (RuntimeError, IndexError, TypeError) as error:
        return error


def values(tensor):
    return numpy.asarray(tensor.detach().tolist())


def odd(tensor):
    """A torch view made under no_grad of a tracked base, which calls itself a leaf that requires a gradient.

    # differs from torch: here it requires none, and torch accumulates a gradient into it.
    """
    try:
        return tensor._base is not None and tensor.requires_grad and tensor.grad_fn is None
    except RuntimeError:
        return False


def shares_places(step, tensors):
    """A write into an expanded tensor, which torch allows for constants.

    # differs from torch: never allowed here.
    """
    table, _, first, _, _ = step
    target = tensors[int(first * len(tensors))]
    return table is WRITES and any(n > 1 and s == 0 for n, s in zip(target.shape, target.stride(), strict=True))


def compare(theirs, ours, where):
    numpy.testing.assert_allclose(values(ours), values(theirs), rtol=1e-9, atol=1e-12, err_msg=where)


def requires(tensor):
    """requires_grad, or None where asking raises: a stale view that may not follow its base."""
    try:
        return tensor.requires_grad, tensor.is_leaf
    except RuntimeError:
        return None


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_values_gradients_and_refusals_are_those_of_torch(seed):
    rng = random.Random(seed)
    sides = [Side(torch, to_torch), Side(turnout, to_turnout)]
    for tracked in (True, True, False):
        data = [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(3)]
        for side in sides:
            side.tensors.append(side.leaf(data, tracked))
    leaves = [side.tensors[:2] for side in sides]
    trail = []
    for step in program(rng):
        if shares_places(step, sides[0].tensors):
            continue
        theirs, ours = (run_step(side, step) for side in sides)
        if isinstance(ours, Exception) and "share part of their memory" in str(ours):
            return  # differs from torch: it looks at contiguous tensors only
        if isinstance(theirs, Exception) and "refer to a single memory location" in str(theirs):
            return  # differs from torch: the same elements in another shape are refused there
        _, name, first, second, unrecorded = step
        n = len(sides[0].tensors)
        where = f"seed {seed}: " + "; ".join(
            [*trail, f"{n}={name}({int(first * n)},{int(second * n)}){'!' * unrecorded}"]
        )
        refused = isinstance(theirs, Exception), isinstance(ours, Exception)
        assert refused[0] == refused[1], f"{where}\n  torch {theirs!r}\n  here  {ours!r}"
        if refused[0]:
            continue
        trail.append(where.rsplit(": ", 1)[-1].rsplit("; ", 1)[-1])
        if any(odd(t) for t in (theirs, *sides[0].tensors)):
            return
        for side, made in zip(sides, (theirs, ours), strict=True):
            side.tensors.append(made)
        for t, o in zip(sides[0].tensors, sides[1].tensors, strict=True):
            compare(t, o, where)
            assert requires(t) == requires(o), where
    total = []
    for side in sides:
        try:
            total.append(sum((t * t).sum() for t in side.tensors if requires(t) is not None))
        except RuntimeError as error:
            total.append(error)
    assert isinstance(total[0], Exception) == isinstance(total[1], Exception), (trail, total)
    if isinstance(total[0], Exception) or not total[0].requires_grad:
        return
    gradients = []
    for side, end, starts in zip(sides, total, leaves, strict=True):
        try:
            gradients.append(side.library.autograd.grad(end, starts, allow_unused=True))
        except RuntimeError as error:
            gradients.append(error)
    assert isinstance(gradients[0], Exception) == isinstance(gradients[1], Exception), (trail, gradients)
    if not isinstance(gradients[0], Exception):
        for t, o in zip(*gradients, strict=True):
            assert (t is None) == (o is None), trail
            if t is not None:
                compare(t, o, str(trail))
