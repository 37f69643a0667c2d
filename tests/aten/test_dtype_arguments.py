"""`dtype=` of every public function takes Python's float, int, bool and complex; it takes no names and no dtypes of others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import turnout.nn.functional as F

import turnout
from outcomes import refused
from turnout import array_api, masked
from turnout.dtypes import PYTHON_TYPES
from turnout.errors import DTypeError

X, WRITTEN = turnout.tensor([[1.0, 2.0], [3.0, 4.0]]), turnout.ones(1, 1)
MODULES = {
    "turnout": turnout, "array_api": array_api, "masked": masked, "linalg": turnout.linalg, "fft": turnout.fft,
    "special": turnout.special, "F": F, "Tensor": turnout.Tensor, "windows": turnout.signal.windows,
}  # fmt: skip
# Arguments of a call, of functions that take others than a tensor; those of methods follow the tensor.
OWN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("empty", "ones", "zeros", "rand", "randn", "new_empty", "new_ones", "new_zeros"), ((2,),)),
    **dict.fromkeys(("full", "new_full"), ((2,), 1)),
    **dict.fromkeys(("arange", "eye", "randperm", "fftfreq", "rfftfreq", "scalar_tensor"), (3,)),
    **dict.fromkeys(("linspace", "logspace"), (1, 2, 3)),
    **dict.fromkeys(("tril_indices", "triu_indices"), (2, 2)),
    **dict.fromkeys(("empty_strided", "new_empty_strided"), ((2,), (1,))),
    **dict.fromkeys(("tensor", "as_tensor", "asarray", "new_tensor"), ([1, 0],)),
    **dict.fromkeys(("cumsum_", "cumprod_"), (WRITTEN, 0)),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), (X[0],)),
    **dict.fromkeys(("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "logsumexp"), (X, 0)),
    "frombuffer": (bytearray(16),),
    "full_like": (X, 1), "randint": (0, 2, (2,)), "randint_like": (X, 2), "empty_permuted": ((2,), (0,)),
    "normal": (0.0, 1.0, (2,)), "normalize": (X, 2.0, 0), "astype": (X,), "to": (X,), "logaddexp": (X, X),
}  # fmt: skip
WINDOWS = {"general_cosine": (3,), "general_hamming": (3,)}
# Their `dtype` is not that of a result, or they have tests of their own.
OTHERS = {
    "finfo", "iinfo", "autocast", "result_type", "promote_types", "isdtype", "can_cast", "opcheck", "set_default_dtype",
    "typename", "view", "view_copy", "dtype", "type",
}  # fmt: skip


def functions() -> Iterator[Any]:
    for place, module in MODULES.items():
        for name in dir(module):
            function = getattr(module, name, None)
            if name.startswith("_") or name in OTHERS or not callable(function):
                continue
            try:
                takes = "dtype" in inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            if takes:
                yield pytest.param(place, function, id=f"{place}.{name}")


def arguments(place: str, name: str) -> tuple[Any, ...]:
    if place == "windows":
        return WINDOWS.get(name, (3,))
    found = OWN.get(name, (3,) if name.endswith("_window") else (X,))
    return found if place != "Tensor" or isinstance(found[0], turnout.Tensor) else (X, *found)


def call(place: str, function: Callable[..., Any], dtype: Any) -> Any:
    name = function.__name__.rpartition(".")[2]
    given = arguments(place, name)
    return function(*given, dtype) if name == "astype" else function(*given, dtype=dtype)


@pytest.mark.parametrize(("place", "function"), list(functions()))
def test_pythons_types_are_dtypes_and_nothing_else_is(place: str, function: Callable[..., Any]) -> None:
    taken = 0
    for given, meant in PYTHON_TYPES.items():
        try:
            expected = call(place, function, meant).dtype
        except Exception as error:  # noqa: BLE001 - refused in the same way
            refused(type(error), lambda given=given: call(place, function, given))
            continue
        taken += 1
        assert call(place, function, given).dtype is expected
    assert taken
    for wrong in (np.float64, np.dtype("f4"), "float32", dict):
        said = refused(DTypeError, lambda wrong=wrong: call(place, function, wrong))
        assert "must be a dtype such as turnout.float32, got " in said
