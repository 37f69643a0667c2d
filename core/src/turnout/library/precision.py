"""Autocast rules of custom operators: from a dtype to a kernel at Autocast<B>.

The casts are those of the plugin that provides Autocast: nothing reaches such a kernel unless one of its contexts is entered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout import plugins
from turnout.dtypes import FLOAT, DType
from turnout.errors import CallError
from turnout.errors import library as texts
from turnout.keys import AUTOCAST, KEYS
from turnout.library.devices import key_of
from turnout.operators import Operator
from turnout.operators.kernels import Kernel
from turnout.state import DISPATCH


class Precision:
    """A rule: inside autocast for `device_type`, eligible tensors are cast to `dtype` and the operator runs without autocast."""

    def __init__(self, device_type: object, dtype: object) -> None:
        if not isinstance(device_type, str):
            raise CallError(texts.no_device_type(device_type))
        if not isinstance(dtype, DType) or dtype.category != FLOAT:
            raise CallError(texts.no_floating_dtype(dtype))
        self.device_type = device_type
        self.dtype = dtype
        self.key = AUTOCAST + key_of(device_type)
        self.__name__ = f"autocast to {dtype.name}"  # shown by `explain`

    def __call__(self, *args: Any) -> Any:
        """The arguments, cast."""
        return plugins.service(AUTOCAST).cached_cast_all(self.dtype, args, self.device_type)

    def bind(self, op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
        """The binder of the rule's kernel."""
        off = ~KEYS.switch_bit(key)

        def call_in_other_dtype(ks: int, *args: Any) -> Any:
            include, keep = DISPATCH.get()
            token = DISPATCH.set((include & off, keep))
            try:
                return op.call_boxed(self(*args))
            finally:
                DISPATCH.reset(token)

        return call_in_other_dtype
