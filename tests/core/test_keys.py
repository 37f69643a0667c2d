"""Universes, placement of functionalities, bits, and sets of keys."""

from __future__ import annotations

import itertools
import random

import pytest

from outcomes import refused
from turnout.errors import UniverseError
from turnout.keys import TRACKED, BackendRow, Functionality, KeySpace, Universe


def names(keys: KeySpace) -> list[str]:
    return [f.name for f in keys.functionalities]


def test_the_standard_functionalities_stand_low_to_high_with_one_autocast_for_each_backend():
    keys = KeySpace()
    for name, rank in (("XPU", ""), ("Meta", "highest"), ("CPU", "lowest"), ("ABC", "")):
        keys.add_backend(BackendRow(name, rank=rank))
    assert names(keys) == [
        "Dense", "BackendSelect", "Fake", "Functionalize", "Python", "ADInplaceOrView", "AutogradOther", "Autograd", "Tracer",
        "AutocastCPU", "AutocastABC", "AutocastXPU", "AutocastMeta", "Batched", "BatchedMode",
    ]  # fmt: skip
    assert keys.backends == ("CPU", "ABC", "XPU", "Meta")


def test_the_universe_does_not_depend_on_the_order_of_installation():
    backends = [BackendRow("CPU", rank="lowest"), BackendRow("CUDA"), BackendRow("XPU"), BackendRow("Meta", rank="highest")]
    rows = [
        Functionality("Counter", after="Autograd"),
        Functionality("Audit", after="Autograd"),
        Functionality("Below", before="Counter"),
        Functionality("Sparse", "Sparse", after="Dense", backend_key=True),
    ]
    seen = set()
    for order in random.Random(0).sample(list(itertools.permutations(range(8))), 300):
        keys = KeySpace()
        waiting = []
        for i in order:
            if i < 4:
                keys.add_backend(backends[i])
                continue
            waiting.append(Functionality(rows[i - 4].name, rows[i - 4].prefix, before=rows[i - 4].before, after=rows[i - 4].after,
                                         backend_key=rows[i - 4].backend_key))  # fmt: skip
            for row in list(waiting):
                try:
                    keys.add_functionality(row)
                except UniverseError:  # its anchor is not there yet
                    continue
                waiting.remove(row)
        for row in waiting:
            keys.add_functionality(row)
        seen.add((keys.universe.runtime_keys, tuple(sorted((a, tuple(sorted(c))) for a, c in keys.universe.aliases.items()))))
    assert len(seen) == 1
    ((order_found, _),) = seen
    at = order_found.index
    assert at("AutogradCPU") < at("Audit") < at("Below") < at("Counter") < at("Tracer")


def test_after_stands_directly_above_and_before_directly_below():
    keys = KeySpace()
    keys.add_functionality(Functionality("Up", after="Autograd"))
    keys.add_functionality(Functionality("Down", before="Autograd"))
    found = names(keys)
    assert found[found.index("Autograd") - 1 : found.index("Autograd") + 2] == ["Down", "Autograd", "Up"]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            Functionality("X", after="Autogard"),
            (
                "functionality X is placed after Autogard, which does not exist; there are Dense, BackendSelect, Fake, "
                "Functionalize, Python, ADInplaceOrView, AutogradOther, Autograd, Tracer, Batched, BatchedMode"
            ),
        ),
        (
            Functionality("X"),
            (
                "functionality X needs a place: before= or after= a functionality of the list, which goes from lowest to "
                "highest priority"
            ),
        ),
        (Functionality("Tracer", after="Dense"), "functionality Tracer exists already"),
        (
            Functionality("X", after="Tracer", before="Dense"),
            "functionality X cannot stand after Tracer and before Dense: Dense is the lower one",
        ),
        (Functionality("X", after="X"), "functionalities are placed in a cycle: X"),
    ],
)
def test_a_place_that_cannot_be_is_an_error_and_changes_nothing(row, text):
    keys = KeySpace()
    before = names(keys)
    assert refused(UniverseError, keys.add_functionality, row) == text
    assert names(keys) == before


# Functionalities by name, with what they stand after and before; then the order around them, and what is said.
ORDERS = [
    ({"A": (["Autograd", "N?"], [])}, "Autograd A Tracer", ""),
    ({"A": (["Autograd", "N?"], []), "N": (["Autograd"], [])}, "Autograd N A Tracer", ""),
    ({"A": (["Autograd", "N?"], []), "N": ([], ["Autograd"])}, "N Autograd A Tracer", ""),
    ({"A": (["Dense", "Autograd"], ["Batched", "Tracer"])}, "Autograd A Tracer", ""),
    ({"A": (["Autograd"], []), "Z": (["Autograd"], ["A"])}, "Autograd Z A Tracer", ""),
    ({"A": (["Autograd"], []), "B": (["A"], []), "C": (["Autograd"], [])}, "Autograd A B C Tracer", ""),
    ({"A": ([], ["Tracer", "Batched"]), "B": ([], ["Tracer"])}, "Autograd A B Tracer", ""),
    (
        {"A": (["Autograd", "B?"], []), "B": (["Autograd", "C?"], []), "C": (["Autograd", "A?"], []), "D": (["C"], ["A?"])},
        "Autograd A B C D Tracer",
        "A: B?  B: C?  C: A?  D: A?",
    ),
    ({"A": (["Autograd"], ["N?"]), "N": ([], ["Dense"])}, "Autograd A Tracer", "A: N?"),
    ({"A": (["Autograd", "A?"], [])}, "Autograd A Tracer", "A: A?"),
]


@pytest.mark.parametrize(("added", "order", "dropped"), ORDERS)
def test_the_place_depends_on_what_is_there_and_never_on_what_came_first(added, order, dropped):
    seen = set()
    for names_in_order in itertools.permutations(added):
        keys = KeySpace()
        rows = {name: Functionality(name, after=added[name][0], before=added[name][1]) for name in names_in_order}
        assert keys.set_installed(rows.values(), []) == {}
        notes = "  ".join(f"{name}: {note.partition(' ')[0]}" for name, note in sorted(keys.notes.items()))
        seen.add((" ".join(names(keys)), notes))
    [(found, notes)] = seen
    assert order in found
    assert notes == dropped


def test_a_key_says_why_it_stands_where_it_does():
    keys = KeySpace()
    rows = [
        Functionality("A", after=["Autograd", "B?"]),
        Functionality("B", after=["Autograd", "A?"]),
        Functionality("C", before="A"),
    ]
    rows += [Functionality("D", after="Autograd", before="N?"), Functionality("N", before="Dense")]
    keys.set_installed(rows, [])
    ties = "directly above Autograd, where A and B and D are ordered by name"
    assert keys.places == {"A": ties, "B": ties, "C": "directly below A", "D": ties, "N": "directly below Dense"}
    assert keys.notes == {
        "A": "B? does not count for the place of A: it closes a circle",
        "B": "A? does not count for the place of B: it closes a circle",
        "D": "N? does not count for the place of D: it contradicts the other anchors",
    }


def test_a_long_chain_of_functionalities_is_placed():
    keys = KeySpace()
    rows = [Functionality(f"F{i}", after=f"F{i - 1}" if i else "Autograd") for i in range(3000)]
    assert keys.set_installed(rows, []) == {}
    assert names(keys)[-5:] == ["F2998", "F2999", "Tracer", "Batched", "BatchedMode"]


def test_a_functionality_that_others_lean_on_cannot_go():
    keys = KeySpace()
    keys.add_functionality(Functionality("A", after="Dense"))
    keys.add_functionality(Functionality("B", after="A"))
    assert "functionality A is still the anchor of B" in refused(UniverseError, keys.remove_functionality, "A")
    keys.remove_functionality("B")
    keys.remove_functionality("A")
    assert "A" not in names(keys)


def test_a_bit_is_never_moved_or_reused():
    keys = KeySpace()
    keys.add_backend(BackendRow("CPU"))
    bit = keys.backend_bit("CPU")
    ks = keys.tensor_bits("CPU")
    keys.add_backend(BackendRow("ABC"))
    keys.add_functionality(Functionality("Counter", after="Autograd"))
    keys.remove_backend("CPU")
    keys.add_backend(BackendRow("XYZ"))
    assert [k for k, _ in keys.active(ks)] == ["ADInplaceOrView"]
    keys.add_backend(BackendRow("CPU"))
    assert keys.backend_bit("CPU") == bit
    assert [k for k, _ in keys.active(ks)] == ["AutogradCPU", "ADInplaceOrView", "CPU"]
    assert keys.names(ks | TRACKED) == ["AutogradCPU", "ADInplaceOrView", "CPU", "AutocastCPU (off)", "tracked"]


def test_any_number_of_backends_can_be_added():
    keys = KeySpace()
    for i in range(200):
        keys.add_backend(BackendRow(f"B{i}"))
    assert len({keys.tensor_bits(f"B{i}") for i in range(200)}) == 200
    assert [k for k, _ in keys.active(keys.tensor_bits("B150"))] == ["AutogradB150", "ADInplaceOrView", "B150"]


def test_a_key_set_of_the_lowest_backend_stays_one_digit_whatever_is_installed():
    keys = KeySpace()
    functionalities = [Functionality(f"Key{i}", after="Autograd", opt_in=True) for i in range(85)]
    backends = [BackendRow(f"A{i}") for i in range(85)]
    assert keys.set_installed(functionalities, [*backends, BackendRow("Host", rank="lowest")]) == {}
    assert keys.tensor_bits("Host") | TRACKED < 2**30  # a digit of an int: longer ones make each call slower
    assert keys.tensor_bits("A9") > 2**30


def test_composite_aliases_cover_backend_keys_of_third_parties_that_say_so():
    keys = KeySpace()
    keys.add_backend(BackendRow("CPU"))
    keys.add_functionality(Functionality("Sparse", "Sparse", after="Dense", backend_key=True))
    keys.add_functionality(Functionality("Profile", "Profile", after="Autograd"))
    aliases = keys.universe.aliases
    assert aliases["CompositeExplicitAutograd"] == {"CPU", "SparseCPU"}
    assert aliases["CompositeImplicitAutograd"] == {"CPU", "SparseCPU", "AutogradCPU", "AutogradOther"}
    assert keys.universe.backends_of["AutogradOther"] == ("SparseCPU",)


def test_a_functional_only_backend_is_left_out_of_the_non_functional_alias():
    keys = KeySpace()
    keys.add_backend(BackendRow("CPU"))
    keys.add_backend(BackendRow("Pure", functional_only=True))
    aliases = keys.universe.aliases
    assert aliases["CompositeExplicitAutogradNonFunctional"] == {"CPU"}
    assert aliases["CompositeExplicitAutograd"] == {"CPU", "Pure"}


def test_two_functionalities_with_one_runtime_key_are_refused():
    assert "two functionalities give the same runtime key: CPU" in refused(
        UniverseError, Universe, [("Dense", ""), ("CPU", None)], ["CPU"]
    )


@pytest.mark.parametrize(
    ("aliases", "text"),
    [
        ({"X": ["CPU"]}, "the runtime key X of a functionality has the name of an alias key"),
        ({"All": ["CPU", "XPU"]}, "alias All covers unknown keys: XPU"),
    ],
)
def test_a_universe_whose_aliases_do_not_fit_is_refused(aliases, text):
    assert refused(UniverseError, Universe, [("Dense", ""), ("X", None)], ["CPU"], aliases, {}) == text


def test_an_alias_is_not_added_twice_nor_to_a_fixed_space():
    keys = KeySpace()
    for space, alias, text in (
        (keys, "CompositeImplicitAutograd", "CompositeImplicitAutograd is a key already"),
        (KeySpace(Universe([("Dense", "")], ["CPU"])), "All", "this key space is fixed: it was made from a universe"),
    ):
        assert refused(UniverseError, space.add_alias, alias, []) == text


def test_a_key_set_is_made_of_names():
    for keys in (3.5, [1, "CPU"]):
        assert refused(UniverseError, KeySpace().mask, keys) == f"a key set is made of bits, or of names of keys, got {keys!r}"
