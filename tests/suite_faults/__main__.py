"""Faults in the product: which of them do these tests find? From the root of a checkout, with its own interpreter.

python tests/suite_faults list                       the faults, and which no longer apply
python tests/suite_faults apply ID                   put one into the tree, and build anew what is made of its file
python tests/suite_faults undo                       take the tree back, also after a crash
python tests/suite_faults run ID... -- ARGUMENTS     `pytest -x` for each fault; ID may be "all", "drawn", "hand"
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = tomllib.loads((Path(__file__).parent / "faults.toml").read_text(encoding="utf-8"))["fault"]
BY_ID = {fault["id"]: fault for fault in FAULTS if "dropped" not in fault}
LIMIT = float(os.environ.get("SUITE_FAULTS_LIMIT", "1800"))  # seconds: a fault may keep the tests from ending
# Copies of what is about to change. While this folder is there, a fault is in the tree, whatever became of the command.
KEPT = Path(sys.prefix) / "fault-in-the-tree"


class Refused(Exception):
    """A command that leaves the tree as it was, with the reason."""


def python(*command: str, cwd: Path = ROOT) -> None:
    made = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=False)
    if made.returncode:
        raise Refused(f"does not build: {made.stderr.strip().rpartition(chr(10))[2]}")


def extensions(plugin: Path) -> None:
    """Build a plugin's C code in place. Its setup calls each module optional: one that does not compile is left out."""
    modules = sorted(plugin.glob("src/*/*.so"))
    for module in modules:
        module.unlink()
    with tempfile.TemporaryDirectory() as folder:
        build = ("-q", "build_ext", "--inplace", "--build-temp", folder, "--build-lib", folder)
        python("setup.py", *build, cwd=plugin)
    if missing := [module.name for module in modules if not module.exists()]:
        raise Refused(f"does not build: {', '.join(missing)}")


def generated(plugin: Path) -> None:
    """What `make codegen` does."""
    python("-m", "turnout_aten.generation")
    python("-m", "turnout_autograd.generation")
    python("-c", 'import runpy; runpy.run_path("tools/stubs/setup.py")["write_stubs"]()')


def manifests(plugin: Path) -> None:
    """The build of core lists what the manifests say."""
    python("-c", 'import runpy; runpy.run_path("core/setup.py")["write"]()')


CODE = ("plugins/*/src/*/generated/**/*.py*", "plugins/aten/src/*/public_functions.txt", "tools/stubs/src/**/*.pyi")
# What a path contains -> what is built anew, and the files that this makes
BUILDS = {
    "/native/": (extensions, ["plugins/*/src/*/*.so"]),
    "/declarations/": (generated, CODE),
    "/generation/": (generated, CODE),
    "/shapes/": (generated, CODE),
    "/plugin.toml": (manifests, ["core/src/turnout/plugins/known_packages.py"]),
}


def built(path: str) -> tuple:
    """What builds anew what is made of a file, and the paths of the file and of all that is made."""
    build, patterns = next((row for part, row in BUILDS.items() if part in path), (None, ()))
    return build, [
        path,
        *(str(p.relative_to(ROOT)) for each in patterns for p in ROOT.glob(each) if "__pycache__" not in p.parts),
    ]


def with_fault(fault: dict) -> str:
    """The text of its file with the fault, whose lines may have moved if they stand in one place only."""
    before, after = fault["before"].split("\n"), fault["after"].split("\n")
    lines = (ROOT / fault["path"]).read_bytes().decode().split("\n")
    found = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
    at = found[0] if len(found) == 1 else fault["line"] - 1
    if at not in found:
        raise Refused(f"{fault['id']} no longer applies: its lines stand {len(found)} times in {fault['path']}")
    return "\n".join([*lines[:at], *after, *lines[at + len(before) :]])


def apply(fault: dict) -> None:
    """Put the fault into the tree. Raises Refused where it does not apply or does not build."""
    if KEPT.exists():
        raise Refused("a fault is in the tree: undo it first")
    text = with_fault(fault)
    build, names = built(fault["path"])
    copies = KEPT.with_name("fault-not-yet-in-the-tree")
    shutil.rmtree(copies, ignore_errors=True)
    copies.mkdir()
    for number, name in enumerate(names):
        shutil.copy2(ROOT / name, copies / str(number))
    (copies / "names").write_text(json.dumps(names), encoding="utf-8")
    copies.rename(KEPT)
    try:
        (ROOT / fault["path"]).write_bytes(text.encode())
        if build is not None:
            build(ROOT.joinpath(*Path(fault["path"]).parts[:2]))
    except BaseException:
        undo()
        raise


def undo() -> bool:
    """Take the tree back to what it was, times of files included. Whether there was something to undo."""
    if not KEPT.exists():
        return False
    names = json.loads((KEPT / "names").read_text(encoding="utf-8"))
    for made in {*built(names[0])[1]} - {*names}:
        (ROOT / made).unlink()
    for number, name in enumerate(names):
        shutil.copy2(KEPT / str(number), ROOT / name)
    shutil.rmtree(KEPT.rename(KEPT.with_name("fault-undone")))
    return True


def judge(arguments: list[str]) -> str:
    """Run the tests; what found the fault, or "" if nothing did."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE", *arguments]
    tests = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = tests.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"no end after {LIMIT:.0f} s"
    finally:
        if tests.poll() is None:
            os.killpg(tests.pid, signal.SIGKILL)
            tests.communicate()  # which closes the pipe, too
    if tests.returncode == 5 or re.search("^(.*pytest.*: error:|ERROR: (file or directory )?not found)", output, re.MULTILINE):
        raise SystemExit(f"the tests do not run:\n{output[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return "" if tests.returncode == 0 else failed[1] if failed else f"exit status {tests.returncode}: {output.strip()[-100:]!r}"


def run(faults: list[dict], arguments: list[str]) -> int:
    """One line for each fault; the tree is as it was after each of them."""
    found = 0
    for fault in faults:
        with_fault(fault)
    for fault in faults:
        start = time.monotonic()
        try:
            apply(fault)
            by = judge(arguments)
        except Refused as error:
            by = str(error)
        finally:
            undo()
        found += bool(by)
        print(f"{fault['id']:8}  {'found ' if by else 'MISSED'} {time.monotonic() - start:6.0f} s  {by}", flush=True)
    print(f"{found} of {len(faults)} faults found")
    return int(found < len(faults))


def listed() -> None:
    for name, fault in BY_ID.items():
        try:
            with_fault(fault)
            print(f"{name:8}  {fault['path']}:{fault['line']}  {fault['what']}")
        except Refused as error:
            print(error)


def main(command: str = "", *given: str) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that what was begun is undone
    try:
        match command:
            case "list":
                listed()
            case "apply":
                apply(BY_ID[given[0]])
            case "undo":
                print("undone" if undo() else "no fault is in the tree")
            case "run" if "--" in given:
                undo()  # what a crash left
                at = given.index("--")
                wanted = {*given[:at]}
                return run([f for n, f in BY_ID.items() if wanted & {n, n.partition("-")[0], "all"}], [*given[at + 1 :]])
            case _:
                sys.exit(__doc__)
    except Refused as error:
        sys.exit(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
