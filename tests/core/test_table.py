"""The computed table against recorded answers of PyTorch 2.13, as a pure function and through a live registry."""

from __future__ import annotations

import gzip
import json
import random
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from turnout.keys import KeySpace, Universe
from turnout.registry import Registrations, Registry
from turnout.table import Entry, compute

COMPOSED = "CompositeExplicitAutogradNonFunctional"
DATA = Path(__file__).with_name("dispatch_tables.json.gz")


@cache
def recorded() -> dict:
    return json.loads(gzip.decompress(DATA.read_bytes()))


@cache
def torch_universe() -> Universe:
    data = recorded()
    return Universe(data["functionalities"], data["backends"], data["aliases"], data["backends_of"])


@cache
def words() -> dict[str, str]:
    """Reason of a kernel -> its letter."""
    return {reason: letter for letter, reason in recorded()["legend"].items() if letter != "d"}


def letters(table: dict[str, Entry]) -> str:
    found = map(table.get, torch_universe().runtime_keys)
    return "".join("." if e is None else "d" if e.key == COMPOSED else words()[e.reason] for e in found)


def test_the_universe_has_torchs_runtime_keys_in_torchs_order():
    assert list(torch_universe().runtime_keys) == recorded()["runtime_keys"]


def sets(kind: str) -> dict[tuple[str, ...], str]:
    """Every set of keys that is recorded, with its table: many operators have the same."""
    assert len(recorded()[kind]) >= 1500
    found = {tuple(keys): table for _, keys, table in recorded()[kind]}
    assert all(found[tuple(keys)] == table for _, keys, table in recorded()[kind])
    return found


@pytest.mark.parametrize("kind", ["operators", "random"])
def test_every_recorded_cell_is_reproduced(kind):
    fallbacks = {key: key for key in recorded()["fallbacks"]}
    tables = {keys: letters(compute(torch_universe(), {k: k for k in keys}, fallbacks)) for keys in sets(kind)}
    assert tables == sets(kind)


def live_registry() -> Registry:
    registry = Registry(KeySpace(torch_universe()))
    library = Registrations("fallbacks", registry=registry)
    for key in recorded()["fallbacks"]:
        library.fallback(key, lambda op, ks, args: None)
    return registry


def kernel_function(*args):
    return args


def orders(keys: tuple[str, ...], draw: random.Random) -> list[tuple[str | None, ...]]:
    """In which orders kernels and definition, None, are registered: all where they are few, and else some."""
    steps = (*keys, None)
    return list(permutations(steps)) if len(steps) <= 4 else [tuple(draw.sample(steps, len(steps))) for _ in range(20)]


@pytest.mark.parametrize("count", range(7))
def test_the_live_registry_gives_the_same_table_for_any_order_of_registration(count):
    registry = live_registry()
    draw = random.Random(count)
    wrong = []
    for keys, table in sets("random").items():
        for order in orders(keys, draw) if len(keys) == count else ():
            with Registrations("test", registry=registry) as library:
                for key in order:
                    if key is None:
                        op = library.define("test::case(Tensor x) -> Tensor", trusted=True)
                    else:
                        library.impl("case", key, kernel_function, form="internal")
                if letters(op.table()) != table:
                    wrong.append(order)
    assert wrong == []
    assert registry.operators == {}


@pytest.mark.parametrize("part", range(2))
def test_registering_more_kernels_and_undoing_them_leaves_the_table_as_it_was(part):
    registry = live_registry()
    choose = random.Random(100 + part)
    every_key = [*torch_universe().runtime_keys[1:], *torch_universe().aliases]
    for number, (_, keys, table) in enumerate(recorded()["random"][part::2]):
        library = Registrations("test", registry=registry)
        op = library.define(f"test::undone{number}(Tensor x) -> Tensor", trusted=True)
        for key in keys:
            library.impl(op.qualified_name, key, kernel_function, form="internal")
        extra = Registrations("extra", registry=registry)
        for key in choose.sample(every_key, 5):
            extra.impl(op.qualified_name, key, kernel_function, form="internal", allow_override=True)
        op.table()
        extra.undo()
        assert letters(op.table()) == table, keys
        library.undo()
