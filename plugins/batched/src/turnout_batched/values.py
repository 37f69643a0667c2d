"""Tensors inside vmap: a handle that hides one dim of its value.

The value is the tensor of the next outer level: a plain one, or another batched one. A batched tensor has the key Batched and no
other, so no kernel below meets one; it has no history, version or memory of its own, those are its value's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from turnout.keys import KEYS
from turnout.operators.stubs import compile_function
from turnout_aten.tensor.tensor import Tensor, wrapping_lines
from turnout_aten.tensor.wrappers import WrapperTensor
from turnout_batched import errors

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_batched.levels import Level

BATCHED = KEYS.bit("Batched")


class BatchedValue:
    """What a batched tensor has in place of an array: the value, its batch dim, the level, and the shape of one example."""

    __slots__ = ("bdim", "level", "shape", "value")

    def __init__(self, value: Tensor, bdim: int, level: Level, shape: tuple[int, ...]) -> None:
        self.value = value
        self.bdim = bdim
        self.level = level
        self.shape = shape


class BatchedTensor(WrapperTensor):
    """The tensor of one example, as the mapped function sees it. What needs memory or history goes to the value or is refused."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        return self.array.value.dtype

    def stride(self, dim: int | None = None) -> Any:
        """The strides of one example in elements, or the one of one dimension."""
        batched = self.array
        strides = batched.value.stride()
        strides = strides[: batched.bdim] + strides[batched.bdim + 1 :]
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """0, as if each example had its own storage."""
        return 0

    # ---- versions and aliases: the value's

    def version(self) -> int:
        return self.array.value.version()

    def bump_version(self) -> None:
        self.array.value.bump_version()

    def count_apart(self) -> None:
        self.array.value.count_apart()

    def new_alias(self, array: Any, offset: int) -> Tensor:
        """Another handle on the same example; a batched tensor has no array of its own."""
        return batched_tensor(array.value, array.bdim, array.level)

    def is_alias_of(self, other: Tensor) -> bool:
        return self is other or physical(self).is_alias_of(physical(other))

    # ---- gradients: the value's, and never those of imperative autograd

    @property
    def requires_grad(self) -> bool:
        return self.array.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Refused, because all examples share the value."""
        raise errors.VmapError(errors.imperative("requires_grad_()"))

    @property
    def grad(self) -> Tensor:
        return None  # type: ignore[return-value]  # as `Tensor.grad` has it

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        raise errors.VmapError(errors.imperative("setting .grad"))

    @property
    def is_leaf(self) -> bool:
        return self.array.value.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self.array.value.grad_fn

    def set_gmask(self, mask: int) -> None:
        raise errors.VmapError(errors.imperative("tracking gradients"))

    def detach_(self) -> Tensor:
        """Forget the history of the value; returns self. Raises AliasError for a view."""
        self.array.value.detach_()
        return self

    def backward(self, *args: Any, **kwargs: Any) -> None:
        raise errors.VmapError(errors.imperative("backward()"))

    def retain_grad(self) -> None:
        raise errors.VmapError(errors.imperative("retain_grad()"))

    # ---- values on the host: there is none

    def item(self) -> NoReturn:
        raise errors.VmapError(errors.no_value("item()"))

    def data_ptr(self) -> NoReturn:
        raise errors.VmapError(errors.no_memory("data_ptr()"))

    def tolist(self) -> NoReturn:
        raise errors.VmapError(errors.no_value("tolist()"))

    def __bool__(self) -> bool:
        raise errors.VmapError(errors.no_value("bool()"))

    def no_memory(self, what: str) -> errors.VmapError:
        return errors.VmapError(errors.no_memory(what))

    def __repr__(self) -> str:
        batched = self.array
        size = batched.value.shape[batched.bdim]
        what = f"{self.dtype.name} {list(self.shape)} of vmap level {batched.level.num}"
        return f"<one of {size} examples: {what}, in {batched.value!r}>"


def _compiled() -> Any:
    made = wrapping_lines(keys="KEYS", ver="0", cls="BatchedTensor")
    lines = ["def fresh(array, device):", *(f"    {line}" for line in [*made, "return t"]), ""]
    namespace = {"BatchedTensor": BatchedTensor, "KEYS": BATCHED, "__name__": __name__}
    return compile_function("\n".join(lines), "fresh", "<new batched tensor>", namespace)


_fresh = _compiled()


def batched_tensor(value: Tensor, bdim: int, level: Level) -> Tensor:
    """The examples of `value` along its dim `bdim`, which is not negative."""
    shape = value.array.shape
    array = BatchedValue(value, bdim, level, shape[:bdim] + shape[bdim + 1 :])
    return _fresh(array, value.device)


def example(value: Tensor, bdim: int) -> Tensor:
    """One example for functions that read only dtype and shape. It has no level, so no operator accepts it."""
    return batched_tensor(value, bdim, None)  # type: ignore[arg-type]


def is_batched(value: Any) -> bool:
    """Whether a value is a tensor inside a vmap."""
    return isinstance(value, Tensor) and bool(value.keys & BATCHED)


def physical(tensor: Tensor) -> Tensor:
    """The plain tensor under all levels."""
    while tensor.keys & BATCHED:
        tensor = tensor.array.value
    return tensor
