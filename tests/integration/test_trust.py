"""What each source of settings, code and data may do: docs/security.md has a row for each, and here are the proofs of it."""

from __future__ import annotations

import json
import os
import pickle
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import text
from pages import ROOT, pages, tracked

import turnout
from outcomes import printed, refused
from turnout import plugins
from turnout.config.settings import SETTINGS
from turnout.config.sources import user_file
from turnout.config.store import Store
from turnout.errors import ConfigError, FileFormatError
from turnout_aten.files import cache_path
from turnout_cli.main import COMMANDS
from turnout_cli.slots import FORMAT, SECTIONS

# What the options of strings in the tree are about. One that names a peer, a path or a program is trusted.
NAMES = {
    "autocast.dtype": "a word of a list",
    "autograd.missing": "a word of a list",
    "cuda.matmul_precision": "a word of a list",
    "dask.chunk_size": "a size",
    "dask.host_limit": "a size",
    "dask.scheduler": "a peer",
    "kernels.instructions": "a word of a list",
    "letters.ending": "an ending of sentences",
    "opencl.platform": "which of the drivers that the system has",
    "profiler.file": "a path",
    "profiler.sort": "a word of a list",
}
TRUSTED = ("a peer", "a path", "a program")


def test_an_option_of_strings_is_trusted_if_it_names_a_peer_a_path_or_a_program():
    found = {}
    for file in tracked(("core", "plugins", "tools", "examples", "tests")):
        if Path(file).name == "plugin.toml":
            manifest = tomllib.loads((ROOT / file).read_text("utf-8"))
            for name, option in manifest.get("option", {}).items():
                if "str" in option["type"]:
                    found[f"{manifest['name']}.{name}"] = option.get("trusted", False), "choices" in option
    assert found == {name: (what in TRUSTED, what == "a word of a list") for name, what in NAMES.items()}


@pytest.mark.parametrize(
    "origin", ["turnout.toml", "pyproject.toml", "TURNOUT_CONFIG", "the user's file", "environment", "set", "override"]
)
def test_every_setting_from_every_origin_with_its_trust(tmp_path, monkeypatch, origin):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    options = {f"plugin.{m.name}.{n}": o for m in plugins.catalog().manifests for n, o in m.options.items()}
    values: dict[str, Any] = {name: option.default for name, option in options.items()}
    assert len(values) > 8
    if origin != "override":
        values |= {name: setting.default for name, setting in SETTINGS.items()}
    store = Store()
    said = ""
    if origin in ("set", "override"):
        (store.set if origin == "set" else store.overriding)(values)
    elif origin == "environment":
        for name, value in values.items():
            text = ",".join(value) if isinstance(value, tuple) else str(value).lower() if value in (True, False) else str(value)
            monkeypatch.setenv("TURNOUT_" + name.upper().replace(".", "__"), text)
    else:
        file = {"TURNOUT_CONFIG": "named.toml", "the user's file": "home/turnout/config.toml"}.get(origin, origin)
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        head = "[tool.turnout]\n" if origin == "pyproject.toml" else ""
        Path(file).write_text(head + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()))
        if origin == "TURNOUT_CONFIG":
            monkeypatch.setenv("TURNOUT_CONFIG", file)
    if origin.endswith(".toml"):
        said = refused(ConfigError, store.reload)
    else:
        store.reload()
    untrusted = re.findall(r":\d+ +(\S+): a project's file may not set this option", said)
    assert len(untrusted) == said.count("\n")
    assert set(untrusted) == {name for name, option in options.items() if option.trusted and said}


def test_a_projects_file_opens_no_connection(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        text = f'default_device = "dask"\n[plugin.dask]\nscheduler = "{address}"\ntimeout = 0.5\n'
        (tmp_path / "turnout.toml").write_text(text)
        program = "import turnout; turnout.ones(3).tolist()"
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert f"{tmp_path / 'turnout.toml'}:3  plugin.dask.scheduler: a project's file may not set this option" in done.stderr
        server.setblocking(False)
        refused(BlockingIOError, server.accept)


# ---- archives


class Trap:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("trapped",)


@pytest.mark.parametrize("read", [turnout.load, turnout.graphs.load, turnout.export.load], ids=lambda read: read.__module__)
def test_no_reader_of_archives_opens_a_pickle(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    Path("x").write_bytes(pickle.dumps(Trap()))
    refused(FileFormatError, read, "x")
    np.save("y.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    refused(FileFormatError, read, "y.npy")
    assert not Path("trapped").exists()


# ---- processes and files that the product starts and keeps

STARTS = re.compile(
    r"\bsubprocess\.\w+\(|\bPopen\(|\bos\.(system|popen|spawn|exec|posix_spawn)|(import|from) multiprocessing|ProcessPool"
    r"|LocalCluster\("
)
KEEPS = re.compile(r"cache_path\(|XDG_CACHE_HOME|[\"'/~]\.cache\b|user_cache_dir|gettempdir")
STARTING = ("clusters", "drawing/svg", "lifecycle", "opencl/tuning", "turnout_cli/workers", "data/workers")


def sources(pattern: re.Pattern[str]) -> dict[str, str]:
    """The modules of the product and of the examples in which a pattern is found: file -> text."""
    texts = {f: (ROOT / f).read_text("utf-8") for f in tracked(("core", "plugins", "tools", "examples")) if "/src/" in f}
    return {
        f: text for f, text in texts.items() if f.endswith((".py", ".template")) and "/tests/" not in f and pattern.search(text)
    }


def test_no_child_process_imports_from_the_working_directory():
    found = sources(STARTS)
    assert len(found) == len(STARTING)
    for each in STARTING:
        [text] = [text for file, text in found.items() if file.endswith(f"{each}.py")]
        assert '[sys.executable, "-P", ' in text or "PYTHONSAFEPATH" in text


def test_two_modules_keep_files_from_one_process_to_the_next():
    assert sorted(file for file in sources(KEEPS) if "dask_programs" not in file) == [
        "plugins/aten/src/turnout_aten/files.py",  # where they lie
        "plugins/jax/src/turnout_jax/cache.py", "plugins/opencl/src/turnout_opencl/tuning.py",
    ]  # fmt: skip


def test_pages_name_the_files_in_the_users_folders_as_the_code_does(monkeypatch):
    kept = {name for text in sources(KEEPS).values() for name in re.findall(r'\bcache_path\("(.+?)"\)', text)}

    def places() -> set[str]:
        return {user_file(os.environ)[1:], *(str(cache_path(name))[1:] for name in kept)}

    monkeypatch.setenv("HOME", "/~")
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    at_home = places()
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, f"/${name}")
    given = places()
    text = "".join(page.read_text("utf-8") for page in pages())
    folders = {path.partition("/turnout/")[0] for path in given | at_home}
    assert given <= set(re.findall(r"`((?:\$XDG_|~/\.).*?)`", text)) <= given | at_home | folders


def test_the_workers_of_the_demo_import_nothing_from_the_working_directory(tmp_path, need_device):
    need_device("dask")
    pytest.importorskip("distributed")
    main = tmp_path / "program" / "main.py"
    main.parent.mkdir()
    start = "from turnout_cli.workers import computing\nif __name__ == '__main__':\n    with computing('dask', 1): print('ran')\n"
    main.write_text(start)
    for name in ("json", "multiprocessing", "distributed", "turnout"):
        (tmp_path / f"{name}.py").write_text("from pathlib import Path\nPath(__file__ + '.was_imported').touch()\n")
    done = subprocess.run([sys.executable, main], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "ran\n", done.stderr
    assert not [*tmp_path.glob("*.was_imported")]


# ---- what the commands activate

# A command as docs/security.md writes it -> a line of it. `diff` does one thing with two files, and another with one.
LINES = {
    "plugins": "plugins", "config": "config", "keys": "keys", "completion": "completion bash",
    "new-plugin": "new-plugin acme --kind operators", "verify": f"verify {ROOT}/plugins/cpu",
    "diff OLD NEW": "diff old.lock old.lock",
    "explain": "explain sin float32[2]", "demo": "demo --epochs 1", "graph FILE.py:FUNCTION": "graph program.py:loss",
    "run": f"run {ROOT}/tests/plugins/exported/core.pt2 --input x.npy",
    "doctor": "doctor", "table": "table sin", "coverage": "coverage sin", "lock": "lock", "diff OLD": "diff old.lock",
}  # fmt: skip
# How the page says it; in other words, it says that a command activates what it needs.
NONE, EVERY = "no code of plugins", "the activation of every usable plugin"
USABLE = ("aten", "autograd", "cpu", "export", "masked", "nn", "tracer")  # nothing needs `masked`
RUN = """
import sys
from contextlib import redirect_stdout
from turnout.operators import Operator
from turnout_cli.main import main

Operator.entries = lambda op: {}  # what kernels there are takes seconds, and is not asked
try:
    with redirect_stdout(sys.stderr):
        main()
except SystemExit as end:
    assert not end.code or sys.argv[1] == "diff", end.code  # which finds differences
print(*sorted(name for name in sys.argv[0].split(",") if f"turnout_{name}" in sys.modules))
"""


def imported(folder: Path, line: str, **variables: str) -> list[str]:
    """The plugins whose code a command imports in a process of its own."""
    settings = {"TURNOUT_PLUGINS__DISABLE": "*", "TURNOUT_PLUGINS__ENABLE": ",".join(USABLE)}
    program = f"import sys; sys.argv = [{','.join(USABLE)!r}, *sys.argv[1:]]{RUN}"
    return printed(program, *line.split(), cwd=folder, **settings, **variables).split()


def rows_of_commands() -> dict[str, str]:
    """A command as the page writes it -> what it runs."""
    table = (ROOT / "docs/security.md").read_text("utf-8").partition("## What runs when")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`turnout .*?) \| (.*?)(?:;.*)? \|$", table, re.MULTILINE)
    return {command: runs for commands, runs in rows for command in re.findall(r"`turnout (.*?)`", commands)}


def test_the_page_places_each_command():
    assert sorted(rows_of_commands()) == sorted(LINES)
    assert {name.split()[0] for name in LINES} == COMMANDS.keys()


@pytest.mark.parametrize("command", LINES)
def test_a_command_runs_the_code_of_plugins_that_the_page_says(tmp_path, command):
    (tmp_path / "old.lock").write_text(json.dumps({"format": FORMAT, **{section: {} for section in SECTIONS}}))
    (tmp_path / "program.py").write_text("import turnout\n\ndef loss():\n    return turnout.ones(2, requires_grad=True).sum()\n")
    np.save(tmp_path / "x.npy", np.ones((4, 3), "float32"))
    found, runs = imported(tmp_path, LINES[command]), rows_of_commands()[command]
    assert {NONE: not found, EVERY: found == [*USABLE]}.get(runs, 0 < len(found) < len(USABLE)), found
    said = re.search("[Nn]one of (?:their|its) code", text(command.split()[0], "--help"))
    assert not said or runs == NONE


def test_keys_that_are_enabled_and_completion_activate_what_the_page_says(tmp_path):
    assert "autograd" in imported(tmp_path, "keys", TURNOUT_KEYS__ENABLE="Autograd")
    words = {"_TURNOUT_COMPLETE": "zsh_complete", "COMP_WORDS": "turnout table si", "COMP_CWORD": "2"}
    assert imported(tmp_path, "", **words) == ["aten"]


# ---- the page

FILES = ("core/config/test_configuration", "core/plugins/test_plugin_discovery", "core/plugins/test_plugin_activation",
    "integration/test_trust", "plugins/test_export", "plugins/test_opencl_tuning", "plugins/test_random_files",
    "plugins/test_xla_cache")  # fmt: skip
# The row of docs/security.md -> tests that prove it.
PROOFS = {
    "A project's file": ("test_an_option_of_strings_is_trusted_if_it_names_a_peer_a_path_or_a_program",
        "test_a_trusted_option_is_taken_from_the_user_and_not_from_a_project",
        "test_a_project_file_of_another_user_is_ignored_with_one_warning"),
    "The environment": ("test_every_setting_from_every_origin_with_its_trust",),
    "The user's file": ("test_without_a_home_a_file_in_the_working_directory_is_not_the_users",),
    "An installed package": ("test_a_stray_module_in_front_cannot_lend_its_manifest_or_its_code",
        "test_importing_turnout_does_not_load_what_finds_plugins"),
    "An archive": ("test_no_reader_of_archives_opens_a_pickle", "test_a_pickled_tensor_is_refused_and_not_opened",
        "test_a_damaged_file_is_read_as_it_was_saved_or_refused"),
    "A cache": ("test_whatever_stands_there_a_call_measures_and_replaces_it", "test_a_measurement_that_failed_is_not_kept",
        "test_two_modules_keep_files_from_one_process_to_the_next", "test_a_folder_that_others_may_fill_is_refused"),
    "A cluster's scheduler": ("test_a_projects_file_opens_no_connection",),
    "The working directory": ("test_no_child_process_imports_from_the_working_directory",
        "test_the_children_import_nothing_from_the_working_directory"),
}  # fmt: skip


def test_each_row_of_the_page_has_its_proofs():
    assert re.findall(r"^\| \*\*(.+?)\*\*", (ROOT / "docs/security.md").read_text("utf-8"), re.MULTILINE) == [*PROOFS]
    texts = "".join((ROOT / "tests" / f"{file}.py").read_text("utf-8") for file in FILES)
    assert [test for tests in PROOFS.values() for test in tests if f"\ndef {test}(" not in texts] == []
