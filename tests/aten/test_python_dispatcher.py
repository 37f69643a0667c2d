"""PythonDispatcher: the texts of its tables, and what it refuses."""

from __future__ import annotations

import hashlib

import pytest

from outcomes import refused
from turnout.errors import RegistrationError
from turnout_aten.python_dispatcher import PythonDispatcher

# Of the answers for all 2,048 subsets of the keys; tests/oracle compares each of them with PyTorch's.
DIGEST = "d35fd014fa3a004fca3c1c2c23e61fdf4ad30d983ad8087a3303ed229dd029d6"


def _answer(keys):
    dispatcher = PythonDispatcher()
    try:
        dispatcher.register(keys)
    except RegistrationError:
        return None
    return dispatcher.registrations(), dispatcher.dispatchTable()


def test_the_answers_for_all_subsets_of_the_keys_are_those_that_were_compared():
    keys = PythonDispatcher().keys()
    digest = hashlib.sha256()
    for mask in range(1 << len(keys)):
        subset = [key for i, key in enumerate(keys) if mask >> i & 1]
        digest.update(repr((subset, _answer(subset))).encode())
    assert digest.hexdigest() == DIGEST


def test_the_raw_texts_have_a_line_for_each_key_and_name_the_kernels_of_fallbacks():
    dispatcher = PythonDispatcher()
    dispatcher.register(["CompositeExplicitAutograd", "CPU"])
    assert dispatcher.rawRegistrations() == (
        "name: example::foo\n"
        "schema: example::foo(Tensor x) -> Tensor\n"
        "CPU: fn_CPU\n"
        "CompositeExplicitAutograd[alias]: fn_CompositeExplicitAutograd\n"
    )
    assert dispatcher.rawDispatchTable() == (
        "Undefined: fn_CompositeExplicitAutograd [default backend kernel]\n"
        "CPU: fn_CPU [kernel]\n"
        "XLA: fn_CompositeExplicitAutograd [default backend kernel]\n"
        "Lazy: fn_CompositeExplicitAutograd [default backend kernel]\n"
        "FPGA: fn_CompositeExplicitAutograd [default backend kernel]\n"
        "AutogradOther: fallthrough [backend fallback]\n"
        "AutogradCPU: fallthrough [backend fallback]\n"
        "AutogradXLA: fallthrough [backend fallback]\n"
        "AutogradLazy: fallthrough [backend fallback]\n"
    )
    ambiguous = PythonDispatcher()
    ambiguous.register(["FPGA", "CompositeImplicitAutograd"])
    assert "AutogradOther: ambiguous_autogradother [ambiguous autogradother]\n" in ambiguous.rawDispatchTable()


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ([], ["CPU", "CPU"], "a key can be registered at once only, got ['CPU', 'CPU']"),
        (["CPU"], ["XLA", "CPU"], "a key can be registered at once only, got ['XLA', 'CPU'] besides ['CPU']"),
        (
            ["CompositeExplicitAutograd"],
            ["CompositeImplicitAutograd"],
            "CompositeImplicitAutograd and CompositeExplicitAutograd cannot both be registered for one operator",
        ),
        (
            ["XLA"],
            ["CPU", "Meta"],
            (
                "Meta is not a key of PythonDispatcher; it has CPU, AutogradCPU, FPGA, AutogradOther, XLA, AutogradXLA, "
                "Lazy, AutogradLazy, CompositeExplicitAutograd, Autograd, CompositeImplicitAutograd"
            ),
        ),
    ],
)
def test_a_refused_registration_leaves_what_was_registered(first, then, message):
    dispatcher = PythonDispatcher()
    dispatcher.register(first)
    before = dispatcher.registrations()
    assert refused(RegistrationError, dispatcher.register, then) == message
    assert dispatcher.registrations() == before


def test_objects_know_nothing_of_each_other():
    one, other = PythonDispatcher(), PythonDispatcher()
    one.register(["CPU"])
    assert "fn_CPU" not in other.registrations()
