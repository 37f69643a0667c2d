"""The build of `turnout`. In a clone it requires the clone's folders: `pip install ".[cpu]"` needs no index with the packages.

In an sdist, which has no folders, it requires what `pyproject.toml` says.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.egg_info import egg_info

HERE = Path(__file__).resolve().parent
FOLDERS = {
    f"turnout-{path.parent.name}": path.parent
    for pattern in ("core", "plugins/*", "tools/*")
    for path in HERE.glob(f"{pattern}/pyproject.toml")
}


def from_folders(requirements: list[str]) -> list[str]:
    """Requirements as folders of the clone, and those of these folders in turn."""
    found: dict[str, str] = {}
    work = list(requirements)
    while work:
        name, extras = re.findall(r"^([\w-]+)(?:\[(.*?)\])?", work.pop())[0]
        if name not in FOLDERS or (name + extras) in found:
            continue
        project = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        found[name + extras] = f"{name}{f'[{extras}]' if extras else ''} @ {FOLDERS[name].as_uri()}"
        work += project["dependencies"]
        work += [each for extra in extras.split(",") if extra for each in project["optional-dependencies"][extra]]
    return list(found.values())


class EggInfo(egg_info):
    """Changes the requirements before they are written, also those that the metadata holds."""

    def finalize_options(self) -> None:
        if FOLDERS:
            whole = self.distribution
            for holder in (whole, whole.metadata):
                holder.install_requires = from_folders(list(holder.install_requires))
                holder.extras_require = {name: from_folders(list(each)) for name, each in holder.extras_require.items()}
        super().finalize_options()


if __name__ == "__main__":
    setup(cmdclass={"egg_info": EggInfo})
