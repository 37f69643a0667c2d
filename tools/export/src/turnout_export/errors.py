"""The error class of this package, and its texts."""

from __future__ import annotations

from collections.abc import Sequence

from turnout.errors import TurnoutError


class ExportError(TurnoutError, NotImplementedError):
    """A program with something that a graph cannot hold, or that is not installed."""


def not_a_program(path: str, why: str) -> str:
    """A file that is not a saved program."""
    return f"load: {path} was not written by torch.export.save, or is damaged: {why}"


def newer(path: str, found: str, known: str) -> str:
    """A file of a later format."""
    return f"load: {path} has version {found} of the schema; this turnout-export reads versions up to {known}"


def several(name: str, missing: Sequence[str], other: Sequence[str]) -> str:
    """All that keeps a program from becoming a graph, at once."""
    lines = [f"{name}: the program cannot become a graph"]
    if missing:
        lines += [f"  missing operators ({len(missing)})", *[f"    {each}" for each in missing]]
    if other:
        lines += [f"  not supported ({len(other)})", *[f"    {each}" for each in other]]
    if missing:
        lines.append("  to fix  install what defines these operators, or define them with turnout.library")
    else:
        lines.append("  to fix  export the model without these")
    return "\n".join(lines)


def not_a_program_object(value: object) -> str:
    """from_torch of something else."""
    return f"from_torch: expected a torch.export.ExportedProgram, got {type(value).__name__}"
