"""Plugin packages that are written into a folder, as pip would install them, without pip: fast enough to make a dozen."""

from __future__ import annotations

from pathlib import Path


def write_package(folder: Path, name: str, manifest: str, code: str) -> None:
    """The distribution `NAME-x` (hyphens for underscores) with the plugin `name`; `code` is its module."""
    distribution = name.replace("_", "-")
    package = folder / f"{name}_x"
    package.mkdir()
    head = f'name = "{name}"\ndistribution = "{distribution}-x"\napi = "1.0"\nmodule = "{name}_x"\n'
    (package / "plugin.toml").write_text(head + manifest)
    (package / "__init__.py").write_text(code)
    info = folder / f"{name}_x-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}-x\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[turnout.plugins]\n{name} = {name}_x:plugin.toml\n")
