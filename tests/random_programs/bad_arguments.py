"""Calls of operators with one argument that is wrong, or that may be: what an error must say, and what it must leave.

`program(seed)` takes a call from the table of operator cases and replaces one argument by a value of the same or another type, or
leaves it out. The seeds go round the table, so as many seeds as it has rows reach every operator. Such a call may succeed. If it
raises, the error is one of Turnout, its text names an operator, and it is not that of an array library. The tensors among the
arguments are as before.
"""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import turnout
from turnout.errors import DeviceError, PluginError, TurnoutError
from turnout.registry import find_operator
from turnout.schema import Argument
from turnout_conformance.cases import CASES, T, build

HUGE = 10**15
DTYPES = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
NAMED = ("turnout.bool", "turnout.int8", "turnout.float16", "turnout.complex64")


@dataclass(frozen=True)
class Source:
    """A value that is written as this expression."""

    text: str

    def __repr__(self) -> str:
        return self.text


OF_NO_TYPE = ("x", object, [None], Source("{1: 2}"))
# Base type of the schema language -> values that are wrong for many arguments of it, or right for some.
VALUES: dict[str, tuple[Any, ...]] = {
    "bool": (2, 0.5, None),
    "int": (-1, 0, 1, 2, 5, -7, HUGE, 2**63, -(2**70), 1.5, True, 1j, None),
    "float": (-1.0, 0.0, 2.0, 1e300, math.inf, -math.inf, math.nan, 1j, True, 2**2000, None),
    "Scalar": (-1, 0, 3, 300, 2**70, 0.5, 1e300, math.inf, math.nan, 1j, True, None),
    "str": ("", "no such", 3, None),
    "ScalarType": (*(Source(name) for name in NAMED), Source("'float33'"), 3, None),
    "Device": ("cuda:7", "no such", -1, None),
    "Generator": (3, None),
    "Layout": ("strided", 3, None),
    "MemoryFormat": ("channels_last", 3, None),
}


@dataclass(frozen=True)
class Program:
    """A call; `args` and `kwargs` hold `T` for tensors."""

    op: str
    dtype: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        shown = [written(a, self.dtype) for a in self.args]
        shown += [f"{k}={written(v, self.dtype)}" for k, v in self.kwargs.items()]
        name, _, overload = self.op.partition(".")
        return f"import turnout\nturnout.ops.aten.{name}.{overload or 'default'}({', '.join(shown)})"


def written(value: Any, dtype: str) -> str:
    """An argument as source."""
    if isinstance(value, T):
        return f"turnout.tensor({written(value.data, dtype)}, dtype=turnout.{value.dtype or dtype})"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(written(v, dtype) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return "object" if value is object else repr(value)


def program(seed: int) -> Program:
    """A row of the table with one argument replaced, left out, or added."""
    pick = random.Random(seed)
    case = CASES[seed % len(CASES)]
    sample = pick.choice(case.samples)
    schema = find_operator(f"aten::{case.op}").schema
    args, kwargs = list(sample.args), dict(sample.kwargs)
    positional = [a for a in schema.arguments if not a.kwarg_only]
    given: list[tuple[int | str, Argument]] = list(enumerate(positional[: len(args)]))
    given += [(a.name, a) for a in schema.arguments if a.name in kwargs]
    absent = [a for a in schema.arguments[len(args) :] if a.name not in kwargs]
    way = pick.randrange(20)
    if way == 0:
        args = args[:-1]
    elif way == 1:
        args.append(pick.choice((None, 1, "x")))
    elif way == 2:
        kwargs["dims"] = 1
    elif absent and (way < 7 or not given):
        argument = pick.choice(absent)
        kwargs[argument.name] = replacement(pick, argument, None)
    elif given:
        place, argument = pick.choice(given)
        values: Any = args if isinstance(place, int) else kwargs
        values[place] = replacement(pick, argument, values[place])
    return Program(case.op, pick.choice(case.dtypes), tuple(args), kwargs)


def replacement(pick: random.Random, argument: Argument, value: Any) -> Any:
    """Another value for an argument."""
    if pick.random() < 0.08:
        return pick.choice(OF_NO_TYPE)
    base = argument.type.base
    kind = "" if base is None else base.canonical
    kind = {"SymInt": "int", "SymFloat": "float", "SymBool": "bool", "DeviceIndex": "int"}.get(kind, kind)
    if argument.type.is_list and isinstance(value, (list, tuple)):
        return changed_list(pick, kind, list(value))
    if kind == "Tensor":
        return changed_tensor(pick, value)
    one = pick.choice(VALUES[kind])
    return [one] * pick.choice((0, 1, 2, 3)) if argument.type.is_list and pick.random() < 0.7 else one


def changed_list(pick: random.Random, kind: str, values: list[Any]) -> Any:
    """A list of another length, or with another element."""
    way = pick.randrange(5)
    if way == 0 or not values:
        return [*values, *values[-1:], *([] if values or kind == "Tensor" else [1])]
    if way == 1:
        return values[:-1]
    if way == 2:
        return values[0]
    at = pick.randrange(len(values))
    values[at] = changed_tensor(pick, values[at]) if kind == "Tensor" else pick.choice(VALUES[kind])
    return values


def changed_tensor(pick: random.Random, value: Any) -> Any:
    """A tensor of another shape or dtype, or something else."""
    if not isinstance(value, T) or pick.random() < 0.1:
        return pick.choice((None, 2, 1.5, T([1.0, 2.0]), T(1.0), T([]), [1.0, 2.0]))
    data, dtype = value.data, value.dtype
    way = pick.randrange(7)
    if way == 0:
        return T(data, pick.choice(DTYPES))
    if way == 1 or not isinstance(data, list):
        return T([data], dtype)
    if way == 2:
        return T(data[:-1], dtype)
    if way == 3:
        return T([*data, *data[:1]], dtype)
    if way == 4:
        return T(data[0] if data else 1, dtype)
    if way == 5:
        return T([row[:-1] if isinstance(row, list) else row for row in data], dtype)
    return T(with_number(data, pick.choice((-1, 0, 5, 100, -HUGE) if dtype == "int64" else (-1, 0, math.nan, math.inf))), dtype)


def with_number(data: Any, number: Any) -> Any:
    """Nested lists with another first element."""
    return [with_number(data[0], number), *data[1:]] if isinstance(data, list) and data else number if data != [] else data


def fault(one: Program) -> str:
    """What is wrong with the outcome of a call, "" for nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            args, kwargs = built(one)
    except Exception:  # noqa: BLE001 - these numbers make no tensor of this dtype: there is no call to judge
        return ""
    if one.op == "tensor_split.sections" and HUGE in [v for v in (*args, *kwargs.values()) if type(v) is int]:
        return ""  # as many views as that are not an error, and would never end
    before = [repr(t.tolist()) for t in tensors([args, kwargs])]
    op = find_operator(f"aten::{one.op}")
    turnout.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            op(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - it is judged
        found = judged(error)
        if found:
            return found
    if [repr(t.tolist()) for t in tensors([args, kwargs])] != before:
        return "a tensor among the arguments has changed"
    return ""


def built(one: Program) -> tuple[list[Any], dict[str, Any]]:
    """The arguments."""

    def make(data: Any, dtype: str) -> Any:
        return turnout.tensor(data, dtype=getattr(turnout, dtype))

    def value(v: Any) -> Any:
        return eval(v.text) if isinstance(v, Source) else v

    args = [value(build(a, one.dtype, make)) for a in one.args]
    return args, {k: value(build(v, one.dtype, make)) for k, v in one.kwargs.items()}


def tensors(value: Any) -> Iterator[turnout.Tensor]:
    """The tensors in lists and dicts."""
    if isinstance(value, turnout.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from tensors(v)


# An error's text begins with the operator: "sum: ...", "aten::sum.dim_IntList: ...", "logit is not defined for ...". Those of
# factories, which have a frame to spare for nothing, name the argument.
NAMED_TEXT = re.compile(
    r"[\w.:/]+: |\w+ is (not )?defined for |(layout|memory_format) must be |shape \[.*\] has a negative length"
)
# Calls are calls of Python functions: it tells which arguments they take.
OF_THE_SIGNATURE = re.compile(r"aten::[\w.]+\(\) (got|takes|missing) ")


def judged(error: Exception) -> str:
    """What is wrong with an error, "" for nothing."""
    text = str(error)
    if isinstance(error, TypeError) and OF_THE_SIGNATURE.match(text):
        return ""
    if not isinstance(error, TurnoutError):
        return f"{type(error).__name__} is not an error of Turnout: {text}"
    cause = error.__cause__
    if cause is not None and not isinstance(cause, TurnoutError) and str(cause) and str(cause) in text:
        return f"the text is that of a {type(cause).__name__}: {text}"
    return (
        "" if NAMED_TEXT.match(text) or isinstance(error, (DeviceError, PluginError)) else f"the text names no operator: {text}"
    )
