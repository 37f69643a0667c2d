"""Names of code in the sentences of pages: each is public, or something in the sources, or one that another library has."""

from __future__ import annotations

import builtins
import inspect
import keyword
import pkgutil
import re
import sys
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from generated_pages import public_names
from pages import FENCE, ROOT, pages, tracked
from workspace import distributions, required_name

import turnout
from turnout.config.settings import SETTINGS
from turnout.keys import KEYS
from turnout.plugins.records import STATES
from turnout_aten import plugin_api
from turnout_aten.generated.rows import OPERATORS

CODE = re.compile(r"`([A-Za-z_][\w.-]*)(?:\(.*?\))?`")
# A word in quotes, such as a choice, also as the value of an argument; and the argument.
QUOTED = re.compile(r"`(?:(\w+) ?= ?)?\"(\w+)\"`")
# What a line of a source defines: a function, class or import, a variable or field, a parameter or key, a word, a table of TOML.
DEFINED = re.compile(
    r"\b(?:def|class|import|from|define)\s+(\w+)|^\s*(\w+)(?:: [^=\n]+)?\s*[:?]?= |[(,{]\s*\*{0,2}(\w+)\s*[:=]"
    r"|[\"'](\w[\w.]*)[\"']|^\[[\w.]*?(\w+)\]|\bfor (\w+) in\b|^\s+(\w+): \w|^([\w-]+):",
    re.MULTILINE,
)
SOURCES = (".py", ".pyi", ".toml", ".yaml", ".yml", ".template", ".c", ".h", ".cl", ".cu", ".cuh", "Makefile")
ALL = ("core", "plugins", "tools", "examples")
MAINTAINERS = (*ALL, "tests", "benchmarks", "docs/site", ".ci", ".github", "Makefile")
# Pages about names that others have and Turnout does not, or has not any more: tests of their own read two of them.
OF_OTHERS = ("changelog.md", "coming-from-pytorch.md", "peers.md")
# The name before the first dot of names that are not ours.
LIBRARIES = {*sys.stdlib_module_names, "distributed", "jax", "jnp", "np", "torch"} - {"signal"}
# What a page names that nobody has here -> whose it is.
NOT_OURS = {
    "CustomOpDef.register_effect": "PyTorch", "Library.register_symm_mem_args": "PyTorch", "PrivateUse1": "PyTorch",
    "TORCH_LIBRARY": "PyTorch", "_make_wrapper_subclass": "PyTorch", "dynamic_shapes": "PyTorch", "record_stream": "PyTorch",
    "run_decompositions": "PyTorch", "while_loop": "PyTorch", "u0": "a symbol, as PyTorch calls the first",
    "ElementwiseKernel": "CuPy", "RawKernel": "CuPy", "name_expressions": "CuPy", "jax_enable_x64": "JAX",
    "log_path": "the sanitizers", "add.reduceat": "NumPy",
    "FP_CONTRACT": "OpenCL", "python3.11-dbg": "Debian", "pypi": "an environment of GitHub",
    "backend-path": "pyproject.toml", "package-data": "pyproject.toml", "cp311-abi3": "the name of a wheel",
    "turnout.ad": "what one types before the tab key", "AcmeProfiler": "the key of a plugin that pages have as an example",
}  # fmt: skip
# Files that a build makes, which a clone does not have.
MADE = re.compile(r"(dist|build|\.venv|docs/_build|.*\bgenerated)(/|$)|.*/(known_packages\.py|expressions\.h)$")


@cache
def public() -> set[str]:
    """The names of public modules, of what is in them and in their classes, of parameters, operators, keys and settings."""
    found = {*dir(turnout), *dir(builtins), *keyword.kwlist, *OPERATORS, *SETTINGS, *KEYS.universe.runtime_keys}
    found |= {"true", "false", *STATES, *distributions_named()}
    for name in plugin_api.__all__:
        found |= {name, *dir(getattr(plugin_api, name))}
    for path in (*public_names.rooms(), *public_names.provided()):
        found |= {path.rpartition(".")[2], *dir(public_names.resolve(f"turnout.{path}"))}
        for name, each in public_names.of_module(path).items():
            found |= {name, *(dir(each) if inspect.isclass(each) else ())}
            try:
                found |= {*inspect.signature(each).parameters}
            except ValueError:  # one that C defines
                continue
    return found


@cache
def distributions_named() -> set[str]:
    """Those of this repository, and those that it pins."""
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    return {"turnout", *(one.name for one in distributions()), *map(required_name, pins)}


@cache
def options() -> set[str]:
    """Every option of a manifest, as a setting."""
    found = [tomllib.loads(path.read_text("utf-8")) for path in ROOT.glob("*/*/src/*/plugin.toml")]
    return {f"plugin.{each['name']}.{name}" for each in found for name in each.get("option", ())}


def words(text: str) -> set[str]:
    """What a text defines."""
    return {name for groups in DEFINED.findall(text) for name in groups if name}


@cache
def of_files(folder: str) -> set[str]:
    """What the sources below a folder define, without this one; with the names of all files and folders."""
    found: set[str] = set()
    for file in tracked((folder,)):
        found |= {name for part in Path(file).parts for name in (part, part.partition(".")[0])}
        if file.endswith(SOURCES) and not __file__.endswith(file):
            found |= words((ROOT / file).read_text("utf-8"))
    return found


def around(page: Path) -> tuple[str, ...]:
    """The folders that a page is about."""
    folder = page.relative_to(ROOT).parent
    if page.name == "README.md" and len(folder.parts) == 2:
        return (folder.as_posix(),)
    return MAINTAINERS if page.name in ("CONTRIBUTING.md", "release.md") or folder.name == "notes" else ALL


def is_in(there: set[str], part: str) -> bool:
    """Whether a part of a name is there, or what it is made of: `add__Tensor`, `AutogradCPU`. One letter may be anything."""
    return len(part) == 1 or not there.isdisjoint((part, part.partition("__")[0], re.sub("^Auto(grad|cast)(?=[A-Z])", "", part)))


def is_defined(name: str) -> bool:
    """Whether a dotted name of a package leads to a module, or to something in one."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def unknown(text: str, folders: tuple[str, ...]) -> list[str]:
    """The names in the sentences of a text that nothing has."""
    sentences, programs = FENCE.sub("", text), "".join(body for _, body in FENCE.findall(text))
    there = public().union(words(programs), *map(of_files, folders))
    quoted = {word for words in QUOTED.findall(sentences) for word in words if word}
    wrong = []
    for name in sorted({*CODE.findall(sentences), *quoted}):
        first, _, rest = name.partition(".")
        if first == "plugin" and rest not in ("", "py", "toml"):
            known = name in options()
        elif first.startswith("turnout_") and rest and find_spec(first):
            known = is_defined(name)
        else:
            known = name in there or bool(rest and first in LIBRARIES) or all(is_in(there, part) for part in name.split("."))
        if not known and name not in NOT_OURS:
            wrong.append(name)
    return wrong


READ = [page for page in pages() if page.name not in OF_OTHERS]
of_each_page = pytest.mark.parametrize("page", READ, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())


@of_each_page
def test_every_name_of_code_in_a_sentence_is_there(page):
    assert unknown(page.read_text("utf-8"), around(page)) == []


def test_a_name_that_nobody_has_is_noticed():
    folders = ("core", "plugins/autocast")
    text = "`turnout.add`, `AutogradCPU`, `plugin.cpu.threads`, `os.path`, `x.sum()`, `add__Tensor`, `clear_autocast_cache()`, "
    assert unknown(f'{text} `"IMPL"`, `kind="FRAGMENT"`', folders) == []
    wrong = (
        "`turnout.addd`, `AutogradGPU`, `plugin.cpu.thread`, `oss.path`, `x.some()`, `addd__Tensor`, `clear_autocast_caches()`, "
    )
    wrong += '`"IMPLS"`, `kinds_="FRAGMENTS"`'
    assert unknown(text + wrong, folders) == sorted(re.findall(r"[`\"](\w[\w.]*)", wrong))


def test_each_name_of_others_is_on_a_page_and_not_here(monkeypatch):
    names = {*NOT_OURS}
    monkeypatch.setattr(sys.modules[__name__], "NOT_OURS", {})
    assert {name for page in READ for name in unknown(page.read_text("utf-8"), around(page))} == names


@cache
def files() -> list[str]:
    """All files of a clone, below a slash that stands for the folder that a page begins at."""
    return [f"/{file}" for file in tracked((*MAINTAINERS, "docs", "pyproject.toml", "setup.cfg"))]


def missing(path: str) -> bool:
    """Whether no file and no folder has this path, from the root or from a folder on. A part may be a pattern."""
    end = "/" + re.sub("<.*?>", "*", path).rstrip("/")
    return not MADE.match(path) and not any(fnmatchcase(file, f"*{end}") or fnmatchcase(file, f"*{end}/*") for file in files())


@of_each_page
def test_every_path_in_a_sentence_is_there(page):
    paths = re.findall(r"`(\.?\w[\w.-]*(?:/[\w.*<>-]*)*/(?!\d+`)[\w.*<>-]*)`", FENCE.sub("", page.read_text("utf-8")))
    assert sorted(path for path in set(paths) if missing(path)) == []


def test_what_a_page_says_to_be_in_a_file_is_defined_there():
    text = "".join(FENCE.sub("", page.read_text("utf-8")) for page in READ)
    found = re.findall(r"`(\w+)`\s+in\s+`([\w./-]+\.\w+)`", text)
    assert ("LIMITS", "tests/selection.py") in found
    assert [(name, file) for name, file in found if name not in words((ROOT / file).read_text("utf-8"))] == []
