"""What custom operators written for PyTorch use, after their import was changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import turnout
from outcomes import refused
from turnout import library
from turnout.errors import ConflictError
from turnout.errors.library import KernelResultError
from turnout.library import Library

aten = turnout.ops.aten


@pytest.fixture
def lib() -> Iterator[Library]:
    with Library("ported", "FRAGMENT") as made:
        yield made


def test_a_device_in_a_signature_is_one_in_the_schema() -> None:
    @library.custom_op("ported::filled", mutates_args=())
    def filled(n: int, device: turnout.device | None = None) -> turnout.Tensor:
        return turnout.ones(n, device=device)

    assert str(filled.operator.schema) == "ported::filled(SymInt n, Device? device=None) -> Tensor"
    assert filled(2, turnout.device("cpu")).tolist() == [1.0, 1.0]
    filled.undo()


@pytest.mark.parametrize("mode", [turnout.FakeMode, lambda: turnout.device("meta")], ids=["fake", "meta"])
def test_operators_that_return_what_they_write_need_no_fake_kernel(mode: Any) -> None:
    def twice_(x: turnout.Tensor) -> turnout.Tensor:
        return x.mul_(2)

    def both(x: turnout.Tensor, *, up: turnout.Tensor, down: turnout.Tensor) -> tuple[turnout.Tensor, turnout.Tensor]:
        return up.copy_(x + 1), down.copy_(x - 1)

    inplace = library.custom_op("ported::twice_", twice_, mutates_args=["x"], tags=turnout.Tag.inplace)
    out = library.custom_op("ported::both", both, mutates_args=["up", "down"], tags=turnout.Tag.out)
    with mode():
        x, up, down = turnout.ones(2), turnout.ones(2), turnout.ones(2)
        assert inplace(x) is x
        made = out(x, down=down, up=up)
        assert (made[0] is up, made[1] is down) == (True, True)
    inplace.undo(), out.undo()


def test_a_rule_may_leave_out_the_gradients_of_what_was_not_passed(lib: Library) -> None:
    lib.define("f(Tensor x, Tensor? y=None, float s=1.0) -> Tensor")
    lib.impl("f", lambda x, y, s: x * s if y is None else x * y, "CPU")
    library.register_autograd("ported::f", lambda ctx, grad: grad * 3, lib=lib)
    x, y = turnout.ones(2, requires_grad=True), turnout.ones(2)
    turnout.ops.ported.f(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert refused(KernelResultError, turnout.ops.ported.f(x, y).sum().backward).startswith("ported::f: ")


def test_allow_override_false_refuses_a_second_kernel_of_the_same_library_too(lib: Library) -> None:
    def first(x: Any) -> Any:
        return x

    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", first, "CPU", allow_override=False)
    says = refused(ConflictError, lib.impl, "f", lambda x: x, "CPU", allow_override=False)
    assert says.startswith("ported::f: there is a kernel for CPU, and allow_override=False\n  first   ported, ")
    assert says.endswith("\n  to fix  leave allow_override out")
    lib.impl("f", first, "CPU")
    library.register_fake("ported::f", first, lib=lib, allow_override=False)
    refused(ConflictError, library.register_fake, "ported::f", first, lib=lib, allow_override=False)


def test_a_check_that_has_nothing_to_try_is_a_success(lib: Library) -> None:
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2)
    report = library.opcheck(turnout.ops.ported.f.default, (turnout.ones(2),))
    assert set(report.values()) == {"SUCCESS"}
    assert "test_autocast" in report.untried
    assert "  not tried: it has no rule for autocast" in str(report)


def test_operators_say_what_they_are() -> None:
    op, view = aten.add.Tensor, aten.t.default
    assert (str(op), op.__name__, str(view), view.__name__, str(aten.add)) == (
        "aten.add.Tensor",
        "add.Tensor",
        "aten.t.default",
        "t.default",
        "aten.add",
    )
    assert op.overloadpacket is aten.add
    assert (op.is_view, view.is_view) == (False, True)
    assert aten.matmul.default.has_kernel_for_dispatch_key("CompositeImplicitAutograd")
    assert not op.has_kernel_for_dispatch_key("CompositeImplicitAutograd")
    x = turnout.ones(2, 2)
    assert aten.matmul.default.decompose(x, x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert op.decompose(x, x) is NotImplemented
    alpha, target = op.schema.arguments[2], aten.add_.Tensor.schema.arguments[0]
    assert (alpha.default_value, alpha.alias_info, op.schema.arguments[0].default_value) == (1, None, None)
    assert (target.alias_info.is_write, target.alias_info.before_set, target.alias_info.after_set) == (True, {"a"}, {"a"})
