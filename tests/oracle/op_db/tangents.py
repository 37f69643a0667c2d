"""Whether the tangent rules say what PyTorch's forward mode says, for every operator that the samples of an OpInfo come down to.

A sample is run in PyTorch, where a mode sees the calls of the operators that have derivatives of their own. Each distinct call is
made again with random tangents, and the rule is given the same arguments, tangents and result: what differs is the rule alone.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import turnout
from op_db import judging
from op_db.bridge import Missing, array_of, here, mapped, tensors
from turnout.errors import TurnoutError
from turnout.registry import REGISTRY

CALLS = 4  # of one operator in one OpInfo


# PyTorch factors the transposed matrix, and norms differ in the last digit, by which the largest element is found.
OWN_RESULT = {"aten::_linalg_det", "aten::_linalg_slogdet", "aten::linalg_vector_norm"}
# They read one triangle of their matrix: which part of a tangent counts is open where it is not Hermitian.
HERMITIAN = {"aten::linalg_cholesky_ex", "aten::_linalg_eigh"}


class Operator(NamedTuple):
    """An operator that has a rule: which arguments may have tangents, and which of its outputs have them."""

    op: Any
    rule: Any
    arguments: tuple[str, ...]
    outputs: tuple[bool, ...]


@cache
def operators() -> dict[str, Operator]:
    """By name, functional operators only."""
    turnout.ones(1).requires_grad_()
    from turnout_autograd.generation.files import read_entries
    from turnout_autograd.tangents import rule

    found = {}
    for name, entry in read_entries()[1].items():
        op = REGISTRY.find(name)
        made = rule(op)
        if made is not None and op.schema.kind == "functional":
            arguments = tuple(a for f in entry.formulas if f.missing is None for a in f.arguments)
            found[name] = Operator(op, made, arguments, entry.outputs)
    return found


class Call(NamedTuple):
    """A call of an operator in PyTorch."""

    name: str
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}{_described(self.args)}{_described(self.kwargs)}"


class _Seen(TorchDispatchMode):
    """Notes the distinct calls of operators that have a rule."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.seen: set[Any] = set()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = function._schema.name + (f".{function._schema.overload_name}" if function._schema.overload_name else "")
        if name in operators() and self.counts[name] < CALLS:
            key = (name, _described(args), _described(kwargs))
            if key not in self.seen:
                self.seen.add(key)
                self.counts[name] += 1
                self.calls.append(Call(name, function, _kept(args), _kept(kwargs)))
        return function(*args, **kwargs)


def _kept(value: Any) -> Any:
    """The argument as it is now: a sample may write into it later."""
    return mapped(value, lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v)


def _described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.dtype)
    if isinstance(value, dict):
        return tuple((k, _described(v)) for k, v in value.items())
    return tuple(map(_described, value)) if isinstance(value, tuple | list) else repr(value)


def calls(info: Any, dtype: torch.dtype) -> list[Call]:
    """The distinct calls that the samples of an OpInfo and their gradients come down to."""
    mode = _Seen()
    for sample in judging.samples(info, dtype, requires_grad=True):
        with warnings.catch_warnings(), mode:
            warnings.simplefilter("ignore")
            with contextlib.suppress(Exception):  # a sample that PyTorch itself refuses says no more
                made = info.op(sample.input, *sample.args, **sample.kwargs)
                ends = [t for t in tensors(made) if t.requires_grad]
                torch.autograd.backward(ends, [torch.ones_like(end) for end in ends])
    return mode.calls


def verdict(info: Any, dtype: torch.dtype) -> str | None:
    """The first difference between tangents."""
    for call in calls(info, dtype):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            difference = difference_of(info, call)
        if difference:
            return f"{call}: {difference}"
    return None


def difference_of(info: Any, call: Call) -> str | None:
    """What differs, in words; "" for agreement, None where PyTorch has no derivative."""
    operator = operators()[call.name]
    tangents = _tangents(call, operator.arguments)
    if all(t is None for each in tangents.values() for t in (each if isinstance(each, tuple) else (each,))):
        return None
    try:
        result, expected = _theirs(call, tangents, operator)
    except Exception:  # noqa: BLE001 - PyTorch has no derivative here
        return None
    try:
        args, kwargs = here(call.args), here(call.kwargs)
        given = operator.op(*args, **kwargs) if call.name in OWN_RESULT else here(result)
        each = tuple(
            None if tangents.get(a.name) is None else here(tangents[a.name])
            for a in operator.op.schema.arguments if str(a.type).startswith("Tensor")
        )  # fmt: skip
        with turnout.no_grad():
            made = operator.rule(args, kwargs, each, given)
    except Missing:
        return None
    except TurnoutError as error:
        return judging.raised(error)
    found = list(made) if isinstance(made, tuple | list) else [made]
    for position, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
        ours_there = torch.zeros_like(theirs) if ours is None else array_of(ours)
        difference = judging.apart(ours_there, theirs, *judging.tolerance(info, theirs.dtype, 1e-6))
        if difference:
            return f"tangent {position}: {difference}"
    return ""


def _tangents(call: Call, arguments: tuple[str, ...]) -> dict[str, Any]:
    """A random tangent for each floating argument, by name; a tuple for a list."""
    generator = torch.Generator().manual_seed(0)

    def tangent(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
            return None
        made = torch.randn(value.shape, dtype=value.dtype, generator=generator)
        return made + made.mH if call.name in HERMITIAN else made

    found = {}
    for name, value in _by_name(call).items():
        if name in arguments:
            found[name] = tuple(map(tangent, value)) if isinstance(value, tuple | list) else tangent(value)
    return found


def _by_name(call: Call) -> dict[str, Any]:
    names = [a.name for a in call.function._schema.arguments]
    return dict(zip(names, call.args, strict=False)) | call.kwargs


def _theirs(call: Call, tangents: dict[str, Any], operator: Operator) -> tuple[Any, list[torch.Tensor]]:
    """The result, and the tangents of its differentiable outputs."""

    def dual(value: Any, tangent: Any) -> Any:
        if isinstance(value, tuple | list):
            return [dual(v, t) for v, t in zip(value, tangent, strict=True)]
        return value if tangent is None else forward_ad.make_dual(value, tangent)

    with forward_ad.dual_level():
        given = {n: dual(v, tangents[n]) if tangents.get(n) is not None else v for n, v in _by_name(call).items()}
        names = [a.name for a in call.function._schema.arguments if not a.kwarg_only and a.name in given]
        made = call.function(*[given.pop(n) for n in names], **given)
        outputs = list(made) if isinstance(made, tuple | list) else [made]
        wanted = outputs if len(operator.outputs) != len(outputs) else [
            t for t, yes in zip(outputs, operator.outputs, strict=True) if yes
        ]  # fmt: skip
        pairs = [forward_ad.unpack_dual(t) for t in wanted]
        plain = [forward_ad.unpack_dual(t).primal.detach() for t in outputs]
    result = plain if isinstance(made, tuple | list) else plain[0]
    return result, [torch.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs]
