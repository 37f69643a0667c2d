"""Commands of `turnout`, run in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from turnout_cli.main import turnout


def run(*args: object) -> Result:
    """What a command line does."""
    return CliRunner().invoke(turnout, [str(arg) for arg in args])


def text(*args: object) -> str:
    """What a command prints; it must end well."""
    done = run(*args)
    assert done.exit_code == 0, done.output
    return done.stdout


def facts(*args: object, code: int = 0) -> Any:
    """What a command says as JSON, and its exit code is `code`."""
    done = run(*args, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)
