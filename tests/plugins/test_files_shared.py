"""One path, several writers and readers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import turnout
from outcomes import in_threads

WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
import turnout

path, count, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def work(number):
    for mark in range(first + number * count, first + (number + 1) * count):
        turnout.save({"mark": mark, "x": turnout.full((257,), mark)}, path)

with ThreadPoolExecutor(4) as threads:
    for done in [threads.submit(work, number) for number in range(4)]:
        done.result()
"""


def test_two_processes_with_four_threads_each_save_to_one_path_while_others_read(
    tmp_path: Path, seeds: Callable[[int], range], capsys: pytest.CaptureFixture[str]
) -> None:
    count = len(seeds(40))  # saves of each thread
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"
    turnout.save({"mark": -1, "x": turnout.full((257,), -1)}, path)
    command = [sys.executable, "-W", "error", "-c", WRITER, str(path), str(count)]
    start = time.monotonic()
    writers = [subprocess.Popen([*command, str(first)]) for first in (0, 4 * count)]

    def read() -> list[int]:
        marks = []
        while any(writer.poll() is None for writer in writers):
            found = turnout.load(path)
            assert set(found["x"].tolist()) == {found["mark"]}
            marks.append(found["mark"])
        return marks

    try:
        with ThreadPoolExecutor(2) as readers:
            marks = [future.result() for future in [readers.submit(read), readers.submit(read)]]
    finally:
        codes = [writer.wait() for writer in writers]
    assert codes == [0, 0]
    assert min(map(len, marks)) > 0
    assert {mark for each in marks for mark in each} <= set(range(-1, 8 * count))
    assert turnout.load(path)["mark"] in range(8 * count)
    assert list(folder.iterdir()) == [path]
    if count > 40:
        with capsys.disabled():
            seen = len({mark for each in marks for mark in each})
            took = time.monotonic() - start
            sys.stdout.write(f"\n{8 * count} saves, {sum(map(len, marks))} reads of {seen} files, {took:.0f} s\n")


def unfinished(folder: Path) -> Iterator[Path]:
    return folder.glob(".*.part")


def test_threads_that_save_to_one_path_leave_one_of_their_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(20):
        in_threads(*[partial(turnout.save, {"n": n}, path) for n in range(4)])
        assert turnout.load(path)["n"] in range(4)
        assert list(unfinished(tmp_path)) == []
