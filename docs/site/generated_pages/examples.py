"""The pages of the examples: their READMEs, with links that lead to pages of the site."""

from __future__ import annotations

import re
from pathlib import Path


def files(root: Path) -> dict[str, str]:
    """`examples/NAME.md` -> the README of that example."""
    made = {}
    for path in sorted(root.glob("examples/*/README.md")):
        text = re.sub(r"\]\(\.\./(\w+)/README\.md", r"](\1.md", path.read_text(encoding="utf-8"))
        made[f"examples/{path.parent.name}.md"] = text.replace("](../../docs/", "](../../")
    return made
