"""Which rows of a backend's table matter first: what the models of `export_models.py` and the demo run.

    python benchmarks/first_rows.py [--count 60] [--models resnet,gpt2] [--training]

It needs PyTorch. A row is listed by how many of the programs need it, then by its calls; the last column says how many of all
calls the rows up to there serve. What a composite calls counts, and not the composite.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO

import export_models
from models import ours

import turnout
from turnout.explanation.tracing import Call
from turnout_aten.generated.groups import STRUCTURED

# The overloads that a row serves -> the row.
ROWS = {name: row for row, (served, *_) in STRUCTURED.items() for name in served}


def rows_of(calls: Iterable[Call]) -> Counter[str]:
    """How often each row ran at the key of cpu."""
    return Counter(
        ROWS.get(c.op, c.op).removeprefix("aten::") for c in calls if c.key == "CPU" and c.reason == "kernel" and ROWS.get(c.op)
    )


def main(given: list[str]) -> None:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--models", default="")
    parser.add_argument("--training", action="store_true")
    options = parser.parse_args(given)
    warnings.simplefilter("ignore")  # PyTorch's, while it exports
    found: dict[str, Counter[str]] = {}
    for name in options.models.split(",") if options.models else export_models.MODELS:
        _, inputs = export_models.made(name)
        run = ours(export_models.exported(name, core=False), inputs, "cpu", options.training)
        with turnout.trace_dispatch() as log:
            run()
        found[name] = rows_of(log.walk())
    from turnout_cli.main import turnout as command

    with turnout.trace_dispatch() as log, redirect_stdout(StringIO()):
        command.main(["demo", "--epochs", "1"], standalone_mode=False)
    found["demo"] = rows_of(log.walk())
    needed = Counter(row for rows in found.values() for row in rows)
    calls = sum(found.values(), Counter[str]())
    order = sorted(calls, key=lambda row: (-needed[row], -calls[row], row))
    print(f"{len(found)} programs, {calls.total():,} calls of {len(order)} rows\n")
    print(f"{'row':<44}{'programs':>8}{'calls':>9}{'of all':>8}")
    so_far = 0
    for row in order[: options.count]:
        so_far += calls[row]
        print(f"{row:<44}{needed[row]:>8}{calls[row]:>9}{so_far / calls.total():>8.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
