"""`Tensor.__array_namespace__`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import ArgumentError
from turnout_aten import array_api

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", array_api.__array_api_version__)

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """`turnout.array_api`, for code written for any array library. It serves older versions of the standard too, as NumPy's does.

    Raises ArgumentError for a version that does not exist or is newer.
    """
    if api_version not in (None, *VERSIONS):
        raise ArgumentError(f"__array_namespace__: api_version must be None or one of {', '.join(VERSIONS)}, got {api_version!r}")
    return array_api
