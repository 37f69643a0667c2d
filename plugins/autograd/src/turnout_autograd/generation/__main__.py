"""`python -m turnout_autograd.generation`: write `generated` from `declarations`.

Exit status: 0 done; 2 something is wrong with the input, nothing written.
"""

from __future__ import annotations

import sys

from turnout.errors import SchemaError
from turnout_autograd.generation.files import write


def main() -> int:
    """Run the command; returns the exit status."""
    try:
        write()
    except (SchemaError, ImportError, OSError) as error:
        print(f"generation: {error}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
