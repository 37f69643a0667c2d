"""What the documentation site makes from the program itself, at each build: nothing here is written down twice.

| module | makes |
|---|---|
| `reference` | the API reference, from the docstrings (`docstrings` turns them into reStructuredText) and `public_names` |
| `command_line` | the commands and their options, from the parser of the command `turnout` |
| `differences` | what differs from PyTorch, from the marks in the sources |
| `examples` | the pages of the examples, from their READMEs |
| `plugin_directory` | the plugins, from their manifests and what their authors reported of the conformance kit |
| `benchmarks` | charts of the last run of the benchmarks |
| `call_drawing` | the drawing of a call, from what `turnout.explain` says about it |

`write` writes all of it into docs/generated. None of it needs Sphinx, so the tests read it without one.
"""

from __future__ import annotations

from pathlib import Path

from generated_pages import benchmarks, call_drawing, command_line, differences, examples, plugin_directory, reference

ROOT = Path(__file__).resolve().parents[3]


def files() -> dict[str, str]:
    """The path below docs/generated -> the text, for every file."""
    return {
        "benchmarks.md": benchmarks.fragment(ROOT),
        "call.md": call_drawing.fragment(),
        "commands.md": command_line.fragment(),
        "differences.md": differences.fragment(ROOT),
        "plugins.md": plugin_directory.fragment(ROOT),
        **examples.files(ROOT),
        **reference.files(),
    }


def write(folder: Path) -> None:
    """Write every file that is not as it should be, and remove every other one."""
    made = {folder / name: text for name, text in files().items()}
    for old in folder.rglob("*.*"):
        if old not in made:
            old.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
