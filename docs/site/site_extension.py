"""What the site asks of Sphinx: pages are made before it reads any, and links that leave docs/ are turned to pages of the site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# A file outside of docs/ -> the page that shows it. The first one shows all its sections too.
PAGES = {
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
    "../README.md#add-a-backend-from-outside": "write-a-backend.md",
    "../tools/conformance/README.md": "conformance.md",
}


def turn_links(app: Sphinx, document: str, source: list[str]) -> None:
    """Turn links to files outside of docs/ to the pages that show them."""
    folder = "../" * document.count("/")
    for file, page in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(folder + file)}(?=[)#])", f"]({folder}{page}", source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", turn_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
