"""The tensors that a functionalised function sees.

Such a tensor has the key Functionalize and no other: what its value needs of other keys is done below, when operators are called
on the value. History, `.grad`, hooks and tangents are the value's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.keys import TRACKED
from turnout.operators.stubs import compile_function
from turnout.registry import REGISTRY
from turnout_aten.tensor.levels import CLOCK, GRAD
from turnout_aten.tensor.tensor import Tensor, wrapping_lines
from turnout_aten.tensor.wrappers import WrapperTensor
from turnout_functionalize import errors
from turnout_functionalize.geometry import shadow_of
from turnout_functionalize.memories import Link, Memory, Part
from turnout_functionalize.regions import KEY, Region

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.dtypes import DType


class FunctionalTensor(WrapperTensor):
    """A tensor inside functionalize: a view of a memory that gets a new value with each write."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        return self.array.last.dtype

    def stride(self, dim: int | None = None) -> Any:
        """The strides that the tensor would have if it were written in place, in elements, or the one of one dimension."""
        strides = shadow_of(self.array).stride()
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """The position of the first element in the memory that the tensor would have."""
        return shadow_of(self.array).storage_offset()

    # ---- versions and aliases

    def version(self) -> int:
        return self.array.memory.version()

    def bump_version(self) -> None:
        """Nothing: a write gives the memory another value, and that is its version."""

    def count_apart(self) -> None:
        """Leave writes through a new alias out of the version of its memory."""
        if self.array.links:
            self.array.links[-1].apart = True

    def new_alias(self, array: Any, offset: int) -> Tensor:
        """Another tensor over the same memory, whose value has no history."""
        part: Part = array
        value = part.value()
        memory = part.memory
        made = value.new_alias(value.array, value.storage_offset())
        link = Link(REGISTRY.find("aten::alias"), (), None, bool(GRAD.get()[0]), (memory, memory.generation, made))
        return functional_tensor(Part(memory, (*part.links, link), made, part.shadow))

    def is_alias_of(self, other: Tensor) -> bool:
        return self is other or (isinstance(other, FunctionalTensor) and other.array.memory is self.array.memory)

    # ---- gradients: the value's

    @property
    def gmask(self) -> int:
        return self.array.value().gmask

    @gmask.setter
    def gmask(self, mask: int) -> None:
        value = self.array.value()
        value.gmask = mask
        value.keys = value.keys | TRACKED if mask else value.keys & ~TRACKED

    def set_gmask(self, mask: int) -> None:
        self.array.value().set_gmask(mask)

    @property
    def node(self) -> Any:
        return self.array.value().node

    @node.setter
    def node(self, node: Any) -> None:
        self.array.value().node = node

    @property
    def extra(self) -> dict[str, Any] | None:
        return self.array.value().extra

    @extra.setter
    def extra(self, extra: dict[str, Any] | None) -> None:
        self.array.value().extra = extra

    def history_owner(self) -> Tensor:
        return self.array.value()

    def with_history_owner(self, function: Callable[..., Any], *args: Any) -> Any:
        part: Part = self.array
        return part.memory.region.run(function, part.value(), *args)

    def shown_like(self, value: Tensor) -> Tensor:
        return value if isinstance(value, FunctionalTensor) else fresh(value, self.array.memory.region)

    @property
    def requires_grad(self) -> bool:
        return self.array.value().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.array.value().requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Track the value for imperative autograd, or stop that; returns self."""
        self.array.value().requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor:
        return self.array.value().grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        self.array.value().grad = grad

    @property
    def is_leaf(self) -> bool:
        return self.array.value().is_leaf

    @property
    def grad_fn(self) -> Any:
        return self.array.value().grad_fn

    def detach_(self) -> Tensor:
        """Forget the history of the value; returns self. Raises AliasError for a view."""
        self.array.value().detach_()
        return self

    def retain_grad(self) -> None:
        self.array.value().retain_grad()

    @property
    def retains_grad(self) -> bool:
        return self.array.value().retains_grad

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        return self.array.value().register_hook(hook)

    # ---- on the host

    def _of_value(self, name: str, *args: Any, **kwargs: Any) -> Any:
        part: Part = self.array
        method = getattr(part.value(), name)
        return part.memory.region.run(lambda: method(*args, **kwargs))

    def item(self) -> Any:
        return self._of_value("item")

    def tolist(self) -> Any:
        return self._of_value("tolist")

    def no_memory(self, what: str) -> errors.FunctionalizeError:
        return errors.FunctionalizeError(errors.no_data_pointer(what))

    def __repr__(self) -> str:
        part: Part = self.array
        return f"<functional {part.memory.region.run(repr, part.value())}>"


def _compiled() -> Any:
    of_values = {f"t.{name}" for name, value in vars(FunctionalTensor).items() if isinstance(value, property)}
    made = [line for line in wrapping_lines(keys="KEY", cls="FunctionalTensor") if line.partition(" = ")[0] not in of_values]
    lines = ["def fresh(array, device):", *(f"    {line}" for line in [*made, "return t"]), ""]
    namespace = {"FunctionalTensor": FunctionalTensor, "KEY": KEY, "CLOCK": CLOCK, "__name__": __name__}
    return compile_function("\n".join(lines), "fresh", "<new functional tensor>", namespace)


_fresh = _compiled()


def functional_tensor(part: Part) -> Tensor:
    """The tensor of a part of a memory."""
    made = _fresh(part, part.last.device)
    part.memory.region.alive[id(made)] = made
    return made


def fresh(value: Tensor, region: Region) -> Tensor:
    """A value that no tensor of the function shares, as one."""
    return functional_tensor(Part(Memory(value, region)))


def dissolve(tensor: Tensor, value: Tensor) -> None:
    """Make a tensor of a function that has ended an ordinary one: another handle on its value."""
    storage = value.shared_storage()
    apart = any(link.apart for link in tensor.array.links)
    if value.gmask and value.node is None and value.extra is None:
        value.extra = {}  # both handles are the same leaf, with one `.grad`
    tensor.__class__ = Tensor
    tensor.array = value.array
    tensor.storage = storage
    tensor.offset = value.offset
    tensor.view_of = value.view_of
    tensor.keys = value.keys
    tensor.gmask = value.gmask
    tensor.node = value.node
    tensor.extra = value.extra
    if apart:
        tensor.count_apart()
