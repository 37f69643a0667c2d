"""Whether two results agree, and in words how they differ."""

from __future__ import annotations

from typing import Any

import numpy as np

import turnout
from turnout import Tensor
from turnout.operators.values import flat
from turnout_opcheck.observing import content

# Dtype -> how far two ways to one result may be apart, relative to the result and absolute.
TOLERANCES = {
    "float64": 1e-7, "complex128": 1e-7, "float32": 2e-4, "complex64": 2e-4, "float16": 2e-2, "bfloat16": 1e-1,
}  # fmt: skip


def layout(tensor: Tensor) -> tuple[int, ...]:
    """The strides that say where elements are."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return tuple(s for n, s in pairs if n > 1) if tensor.numel() > 1 else ()


def array(tensor: Tensor) -> Any:
    """The elements as a NumPy array of a dtype that NumPy computes with."""
    plain = tensor.detach().cpu()
    if plain.dtype.name in ("bfloat16", "float16"):
        plain = plain.to(turnout.float32)
    return np.array(plain.resolve_conj().numpy() if hasattr(plain, "resolve_conj") else plain.numpy())


def wide(tensor: Tensor) -> float:
    return TOLERANCES.get(tensor.dtype.name, 0.0)


def close(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether two arrays agree; nan agrees with nan."""
    if not tolerance:
        return bool(np.array_equal(found, expected, equal_nan=found.dtype.kind in "fc"))
    with np.errstate(all="ignore"):
        scale = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))) if expected.size else 0.0
        return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, scale), equal_nan=True))


def difference(found: Any, expected: Any, *, exact: bool = False, layouts: bool = False, factor: float = 1.0) -> str:
    """How a result differs from the expected one: "" where it agrees, else words such as "dtype float32, not float64"."""
    first, second = flat(found), flat(expected)
    if len(first) != len(second):
        return f"{_count(first)}, not {_count(second)}"
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        told = _one(a, b, exact, layouts, factor)
        if told:
            return told if len(first) == 1 else f"{told}, in result {i}"
    return ""


def _count(values: list[Any]) -> str:
    return f"{len(values)} result{'' if len(values) == 1 else 's'}"


def _one(a: Any, b: Any, exact: bool, layouts: bool, factor: float) -> str:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return f"{type(a).__name__}, not {type(b).__name__}"
        return "" if _same(a, b) else f"value {a!r}, not {b!r}"
    told = mismatch(a, b, layouts)
    if told:
        return told
    if exact:
        return "" if content(a) == content(b) or close(array(a), array(b), 0.0) else _values(array(a), array(b))
    x, y = array(a), array(b)
    return "" if close(x, y, factor * max(wide(a), wide(b))) else _values(x, y)


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, (bool, int, float, complex)) or not isinstance(b, (bool, int, float, complex)):
        return repr(a) == repr(b)
    return type(a) is type(b) and (a == b or (a != a and b != b) or bool(np.isclose(a, b, rtol=1e-7)))


def mismatch(a: Tensor, b: Tensor, layouts: bool = False) -> str:
    """How shape, dtype or strides differ; "" where they agree."""
    if tuple(a.shape) != tuple(b.shape):
        return f"shape {list(a.shape)}, not {list(b.shape)}"
    if a.dtype is not b.dtype:
        return f"dtype {a.dtype.name}, not {b.dtype.name}"
    if layouts and layout(a) != layout(b):
        return f"strides {list(a.stride())}, not {list(b.stride())}"
    return ""


def _values(x: Any, y: Any) -> str:
    with np.errstate(all="ignore"):
        at = tuple(int(i) for i in np.argwhere(~np.isclose(x, y, rtol=1e-9, atol=0, equal_nan=True))[0]) if x.shape else ()
    where = f" at {list(at)}" if at else ""
    return f"value {x[at].item()!r}, not {y[at].item()!r}{where}"


def float32_only(value: Tensor) -> bool:
    """Whether float64 elements have the precision of float32 and no more, beyond what few digits explain."""
    if value.dtype is not turnout.float64 or value.numel() < 2:
        return False
    x = array(value).reshape(-1)
    x = x[np.isfinite(x) & (x != 0)]
    if x.size < 2 or not np.array_equal(x.astype(np.float32).astype(np.float64), x):
        return False
    long = (x.astype(np.float32).view(np.uint32) & 0xFFF) != 0
    return bool(long.sum() >= 2)
