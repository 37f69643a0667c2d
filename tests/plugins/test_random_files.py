"""Random damage to files of tensors and graphs; `--programs 20000 --seed 0` runs that many."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import pytest

from random_programs.files import OTHER, REFUSED, SAME, Program, draw, run, shrunk
from turnout_aten import archives, files
from turnout_tracer import reading


def fails(program: Program) -> bool:
    """Whether a program ends as it must not, by whatever error."""
    try:
        run(program)
    except Exception:  # noqa: BLE001 - any error at all is a failure of the reader
        return True
    return False


def ends(seeds: range) -> Counter[str]:
    """How the programs of these seeds end. Fails with the shortest form of the first that must not end so."""
    found: Counter[str] = Counter()
    for seed in seeds:
        program = draw(seed)
        try:
            found[run(program)] += 1
        except Exception as error:  # noqa: BLE001 - any error at all is a failure of the reader
            pytest.fail(f"{type(error).__name__}: {error}\n{shrunk(program, fails)}")
    return found


def test_a_damaged_file_is_read_as_it_was_saved_or_refused(
    seeds: Callable[[int], range], capsys: pytest.CaptureFixture[str]
) -> None:
    found = ends(seeds(400))
    if len(seeds(400)) > 400:
        with capsys.disabled():
            sys.stdout.write("\n" + "".join(f"{count} {how}\n" for how, count in found.most_common()))
    assert found[REFUSED] > len(seeds(400)) // 4
    assert found[SAME] > 0
    assert found[OTHER] > 0


@pytest.mark.parametrize(
    ("module", "name", "broken"),
    [
        (archives, "crc32", lambda data, total=0: 0),
        (archives, "need", lambda condition, what: None),
        (reading, "index", lambda value, count, what: value),
        (reading._Reader, "fits", lambda reader, argument, value: True),
        (reading._Reader, "known", lambda reader, ref, kind="": ref),
        (files, "Damaged", KeyError),
    ],
    ids=lambda each: getattr(each, "__name__", None) if not isinstance(each, str) else each,
)
def test_a_reader_that_believes_its_file_is_found_out(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, broken: object
) -> None:
    monkeypatch.setattr(module, name, broken)
    assert any(fails(draw(seed)) for seed in range(4000))  # most are noticed by one of the first hundred
