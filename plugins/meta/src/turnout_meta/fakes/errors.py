"""The texts of errors about fake tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors.layout import report
from turnout_aten.errors.transforms import key_included

if TYPE_CHECKING:
    from turnout.operators import Operator


def no_values(asked: str) -> str:
    """Something asked for values."""
    head = f"a fake tensor has no values: {asked} cannot be read"
    return report(head, ("to fix", "call this on real tensors, or compute it with operators"))


def real_input(op: Operator, name: str, description: str) -> str:
    """A real tensor met a fake mode."""
    return report(
        f"{op.qualified_name}: '{name}' is a real tensor, and the call is for fake tensors",
        ("argument", description),
        ("to fix", "fake = mode.from_tensor(tensor), or FakeMode(allow_non_fake_inputs=True), which does it for each argument"),
    )


def two_modes(op: Operator, name: str) -> str:
    """Fake tensors of several modes met."""
    return report(
        f"{op.qualified_name}: '{name}' belongs to another FakeMode than the call",
        ("to fix", "make all fake tensors of a program with one FakeMode"),
    )


def inside_vmap() -> str:
    """from_tensor of an example inside vmap."""
    return "from_tensor: the tensor is an example inside vmap, which is not a separate tensor; convert the whole batch outside"


def real_result(op: Operator) -> str:
    """A fake kernel returned a tensor with data."""
    return report(
        f"{op.qualified_name}: its fake kernel returned a real tensor",
        ("to fix", "make the result with a factory of an argument, such as x.new_empty(size)"),
    )


NO_MODE = key_included("Fake", "without fake tensors and outside a FakeMode", "turnout.FakeMode")
KEPT_CONTEXT = "new_dynamic_size: only a fake kernel can call it, while it runs"
OTHER_MODE = "from_tensor: the tensor belongs to another FakeMode; make all fake tensors of a program with one FakeMode"


def no_item(dtype: object) -> str:
    """`item` of a fake tensor whose value is no integer."""
    return no_values(f"the number of a {getattr(dtype, 'name', dtype)} tensor")
