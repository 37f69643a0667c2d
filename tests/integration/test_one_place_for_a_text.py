"""A text of the product stands in one file: two files with the same condition and the same words are one fact, written twice.

Compared are literals of Python and C, f-strings without what is filled in. The name before a text (`add: ...`) does not count,
because several functions may say the same of their arguments. Docstrings, the words that `describe` puts into them, code that is
compiled, and the lists of operators in the cases of the conformance kit are not compared.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHORTEST = 25  # characters, without what is filled in

# Texts that several files have -> why.
TWICE = {
    "module {} has no attribute {}": "Python's own words for a module's name that is not there",
    "{} object has no attribute {}": "Python's own words for an object's name that is not there",
    "padding_idx must name one of {} rows, got {}": "turnout-nn checks when a module is made, and uses no inner module of aten",
    "the grad mode, or the default device or dtype": "what a capture changes and what a call's signature holds are told alike",
}  # fmt: skip

_NAME = re.compile(r"^(?:[\w.]|\{\})+: ")
_FIELD = re.compile(r"%[-+ #0-9.*]*(?:[hlz]*[a-zA-Z])")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
_LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')


def is_code(text: str) -> bool:
    """Whether a text is a line of Python, or the first line of a block."""
    for program in (text, f"{text} pass", f"try: pass\n{text} pass"):
        try:
            ast.parse(program)
        except (SyntaxError, ValueError):
            continue
        return True
    return False


def of_python(source: str) -> Iterator[str]:
    """The texts of a file of Python."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):  # a node comes after those that hold it
        if node in skipped:
            skipped.update(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "describe":
            skipped.update(node.args, node.keywords)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(part for part in node.values if isinstance(part, ast.Constant))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def of_c(source: str) -> Iterator[str]:
    """The texts of a file of C."""
    for literals in _LITERALS.findall(_COMMENT.sub(lambda found: found[1] or " ", source)):
        yield _FIELD.sub("{}", "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literals)))


def plain(text: str) -> str:
    """On one line, without the name at the start."""
    return _NAME.sub("", " ".join(text.split()))


def places(sources: dict[str, str]) -> dict[str, list[str]]:
    """Each long text -> the files that have it."""
    found: dict[str, list[str]] = {}
    for file, source in sources.items():
        texts = of_python(source) if file.endswith(".py") else of_c(source)
        for text in {plain(each) for each in texts}:
            if len(text.replace("{}", "")) >= SHORTEST and " " in text:
                found.setdefault(text, []).append(file)
    return found


def product() -> dict[str, str]:
    found = {}
    for folder in sorted(path for pattern in ("core", "plugins/*", "tools/*") for path in ROOT.glob(f"{pattern}/src")):
        for path in sorted(folder.rglob("*")):
            other = path.is_symlink() or {"generated", "cases"} & set(path.parts)
            if path.suffix in (".py", ".c", ".h", ".cl", ".cu", ".cuh") and not other:
                found[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
    return found


def test_no_text_stands_in_two_files_of_the_product() -> None:
    found = places(product())
    assert len(found) > 2500
    twice = {text: files for text, files in found.items() if len(files) > 1 and not is_code(text)}
    lines = [f"{text!r}: {', '.join(files)}" for text, files in twice.items() if text not in TWICE]
    assert not lines, "\n".join(["Write these once, and let the other files import them:", *lines])
    assert twice.keys() == TWICE.keys(), "an exception that is none"


FIRST = '''
"""A module whose docstring is as long as any text of an error."""
def f(x, name):
    """A function whose docstring is as long as any text."""
    raise ArgumentError(f"{name}: the number must not be below the other, got {x}")

describe(globals(), x="words of a docstring that two files share")
LINE = "if x is not None and y is not None:"
'''


def test_a_text_is_found_in_both_files_whatever_name_stands_before_it() -> None:
    second = FIRST.replace('f"{name}: ', 'f"add: ').replace("below the other", 'below "\n        f"the other')
    twice = [text for text, files in places({"a.py": FIRST, "b.py": second}).items() if len(files) > 1]
    assert [text for text in twice if not is_code(text)] == ["the number must not be below the other, got {}"]
    assert [text for text in twice if is_code(text)] == ["if x is not None and y is not None:"]


def test_a_text_of_c_is_found_beside_that_of_python() -> None:
    text = '/* "a comment does not count as text" */ f("add: the number must not be "\n "below the other, got %zd", x);'
    found = places({"a.py": FIRST, "b.h": text})
    assert found["the number must not be below the other, got {}"] == ["a.py", "b.h"]
    assert not any("comment" in each for each in found)


def test_the_same_words_for_other_arguments_are_no_copy() -> None:
    other = FIRST.replace("the number must", "the length must")
    twice = [text for text, files in places({"a.py": FIRST, "b.py": other}).items() if len(files) > 1]
    assert [text for text in twice if not is_code(text)] == []
