"""How fast calls are: ratios measured in one run, in one process, the two sides in turns.

    python benchmarks/run.py [--group kernels] [--quick] [--rows add,import] [--json FILE] [--html FILE] [--profile ROW]
    python benchmarks/run.py --group kernels --threads 2 --without kernels
    python benchmarks/run.py --group drawn --seed 7 --count 50 --clock cpu

It reports and never fails because something is slow.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import cards
import page
import pieces
import startup
from numeric import Skipped
from rows import CALLS, CUDA, DRAWN, GROUPS, Row, drawn_rows
from timing import QUICK, THREADS, Result, Side, compare

import turnout

ALL = "all"
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
TITLES = {
    CALLS: "Calls",
    "small": "Every kind of small call",
    "compiled": "The compiled call path",
    "engines": "Compiled functions",
    "kernels": "Kernels on large tensors",
    "transforms": "Transforms",
    "cuda": "Device cuda",
    "opencl": "Device opencl",
    DRAWN: "Calls that were drawn",
    ALL: "All groups",
}
COLUMNS = ("what", "turnout", "against", "", "ratio", "quartiles", "at most", "aim", "holds")


def measure(row: Row, *, quick: bool) -> Result:
    """Measure one row. Raises Skipped."""
    if row.run is not None:
        return row.run(quick)
    assert row.pair is not None
    with row.pair() as pair:
        repeats, batch = (min(row.repeats, QUICK), 0.0005) if quick else (row.repeats, 0.004)
        return compare(pair, repeats, batch)


def record(row: Row, result: Result | None, skipped: str) -> dict[str, Any]:
    """One row as data: times in seconds, the value in the unit of its bounds."""
    facts: dict[str, Any] = {"row": row.name, "what": row.what, "against": row.against, "at_most": row.at_most, "aim": row.aim}
    if result is None:
        return facts | {"skipped": skipped}
    unit = "ms" if row.against in startup.OTHERS else "ratio"
    scale = 1000.0 if unit == "ms" else 1.0
    value = result.value * scale
    facts |= {"turnout": result.turnout, "other": result.other, "unit": unit, "value": value}
    facts |= {"quartiles": [result.low * scale, result.high * scale], "repeats": result.repeats, "note": result.note}
    facts["holds"] = None if row.at_most is None else value <= row.at_most
    facts["aim_reached"] = None if row.aim is None else value <= row.aim
    return facts


def line(facts: dict[str, Any]) -> tuple[str, ...]:
    """One row as text."""
    if "skipped" in facts:
        return (facts["what"], "skipped: " + facts["skipped"])
    form = "{:.2f}" if facts["unit"] == "ratio" else "{:.0f} ms"
    value, low, high = (form.format(v) for v in (facts["value"], *facts["quartiles"]))
    bounds = ["-" if facts[k] is None else form.format(facts[k]) for k in ("at_most", "aim")]
    holds = {None: "-", True: "yes", False: "NO"}[facts["holds"]] + (", aim too" if facts["aim_reached"] else "")
    spread = f"{low} to {high}"
    return (
        facts["what"], duration(facts["turnout"]), facts["against"], duration(facts["other"]), value, spread, *bounds, holds,
    )  # fmt: skip


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    facts = {"python": platform.python_version(), "machine": f"{platform.machine()}, {pieces.cores()} cores"}
    for name in ("turnout-core", "numpy", "torch"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = "not installed"
    return facts


WIDTHS = (40, 9, 13, 9, 7, 18, 8, 7, 12)


def table_line(cells: Sequence[str]) -> str:
    """Cells in columns; the last one runs on."""
    return "  ".join([*(c.ljust(w) for c, w in zip(cells[:-1], WIDTHS, strict=False)), cells[-1]]).rstrip()


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    groups = "calls; every kind of small call; kernels on large tensors; or all of them, on one thread; or rows drawn from a seed"
    parser.add_argument("--group", choices=[*GROUPS, DRAWN, ALL], default=CALLS, help=groups)
    parser.add_argument("--seed", type=int, default=0, help="in the group of rows that are drawn: the seed of the first one")
    parser.add_argument("--count", type=int, default=50, help="and how many there are")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: the processor's time, on a machine with other work")
    parser.add_argument("--rows", metavar="A,B", help="only these rows")
    parser.add_argument("--quick", action="store_true", help="few repeats: shows that it runs, not how fast it is")
    parser.add_argument("--threads", type=int, default=1, help="threads of both sides, in all groups but that of calls")
    parser.add_argument("--without", metavar="PLUGIN", action="append", default=[], help="disable a plugin, such as kernels")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to a file, too")
    parser.add_argument("--html", metavar="FILE", help="write a page with charts of all rows, too")
    parser.add_argument("--profile", choices=sorted(pieces.PROFILES), help="instead: where the time of one row goes")
    options = parser.parse_args(argv)
    options.groups = list(GROUPS) if options.group == ALL else [options.group]
    options.table = {**GROUPS, DRAWN: drawn_rows(options.seed, options.count) if options.group == DRAWN else []}
    names = [row.name for group in options.groups for row in options.table[group]]
    options.rows = names if options.rows is None else options.rows.split(",")
    unknown = [name for name in options.rows if name not in names]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def command(options: argparse.Namespace) -> str:
    """The command that measures the same, without the files that it writes."""
    said = [("group", options.group, CALLS), ("clock", options.clock, "wall"), ("threads", options.threads, 1)]
    words = [f"--{name} {value}" for name, value, usual in said if value != usual]
    names = [row.name for group in options.groups for row in options.table[group]]
    words += [f"--rows {','.join(options.rows)}"] if options.rows != names else []
    words += [f"--without {plugin}" for plugin in options.without] + ["--quick"] * options.quick
    return f'make bench ARGS="{" ".join(words)}"' if words else "make bench"


def with_threads(count: int) -> None:
    """Start this program anew with that many threads for every library, if it was not."""
    wanted = dict.fromkeys(THREADS, str(count))
    if not wanted.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)


def overall(records: Sequence[dict[str, Any]]) -> str:
    """The geometric mean of the ratios, and the worst row."""
    found = {r["what"]: r["value"] for r in records if r.get("unit") == "ratio" and r["against"].startswith("torch")}
    if not found:
        return "nothing was measured against torch"
    worst = max(found, key=lambda name: found[name])
    return f"geometric mean of {len(found)} rows {page.mean(list(found.values())):.2f}; worst: {worst} {found[worst]:.2f}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print, a line as soon as it is known."""
    options = arguments(argv)
    if options.profile:
        pieces.PROFILES[options.profile](options.quick)
        return
    Side.clock = CLOCKS[options.clock]
    if options.group != CALLS:
        with_threads(options.threads)
    if options.without:
        turnout.config.set({"plugins.disable": options.without})
    facts = machine() | (cards.facts(quick=options.quick) if CUDA in options.groups else {})
    print(", ".join(f"{k} {v}" for k, v in facts.items()))
    print(table_line(COLUMNS))
    records: dict[str, list[dict[str, Any]]] = {}
    for group in options.groups:
        records[group] = measured(group, options)
        if group != CALLS:
            print(overall(records[group]))
    every = [each for group in records.values() for each in group]
    for each in every:
        if each.get("note"):
            print(f"{each['what']}: {each['note']}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            how = {"title": TITLES[options.group], "date": datetime.now(UTC).date().isoformat(), "command": command(options)}
            json.dump({**how, "machine": facts, "quick": options.quick, "rows": every}, file, indent=2)
            file.write("\n")
    if options.html:
        page.write(options.html, facts, records)


def measured(group: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of a group as data, each printed as soon as it is known."""
    records = []
    for row in (r for r in options.table[group] if r.name in options.rows):
        result, skipped = None, ""
        try:
            result = measure(row, quick=options.quick)
        except Skipped as reason:
            skipped = str(reason)
        records.append(record(row, result, skipped))
        print(table_line(line(records[-1])), flush=True)
    return records


if __name__ == "__main__":
    main()
