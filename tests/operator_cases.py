"""The one table of operator cases: for every functional operator its samples, a NumPy reference, a tolerance, dtypes.

Samples are plain Python data, so that any backend can build them: `T(data)` stands for a tensor of the dtype under test, `T(data,
"int64")` for one of a fixed dtype. A reference is called with the array module and the arguments, tensors as arrays; it says what
the result is, not how it is computed. Start at `CASES`; `build` turns a sample into arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

FLOATS = ("float32", "float64")
INTS = ("int64", "int32", "uint8")
NUMBERS = (*FLOATS, "int64")
BITS = ("int64", "bool")


@dataclass(frozen=True)
class T:
    """A tensor of a sample: nested lists and a dtype name, None for the dtype under test."""

    data: Any
    dtype: str | None = None


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OperatorCase:
    """One operator.

    op              name and overload, without namespace: "add.Tensor"
    samples         its calls
    reference       (numpy, *args, **kwargs) -> array, number or tuple of them
    dtypes          the names that `T(data)` is tried in
    tolerance       relative and absolute, for float64; float32 gets a fixed wider one
    differentiable  whether gradients with respect to floating tensors are checked; an output that is not floating has none
    """

    op: str
    samples: tuple[Sample, ...]
    reference: Callable[..., Any]
    dtypes: tuple[str, ...] = FLOATS
    tolerance: float = 1e-9
    differentiable: bool = True

    def __str__(self) -> str:
        return self.op


def build(value: Any, dtype: str, make: Callable[[Any, str], Any]) -> Any:
    """A sample's value with `make(data, dtype name)` in place of each T, inside lists and dicts too."""
    if isinstance(value, T):
        return make(value.data, value.dtype or dtype)
    if isinstance(value, list):
        return [build(v, dtype, make) for v in value]
    if isinstance(value, dict):
        return {k: build(v, dtype, make) for k, v in value.items()}
    return value


def calls(
    case: OperatorCase, dtype: str, make: Callable[[Any, str], Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of every sample, built."""
    for sample in case.samples:
        yield tuple(build(a, dtype, make) for a in sample.args), build(sample.kwargs, dtype, make)


def close(numpy: Any, found: Any, expected: Any, tolerance: float) -> bool:
    """Whether two arrays agree; float32 and lower within 1e-5, float64 within the case's tolerance; nan equals nan."""
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    if found.shape != expected.shape:
        return False
    wide = found.dtype in (numpy.float64, numpy.complex128)
    limit = tolerance if wide else max(tolerance, 2e-5)
    return bool(numpy.allclose(found, expected, rtol=limit, atol=limit, equal_nan=True))


# ---- data


def values(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 1) -> Any:
    """Nested lists of distinct numbers, spread over [low, high] in an irregular order, none of them near 0."""
    count = 1
    for n in shape:
        count *= n
    step = 7919 * seed
    flat = [low + (high - low) * ((step * (i + 1)) % 1009) / 1009 for i in range(count)]
    return nested([v if abs(v) > 0.05 else v + 0.1 for v in flat], shape)


def whole(*shape: int, low: int = 0, high: int = 9, seed: int = 1) -> Any:
    """Nested lists of integers from low to high - 1."""
    count = 1
    for n in shape:
        count *= n
    return nested([low + (7919 * seed * (i + 1)) % 1009 % (high - low) for i in range(count)], shape)


def nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as nested ones."""
    if not shape:
        return flat[0]
    size = len(flat) // shape[0] if shape[0] else 0
    return [nested(flat[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def S(*args: Any, **kwargs: Any) -> Sample:
    """A sample."""
    return Sample(args, kwargs)


def one(low: float = -2.0, high: float = 2.0) -> tuple[Sample, ...]:
    """Samples of one tensor: two dims, none, empty."""
    return (S(T(values(2, 3, low=low, high=high))), S(T(values(low=low, high=high))), S(T([])))


def two(low: float = -2.0, high: float = 2.0, *rest: Any, **kwargs: Any) -> tuple[Sample, ...]:
    """Samples of two tensors: equal shapes, broadcast both ways, one without dims, empty."""
    a, b = {"low": low, "high": high, "seed": 1}, {"low": low, "high": high, "seed": 3}
    return (
        S(T(values(2, 3, **a)), T(values(2, 3, **b)), *rest, **kwargs),
        S(T(values(2, 1, **a)), T(values(3, **b)), *rest, **kwargs),
        S(T(values(2, **a)), T(values(**b)), *rest, **kwargs),
        S(T([]), T([]), *rest, **kwargs),
    )


def _softmax(np: Any, x: Any, dim: int) -> Any:
    e = np.exp(x - np.max(x, axis=dim, keepdims=True)) if x.size else x
    return e / np.sum(e, axis=dim, keepdims=True)


def _erf(np: Any, x: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _nll(np: Any, x: Any, target: Any, weight: Any, reduction: int, ignore: int) -> Any:
    rows = np.atleast_2d(x)
    wanted = np.atleast_1d(target)
    kept = wanted != ignore
    safe = np.where(kept, wanted, 0)
    w = (np.ones(rows.shape[1], x.dtype) if weight is None else weight)[safe] * kept
    losses = -rows[np.arange(len(rows)), safe] * w
    if reduction == 0:
        return losses.reshape(target.shape), np.zeros((), x.dtype)
    return (losses.sum() / w.sum() if reduction == 1 else losses.sum()), w.sum()


def _scattered(np: Any, x: Any, dim: int, index: Any, source: Any, add: bool = False) -> Any:
    made = x.copy()
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = index[place]
        value = source[place] if hasattr(source, "shape") and source.shape else source
        made[tuple(to)] = made[tuple(to)] + value if add else value
    return made


def _index_add(np: Any, x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    made = np.moveaxis(x.copy(), dim, 0)
    for i, j in enumerate(index):
        made[j] = made[j] + alpha * np.moveaxis(source, dim, 0)[i]
    return np.moveaxis(made, 0, dim)


def _put(np: Any, x: Any, indices: Any, source: Any, accumulate: bool = False) -> Any:
    made = x.copy()
    at = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(made, at, source)
    else:
        made[at] = source
    return made


def _windows(np: Any, x: Any, dim: int, size: int, step: int) -> Any:
    count = (x.shape[dim] - size) // step + 1
    parts = [np.moveaxis(np.take(x, range(i * step, i * step + size), axis=dim), dim, -1) for i in range(count)]
    return np.stack(parts, axis=dim)


def _layer_norm(np: Any, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = tuple(range(-len(shape), 0))
    made = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def _cross_entropy(np: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore: int = -100) -> Any:
    logs = np.log(_softmax(np, x, 1))
    if target.dtype.kind == "f":
        return -(logs * target).sum() / len(x)
    return _nll(np, logs, target, weight, reduction, ignore)[0]


M = T(values(2, 3))
POSITIVE = {"low": 0.1, "high": 3.0}
INDEX = T([1, 0, 1], "int64")

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    # ---- pointwise, one argument
    OperatorCase("abs", one(), lambda np, x: np.abs(x), NUMBERS),
    OperatorCase("neg", one(), lambda np, x: -x, NUMBERS),
    OperatorCase("exp", one(), lambda np, x: np.exp(x)),
    OperatorCase("expm1", one(), lambda np, x: np.expm1(x)),
    OperatorCase("log", one(**POSITIVE), lambda np, x: np.log(x)),
    OperatorCase("log1p", one(-0.9, 3.0), lambda np, x: np.log1p(x)),
    OperatorCase("sqrt", one(**POSITIVE), lambda np, x: np.sqrt(x)),
    OperatorCase("rsqrt", one(**POSITIVE), lambda np, x: 1 / np.sqrt(x)),
    OperatorCase("sin", one(), lambda np, x: np.sin(x)),
    OperatorCase("cos", one(), lambda np, x: np.cos(x)),
    OperatorCase("tanh", one(), lambda np, x: np.tanh(x)),
    OperatorCase("sigmoid", one(), lambda np, x: 1 / (1 + np.exp(-x))),
    OperatorCase("reciprocal", one(), lambda np, x: 1 / x),
    OperatorCase("floor", one(), lambda np, x: np.floor(x)),
    OperatorCase("ceil", one(), lambda np, x: np.ceil(x)),
    OperatorCase("round", one(), lambda np, x: np.round(x)),
    OperatorCase("trunc", one(), lambda np, x: np.trunc(x)),
    OperatorCase("sign", one(), lambda np, x: np.sign(x)),
    OperatorCase("relu", one(), lambda np, x: np.maximum(x, 0), NUMBERS),
    OperatorCase("erf", one(), _erf, tolerance=1e-7),
    OperatorCase("gelu", one(), lambda np, x: x * (1 + _erf(np, x / 2 ** 0.5)) / 2, tolerance=1e-7),
    OperatorCase("isnan", (S(T([1.0, float("nan")])), S(T([]))), lambda np, x: np.isnan(x), differentiable=False),
    OperatorCase("logical_not", (S(T([0, 1, 2])),), lambda np, x: np.logical_not(x), NUMBERS, differentiable=False),
    OperatorCase("bitwise_not", (S(T([0, 1, 1])),), lambda np, x: np.invert(x), BITS, differentiable=False),
    # ---- pointwise, two arguments
    OperatorCase("add.Tensor", (*two(), *two(-2.0, 2.0, alpha=2)), lambda np, x, y, alpha=1: x + alpha * y, NUMBERS),
    OperatorCase("add.Scalar", (S(M, 2), S(M, 2, 3)), lambda np, x, y, alpha=1: x + alpha * y, NUMBERS),
    OperatorCase("sub.Tensor", (*two(), *two(-2.0, 2.0, alpha=2)), lambda np, x, y, alpha=1: x - alpha * y, NUMBERS),
    OperatorCase("sub.Scalar", (S(M, 2),), lambda np, x, y, alpha=1: x - alpha * y, NUMBERS),
    OperatorCase("rsub.Tensor", two(), lambda np, x, y, alpha=1: y - alpha * x, NUMBERS),
    OperatorCase("rsub.Scalar", (S(M, 2),), lambda np, x, y, alpha=1: y - alpha * x, NUMBERS),
    OperatorCase("mul.Tensor", two(), lambda np, x, y: x * y, NUMBERS),
    OperatorCase("mul.Scalar", (S(M, 3),), lambda np, x, y: x * y, NUMBERS),
    OperatorCase("div.Tensor", two(), lambda np, x, y: x / y),
    OperatorCase("div.Scalar", (S(M, 4),), lambda np, x, y: x / y),
    OperatorCase("div.Tensor_mode", (*two(rounding_mode="floor"), *two(rounding_mode=None)),
                 lambda np, x, y, rounding_mode: np.floor(x / y) if rounding_mode else x / y),
    OperatorCase("div.Scalar_mode", (S(M, 0.7, rounding_mode="trunc"),), lambda np, x, y, rounding_mode: np.trunc(x / y)),
    OperatorCase("floor_divide", two(), lambda np, x, y: np.floor_divide(x, y), differentiable=False),
    OperatorCase("floor_divide.Scalar", (S(M, 0.7),), lambda np, x, y: np.floor_divide(x, y), differentiable=False),
    OperatorCase("remainder.Tensor", two(), lambda np, x, y: np.remainder(x, y), tolerance=1e-8),
    OperatorCase("remainder.Scalar", (S(M, 0.7),), lambda np, x, y: np.remainder(x, y), tolerance=1e-8),
    OperatorCase("remainder.Scalar_Tensor", (S(2.3, M),), lambda np, x, y: np.remainder(x, y), tolerance=1e-8),
    OperatorCase("pow.Tensor_Tensor", two(**POSITIVE), lambda np, x, y: x ** y),
    OperatorCase("pow.Tensor_Scalar", (S(M, 2), S(M, 3)), lambda np, x, y: x ** y, NUMBERS),
    OperatorCase("pow.Scalar", (S(2.5, M),), lambda np, x, y: x ** y),
    OperatorCase("maximum", two(), lambda np, x, y: np.maximum(x, y), NUMBERS),
    OperatorCase("minimum", two(), lambda np, x, y: np.minimum(x, y), NUMBERS),
    OperatorCase("max.other", two(), lambda np, x, y: np.maximum(x, y)),
    OperatorCase("min.other", two(), lambda np, x, y: np.minimum(x, y)),
    OperatorCase("atan2", two(), lambda np, x, y: np.arctan2(x, y)),
    *[
        OperatorCase(f"{name}.{overload}", samples, reference, NUMBERS, differentiable=False)
        for name, reference in (
            ("eq", lambda np, x, y: x == y), ("ne", lambda np, x, y: x != y), ("lt", lambda np, x, y: x < y),
            ("le", lambda np, x, y: x <= y), ("gt", lambda np, x, y: x > y), ("ge", lambda np, x, y: x >= y),
        )
        for overload, samples in (("Tensor", (*two(), S(T([1, 2]), T([2, 2])))), ("Scalar", (S(T([1, 2, 3]), 2),)))
    ],
    *[
        OperatorCase(name, (S(T([0, 1, 0, 2]), T([0, 0, 3, 1])),), reference, NUMBERS, differentiable=False)
        for name, reference in (
            ("logical_and", lambda np, x, y: np.logical_and(x, y)), ("logical_or", lambda np, x, y: np.logical_or(x, y)),
            ("logical_xor", lambda np, x, y: np.logical_xor(x, y)),
        )
    ],
    *[
        OperatorCase(f"{name}.{overload}", samples, reference, BITS, differentiable=False)
        for name, reference in (
            ("bitwise_and", lambda np, x, y: x & y), ("bitwise_or", lambda np, x, y: x | y),
            ("bitwise_xor", lambda np, x, y: x ^ y),
        )
        for overload, samples in (
            ("Tensor", (S(T([0, 1, 1]), T([1, 1, 0])),)), ("Scalar", (S(T([0, 1, 1]), True),)),
            ("Scalar_Tensor", (S(True, T([0, 1, 1])),)),
        )
    ],
    # ---- pointwise, three arguments
    OperatorCase("where.self", (S(T([[True], [False]], "bool"), M, T(values(3, seed=3))),), lambda np, c, x, y: np.where(c, x, y), NUMBERS),
    OperatorCase("where.ScalarSelf", (S(T([[True], [False]], "bool"), 2, M),), lambda np, c, x, y: np.where(c, y.dtype.type(x), y), NUMBERS),
    OperatorCase("where.ScalarOther", (S(T([[True], [False]], "bool"), M, 2),), lambda np, c, x, y: np.where(c, x, x.dtype.type(y)), NUMBERS),
    OperatorCase("where.Scalar", (S(T([True, False], "bool"), 2.5, 3),), lambda np, c, x, y: np.where(c, np.float32(x), np.float32(y)), ("float32",), differentiable=False),
    OperatorCase("clamp", (S(M, -1, 1), S(M, None, 1), S(M, -1)), lambda np, x, a=None, b=None: np.clip(x, a, b), NUMBERS),
    OperatorCase("clamp.Tensor", (S(M, T(values(3, low=-1.0, high=-0.5)), T(values(2, 1, low=0.5, high=1.0))),), lambda np, x, a, b: np.clip(x, a, b)),
    OperatorCase("lerp.Scalar", (S(M, T(values(3, seed=3)), 0.3), S(M, T(values(3, seed=3)), 0.8)), lambda np, x, y, w: x + w * (y - x)),
    OperatorCase("addcmul", (S(M, T(values(3, seed=3)), T(values(2, 1, seed=5)), value=2),), lambda np, x, a, b, value=1: x + value * a * b, NUMBERS),
    # ---- reductions
    OperatorCase("sum", one(), lambda np, x: np.sum(x), NUMBERS),
    OperatorCase("sum.dim_IntList", (S(M, [0]), S(M, [-1], True), S(M, None), S(T(values(2, 3, 2)), [0, 2])), lambda np, x, d, k=False: np.sum(x, axis=None if d is None else tuple(d), keepdims=k), NUMBERS),
    OperatorCase("mean", (S(M),), lambda np, x: np.mean(x)),
    OperatorCase("mean.dim", (S(M, [0]), S(M, [-1], True)), lambda np, x, d, k=False: np.mean(x, axis=tuple(d), keepdims=k)),
    OperatorCase("prod", (S(M), S(T([2.0, 0.0, 3.0])), S(T([]))), lambda np, x: np.prod(x), NUMBERS),
    OperatorCase("prod.dim_int", (S(M, 0), S(M, -1, True)), lambda np, x, d, k=False: np.prod(x, axis=d, keepdims=k), NUMBERS),
    OperatorCase("amax", (S(M), S(M, [1]), S(M, [0], True)), lambda np, x, d=(), k=False: np.max(x, axis=tuple(d) or None, keepdims=k), NUMBERS),
    OperatorCase("amin", (S(M), S(M, [1]), S(M, [0], True)), lambda np, x, d=(), k=False: np.min(x, axis=tuple(d) or None, keepdims=k), NUMBERS),
    OperatorCase("max", (S(M),), lambda np, x: np.max(x), NUMBERS),
    OperatorCase("min", (S(M),), lambda np, x: np.min(x), NUMBERS),
    OperatorCase("max.dim", (S(M, 1), S(M, 0, True)), lambda np, x, d, k=False: (np.max(x, axis=d, keepdims=k), np.argmax(x, axis=d, keepdims=k))),
    OperatorCase("min.dim", (S(M, 1), S(M, 0, True)), lambda np, x, d, k=False: (np.min(x, axis=d, keepdims=k), np.argmin(x, axis=d, keepdims=k))),
    OperatorCase("argmax", (S(M), S(M, 1), S(M, 0, True)), lambda np, x, d=None, k=False: np.argmax(x, axis=d, keepdims=k), differentiable=False),
    OperatorCase("argmin", (S(M), S(M, 1), S(M, 0, True)), lambda np, x, d=None, k=False: np.argmin(x, axis=d, keepdims=k), differentiable=False),
    OperatorCase("any", (S(T([0, 1, 0])), S(T([]))), lambda np, x: np.any(x), NUMBERS, differentiable=False),
    OperatorCase("all", (S(T([0, 1, 0])), S(T([]))), lambda np, x: np.all(x), NUMBERS, differentiable=False),
    OperatorCase("any.dim", (S(T([[0, 1], [0, 0]]), 1), S(T([[0, 1], [0, 0]]), 0, True)), lambda np, x, d, k=False: np.any(x, axis=d, keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("all.dim", (S(T([[0, 1], [1, 1]]), 1), S(T([[0, 1], [1, 1]]), 0, True)), lambda np, x, d, k=False: np.all(x, axis=d, keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("any.dims", (S(T([[0, 1], [0, 0]]), [0, 1]), S(T([[0, 1], [0, 0]]), None)), lambda np, x, d=None, k=False: np.any(x, axis=d if d is None else tuple(d), keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("all.dims", (S(T([[0, 1], [1, 1]]), [0]), S(T([[0, 1], [1, 1]]), None)), lambda np, x, d=None, k=False: np.all(x, axis=d if d is None else tuple(d), keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("var", (S(M), S(M, False)), lambda np, x, u=True: np.var(x, ddof=int(u))),
    OperatorCase("var.dim", (S(M, [1]), S(M, [0], False, True)), lambda np, x, d, u=True, k=False: np.var(x, axis=tuple(d), ddof=int(u), keepdims=k)),
    OperatorCase("var.correction", (S(M, [1], correction=0), S(M)), lambda np, x, d=None, correction=None, keepdim=False: np.var(x, axis=None if d is None else tuple(d), ddof=1 if correction is None else correction, keepdims=keepdim)),
    OperatorCase("std", (S(M),), lambda np, x, u=True: np.std(x, ddof=int(u))),
    OperatorCase("std.dim", (S(M, [1]),), lambda np, x, d, u=True, k=False: np.std(x, axis=tuple(d), ddof=int(u), keepdims=k)),
    OperatorCase("std.correction", (S(M, [1], correction=0), S(M)), lambda np, x, d=None, correction=None, keepdim=False: np.std(x, axis=None if d is None else tuple(d), ddof=1 if correction is None else correction, keepdims=keepdim)),
    OperatorCase("logsumexp", (S(M, [1]), S(M, [0], True)), lambda np, x, d, k=False: np.log(np.sum(np.exp(x), axis=tuple(d), keepdims=k))),
    OperatorCase("cumsum", (S(M, 0), S(M, -1)), lambda np, x, d: np.cumsum(x, axis=d), NUMBERS),
    # ---- softmax and losses
    OperatorCase("_softmax", (S(M, 1, False), S(M, 0, False)), lambda np, x, d, h: _softmax(np, x, d)),
    OperatorCase("_log_softmax", (S(M, 1, False), S(M, 0, False)), lambda np, x, d, h: np.log(_softmax(np, x, d))),
    OperatorCase("softmax.int", (S(M, 1), S(M, -2)), _softmax),
    OperatorCase("log_softmax.int", (S(M, 1), S(M, -2)), lambda np, x, d: np.log(_softmax(np, x, d))),
    OperatorCase("nll_loss_forward", tuple(S(T(values(3, 4)), T([1, 0, 3], "int64"), weight, reduction, ignore) for weight in (None, T(values(4, **POSITIVE))) for reduction in (0, 1, 2) for ignore in (-100, 0)), _nll),
    OperatorCase("nll_loss", (S(T(values(3, 4)), T([1, 0, 3], "int64")), S(T(values(4)), T(2, "int64"))), lambda np, x, t: _nll(np, x, t, None, 1, -100)[0]),
    OperatorCase("cross_entropy_loss", (S(T(values(3, 4)), T([1, 0, 3], "int64")), S(T(values(3, 4)), T([1, 0, 3], "int64"), T(values(4, **POSITIVE)), 2), S(T(values(3, 4)), T(values(3, 4, seed=5, low=0.1, high=1.0)))), _cross_entropy),
    OperatorCase("mse_loss", (S(M, T(values(2, 3, seed=3))), S(M, T(values(2, 3, seed=3)), 0), S(M, T(values(2, 3, seed=3)), 2)), lambda np, x, y, r=1: (lambda d: d if r == 0 else d.mean() if r == 1 else d.sum())((x - y) ** 2)),
    # ---- layers
    OperatorCase("linear", (S(M, T(values(4, 3, seed=3)), T(values(4, seed=5))), S(T(values(2, 2, 3)), T(values(4, 3, seed=3)))), lambda np, x, w, b=0: x @ w.T + b),
    OperatorCase("layer_norm", (S(M, [3]), S(M, [3], T(values(3, seed=3)), T(values(3, seed=5)))), _layer_norm, tolerance=1e-7),
    OperatorCase("embedding", (S(T(values(4, 2)), T([[1, 0], [3, 1]], "int64")),), lambda np, w, i: w[i]),
    OperatorCase("dropout", (S(M, 0.5, False), S(M, 0.0, True)), lambda np, x, p, train: x),
    # ---- matrix products
    OperatorCase("mm", (S(M, T(values(3, 4, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("bmm", (S(T(values(2, 2, 3)), T(values(2, 3, 4, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("mv", (S(M, T(values(3, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("dot", (S(T(values(3)), T(values(3, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("addmm", (S(T(values(4)), M, T(values(3, 4, seed=3))), S(T(values(2, 4)), M, T(values(3, 4, seed=3)), beta=2, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b), NUMBERS),
    OperatorCase("matmul", tuple(S(T(values(*a)), T(values(*b, seed=3))) for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 4)), ((2, 2, 3), (3,)), ((2, 1, 2, 3), (4, 3, 2)), ((3,), (2, 3, 2)))), lambda np, x, y: x @ y),
    OperatorCase("outer", (S(T(values(2)), T(values(3, seed=3))),), lambda np, x, y: np.outer(x, y), NUMBERS),
    # ---- views
    OperatorCase("view", (S(M, [3, 2]), S(M, [-1]), S(T(1.0), [1, 1])), lambda np, x, s: x.reshape(s)),
    OperatorCase("reshape", (S(M, [3, 2]), S(M, [-1, 2])), lambda np, x, s: x.reshape(s)),
    OperatorCase("transpose.int", (S(M, 0, 1), S(M, -1, -1)), lambda np, x, a, b: np.swapaxes(x, a, b)),
    OperatorCase("t", (S(M), S(T(values(3)))), lambda np, x: x.T),
    OperatorCase("permute", (S(T(values(2, 3, 2)), [2, 0, 1]),), lambda np, x, d: np.transpose(x, d)),
    OperatorCase("expand", (S(T(values(2, 1)), [3, 2, 4]), S(T(values(2, 1)), [-1, 3])), lambda np, x, s: np.broadcast_to(x, [x.shape[i - len(s)] if n == -1 else n for i, n in enumerate(s)])),
    OperatorCase("squeeze", (S(T(values(2, 1, 3, 1))),), lambda np, x: np.squeeze(x)),
    OperatorCase("squeeze.dim", (S(T(values(2, 1, 3)), 1), S(T(values(2, 1, 3)), 0)), lambda np, x, d: np.squeeze(x, d) if x.shape[d] == 1 else x),
    OperatorCase("squeeze.dims", (S(T(values(1, 2, 1)), [0, 2]),), lambda np, x, d: np.squeeze(x, tuple(d))),
    OperatorCase("unsqueeze", (S(M, 0), S(M, -1)), lambda np, x, d: np.expand_dims(x, d)),
    OperatorCase("select.int", (S(M, 0, 1), S(M, -1, -3)), lambda np, x, d, i: np.take(x, i, axis=d)),
    OperatorCase("slice.Tensor", (S(M, 1, 1, 3, 1), S(M, 1, -3, None, 2), S(M, 0, 2, 1)), lambda np, x, d=0, a=None, b=None, s=1: x[a:b:s] if d == 0 else x[:, a:b:s]),
    OperatorCase("narrow", (S(M, 1, 1, 2),), lambda np, x, d, a, n: x[:, a:a + n]),
    OperatorCase("diagonal", (S(M), S(M, 1), S(T(values(2, 3, 2)), -1, 1, 2)), lambda np, x, o=0, a=0, b=1: np.diagonal(x, o, a, b)),
    OperatorCase("unfold", (S(T(values(5)), 0, 3, 1), S(M, 1, 2, 1)), _windows),
    OperatorCase("as_strided", (S(M, [2, 2], [1, 2], 1),), lambda np, x, s, t, o: np.lib.stride_tricks.as_strided(x.reshape(-1)[o:], s, [n * x.itemsize for n in t])),
    OperatorCase("alias", (S(M),), lambda np, x: x),
    OperatorCase("detach", (S(M),), lambda np, x: x, NUMBERS, differentiable=False),
    OperatorCase("flatten.using_ints", (S(T(values(2, 3, 2)), 1), S(T(1.0))), lambda np, x, a=0: x.reshape(*x.shape[:a], -1)),
    OperatorCase("movedim.int", (S(T(values(2, 3, 2)), 0, -1),), lambda np, x, a, b: np.moveaxis(x, a, b)),
    OperatorCase("movedim.intlist", (S(T(values(2, 3, 4)), [0, 1], [1, 2]),), lambda np, x, a, b: np.moveaxis(x, a, b)),
    OperatorCase("view_as", (S(M, T(values(3, 2))),), lambda np, x, y: x.reshape(y.shape)),
    OperatorCase("expand_as", (S(T(values(3)), M),), lambda np, x, y: np.broadcast_to(x, y.shape)),
    OperatorCase("unbind.int", (S(M), S(M, 1)), lambda np, x, d=0: [np.take(x, i, axis=d) for i in range(x.shape[d])]),
    OperatorCase("split.Tensor", (S(T(values(5)), 2), S(M, 2, 1)), lambda np, x, n, d=0: np.split(x, range(n, x.shape[d], n), axis=d)),
    OperatorCase("split_with_sizes", (S(T(values(5)), [2, 0, 3]),), lambda np, x, n, d=0: np.split(x, np.cumsum(n)[:-1], axis=d)),
    OperatorCase("chunk", (S(T(values(5)), 2), S(M, 2, 1)), lambda np, x, n, d=0: np.split(x, range(-(-x.shape[d] // n), x.shape[d], -(-x.shape[d] // n)), axis=d)),
    OperatorCase("repeat", (S(M, [2, 1]), S(M, [2, 1, 2])), lambda np, x, r: np.tile(x, r)),
    # ---- copies and fills
    OperatorCase("clone", (S(M),), lambda np, x: x.copy(), NUMBERS),
    OperatorCase("contiguous", (S(M),), lambda np, x: x, NUMBERS),
    OperatorCase("fill.Scalar", (S(M, 3),), lambda np, x, v: np.full_like(x, v), NUMBERS),
    OperatorCase("fill.Tensor", (S(M, T(3.0)),), lambda np, x, v: np.full_like(x, v), NUMBERS),
    OperatorCase("masked_fill.Scalar", (S(M, T([True, False, True], "bool"), 2),), lambda np, x, m, v: np.where(m, x.dtype.type(v), x), NUMBERS),
    OperatorCase("masked_fill.Tensor", (S(M, T([[True], [False]], "bool"), T(2.0)),), lambda np, x, m, v: np.where(m, v, x), NUMBERS),
    # ---- indexing, joining, sorting
    OperatorCase("index.Tensor", (S(T(values(3, 4)), [INDEX]), S(T(values(3, 4)), [None, INDEX]), S(T(values(3, 4)), [INDEX, T([[0], [2]], "int64")]), S(T(values(2, 3, 2)), [INDEX, None, T([0], "int64")]), S(T(values(3, 2)), [T([True, False, True], "bool")])), lambda np, x, i: x[tuple(slice(None) if j is None else j for j in i)]),
    OperatorCase("index_put", (S(T(values(3, 2)), [T([2, 0], "int64")], T(values(2, 2, seed=3))), S(T(values(3, 2)), [INDEX], T(values(2, seed=3)), True)), _put),
    OperatorCase("index_select", (S(M, 1, INDEX), S(M, 0, T([], "int64"))), lambda np, x, d, i: np.take(x, i.astype(int), axis=d)),
    OperatorCase("gather", (S(M, 1, T([[0, 2], [1, 1]], "int64")), S(M, 0, T([[1, 0, 1]], "int64"))), lambda np, x, d, i: np.take_along_axis(x, i, d) if d else np.stack([x[i[0], np.arange(3)]])),
    OperatorCase("take_along_dim", (S(M, T([[0, 2], [1, 1]], "int64"), 1), S(M, T([5, 0], "int64"))), lambda np, x, i, d=None: np.take_along_axis(x, i, d) if d is not None else x.reshape(-1)[i]),
    OperatorCase("scatter.src", (S(M, 1, T([[0, 2], [1, 0]], "int64"), T(values(2, 2, seed=3))),), _scattered),
    OperatorCase("scatter.value", (S(M, 0, T([[1, 0, 1]], "int64"), 4),), _scattered, NUMBERS),
    OperatorCase("scatter_add", (S(M, 1, T([[0, 0], [1, 0]], "int64"), T(values(2, 2, seed=3))),), lambda np, *a: _scattered(np, *a, add=True)),
    OperatorCase("index_add", (S(M, 1, INDEX, T(values(2, 3, seed=3))), S(M, -1, INDEX, T(values(2, 3, seed=3)), alpha=2)), _index_add),
    OperatorCase("masked_select", (S(M, T([True, False, True], "bool")),), lambda np, x, m: x[np.broadcast_to(m, x.shape)]),
    OperatorCase("nonzero", (S(T([[0, 1], [2, 0]])), S(T([]))), lambda np, x: np.argwhere(x), NUMBERS, differentiable=False),
    OperatorCase("topk", (S(M, 2), S(M, 1, 0, False)), lambda np, x, k, d=-1, largest=True: (lambda i: (np.take_along_axis(x, i, d), i))(np.argsort(-x if largest else x, axis=d).take(range(k), axis=d))),
    OperatorCase("sort", (S(M), S(M, 0, True)), lambda np, x, d=-1, down=False: (lambda i: (np.take_along_axis(x, i, d), i))(np.argsort(-x if down else x, axis=d))),
    OperatorCase("sort.stable", (S(T([2.0, 1.0, 2.0, 1.0]), stable=True), S(T([2.0, 1.0, 2.0, 1.0]), stable=True, descending=True)), lambda np, x, stable, descending=False: (lambda i: (x[i], i))(np.argsort(-x if descending else x, kind="stable"))),
    OperatorCase("argsort", (S(M), S(M, 0, True)), lambda np, x, d=-1, down=False: np.argsort(-x if down else x, axis=d), differentiable=False),
    OperatorCase("cat", (S([M, T(values(1, 3, seed=3))]), S([M, T(values(2, 1, seed=3))], -1), S([T([]), T(values(2))])), lambda np, t, d=0: np.concatenate(t, axis=d), NUMBERS),
    OperatorCase("stack", (S([M, T(values(2, 3, seed=3))]), S([M, T(values(2, 3, seed=3))], -1)), lambda np, t, d=0: np.stack(t, axis=d), NUMBERS),
    OperatorCase("flip", (S(M, [0]), S(M, [0, -1])), lambda np, x, d: np.flip(x, tuple(d)), NUMBERS),
    OperatorCase("tril", (S(M), S(T(values(2, 3, 3)), 1)), lambda np, x, k=0: np.tril(x, k), NUMBERS),
    OperatorCase("triu", (S(M), S(T(values(2, 3, 3)), -1)), lambda np, x, k=0: np.triu(x, k), NUMBERS),
    OperatorCase("one_hot", (S(T([0, 2, 1], "int64")), S(T([[0], [1]], "int64"), 3)), lambda np, x, n=-1: np.eye(n if n > 0 else x.max() + 1, dtype=np.int64)[x], ("int64",), differentiable=False),
    # ---- gradients with a kernel of their own: the first argument is the gradient of the output
    OperatorCase("threshold_backward", (S(T(values(2, 3, seed=3)), M, 0.5),), lambda np, g, x, t: np.where(x > t, g, 0), differentiable=False),
    OperatorCase("sigmoid_backward", (S(T(values(2, 3, seed=3)), M),), lambda np, g, y: g * y * (1 - y), differentiable=False),
    OperatorCase("tanh_backward", (S(T(values(2, 3, seed=3)), M),), lambda np, g, y: g * (1 - y * y), differentiable=False),
    OperatorCase("gelu_backward", (S(T(values(2, 3, seed=3)), M),), lambda np, g, x: g * ((1 + _erf(np, x / 2 ** 0.5)) / 2 + x * np.exp(-x * x / 2) / (2 * np.pi) ** 0.5), tolerance=1e-7, differentiable=False),
    OperatorCase("mse_loss_backward", (S(T(2.0), M, T(values(2, 3, seed=3)), 1), S(T(values(2, 3, seed=5)), M, T(values(2, 3, seed=3)), 0)), lambda np, g, x, y, r: g * 2 * (x - y) / (x.size if r == 1 else 1), differentiable=False),
    OperatorCase("nll_loss_backward", (S(T(2.0), T(values(3, 4)), T([1, 0, 3], "int64"), None, 1, 0, T(2.0)),), lambda np, g, x, t, w, r, i, total: ((np.arange(4) == t[:, None]) & (t != i)[:, None]) * -g / total, differentiable=False),
    OperatorCase("native_dropout_backward", (S(M, T([True, False, True], "bool"), 2.0),), lambda np, g, m, k: g * m * k, differentiable=False),
    OperatorCase("select_backward", (S(T(values(2)), [2, 3], 1, -1),), lambda np, g, s, d, i: np.stack([0 * g, 0 * g, g], axis=1), differentiable=False),
    OperatorCase("slice_backward", (S(T(values(2)), [5], 0, 1, 5, 2),), lambda np, g, s, d, a, b, k: np.array([0, g[0], 0, g[1], 0], g.dtype), differentiable=False),
    OperatorCase("diagonal_backward", (S(T(values(2)), [2, 2], 0, 0, 1),), lambda np, g, s, o, a, b: np.diag(g), differentiable=False),
    OperatorCase("unfold_backward", (S(T(values(2, 3)), [4], 0, 3, 1),), lambda np, g, s, d, n, k: np.append(g[0], g[0][:1] * 0) + np.append(g[0][:1] * 0, g[1]), differentiable=False),
    # ---- factories that take a tensor
    OperatorCase("zeros_like", (S(M),), lambda np, x: np.zeros_like(x), NUMBERS, differentiable=False),
    OperatorCase("ones_like", (S(M),), lambda np, x: np.ones_like(x), NUMBERS, differentiable=False),
    OperatorCase("full_like", (S(M, 3),), lambda np, x, v: np.full_like(x, v), NUMBERS, differentiable=False),
    OperatorCase("new_zeros", (S(M, [2]),), lambda np, x, s: np.zeros(s, x.dtype), NUMBERS, differentiable=False),
    OperatorCase("new_ones", (S(M, [2]),), lambda np, x, s: np.ones(s, x.dtype), NUMBERS, differentiable=False),
    OperatorCase("new_full", (S(M, [2], 3),), lambda np, x, s, v: np.full(s, v, x.dtype), NUMBERS, differentiable=False),
)
# fmt: on
