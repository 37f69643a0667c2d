"""The computed table against recorded answers of PyTorch 2.13, as a pure function and through a live registry."""

from __future__ import annotations

import gzip
import json
import random
from functools import cache
from pathlib import Path

import pytest

from turnout.keys import KeySpace, Universe
from turnout.registry import Registrations, Registry
from turnout.table import Entry, compute

DATA = Path(__file__).with_name("dispatch_tables.json.gz")


@cache
def recorded() -> dict:
    return json.loads(gzip.decompress(DATA.read_bytes()))


@cache
def torch_universe() -> Universe:
    data = recorded()
    return Universe(data["functionalities"], data["backends"], data["aliases"], data["backends_of"])


def letter(entry: Entry | None) -> str:
    if entry is None:
        return "."
    words = {reason: letter for letter, reason in recorded()["legend"].items() if letter != "d"}
    return "d" if entry.key == "CompositeExplicitAutogradNonFunctional" else words[entry.reason]


def letters(table: dict[str, Entry]) -> str:
    return "".join(letter(table.get(key)) for key in torch_universe().runtime_keys)


def test_the_universe_has_torchs_runtime_keys_in_torchs_order():
    assert list(torch_universe().runtime_keys) == recorded()["runtime_keys"]


@pytest.mark.parametrize("kind", ["operators", "random"])
def test_every_recorded_cell_is_reproduced(kind):
    data = recorded()
    fallbacks = {key: key for key in data["fallbacks"]}
    wrong = [
        (name, keys)
        for name, keys, table in data[kind]
        if letters(compute(torch_universe(), {k: k for k in keys}, fallbacks)) != table
    ]
    assert len(data[kind]) >= 1500
    assert wrong == []


def live_registry() -> Registry:
    registry = Registry(KeySpace(torch_universe()))
    library = Registrations("fallbacks", registry=registry)
    for key in recorded()["fallbacks"]:
        library.fallback(key, lambda op, ks, args: None)
    return registry


def kernel_function(*args):
    return args


@pytest.mark.parametrize("part", range(4))
def test_the_live_registry_gives_the_same_table_for_any_order_of_registration(part):
    registry = live_registry()
    shuffle = random.Random(part).shuffle
    sets = recorded()["random"][part::4]
    wrong = []
    for number, (_, keys, table) in enumerate(sets):
        for order in range(20):
            keys = list(keys)
            shuffle(keys)
            name = f"case{number}_{order}"
            library = Registrations("test", registry=registry)
            where = order % (len(keys) + 1)  # the definition comes before, between or after the kernels
            for i, key in enumerate([*keys, None]):
                if i == where:
                    op = library.define(f"test::{name}(Tensor x) -> Tensor", trusted=True)
                if key is not None:
                    library.impl(name, key, kernel_function, form="internal")
            if letters(op.table()) != table:
                wrong.append((keys, order))
            library.undo()
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
