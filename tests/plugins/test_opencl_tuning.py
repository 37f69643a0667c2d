"""What opencl measures changes no bits; it is kept in a file that nobody else can write for it, and that never breaks a call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyopencl as cl
import pytest

import turnout
from outcomes import printed
from turnout_opencl import tuning
from turnout_opencl.arrays import new_array
from turnout_opencl.devices import ClDevice, _built, found_devices
from turnout_opencl.pointwise import run_map

NEEDS_DEVICE = "opencl"
DEVICE: Any = SimpleNamespace(type=cl.device_type.CPU, platform=SimpleNamespace(name="p"), name="d", driver_version="1")
NAME = f"{tuning.VERSION} p d 1"
PLAN = tuning.PLAIN._replace(piece=1024, vector=4)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file will be. A measurement gives (1024, 4)."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tuning, "_measured", lambda device: (1024, 4))
    return tmp_path / "turnout" / "opencl.json"


def test_a_measurement_is_kept_in_a_folder_of_the_users(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuning.plan_for(DEVICE) == PLAN
    assert json.loads(cache.read_text()) == {NAME: [1024, 4]}
    assert cache.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(cache.parent) == [cache.name]
    monkeypatch.setattr(tuning, "_measured", lambda device: pytest.fail("measured again"))
    assert tuning.plan_for(DEVICE) == PLAN


def linked(file: Path) -> None:
    other = file.with_name("other.json")
    other.write_text(json.dumps({NAME: [16384, 1]}))
    file.symlink_to(other)


BAD: dict[str, Callable[[Path], Any]] = {
    "nested": lambda file: file.write_text("[" * 200_000),
    "no json": lambda file: file.write_text("{"),
    "a list": lambda file: file.write_text("[1, 2]"),
    "a number": lambda file: file.write_text("7"),
    "other numbers": lambda file: file.write_text(json.dumps({NAME: [7, 4]})),
    "too few numbers": lambda file: file.write_text(json.dumps({NAME: [1024]})),
    "bytes": lambda file: file.write_bytes(b"\xff\xfe\x00"),
    "large": lambda file: file.write_text(json.dumps({NAME: [16384, 1]}) + " " * tuning._LARGEST),
    "a link": linked,
    "a pipe": lambda file: os.mkfifo(file),
    "a folder": lambda file: file.mkdir(),
}


@pytest.mark.parametrize("kind", [kind for kind in BAD if kind != "a pipe" or hasattr(os, "mkfifo")])
def test_whatever_stands_there_a_call_measures_and_replaces_it(kind: str, cache: Path) -> None:
    cache.parent.mkdir()
    BAD[kind](cache)
    assert tuning.plan_for(DEVICE) == PLAN
    assert len(os.listdir(cache.parent)) == 1 + (kind == "a link")  # no unfinished file
    assert not cache.is_symlink()
    if kind == "a folder":  # which is left alone
        return
    assert json.loads(cache.read_text()) == {NAME: [1024, 4]}
    if kind == "a link":
        assert json.loads(cache.with_name("other.json").read_text()) == {NAME: [16384, 1]}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_the_file_of_another_user_is_not_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.parent.mkdir()
    cache.write_text(json.dumps({NAME: [16384, 1]}))
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert tuning.plan_for(DEVICE) == PLAN


def test_where_nothing_can_be_written_a_call_measures(cache: Path) -> None:
    cache.parent.write_text("a file in the place of the folder")
    assert tuning.plan_for(DEVICE) == PLAN


@pytest.mark.parametrize("home", ["~", "."])  # as `~` is read where there is no home, and one in the working directory
def test_a_user_without_a_home_has_no_file(cache: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.chdir(cache.parents[1])
    monkeypatch.setenv("HOME", home)
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert tuning.plan_for(DEVICE) == PLAN
    assert not os.listdir()


def test_a_measurement_that_failed_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_measured", lambda device: None)
    assert tuning.plan_for(DEVICE) == tuning.PLAIN
    assert not cache.exists()


STOPPED = subprocess.CalledProcessError(-signal.SIGSEGV, "child")
ENDS = {
    "vectors of all widths": ([], (4096, 8)),
    "a compiler that stops at the widest vectors": ([STOPPED], (4096, 4)),
    "a compiler that stops at vectors": ([STOPPED, STOPPED], (4096, 1)),
    "a compiler that always stops": ([STOPPED] * 3, None),
    "no time": ([subprocess.TimeoutExpired("child", 1)], None),
    "no process": ([OSError()], None),
    "a child that is killed": ([subprocess.CalledProcessError(-signal.SIGKILL, "child")], None),
}


@pytest.mark.parametrize("ends", ENDS)
def test_the_compiler_decides_about_vectors_and_a_busy_machine_does_not(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    errors, found = ENDS[ends]
    monkeypatch.setattr(subprocess, "run", Mock(side_effect=[*errors, SimpleNamespace(stdout="3.0\n1.0\n2.0\n")]))
    assert tuning._measured(found_devices()[0]) == found


@pytest.mark.parametrize(("name", "operands"), [("exp", 1), ("sin", 1), ("gelu_backward", 2)])
def test_the_length_of_pieces_changes_no_bits(name: str, operands: int) -> None:
    (device,), made = found_devices()[:1], set()
    count = (1 << 16) + 5  # the last ones fill no vector
    numbers = np.random.default_rng(3).standard_normal((operands, count)).astype(np.float32)
    for piece in tuning.PIECES:
        place = ClDevice(device, 0)
        place.plan = tuning.PLAIN._replace(piece=piece, vector=max(tuning._WIDTHS))
        given = [new_array(place, (count,), turnout.float32) for _ in range(operands + 1)]
        for array, values in zip(given[1:], numbers, strict=True):
            cl.enqueue_copy(place.main.commands, array.buffer, values)
        run_map(name, *given)
        found = np.empty(count, np.float32)
        cl.enqueue_copy(place.main.commands, found, given[0].buffer)
        assert f"loop:map:{name}" in str(place._programs)
        made.add(found.tobytes())
    assert len(made) == 1


def test_the_children_import_nothing_from_the_working_directory(tmp_path: Path) -> None:
    trap = "from pathlib import Path\nPath(__file__ + '.was_imported').touch()\nraise SystemExit(3)\n"
    for name in ("json", "turnout_opencl", "pyopencl", "turnout"):
        (tmp_path / f"{name}.py").write_text(trap)
    program = "import turnout; print(turnout.ones(1 << 17, device='opencl').exp().sum().isfinite().item())"
    assert printed(program, options=("-P",), cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")) == "True"
    assert not [*tmp_path.glob("*.was_imported")]
    kept = json.loads((tmp_path / "cache" / "turnout" / "opencl.json").read_text())
    assert len(kept) == 1


def test_damage_in_the_programs_that_pyopencl_keeps_breaks_no_call(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyopencl.characterize.has_src_build_cache", lambda device: False)  # as of drivers that keep none
    context = cl.Context(found_devices()[:1])
    for _ in range(2):
        _built(cl.Program(context, "__kernel void one(__global float *x) { x[0] = 1; }"))
        kept = [*cache.parents[1].glob("pyopencl/**/info")]
        assert kept
        for file in kept:
            file.write_bytes(b"?")
