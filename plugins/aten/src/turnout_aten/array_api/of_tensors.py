"""`Tensor.__array_namespace__`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import ArgumentError
from turnout_aten import array_api

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """`turnout.array_api`, for code written for any array library. Raises ArgumentError for an unsupported version."""
    has = array_api.__array_api_version__
    if api_version not in (None, has):
        raise ArgumentError(f"__array_namespace__: api_version must be {has!r} or None, got {api_version!r}")
    return array_api
