"""Random chains of view operators against PyTorch: shape, strides, offset, and whether the call is an error."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402
from turnout.registry import find_operator  # noqa: E402

SHAPES = [(), (1,), (5,), (2, 3), (4, 1, 3), (2, 3, 4), (1, 2, 1, 3), (0, 3), (2, 0, 2)]


def draw(pick, shape):
    """An operator with arguments that are sometimes wrong."""
    n = len(shape)
    dim = lambda: pick.randint(-n - 1, n)  # noqa: E731
    numel = 1
    for length in shape:
        numel *= length
    divisors = [d for d in range(1, 13) if numel and numel % d == 0] or [1]
    cut = pick.choice(divisors)
    return pick.choice([
        ("view", [pick.choice([-1, cut]), pick.choice([cut, numel // cut, -1])]),
        ("view", [*shape[:1], -1]),
        ("reshape", [cut, -1]),
        ("transpose.int", dim(), dim()),
        ("t",),
        ("permute", pick.sample(range(n), n)),
        ("permute", [dim() for _ in range(n)]),
        ("expand", [pick.randint(1, 3) if length == 1 else pick.choice([-1, length]) for length in (1, *shape)]),
        ("expand", [3, *shape[1:]]),
        ("squeeze",),
        ("squeeze.dim", dim()),
        ("squeeze.dims", [dim(), dim()]),
        ("unsqueeze", dim()),
        ("select.int", dim(), pick.randint(-4, 4)),
        ("slice.Tensor", dim(), *[pick.choice([None, pick.randint(-5, 5)]) for _ in range(2)], pick.randint(1, 3)),
        ("diagonal", pick.randint(-2, 2), dim(), dim()),
        ("unfold", dim(), pick.randint(0, 4), pick.randint(0, 3)),
        ("narrow", dim(), pick.randint(-3, 3), pick.randint(0, 3)),
        ("flatten.using_ints", dim(), dim()),
        ("movedim.int", dim(), dim()),
        ("movedim.intlist", [dim(), dim()], [dim(), dim()]),
        ("alias",),
        ("unbind.int", dim()),
        ("split.Tensor", pick.randint(0, 3), dim()),
        ("split_with_sizes", [1, max(0, (shape[0] if shape else 1) - 1)], 0),
        ("chunk", pick.randint(1, 4), dim()),
    ])  # fmt: skip


def outcome(op, tensor, args):
    """What a call gives: its tensors, or the error."""
    try:
        result = op(tensor, *args)
    except (RuntimeError, IndexError, ValueError) as error:
        return error
    return list(result) if isinstance(result, (list, tuple)) else [result]


def facts(tensor):
    """Shape and, for tensors with elements, strides of the dims that matter and offset."""
    shape = tuple(tensor.shape)
    if 0 in shape:
        return shape
    strides = tuple(s for s, n in zip(tensor.stride(), shape, strict=True) if n != 1)
    return shape, strides, tensor.storage_offset()


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_views_are_those_of_torch(seed):
    pick = random.Random(seed)
    for _ in range(60):
        shape = pick.choice(SHAPES)
        theirs, ours = torch.zeros(shape), turnout.zeros(shape, device="cpu")
        chain = []
        for _ in range(5):
            name, *args = draw(pick, tuple(theirs.shape))
            chain.append((name, args))
            base, _, overload = name.partition(".")
            expected = outcome(getattr(getattr(torch.ops.aten, base), overload or "default"), theirs, args)
            found = outcome(find_operator(f"aten::{name}"), ours, args)
            assert isinstance(expected, Exception) == isinstance(found, Exception), (shape, chain, expected, found)
            if isinstance(expected, Exception):
                assert isinstance(found, turnout.TurnoutError), found
                continue
            assert [facts(e) for e in expected] == [facts(f) for f in found], (shape, chain)
            if not expected:
                break
            at = pick.randrange(len(expected))
            theirs, ours = expected[at], found[at]
