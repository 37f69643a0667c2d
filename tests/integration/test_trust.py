"""What each source of settings may do."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, tracked

from outcomes import refused
from turnout import plugins
from turnout.config.settings import SETTINGS
from turnout.config.store import Store
from turnout.errors import ConfigError

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
                    found[f"{manifest['name']}.{name}"] = option.get("trusted", False)
    assert found == {name: what in TRUSTED for name, what in NAMES.items()}


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
    untrusted = re.findall(r":\d+  (\S+): a project's file may not set this option", said)
    assert len(untrusted) == said.count("\n")
    assert set(untrusted) == {name for name, option in options.items() if option.trusted and said}


def test_a_projects_file_opens_no_connection(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        text = f'default_device = "dask"\n[plugin.dask]\nscheduler = "{address}"\ntimeout = 0.5\n'
        (tmp_path / "turnout.toml").write_text(text)
        program = "import turnout; turnout.ones(3).tolist()"
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert f"{tmp_path / 'turnout.toml'}:3  plugin.dask.scheduler: a project's file may not set this option" in done.stderr
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
