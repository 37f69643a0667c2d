"""The pytest plugin: checks the operators that an existing test-suite calls, with the inputs of its tests.

`@pytest.mark.opcheck("mylib")` on a test, or `pytest --opcheck mylib` for all of them, notes every call of the operators of a
namespace, or of one operator, `mylib::f`. When the test has ended, each kind of call is checked once in the session: calls of
one operator whose arguments have the same dtypes, devices, numbers of dims and need of gradients are of one kind.

pytest loads this file in every run where the package is installed. So it imports nothing of Turnout until a test asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

CHECKED: pytest.StashKey[set[Any]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--opcheck NAMESPACE`."""
    group = parser.getgroup("turnout", "checking operators of turnout")
    group.addoption(
        "--opcheck", action="append", default=[], metavar="NAMESPACE",
        help="check the operators of this namespace that the tests call, with their inputs; or one operator, mylib::f",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """The marker, and the kinds of calls that were checked in this run."""
    config.addinivalue_line("markers", "opcheck(*namespaces): check the operators of these namespaces that the test calls")
    config.stash[CHECKED] = set()


def _asked(item: pytest.Item) -> tuple[str, ...]:
    """The namespaces and operators to check for a test."""
    marked = [name for mark in item.iter_markers("opcheck") for name in mark.args]
    return tuple(dict.fromkeys([*marked, *item.config.getoption("--opcheck")]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note the calls of a test, and check them when it has passed."""
    names = _asked(item)
    if not names:
        if item.get_closest_marker("opcheck") is not None:
            raise pytest.UsageError("pytest.mark.opcheck names no namespace\n  to fix  @pytest.mark.opcheck('mylib')")
        return (yield)
    from turnout_opcheck.calls import Calls

    calls = Calls(names)
    with calls:
        result = yield
    failures = calls.check(item.config.stash[CHECKED])
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which operators were checked: a misspelt namespace must not look like a check that passed."""
    kinds = config.stash[CHECKED]
    asked = config.getoption("--opcheck")
    if config.getoption("numprocesses", None) or not (kinds or asked):
        return  # workers of pytest-xdist keep what they checked to themselves
    count = Counter(name for name, *_ in kinds)
    checked = ", ".join(f"{name} ({number} kind{'s' * (number > 1)} of call)" for name, number in sorted(count.items()))
    terminalreporter.write_line(f"opcheck: {checked or 'no test called an operator of ' + ', '.join(asked)}")
