"""What differs from PyTorch: the marks `# differs from torch: ...` in the sources, by the part of Turnout that they are in.

A mark is a comment, or a part of a docstring, and goes on to the end of the comment or of the paragraph. It is written for users:
one or more sentences that name what they are about.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "# differs from torch: "
ANY_MARK = re.compile(r"differs from torch\b", re.IGNORECASE)

# fmt: off
# A part of Turnout -> the folders and files whose marks are about it; the first that fits counts.
PARTS = {
    "Operators": (
        "plugins/aten/src/turnout_aten/composites", "plugins/aten/src/turnout_aten/shapes", "plugins/arrays",
        "plugins/aten/src/turnout_aten/functions", "plugins/aten/src/turnout_aten/declarations/native_functions.yaml",
        "plugins/aten/src/turnout_aten/nn", "plugins/aten/src/turnout_aten/generation", "plugins/cpu", "plugins/cuda",
        "plugins/opencl", "plugins/meta", "plugins/masked", "plugins/signal",
    ),
    "Tensors": ("plugins/aten/src/turnout_aten/tensor", "plugins/aten/src/turnout_aten/views"),
    "Gradients and transforms": ("plugins/autograd", "plugins/batched", "plugins/functionalize"),
    "Modules and optimisers": ("plugins/nn",),
    "Mixed precision": ("plugins/autocast",),
    "Custom operators": ("core/src/turnout/library",),
    "Schemas and the dispatcher": ("core", "plugins/aten/src/turnout_aten", "plugins/tracer", "tools"),
}
# fmt: on


@dataclass(frozen=True)
class Difference:
    """A mark: the file below the root, the line it begins in, and its text as one line."""

    file: str
    line: int
    text: str

    @property
    def sentence(self) -> str:
        """The text as it stands on the page."""
        return self.text[0].upper() + self.text[1:]

    @property
    def part(self) -> str:
        """The part of Turnout that it is about."""
        return next(part for part, places in PARTS.items() if self.file.startswith(places))


def fragment(root: Path) -> str:
    """A section for each part, with a list of its differences."""
    found = list(differences(root))
    lines: list[str] = []
    for part in PARTS:
        texts = sorted({each.sentence for each in found if each.part == part}, key=lambda text: text.strip("`").lower())
        if texts:
            lines += [f"### {part}", "", *(f"- {text}" for text in texts), ""]
    return "\n".join(lines)


def differences(root: Path) -> Iterator[Difference]:
    """Every mark in the sources of the distributions."""
    for tree in ("core/src", "plugins", "tools"):
        for path in sorted((root / tree).rglob("*")):
            if path.suffix in (".py", ".yaml", ".toml") and not {"build", "generated"} & set(path.parts):
                yield from in_file(path.read_text(encoding="utf-8"), str(path.relative_to(root)))


def in_file(text: str, file: str) -> Iterator[Difference]:
    """The marks of one file. Raises ValueError for one that is not written like the others."""
    if not ANY_MARK.search(text):
        return
    lines = text.splitlines()
    comments = _comments(text) if file.endswith(".py") else {i for i, line in enumerate(lines, 1) if line.strip().startswith("#")}
    for number, line in enumerate(lines, 1):
        before, mark, rest = line.partition(MARK)
        if mark:
            parts = [rest, *([] if rest.endswith('"""') else _continued(lines, number, before, comments))]
            yield Difference(file, number, " ".join(part.strip().removesuffix('"""').rstrip() for part in parts))
        elif ANY_MARK.search(line):
            raise ValueError(f"{file}:{number}: a mark is written '{MARK}<sentences>'")


def _comments(text: str) -> set[int]:
    """The lines that hold nothing but a comment. A mark in a docstring is no comment to Python."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.start[0] for token in tokens if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")}


def _continued(lines: list[str], number: int, before: str, comments: set[int]) -> Iterator[str]:
    """The lines of a mark after its first: of the same comment, or of the same paragraph of a docstring."""
    is_comment = number in comments
    margin = len(before) - len(before.lstrip())
    for i, line in enumerate(lines[number:], number + 1):
        text = line.strip()
        if is_comment:
            if i not in comments or text.startswith(MARK):
                return
            yield text.removeprefix("#").strip()
        else:
            if not text or text.startswith('"""') or len(line) - len(line.lstrip()) < margin:
                return
            yield text
            if text.endswith('"""'):
                return
