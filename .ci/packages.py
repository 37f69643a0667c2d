"""Builds every distribution from the tracked files: an sdist in a clean copy of the tree, then wheels from the sdist.

    python .ci/packages.py FOLDER                                  what is compiled, with this machine's compiler for this Python
    python .ci/packages.py FOLDER --native none                    nothing that is compiled
    python .ci/packages.py FOLDER --native zig --python P ...      wheels for Linux and each Python, with PyPI's ziglang
    python .ci/packages.py FOLDER --check                          that the wheels in FOLDER have what was to be compiled

Needs setuptools, PyYAML and NumPy, and pip for zig, which runs in the interpreter that --zig names.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Package -> how many extension modules its wheels have: each has one function that Python calls when it loads the module.
NATIVE = Counter(
    path.relative_to(ROOT).parts[3]
    for path in ROOT.glob("plugins/*/src/**/*.c")
    if "PyMODINIT_FUNC" in path.read_text(encoding="utf-8")
)
# Built for the oldest C library that wheels for Linux are still made for, which the images of cibuildwheel.toml have.
GLIBC = (2, 17)
MACHINES = ("x86_64", "aarch64")
URLS = """project_urls =
    Source = {0}
    Documentation = {0}/tree/main/docs
    Changelog = {0}/blob/main/CHANGELOG.md
    Issues = {0}/issues
"""
# What pip does with folders, each in a process of its own, with one import of setuptools.
BUILD = """
import os, sys
import setuptools.build_meta as backend
kind, out, *folders = sys.argv[1:]
for folder in folders:
    if not (child := os.fork()):
        os.chdir(folder)
        os._exit(not getattr(backend, f"build_{kind}")(out))
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{folder}: this {kind} failed")
"""


def copy(tree: Path, repository: str) -> list[Path]:
    """Copy what git tracks, links as what they lead to, and return the folders to build, in order.

    The root stands apart: beside the others it would require their folders. The build of aten makes what that of core lists.
    """
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "core", "plugins", "tools"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    pairs = [(ROOT / file, tree / file) for file in files if (ROOT / file).is_file()]
    pairs += [(ROOT / file, tree / "root" / file) for file in ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "setup.py")]
    for source, target in pairs:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        if target.name == "setup.cfg" and repository:
            target.write_text(target.read_text(encoding="utf-8") + URLS.format(repository), encoding="utf-8")
    return [tree / "plugins" / "aten", *(path.parent for path in sorted(tree.rglob("setup.cfg")) if path.parent.name != "aten")]


def build(kind: str, out: Path, folders: list[Path]) -> None:
    """Build the sdists or the wheels of folders; what that prints is shown if it fails."""
    command = [sys.executable, "-W", "ignore", "-c", BUILD, kind, str(out), *map(str, folders)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)


def cross(out: Path, sdist: Path, python: str, machine: str, zig: str, work: Path) -> None:
    """Build a wheel for a Linux processor with zig: it has the C libraries of all, so the machine that builds does not matter."""
    compiler = work / f"cc-{machine}"
    target = f"{machine}-linux-gnu.{'.'.join(map(str, GLIBC))}"
    compiler.write_text(f'#!/bin/sh\nexec {shlex.quote(zig)} -m ziglang cc -target {target} "$@"\n', encoding="utf-8")
    compiler.chmod(0o755)
    asked = "import sys, sysconfig; print(sys.version_info[1], sysconfig.get_config_var('MULTIARCH'))"
    minor, multiarch = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    # Debian's headers include one from a folder of the processor in /usr/include, where zig does not look.
    own, headers = Path("/usr/include", multiarch, f"python3.{minor}"), work / f"headers-{minor}"
    if own.is_dir() and not (link := headers / f"{machine}-linux-gnu" / own.name).exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(own)
    variables = {
        "CC": str(compiler), "LDSHARED": f"{compiler} -shared", "CFLAGS": f"-g0 -isystem {headers}",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-3{minor}-{machine}-linux-gnu.so",
    }  # fmt: skip
    name = f"--config-settings=--build-option=--plat-name=manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
    command = [python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", str(out), name, str(sdist)]
    subprocess.run(command, check=True, env=os.environ | variables)


def check(folder: Path) -> list[str]:
    """What is wrong with the wheels of a folder: an extension module is optional, so a build without one ends well."""
    found = []
    for path in sorted(folder.glob("*.whl")):
        name = path.name.split("-")[0]
        with zipfile.ZipFile(path) as archive:
            modules = [file for file in archive.namelist() if re.search(r"\.(so|pyd)$", file)]
        if len(modules) != NATIVE[name]:
            found.append(f"{path.name} has {len(modules)} extension modules, not {NATIVE[name]}")
    return found


def main() -> int:
    """Build what the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repository", default="", help="its address, from which those in the metadata are made")
    parser.add_argument("--native", choices=("here", "none", "zig"), default="here")
    parser.add_argument("--python", action="append", help="an interpreter to build for with zig; the oldest first")
    parser.add_argument("--machine", action="append", help="a processor to build for with zig")
    parser.add_argument("--zig", default=sys.executable, help="an interpreter that has ziglang")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    out = options.folder.resolve()
    if options.check:
        problems = check(out)
        print("\n".join(problems) or "all wheels have their extension modules")
        return bool(problems)
    out.mkdir(parents=True, exist_ok=True)
    if "SOURCE_DATE_EPOCH" not in os.environ:  # the same tree gives the same files
        commit = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
        os.environ["SOURCE_DATE_EPOCH"] = commit.stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        build("sdist", out, copy(Path(folder, "tree"), options.repository))
        native = [path for name in NATIVE for path in out.glob(f"{name}-*.tar.gz")]
        for sdist in sorted(out.glob("*.tar.gz")):
            if options.native == "here" or sdist not in native:
                shutil.unpack_archive(sdist, Path(folder, "sdists"))
        build("wheel", out, sorted(Path(folder, "sdists").iterdir()))
        if options.native == "zig":
            for sdist in native:
                # The stable ABI: what the oldest Python builds serves all.
                pythons = options.python or [sys.executable]
                for python in pythons[:1] if "kernels" in sdist.name else pythons:
                    for machine in options.machine or MACHINES:
                        cross(out, sdist, python, machine, options.zig, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
