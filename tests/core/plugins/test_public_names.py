"""The facade: public names of `turnout` that installed plugins provide."""

from __future__ import annotations

import inspect
import sys
import threading
from importlib import import_module

import pytest
from installed_folder import LIBRARY, LIBRARY_ACTIVATION

import turnout
from outcomes import refused
from turnout import config, plugins
from turnout.errors import ConflictError, DisabledError, PluginError, PublicNameError
from turnout.plugins import providers

TOOLS = "class Hammer:\n    pass\n\n\ndef saw(wood):\n    return f'half of {wood}'\n"


def install(site, name, names=("Hammer", "saw"), modules=(), **options):
    """A plugin with a module `tools` of public names, and public modules that each have a module `inner`."""
    listed = ", ".join(f'"{each}"' for each in names)
    tables = f'[provides.names]\n"fake_{name}.tools" = [{listed}]\n[provides.modules]\n'
    tables += "".join(f'{each} = "fake_{name}.{each}"\n' for each in modules)
    files = {"tools.py": TOOLS}
    for each in modules:
        files[f"{each}/__init__.py"] = f"word = '{each} of {name}'\n"
        files[f"{each}/inner.py"] = f"from fake_{name}.tools import Hammer\n"
    site.plugin(name, manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules=files, **options)


def state_of(name):
    return next(record.state for record in plugins.all_plugins() if record.name == name)


def test_a_public_name_activates_its_plugin_and_is_kept(site):
    install(site, "alpha")
    assert state_of("alpha") == "discovered"
    assert turnout.saw("oak") == "half of oak"
    assert state_of("alpha") == "active"
    assert vars(turnout)["saw"] is turnout.saw is sys.modules["fake_alpha.tools"].saw
    from turnout import Hammer

    assert Hammer is sys.modules["fake_alpha.tools"].Hammer


def test_names_may_stand_in_a_file_beside_the_manifest(site):
    tables = '[provides.names]\n"fake_alpha.tools" = "names.txt"\n'
    files = {"tools.py": TOOLS, "names.txt": "Hammer\nsaw\n"}
    site.plugin("alpha", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules=files)
    assert turnout.saw("elm") == "half of elm"


def test_a_public_module_is_the_plugins_own_in_every_spelling(site):
    install(site, "alpha", modules=("garden",))
    import turnout.garden.inner

    assert state_of("alpha") == "active"
    own = sys.modules["fake_alpha.garden"]
    assert sys.modules["turnout.garden"] is turnout.garden is own
    assert sys.modules["turnout.garden.inner"] is turnout.garden.inner is sys.modules["fake_alpha.garden.inner"]
    assert import_module("turnout.garden") is own
    from turnout.garden.inner import Hammer

    assert Hammer is turnout.Hammer
    assert own.__name__ == "fake_alpha.garden"


def test_a_thread_that_imports_a_public_module_meanwhile_gets_what_it_has(site, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "waiting", lambda: (begun.set(), go_on.wait(60)), raising=False)
    files = {"garden/__init__.py": "import sys\nsys.waiting()\nword = 'weed'\n", "garden/inner.py": ""}
    tables = '[provides.modules]\ngarden = "fake_alpha.garden"\n'
    site.plugin("alpha", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules=files)
    found = []

    def second():
        from turnout.garden import inner, word

        found.append((word, inner))

    threads = [threading.Thread(target=import_module, args=("turnout.garden",)), threading.Thread(target=second)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    threads[1].join(0.1)  # it has the module that is being replaced
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert found == [("weed", sys.modules["fake_alpha.garden.inner"])]


@pytest.mark.parametrize("imported", ["import os", "import xml.dom.minidom", "import fake_alpha", "from fake_alpha import pond"])
def test_a_public_module_may_import_modules_that_import_each_other(site, imported):
    files = {"garden.py": f"{imported}\n\n\ndef dig():\n    pass\n", "pond.py": "from fake_alpha import garden\n"}
    tables = '[provides.modules]\ngarden = "fake_alpha.garden"\n'
    site.plugin("alpha", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules=files)
    assert import_module("turnout.garden").dig.__module__ == "turnout.garden"


def test_a_function_that_a_module_inside_has_too_is_the_outer_modules(site):
    names = [f"tool_{i}" for i in range(9)]  # so many that no chance order of them has the module last
    functions = "".join(f"def {name}():\n    pass\n\n\n" for name in names)
    files = {"garden/__init__.py": "from fake_alpha.garden.inner import *\nfrom fake_alpha.garden import inner\n"}
    tables = '[provides.modules]\ngarden = "fake_alpha.garden"\n'
    files["garden/inner.py"] = functions
    site.plugin("alpha", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules=files)
    garden = import_module("turnout.garden")
    assert {getattr(garden, name).__module__ for name in names} == {"turnout.garden"}


def test_a_module_inside_a_public_one_that_does_not_exist_is_named_as_the_plugins(site):
    install(site, "alpha", modules=("garden",))
    assert refused(ModuleNotFoundError, import_module, "turnout.garden.pond") == "No module named 'fake_alpha.garden.pond'"
    assert "turnout.garden.pond" not in sys.modules
    assert "No module named 'turnout.saw'" in refused(ModuleNotFoundError, import_module, "turnout.saw")


def test_a_name_that_nobody_provides_is_an_attribute_error_with_the_nearest_one(site):
    install(site, "alpha")
    with pytest.raises(PublicNameError) as caught:
        turnout.Hamer
    assert str(caught.value) == "module 'turnout' has no attribute 'Hamer'; did you mean Hammer?"
    assert isinstance(caught.value, AttributeError)
    assert refused(PublicNameError, lambda: turnout.xyzzy) == "module 'turnout' has no attribute 'xyzzy'"
    assert not hasattr(turnout, "xyzzy")
    assert state_of("alpha") == "discovered"


def test_a_name_of_a_known_package_says_which_to_install(site, monkeypatch):
    row = {"distribution": "dist-omega", "devices": [], "backends": [], "functionalities": [], "namespaces": []}
    row |= {"public": ["chisel"], "members": ["shed.plane"], "lowest_device": ""}
    monkeypatch.setattr(providers, "data", lambda: {"omega": row})
    with pytest.raises(PublicNameError) as caught:
        turnout.chisel
    assert str(caught.value) == (
        "module 'turnout' has no attribute 'chisel'\n  why     no installed package provides it\n  to fix  pip install dist-omega"
    )
    text = str(caught.value)
    for program in ("import turnout.chisel", "from turnout import chisel"):
        with pytest.raises((PluginError, PublicNameError)) as caught:
            exec(program)
        assert str(caught.value) == text


def test_two_plugins_with_one_name_are_a_conflict_until_configuration_chooses(site):
    install(site, "alpha")
    install(site, "beta", names=("saw",))
    assert refused(ConflictError, lambda: turnout.saw) == (
        "turnout.saw is provided by alpha (dist-alpha 0.1) and beta (dist-beta 0.1)\n"
        '  to fix  choose one: [names.choose] saw = "alpha", or disable the other in plugins.disable'
    )
    assert (state_of("alpha"), state_of("beta")) == ("discovered", "discovered")
    assert turnout.Hammer.__module__ == "turnout"
    config.set({"names.choose.saw": "beta"})
    assert turnout.saw.__globals__["__name__"] == "fake_beta.tools"
    config.set({"names.choose.saw": "alpha"})
    assert turnout.saw.__globals__["__name__"] == "fake_alpha.tools"


def test_a_conflict_is_settled_by_disabling_one(site):
    install(site, "alpha")
    install(site, "beta", names=("saw",))
    config.set({"plugins.disable": ["alpha"]})
    assert turnout.saw.__globals__["__name__"] == "fake_beta.tools"


def test_deactivation_takes_the_names_away_and_the_next_use_activates_again(site):
    install(site, "alpha", modules=("garden",))
    import turnout.garden.inner

    first = turnout.saw
    plugins.deactivate("alpha")
    assert {"saw", "garden"}.isdisjoint(vars(turnout))
    assert not [name for name in sys.modules if name.startswith("turnout.garden")]
    assert state_of("alpha") == "discovered"
    assert turnout.saw is first
    assert state_of("alpha") == "active"
    assert import_module("turnout.garden.inner") is sys.modules["fake_alpha.garden.inner"]


def install_part(site, name, place="garden", names=("spade", "word")):
    """A plugin with members of a public module: functions, and a module `pond` with a module `fish`."""
    listed = ", ".join(f'"{each}"' for each in names)
    tables = f'[provides.members.{place}.names]\n"fake_{name}.part" = [{listed}]\n'
    tables += f'[provides.members.{place}.modules]\npond = "fake_{name}.pond"\n'
    part = f"def spade():\n    return '{name}'\n\n\nword = '{name}'\n"
    files = {"part.py": part, "pond/__init__.py": "", "pond/fish.py": "depth = 3\n"}
    site.plugin(name, manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules=files)


@pytest.mark.parametrize("owned", [True, False])
def test_members_join_a_public_module_and_leave_it(site, owned):
    if owned:
        install(site, "alpha", modules=("garden",))
    install_part(site, "beta")
    assert "garden" in dir(turnout)
    garden = import_module("turnout.garden")
    assert turnout.garden is garden is sys.modules["turnout.garden"]
    assert state_of("beta") == "discovered"
    assert dir(garden) == garden.__all__ == ["pond", "spade", "word"]
    assert garden.spade() == "beta"
    assert garden.spade.__module__ == "turnout.garden"
    assert garden.word == ("garden of alpha" if owned else "beta")  # what the owner has is the owner's
    assert import_module("turnout.garden.pond.fish") is turnout.garden.pond.fish
    assert turnout.garden.pond.fish is sys.modules["fake_beta.pond.fish"]
    assert refused(PublicNameError, lambda: garden.spate) == (
        "module 'turnout.garden' has no attribute 'spate'; did you mean spade?"
    )
    refused(ModuleNotFoundError, import_module, "turnout.garden.hedge")
    plugins.deactivate("beta")
    assert {"spade", "pond"}.isdisjoint(vars(garden))
    assert not [name for name in sys.modules if name.startswith("turnout.garden.pond")]
    assert garden.spade() == turnout.garden.spade() == "beta"
    config.set({"plugins.disable": ["beta"]})
    assert ("garden" in dir(turnout)) == owned
    assert dir(garden) == []
    refused(DisabledError, lambda: garden.spade)


def test_a_member_of_two_plugins_is_a_conflict_until_configuration_chooses(site):
    install(site, "alpha", modules=("garden",))
    install_part(site, "beta")
    install_part(site, "gamma", names=("spade",))
    assert refused(ConflictError, lambda: turnout.garden.spade) == (
        "turnout.garden.spade is provided by beta (dist-beta 0.1) and gamma (dist-gamma 0.1)\n"
        '  to fix  choose one: [names.choose] "garden.spade" = "beta", or disable the other in plugins.disable'
    )
    config.set({"names.choose.garden.spade": "gamma"})
    assert turnout.garden.spade() == "gamma"


def test_a_member_of_a_known_package_says_which_to_install(site, monkeypatch):
    install(site, "alpha", modules=("garden",))
    row = dict.fromkeys(("devices", "backends", "functionalities", "namespaces", "public"), ())
    known = {"distribution": "dist-omega", **row, "members": ["garden.rake"], "lowest_device": ""}
    monkeypatch.setattr(providers, "data", lambda: {"omega": known})
    text = (
        "module 'turnout.garden' has no attribute 'rake'\n"
        "  why     no installed package provides it\n  to fix  pip install dist-omega"
    )
    assert refused(PublicNameError, lambda: turnout.garden.rake) == text
    assert refused(PluginError, import_module, "turnout.garden.rake") == text
    assert refused(PluginError, exec, "from turnout.garden import rake") == text
    assert turnout.garden.word == "garden of alpha"


@pytest.mark.parametrize("garden", ["garden/__init__.py", "garden.py"])
def test_imports_of_a_member_and_of_a_name_say_why_they_fail(site, garden):
    tables = '[provides.modules]\ngarden = "fake_alpha.garden"\n'
    site.plugin("alpha", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules={garden: "word = 1\n"})
    tables = '[provides.names]\n"fake_beta.tools" = ["saw"]\n[provides.members.garden.names]\n"fake_beta.tools" = ["spade"]\n'
    tables += '[[needs]]\nmodule = "no_such_module"\ninstall = "pip install such"\n'
    site.plugin("beta", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules={"tools.py": TOOLS})
    said = refused(PublicNameError, lambda: turnout.garden.spade)
    assert said.startswith("the plugin beta is unavailable\n  why     the module no_such_module is not installed\n")
    assert said.endswith("\n  to fix  pip install such")
    for program in ("from turnout.garden import spade", "import turnout.garden.spade", "from turnout import saw"):
        assert refused(PluginError, exec, program) == said
    assert refused(ImportError, exec, "from turnout.garden import spate").startswith("cannot import name 'spate' from ")
    assert not {"turnout.garden.spade", "fake_alpha.garden.spade", "fake_alpha.garden.spate"} & sys.modules.keys()
    config.set({"plugins.disable": ["beta"]})
    for program in ("from turnout.garden import spade", "from turnout import saw"):
        assert refused(DisabledError, exec, program).startswith("the plugin beta is disabled\n")


def test_a_disabled_plugin_is_named_with_the_setting_and_its_names_are_not_listed(site):
    install(site, "alpha", modules=("garden",))
    assert turnout.saw
    config.set({"plugins.disable": ["alpha"]})
    assert "saw" not in dir(turnout)
    assert refused(DisabledError, lambda: turnout.saw) == (
        "the plugin alpha is disabled\n"
        "  why     plugins.disable names alpha (turnout.config.set)\n"
        f"  from    {plugins.all_plugins()[0].origin}\n"
        "  to fix  take it out, or name it in plugins.enable"
    )
    refused(DisabledError, import_module, "turnout.garden")
    config.unset("plugins.disable")
    assert turnout.saw("fir") == "half of fir"


def test_the_names_are_listed_before_they_are_used(site):
    install(site, "alpha", modules=("garden",))
    assert {"Hammer", "saw", "garden", "explain", "library"} <= set(dir(turnout))
    assert state_of("alpha") == "discovered"
    assert turnout.__all__ == [name for name in dir(turnout) if not name.startswith("_")]


def test_a_plugin_that_fails_shows_why_and_leaves_no_name(site):
    tables = '[provides.names]\n"fake_alpha.tools" = ["saw"]\n'
    site.plugin("alpha", manifest=LIBRARY, activation="raise KeyError('half-way')", tables=tables)
    assert not hasattr(turnout, "saw")
    with pytest.raises(PublicNameError) as caught:
        turnout.saw
    assert str(caught.value).startswith("the plugin alpha has failed\n  why     KeyError: 'half-way'")
    assert isinstance(caught.value.__cause__, KeyError)
    assert "saw" not in vars(turnout)


def test_hasattr_and_inspect_pass_over_the_names_of_a_plugin_that_is_unavailable(site):
    tables = '[provides.names]\n"fake_alpha.tools" = ["saw"]\n[provides.modules]\ngarden = "fake_alpha.garden"\n'
    missing = "@hookimpl\ndef turnout_available():\n    return 'no driver'\n"
    activation = LIBRARY_ACTIVATION.format(name="alpha") + "\n" + missing
    site.plugin("alpha", manifest=LIBRARY, activation=activation, tables=tables)
    assert {"saw", "garden"} <= set(dir(turnout))
    for name in ("saw", "garden"):
        assert not hasattr(turnout, name)
        said = refused(PublicNameError, getattr, turnout, name)
        assert said.startswith("the plugin alpha is unavailable\n  why   no driver\n")
    assert {"saw", "garden"}.isdisjoint(name for name, _ in inspect.getmembers(turnout))
    assert state_of("alpha") == "unavailable"


def test_a_name_that_the_module_does_not_have_is_an_error(site):
    tables = '[provides.names]\n"fake_alpha.tools" = ["axe"]\n'
    site.plugin("alpha", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules={"tools.py": "saw = 1\n"})
    assert refused(AttributeError, lambda: turnout.axe) == "module 'fake_alpha.tools' has no attribute 'axe'"


@pytest.mark.parametrize(
    ("tables", "row"),
    [
        ('[provides.names]\n"other.tools" = ["saw"]',
         "provides.names.other.tools: expected a module of fake_alpha, got 'other.tools'"),
        ('[provides.names]\n"fake_alpha.tools" = ["a saw"]', "provides.names.fake_alpha.tools: 'a saw' is not a name"),
        ('[provides.names]\n"fake_alpha.a" = ["saw"]\n"fake_alpha.b" = ["saw"]',
         "provides.names.fake_alpha.b: 'saw' is there twice, from fake_alpha.a too"),
        ('[provides.modules]\nnn = "torch.nn"', "provides.modules.nn: expected a module of fake_alpha, got 'torch.nn'"),
        ('[provides.modules]\n"a-b" = "fake_alpha.ab"', "provides.modules.a-b: 'a-b' is not a name"),
        ('[provides.members."a.b".names]\n"fake_alpha.a" = ["saw"]', "provides.members.a.b: 'a.b' is not a name"),
        ('[provides.members]\na = 1', "provides.members.a: expected a table, [provides.members.a.names], got 1"),
        ('[provides.members.a]\nname = 1', "provides.members.a.name: unknown field; did you mean names?"),
        ('[provides.members.a.modules]\nb = "other.b"',
         "provides.members.a.modules.b: expected a module of fake_alpha, got 'other.b'"),
    ],
)  # fmt: skip
def test_what_is_no_public_name_is_refused(site, tables, row):
    site.plugin("alpha", manifest=LIBRARY, tables=tables)
    [record] = plugins.all_plugins()
    assert record.state == "failed"
    assert record.reason.partition("  line ")[2].partition("  ")[2] == row
