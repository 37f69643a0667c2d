"""Puts a fault into its file, builds anew what is made of that file, and takes both back.

Whatever is about to change is copied into a folder of the environment first. While that folder is there, a fault is in the tree:
also after a crash, and `undo` takes the tree and the built files back to what they were, times of files included.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(sys.prefix) / "fault-in-the-tree"
FAULTS = tomllib.loads((Path(__file__).parent / "faults.toml").read_text(encoding="utf-8"))["fault"]
BY_ID = {fault["id"]: fault for fault in FAULTS if "dropped" not in fault}


class Refused(Exception):
    """A command that changes nothing, with the reason."""


class NotBuilt(Refused):
    """The build fails with the fault: no test is needed to find it."""


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    subprocess.run([sys.executable, *command], cwd=cwd, check=True, capture_output=True, text=True)


def extensions(plugin: Path) -> None:
    """Build a plugin's C code in place. A compiler's error makes no module: the setup calls each of them optional."""
    modules = sorted(plugin.glob("src/*/*.so"))
    for module in modules:
        module.unlink()
    with tempfile.TemporaryDirectory() as folder:
        run("setup.py", "-q", "build_ext", "--inplace", "--build-temp", folder, "--build-lib", folder, cwd=plugin)
    if missing := [module.name for module in modules if not module.exists()]:
        raise NotBuilt(f"{', '.join(missing)} does not build")


def generated(_plugin: Path) -> None:
    """What `make codegen` does."""
    run("-m", "turnout_aten.generation")
    run("-m", "turnout_autograd.generation")
    run("-c", 'import runpy; runpy.run_path("tools/stubs/setup.py")["write_stubs"]()')


def manifests(_plugin: Path) -> None:
    """The list of known packages, as the build of core makes it; the name keeps `setup` from being called."""
    source = (ROOT / "core" / "setup.py").read_text(encoding="utf-8").partition("\nsetup(")[0]
    exec(compile(source, str(ROOT / "core" / "setup.py"), "exec"), made := {"__file__": str(ROOT / "core" / "setup.py")})
    made["write"]()


# Parts of a path -> what is built anew, and where the files lie that this makes
BUILDS = {
    (".c", ".h"): (extensions, "plugins/*/src/*/*.so"),
    ("/declarations/", "/generation/", "/shapes/"): (generated, "plugins/*/src/*/generated/**/*"),
    ("plugin.toml",): (manifests, "core/src/turnout/plugins/known_packages.json"),
}
STUBS = ("plugins/aten/src/turnout_aten/public_functions.txt", "tools/stubs/src/turnout-stubs/**/*.pyi")


def build_of(path: str) -> tuple:
    """What builds anew what is made of a file, and the files that it makes."""
    for parts, (build, made) in BUILDS.items():
        if any(path.endswith(part) or (part[0] == part[-1] == "/" and part in path) for part in parts):
            patterns = (made, *STUBS) if build is generated else (made,)
            return build, [p for pattern in patterns for p in ROOT.glob(pattern) if p.is_file() and "__pycache__" not in p.parts]
    return None, []


def changed_text(fault: dict) -> str:
    """The text of its file with the fault. Raises Refused unless the lines stand where the list says, or in one other place."""
    before, after = fault["before"].split("\n"), fault["after"].split("\n") if fault["after"] else []
    lines = (ROOT / fault["path"]).read_bytes().decode().split("\n")
    found = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
    at = fault["line"] - 1 if fault["line"] - 1 in found or len(found) != 1 else found[0]
    if at not in found:
        raise Refused(f"{fault['id']} no longer applies: its lines stand {len(found)} times in {fault['path']}")
    return "\n".join([*lines[:at], *after, *lines[at + len(before) :]])


def apply(fault: dict) -> None:
    """Put the fault into the tree."""
    if KEPT.exists():
        raise Refused("a fault is in the tree: undo it first")
    path, text = ROOT / fault["path"], changed_text(fault)
    build, made = build_of(fault["path"])
    copies = KEPT.with_name(KEPT.name + ".new")
    shutil.rmtree(copies, ignore_errors=True)
    names = {str(i): str(each.relative_to(ROOT)) for i, each in enumerate([path, *made])}
    copies.mkdir()
    for number, name in names.items():
        shutil.copy2(ROOT / name, copies / number)
    (copies / "files.json").write_text(json.dumps([fault["id"], names]), encoding="utf-8")
    copies.rename(KEPT)
    try:
        path.write_bytes(text.encode())
        if build is not None:
            build(ROOT.joinpath(*Path(fault["path"]).parts[:2]))
    except BaseException as error:
        undo()
        if isinstance(error, subprocess.CalledProcessError):
            raise NotBuilt(f"does not build: {(error.stderr or error.stdout).strip().splitlines()[-1]}") from None
        raise


def undo() -> str | None:
    """Take the tree back, and return which fault was in it. A file that the fault's build made, and nothing made before, goes."""
    if not KEPT.exists():
        return None
    fault, names = json.loads((KEPT / "files.json").read_text(encoding="utf-8"))
    for made in build_of(names["0"])[1]:
        if str(made.relative_to(ROOT)) not in names.values():
            made.unlink()
    for number, name in names.items():
        shutil.copy2(KEPT / number, ROOT / name)
    shutil.rmtree(KEPT.rename(KEPT.with_name(KEPT.name + ".done")))
    return fault
