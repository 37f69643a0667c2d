"""Odd worlds in which plugins may find themselves: what is said of each, and that a plugin beside them works."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from installed_folder import LIBRARY, LIBRARY_ACTIVATION, Site

from turnout import plugins


def odd(**words: Any) -> Callable[[Site], object]:
    """A plugin "odd" with these words of `Site.plugin`."""
    return lambda site: site.plugin("odd", **words)


def rewritten(change: Callable[[bytes], bytes], file: str = "fake_odd/plugin.toml") -> Callable[[Site], object]:
    """The plugin "odd" with a file that was changed after it was installed."""

    def build(site: Site) -> None:
        site.plugin("odd")
        path = site.folder / file
        path.write_bytes(change(path.read_bytes()))

    return build


def options(count: int) -> Callable[[Site], object]:
    return odd(tables="".join(f'[option.x{i}]\ntype = "int"\ndefault = 1\nhelp = "x"\n' for i in range(count)))


ENTRIES = "dist_odd-0.1.dist-info/entry_points.txt"
FAILED = "failed: the manifest of dist-odd 0.1 is not accepted\n  file  {site}/fake_odd/plugin.toml\n  "
TELL = "\n  | upgrade dist-odd, or tell its authors"
NESTED = "why  tables and lists nest more than 32 deep"

# World -> how it is built, and what is said of the plugins that are not simply discovered.
# fmt: off
WORLDS: dict[str, tuple[Callable[[Site], object], str]] = {
    "manifest, large": (
        rewritten(lambda text: text + b"#" * (256 << 10)), "odd (dist-odd): " + FAILED + "why  it is larger than 256 KB" + TELL),
    "manifest, brackets": (
        odd(top="x = " + "[" * 100_000), "odd (dist-odd): " + FAILED + NESTED + " (at line 6)" + TELL),
    "manifest, a long dotted key": (
        odd(top=".".join("a" * 100_000) + " = 1"), "odd (dist-odd): " + FAILED + NESTED + " (at line 6)" + TELL),
    "manifest, a long quoted key": (
        odd(top=".".join(['"\u2028"'] * 40_000) + " = 1"), "odd (dist-odd): " + FAILED + NESTED + " (at line 6)" + TELL),
    "manifest, tables in keys": (odd(
        top="[a." + "b." * 20 + "c]\nx.y.z = " + "{a.b.c = " * 4 + "1" + "}" * 4), "odd (dist-odd): " + FAILED + NESTED + TELL),
    "manifest, 32 brackets": (odd(top="summary = " + "[" * 32 + "]" * 32), "odd (dist-odd): " + FAILED +
        "line 6  summary: expected a string, got [[...]]" + TELL),
    "manifest, brackets in texts": (odd(top='summary = """' + "[" * 99 + "." * 99 + '"""'), ""),
    "manifest, not UTF-8": (rewritten(lambda text: b"\xff" + text), "odd (dist-odd): " + FAILED +
        "why  'utf-8' codec can't decode byte 0xff in position 0: invalid start byte" + TELL),
    "manifest, 500 options": (options(500), ""),
    "manifest, too many options": (options(3000), "odd (dist-odd): " + FAILED +
        "line 1  option: 3,000 options; a manifest has at most 500" + TELL),
    "entry points, not UTF-8": (rewritten(lambda text: text + b"# \xe9\n", ENTRIES), "dist-odd (dist-odd): failed: "
        "the manifest of dist-odd 0.1 is not accepted\n  file  {site}/" + ENTRIES + "\n"
        "  why  'utf-8' codec can't decode byte 0xe9 in position 47: invalid continuation byte" + TELL),
}
# fmt: on


def said(site: Site) -> str:
    """The plugins whose state is another than discovered, with all that is said of them."""
    lines = []
    for record in plugins.all_plugins():
        if record.state != "discovered":
            text = f"{record.name} ({record.distribution}): {record.state}: {record.reason}\n  | {record.remedy}"
            lines.append(re.sub(r"(?<=\S)  +", "  ", text.replace(str(site.folder), "{site}")))
    return "\n".join(lines)


@pytest.mark.parametrize("world", WORLDS)
def test_each_world_is_told_and_a_plugin_beside_it_works(site, world):
    build, expected = WORLDS[world]
    site.plugin("near")
    site.plugin("words", manifest=LIBRARY, activation=LIBRARY_ACTIVATION)
    build(site)
    assert said(site) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert plugins.activate("near").state == "active"
        assert plugins.require_namespace("words")
