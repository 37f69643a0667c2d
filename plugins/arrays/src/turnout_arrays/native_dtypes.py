"""`NativeDtypes`: which dtypes of an array module stand for which of Turnout."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnout.dtypes import DTYPES
from turnout.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from turnout.dtypes import DType


class _Names(dict[Any, "DType"]):
    """An array module's dtype -> Turnout's. Where one is missing, `name_more()` adds what was left for later."""

    def __init__(self, name_more: Callable[[], object]) -> None:
        self._name_more = name_more

    def __missing__(self, dtype: Any) -> DType:
        self._name_more()
        found = self.get(dtype)
        if found is None:
            raise KeyError(dtype)
        return found


class NativeDtypes:
    """The part of a backend over an array module that knows its dtypes."""

    name: str
    native: Mapping[DType, Any]
    _natives: dict[DType, Any]
    _dtypes: dict[Any, DType]
    _later: str = ""  # the module of bfloat16, until it is needed
    xp: Any

    def _name_dtypes(self, xp: Any, bfloat16: Any) -> None:
        """All dtypes of Turnout by their names in `xp`.

        `bfloat16` is the scalar type for that dtype, or None, or the name of a module that has it, which is imported when it is
        first needed: until then it is not in `native`.
        """
        self.xp = xp
        self._natives, self._dtypes = {}, _Names(self._name_bfloat16)
        self.native = self._natives
        for name in DTYPES:
            if name != "bfloat16":
                self._name_dtype(name, name)
        if isinstance(bfloat16, str):
            self._later = bfloat16
        elif bfloat16 is not None:
            self._name_dtype("bfloat16", bfloat16)

    def _name_dtype(self, name: str, scalar_type: Any) -> None:
        native = self.xp.dtype(scalar_type)
        self._dtypes[native] = DTYPES[name]
        self._natives[DTYPES[name]] = native

    def _name_bfloat16(self) -> None:
        """Name the dtype, if that is still to be done."""
        module = self._later
        if module:
            self._name_dtype("bfloat16", import_module(module).bfloat16)
            self._later = ""

    def native_dtype(self, dtype: DType) -> Any:
        """The array module's dtype. Raises DTypeError if the module does not have it."""
        found = self.native.get(dtype)
        if found is None and dtype.name == "bfloat16":
            self._name_bfloat16()
            found = self.native.get(dtype)
        if found is None:
            raise DTypeError(f"backend {self.name} has no arrays of dtype {dtype.name}")
        return found

    def is_native(self, dtype: Any) -> bool:
        """Whether a dtype of the array module stands for one of Turnout."""
        if dtype not in self._dtypes and self._later in sys.modules:
            self._name_bfloat16()
        return dtype in self._dtypes
