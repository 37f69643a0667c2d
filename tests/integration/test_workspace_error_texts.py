"""Every text of an error that a user can meet stands in a test or in a documented example.

A text that nobody has read is often wrong. So the words of each `raise` and warning are looked up, and all words of the
`errors` modules, which hold nothing but texts: each line, without what is filled in, must stand in a string of a test, in an
example or in the documentation. The tables in `tests/aten/texts` are where a text is written down once, beside a call that causes
it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("core/src", "plugins/*/src", "tools/*/src")
TESTS = ("tests", "examples")
DOCUMENTS = ("README.md", "docs/*.md", "docs/site/**/*.md", "plugins/*/README.md", "examples/*/README.md")
SHORTEST = 10

# Classes that other code catches: no user reads the text. A kernel, or a method that a subclass defines, says with
# NotImplementedError that it does not do this; AssertionError is for what cannot be.
CAUGHT = {"NotImplementedError", "AssertionError"}
# In these distributions, a kernel raises an exception of Python's for a call that it leaves to the checks of the operator.
KERNELS = ("plugins/arrays/", "plugins/cpu/", "plugins/kernels/")
PYTHONS = {"IndexError", "OverflowError", "TypeError", "ValueError"}
# Functions that raise, warn or note what they are given.
TOLD = {"warn", "need", "refuse", "_refuse"}

_OF_ERRORS = re.compile(r"/errors(/\w+)?\.py$")
_FILLED_IN = re.compile(r"\{[\w.!]*\}|\n")
# A test may put the name of the function before several texts at once.
_NAME = re.compile(r"^[\w.:]+: ")


class Text(NamedTuple):
    """Words in a row of an error, on one line and without what is filled in, and where they stand."""

    file: str
    line: int
    words: str


def texts(source: str, file: str) -> Iterator[Text]:
    """The texts of the errors that a file raises, or holds as a module of errors, and a user can meet."""
    tree = ast.parse(source)
    yield from _lines(tree, file) if _OF_ERRORS.search(file) else _raised(tree, file)


def _raised(tree: ast.AST, file: str) -> Iterator[Text]:
    """The words of each `raise`, and of each call that tells them."""
    for node in ast.walk(tree):
        told = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(told, ast.Call):
            continue
        kind = ast.unparse(told.func).rpartition(".")[2]
        if kind in CAUGHT or (kind in PYTHONS and file.startswith(KERNELS)) or (told is node and kind not in TOLD):
            continue
        yield from (Text(file, told.lineno, piece) for each in ast.walk(told) for piece in _pieces(each))


def _lines(tree: ast.AST, file: str) -> Iterator[Text]:
    """All words of all strings, but for docstrings and regular expressions."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):  # a node comes after those that hold it
        if isinstance(node, ast.Expr) or (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")):
            skipped.update(ast.iter_child_nodes(node))
        elif node not in skipped:
            yield from (Text(file, node.lineno, piece) for piece in _pieces(node))


def _pieces(node: ast.AST) -> Iterator[str]:
    """The words of a literal, a line or what is between two that are filled in at a time."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        pieces = [_NAME.sub("", piece) for piece in _FILLED_IN.split(node.value)]
        yield from (piece for piece in pieces if " " in piece and len(piece) >= SHORTEST)


def written(source: str) -> Iterator[str]:
    """The strings of a file of Python. A value inside an f-string is left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "{}".join(part.value for part in node.values if isinstance(part, ast.Constant) and isinstance(part.value, str))


def plain(text: str) -> str:
    """Without what differs between a text and how it is written: quotes, backslashes, line breaks."""
    return re.sub(r"""["'\s\\]+""", "", text)


def untested(found: Iterable[Text], tested: str) -> list[Text]:
    """The texts whose words do not stand in `tested`, a plain text."""
    return [text for text in found if plain(text.words) not in tested]


def report(text: Text) -> str:
    return f"{text.file}:{text.line}: {text.words!r}"


def _files(folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        for place in ROOT.glob(folder):
            yield from sorted(p for p in place.rglob("*.py") if "generated" not in p.parts)


def _tested() -> str:
    strings = [text for path in _files(TESTS) if path != Path(__file__) for text in written(path.read_text(encoding="utf-8"))]
    strings += [path.read_text(encoding="utf-8") for pattern in DOCUMENTS for path in ROOT.glob(pattern)]
    return plain("\n".join(strings))


def test_every_text_of_an_error_stands_in_a_test_or_an_example() -> None:
    found = [t for path in _files(SOURCES) for t in texts(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())]
    assert len(found) > 1000
    lines = [report(text) for text in untested(found, _tested())]
    assert not lines, "\n".join(["No test has these texts: add a row to a table of tests/aten/texts, or a test.", *lines])


SMALL = """
def f(x, name):
    if x == 1:
        raise ArgumentError(f"{name}: x must not be 1, got {x}")
    if x == 2:
        raise NotImplementedError("another kernel does this")
    if x == 3:
        raise TypeError("this kernel takes no 3")
    if x == 4:
        raise
    raise other(x) from None
"""


def test_a_text_without_a_test_is_found_with_its_file_and_line() -> None:
    (left,) = untested(texts(SMALL, "plugins/cpu/src/f.py"), plain("\n".join(written("assert str(e) == 'f: x must be 1'"))))
    assert report(left) == "plugins/cpu/src/f.py:4: ': x must not be 1, got '"


def test_a_text_is_found_however_a_test_writes_it() -> None:
    for test in (
        "assert str(e) == 'f: x must not be 1, got 1'",
        "assert str(e) == ('f: x must '\n    'not be 1, got 1')",
        "match=r'f: x must not be 1, got \\d'",
        "assert str(e) == f'{name}: x must not be 1, got {x}'",
    ):
        assert untested(texts(SMALL, "plugins/cpu/src/f.py"), plain("\n".join(written(test)))) == []


ERRORS = '''
"""The texts of few things."""
A = "there are {!r} of the\\nother things"
B = re.compile(r"there are \\d of them")
def few(n):
    """A text of few things."""
    return f"f: needs at least {n} of them, so {'give it one more' if n == 1 else _more(n)}"
'''


def test_of_a_module_of_errors_each_line_counts() -> None:
    for file in ("turnout_aten/errors/arguments.py", "turnout_aten/errors/__init__.py", "turnout_aten/a/errors.py"):
        found = sorted((text.line, text.words) for text in texts(ERRORS, f"plugins/aten/src/{file}"))
        assert found == [
            (3, "other things"),
            (3, "there are "),
            (7, " of them, so "),
            (7, "give it one more"),
            (7, "needs at least "),
        ]
    assert list(texts(ERRORS, "plugins/aten/src/turnout_aten/shapes/few.py")) == []


def test_an_exception_of_python_is_for_a_user_where_no_kernel_raises_it() -> None:
    assert [text.line for text in texts(SMALL, "core/src/f.py")] == [4, 8]
