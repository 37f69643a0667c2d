"""Short names of conversions as Tensor methods: `x.float()`, `x.cpu()`, `x.T`. A mixin of its own, for inside it `int` and
`float` are methods.
"""

from __future__ import annotations

from turnout import dtypes
from turnout.errors import ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.tensors import Tensor


class Conversions:
    """Each returns the tensor itself where nothing is to be converted."""

    __slots__ = ()

    def half(self: Any) -> Tensor:
        """As float16."""
        return self.to(dtype=dtypes.float16)  # type: ignore[no-any-return]

    def bfloat16(self: Any) -> Tensor:
        """As bfloat16."""
        return self.to(dtype=dtypes.bfloat16)  # type: ignore[no-any-return]

    def float(self: Any) -> Tensor:
        """As float32."""
        return self.to(dtype=dtypes.float32)  # type: ignore[no-any-return]

    def double(self: Any) -> Tensor:
        """As float64."""
        return self.to(dtype=dtypes.float64)  # type: ignore[no-any-return]

    def short(self: Any) -> Tensor:
        """As int16."""
        return self.to(dtype=dtypes.int16)  # type: ignore[no-any-return]

    def int(self: Any) -> Tensor:
        """As int32."""
        return self.to(dtype=dtypes.int32)  # type: ignore[no-any-return]

    def long(self: Any) -> Tensor:
        """As int64."""
        return self.to(dtype=dtypes.int64)  # type: ignore[no-any-return]

    def bool(self: Any) -> Tensor:
        """As bool: whether each element differs from 0."""
        return self.to(dtype=dtypes.bool_)  # type: ignore[no-any-return]

    def type_as(self: Any, other: Tensor) -> Tensor:
        """As the dtype and on the device of `other`."""
        return self.to(device=other.device, dtype=other.dtype)  # type: ignore[no-any-return]

    @property
    def data(self: Any) -> Tensor:
        """The same memory without history, sharing the version counter: `detach()` under PyTorch's older name.

        # differs from torch: the version counter is shared, so a write through `.data` is seen by saved-tensor checks.
        """
        return self.detach()  # type: ignore[no-any-return]

    @property
    def T(self: Any) -> Tensor:
        """The dimensions reversed: the transpose of a matrix."""
        return self.permute(tuple(range(len(self.shape) - 1, -1, -1)))  # type: ignore[no-any-return]

    @property
    def mT(self: Any) -> Tensor:
        """The last two dimensions exchanged: a matrix, or a batch of them, transposed. Raises ShapeError below 2 dims."""
        if len(self.shape) < 2:
            raise ShapeError(f"mT needs at least 2 dimensions, this tensor has shape {list(self.shape)}")
        return self.transpose(-2, -1)  # type: ignore[no-any-return]
