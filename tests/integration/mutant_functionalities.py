"""Functionalities that are wrong in one way each, and one that is right: packages for the tests of the kit."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from packages_on_path import write_package

PASSES = "test_an_operator_passes_and_gives_what_it_gives_without"
HEAD = """
import turnout
from turnout.keys import KEYS
from turnout.plugins import hookimpl
from turnout.state import DISPATCH, exclude


def below(op, keyset, args):
    with exclude("{key}"):
        return op.redispatch(keyset & ~KEYS.mask("{key}"), *args)


"""
TAIL = """

@hookimpl
def turnout_activate(library, options):
    library.fallback("{key}", watch)
"""


class Mutant(NamedTuple):
    """The fallback `watch(op, keyset, args)` of a functionality, the tests that must fail, and what is registered besides."""

    code: str
    noticed: tuple[str, ...]
    more: str = ""


RIGHT = "return below(op, keyset, args)"
MUTANTS = {
    "NotExcluding": Mutant(
        "return op.call_boxed(args)", (f"{PASSES}[exp]", "test_a_trace_replays_what_the_operator_gives[exp]")
    ),
    "DroppingAResult": Mutant(
        "made = below(op, keyset, args)\n    return made[:1] if isinstance(made, tuple) else made", (f"{PASSES}[sort]",)
    ),
    "DroppingTheResult": Mutant("below(op, keyset, args)", (f"{PASSES}[exp]",)),
    "ChangingTheDtype": Mutant(
        "made = below(op, keyset, args)\n"
        "    return made.double() if op.name == 'exp' and made.is_floating_point() else made",
        (f"{PASSES}[exp]", "test_autocast_computes_in_the_dtypes_that_it_has_without[exp]"),
    ),
    "ChangingTheValue": Mutant(
        "made = below(op, keyset, args)\n    return made + 1 if str(op.schema).startswith('aten::exp(') else made",
        (f"{PASSES}[exp]", "test_vmap_gives_what_it_gives_without[exp]"),
    ),
    "ChangingAnInput": Mutant(
        "made = below(op, keyset, args)\n    if op.name == 'exp':\n        args[0].zero_()\n    return made", (f"{PASSES}[exp]",)
    ),
    "CopyingResults": Mutant(
        "made = below(op, keyset, args)\n"
        "    with exclude('{key}'):\n"
        "        return made.clone() if isinstance(made, turnout.Tensor) else made",
        (f"{PASSES}[t]", "test_the_written_forms_pass_and_write_what_they_write_without[exp]"),
    ),
    "LeavingState": Mutant(
        "before = DISPATCH.get()\n"
        "    DISPATCH.set((before[0], before[1] & ~KEYS.mask('{key}')))\n"
        "    made = op.redispatch(keyset & ~KEYS.mask('{key}'), *args)\n"
        "    DISPATCH.set(before)\n"
        "    return made",
        ("test_an_error_leaves_the_state_as_it_was",),
    ),
    "HidingErrors": Mutant(
        "try:\n        return below(op, keyset, args)\n    except Exception as error:\n        raise ValueError(str(error))",
        ("test_an_error_leaves_the_state_as_it_was",),
    ),
    "CuttingGradients": Mutant(
        "with turnout.no_grad():\n        return below(op, keyset, args)", ("test_gradients_are_those_without[exp]",)
    ),
    "Reseeding": Mutant(
        "if op.name == 'exp':\n        turnout.manual_seed(0)\n    return below(op, keyset, args)", (f"{PASSES}[exp]",)
    ),
    "SkippingAnOperator": Mutant(
        RIGHT, (f"{PASSES}[exp]",), 'library.impl("aten::exp", "{key}", turnout.library.fallthrough_kernel)'
    ),
}  # fmt: skip
RIGHT_KEY = "PassingOn"


def manifest(key: str) -> str:
    """The functionality stands above Autograd."""
    return f'kind = "functionality"\n[[provides.key]]\nname = "{key}"\nafter = "Autograd"\n'


def write_packages(folder: Path) -> list[str]:
    """A package for each; returns their keys."""
    for key, mutant in {RIGHT_KEY: Mutant(RIGHT, ()), **MUTANTS}.items():
        code = f"{HEAD}def watch(op, keyset, args):\n    {mutant.code}\n{TAIL}    {mutant.more}\n"
        write_package(folder, f"key_{key.lower()}", manifest(key), code.replace("{key}", key))
    return [RIGHT_KEY, *MUTANTS]
