"""`python -m turnout_aten.generation`: write `turnout_aten/generated`, or with --yaml and --out one file of a third party.

Exit status: 0 done or up to date; 1 stale files (--check), or kernels that the yaml names and nobody wrote; 2 something
is wrong with the input, nothing written. Nothing that is generated is imported.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from turnout.errors import TurnoutError
from turnout_aten.errors.declarations import Problem
from turnout_aten.generation.files import PACKAGE, stale, standard_files, write

_LONGEST_DIFF = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m turnout_aten.generation", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail with a diff when a file is stale")
    parser.add_argument("--yaml", type=Path, metavar="FILE", help="a native function file of your own")
    parser.add_argument("--out", type=Path, metavar="FILE.py", help="where its table and functions go")
    parser.add_argument("--namespace", help="the namespace of entries that name none; needed with --yaml")
    parser.add_argument("--module", help="the module of the kernels that --yaml names without dots")
    given = parser.parse_args(arguments)
    if (given.yaml is None) != (given.out is None):
        parser.error("--yaml and --out go together")
    missing: list[Problem] = []
    try:
        if given.yaml is None:
            files, missing = standard_files()
        else:
            from turnout_aten.generation.thirdparty import thirdparty_files

            files = thirdparty_files(given.yaml, given.out, given.namespace, given.module)
    except (TurnoutError, ImportError, OSError, ValueError) as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 2
    if given.check:
        diff = stale(files).splitlines()
        if diff:
            print("\n".join(diff[:_LONGEST_DIFF]))
            if len(diff) > _LONGEST_DIFF:
                print(f"... and {len(diff) - _LONGEST_DIFF} more lines")
            print("codegen: generated files are stale; run the same command without --check", file=sys.stderr)
        return 1 if diff or _report(missing) else 0
    for path in write(files):
        print(path.relative_to(PACKAGE.parent) if path.is_relative_to(PACKAGE.parent) else path)
    return _report(missing)


def _report(missing: Sequence[Problem]) -> int:
    """Kernels that do not exist do not stop generating: they may be written against the generated operators."""
    for problem in missing:
        print(f"codegen: {problem}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
