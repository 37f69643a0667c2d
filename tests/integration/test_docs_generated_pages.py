"""What the documentation site makes from the program: complete, and prose where it is prose."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from ast import literal_eval
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from generated_pages import (
    benchmarks,
    call_drawing,
    command_line,
    differences,
    docstrings,
    plugin_directory,
    public_names,
    reference,
    write,
)
from pages import ROOT
from workspace import manifests

import turnout
from outcomes import refused
from turnout_aten.declarations.documentation import read
from turnout_cli.main import turnout as command

DIFFERENCES = list(differences.differences(ROOT))


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return reference.files()


# ---- the plugins


def test_every_plugin_of_the_workspace_is_on_the_page_with_its_summary():
    lines = plugin_directory.fragment(ROOT).splitlines()
    found = [tomllib.loads(path.read_text(encoding="utf-8")) for path in manifests()]
    shown = [line for line in lines if line.startswith("| `")]
    assert len(shown) == len(found) > 10
    for each in found:
        assert [line for line in shown if line.startswith(f"| `{each['distribution']}` | {each['summary']} |")]


PROVED = {"name": "acme", "key": "Acme", "distribution": "turnout-acme", "version": "2.0", "operators": 1207,
          "tests": {"passed": 7400, "skipped": 17}}  # fmt: skip


def directory_with(folder: Path, badge: dict[str, Any]) -> str:
    """The page of one plugin whose author reported this."""
    package = folder / "plugins/acme/src/turnout_acme"
    package.mkdir(parents=True)
    rows = 'distribution = "turnout-acme"\nkind = "backend"\nsummary = "Acme | chips"\n[[provides.backend]]\ndevice = "acme"\n'
    (package / "plugin.toml").write_text(rows, encoding="utf-8")
    (folder / "plugins/acme/conformance.json").write_text(json.dumps(badge), encoding="utf-8")
    return plugin_directory.fragment(folder)


def test_what_an_author_reported_is_shown_with_versions_counts_and_date(tmp_path):
    badge = {"format": 1, "date": "2026-05-01", "turnout-core": "0.1.0", "turnout-conformance": "0.1.0", "proved": [PROVED]}
    shown = directory_with(tmp_path, badge).splitlines()
    assert shown[0] == "## Devices"
    assert shown[-1] == (
        r"| `turnout-acme` | Acme \| chips | device `acme` "
        "| `acme` 2.0, 1,207 operators, 7,400 passed, 17 skipped, turnout-core 0.1.0, 2026-05-01 |"
    )


@pytest.mark.parametrize(
    ("badge", "text"),
    [
        ({"format": 2}, "expected a badge of format 1, got 2"),
        ({"format": 1, "proved": []}, "the badge proves nothing of turnout-acme"),
        ({"format": 1, "proved": [{**PROVED, "distribution": "turnout-other"}]}, "the badge proves nothing of turnout-acme"),
    ],
)
def test_a_badge_that_cannot_be_read_or_is_of_another_plugin_ends_the_build(tmp_path, badge, text):
    where = tmp_path / "plugins/acme/conformance.json"
    assert refused(ValueError, directory_with, tmp_path, badge) == f"{where}: {text}"


# ---- the last run of the benchmarks

RATIO = {"row": "add", "what": "x + y <4>", "against": "NumPy", "unit": "ratio", "value": 0.5, "turnout": 1e-6, "other": 2e-6}
START = {"what": "import turnout", "against": "bare Python", "unit": "ms", "value": 9.6}
RUN = {
    "title": "Calls",
    "date": "2026-05-01",
    "command": "make bench",
    "machine": {"python": "3.11.7", "machine": "x86_64, 2 cores"},
    "rows": [RATIO, START, {"what": "matmul", "skipped": "no"}],
}


def charts_of(folder: Path, *runs: dict[str, Any]) -> str:
    (folder / "benchmarks/last").mkdir(parents=True)
    (folder / "benchmarks/page.py").write_text((ROOT / "benchmarks/page.py").read_text(encoding="utf-8"), encoding="utf-8")
    for i, run in enumerate(runs):
        (folder / f"benchmarks/last/{i}.json").write_text(json.dumps(run), encoding="utf-8")
    return benchmarks.fragment(folder)


def test_a_run_is_shown_as_a_chart_with_its_date_command_and_machine(tmp_path):
    text = charts_of(tmp_path, RUN, {**RUN, "title": "Kernels", "rows": RUN["rows"][1:]})
    assert re.findall("^### (.*)$", text, re.MULTILINE) == ["Calls", "Kernels"]
    assert text.count("Measured on 2026-05-01 with `make bench`: python 3.11.7, machine x86_64, 2 cores.\n") == 2
    [drawn] = re.findall(r'<div class="bench">\n(<svg.*?</svg>)\n</div>', text, re.DOTALL)
    drawing = ElementTree.fromstring(drawn)
    assert [(rect.get("class"), rect[0].text) for rect in drawing.iter("rect")] == [
        ("fast", "x + y <4>: Turnout 1.00 us, NumPy 2.00 us")
    ]
    assert "1 rows, geometric mean 0.50." in text
    assert text.count("- import turnout: 10 ms more than bare Python\n") == 2
    assert text.count("Not measured, because the other side was not installed: matmul.") == 2


def test_the_colours_of_charts_are_those_of_the_style_sheet():
    style = (ROOT / "docs/site/static/site.css").read_text(encoding="utf-8")
    used = set(re.findall(r'class="(\w+)"', benchmarks.fragment(ROOT))) - {"bench"}
    assert used == {name for name in used if f".bench .{name} " in style} != set()


def test_the_runs_that_are_shown_are_whole_and_say_which_command_repeats_them():
    for path in ROOT.glob("benchmarks/last/*.json"):
        run = json.loads(path.read_text(encoding="utf-8"))
        assert run["quick"] is False, path.name
        assert run["command"].startswith("make bench"), path.name


# ---- what differs from PyTorch


@pytest.mark.parametrize("mark", DIFFERENCES, ids=lambda mark: f"{mark.file}:{mark.line}")
def test_a_mark_of_a_difference_is_prose_that_names_what_it_is_about(mark):
    assert re.search(r"`[^`]+`", mark.text), "it names nothing"
    assert mark.text.endswith("."), "its last sentence has no end"
    assert len(mark.text.split()) >= 6
    assert mark.text.count("`") % 2 == 0
    assert "#" not in mark.text


def test_every_mark_of_the_sources_is_on_the_page():
    text = differences.fragment(ROOT)
    lines = [
        line
        for tree in ("core", "plugins", "tools")
        for path in (ROOT / tree).glob("**/src/**/*")
        if path.suffix in (".py", ".yaml") and "generated" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search("differs from torch", line, re.IGNORECASE)
    ]
    assert len(lines) == len(DIFFERENCES) > 30
    assert text.count("\n- ") == len({mark.text for mark in DIFFERENCES})
    assert all(f"- {mark.sentence}\n" in text for mark in DIFFERENCES)


@pytest.mark.parametrize(
    "name",
    [
        "cholesky_solve", "cholesky_inverse", "as_strided_scatter", "ctc_loss", "scatter_reduce", "interpolate", "resolve_conj",
        "mH",
    ],
)  # fmt: skip
def test_what_is_right_here_and_not_in_pytorch_and_what_is_no_view_is_on_the_page(name):
    assert f"`{name}`" in differences.fragment(ROOT)


def test_a_mark_goes_on_to_the_end_of_its_comment_or_of_its_paragraph():
    text = '''"""One.

# differs from torch: `a` is
b.

Two.
"""

def f():
    # differs from torch: `c` is
    # d.
    return 1  # not this

class C:
    """# differs from torch: `e` is f."""
'''
    found = list(differences.in_file(text, "plugins/cpu/x.py"))
    assert [(mark.line, mark.text) for mark in found] == [(3, "`a` is b."), (10, "`c` is d."), (15, "`e` is f.")]


def test_a_mark_in_another_spelling_is_an_error():
    with pytest.raises(ValueError, match=r"x\.py:1: a mark is written '# differs from torch: <sentences>'"):
        list(differences.in_file("# Differs from torch, as it must.\n", "core/x.py"))


# ---- the reference


def test_every_public_function_and_class_is_in_the_reference_once(made):
    text = "\n".join(made.values())
    for name in dir(turnout):
        found = getattr(turnout, name)
        if callable(found) and not inspect.ismodule(found) and not name.startswith("_") and name not in reference.NOT_PUBLIC:
            heads = re.findall(
                rf"^\.\. py:\w+:: {name}(?=\(|$)(?:[^\n]*)\n(?: {{5,}}[^\n]*\n)*    :module: turnout$", text, re.MULTILINE
            )
            assert len(heads) == 1, name


def test_every_public_module_has_a_page_or_needs_none():
    known = [*reference.MODULES, *reference.FOR_PLUGINS, *reference.REPEATED]
    assert sorted(known) == sorted({*public_names.rooms(), *public_names.provided()})
    assert set(public_names.rooms()) > reference.FOR_PLUGINS
    for path in reference.REPEATED:
        around = path.rpartition(".")[0]
        assert public_names.of_module(path).keys() <= (public_names.of_module(around).keys() if around else set()), path


def test_every_row_about_a_page_is_about_something_that_there_is():
    documentation = read()
    public = {name: getattr(turnout, name) for name in dir(turnout) if documentation.find(name) is None}
    homes = {
        reference.module_of(name, found) for name, found in public.items() if inspect.isroutine(found) or inspect.isclass(found)
    }
    assert reference.PLACES.keys() - homes == set()
    assert reference.MAPS - reference.MODULES.keys() == set()
    assert reference.NOT_PUBLIC - set(dir(turnout)) == set()


def test_members_of_a_plugin_that_cannot_be_used_here_are_on_the_page(made):
    names = re.findall(r"^\.\. py:\w+:: (\w+)", made["reference/cuda.rst"], re.MULTILINE)
    assert {"is_available", "Stream", "memory_stats", "CUDAGraph"} <= set(names)


def test_every_function_of_a_public_module_is_on_its_page(made):
    for path, name in (
        ("nn.functional", "softmax"),
        ("linalg", "svd"),
        ("func", "vmap"),
        ("library", "custom_op"),
        ("state", "exclude"),
    ):
        assert re.search(rf"^\.\. py:function:: {name}\b", made[f"reference/{path}.rst"], re.MULTILINE)
    assert made["reference/nn.functional.rst"].count(".. py:function::") >= len(turnout.nn.functional.__all__)


def test_a_page_begins_with_a_table_of_its_names_and_says_which_file_a_written_one_is_in(made):
    sources = 0
    for path, text in made.items():
        if path in ("reference.md", "reference/tensor.rst"):
            continue
        table = re.findall(r"^    \* - :py:obj:`(\w+) <", text, re.MULTILINE)
        heads = re.findall(r"^\.\. py:(?:function|class|exception):: (\w+)", text, re.MULTILINE)
        assert table == heads, path
        assert table or path == "reference/signal.rst", path  # which is about a module inside it
        assert len(re.findall(r"^      - \S", text, re.MULTILINE)) == len(table), path
        files = re.findall(r"\*Source:\* ``(.+?)``", text)
        assert [file for file in files if not (ROOT / file).is_file()] == []
        sources += len(files)
    assert sources > 300
    assert "``plugins/nn/src/turnout_nn/modules/linear.py``" in made["reference/nn.rst"]


def test_every_page_of_the_reference_is_listed(made):
    listed = set(re.findall(r"^generated/(reference/\S+)$", made["reference.md"], re.MULTILINE))
    assert {f"{name}.rst" for name in listed} == made.keys() - {"reference.md"}


def test_a_link_to_a_file_that_the_site_includes_leads_to_a_page_that_includes_it():
    extension = (ROOT / "docs/site/site_extension.py").read_text("utf-8")
    table = re.findall(r"^PAGES = (\{.*?^\})", extension, re.MULTILINE | re.DOTALL)[0]
    texts = {page.name: page.read_text(encoding="utf-8") for page in ROOT.glob("docs/*.md")}
    including = {(file, name) for name, text in texts.items() for file in re.findall(r"\{include\} (\.\./.*)", text)}
    assert set(literal_eval(table).items()) <= including
    assert {file for file, _ in including} == literal_eval(table).keys()


def test_every_method_of_tensor_is_in_the_reference(made):
    page = made["reference/tensor.rst"]
    names = re.findall(r"^\.\. py:(?:method|property):: Tensor\.(\w+)", page, re.MULTILINE)
    assert len(set(names)) > 450
    public = {name for name in dir(turnout.Tensor) if not name.startswith("_") and callable(getattr(turnout.Tensor, name))}
    assert public <= set(names)


def test_a_docstring_becomes_paragraphs_fields_definitions_and_examples():
    text = docstrings.described(
        """What `f` does with x_ and *args.

        first, second  one thing,
                       and another
        third          more

        Arguments:
            x (Tensor or number): the first,
                in `float32`
            y: the second

        Raises:
            ShapeError: the shapes differ.

        Example:
            >>> f(1)
            2

            >>> f(2)
            3
        """
    )
    assert text.summary == r"What ``f`` does with x\_ and \*args."
    assert text.text == "\n".join(
        [
            r"What ``f`` does with x\_ and \*args.",
            "",
            "``first, second``",
            "    one thing, and another",
            "",
            "``third``",
            "    more",
            "",
            ":param x: the first, in ``float32``",
            ":type x: Tensor or number",
            ":param y: the second",
            "",
            ":raises ~turnout.errors.ShapeError: the shapes differ.",
            "",
            ".. code-block:: pycon",
            "",
            "    >>> f(1)",
            "    2",
            "",
            "    >>> f(2)",
            "    3",
        ]
    )


def test_a_section_that_is_not_understood_is_an_error():
    with pytest.raises(
        ValueError, match=r"Arguments: expected 'name: what it is' or 'name .type.: what it is', got 'x - the first'"
    ):
        docstrings.described("What it does.\n\nArguments:\n    x - the first\n")


def test_types_in_words_become_types_of_python():
    head = "pad(input, padding: int or list of 2 int = (0, 0)) -> (Tensor, Tensor)"
    assert docstrings.in_python(head) == "pad(input, padding: int | list[int] = (0, 0)) -> tuple[Tensor, Tensor]"


# ---- commands


def test_every_command_has_a_section_with_all_its_options():
    sections = dict(part.split("\n", 1) for part in command_line.fragment().split("## ")[1:])
    context = click.Context(command)
    assert list(sections) == ["turnout", *(f"turnout {name}" for name in command.list_commands(context))]
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        options = {option for each in found.params if isinstance(each, click.Option) for option in each.opts}
        assert options
        assert [option for option in options if option not in sections[f"turnout {name}"]] == []


# ---- the drawing


def test_the_drawing_shows_the_kernels_that_explain_names_and_cuts_no_text():
    weight = turnout.ones(3, requires_grad=True)
    explanation = turnout.explain("sin", weight)
    root = ElementTree.fromstring(call_drawing.svg(explanation))
    texts = [(each.text or "", int(each.get("x", "0"))) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    shown = [text for text, _ in texts]
    boxes = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if each.get("class") == "kernel"]
    assert [step.kernel for step in explanation.path] == ["autograd of aten::sin", "sin"]
    assert all(step.kernel in shown for step in explanation.path)
    assert len(boxes) == 2
    assert [key for key in explanation.hops[0].keys if key not in shown] == []
    assert [text for text, x in texts if x + 7.9 * len(text) * (1 if "::" in text else 0.8) > call_drawing.WIDTH] == []


def test_writing_the_pages_again_changes_nothing_and_removes_what_is_no_page(tmp_path):
    write(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    assert len(times) > 40
    stray = tmp_path / "reference" / "old.rst"
    stray.write_text("old")
    write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == times
