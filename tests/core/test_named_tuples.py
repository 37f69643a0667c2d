"""`turnout.named_tuples`: its classes are those of `typing.NamedTuple`, and all modules take them from there."""

from __future__ import annotations

import pickle
import typing
from pathlib import Path

from turnout.named_tuples import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BODY = """
    \"\"\"Two numbers.\"\"\"

    first: int
    second: Unknown = 2

    ONE = 1

    @property
    def total(self):
        return self.first + self.second

    @staticmethod
    def of(text):
        return Pair(*map(int, text.split()))
"""


class Pair(NamedTuple):
    """What is pickled: a class of this module."""

    first: int
    second: int = 2


def test_a_class_is_as_that_of_typing():
    facts = []
    for base in (NamedTuple, typing.NamedTuple):
        namespace = {"Base": base, "__name__": "somewhere"}
        exec(f"from __future__ import annotations\nclass Pair(Base):{BODY}", namespace)
        made = namespace["Pair"]
        facts.append([
            made.__name__, made.__qualname__, made.__module__, made.__doc__, made.__mro__[1:], made._fields, made._field_defaults,
            repr(made(1)), made(first=3).total, made.of("4 5"), made(1)._replace(second=7)._asdict(), made.ONE,
            list(made.__annotations__), hasattr(made(1), "__dict__"),
        ])  # fmt: skip
    assert facts[0] == facts[1]


def test_a_value_survives_pickle():
    assert pickle.loads(pickle.dumps(Pair(1))) == Pair(1, 2)


def test_every_module_takes_named_tuples_from_there():
    files = [file for part in ("core", "plugins", "tools") for file in ROOT.glob(f"{part}/**/src/**/*.py")]
    assert len(files) > 500
    wrong = [
        str(file.relative_to(ROOT))
        for file in files
        if any("typing import" in line and "NamedTuple" in line for line in file.read_text().splitlines())
    ]
    assert wrong == ["core/src/turnout/named_tuples.py"]
