"""What may stand in the place of a tensor in an optimiser's rule, with the methods of tensors that rules call.

A rule is written once, `mean.lerp_(gradient, 0.1)`, and its operands decide how it runs:

- a tensor: the rule is called for each parameter;
- `Lists`: for all parameters at once, by the operators on lists, where a backend has a kernel for them;
- `Recorded`: for a step that is differentiated. A write makes a new tensor, so that what autograd saved stays as it was.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from turnout import Tensor, ops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Lists:
    """Tensors of one device and dtype. A method calls the operator on lists of its name, `add_` for example `_foreach_add_`."""

    __slots__ = ("tensors",)

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operator = getattr(ops.aten, f"_foreach_{name}")

        def call(*args: Any, **kwargs: Any) -> Lists:
            given = [a.tensors if isinstance(a, Lists) else a for a in args]
            made = operator(self.tensors, *given, **kwargs)
            return self if made is None else Lists(made)

        return call


class Recorded:
    """A tensor whose writes are results: `mul_` keeps the product in place of the tensor, which stays as it was."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        stem = name.removesuffix("_")

        def call(*args: Any, **kwargs: Any) -> Recorded:
            given = [a.tensor if isinstance(a, Recorded) else a for a in args]
            by_tensor = _BY_TENSOR.get(stem) if any(isinstance(v, Tensor) for v in kwargs.values()) else None
            made = by_tensor(self.tensor, *given, *kwargs.values()) if by_tensor else getattr(self.tensor, stem)(*given, **kwargs)
            if stem == name:
                return Recorded(made)
            self.tensor = made
            return self

        return call

    def copy_(self, other: Recorded) -> Recorded:
        """Take another tensor's place."""
        self.tensor = other.tensor
        return self


# With a learning rate that requires a gradient: as `alpha` or `value`, its number alone would count.
_BY_TENSOR: dict[str, Callable[..., Tensor]] = {
    "add": lambda self, other, alpha: self + other * alpha,
    "addcmul": lambda self, tensor1, tensor2, value: self + tensor1 * tensor2 * value,
    "addcdiv": lambda self, tensor1, tensor2, value: self + tensor1 / tensor2 * value,
}


def on_lists(device: Any) -> bool:
    """Whether a device's backend has a kernel that serves a list of tensors in one call."""
    return bool(_add_of_lists().has_kernel_for_dispatch_key(device.backend.name))


@cache
def _add_of_lists() -> Any:
    """The operator that is asked in each step; looking it up takes longer than its answer."""
    return ops.aten._foreach_add_.List
