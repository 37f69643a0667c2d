"""Two functionalities as someone outside writes them with docs/write-a-functionality.md alone: a nan guard and a FLOP counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import turnout
from turnout.keys import KEYS
from turnout.operators import Operator
from turnout.operators.values import tensors_in
from turnout.registry import Registrations
from turnout.state import exclude, only_backends


class NanGuard:
    """Looks at what each operator makes: `checked` counts them, `found` has those that made a nan, with the user's line."""

    def __init__(self, library: Registrations) -> None:
        library.functionality("Nanguard", after="Autograd", asks_lines=True)
        library.fallback("Nanguard", self.check, label="look for nan")
        self.bit = KEYS.bit("Nanguard")
        self.checked: Counter[str] = Counter()
        self.found: list[tuple[str, str]] = []

    def check(self, op: Operator, keyset: int, args: tuple[Any, ...]) -> Any:
        below = keyset & ~self.bit
        if op.next(below, args).composite:
            return op.redispatch(below, *args)
        with exclude("Nanguard"):
            made = op.redispatch(below, *args)
        self.checked[op.qualified_name] += 1
        with only_backends():
            if any(tensor.isnan().any() for tensor in tensors_in((made,)) if tensor.is_floating_point()):
                self.found.append((op.qualified_name, str(turnout.user_frame())))
        return made


def _product(made: Any, first: Any, second: Any, *rest: Any) -> int:
    return 2 * made.numel() * int(first.shape[-1])


def _attention(made: Any, query: Any, key: Any, *rest: Any) -> int:
    return 4 * prod(query.shape) * int(key.shape[-2])


FLOPS: dict[str, Callable[..., int]] = {
    "aten::mm": _product,
    "aten::bmm": _product,
    "aten::scaled_dot_product_attention": _attention,
}


class FlopCounter:
    """Counts multiplications and additions by operator, and in `calls` all calls."""

    def __init__(self, library: Registrations, after: str) -> None:
        library.functionality("Flops", after=after)
        library.fallback("Flops", None, specialize=self.specialize, label="count FLOPs")
        self.bit = KEYS.bit("Flops")
        self.calls: Counter[str] = Counter()
        self.flops: Counter[str] = Counter()

    def specialize(self, op: Operator) -> Callable[..., Any]:
        formula = FLOPS.get(op.qualified_name)

        def count(op: Operator, keyset: int, args: tuple[Any, ...]) -> Any:
            below = keyset & ~self.bit
            if op.next(below, args).composite:
                return op.redispatch(below, *args)
            with exclude("Flops"):
                made = op.redispatch(below, *args)
            self.calls[op.qualified_name] += 1
            if formula is not None:
                self.flops[op.qualified_name] += formula(made, *args)
            return made

        return count
