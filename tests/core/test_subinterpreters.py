"""Core in a second interpreter of a process: it works there, and shares nothing with the first."""

from __future__ import annotations

from subinterpreters import run_in_subinterpreter

MAIN = """
import turnout
turnout.library.define("twice::f", "(int x) -> int")
turnout.library.impl("twice::f", "CompositeExplicitAutograd", lambda x: x + 1)
print(turnout.ops.twice.f(1), turnout.ops.twice.f(1))
"""
OTHER = """
import turnout
try:
    turnout.ops.twice.f(1)
except (AttributeError, turnout.errors.UnknownOperatorError):
    print("unknown")
with turnout.plugins.Registrations("a program") as library:
    library.define("twice::f(int x) -> int")
    library.impl("twice::f", "CompositeExplicitAutograd", lambda x: x * 10)
    print(turnout.ops.twice.f(1), turnout.ops.twice.f(1))
    with turnout.config.override(traceback="full"), turnout.state.exclude("Autograd"):
        print(turnout.ops.twice.f(2), turnout.config.get("traceback"))
try:
    turnout.ops.twice.f(1)
except (AttributeError, turnout.errors.UnknownOperatorError):
    print("gone")
"""


def test_core_works_in_a_subinterpreter_and_shares_nothing_with_the_main_one() -> None:
    printed, warned = run_in_subinterpreter(OTHER, before=MAIN, after="print(turnout.ops.twice.f(2))")
    assert printed.split("\n") == ["2 2", "unknown", "10 10", "20 full", "gone", "3", ""]
    assert warned == ""
