"""`NativeDtypes`: which dtypes of an array module stand for which of Turnout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import DTYPES
from turnout.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnout.dtypes import DType


class NativeDtypes:
    """The part of a backend over an array module that knows its dtypes."""

    name: str
    native: Mapping[DType, Any]
    _dtypes: dict[Any, DType]

    def _name_dtypes(self, xp: Any, bfloat16: Any) -> None:
        """All dtypes of Turnout by their names in `xp`; `bfloat16` is the scalar type for that dtype, or None."""
        scalar_types = {name: xp.dtype(name) for name in DTYPES if name != "bfloat16"}
        if bfloat16 is not None:
            scalar_types["bfloat16"] = xp.dtype(bfloat16)
        self.native = {DTYPES[name]: dtype for name, dtype in scalar_types.items()}
        self._dtypes = {dtype: DTYPES[name] for name, dtype in scalar_types.items()}

    def native_dtype(self, dtype: DType) -> Any:
        """The array module's dtype. Raises DTypeError if the module does not have it."""
        found = self.native.get(dtype)
        if found is None:
            raise DTypeError(f"backend {self.name} has no arrays of dtype {dtype.name}")
        return found
