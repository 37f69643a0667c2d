"""Backward and forward compatibility against torch's own schema checker, on pairs of schemas."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

from turnout.schema import FunctionSchema  # noqa: E402
from turnout_aten.declarations.compatibility import backward_break, forward_break  # noqa: E402

TYPES = [
    "Tensor", "Tensor?", "int", "int?", "SymInt", "SymInt?", "int[]", "int[2]", "int[]?", "SymInt[]", "SymInt[2]",
    "int?[]", "float", "float?", "Scalar", "Scalar?", "bool", "bool?", "bool[2]", "str", "str?", "Device", "Device?",
    "Tensor[]", "Tensor?[]", "Generator", "Generator?", "Scalar[]", "Scalar[]?", "float[]", "complex", "Tensor(a)",
    "Tensor(a!)", "Tensor(b)", "Tensor(a!)[]", "Storage",
]  # fmt: skip

CHANGES = [
    "f(int x) -> ()",
    "f(int y) -> ()",
    "f(int x, int y=1) -> ()",
    "f(int x, int y=2) -> ()",
    "f(int x, int[2] y=1) -> ()",
    "f(int x, Tensor? y=None) -> ()",
    "f(int x, *, int y=1) -> ()",
    "f(int x, int y=1, *, int z=2) -> ()",
    "f(int x, int y=1, int[] z=[1]) -> ()",
    "f(int x, int y=1, *, bool b=True, str s='q') -> ()",
    "f(int y=1, int x=2) -> ()",
    "f(*, int y=1, int x) -> ()",
    "f(int? x=None) -> ()",
    "f(int? x) -> ()",
    "f(int? x=1) -> ()",
    "f(float x=1) -> ()",
    "f(float x=1.0) -> ()",
    "f(Scalar x=1) -> ()",
    "f(Scalar x=1.0) -> ()",
    "f(Scalar x=True) -> ()",
    "f(int[2] x=1) -> ()",
    "f(int[2] x=[1,1]) -> ()",
    "f.a(int x) -> ()",
    "g(int x) -> ()",
    "ns::f(int x) -> ()",
    "f(int x) -> Tensor",
    "f(int x) -> (Tensor, Tensor)",
    "f(int x, *, Tensor(a!) out) -> Tensor(a!)",
    "f(int x, *, Tensor(b!) out) -> Tensor(b!)",
    "f(int x, int y=1, *, Tensor(a!) out) -> Tensor(a!)",
    "f(int x, int y, *, Tensor(a!) out) -> Tensor(a!)",
    "f(int x, *, int y=1, Tensor(a!) out) -> Tensor(a!)",
    "f(int x, int[2] y=1, *, Tensor(a!) out) -> Tensor(a!)",
    "f(int x, *, Tensor(a!) out, Tensor(b!) out1) -> Tensor(a!)",
    "f(int x, *, Tensor(a!) out) -> Tensor(a!) y",
]


def torch_backward(older: str, newer: str) -> bool:
    return torch._C.parse_schema(newer).is_backward_compatible_with(torch._C.parse_schema(older))


def torch_forward(older: str, newer: str) -> bool:
    return torch._C.parse_schema(newer).check_forward_compatible_with(torch._C.parse_schema(older))[0]


def pairs() -> list[tuple[str, str]]:
    arguments = [f"f({t} x) -> ()" for t in TYPES]
    read = [t.replace("!", "") for t in TYPES if not t.endswith("?")]
    returns = [f"f(Tensor(a) x, Tensor(b) y) -> {t}" for t in read]
    found = itertools.chain(
        itertools.product(arguments, arguments), itertools.product(returns, returns), itertools.product(CHANGES, CHANGES)
    )
    # torch 2.13 reads past the end of the arguments where an out argument is gone, and for some raises IndexError.
    return [(older, newer) for older, newer in found if not older.count(" out") > newer.count(" out") > 0]


def test_backward_compatibility_is_equal_on_every_pair():
    checked = 0
    for older, newer in pairs():
        found = backward_break(FunctionSchema.parse(newer), FunctionSchema.parse(older)) is None
        assert found == torch_backward(older, newer), (older, newer)
        checked += 1
    assert checked > 3000


def differs(older: FunctionSchema, newer: FunctionSchema) -> bool:
    """Pairs that torch calls forward compatible although a call recorded with `newer` fails or returns other things."""
    if [(r.type, r.annotation) for r in older.returns] != [(r.type, r.annotation) for r in newer.returns]:
        return True
    kept = {a.name: a for a in newer.arguments}
    if any(a.name not in kept and not a.has_default for a in older.arguments):
        return True
    return any(a.kwarg_only and a.name in kept and not kept[a.name].kwarg_only for a in older.arguments)


def test_forward_compatibility_is_equal_but_for_pairs_that_would_fail():
    different = 0
    for older, newer in pairs():
        old, new = FunctionSchema.parse(older), FunctionSchema.parse(newer)
        found = forward_break(new, old) is None
        if differs(old, new):
            different += 1
            assert not found or torch_forward(older, newer), (older, newer)
        else:
            assert found == torch_forward(older, newer), (older, newer)
    assert different < 1500
