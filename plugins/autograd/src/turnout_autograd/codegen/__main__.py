"""`python -m turnout_autograd.codegen [--check]`: write `generated/` from `derivatives.yaml`.

Exit status: 0 done or up to date; 1 stale (--check); 2 something is wrong with the input, nothing written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from turnout.errors import SchemaError
from turnout_aten.generation.files import stale, write
from turnout_autograd.codegen.files import GENERATED, files


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m turnout_autograd.codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a generated file is stale")
    given = parser.parse_args(arguments)
    try:
        made = files()
    except (SchemaError, ImportError, OSError) as error:
        print(f"codegen: {error}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    gone = set(GENERATED.glob("*.py")) - made.keys()
    if given.check:
        if gone or stale(made):
            print("codegen: the generated kernels are stale; run the same command without --check", file=sys.stderr)  # noqa: T201
            return 1
        return 0
    write(made)
    for path in gone:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
