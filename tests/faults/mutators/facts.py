"""What a call of an operator shows, by which rules decide where a fault would show; the checks by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import turnout
from faults.model import Spec, installed, parsed
from outcomes import flat
from turnout import Tensor

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]

SCHEMA, FAKE, GRADIENTS = "test_schema", "test_faketensor", "test_gradients"
BATCHING, BACKENDS, INPUTS, DETERMINISM = "test_batching", "test_backends", "test_inputs", "test_determinism"
THREADS, COMPLIANCE, REPLAY = "test_threads", "test_composite_compliance", "test_aot_dispatch_static"


class Facts:
    """What a call of an operator shows."""

    def __init__(self, spec: Spec) -> None:
        self.schema = parsed(spec)
        args, kwargs = spec.inputs()
        names = [a.name for a in self.schema.positional]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        self.tensors = {n: v for n, v in given.items() if isinstance(v, Tensor)}
        self.lists = {n: v for n, v in given.items() if isinstance(v, list) and any(isinstance(e, Tensor) for e in v)}
        self.written = {a.name for a in self.schema.mutated_arguments}
        with installed(spec) as op:
            turnout.manual_seed(1)
            self.result = op(*args, **kwargs)
        self.results = [v for v in flat(self.result) if isinstance(v, Tensor)]
        self.fresh = all(r.annotation is None for r in self.schema.returns) and bool(self.results)
        self.read = [n for n in self.tensors if n not in self.written]


def mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """A result with each tensor changed."""
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(v, change) for v in value])
    return change(value) if isinstance(value, Tensor) else value


def is_floating(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


Rule = Iterator[tuple[str, str, Spec]]
