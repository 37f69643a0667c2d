"""How near a device's results are to exact ones: sets of samples against cpu in float64, in units in the last place.

Numbers are rounded to the dtype under test first, so that cpu computes with the same ones, and its result in 64 bits is what an
exact device would round once. Where each number of a result is rounded on its own, the distance is counted in units in the last
place (ulp) of the dtype of the result. Elsewhere it is relative to the largest number of the result.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

import turnout
from turnout.dtypes import complex128, dtype_named, float64
from turnout_conformance.cases import SETS, Sample, SampleSet
from turnout_conformance.cases.sets.limits import DEFAULT, LIMITS, Limit
from turnout_conformance.comparing import facts, find, form, layout, promised, tensors
from turnout_conformance.making import arguments, row_major

# Tolerances where they are relative.
TOLERANCES = {"float64": 1e-12, "float32": 4e-6, "float16": 1e-3, "bfloat16": 8e-3}
PARTS = {"complex128": "float64", "complex64": "float32"}


@cache
def precision(dtype: str) -> tuple[int, int]:
    """Bits of the significand of a dtype, and the exponent of the least normal number."""
    limits = turnout.finfo(dtype_named(dtype))
    return 2 - math.frexp(limits.eps)[1], math.frexp(limits.smallest_normal)[1] - 1


@dataclass(frozen=True)
class Answer:
    """What is expected of a call of an operator: (shape, dtype name) and layout of each result, and its numbers in 64 bits."""

    operator: str
    samples: SampleSet
    sample: Sample
    dtype: str
    promised: list[tuple[tuple[int, ...], str]]
    layouts: list[list[int]]
    numbers: list[Any]


def widened(data: Any, dtype: str) -> turnout.Tensor:
    """A tensor of numbers of a dtype, held in 64 bits if they are floats or complex."""
    made = row_major("cpu")(data, dtype)
    return made.to(complex128) if made.is_complex() else made.to(float64) if made.is_floating_point() else made


@lru_cache(maxsize=2)
def answers(name: str, operator: str) -> list[Answer]:
    """What is expected of the calls of an operator in a set. All devices ask for the same one after another."""
    return answers_of(operator, SETS[name].get(operator, ()))


def answers_of(operator: str, given: Iterable[SampleSet]) -> list[Answer]:
    """What is expected of the calls of an operator."""
    return [_answer(operator, samples, sample, dtype) for samples in given for sample, dtype in samples.calls()]


def _answer(operator: str, samples: SampleSet, sample: Sample, dtype: str) -> Answer:
    op = find(operator)
    args, kwargs = arguments(sample, dtype, widened if samples.wide else row_major("cpu"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        made = tensors(op(*args, **kwargs))
    told = promised(op, *arguments(sample, dtype, row_major("cpu")))
    if told is None:  # the shapes depend on values
        told = facts(made)
    shown = [(tuple(f[0]), f[1].name) for f in told]
    return Answer(operator, samples, sample, dtype, shown, [f[2] for f in told], [in_64_bits(t) for t in made])


def in_64_bits(tensor: turnout.Tensor) -> Any:
    """A tensor's numbers as an array; floats and complex numbers in 64 bits."""
    tensor = tensor.detach().cpu()
    wide = complex128 if tensor.is_complex() else float64 if tensor.is_floating_point() else tensor.dtype
    return tensor.to(wide).numpy()


# ---- distances


def rounded(exact: Any, dtype: str) -> Any:
    """Numbers in 64 bits rounded to a dtype, in 64 bits again."""
    return exact if dtype == "float64" else turnout.from_numpy(exact).to(dtype_named(dtype)).to(float64).numpy()


def units(numbers: Any, dtype: str, floor: float = 0.0) -> Any:
    """The unit in the last place of each number; of `floor` where it is nearer to 0."""
    bits, least = precision(dtype)
    exponents = np.frexp(np.maximum(np.abs(numbers), floor))[1] - 1
    return np.ldexp(1.0, np.maximum(exponents, least) - (bits - 1))


def differs(found: Any, exact: Any, dtype: str, limit: Limit | float) -> str:
    """How the numbers of a result, in 64 bits, differ from the exact ones; "" where they do not. `limit` is in ulp if it is a
    `Limit`, else relative to the largest number."""
    if dtype in PARTS:
        return _complex_differs(found, exact, PARTS[dtype], limit)
    if dtype not in TOLERANCES:
        return _worst(np.where(found == exact, 0.0, np.inf), 0.0, found, exact, "")
    wanted = rounded(exact, dtype)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    if isinstance(limit, Limit) and limit.signs:
        same &= (wanted != 0) | (np.signbit(found) == np.signbit(wanted))
    finite = np.isfinite(found) & np.isfinite(wanted) & ((found != wanted) if isinstance(limit, Limit) else True)
    with np.errstate(all="ignore"):
        if isinstance(limit, Limit):
            distance = np.abs(found - exact) / units(wanted, dtype, limit.floor)
            most, unit = limit.of(dtype), " ulp"
        else:
            distance = np.abs(found - exact) / max(_largest(exact), 1e-300)
            most, unit = limit * TOLERANCES[dtype], ""
    return _worst(np.where(same, 0.0, np.where(finite, distance, np.inf)), most, found, exact, unit)


def _complex_differs(found: Any, exact: Any, part: str, limit: Limit | float) -> str:
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    finite = np.isfinite(found) & np.isfinite(exact)
    with np.errstate(all="ignore"):
        size = units(np.abs(exact), part) if isinstance(limit, Limit) else max(_largest(np.abs(exact)), 1e-300)
        distance = np.where(same, 0.0, np.where(finite, np.abs(found - exact) / size, np.inf))
    most = limit.of(part) if isinstance(limit, Limit) else limit * TOLERANCES[part]
    return _worst(distance, most, found, exact, " ulp" if isinstance(limit, Limit) else "")


def _largest(numbers: Any) -> float:
    sizes = np.abs(numbers[np.isfinite(numbers)])
    return float(sizes.max()) if sizes.size else 0.0


def _worst(distance: Any, most: float, found: Any, exact: Any, unit: str) -> str:
    """What is said of the largest distance; "" where it is within `most`."""
    if not distance.size or not (distance.max() > most):
        return ""
    at = np.unravel_index(int(distance.argmax()), distance.shape)
    count = int((distance > most).sum())
    place = f"at {[int(i) for i in at]}" if at else "its number"
    much = f"by {float(distance[at]):.4g}{unit}, more than {most:.4g}" if math.isfinite(distance[at]) else ""
    return f"{count} of {distance.size} differ, {place} {found[at]!r} instead of {exact[at]!r} {much}".rstrip()


# ---- calls


@dataclass(frozen=True)
class Accuracy:
    """What is wrong with a device's results.

    device   its name
    without  dtypes that it does not compute in
    limits   operator -> where the device keeps to another limit than that of `LIMITS`
    watch    called behind each call with the operator's name; says what was wrong beside the numbers: work on the host, a kernel
             that did not run. "" for nothing
    layouts  whether new results must lie in memory as meta says
    """

    device: str
    without: tuple[str, ...] = ()
    limits: Mapping[str, Limit] = field(default_factory=dict)
    watch: Callable[[str], str] = lambda operator: ""
    layouts: bool = False

    def problems(self, name: str, operator: str) -> Iterator[str]:
        """Those of an operator at the samples of a set, and of its in-place and out forms at one sample of each row."""
        return self.differences(operator, answers(name, operator))

    def differences(self, operator: str, expected: list[Answer]) -> Iterator[str]:
        """The same for what is expected of calls of an operator."""
        asked = [answer for answer in expected if answer.dtype not in self.without]
        first = {id(a.samples): a for a in reversed(asked)}.values()
        one_dtype = {id(a.samples): a for a in asked if any(a.samples is f.samples and a.dtype == f.dtype for f in first)}
        op = find(operator)
        for answer in asked:
            yield from self._wrong(answer, op, op.schema.kind)
        for kind in ("inplace", "out"):
            other = form(op, kind)
            for answer in one_dtype.values() if other is not None else ():
                yield from self._wrong(answer, other, kind)

    def _wrong(self, answer: Answer, op: Any, kind: str) -> Iterator[str]:
        """What is wrong with a call of one form."""
        args, kwargs = arguments(answer.sample, answer.dtype, row_major(self.device))
        if kind == "inplace" and ([(tuple(args[0].shape), args[0].dtype.name)] != answer.promised or 0 in args[0].stride()):
            return
        if kind == "out":
            names = [a.name for a in op.schema.out_arguments]
            kwargs |= {n: _gapped(*facts, self.device) for n, facts in zip(names, answer.promised, strict=True)}
        self.watch("")  # what was done to make the arguments says nothing about the operator
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            made = tensors(op(*args, **kwargs))
        said = [self.watch(op.qualified_name.partition("::")[2])]
        if (shown := [(tuple(t.shape), t.dtype.name) for t in made]) != answer.promised:
            said.append(f"gave {shown} instead of {answer.promised}")
        else:
            lies = [layout(t) for t in made]
            if self.layouts and kind == "functional" and lies != answer.layouts:
                said.append(f"gave strides {lies} instead of {answer.layouts}")
            limit: Limit | float = {**LIMITS, **self.limits}.get(answer.operator, DEFAULT)
            limit = limit if answer.samples.tolerance is None else answer.samples.tolerance
            for result, exact, (_, dtype) in zip(made, answer.numbers, answer.promised, strict=True):
                said.append(differs(in_64_bits(result), exact, dtype, limit))
        where = f"{op.qualified_name} {answer.dtype} {answer.sample}"
        yield from (f"{where[:200]}: {each}" for each in said if each)


def _gapped(shape: tuple[int, ...], dtype: str, device: str) -> turnout.Tensor:
    """An output whose elements have gaps between them, and whose dims are in reverse order."""
    room = turnout.ones([2 * n for n in reversed(shape)], dtype=dtype_named(dtype), device=device)
    return room[tuple(slice(None, None, 2) for _ in shape)].permute(list(reversed(range(len(shape)))))
