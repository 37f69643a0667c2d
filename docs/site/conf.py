"""The settings of Sphinx for the documentation site. Its pages are docs/*.md and what `generated_pages` makes at each build."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Turnout"
author = "the Turnout authors"
extensions = ["myst_parser", "site_extension"]
# What is included in pages is not a page itself.
exclude_patterns = ["_build", "site", "generated/*.md"]
nitpicky = True
# Types of arguments are words of the docstrings, and builtins: no page has them.
nitpick_ignore_regex = [("py:class", r"(?!turnout\.).*"), ("py:exc", r"(?!turnout\.).*")]
toc_object_entries_show_parents = "hide"
add_module_names = False
highlight_language = "text"
pygments_style = "default"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "Turnout"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
