"""Values and origins from every source, strict checks with file and line, and changes that are whole or nothing."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path

import pytest

from outcomes import refused
from turnout import config
from turnout.config.lines import loads
from turnout.config.store import Store
from turnout.errors import ConfigError, ConfigWarning, PluginWarning
from turnout.plugins.manifest import Option


class Catalog:
    """What is installed, for these tests."""

    options = {
        "alpha": {
            "fraction": Option("float", 0.5, "how much"),
            "mode": Option("str", "fast", "which way", ("fast", "exact")),
            "on": Option("bool", True, "whether"),
            "peer": Option("str", "", "whom to call", trusted=True),
            "rows": Option("int", 20, "how many", min=0, max=1000),
            "share": Option("float", 0.5, "how much", min=0.0, max=1.0),
            "steps": Option("int", 1, "how many", min=1),
            "cooling": Option("float", 0.0, "how warm", max=37.5),
        },
        "beta": {},
    }

    def plugin_names(self):
        return ["alpha", "beta"]

    def known_elsewhere(self):
        return ["omega"]

    def claimants(self, name):
        return ["one-alpha", "two-alpha"] if name == "alpha" else []

    def remedy_of(self, plugin):
        return f"pip install turnout-{plugin}"

    def options_of(self, plugin):
        return self.options.get(plugin)

    def key_names(self):
        return {"Autograd": "", "AutogradCPU": "Autograd", "Autocast": "", "AutocastCPU": "Autocast", "Tracer": ""}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty working directory below tmp_path, no user file, and a configuration that was not read yet."""
    work = tmp_path / "project" / "deep"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(config, "_store", Store(Catalog))
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def error_of(function, *args, **named):
    return refused(ConfigError, function, *args, **named)


def rejected(*rows):
    return "the configuration is not accepted; the one before it stays in force" + "".join(f"\n  {row}" for row in rows)


def test_defaults_come_from_nowhere_else(home):
    assert config.get("default_device") == ""
    assert config.get("strict") is False
    assert config.get("plugins.disable") == ()
    assert config.get("plugin.alpha.fraction") == 0.5
    assert config.get("plugins.choose.alpha") is None
    assert frozenset(config.get("keys.disable")) == frozenset()
    assert str(config.origin("strict")) == "default"


def test_the_highest_source_that_names_a_setting_wins(home, monkeypatch):
    user = write(home / "xdg/turnout/config.toml", 'default_device = "user"\n')
    assert config.get("default_device") == "user"
    assert str(config.origin("default_device")) == f"{user}:1"
    project = write(home / "project/pyproject.toml", '[project]\nname = "x"\n[tool.turnout]\ndefault_device = "toml"\n')
    config.reload()
    assert str(config.origin("default_device")) == f"{project}:4"
    own = write(home / "project/turnout.toml", '\n\ndefault_device = "own"\n')
    config.reload()
    assert (config.get("default_device"), str(config.origin("default_device"))) == ("own", f"{own}:3")
    named = write(home / "named.toml", 'default_device = "named"')
    monkeypatch.setenv("TURNOUT_CONFIG", str(named))
    config.reload()
    assert str(config.origin("default_device")) == f"{named}:1"
    monkeypatch.setenv("TURNOUT_DEFAULT_DEVICE", "variable")
    config.reload()
    assert config.get("default_device") == "variable"
    assert str(config.origin("default_device")) == "environment TURNOUT_DEFAULT_DEVICE"
    config.set(default_device="set")
    assert str(config.origin("default_device")) == "turnout.config.set"
    with config.override(default_device="context:1"):
        assert config.get("default_device") == "context:1"
        assert str(config.origin("default_device")) == "turnout.config.override"
    assert config.get("default_device") == "set"
    config.unset("default_device")
    assert config.get("default_device") == "variable"


def test_a_nearer_file_hides_those_above_it_and_a_foreign_pyproject_hides_nothing(home):
    write(home / "project/turnout.toml", "strict = true\n")
    write(home / "project/deep/pyproject.toml", '[project]\nname = "not about turnout"\n')
    assert config.get("strict") is True
    write(home / "project/deep/turnout.toml", 'default_device = "near"\n')
    config.reload()
    assert (config.get("strict"), config.get("default_device")) == (False, "near")


def test_files_are_read_once_until_reload(home):
    assert config.get("strict") is False
    write(Path("turnout.toml"), "strict = true\n")
    assert config.get("strict") is False
    config.reload()
    assert config.get("strict") is True


FILE = """\
strict = "yes"
default_device = "GPU 1"
strikt = true

[plugins]
disable = ["alpa", "omega"]   # omega is known, and not being installed it is disabled indeed
enable = [
    "omega",
]
choose.alpha = "three-alpha"

[keys]
disable = ["Autogard"]

[plugin.alpha]
fraction = "half"
mode = "slow"
on = 1
frackion = 0.5

[plugin.gamma]
x = 1
"""


def test_every_problem_of_a_file_is_reported_with_its_line(home):
    file = write(home / "project/turnout.toml", FILE)
    rows = (
        (1, "strict: expected true or false, got 'yes'"),
        (2, "default_device: expected a device such as 'cpu' or 'cuda:1', got 'GPU 1'"),
        (3, "strikt: there is no such setting; did you mean strict?"),
        (6, "plugins.disable: there is no plugin 'alpa'; did you mean alpha?"),
        (7, "plugins.enable: the plugin omega is not installed (pip install turnout-omega)"),
        (10, "plugins.choose.alpha: expected a distribution that provides it (one-alpha, two-alpha), got 'three-alpha'"),
        (13, "keys.disable: there is no key 'Autogard'; did you mean Autograd?"),
        (16, "plugin.alpha.fraction: expected a number, got 'half'"),
        (17, "plugin.alpha.mode: expected one of 'fast', 'exact', got 'slow'"),
        (18, "plugin.alpha.on: expected true or false, got 1"),
        (19, "plugin.alpha.frackion: the plugin alpha has no option 'frackion'; did you mean fraction?"),
        (22, "plugin.gamma.x: there is no plugin 'gamma'"),
        (6, "plugins.disable: 'omega' is also in plugins.enable of the same source"),
    )
    width = len(f"{file}:10")
    assert error_of(config.get, "strict") == rejected(*(f"{f'{file}:{line}':{width}}  {text}" for line, text in rows))


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("plugins = 3", "1  plugins: expected a table, got 3"),
        ("plugin.alpha = 3", "1  plugin.alpha: expected a table, got 3"),
        ("plugin.alpha.fraction = {x = 1}", "1  plugin.alpha.fraction: expected a number, got a table"),
        ("plugin.beta.x = 1", "1  plugin.beta.x: the plugin beta has no option 'x'; it has no options"),
        ('plugins.disable = "alpha"', "1  plugins.disable: expected a list of strings, got 'alpha'"),
        ('keys = {disable = ["x"]}', "1  keys.disable: there is no key 'x'"),
        ("strict = 2024-01-01", "1  strict: expected true or false, got 2024-01-01"),
        (
            'kernels.choose."add" = "x"',
            '1  kernels.choose.add: expected kernels.choose."namespace::operator.overload@Key"',
        ),
        (
            'kernels.prefer."a-d@CPU" = ["x"]',
            '1  kernels.prefer.a-d@CPU: expected kernels.prefer."name@Key", where * stands for any part of the name',
        ),
        (
            'x = """\n[keys]\n"""\nstrict = 1',
            "1  x: there is no such setting\n  {file}:4  strict: expected true or false, got 1",
        ),
        ('[plugins]\nload = "os"', "2  plugins.load: there is no such setting; did you mean plugins.enable?"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_found_at_its_line(home, text, row):
    file = write(home / "project/turnout.toml", text)
    assert error_of(config.reload) == rejected(f"{file}:{row}".replace("{file}", str(file)))


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("rows", "-1", "an integer from 0 to 1000, got -1"),
        ("rows", "1001", "an integer from 0 to 1000, got 1001"),
        ("rows", "9" * 40, "an integer from 0 to 1000, got an integer of 133 bits"),
        ("share", "1.0001", "a number from 0.0 to 1.0, got 1.0001"),
        ("share", "nan", "a number from 0.0 to 1.0, got nan"),
        ("share", "inf", "a number from 0.0 to 1.0, got inf"),
        ("steps", "0", "an integer of at least 1, got 0"),
        ("cooling", "38.5", "a number of at most 37.5, got 38.5"),
        ("cooling", "nan", "a number of at most 37.5, got nan"),
    ],
)
def test_a_number_beyond_its_bounds_is_refused_with_the_setting_and_its_source(home, monkeypatch, option, value, expected):
    text = f"plugin.alpha.{option}: expected {expected}"
    variable = f"TURNOUT_PLUGIN__ALPHA__{option.upper()}"
    monkeypatch.setenv(variable, value)
    assert error_of(config.reload) == rejected(f"environment {variable}  {text}")
    monkeypatch.delenv(variable)
    file = write(home / "project/turnout.toml", f"[plugin.alpha]\n{option} = {value}\n")
    assert error_of(config.reload) == rejected(f"{file}:2  {text}")
    file.unlink()
    config.reload()
    number = float(value) if "n" in value or "." in value else int(value)
    for source, call in (("set", config.set), ("override", lambda values: config.override(values).__enter__())):
        said = error_of(lambda call=call: call({f"plugin.alpha.{option}": number}))
        assert said == rejected(f"turnout.config.{source}  {text}")


@pytest.mark.parametrize(
    ("option", "value"), [("rows", 0), ("rows", 1000), ("share", 1), ("steps", 1 << 70), ("cooling", -1e300)]
)
def test_a_number_within_its_bounds_is_kept(home, option, value):
    config.set({f"plugin.alpha.{option}": value})
    assert config.get(f"plugin.alpha.{option}") == value


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("TURNOUT_STRICT", "yes", "strict: expected true, false, on, off, 1 or 0, got 'yes'"),
        ("TURNOUT_STRICT", "True", "strict: expected true, false, on, off, 1 or 0, got 'True'"),
        ("TURNOUT_STRICKT", "1", "strickt: there is no such setting; did you mean TURNOUT_STRICT?"),
        ("TURNOUT_PLUGIN__ALPHA__FRACTION", "x", "plugin.alpha.fraction: expected a number, got 'x'"),
    ],
)
def test_a_wrong_variable_is_named(home, monkeypatch, variable, value, text):
    monkeypatch.setenv(variable, value)
    assert error_of(config.reload) == rejected(f"environment {variable}  {text}")


def test_variables_are_read_by_the_type_of_their_setting(home, monkeypatch):
    monkeypatch.setenv("TURNOUT_STRICT", "1")
    monkeypatch.setenv("TURNOUT_PLUGINS__DISABLE", "alpha, beta")
    monkeypatch.setenv("TURNOUT_PLUGIN__ALPHA__FRACTION", "0.25")
    monkeypatch.setenv("TURNOUT_PLUGIN__ALPHA__ON", "false")
    assert config.get("strict") is True
    assert config.get("plugins.disable") == ("alpha", "beta")
    assert config.get("plugin.alpha.fraction") == 0.25
    assert config.get("plugin.alpha.on") is False


def test_a_named_file_that_is_missing_or_wrong_is_an_error(home, monkeypatch):
    monkeypatch.setenv("TURNOUT_CONFIG", "missing.toml")
    assert error_of(config.reload) == (
        "missing.toml: the configuration cannot be read\n  named by  TURNOUT_CONFIG\n  why       No such file or directory"
    )
    write(Path("missing.toml"), "strict = \n")
    assert error_of(config.reload) == (
        "missing.toml: the configuration cannot be read\n"
        "  named by  TURNOUT_CONFIG\n"
        "  why       Invalid value (at line 1, column 10)"
    )
    Path("missing.toml").write_bytes(b"\xff")
    assert error_of(config.reload).endswith("why       it is not UTF-8 text (byte 0)")
    assert str(config.problem()) == error_of(config.get, "strict")


def test_an_unknown_setting_cannot_be_asked_for(home):
    assert error_of(config.get, "strikt") == "strikt: there is no such setting; did you mean strict?"
    near = "plugin.alpha.fractio: there is no such setting; did you mean plugin.alpha.fraction?"
    assert error_of(config.origin, "plugin.alpha.fractio") == near


def test_a_wrong_set_changes_nothing(home):
    config.set(strict=True)
    text = error_of(config.set, {"strict": False, "keys.disable": ["Nowhere"]})
    assert text == rejected("turnout.config.set  keys.disable: there is no key 'Nowhere'")
    assert config.get("strict") is True
    write(Path("turnout.toml"), "strict = 3")
    error_of(config.reload)
    config.set(default_device="meta")
    assert config.get("strict") is True


def test_overrides_end_with_their_block_also_when_it_raises_and_nest(home):
    def raising():
        with config.override(default_device="one"):
            with config.override({"plugin.alpha.mode": "exact"}):
                assert (config.get("default_device"), config.get("plugin.alpha.mode")) == ("one", "exact")
            assert config.get("plugin.alpha.mode") == "fast"
            raise KeyError

    refused(KeyError, raising)
    assert config.get("default_device") == ""


def test_what_holds_for_the_process_cannot_be_overridden_in_a_context(home):
    override = config.override({"keys.disable": ["Autograd"], "plugins.choose.alpha": "one-alpha", "strict": "no"})
    assert error_of(override.__enter__) == rejected(
        "turnout.config.override  strict: expected true or false, got 'no'",
        "turnout.config.override  keys.disable: it holds for the whole process; use turnout.config.set",
        "turnout.config.override  plugins.choose.alpha: it holds for the whole process; use turnout.config.set",
    )


def test_subscribers_hear_what_changed_and_nothing_else(home):
    heard = []
    stop = config.on_change(lambda names: heard.append(sorted(names)))
    config.set(keys__disable=["Autocast"], strict=False)
    config.set(keys__disable=["Autocast"])
    with config.override(strict=True):
        pass
    config.unset()
    stop()
    config.set(strict=True)
    assert heard == [["keys.disable"], ["keys.disable"]]


def test_disabled_keys_are_meant_by_functionality_by_key_and_by_autocast_of_all_backends(home):
    config.set(keys__disable=["Autograd", "Autocast"])
    assert frozenset(config.get("keys.disable")) == {"Autograd", "Autocast"}
    assert config.key_disabled("AutogradCPU", "Autograd")
    assert config.key_disabled("AutocastCPU", "AutocastCPU")
    assert not config.key_disabled("Tracer", "Tracer")
    config.set(keys__disable=["AutogradCPU"])
    assert config.key_disabled("AutogradCPU", "Autograd")
    assert not config.key_disabled("AutogradMeta", "Autograd")


def test_the_users_file_may_name_plugins_of_other_environments(home, monkeypatch):
    file = write(home / "xdg/turnout/config.toml", "[plugin.omega]\nx = 1\n[plugin.gamma]\nx = 1\n")
    with pytest.warns(PluginWarning) as caught:
        config.reload()
    assert [str(w.message) for w in caught] == [f"{file}:4: plugin.gamma.x: there is no plugin 'gamma'"]
    monkeypatch.setenv("TURNOUT_STRICT", "true")
    assert error_of(config.reload) == rejected(f"{file}:4  plugin.gamma.x: there is no plugin 'gamma'")


def test_describe_lists_every_setting_and_option_with_origin_and_help(home):
    write(Path("turnout.toml"), "[plugin.alpha]\nfraction = 1\n")
    rows = {v.name: (v.value, v.origin.source, bool(v.help)) for v in config.describe()}
    assert rows["plugin.alpha.fraction"] == (1.0, "project", True)
    assert rows["plugin.alpha.mode"] == ("fast", "default", True)
    assert rows["strict"] == (False, "default", True)
    assert all(has_help for _, _, has_help in rows.values())


# ---- places that cannot be searched, and files of others


def test_a_home_that_cannot_be_searched_is_as_if_it_had_no_file(home, monkeypatch):
    # A name that is too long is an error of the system, whoever asks; so is a folder without permission, unless root asks.
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(home / ("x" * 300)))
    assert config.get("strict") is False


def test_folders_that_may_not_be_searched_hide_nothing_and_stop_nothing(home, monkeypatch):
    real = os.stat

    def refusing(path, *args, **named):
        if str(path).startswith((str(home / "xdg"), str(home / "project" / "turnout"), str(home / "project" / "py"))):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **named)

    write(home / "project/turnout.toml", "strict = true\n")
    write(home / "xdg/turnout/config.toml", "strict = true\n")
    write(home / "turnout.toml", 'default_device = "above"\n')
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refusing)
        assert (config.get("strict"), config.get("default_device")) == (False, "above")


@pytest.mark.skipif(os.name == "nt", reason="there a working directory cannot be deleted")
def test_a_working_directory_that_was_deleted_is_as_if_it_had_no_file(home):
    write(home / "xdg/turnout/config.toml", "strict = true\n")
    Path.cwd().rmdir()
    assert config.get("strict") is True
    config.reload()
    assert config.get("strict") is True


@pytest.mark.skipif(os.name == "nt", reason="there permissions are others")
def test_turnout_starts_where_a_user_may_search_neither_home_nor_the_working_directory(tmp_path):
    closed = tmp_path / "closed"
    (closed / "deep").mkdir(parents=True)
    program = "import os; os.chmod(os.environ['CLOSED'], 0); from turnout import config; print(config.get('strict'))"
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=closed / "deep",
        env={**os.environ, "HOME": str(closed / "home"), "CLOSED": str(closed)},
        capture_output=True,
        text=True,
    )
    closed.chmod(0o700)
    assert (found.stdout, found.stderr) == ("False\n", "")


def test_a_file_that_is_there_and_cannot_be_read_is_an_error(home, monkeypatch):
    file = write(home / "project/turnout.toml", "strict = true\n")
    real = open

    def refusing(path, *args, **named):
        if path == str(file):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **named)

    monkeypatch.setattr(builtins, "open", refusing)
    assert error_of(config.reload) == f"{file}: the configuration cannot be read\n  why  Permission denied"
    file.unlink()
    file = write(home / "project/pyproject.toml", "[tool.turnout]\nstrict = true\n")
    config.reload()  # nobody can say whose it is
    assert config.get("strict") is False


DEEP = "x = " + "[" * 5000 + "]" * 5000 + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "tool = 1 # turnout",
        'tool = "turnout"',
        'tool = ["turnout"]',
        '[[tool]]\nname = "turnout"',
        "# turnout\n" + DEEP,
        "# turnout\nx = " + "9" * 5000,
        '[project]\nname = "turnout-user"\n[tool.other]\nturnout = 1',
    ],
    ids=range(7),
)
def test_a_pyproject_without_a_table_of_ours_is_a_foreign_one(home, monkeypatch, text):
    file = write(home / "project/pyproject.toml", text)
    write(home / "turnout.toml", "strict = true\n")
    assert config.get("strict") is True
    if not text.startswith("# "):
        monkeypatch.setenv("TURNOUT_CONFIG", str(file))
        config.reload()
        assert config.get("strict") is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (DEEP, "tables and lists nest more than 32 deep (at line {})"),
        (
            "\nstrict = " + "9" * 5000,
            (
                "Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits; "
                "use sys.set_int_max_str_digits() to increase the limit"
            ),
        ),
    ],
    ids=["deep", "long"],
)
def test_a_file_of_ours_that_python_cannot_read_is_named(home, text, why):
    file = write(home / "project/turnout.toml", text)
    assert error_of(config.reload) == f"{file}: the configuration cannot be read\n  why  {why.format(1)}"
    file.unlink()
    file = write(home / "project/pyproject.toml", "[tool.turnout]\n" + text)
    assert error_of(config.reload) == f"{file}: the configuration cannot be read\n  why  {why.format(2)}"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("tool.turnout = 5", "1  tool.turnout: expected a table, got 5"),
        ("[tool]\n\nturnout = [1]", "3  tool.turnout: expected a table, got [1]"),
        ("[[tool.turnout]]\nstrict = true", "1  tool.turnout: expected a table, got [a table]"),
    ],
)
def test_a_table_of_ours_that_is_none_says_what_was_expected(home, text, row):
    file = write(home / "project/pyproject.toml", text)
    assert error_of(config.reload) == rejected(f"{file}:{row}")


def test_a_named_file_of_a_user_that_does_not_exist_is_an_error(home, monkeypatch):
    monkeypatch.setenv("TURNOUT_CONFIG", "~nobody-of-that-name/x.toml")
    assert error_of(config.reload) == (
        "~nobody-of-that-name/x.toml: the configuration cannot be read\n"
        "  named by  TURNOUT_CONFIG\n"
        "  why       No such file or directory"
    )


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (f"strict = 0x{'f' * 5000}", "1  strict: expected true or false, got an integer of 20000 bits"),
        (f"plugin.alpha.fraction = 0x{'f' * 5000}", "1  plugin.alpha.fraction: expected a number, got an integer of 20000 bits"),
        ("strict = [[[1]], 2]", "1  strict: expected true or false, got [[...], 2]"),
    ],
    ids=range(3),
)  # fmt: skip
def test_values_that_python_cannot_print_or_convert_are_refused_like_others(home, text, row):
    file = write(home / "project/turnout.toml", text)
    assert error_of(config.reload) == rejected(f"{file}:{row}")


def test_values_of_a_call_that_contain_themselves_are_refused():
    endless: dict[str, object] = {}
    endless["keys"] = endless
    refused(ConfigError, config.set, endless)
    row: list[object] = []
    row.append(row)
    assert refused(ConfigError, config.set, strict=row) == rejected(
        "turnout.config.set  strict: expected true or false, got [[...]]"
    )


def test_a_setting_that_one_source_names_by_two_spellings_is_an_error(home, monkeypatch):
    file = write(home / "project/turnout.toml", '"keys.disable" = ["Autograd"]\n[keys]\ndisable = ["Autograd"]\n')
    text = f"keys.disable: {file}:1 sets it too, by another spelling"
    assert error_of(config.reload) == rejected(f"{file}:3  {text}")
    file.unlink()
    monkeypatch.setenv("TURNOUT_STRICT", "1")
    monkeypatch.setenv("TURNOUT_strict", "0")
    text = "strict: environment TURNOUT_STRICT sets it too, by another spelling"
    assert error_of(config.reload) == rejected(f"environment TURNOUT_strict  {text}")
    text = "keys.disable: one call names it twice, by two spellings"
    assert error_of(config.set, {"keys": {"disable": []}, "keys.disable": []}) == text
    assert error_of(config.set, {"keys.disable": []}, keys__disable=[]) == text


# ---- what a project's file may not do

UNTRUSTED = (
    "plugin.alpha.peer: a project's file may not set this option, which names a peer, a path or a program; set it in your own "
    "file, in TURNOUT_PLUGIN__ALPHA__PEER, in the file that TURNOUT_CONFIG names, or by turnout.config.set"
)


@pytest.mark.parametrize("place", ["turnout.toml", "../turnout.toml", "pyproject.toml", "../pyproject.toml"])
@pytest.mark.parametrize(
    ("spelling", "line"),
    [
        ('{}plugin.alpha.peer = "x"', 1),
        ('[{}plugin.alpha]\npeer = "x"', 2),
        ('[{}plugin."alpha"]\n"peer" = "x"', 2),
        ('{}plugin = {{alpha = {{peer = "x"}}}}', 1),
        ('{}"plugin.alpha.peer" = "x"', 1),
    ],
)
def test_a_trusted_option_is_taken_from_the_user_and_not_from_a_project(home, monkeypatch, place, spelling, line):
    text = spelling.format("tool.turnout." if "pyproject" in place else "")
    file = write(Path(place).resolve(), text)
    monkeypatch.setenv("TURNOUT_PLUGIN__ALPHA__PEER", "y")  # a value of a weaker source is checked too
    assert error_of(config.reload) == rejected(f"{file}:{line}  {UNTRUSTED}")
    monkeypatch.setenv("TURNOUT_CONFIG", place)
    config.reload()
    assert config.get("plugin.alpha.peer") == "y"
    monkeypatch.delenv("TURNOUT_PLUGIN__ALPHA__PEER")
    config.reload()
    assert (config.get("plugin.alpha.peer"), config.origin("plugin.alpha.peer").path) == ("x", place)
    monkeypatch.delenv("TURNOUT_CONFIG")
    file.unlink()
    write(home / "xdg/turnout/config.toml", spelling.format(""))
    config.reload()
    assert config.get("plugin.alpha.peer") == "x"
    with config.override({"plugin.alpha.peer": "z"}):
        assert config.get("plugin.alpha.peer") == "z"


@pytest.mark.parametrize("key", ["turnout", '"turnout"', "'turnout'"])
@pytest.mark.parametrize(
    "text",
    [
        "[tool.{}]\nstrict = true",
        "[ tool . {}\t]\nstrict = true",
        "[tool]\n{}.strict = true",
        "[tool]\n{} = {{strict = true}}",
        "tool.{}\t.\tstrict = true",
        "tool = {{{} = {{strict = true}}}}",
        'a = "turnout"\nb = "turnout-core>=0.1"\n[tool]\n{} . strict = true',
    ],
)
def test_a_table_of_ours_is_found_however_its_key_is_written(home, text, key):
    write(home / "project/pyproject.toml", text.format(key))
    config.reload()
    assert config.get("strict") is True


def test_a_project_that_only_requires_turnout_is_not_parsed(home, monkeypatch):
    read: list[str] = []
    monkeypatch.setattr("turnout.config.sources.loads", lambda text: read.append(text) or loads(text))
    text = '[project]\nname = "turnout_x"\ndependencies = ["turnout-core>=0.1", "turnout"] # turnout\n'
    write(home / "project/pyproject.toml", text)
    config.reload()
    assert (config.get("strict"), read) == (False, [])
    write(home / "project/pyproject.toml", text + "[tool]\nturnout.strict = true\n")
    config.reload()
    assert (config.get("strict"), len(read)) == (True, 2)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
@pytest.mark.parametrize("name", ["turnout.toml", "pyproject.toml"])
@pytest.mark.parametrize("bad", [False, True])
def test_a_project_file_of_another_user_is_ignored_with_one_warning(home, monkeypatch, name, bad):
    text = "strict = " if bad else "strict = true\n"
    file = write(home / "project" / name, f"[tool.turnout]\n{text}" if "pyproject" in name else text)
    write(home / "project/deep/pyproject.toml", "[tool.other]\n")
    if os.geteuid() == 0:
        write(home / "turnout.toml", 'default_device = "above"\n')
        os.chown(file, 4712, -1)
    else:  # only root can give files away
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    owner, user = file.stat().st_uid, os.geteuid()
    with pytest.warns(ConfigWarning) as caught:
        config.reload()
    said = (
        f"{file}: these settings are ignored\n  why     user {owner} owns it; this process runs as user {user}, "
        "and takes settings only from files of root and its own\n"
        f"  to fix  chown {user} {file}, or TURNOUT_CONFIG={file}"
    )
    assert [str(each.message) for each in caught] == [said]
    assert (config.get("strict"), config.get("default_device")) == (False, "" if user else "above")
    with monkeypatch.context() as patch:
        patch.delattr(os, "geteuid")  # as where files have no owners
        if bad:
            assert error_of(config.reload).startswith(f"{file}: the configuration cannot be read")
            return
        config.reload()
        assert config.get("strict") is True
    monkeypatch.setenv("TURNOUT_CONFIG", str(file))
    config.reload()
    assert str(config.origin("strict")).startswith(str(file))


def test_without_a_home_a_file_in_the_working_directory_is_not_the_users(home, monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    for folder in (".", "~"):
        write(Path(folder, ".config/turnout/config.toml"), "strict = true\n")
    for place in (".", "~"):
        monkeypatch.setenv("HOME", place)
        config.reload()
        assert config.get("strict") is False


def test_a_default_device_that_no_device_can_have_is_refused_where_it_is_set():
    text = refused(ConfigError, lambda: config.set(default_device="cpu:9999999999"))
    assert text.endswith("default_device: expected a device such as 'cpu' or 'cuda:1', got 'cpu:9999999999'")
