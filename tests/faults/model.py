"""`Spec`: an operator as data, so that a rule can change one part of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import turnout
from turnout import library
from turnout.dtypes import DType
from turnout.operators import Operator
from turnout.registry import REGISTRY

Call = Callable[..., Any]
Inputs = tuple[tuple[Any, ...], dict[str, Any]]

DEFAULT = "CompositeExplicitAutograd"
COMPOSITE = "CompositeImplicitAutograd"
NAMESPACE = "faults"


@dataclass(frozen=True)
class Spec:
    """An operator.

    schema    without a name: "(Tensor x) -> Tensor"
    kernel    the function at `key`; `kernels` are those at other keys
    inputs    makes the arguments of a call anew
    fake      the function for tensors without data
    backward  the gradient rule, with `setup`; vmap: the batching rule, `opaque` or not; autocast: the dtype of the casts
    arrays    whether the kernel takes arrays
    checked   whether it is made by `custom_op`, which checks every result, and not in a Library
    """

    name: str
    schema: str
    kernel: Call
    inputs: Callable[[], Inputs]
    key: str = DEFAULT
    kernels: Mapping[str, Call] = field(default_factory=dict)
    fake: Call | None = None
    backward: Call | None = None
    setup: Call | None = None
    vmap: Call | None = None
    opaque: bool = False
    autocast: DType | None = None
    tags: tuple[str, ...] = ()
    arrays: bool = False
    checked: bool = False

    def __str__(self) -> str:
        return self.name

    def but(self, **changes: Any) -> Spec:
        """The same operator with other parts."""
        return replace(self, **changes)


@contextmanager
def installed(spec: Spec) -> Iterator[Operator]:
    """The operator of a spec, inside the block."""
    name = f"{NAMESPACE}::{spec.name}"
    with library.Library(NAMESPACE, "FRAGMENT") as lib:
        if spec.checked:
            written = tuple(a.name for a in parsed(spec).mutated_arguments)
            made = library.custom_op(name, spec.kernel, mutates_args=written, schema=spec.schema, tags=spec.tags)
        else:
            made = None
            lib.define(f"{spec.name}{spec.schema}", tags=spec.tags)
            lib.impl(spec.name, spec.kernel, spec.key, arrays=spec.arrays)
        try:
            for key, kernel in spec.kernels.items():
                lib.impl(spec.name, kernel, key)
            if spec.fake is not None:
                library.register_fake(name, spec.fake, lib=lib)
            if spec.backward is not None:
                library.register_autograd(name, spec.backward, setup_context=spec.setup, lib=lib)
            if spec.vmap is not None:
                library.register_vmap(name, spec.vmap, lib=lib, opaque=spec.opaque)
            if spec.autocast is not None:
                library.register_autocast(name, "cpu", spec.autocast, lib=lib)
            yield REGISTRY.find(name)
        finally:
            if made is not None:
                made.undo()


def parsed(spec: Spec) -> Any:
    """The schema of a spec."""
    from turnout.schema import FunctionSchema

    return FunctionSchema.parse(f"{NAMESPACE}::{spec.name}{spec.schema}")


# ---- inputs


def values(*shape: int, dtype: DType = turnout.float64, seed: int = 1, low: float = -2.0, high: float = 2.0) -> turnout.Tensor:
    """A tensor of distinct numbers in an irregular order."""
    count = math.prod(shape)
    flat = [low + (high - low) * ((7919 * seed * (i + 1)) % 1009 + 0.5) / 1009 for i in range(count)]
    return turnout.tensor(flat, dtype=turnout.float64).reshape(shape).to(dtype)


def whole(*shape: int, dtype: DType = turnout.int64, seed: int = 1, low: int = 0, high: int = 9) -> turnout.Tensor:
    """A tensor of integers from low to high - 1."""
    count = math.prod(shape)
    flat = [low + (7919 * seed * (i + 1)) % 1009 % (high - low) for i in range(count)]
    return turnout.tensor(flat, dtype=dtype).reshape(shape)


def given(*args: Any, **kwargs: Any) -> Inputs:
    """The arguments of a call."""
    return args, kwargs
