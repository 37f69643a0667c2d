"""Errors that pages show without a program that raises them: their words are those of the product."""

from __future__ import annotations

import ast
import re
from functools import cache

from pages import pages
from test_one_place import product

SHOWN = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NO_ERROR = re.compile(r"│|\A[\w-]+/\n|\A *(?:pip|python|from|import|#) ")  # a drawing, a listing of files, commands, a program
QUOTED = re.compile(r'^\| `\w*(?:Error|Warning)` "(.+?)" \|', re.MULTILINE)


NUMPYS = "cannot load module more than once per process"


def shown_errors(text: str) -> list[str]:
    """The errors on a page: blocks of no language that are no picture, and outputs that begin with the class of one."""
    found = [(kind, block) for kind, block in SHOWN.findall(text) if not NO_ERROR.search(block)]
    return [block for kind, block in found if not kind or (kind == "text" and re.match(r"\w+(?:Error|Warning): ", block))]


@cache
def parts_of_texts() -> list[str]:
    """The texts of the product between the values that they hold, the longest first."""
    found = set()
    for file, text in product().items():
        for node in ast.walk(ast.parse(text)) if file.endswith(".py") else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {line.strip() for line in node.value.splitlines()}
    return sorted((each for each in found if len(each) > 9), key=len, reverse=True)


def not_in_the_product(shown: str) -> list[str]:
    """Sentences of an error that no text of the product has: three words beside each other that are left over."""
    wrong, parts = [], [part for part in parts_of_texts() if part in shown]
    for line in shown.splitlines():
        left = line.replace(NUMPYS, "")
        for part in parts:
            left = left.replace(part, " | ")
        wrong += [line] if re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", left) else []
    return wrong


def test_an_error_that_a_page_shows_is_one_of_the_product() -> None:
    wrong, shown, quoted = [], [], []
    for page in (page for page in pages() if page.parent.name != "notes"):
        text = page.read_text("utf-8")
        shown += shown_errors(text)
        quoted += [part.strip() for each in QUOTED.findall(text) for part in each.split("...")]
    wrong += [line for error in shown for line in not_in_the_product(error)]
    wrong += [each for each in quoted if not any(each in part for part in parts_of_texts())]
    assert wrong == []
    assert len(shown) > 4
    assert len(quoted) > 4


def test_an_error_in_other_words_is_found() -> None:
    error = (
        "the configuration is not accepted; the one before it stays in force\n  turnout.toml:2  strict: expected true or false"
    )
    assert not_in_the_product(error) == []
    assert len(not_in_the_product(error.replace("not accepted", "refused"))) == 1
    assert shown_errors(f"```\n{error}\n```\n  ```text\nAcmeError: {error}\n  ```\n") == [f"{error}\n", f"AcmeError: {error}\n"]
    assert shown_errors("```\nacme/\n  pyproject.toml\n```\n```text\n3 rows of it\n```\n") == []
