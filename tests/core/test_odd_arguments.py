"""Values of wrong types where a name, a function or a mapping is expected: an error of Turnout that says what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from outcomes import refused
from turnout import config, explain, library, plugins, state
from turnout.errors import CallError, ConfigError, DeviceError, ManifestError, RegistrationError, TurnoutError, UniverseError
from turnout.errors.calls import describe
from turnout.errors.layout import printed
from turnout.keys import KEYS
from turnout.registry import Registrations


class Unprintable:
    """What an error must not print."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


class WithoutFields:
    """It has the keys of a tensor, and nothing else."""

    keys = 1


def nested() -> list[Any]:
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


def test_what_python_cannot_print_is_named_by_its_type() -> None:
    assert printed(Unprintable()) == "<Unprintable that cannot be printed>"
    assert describe(Unprintable()) == "Unprintable <Unprintable that cannot be printed>"
    assert describe([10**5000]) == "list <list that cannot be printed>"
    assert describe(nested()) == "list <list that cannot be printed>"
    assert describe(WithoutFields()).startswith("WithoutFields <")
    assert printed(10**5000).startswith("0x")


group = Registrations("odd")
# fmt: off
# The call with a value, the error, and how its text begins before the value.
CALLS: list[tuple[Callable[[Any], object], type[TurnoutError], str]] = [
    (config.get, ConfigError, "a setting has a name such as 'strict', got "),
    (config.origin, ConfigError, "a setting has a name such as 'strict', got "),
    (config.unset, ConfigError, "a setting has a name such as 'strict', got "),
    (lambda value: config.set({value: 1}), ConfigError, "a setting has a name such as 'strict', got "),
    (config.set, ConfigError, "settings are given as {\"strict\": True} or strict=True, got "),
    (config.override, ConfigError, "settings are given as {\"strict\": True} or strict=True, got "),
    (lambda value: config.set(strict=value), ConfigError, "the configuration is not accepted; "),
    (lambda value: state.include([value]), UniverseError, "a key set is made of bits, or of names of keys, got "),
    (lambda value: state.exclude([value]), UniverseError, "a key set is made of bits, or of names of keys, got "),
    (lambda value: KEYS.mask([value]), UniverseError, "a key set is made of bits, or of names of keys, got "),
    (plugins.activate, CallError, "the name of a plugin is a text, got "),
    (plugins.deactivate, CallError, "the name of a plugin is a text, got "),
    (plugins.require_device, CallError, "the name of a device is a text, got "),
    (plugins.register, ManifestError, "the manifest of a plugin to register is not accepted\n  file "),
    (group.define, RegistrationError, "define: a schema is a text, got "),
    (lambda value: group.impl(value, "CPU", print), RegistrationError, "impl: the name of an operator is a text, got "),
    (lambda value: group.impl("t::f", value, print), UniverseError, "unknown dispatch key "),
    (lambda value: group.impl("t::f", "CPU", value), TurnoutError, "a kernel is a function or FALLTHROUGH, got "),
    (lambda value: group.fallback(value, print), UniverseError, "unknown dispatch key "),
    (group.backend, UniverseError, "a backend is of a class that derives from turnout.devices.Backend, got "),
    (lambda value: group.functionality(value), UniverseError, "functionality: expected a name such as 'Profiler', got "),
    (lambda value: library.Library(value, "DEF"), RegistrationError, "Library: a namespace is a name such as 'mylib', got "),
    (lambda value: library.Library("t", value), RegistrationError, "Library: kind must be 'DEF', 'IMPL' or 'FRAGMENT', got "),
    (lambda value: library.impl("t::f", value, print), DeviceError, ""),
    (lambda value: library.register_kernel("t::f", value, print), DeviceError, ""),
    (explain, CallError, "explain: expected an operator, a function of an operator or a name such as 'mylib::add', got "),
]
# fmt: on


@pytest.mark.parametrize(
    "value", [1, 1.5, object(), b"x", Unprintable(), 10**5000], ids=["int", "float", "object", "bytes", "odd", "huge"]
)
@pytest.mark.parametrize(("call", "kind", "says"), CALLS, ids=[str(i) for i in range(len(CALLS))])
def test_the_error_says_what_was_expected(call: Callable[[Any], object], kind: type[TurnoutError], says: str, value: Any) -> None:
    assert refused(kind, call, value).startswith(says)


def test_a_guard_that_was_not_entered_says_so() -> None:
    guard = state.exclude("Autograd")
    text = f"{type(guard).__name__}: __exit__ was called without __enter__"
    assert refused(CallError, lambda: guard.__exit__(None, None, None)) == text
    guard.__enter__()
    guard.__exit__(None, None, None)
    assert refused(CallError, lambda: guard.__exit__(None, None, None)) == text
