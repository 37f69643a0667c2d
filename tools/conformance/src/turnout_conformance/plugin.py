"""The pytest plugin: which devices and functionalities are proved, the expected failures, and what a run must have seen.

pytest loads this file in every run where the kit is installed. So it imports nothing of Turnout until a test asks for it.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from turnout_conformance import choosing, expected

if TYPE_CHECKING:
    from turnout_conformance.engine import Engine
    from turnout_conformance.functionality import Functionality
    from turnout_conformance.observing import Watch

HERE = Path(__file__).parent
SUBJECTS = {"turnout_device": "--turnout-backend", "turnout_key": "--turnout-key", "turnout_engine": "--turnout-engine"}
pytest.register_assert_rewrite(
    *(
        f"turnout_conformance.{name}"
        for name in (
            "batches", "comparing", "replays", "test_backend_device", "test_backend_operators", "test_backend_plugin",
            "test_engine", "test_functionality",
        )
    )
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the kit."""
    group = parser.getgroup("turnout", "proving backends and functionalities of turnout (pytest --pyargs turnout_conformance)")
    add = group.addoption
    add("--turnout-backend", action="append", default=[], metavar="DEVICE", help="prove the backend of this device")
    add("--turnout-key", action="append", default=[], metavar="KEY", help="prove the functionality with this key")
    add(
        "--turnout-key-context", action="append", default=[], metavar="KEY=MODULE:FUNCTION",
        help="the context manager in which the functionality works (default: turnout.state.include(KEY))",
    )  # fmt: skip
    add(
        "--turnout-key-changes", action="append", default=[], metavar="PATTERN",
        help="operators whose results the functionality changes, such as '*_backward'",
    )  # fmt: skip
    add("--turnout-engine", action="append", default=[], metavar="NAME", help="prove this engine of turnout.compile")
    add(
        "--turnout-engine-close", type=float, default=0.0, metavar="NUMBER",
        help="how much an engine's numbers may differ from eager ones, relatively: 1e-5 (default: %(default)g, the same bits)",
    )  # fmt: skip
    add(
        "--turnout-option", action="append", default=[], metavar="PLUGIN.OPTION=VALUE",
        help="an option of a plugin in this run, such as 'acme.limit=3'",
    )  # fmt: skip
    add("--turnout-level", choices=choosing.LEVELS, default="full", help="quick: a test for each operator (default: %(default)s)")
    add("--turnout-sample", type=_share, default=1.0, metavar="SHARE", help="a share of the tests of each operator, such as 0.1")
    add("--turnout-expected-failures", metavar="FILE", help="tests that must fail, one a line")
    add("--turnout-write-expected-failures", metavar="FILE", help="write the tests that failed to a file")
    add("--turnout-report", metavar="FILE.html", help="write a page of all operators and their tests")
    add("--turnout-badge", metavar="FILE.json", help="write what a whole run has proved, for plugin directories")
    add("--require-backend", action="append", default=[], metavar="DEVICE", help="fail where this device is missing")


def _share(text: str) -> float:
    """A number above 0 and up to 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0 and up to 1, got {text!r}")
    return value


# ---- which tests there are


def pytest_collection(session: pytest.Session) -> None:
    """Stop a run of the kit that was not told what to prove."""
    config = session.config
    named = any(argument.partition("::")[0].partition(".")[0] == "turnout_conformance" for argument in config.args)
    if named and not any(config.getoption(option) for option in SUBJECTS.values()):
        raise pytest.UsageError(
            "turnout-conformance was not told what to prove\n"
            "  to fix  pytest --pyargs turnout_conformance --turnout-backend=DEVICE, --turnout-key=KEY or --turnout-engine=NAME"
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the kit's files that nothing was asked of."""
    if collection_path.parent != HERE or not collection_path.name.startswith("test_"):
        return None
    subject = {"test_functionality.py": "turnout_key", "test_engine.py": "turnout_engine"}.get(
        collection_path.name, "turnout_device"
    )
    return None if config.getoption(SUBJECTS[subject]) else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each device or key of the command line, or of the module that has the tests."""
    for name, option in SUBJECTS.items():
        if name in metafunc.fixturenames:
            asked = getattr(metafunc.module, "TURNOUT_BACKENDS", None) or metafunc.config.getoption(option)
            metafunc.parametrize(name, asked, indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that are expected to fail, and note for the report what each test is about."""
    path = config.getoption("--turnout-expected-failures")
    failures = expected.read(Path(path)) if path else {}
    collected = []
    for item in items:
        subject = _subject(item)
        if subject is None:
            continue
        collected.append(item.name)
        item.user_properties.append(("turnout", subject))
        if item.name in failures:
            item.add_marker(pytest.mark.xfail(strict=True, reason=failures[item.name] or "expected"), append=False)
    items.sort(key=_place())
    _choose(config, items)
    wrong = expected.stale(failures, collected)
    if wrong:
        raise pytest.UsageError(
            f"{path} expects failures of tests that are not there:\n"
            + "".join(f"  {name}\n" for name in wrong)
            + "  to fix  take these lines out"
        )


def _choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the kit that the level and the sample do not take."""
    choice = config.stash[SESSION].choice
    tests = {item: _about(item, subject) for item in items if (subject := _subject(item)) is not None}
    if choice.is_whole or not tests:
        return
    kept = choosing.chosen(tests.values(), choice)
    left_out = {item for item, test in tests.items() if test.name not in kept}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _about(item: pytest.Item, subject: dict[str, str]) -> choosing.Candidate:
    params: dict[str, Any] = getattr(item, "callspec").params  # noqa: B009 - a test with a subject has it, an Item need not
    words = frozenset([*params, *(value for value in params.values() if isinstance(value, str))])
    return choosing.Candidate(item.name, subject["subject"], subject["op"], subject["test"], words)


def _place() -> Callable[[pytest.Item], int]:
    """Where a test stands. Those of an operator stand together, so that one worker makes what an operator's first call makes."""
    places: dict[Any, int] = {}

    def place(item: pytest.Item) -> int:
        subject = dict(item.user_properties).get("turnout")
        together = isinstance(subject, dict) and subject["op"] and (item.path, subject["subject"], subject["op"])
        return places.setdefault(together or item, len(places))

    return place


def _subject(item: pytest.Item) -> dict[str, str] | None:
    """The device or key that a test proves, and its operator."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    subject = next((params[name] for name in SUBJECTS if name in params), None)
    if subject is None:
        return None
    function = item.name.partition("[")[0]
    return {"subject": subject, "test": function, "op": str(params["case"]) if "case" in params else ""}


# ---- what tests are given


class Session:
    """What a run saw. With workers, each has one, and theirs are added to the one of the process that started them.

    keys      device or functionality -> its key
    ran       device or functionality -> operator -> how often its kernel ran in workers that have ended
    failed    test -> reason, of the tests that failed
    outcomes  device or functionality -> (test function, operator, outcome, seconds) of each test
    left_out  how many tests of the kit were collected and did not run
    peaks     the most memory of this process and of each worker, in bytes
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.keys: dict[str, str] = {}
        self.ran: dict[str, Counter[str]] = {}
        self.failed: dict[str, str] = {}
        self.outcomes: dict[str, list[Outcome]] = {}
        self.left_out = 0
        self.peaks: list[int] = []
        self.choice = choosing.Choice(config.getoption("--turnout-level"), config.getoption("--turnout-sample"))
        self._start = time.monotonic()
        self._watch: Watch | None = None

    def watch(self, subject: str, key: str) -> Watch:
        """Watch the kernels of a key from now on."""
        from turnout_conformance.observing import Watch

        if self._watch is None:
            self._watch = Watch()
        self._watch.add(key)
        self.keys[subject] = key
        return self._watch

    def counted(self) -> dict[str, Counter[str]]:
        """Device or functionality -> operator -> how often its kernel ran."""
        found = {subject: Counter(counts) for subject, counts in self.ran.items()}
        for subject, key in self.keys.items():
            for (called, name), count in self._watch.calls.items() if self._watch is not None else ():
                if called == key:
                    found.setdefault(subject, Counter())[name] += count
        return found

    def idle(self) -> list[str]:
        """The devices and keys of the command line of which no kernel ran."""
        options = [option for name, option in SUBJECTS.items() if name != "turnout_engine"]  # an engine needs no kernels
        asked = [subject for option in options for subject in self.config.getoption(option)]
        counted = self.counted()
        return [subject for subject in asked if not counted.get(subject)]

    def asked_keys(self) -> dict[str, str]:
        """The key of each device and functionality that was tested."""
        from turnout.devices import device

        devices = self.config.getoption("--turnout-backend")
        engines = self.config.getoption("--turnout-engine")
        return {name: device(name).backend.name if name in devices else name for name in self.outcomes if name not in engines}

    def without_badge(self) -> str:
        """Why no badge is written; "" where the run was whole."""
        if not self.choice.is_whole:
            return f"it takes a whole run, and this was {self.choice}"
        if self.left_out:
            return f"it takes a whole run, and {self.left_out:,} tests were left out"
        if any(argument.partition("::")[0] != "turnout_conformance" for argument in self.config.args):
            return f"it takes a whole run, and this was of {' '.join(self.config.args)}"
        return "it takes a run in which something was proved" if self.idle() or not self.outcomes else ""

    # ---- hooks

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count what is left out."""
        self.left_out += sum(_subject(item) is not None for item in items)

    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Let the backend give back memory after the tests of an operator, and after each test that is about none."""
        before = _subject(item)
        if before and (not before["op"] or nextitem is None or (_subject(nextitem) or {}).get("op") != before["op"]):
            from turnout.devices import device

            if before["subject"] in self.config.getoption("--turnout-backend"):
                device(before["subject"]).backend.empty_cache()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note an outcome."""
        subject = dict(report.user_properties).get("turnout")
        if not isinstance(subject, dict) or (report.when != "call" and report.outcome == "passed"):
            return
        expectedly = hasattr(report, "wasxfail") and report.skipped
        text = str(report.longrepr)
        name = report.nodeid.rpartition("::")[2]
        if expectedly:
            self.failed[name] = str(report.wasxfail)
        elif report.failed and not text.startswith("[XPASS(strict)]"):
            self.failed[name] = _reason(text)
        outcome = "expected failure" if expectedly else report.outcome
        self.outcomes.setdefault(subject["subject"], []).append((subject["test"], subject["op"], outcome, report.duration))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker counted."""
        told = getattr(node, "workeroutput", {}).get("turnout")
        if told is not None:
            for subject, counts in told["ran"].items():
                self.ran.setdefault(subject, Counter()).update(counts)
            self.peaks.append(told["peak"])
            self.left_out = max(self.left_out, told["left out"])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files, and fail a run that proved nothing."""
        if self._watch is not None:
            self._watch.stop()
        if hasattr(self.config, "workeroutput"):
            ran = {name: dict(counts) for name, counts in self.counted().items()}
            self.config.workeroutput["turnout"] = {"ran": ran, "peak": peak(), "left out": self.left_out}
            return
        self.peaks.append(peak())
        path = self.config.getoption("--turnout-write-expected-failures")
        if path:
            expected.write(Path(path), self.failed)
        page = self.config.getoption("--turnout-report")
        if page:
            from turnout_conformance import report

            cost = f"{time.monotonic() - self._start:,.0f} s, at most {max(self.peaks) / 2**30:.1f} GiB in a process"
            report.write(Path(page), self.outcomes, self.asked_keys(), self.counted(), f"{self.choice} run, {cost}")
        path = self.config.getoption("--turnout-badge")
        if path and not self.without_badge():
            from turnout_conformance import badge

            results = {name: [outcome for _, _, outcome, _ in outcomes] for name, outcomes in self.outcomes.items()}
            badge.write(Path(path), results, self.asked_keys(), self.counted())
        if self.idle() and not self.config.option.collectonly and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """One line for each device and functionality."""
        counted, idle = self.counted(), self.idle()
        engines = self.config.getoption("--turnout-engine")
        for subject in dict.fromkeys([*self.outcomes, *idle]):
            if subject in engines:
                terminalreporter.write_line(
                    f"turnout: the engine {subject} was compared in {len(self.outcomes[subject]):,} tests"
                )
            elif subject in idle:
                terminalreporter.write_line(f"turnout: no kernel of {subject} ran, so nothing is proved", red=True)
            else:
                count = len(counted.get(subject, ()))
                of = "" if self.choice.is_whole else f" ({self.choice})"
                terminalreporter.write_line(f"turnout: kernels of {subject} ran for {count} operators{of}")
        why = self.without_badge()
        if self.config.getoption("--turnout-badge") and why:
            terminalreporter.write_line(f"turnout: no badge: {why}", red=True)


Outcome = tuple[str, str, str, float]


def peak() -> int:
    """The most memory that this process has had, in bytes; 0 where the system does not say."""
    with suppress(ImportError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return 0


def _reason(text: str) -> str:
    """What a failure's report says last and in one line: the error, or the first line of it."""
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.startswith("E ")]
    return (lines or text.splitlines() or [""])[0][:160]


SESSION = pytest.StashKey[Session]()


def pytest_configure(config: pytest.Config) -> None:
    """A record of this run."""
    config.stash[SESSION] = Session(config)
    config.pluginmanager.register(config.stash[SESSION], "turnout_conformance session")


@pytest.fixture(scope="session")
def need_device(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`need_device("opencl")` skips the test, saying why, where the device cannot be used; fails it where it is required."""
    reasons: dict[str, str] = {}

    def need(device_type: str) -> None:
        if device_type not in reasons:
            reasons[device_type] = why_not(device_type)
        if reasons[device_type]:
            stop = pytest.fail if device_type in request.config.getoption("--require-backend") else pytest.skip
            stop(f"no device {device_type}: {reasons[device_type]}")

    return need


def why_not(device_type: str) -> str:
    from turnout.devices import device
    from turnout.errors import DeviceError, DisabledError, PluginError

    try:
        assert device(device_type).backend.name
    except (DeviceError, DisabledError, PluginError) as error:
        why = (line.removeprefix("  why").strip() for line in str(error).splitlines() if line.startswith("  why"))
        return next(why, str(error))
    return ""


@pytest.fixture(scope="session")
def turnout_options(request: pytest.FixtureRequest) -> Iterator[None]:
    """The options of plugins that the command line sets."""
    from turnout import config

    given = [text.partition("=") for text in request.config.getoption("--turnout-option")]
    values = {f"plugin.{name}": _value(text) for name, _, text in given}
    config.set(values)
    yield
    if values:
        config.unset(*values)


def _value(text: str) -> Any:
    """A value as TOML has it; any other text is itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


@pytest.fixture(scope="session")
def turnout_device(request: pytest.FixtureRequest, turnout_options: None, need_device: Callable[[str], None]) -> str:
    """The device that is proved; its kernels are watched."""
    name: str = request.param
    from turnout.devices import device

    need_device(name)
    request.config.stash[SESSION].watch(name, device(name).backend.name)
    return name


@pytest.fixture(scope="session")
def turnout_key(request: pytest.FixtureRequest, turnout_options: None) -> Functionality:
    """The functionality that is proved; its kernels are watched."""
    from turnout_conformance.functionality import Functionality

    name: str = request.param
    contexts = dict(text.split("=", 1) for text in request.config.getoption("--turnout-key-context"))
    changes = tuple(request.config.getoption("--turnout-key-changes"))
    made = Functionality(name, contexts.get(name, ""), changes)
    made.watch = request.config.stash[SESSION].watch(name, name)
    return made


@pytest.fixture(scope="session")
def turnout_engine(request: pytest.FixtureRequest, turnout_options: None) -> Engine:
    """The engine that is proved."""
    from turnout_conformance.engine import Engine

    return Engine(request.param, request.config.getoption("--turnout-engine-close"))
