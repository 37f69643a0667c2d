"""The page of a run: for each device and functionality, every standard operator, how it is served, and what its tests gave."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from turnout.registry import REGISTRY
from turnout_conformance.observing import KINDS, coverage

Outcome = tuple[str, str, str, float]  # test, operator, outcome, seconds
Outcomes = Mapping[str, Sequence[Outcome]]  # by device or functionality


def write(path: Path, outcomes: Outcomes, keys: Mapping[str, str], counted: Mapping[str, Mapping[str, int]], run: str) -> None:
    """Write the page. `keys` are the keys of the devices and functionalities, `counted` how often their kernels ran, and `run`
    says what the run was and what it cost."""
    sections = "".join(_section(name, outcomes[name], key, counted.get(name, {})) for name, key in sorted(keys.items()))
    template = files("turnout_conformance").joinpath("report.html").read_text(encoding="utf-8")
    path.write_text(template.replace("<!--SECTIONS-->", f"<p>{escape(run)}</p>\n{sections}"), encoding="utf-8")


def _section(name: str, outcomes: Sequence[Outcome], key: str, ran: Mapping[str, int]) -> str:
    """One device or functionality."""
    served = coverage(key)
    totals = Counter(served.values())
    results = Counter(outcome for _, _, outcome, _ in outcomes)
    seconds: defaultdict[str, float] = defaultdict(float)
    by_operator: dict[str, Counter[str]] = {}
    failed: dict[str, list[str]] = {}
    for test, op, outcome, spent in outcomes:
        seconds[f"aten::{op}" if op else ""] += spent
        by_operator.setdefault(f"aten::{op}" if op else "", Counter())[outcome] += 1
        if outcome in ("failed", "expected failure"):
            failed.setdefault(f"aten::{op}" if op else "", []).append(f"{test}: {outcome}")
    rows = [_row(op, kind, by_operator.get(op, Counter()), failed.get(op, []), ran, seconds[op]) for op, kind in served.items()]
    if "" in by_operator:
        rows.insert(0, _row("(device)", "", by_operator[""], failed.get("", []), {}, seconds[""]))
    return (
        f"<h2>{escape(name)} ({escape(key)})</h2>\n"
        f"<p>{_counts({kind: totals[kind] for kind in KINDS if totals[kind]})} of {len(served)} operators</p>\n"
        f"<p>tests: {_counts(results)}; kernels of {len(ran)} operators ran</p>\n"
        "<table><thead><tr><th>operator<th>served by<th>calls<th>tests<th>seconds<th>failures</thead>\n"
        f"<tbody>\n{''.join(rows)}</tbody></table>\n"
    )


def _row(op: str, kind: str, results: Counter[str], failed: list[str], ran: Mapping[str, int], seconds: float) -> str:
    source = ""
    if kind and REGISTRY.knows(op):
        source = REGISTRY.find(op).schema_text or ""
    state = "bad" if results["failed"] else kind.replace(" ", "-")
    return (
        f'<tr class="{state}"><td title="{escape(source)}">{escape(op)}<td>{kind}'
        f"<td>{ran.get(op, '')}<td>{_counts(results)}<td>{seconds:.2f}<td>{escape('; '.join(failed))}</tr>\n"
    )


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in found.items())
