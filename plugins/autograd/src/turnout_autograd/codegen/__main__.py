"""`python -m turnout_autograd.codegen [--check]`: write `generated/kernels.py` from `derivatives.yaml`.

Exit status: 0 done or up to date; 1 stale (--check); 2 something is wrong with the input, nothing written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from turnout.errors import SchemaError
from turnout_autograd.codegen.files import TARGET, text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m turnout_autograd.codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the generated file is stale")
    given = parser.parse_args(arguments)
    try:
        made = text()
    except (SchemaError, ImportError, OSError) as error:
        print(f"codegen: {error}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    present = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    if given.check:
        if made != present:
            print("codegen: generated/kernels.py is stale; run the same command without --check", file=sys.stderr)  # noqa: T201
        return int(made != present)
    if made != present:
        TARGET.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
