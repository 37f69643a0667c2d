"""Padding with reflected, repeated and wrapped elements: pieces of the tensor, joined dim by dim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors import ArgumentError, ModeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.images import check_images
from turnout_aten.shapes.layouts import as_images

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.tensor.tensor import Tensor

    Piece = Callable[[Tensor, int, int, bool], Tensor]


def _reflected(x: Tensor, dim: int, count: int, behind: bool) -> Tensor:
    """The elements next to the edge, reversed, without the edge."""
    n = x.shape[dim]
    part = aten.slice__Tensor(x, dim, n - 1 - count, n - 1, 1) if behind else aten.slice__Tensor(x, dim, 1, count + 1, 1)
    return aten.flip(part, (dim,))


def _repeated(x: Tensor, dim: int, count: int, behind: bool) -> Tensor:
    """The edge."""
    n = x.shape[dim]
    edge = aten.slice__Tensor(x, dim, n - 1, n, 1) if behind else aten.slice__Tensor(x, dim, 0, 1, 1)
    return aten.expand(edge, [count if d == dim else m for d, m in enumerate(x.shape)])


def _wrapped(x: Tensor, dim: int, count: int, behind: bool) -> Tensor:
    """The elements from the other end."""
    n = x.shape[dim]
    return aten.slice__Tensor(x, dim, 0, count, 1) if behind else aten.slice__Tensor(x, dim, n - count, n, 1)


def _extended(x: Tensor, pad: Sequence[int], piece: Piece) -> Tensor:
    """`pad` holds (before, after) for each dim, starting with the last. Negative numbers crop. The result is a copy."""
    joined = False
    for i in range(len(pad) // 2):
        before, after, dim = pad[2 * i], pad[2 * i + 1], x.ndim - 1 - i
        n = x.shape[dim]
        middle = x
        if before < 0 or after < 0:
            middle = aten.slice__Tensor(x, dim, max(-before, 0), n - max(-after, 0), 1)
        parts = [piece(x, dim, before, False)] if before > 0 else []
        parts.append(middle)
        if after > 0:
            parts.append(piece(x, dim, after, True))
        joined = len(parts) > 1
        x = aten.cat(parts, dim) if joined else middle
    return x if joined else aten.clone(x, memory_format="contiguous_format")


def _checked(name: str, ndim: int, self: Tensor, padding: Sequence[int], reflects: bool) -> None:
    if len(padding) != 2 * ndim:
        raise ShapeError(f"{name}: 'padding' must be {2 * ndim} numbers, got {list(padding)}")
    shape = self.shape
    check_images(name, ndim, shape)
    for i in range(ndim):
        before, after, n = padding[2 * i], padding[2 * i + 1], shape[-1 - i]
        if reflects and (before >= n or after >= n):
            raise ShapeError(f"{name}: padding {before} and {after} must be less than {n}, the length of dim {-1 - i}")
        if n + before + after < 1:
            raise ShapeError(texts.too_much_padding(name, -1 - i, n, before, after))


def _pad(kind: str, ndim: int) -> Callable[..., Tensor]:
    """The kernel that extends the last dims by their reflection, or by copies of their first and last elements."""
    name, reflects = f"{kind}_pad{ndim}d", kind == "reflection"
    places = _reflected if reflects else _repeated

    def pad(self: Tensor, padding: Sequence[int]) -> Tensor:
        _checked(name, ndim, self, padding, reflects)
        made = _extended(self, padding, places)
        return lying(made, as_images(made.shape, self))

    return pad


reflection_pad1d = _pad("reflection", 1)
reflection_pad2d = _pad("reflection", 2)
reflection_pad3d = _pad("reflection", 3)
replication_pad1d = _pad("replication", 1)
replication_pad2d = _pad("replication", 2)
replication_pad3d = _pad("replication", 3)


def pad_circular(self: Tensor, pad: Sequence[int]) -> Tensor:
    """The dims after the channels, extended periodically."""
    if len(pad) % 2 or len(pad) // 2 > self.ndim - 1:
        raise ShapeError(f"pad: 'pad' {list(pad)} does not fit a tensor of {self.ndim} dimensions")
    for i in range(len(pad) // 2):
        before, after, n = pad[2 * i], pad[2 * i + 1], self.shape[-1 - i]
        if before > n or after > n:
            raise ShapeError(f"pad: circular padding {before} and {after} wraps more than once around dim {-1 - i} of length {n}")
        if n + before + after < 0:
            raise ShapeError(texts.too_much_padding("pad", -1 - i, n, before, after))
    # Cropped elements must not reappear at the other end.
    middle = _extended(self, [min(n, 0) for n in pad], _wrapped) if any(n < 0 for n in pad) else self
    return lying(_extended(middle, [max(n, 0) for n in pad], _wrapped))


_OPERATORS = {"reflect": "reflection", "replicate": "replication"}
MODES = ("constant", *_OPERATORS, "circular")


def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """`pad` holds (before, after) for each dim, starting with the last. The mode is constant, reflect, replicate or circular."""
    if len(pad) % 2 or len(pad) // 2 > self.ndim:
        raise ShapeError(texts.odd_padding("pad", self.ndim, pad))
    if mode == "constant":
        return aten.constant_pad_nd(self, pad, 0.0 if value is None else value)
    if mode not in MODES:
        raise ModeError(texts.not_one_of("pad", "mode", MODES, mode))
    if value is not None and value != 0:
        raise ArgumentError(f"pad: mode {mode!r} does not accept a value, got {value}")
    ndim = len(pad) // 2
    if self.ndim in (ndim + 1, ndim + 2):
        if mode == "circular":
            return pad_circular(self, pad)
        if 1 <= ndim <= 3:
            return getattr(aten, f"{_OPERATORS[mode]}_pad{ndim}d")(self, pad)
    raise ArgumentError(
        f"pad: mode {mode!r} pads the last 1 to 3 dims of tensors with one or two more, got 'pad' {list(pad)} for "
        f"{self.ndim} dimensions"
    )
