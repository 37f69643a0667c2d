"""Texts and error values of the schema language: syntax, overloads, inference, kernel signatures.

Every builder returns the error to raise. A syntax error shows the line it is about with a caret under the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnout.errors import KernelSignatureError, OverloadError, SchemaError
from turnout.errors.layout import report


class SchemaSyntaxError(SchemaError):
    """A schema text that is not valid.

    Attributes: `text`, the whole input; `column`, the place of the mistake in `text`, from 0; `expected`, what is right there.
    """

    def __init__(self, text: str, column: int, expected: str, found: str) -> None:
        self.text = text
        self.column = column
        self.expected = expected
        self.found = found
        start = text.rfind("\n", 0, column) + 1
        line = text[start:column] + text[column:].partition("\n")[0]
        caret = " " * (column - start) + "^"
        super().__init__(f"schema: expected {expected}, found {found}\n  {line}\n  {caret}")

    def __reduce__(self) -> tuple[type[SchemaSyntaxError], tuple[str, int, str, str]]:
        return (SchemaSyntaxError, (self.text, self.column, self.expected, self.found))


def tie(existing: object, new: object, call: str) -> SchemaError:
    """Two overloads between which a call cannot choose."""
    return SchemaError(
        f"schema: two overloads tie\n  {existing}\n  {new}\n  found   both accept {call}, neither is more specific\n"
        "  to fix  change a type, a required argument or the number of arguments of one of them"
    )


def no_overload(arguments: str, reasons: Sequence[tuple[str, str]]) -> OverloadError:
    """No overload accepts a call; `reasons` pairs each overload's name with why it does not."""
    return OverloadError(report(f"no overload takes ({arguments})", *reasons))


def ambiguous(arguments: str, names: Iterable[str]) -> OverloadError:
    """Overloads that tie for a call, which is possible only without `check_no_tie`."""
    return OverloadError(f"overloads {', '.join(names)} tie for ({arguments})")


def inference(function: str, problem: str, remedy: str) -> SchemaError:
    """A Python function from whose annotations no schema can be inferred."""
    return SchemaError(report(f"infer_schema: {problem}", ("function", function), ("to fix", remedy)))


def kernel_signature(schema: object, signature: str, problem: str) -> KernelSignatureError:
    return KernelSignatureError(report(f"kernel does not fit its schema: {problem}", ("schema", schema), ("kernel", signature)))
