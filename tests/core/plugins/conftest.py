"""An environment of its own for each test: installed plugins, configuration and the manager."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from importlib_metadata import distributions
from installed_folder import Library, Site

import turnout
from turnout import config, devices, plugins, state
from turnout.keys import KEYS
from turnout.operators import Operator
from turnout.plugins import environment, providers
from turnout.registry import REGISTRY, Registrations


@cache
def of_python(paths: tuple[str, ...]) -> list[str]:
    """The standard library alone: each further folder would be searched for installed plugins, several times a test."""
    return [path for path in paths if path.startswith(sys.base_prefix) and not any(distributions(path=[path]))]


@pytest.fixture(autouse=True)
def known_packages() -> Iterator[None]:
    """What a test pretends of the data file of packages ends with it."""
    known = providers.packages
    yield
    known.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A folder that is all there is of installed plugins, a configuration of defaults, and a manager of its own."""
    from turnout.plugins import manager

    folder = tmp_path / "site"
    folder.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", [str(folder), *of_python(tuple(sys.path))])
    monkeypatch.setattr(Library, "registered", [])
    monkeypatch.setattr(config, "_store", None)
    monkeypatch.setattr(devices, "_subscribed", False)
    monkeypatch.setattr(REGISTRY, "_subscribed", False)
    monkeypatch.setattr(REGISTRY, "_disabled", None)
    before_catalog = environment._catalog
    environment.forget_catalog()
    monkeypatch.setattr(plugins, "_manager", manager.Manager(Library))
    monkeypatch.setattr(plugins, "_facade", None)
    monkeypatch.setattr(environment, "RUNNING", {})
    monkeypatch.setattr(manager, "RUNNING", environment.RUNNING)
    monkeypatch.setattr(environment, "NAMED", [])
    monkeypatch.setattr(plugins, "NAMED", environment.NAMED)
    before, active, names = set(sys.modules), set(plugins.ACTIVE), set(vars(turnout))
    fallbacks = dict(REGISTRY.fallbacks_by_key)
    plugins.ACTIVE.clear()
    state.unsettle()
    yield Site(folder)
    state.unsettle()
    devices.forget_default_device()
    for name in set(vars(turnout)) - names:
        delattr(turnout, name)
    environment._catalog = before_catalog
    if before_catalog is not None:
        before_catalog.place(KEYS)
    REGISTRY.changed()  # fallbacks cover the keys of what is installed
    plugins.ACTIVE.clear()
    plugins.ACTIVE.update(active)
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        if name.startswith(("fake_", "one", "two")) or getattr(module, "__name__", "").startswith("fake_"):
            del sys.modules[name]
    assert fallbacks == REGISTRY.fallbacks_by_key
    if before_catalog is None:  # what was looked up since then was that of the folder
        environment.forget_catalog()


@pytest.fixture
def registering(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The same with plugins that register in the process's registry; all of them are deactivated after the test."""
    from turnout.plugins.manager import Manager

    monkeypatch.setattr(plugins, "_manager", Manager())
    monkeypatch.setattr(plugins, "_facade", None)
    yield site
    for record in plugins.all_plugins():
        if record.state == "active":
            plugins.deactivate(record.name, with_dependents=True)


@pytest.fixture
def settings_file(site: Site) -> Callable[[str], Path]:
    """Writes turnout.toml in the working directory and reads the configuration again."""

    def write(text: str) -> Path:
        path = Path("turnout.toml").resolve()
        path.write_text(text, encoding="utf-8")
        config.reload()
        return path

    return write


@pytest.fixture
def sell(registering: Site) -> Iterator[Operator]:
    """An operator of one backend, which takes a `Thing`."""

    class Till(devices.Backend):
        name = "Till"
        device_type = "till"

    with Registrations("shop") as library:
        library.backend(Till())
        library.impl("sell", "Till", lambda x: "sold")
        yield library.define("shop::sell(Tensor x) -> Tensor")
    state.unsettle()
