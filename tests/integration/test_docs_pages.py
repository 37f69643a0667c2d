"""The pages of the documentation site: each is followed as it is written (`pages` says how), and names only what exists."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
from generated_pages import public_names
from pages import FENCE, ROOT, Reader, blocks, pages, shell_commands, tracked
from workspace import manifests

from outcomes import refused
from turnout.keys import KEYS
from turnout_aten.declarations.reading import load
from turnout_aten.generated import rows
from turnout_aten.generation.files import STANDARD
from turnout_conformance.cases import CASES

DOCS = ROOT / "docs"
PAGES = sorted(path for path in pages() if path.parent == DOCS)
# A page -> the test that follows it and looks at what it has made.
OWN_TESTS = {
    "add-an-operator.md": "test_docs_add_an_operator.py",
    "compile.md": "test_docs_write_a_plugin.py",
    "custom-operators.md": "test_docs_custom_operators.py",
    "write-a-backend.md": "test_docs_write_a_plugin.py",
    "write-a-functionality.md": "test_docs_write_a_plugin.py",
}
NAME = re.compile(r"`(turnout(?:\.\w+)+)(?:\(.*?\))?`")
# A file, a name that a type checker refuses, those of plugins that are shown, and any name.
NO_NAMES = {
    "turnout.toml", "turnout.ad", "turnout.memory_used", "turnout.profiler", "turnout.profiler.current", "turnout.quantized",
    "turnout.ledger", "turnout.ops.myops.swish", "turnout.name",
}  # fmt: skip
# What reads badly, and an example of each. A line of a table is a paragraph of its own.
BADLY = {
    r"(?<!there )\b(?:is|are|was) no (?!longer\b|more\b)": "a tensor is no function",
    r"\bwhat\b[^.:;|]*\bwhat\b": "compares what it does with what it says",
    r"\bwhich of\b": "it says which of them is on",
    r"\bwithout a change of\b": "without a change of the program",
    r"\b(?:key sets|they) are united\b": "the key sets are united",
    r"\b(?:done|made|said|written|switched on) so[.:,]": "it is switched on so: enable",
    r"\b(?:numbers|ints) beside tensors\b": "numbers beside tensors",
}
# Names in sentences that say what was, or what a reader could misspell.
HISTORICAL = ("changelog.md",)


@pytest.mark.skipif(os.name == "nt", reason="the commands of the pages are for a POSIX shell")
@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in OWN_TESTS], ids=lambda page: page.stem)
def test_every_file_command_and_program_of_a_page_works_and_prints_what_it_says(page, tmp_path):
    if not any(block.kind in ("python", "sh", "toml") for block in blocks(page)):
        return
    commands = installations(page)
    examples = {command: re.findall(r"\./(examples/\w+)", command) for command in commands}
    folders = installed_by(page)
    reader = Reader(
        tmp_path, tuple(f for found in examples.values() for f in found), {folder.name.replace("-", "_") for folder in folders}
    )
    reader.follow(page, {command: " ".join(f"pip install ./{f};" for f in found) for command, found in examples.items()})


def installations(page: Path) -> list[str]:
    """The commands that install folders of this repository, which are installed already but for the examples."""
    commands = [command for block in blocks(page) if block.kind == "sh" for command in shell_commands(block)]
    folder = r"\./(core|plugins/[\w-]+|tools/\w+|examples/\w+)"
    return [command for command in commands if re.fullmatch(rf'pip install( {folder}| "{folder}\[[\w,]+\]")+', command)]


def installed_by(page: Path) -> dict[Path, list[str]]:
    """The folders that a page installs, each with its extras, after those of the page Start; it has nothing else of Turnout."""
    commands = installations(page)
    if page.name not in ("start.md", "install.md"):
        commands += installations(DOCS / "start.md")[:2]
    found = [pair for command in commands for pair in re.findall(r"\./([\w/-]+)(?:\[([\w,]+)\])?", command)]
    return {
        ROOT / folder: [each for other, extras in found if other == folder for each in extras.split(",") if each]
        for folder, _ in found
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_installs_what_its_packages_require_because_no_index_has_it(page):
    folders = installed_by(page)
    names = {f"turnout-{folder.name}" for folder in folders}
    for folder, extras in folders.items():
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        requirements = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
        assert {re.split(r"[^\w-]", text)[0] for text in requirements if text.startswith("turnout-")} <= names, folder


def test_a_page_with_a_test_of_its_own_is_named_there():
    for page, test in OWN_TESTS.items():
        assert page in (Path(__file__).parent / test).read_text(encoding="utf-8")


def test_no_program_stands_where_it_is_not_run():
    """A fence inside a list, or of a language that nothing runs, would only be shown."""
    for page in pages():
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        assert not re.search(r"^\s*```+\{?(python|sh|toml|pycon)", text, re.MULTILINE), page


@pytest.mark.parametrize("page", [page for page in pages() if page.name not in HISTORICAL], ids=lambda page: page.stem)
def test_every_public_name_in_a_sentence_exists(page):
    wrong = []
    for name in set(NAME.findall(FENCE.sub("", page.read_text(encoding="utf-8")))) - NO_NAMES:
        try:
            public_names.resolve(name)
        except AttributeError:
            wrong.append(name)
    assert wrong == []


def read_badly(text: str) -> list[str]:
    """The places of a page's sentences that one of the patterns finds, without its code, links and quoted examples."""
    text = re.sub(
        r"`[^`]*`|(\[[\w./-]+\.md)?\]\([^)]*\)",
        "",
        re.sub(r"## Words\n.*?(?=^## )", "", FENCE.sub("", text), flags=re.DOTALL | re.MULTILINE),
    )
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=[-|#]|\d+\.)", text)]
    return [found[0] for part in paragraphs for pattern in BADLY for found in [re.search(pattern, part, re.IGNORECASE)] if found]


def test_no_page_has_a_sentence_of_a_kind_that_has_to_be_read_twice():
    for pattern, example in BADLY.items():
        assert re.search(pattern, read_badly(example)[0], re.IGNORECASE)
    found = {
        page.name: read_badly(page.read_text(encoding="utf-8")) for page in (*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    }
    assert {name: places for name, places in found.items() if places} == {}


def test_what_the_page_for_users_of_pytorch_calls_missing_is_missing():
    text = (DOCS / "coming-from-pytorch.md").read_text(encoding="utf-8").partition("## What is not there")[2]
    missing, _, renamed = text.partition("## Names that differ")
    names = re.findall(r"^\| `(?:torch\.)?([\w.]+)` \|", missing + renamed.partition("\n## ")[0], re.MULTILINE)
    assert len(names) > 20
    for name in names:
        refused(AttributeError, public_names.resolve, f"turnout.{name}")


def test_the_page_about_other_plugin_systems_is_behind_in_three_rows_at_most():
    rows = [row for row in (DOCS / "peers.md").read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    assert sum("**behind**: " in row for row in rows) <= 3


def test_the_table_of_devices_has_every_device_of_the_workspace():
    rows = re.findall(r"^\| `(\w+)` \| `(plugins/\w+)` \|", (DOCS / "install.md").read_text(encoding="utf-8"), re.MULTILINE)
    found = set()
    for path in manifests():
        provides = tomllib.loads(path.read_text(encoding="utf-8")).get("provides", {})
        found |= {(each["device"], f"plugins/{path.parents[2].name}") for each in provides.get("backend", ())}
    assert set(rows) == found
    assert len(rows) == len(found) > 5


def test_the_keys_that_the_page_about_dispatch_has_of_each_kind_are_of_that_kind():
    backends, keys = KEYS.universe.backends, set(KEYS.universe.runtime_keys)
    of_each = {key for key in keys for backend in backends if key.endswith(backend) and key != backend}
    kinds = {
        "backend": backends,
        "functionality of each backend": of_each,
        "functionality of all backends": keys - of_each - {*backends},
        "alias, for registration only": KEYS.universe.aliases,
    }
    rows = (DOCS / "how-dispatch-works.md").read_text(encoding="utf-8").partition("| kind | examples |")[2].partition("\n\n")[0]
    said = {kind: keys.split(", ") for kind, keys in re.findall(r"^\| (.*?) \| (.*?) \|", rows, re.MULTILINE)}
    assert {kind: [key for key in keys if key not in kinds[kind]] for kind, keys in said.items()} == {kind: [] for kind in kinds}


def test_the_table_of_packages_has_every_folder_of_the_workspace():
    folders = {f"{path.parts[-3]}/{path.parts[-2]}" for path in ROOT.glob("*/*/pyproject.toml")}
    assert len(folders) > 30
    _, packages, _ = re.split(r"^## (?:Packages|Devices)$", (DOCS / "install.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    firsts = re.findall(r"^\| (`.*?) \|", packages, re.MULTILINE)
    assert sorted(re.findall(r"`(.*?)`", " ".join(firsts))) == sorted({"core", *folders})


def test_pages_say_the_same_number_of_operators_and_as_many_are_there():
    pattern = re.compile(r"\b(more than|about|some|over) ([\d,]+) (?:cases of )?operators\b")
    texts = {page.relative_to(ROOT).as_posix(): " ".join(page.read_text(encoding="utf-8").split()) for page in pages()}
    found = {page: numbers for page, text in texts.items() if (numbers := pattern.findall(text))}
    number = len({case.op for case in CASES}) // 100 * 100
    assert set(map(tuple, found.values())) == {(("more than", str(number)),)}
    assert {"README.md", "docs/peers.md", "plugins/aten/README.md", "tools/conformance/README.md"} <= found.keys()
    names, overloads = (round(len(each), -2) for each in (rows.OPERATORS, load(STANDARD)))
    (note,) = DOCS.glob("notes/0005-*.md")
    assert f"some {names:,} names with {overloads:,} overloads" in note.read_text(encoding="utf-8")


def test_a_note_is_one_page():
    notes = sorted((DOCS / "notes").glob("*.md"))
    assert len(notes) > 30
    assert {note.name: lines for note in notes if (lines := note.read_text(encoding="utf-8").count("\n")) > 75} == {}
    assert {note.name: size for note in notes if (size := note.stat().st_size) > 6000} == {}


def test_what_sources_and_pages_cite_is_in_the_repository():
    cited: set[str] = set()
    for file in tracked(("core", "plugins", "tools", "examples", "docs", "README.md", "CONTRIBUTING.md")):
        if file.endswith((".py", ".md", ".toml", ".yaml", ".c", ".h", ".template")) and file != "docs/changelog.md":
            text = (ROOT / file).read_text(encoding="utf-8")
            cited |= set(re.findall(r"(?<![\w./])docs/[\w/-]+\.md", text))
            cited |= {f"docs/{name}.md" for name in re.findall(r"\b([A-Z]{4,})(?:\.md)?,? [Ss]ection \d", text)}
    assert [path for path in sorted(cited) if not (ROOT / path).exists()] == []
