"""`WrapperTensor`: a tensor that stands for another one, or for several, and has no memory of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from turnout.errors import CallError
from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout.errors import TurnoutError


class WrapperTensor(Tensor):
    """A tensor whose `array` says what it stands for. What hands out memory is refused, and copies are made by operators.

    A derived class defines `no_memory`.
    """

    __slots__ = ()

    def no_memory(self, what: str) -> TurnoutError:
        """The error for `what`, such as "numpy()": why the tensor has no memory, and what to do."""
        raise NotImplementedError(f"{type(self).__name__} must define no_memory(self, what)")

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise self.no_memory("numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise self.no_memory("numpy.asarray()")

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> NoReturn:
        raise self.no_memory("__dlpack__()")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise CallError(str(self.no_memory("saving")))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return aten.clone(self)

    def __copy__(self) -> Tensor:
        return self.new_alias(self.array, 0)
