"""Backward and forward compatibility of a changed schema."""

import pytest

from turnout.schema import FunctionSchema
from turnout_aten.declarations.compatibility import backward_break, forward_break


@pytest.mark.parametrize(("older", "newer", "backward", "forward"), [
    ("f(int x) -> ()", "f(int x) -> ()", True, True),
    ("f(int x) -> ()", "f(int x, int y) -> ()", False, False),
    ("f(int x) -> ()", "f(int x, int y=1) -> ()", True, True),
    ("f(int x) -> ()", "f(int x, int[2] y=1) -> ()", True, False),
    ("f(int x, int y=1) -> ()", "f(int x) -> ()", False, True),
    ("f(int x, int y) -> ()", "f(int x) -> ()", False, False),
    ("f(int x) -> ()", "f(int y) -> ()", False, False),
    ("f(int x=1) -> ()", "f(int x=2) -> ()", False, False),
    ("f(float x=1) -> ()", "f(float x=1.0) -> ()", True, True),
    ("f(Scalar x=1) -> ()", "f(Scalar x=True) -> ()", False, False),
    ("f(int x) -> ()", "f(*, int x) -> ()", False, False),
    ("f(*, int x) -> ()", "f(int x) -> ()", True, False),
    ("f(Tensor x) -> ()", "f(Tensor? x) -> ()", True, False),
    ("f(Tensor? x) -> ()", "f(Tensor x) -> ()", False, True),
    ("f(int x) -> ()", "f(SymInt x) -> ()", True, True),
    ("f(int x) -> ()", "f(Scalar x) -> ()", True, False),
    ("f(int[] x) -> ()", "f(int[2] x) -> ()", False, False),
    ("f(Tensor[] x) -> ()", "f(Tensor?[] x) -> ()", False, False),
    ("f(Tensor x) -> ()", "f(Tensor(a!) x) -> ()", False, False),
    ("f() -> Tensor", "f() -> Tensor values", False, True),
    ("f() -> Tensor", "f() -> Tensor[]", False, False),
    ("f() -> Tensor", "f() -> (Tensor, Tensor)", False, False),
    ("f() -> Tensor", "f.a() -> Tensor", False, False),
    ("f(int x, *, Tensor(a!) out) -> Tensor(a!)", "f(int x, int y=2, *, Tensor(a!) out) -> Tensor(a!)", True, True),
    ("f(int x, *, Tensor(a!) out) -> Tensor(a!)", "f(int x, int y, *, Tensor(a!) out) -> Tensor(a!)", False, False),
    ("f(int x, *, Tensor(a!) out) -> Tensor(a!)", "f(int x, *, Tensor(b!) out) -> Tensor(b!)", False, False),
])  # fmt: skip
def test_a_changed_schema_says_whether_old_calls_and_old_runtimes_still_work(older, newer, backward, forward):
    new, old = FunctionSchema.parse(newer), FunctionSchema.parse(older)
    assert (backward_break(new, old) is None) is backward
    assert (forward_break(new, old) is None) is forward
