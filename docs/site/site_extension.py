"""What the site asks of Sphinx beyond its settings.

- The pages that are made from the program are written before any page is read.
- Links to files outside of docs/ lead to the pages that show them.
- A public name in code, such as `turnout.add`, is a link to its place in the reference.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import generated_pages
from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# A file outside of docs/ -> the page that shows it.
PAGES = {
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
    "../README.md#add-a-backend-from-outside": "write-a-backend.md",
    "../tools/conformance/README.md": "conformance.md",
}
NAME = re.compile(r"(turnout(?:\.\w+)+)(\(.*\))?")


def write_pages(app: Sphinx) -> None:
    """Write the pages that are made from the program."""
    generated_pages.write(Path(app.srcdir) / "generated")


def turn_links(app: Sphinx, document: str, source: list[str]) -> None:
    """Turn links to files outside of docs/ to the pages that show them."""
    folder = "../" * document.count("/")
    for file, page in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(folder + file)}(?=[)#])", f"]({folder}{page}", source[0])


def link_names(app: Sphinx, document: nodes.document, name: str) -> None:
    """Make links of the public names that stand in code inside of sentences."""
    objects = app.env.domains["py"].data["objects"]
    for literal in document.findall(nodes.literal):
        match = NAME.fullmatch(literal.astext())
        if match is None or match[1] not in objects or _is_inside_link(literal):
            continue
        found = objects[match[1]]
        target = app.builder.get_relative_uri(name, found.docname) + "#" + found.node_id
        literal.replace_self(nodes.reference("", "", literal.deepcopy(), internal=True, refuri=target))


def _is_inside_link(node: nodes.Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, (nodes.reference, nodes.title, addnodes.desc_signature)):
            return True
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", turn_links)
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
