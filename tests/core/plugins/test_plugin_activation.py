"""Activation is all or nothing, once, under one lock; deactivation takes back everything."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from installed_folder import LIBRARY, LIBRARY_ACTIVATION, Library

from outcomes import in_threads, refused
from turnout import config, plugins
from turnout.config.lock import forbid_imports
from turnout.errors import DisabledError, ManifestError, PluginError, PluginWarning

FAILING = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.register("backend:Alpha")
    raise KeyError("half-way")
"""
REQUIRES = 'requires_plugins = ["alpha"]'
KEY = '[[provides.key]]\nname = "{}"\n'


def test_a_plugin_is_activated_once_after_what_it_requires(site):
    site.plugin("alpha")
    site.plugin("beta", top=REQUIRES)
    plugins.require_device("beta")
    plugins.require_device("beta")
    assert Library.registered == ["backend:Alpha", "backend:Beta"]
    assert plugins.all_plugins()[0].state == "active"


def test_a_plugin_that_raises_half_way_leaves_nothing_and_its_traceback_is_kept(site):
    path = site.plugin("alpha", activation=FAILING)
    for _ in range(2):
        with pytest.raises(PluginError) as error:
            plugins.require_device("alpha")
        assert Library.registered == []
        assert isinstance(error.value.__cause__, KeyError)
        assert 'raise KeyError("half-way")' in "".join(traceback.format_exception(error.value))
        assert str(error.value) == (
            "device 'alpha': the plugin alpha has failed\n"
            f"  why     KeyError: 'half-way' ({path.with_name('plugin.py')}:6)\n"
            f"  from    dist-alpha 0.1 ({path})\n"
            "  to fix  upgrade dist-alpha, tell its authors, or name alpha in plugins.disable"
        )


MARKING = """\
from turnout.plugins import replaceable

@replaceable
def adder(n):
    return lambda x: x + n

def other(n):
    return n
"""


@pytest.mark.parametrize(
    ("replaced", "unknown"),
    [
        ("fake_parts:adder", ""),
        ("turnout.operators.calls:entry_point", ""),
        ("fake_absent.parts:adder", ""),
        ("fake_parts:other", "fake_parts:other"),
        ("fake_parts:addr", "fake_parts:addr"),
        ("turnout.operators.kernels:guardd", "turnout.operators.kernels:guardd"),
    ],
)
def test_what_replaces_a_function_that_is_not_replaceable_fails_at_activation(site, monkeypatch, replaced, unknown):
    site.distribution("parts", files={"fake_parts.py": MARKING})
    importlib.import_module("fake_parts")
    faster = f"REPLACEMENTS = {{'turnout.operators.kernels:guarded': None, {replaced!r}: None}}\n"
    tables = 'replacements = "fake_alpha.faster"\n'
    site.plugin("alpha", manifest=LIBRARY, activation=LIBRARY_ACTIVATION, tables=tables, modules={"faster.py": faster})
    if not unknown:
        assert plugins.activate("alpha").state == "active"
        return
    with pytest.raises(PluginError) as caught:
        plugins.activate("alpha")
    assert str(caught.value.__cause__) == (
        "the module fake_alpha.faster replaces functions that are not replaceable\n"
        f"  replaced  {unknown}\n"
        "  to fix    name functions marked with turnout.plugins.replaceable, as 'module:function'"
    )


def test_a_failed_plugin_is_tried_again_after_a_reset(site):
    path = site.plugin("alpha", activation=FAILING)
    refused(PluginError, plugins.activate, "alpha")
    import sys

    path.with_name("plugin.py").write_text(FAILING.replace('    raise KeyError("half-way")\n', "    # works now\n\n"))
    del sys.modules["fake_alpha.plugin"]
    plugins.reset_discovery()
    assert plugins.activate("alpha").state == "active"


@pytest.mark.parametrize("statement", ["raise SystemExit(3)", "import fake_missing", "1 / 0"])
def test_a_module_that_cannot_be_imported_is_a_failed_plugin(site, statement):
    site.plugin("alpha", activation=statement + "\n")
    with pytest.raises(PluginError) as error:
        plugins.activate("alpha")
    assert error.value.__cause__ is plugins.all_plugins()[0].error


def test_a_requirement_that_fails_blocks_and_shows_the_original_cause(site):
    path = site.plugin("alpha", activation="1 / 0\n")
    site.plugin("beta", top=REQUIRES)
    with pytest.raises(PluginError) as error:
        plugins.require_device("beta")
    assert str(error.value) == (
        "device 'beta': the plugin beta is blocked\n"
        "  why     it requires the plugin alpha, which is failed: "
        f"ZeroDivisionError: division by zero ({path.with_name('plugin.py')}:1)\n"
        f"  from    dist-beta 0.1 ({site.folder}/fake_beta/plugin.toml)\n"
        "  to fix  upgrade dist-alpha, tell its authors, or name alpha in plugins.disable"
    )
    assert "1 / 0" in "".join(traceback.format_exception(error.value))


def test_a_plugin_may_say_that_its_device_is_missing_and_be_asked_again(site):
    activation = """\
import os
from turnout.plugins import hookimpl

@hookimpl
def turnout_available():
    return None if os.path.exists("device") else "no device is visible"

@hookimpl
def turnout_activate(library, options):
    library.register("backend:Alpha")
"""
    path = site.plugin("alpha", activation=activation)
    assert refused(PluginError, plugins.require_device, "alpha") == (
        f"device 'alpha': the plugin alpha is unavailable\n  why   no device is visible\n  from  dist-alpha 0.1 ({path})"
    )
    assert plugins.all_plugins()[0].state == "unavailable"
    open("device", "w").close()
    plugins.require_device("alpha")


def test_a_plugin_that_does_not_register_what_it_promises_is_undone(site):
    activation = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.register("backend:Alpha")
    library.register("backend:Surprise")
    library.register("fallback:Tracer")
"""
    tables = KEY.format("Autograd") + KEY.format("Tracer") + "[option.x]\ntype='int'\ndefault=1\nhelp='x'"
    path = site.plugin("alpha", activation=activation, tables=tables)
    with pytest.raises(PluginError) as error:
        plugins.activate("alpha")
    assert isinstance(error.value.__cause__, ManifestError)
    assert str(error.value.__cause__) == (
        "what was registered is not what the manifest says; all of it was taken back\n"
        f"  manifest   {path}\n"
        "  module     fake_alpha.plugin\n"
        "  missing    functionality Autograd\n"
        "  not named  backend Surprise, device surprise"
    )
    assert Library.registered == []


def test_a_module_without_the_hook_says_what_is_expected(site):
    site.plugin("alpha", activation="def turnout_activate(library, options): ...\n")
    with pytest.raises(PluginError) as error:
        plugins.activate("alpha")
    assert str(error.value.__cause__) == (
        "the module fake_alpha.plugin has no function turnout_activate(library, options) marked with @turnout.plugins.hookimpl"
    )


@pytest.mark.parametrize("hook", ["turnout_activate(nothing)", "turnout_start()"])
def test_a_hook_that_is_not_one_fails_the_plugin(site, hook):
    activation = f"from turnout.plugins import hookimpl\n@hookimpl\ndef {hook}: ...\n"
    site.plugin("alpha", activation=activation)
    refused(PluginError, plugins.activate, "alpha")
    assert plugins.all_plugins()[0].state == "failed"


def test_a_plugin_that_asks_for_itself_while_activating_is_an_error(site):
    activation = """\
from turnout import plugins

@plugins.hookimpl
def turnout_activate(library, options):
    plugins.require_device("alpha")
"""
    site.plugin("alpha", activation=activation)
    with pytest.raises(PluginError) as error:
        plugins.activate("alpha")
    assert str(error.value.__cause__) == "the plugin alpha asks for itself while it is activated: alpha -> alpha"


def test_options_are_read_where_they_are_looked_up(site):
    activation = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.register("backend:Alpha")
    library.options = options
    global OPTIONS
    OPTIONS = options
"""
    tables = '[option.fraction]\ntype = "float"\ndefault = 0.5\nhelp = "how much"\n'
    site.plugin("alpha", activation=activation, tables=tables)
    plugins.activate("alpha")
    import fake_alpha.plugin

    options = fake_alpha.plugin.OPTIONS
    assert dict(options) == {"fraction": 0.5}
    with config.override({"plugin.alpha.fraction": 1}):
        assert dict(options) == {"fraction": 1.0}
    config.set(plugin__alpha__fraction=0.25)
    assert options["fraction"] == 0.25


def test_deactivation_takes_everything_back_and_the_next_use_activates_again(site):
    site.plugin("alpha")
    plugins.activate("alpha")
    plugins.deactivate("alpha")
    plugins.deactivate("alpha")
    assert Library.registered == []
    assert plugins.all_plugins()[0].state == "discovered"
    plugins.require_device("alpha")
    assert Library.registered == ["backend:Alpha"]


def test_a_plugin_that_others_require_is_deactivated_with_them_or_not_at_all(site):
    site.plugin("alpha")
    site.plugin("beta", top=REQUIRES)
    plugins.activate("beta")
    assert refused(PluginError, plugins.deactivate, "alpha") == (
        "the plugin alpha cannot be deactivated while others that need it are active\n"
        "  needed by  beta\n"
        "  to fix     turnout.plugins.deactivate('alpha', with_dependents=True)"
    )
    assert Library.registered == ["backend:Alpha", "backend:Beta"]
    plugins.deactivate("alpha", with_dependents=True)
    assert Library.registered == []


ACTIVATES = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.register("backend:Alpha")
"""


def test_a_clean_up_that_raises_does_not_keep_anything(site):
    clean_up = "@hookimpl\ndef turnout_deactivate():\n    raise OSError('handle is busy')\n"
    site.plugin("alpha", activation=f"{ACTIVATES}\n{clean_up}")
    plugins.activate("alpha")
    assert refused(PluginError, plugins.deactivate, "alpha") == (
        "the plugin alpha was deactivated, but its clean-up raised\n  why  OSError: handle is busy"
    )
    assert Library.registered == []
    plugins.activate("alpha")
    with pytest.warns(PluginWarning):
        config.set({"plugins.disable": ["alpha"]})
    assert Library.registered == []


def test_a_clean_up_that_is_interrupted_keeps_nothing(site):
    clean_up = "@hookimpl\ndef turnout_deactivate():\n    raise KeyboardInterrupt\n"
    site.plugin("alpha", activation=f"{ACTIVATES}\n{clean_up}")
    plugins.activate("alpha")
    refused(KeyboardInterrupt, plugins.deactivate, "alpha")
    assert (Library.registered, plugins.all_plugins()[0].state) == ([], "discovered")


def test_disabling_an_active_plugin_deactivates_it_and_what_requires_it(site):
    site.plugin("alpha")
    site.plugin("beta", top=REQUIRES)
    plugins.activate("beta")
    config.set({"plugins.disable": ["alpha"]})
    assert Library.registered == []
    assert [r.state for r in plugins.all_plugins()] == ["disabled", "blocked"]
    refused(DisabledError, plugins.require_device, "alpha")
    config.unset("plugins.disable")
    plugins.require_device("alpha")


def test_a_namespace_is_brought_by_all_plugins_that_have_a_part_of_it(site):
    activation = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.register("backend:{backend}")
    library.register("kernel:letters::a@{backend}")
"""
    for name in ("alpha", "beta"):
        site.plugin(name, activation=activation)
        manifest = site.folder / f"fake_{name}/plugin.toml"
        text = manifest.read_text().replace("[[provides", '[provides]\nnamespaces = ["letters"]\n[[provides')
        manifest.write_text(text)
    (site.folder / "fake_beta/plugin.py").write_text("1 / 0\n")
    with pytest.warns(PluginWarning, match="beta"):
        assert plugins.require_namespace("letters") is True
    assert "kernel:letters::a@Alpha" in Library.registered


def test_kernels_for_the_operators_of_a_backend_may_come_with_a_plugin_that_requires_it(site):
    """A backend is prepared with what registers beside it, and that with what it requires: the backend itself."""
    site.plugin("letters", manifest=LIBRARY, activation=LIBRARY_ACTIVATION)
    site.plugin("alpha", top='requires_plugins = ["letters"]')
    activation = LIBRARY_ACTIVATION.replace("namespace:{name}", "kernel:letters::a@Alpha")
    written = site.plugin("zed", manifest=LIBRARY, top='requires_plugins = ["letters", "alpha"]', activation=activation)
    written.write_text(written.read_text().replace('["zed"]', '["letters"]'))
    plugins.require_device("alpha")
    assert plugins.require_namespace("letters") is True
    assert Library.registered == ["namespace:letters", "backend:Alpha", "kernel:letters::a@Alpha"]


def test_importing_turnout_does_not_load_what_finds_plugins():
    code = (
        "import sys, turnout.plugins, turnout.config\n"
        "heavy = {'pluggy', 'importlib_metadata', 'importlib.metadata', 'tomllib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == "[]\n"


WATCHING = """\
import gc
from turnout.plugins import hookimpl

seen = [(gc.isenabled(), gc.get_threshold()[0])]

@hookimpl
def turnout_activate(library, options):
    library.register("backend:Alpha")
    seen.append((gc.isenabled(), gc.get_threshold()[0]))
    END
"""


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("end", ["pass", 'raise KeyError("half-way")'])
def test_the_collector_is_paused_for_an_activation_and_then_as_before(site, before, end):
    site.plugin("alpha", activation=WATCHING.replace("END", end))
    thresholds = gc.get_threshold()
    try:
        (gc.enable if before else gc.disable)()
        with suppress(PluginError):
            plugins.require_device("alpha")
        assert (gc.isenabled(), gc.get_threshold()) == (before, thresholds)
    finally:
        gc.enable()
    # A module that is imported meanwhile, and restores later what `isenabled` says here, does not disable the collector for good.
    assert sys.modules["fake_alpha.plugin"].seen == [(before, 0)] * 2


def test_thresholds_that_a_plugin_sets_for_the_collector_stay_so(site):
    site.plugin("alpha", activation=WATCHING.replace("END", "gc.set_threshold(5_000, 20, 30)"))
    thresholds = gc.get_threshold()
    try:
        plugins.require_device("alpha")
        assert gc.get_threshold()[:2] == (5_000, 20)
    finally:
        gc.set_threshold(*thresholds)


COLLECTIONS = """\
import gc, sys
from turnout.plugins.collector import collector_paused

collections = []
watch = lambda phase, facts: collections.append(facts["generation"])
if sys.argv[1] == "frozen":
    gc.freeze()
before = gc.get_freeze_count()
with collector_paused():
    kept = [[] for _ in range(50_000)]
    gc.callbacks.append(watch)
kept += [[] for _ in range(10)]
gc.callbacks.remove(watch)
print(bool(collections), 0 <= before - gc.get_freeze_count() < 1_000)
"""


@pytest.mark.parametrize("frozen", [False, True])
def test_after_a_pause_no_collection_is_due_and_what_the_program_froze_stays_so(frozen):
    command = [sys.executable, "-c", COLLECTIONS, "frozen" if frozen else "as it is"]  # the suite freezes its own objects
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{frozen} True\n"


# ---- threads, and what ends an activation before its time

SLOW = "import time\nfrom turnout import plugins\nfrom turnout.plugins import hookimpl\ntime.sleep(0.05)\n"
HOOK = '\n@hookimpl\ndef turnout_activate(library, options):\n    library.register("backend:{backend}")\n'
# A hook that waits for its threads: they may import, and read options.
STARTS_THREADS = """\
import threading
from turnout.plugins import hookimpl

def work(options, seen):
    import fake_alpha.late
    seen.append((fake_alpha.late.DONE, options["fraction"]))

@hookimpl
def turnout_activate(library, options):
    seen = []
    threads = [threading.Thread(target=work, args=(options, seen)) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join(60)
    assert seen == [(True, 0.5)] * 3
    library.register("backend:Alpha")
"""
LATE = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    import fake_alpha.late
    library.register("backend:Alpha")
"""
ENDED = """\
import pathlib
from turnout.plugins import hookimpl

def end(place):
    flag = pathlib.Path(__file__).with_name("ended")
    if place == "PLACE" and not flag.exists():
        flag.touch()
        raise KeyboardInterrupt

end("module")

@hookimpl
def turnout_available():
    end("available")

@hookimpl
def turnout_activate(library, options):
    library.register("backend:Alpha")
    end("activate")
"""


def asked_at_once(*names):
    """What each of some threads got that ask for these plugins at once."""
    barrier = threading.Barrier(len(names))

    def ask(name):
        barrier.wait()
        try:
            plugins.require_device(name)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            return str(error)

    return in_threads(*[partial(ask, name) for name in names])


def test_threads_that_ask_for_one_plugin_or_for_plugins_that_need_each_other_activate_each_once(site):
    site.plugin("alpha", activation=SLOW + HOOK)
    assert asked_at_once(*["alpha"] * 8) == [None] * 8
    assert Library.registered == ["backend:Alpha"]
    plugins.deactivate("alpha")
    site.plugin("beta", top=REQUIRES, activation=SLOW + HOOK)
    for name, other in (("gamma", "beta"), ("delta", "gamma")):  # while they are imported
        site.plugin(name, activation=f"{SLOW}plugins.require_device({other!r})\n{HOOK}")
    plugins.reset_discovery()
    names = ["delta", "alpha", "gamma", "beta", "delta", "gamma"]
    assert asked_at_once(*names) == [None] * 6
    assert sorted(Library.registered) == ["backend:Alpha", "backend:Beta", "backend:Delta", "backend:Gamma"]


def test_threads_that_ask_for_a_plugin_that_fails_get_one_error(site):
    site.plugin("alpha", activation=SLOW + HOOK + "    raise KeyError('half-way')\n")
    [text] = set(asked_at_once("alpha", "alpha", "alpha"))
    assert "KeyError: 'half-way'" in text
    assert (Library.registered, plugins.all_plugins()[0].state) == ([], "failed")


def test_a_hook_may_wait_for_threads_that_import(site):
    tables = '[option.fraction]\ntype = "float"\ndefault = 0.5\nhelp = "how much"\n'
    path = site.plugin("alpha", activation=STARTS_THREADS, tables=tables)
    path.with_name("late.py").write_text("DONE = True\n")
    assert asked_at_once("alpha", "alpha") == [None, None]


@pytest.mark.parametrize("place", ["module", "available", "activate"])
def test_an_interrupt_leaves_the_plugin_as_it_was(site, place):
    site.plugin("alpha", activation=ENDED.replace("PLACE", place))
    refused(KeyboardInterrupt, plugins.activate, "alpha")
    assert (Library.registered, plugins.all_plugins()[0].state) == ([], "discovered")
    assert asked_at_once("alpha") == [None]
    assert Library.registered == ["backend:Alpha"]


ENDLESS = f"{ACTIVATES}    def deeper(): deeper()\n    deeper()\n"


def test_a_recursion_of_the_program_that_leaves_no_room_is_no_failure_of_the_plugin(site):
    site.plugin("alpha", activation=ACTIVATES)
    site.plugin("beta", activation=ENDLESS)

    def deep():
        try:
            deep()
        except RecursionError:
            plugins.activate("alpha")

    deep()  # tries again with each frame that is left
    assert Library.registered == ["backend:Alpha"]
    assert "RecursionError" in refused(PluginError, plugins.activate, "beta")


def test_an_import_under_the_lock_is_an_error_where_the_setting_says_so(site):
    path = site.plugin("alpha", activation=LATE)
    path.with_name("late.py").write_text("DONE = True\n")
    forbid_imports(False)
    try:
        config.set(debug__locks=True)
        with pytest.raises(PluginError) as error:
            plugins.activate("alpha")
        assert str(error.value.__cause__) == (
            "fake_alpha.late is imported by a thread that holds Turnout's lock; a thread that is importing it already may wait "
            "for the lock\n  to fix  import it before: at the top of the module, or in turnout_available"
        )
        config.unset("debug.locks")
        plugins.reset_discovery()
        assert plugins.activate("alpha").state == "active"
    finally:
        forbid_imports()


def test_the_plugin_layer_answers_what_the_layers_below_ask():
    file = importlib.import_module("turnout.config.installed").__file__
    tree = ast.parse(Path(str(file)).read_text("utf-8"))
    (answers,) = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "Answers"]
    asked = {
        each.name: [a.arg for a in (*each.args.args[1:], *each.args.kwonlyargs)] for each in answers.body if hasattr(each, "args")
    }
    assert len(asked) == 11
    assert {name: [*inspect.signature(getattr(plugins, name)).parameters] for name in asked} == asked
