"""Thread safety: a call that another thread's call interrupts, anywhere in the kernel, must give what it gives alone.

The call is traced. At each line of the kernel, and in short kernels at each instruction, a second thread makes a whole call
with other values. So a race is found each time, and not by chance. A second call that waits for a lock of the first goes on
when the first does.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import turnout
from turnout_opcheck.comparing import difference
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import left_by, run
from turnout_opcheck.report import NotTriedError, Problem
from turnout_opcheck.subject import Subject, fresh

INTERRUPTIONS = 60
SHORT = 400  # bytes of code up to which every instruction counts
PATIENCE = 0.2  # seconds that a second call may take before it is taken to wait


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    if subject.is_random:
        raise NotTriedError("it draws from a generator, which calls share")
    codes = _codes(subject)
    if not codes:
        raise NotTriedError("its kernel is not a Python function")
    other = subject.unlike()
    alone, others = _call(subject, subject.args), _call(subject, other)
    found, seen = _interrupted(subject, other, codes)
    told = difference(found, alone, exact=True) if not isinstance(found, Exception) else f"it raised {found!r}"
    if told:
        yield _problem(told)
        return
    for result in seen:
        told = difference(result, others, exact=True) if not isinstance(result, Exception) else f"it raised {result!r}"
        if told:
            yield _problem(told)
            return


def _problem(told: str) -> Problem:
    text = f"a call that another thread interrupts with other values gives another result: {told}"
    return Problem("thread", text, "keep what a call computes in local variables, or hold a lock")


def _codes(subject: Subject) -> set[CodeType]:
    """The code of the operator's kernels, with the functions inside."""
    found: set[CodeType] = set()
    for stack in subject.op.kernels.values():
        for kernel in stack:
            code = getattr(kernel.fn, "__code__", None)
            if code is not None:
                found |= _nested(code)
    return found


def _nested(code: CodeType) -> set[CodeType]:
    inside = [c for c in code.co_consts if isinstance(c, CodeType)]
    return {code}.union(*map(_nested, inside))


def _call(subject: Subject, args: Args) -> list[Any]:
    copies = fresh(args)
    with turnout.no_grad():
        value = run(subject.op, copies)
    return left_by(subject.op, value, copies)


def _interrupted(subject: Subject, other: Args, codes: set[CodeType]) -> tuple[Any, list[Any]]:
    """The result of a call that others interrupt, and theirs."""
    seen: list[Any] = []
    waiting: list[threading.Thread] = []

    def second() -> None:
        try:
            seen.append(_call(subject, other))
        except Exception as error:  # noqa: BLE001 - it is the result
            seen.append(error)

    def interrupt() -> None:
        if len(seen) >= INTERRUPTIONS or waiting:
            return
        thread = threading.Thread(target=second, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        if thread.is_alive():
            waiting.append(thread)

    result: list[Any] = []

    def first() -> None:
        sys.settrace(_tracer(codes, interrupt))
        try:
            result.append(_call(subject, subject.args))
        except Exception as error:  # noqa: BLE001 - it is the result
            result.append(error)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=first, daemon=True)
    thread.start()
    thread.join()
    for each in waiting:
        each.join(PATIENCE)
    return result[0], seen


def _tracer(codes: set[CodeType], interrupt: Callable[[], None]) -> Callable[..., Any]:
    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event in ("line", "opcode"):
            interrupt()
        return local

    def start(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code not in codes:
            return None
        if len(frame.f_code.co_code) <= SHORT:
            frame.f_trace_opcodes = True
        return local

    return start
