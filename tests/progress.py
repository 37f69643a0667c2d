"""What a run of the suite prints: how much there is and how long it takes, lines of progress, why tests were skipped, what failed
and how to repeat it, and what it cost.

Lines instead of a dot for each test: fifty thousand dots say nothing. Only a run of all folders prints this way.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import time
from collections import Counter
from typing import Any

import pytest

import selection

STEPS = 10  # lines of progress


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cpu() -> float:
    """The CPU time of this process and of those that it has waited for, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


# glibc keeps what was freed, and the next large test adds its own.
GIVE_BACK = getattr(ctypes.CDLL(None), "malloc_trim", None)
CPU = [cpu()]  # what it was at the end of the collection, or of the last phase of a test


class Progress:
    """The reporter of the process that the user started."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.start = time.monotonic()
        self.expected: dict[str, float] = {}
        self.total = self.done = 0.0
        self.finished = self.printed = 0
        self.measured: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.failed: dict[str, None] = {}
        self.left_out: dict[str, int] = {}
        self.memory: dict[str, int] = {}

    @property
    def out(self) -> Any:
        """Where lines go."""
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        reporter.ensure_newline()
        return reporter

    # ---- what there is to do

    def begin(self, names: list[str], workers: int) -> None:
        """Say how many tests there are, and about how long they take."""
        record = selection.record()
        seconds = [record.seconds(name) or 0.0 for name in names]
        self.expected = dict(zip(names, seconds, strict=True))
        self.total = sum(seconds) or 1.0
        chosen = self.config.getoption("--selection")
        self.out.write_line(
            f"{len(names):,} tests ({chosen}), {self.total:.0f} s of CPU time when last recorded: "
            f"about {clock(1.15 * self.total / workers)} from here"
        )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without workers."""
        if not hasattr(self.config, "workerinput") and session.items and not self.expected:
            self.begin([item.nodeid for item in session.items], 1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """With workers, all of which collect the same."""
        if not self.expected:
            self.begin(ids, len(node.config.getoption("tx") or [1]))

    # ---- while it runs

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letters: lines tell of progress and of failures."""
        if report.passed and report.when != "call":
            return "", "", ""
        if report.failed:
            return ("failed" if report.when == "call" else "error"), "", ""
        if hasattr(report, "wasxfail"):
            return ("xfailed" if report.skipped else "xpassed"), "", ""
        return report.outcome, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a phase of a test took."""
        self.measured[report.nodeid] += getattr(report, "cpu", 0.0)
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped[reason.removeprefix("Skipped: ")] += 1
        if report.failed:
            self.failed[report.nodeid] = None
            self.out.write_line(f"FAILED {report.nodeid}")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A line for each tenth of the expected time."""
        self.finished += 1
        self.done += self.expected.get(nodeid, 0.0)
        last = self.finished == len(self.expected)
        part = STEPS if last else min(int(STEPS * self.done / self.total), STEPS - 1)
        if part > self.printed:
            self.printed = part
            passed = time.monotonic() - self.start
            left = 0.0 if last else passed * (self.total - self.done) / self.done
            self.out.write_line(
                f"{100 * part // STEPS:3d} %  {self.finished:,} of {len(self.expected):,} tests, {clock(passed)} gone, "
                f"about {clock(left)} left{f', {len(self.failed)} FAILED' if self.failed else ''}"
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker tells when it ends."""
        told = getattr(node, "workeroutput", {})
        self.memory[node.gateway.id] = told.get("peak", 0)
        self.left_out = told.get("left out", {}) or self.left_out

    # ---- at the end

    def pytest_terminal_summary(self) -> None:
        """Skips by reason, what was left out, how to repeat failures, time and memory."""
        out = self.out
        for reason, count in self.left_out.items():
            out.write_line(f"left out: {count:,} tests, {reason}")
        for reason, count in sorted(self.skipped.items(), key=lambda each: (-each[1], each[0])):
            out.write_line(f"skipped: {count:,}, {' '.join(reason.split())}")
        if self.failed:
            out.section("to repeat what failed")
            speed = os.environ.get("TURNOUT_SPEED")
            for nodeid in list(self.failed)[:20]:
                prefix = f"TURNOUT_SPEED={speed} " if speed else ""
                out.write_line(f"{prefix}.venv/bin/python -m pytest {shlex.quote(nodeid)}")
        spent = sum(self.measured.values())
        memory = ", ".join(f"{name} {size / 2**30:.2f}" for name, size in sorted({**self.memory, "this process": peak()}.items()))
        out.write_line(f"{spent:.0f} s of CPU time in tests; peak memory in GiB: {memory}")
        if self.config.getoption("--selection") == "fast" and spent > selection.BUDGET:
            out.write_line(f"that is more than the {selection.BUDGET:.0f} s that the fast selection may take")

    def pytest_sessionfinish(self) -> None:
        """Write the record, if that was asked for."""
        if self.config.getoption("--record-seconds"):
            selection.write(dict(self.measured))


class Worker:
    """A worker forgets what it has reported, and which tests it left out, and gives back the memory that each file freed.

    The process that started it prints them. The worker's own reporter prints nothing, but would keep all of them to the end.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.file = ""

    @pytest.hookimpl(trylast=True)
    def pytest_deselected(self) -> None:
        """After the collection, before what it made is frozen."""
        self.forget()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """After a test."""
        self.forget()
        file = nodeid.partition("::")[0]
        if file != self.file:
            self.file = file
            if GIVE_BACK is not None:
                GIVE_BACK(0)

    def forget(self) -> None:
        """Empty the lists of the reporter."""
        self.config.pluginmanager.getplugin("terminalreporter").stats.clear()
