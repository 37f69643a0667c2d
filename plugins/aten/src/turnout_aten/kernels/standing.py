"""Whether nothing but tensors decides about a call, and operators have the kernels that they came with.

Then a shortcut may compute at once what they would compute in turn.

A kernel says in a word what it does: a row its `Move`, or "row"; a kernel of this package "view", "factory" or "fill"; a
composite kernel the name of its operator. Whoever registers another kernel registers one that does not say it, and is called.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from turnout.registry import find_operator
from turnout.state import BELOW_ADINPLACEORVIEW, FRESH, STUB_BUILTINS
from turnout.table import FALLBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator

    Call = Callable[..., Any]
    Found = tuple[tuple[dict[int, Any], int, Any], ...]


class Standing:
    """Asked with the key set of plain tensors at each call: (operator, word) pairs, all of whose kernels do what the words say.

    What was found is compared with the operators' caches, which any change to the registry clears.
    """

    __slots__ = ("_known", "_words")

    def __init__(self, **words: str) -> None:
        self._words = words
        self._known: dict[int, tuple[Found, bool]] = {}

    def __call__(self, ks: int) -> bool:
        if STUB_BUILTINS["DISPATCH"]() is not FRESH:
            return False
        known, answer = self._known.get(ks, _UNKNOWN)
        for cache, key, kernel in known:
            if cache.get(key) is not kernel:
                break
        else:
            return answer
        found: list[Any] = []
        for name, word in self._words.items():
            packet, _, overload = name.rpartition("__")
            answer = _stands(find_operator(f"aten::{packet}.{overload}" if packet else f"aten::{name}"), word, ks, found)
            if not answer:
                break
        self._known[ks] = tuple(found), answer
        return answer


_UNKNOWN: tuple[Found, bool] = ((({}, 0, object()),), False)


def _stands(op: Operator, word: str, ks: int, found: list[Any]) -> bool:
    """Whether the kernel of one operator does what a word says. Adds what was found, with what stands before it.

    The operator is made ready for calls, because a compiled caller calls the operators where they are ready.
    """
    _ = op.stub
    if word == "factory":  # behind what selects its backend
        keys, first = op.registry.keys, int(FRESH[0] & FRESH[1])
        found.append((op.cache, first, op.lookup(first)))
        ks = first & ~keys.bit("BackendSelect") | ks & keys.backend_mask | keys.bit("Dense")
    kernel = op.lookup(ks)
    if getattr(kernel, "records", None) is op:  # it records a view, or counts a write
        found.append((op.cache, ks, kernel))
        ks &= BELOW_ADINPLACEORVIEW
        kernel = op.lookup(ks)
    found.append((op.cache, ks, kernel))
    if word == "row":  # shortcuts call the operator that has it, which looks after devices
        kernel = getattr(kernel, "__wrapped__", kernel)
    if getattr(kernel, "does", "") != word:
        return False
    entry = op.plan(found[0][1]).entry if word == "factory" else None
    return entry is None or entry.reason == FALLBACK


def does(word: str, kernel: Call) -> Call:
    """The kernel, which says in a word what it does. One of an extension module says nothing: it has ways of its own."""
    marked: Any = kernel
    with suppress(AttributeError):
        marked.does = word
    return kernel
