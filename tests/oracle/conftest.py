"""The counts of the comparison with PyTorch's operator database, printed at the end of a run."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each check and dtype: how many OpInfos pass, of how many that were judged."""
    judged = Counter()
    passed = Counter()
    for report in (r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ())):
        for name, verdict in getattr(report, "user_properties", ()):
            if name.startswith("op_db "):
                judged[name] += 1
                passed[name] += verdict == "passes"
    for name in sorted(judged):
        terminalreporter.write_line(f"{name}: {passed[name]} of {judged[name]} OpInfos pass")
