"""Programs of XLA that are kept for later processes: what is there is not compiled again, and nothing there breaks a call."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import turnout

NEEDS_DEVICE = "jax"
PROGRAM = """
import collections, json
import jax.monitoring
import turnout

turnout.config.set({"plugin.jax.compile_from": 0})
count = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **options: count.update([event.rpartition("/")[2]]))

def step(w, x):
    turnout.nn.functional.dropout((x @ w).relu(), 0.5).sum().backward()
    grad, w.grad = w.grad, None
    return grad

found = []
for device in ("cpu", "jax"):
    turnout.manual_seed(1)
    compiled = turnout.compile(step, engine="xla", strict=True)
    w, x = turnout.ones(3, 3, device=device).requires_grad_(), turnout.ones(2, 3, device=device)
    found.append([compiled(w, x).tolist() for _ in range(2)])
names = ("compile_requests_use_cache", "cache_misses", "cache_hits")
print(json.dumps([found, *[count[name] for name in names]]))
"""


def run(home: Path, **environment: str) -> tuple[list[Any], str]:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(home), "TURNOUT_PLUGIN__JAX__CACHE": "1", "JAX_PLATFORMS": "cpu", **environment},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), ran.stderr


def test_a_second_process_compiles_nothing_and_damage_is_compiled_again(tmp_path: Path) -> None:
    (found, requests, misses, hits), errors = run(tmp_path)
    assert (requests, hits, errors) == (misses, 0, "")
    assert misses > 10
    folder = tmp_path / "turnout" / "xla"
    kept = sorted(folder.iterdir())
    assert len(kept) == misses
    assert {oct(each.stat().st_mode & 0o777) for each in (folder, folder.parent)} == {"0o700"}
    assert run(tmp_path)[0] == [found, requests, 0, requests]
    for i, each in enumerate(kept):
        data = each.read_bytes()
        each.write_bytes([b"", data[: len(data) // 2], os.urandom(len(data)), data[:40] + b"x" + data[41:]][i % 4])
    again, errors = run(tmp_path)
    assert again[0] == found
    assert "Error reading persistent compilation cache entry" in errors


def test_nothing_is_kept_by_default_and_where_the_program_has_named_a_folder_it_stays(tmp_path: Path) -> None:
    other = tmp_path / "theirs"
    result, _ = run(tmp_path, TURNOUT_PLUGIN__JAX__CACHE="0")
    assert result[2:] == [0, 0]
    run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(other))
    assert not (tmp_path / "turnout").exists()


def spoilt(what: str) -> Callable[[Path], str]:
    """A function that spoils a folder for caches, and says why it is refused."""

    def link(home: Path) -> str:
        (home / "elsewhere").mkdir(mode=0o700)
        (home / "turnout").mkdir(mode=0o700)
        (home / "turnout" / "xla").symlink_to(home / "elsewhere")
        return f"{home / 'turnout' / 'xla'} is a link"

    def above(home: Path) -> str:
        (home / "elsewhere").mkdir(mode=0o700)
        (home / "turnout").symlink_to(home / "elsewhere")
        return f"{home / 'turnout'} is a link"

    def open_to_others(home: Path) -> str:
        (home / "turnout" / "xla").mkdir(parents=True)
        (home / "turnout" / "xla").chmod(0o777)
        (home / "turnout").chmod(0o700)
        return f"others may write into {home / 'turnout' / 'xla'}"

    def owned(home: Path) -> str:
        (home / "turnout").mkdir(mode=0o700)
        try:
            os.chown(home / "turnout", 12345, -1)
        except PermissionError:
            pytest.skip("only root gives a folder away")
        return f"others may write into {home / 'turnout'}"

    def file(home: Path) -> str:
        (home / "turnout").mkdir(mode=0o700)
        (home / "turnout" / "xla").write_text("")
        return f"{home / 'turnout' / 'xla'}: File exists"

    return {each.__name__: each for each in (link, above, open_to_others, owned, file)}[what]


@pytest.mark.parametrize("what", ["link", "above", "open_to_others", "owned", "file"])
def test_a_folder_that_others_may_fill_is_refused(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    from turnout_jax import cache

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    why = spoilt(what)(tmp_path)
    said = rf"^plugin.jax.cache: compiled programs are not kept: {re.escape(why)}$"
    with ExitStack() as until:
        with pytest.warns(UserWarning, match=said):
            cache.use(until)
        assert jax.config.jax_compilation_cache_dir is None


def test_jax_has_its_settings_back_when_the_option_is_off_again_and_after_deactivation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    def settings() -> tuple[Any, ...]:
        return jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before, kept = settings(), (str(tmp_path / "turnout" / "xla"), 0.0)
    assert before == (None, 1.0)
    turnout.ones(1, device="jax")
    try:
        for on, expected in ((True, kept), (True, kept), (False, before), (True, kept)):
            turnout.config.set({"plugin.jax.cache": on})
            assert settings() == expected
        turnout.plugins.deactivate("jax")
        assert settings() == before
        turnout.ones(1, device="jax")
        assert settings() == kept
        monkeypatch.setenv("XDG_CACHE_HOME", "")
        monkeypatch.setenv("HOME", "relative")
        turnout.config.set({"plugin.jax.cache": False})
        with pytest.warns(UserWarning, match=r"compiled programs are not kept: the user has no home folder$"):
            turnout.config.set({"plugin.jax.cache": True})
        assert settings() == before
    finally:
        turnout.config.unset("plugin.jax.cache")
