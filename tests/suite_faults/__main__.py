"""Faults in the product: which of them do these tests find? From the root of a checkout, with its own interpreter.

python tests/suite_faults list                       the faults, and which no longer apply
python tests/suite_faults apply ID                   put one into the tree, and build anew what is made of its file
python tests/suite_faults undo                       take the tree back, also after a crash
python tests/suite_faults run ID... -- ARGUMENTS     `pytest -x` for each fault; ID may be "all", "drawn", "hand"
python tests/suite_faults draw COUNT [SEED]          draw faults anew, as text for the list
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from suite_faults import drawn, places
from suite_faults.places import BY_ID, ROOT, NotBuilt, Refused

LIMIT = float(os.environ.get("SUITE_FAULTS_LIMIT", "1800"))  # seconds: a fault may keep the tests from ending
ENDS = {-signal.SIGSEGV: "a crash", 1: "", 2: "", 3: "an error of pytest", 4: "an error at the start"}


def judge(arguments: list[str]) -> tuple[str, str]:
    """Run the tests: "found" and by what, or "MISSED"."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-rfE", *arguments]
    tests = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = tests.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "found", f"no end after {LIMIT:.0f} s"
    finally:
        if tests.poll() is None:
            os.killpg(tests.pid, signal.SIGKILL)
            tests.wait()
    if tests.returncode == 0:
        return "MISSED", output.strip().rpartition("\n")[2]
    if tests.returncode == 5 or "pytest: error:" in output or "ERROR: file or directory not found" in output:
        raise Refused(f"the tests do not run:\n{output[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return "found", failed[1] if failed else ENDS.get(tests.returncode) or f"exit status {tests.returncode}"


def run(faults: list[dict], arguments: list[str]) -> int:
    """One line for each fault; the tree is as it was after each of them."""
    missed = 0
    for fault in faults:
        start = time.monotonic()
        try:
            try:
                places.apply(fault)
            except NotBuilt as error:
                verdict = "found", str(error)
            except Refused as error:
                verdict = "ABSENT", str(error)
            else:
                verdict = judge(arguments)
        finally:
            places.undo()
        missed += verdict[0] != "found"
        print(f"{fault['id']:10} {verdict[0]:6} {time.monotonic() - start:6.0f} s  {verdict[1]}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} faults found")
    return 1 if missed else 0


def listed() -> int:
    gone = 0
    for fault in BY_ID.values():
        try:
            places.changed_text(fault)
            note = ""
        except Refused as error:
            note, gone = f"  {error}", gone + 1
        print(f"{fault['id']:10} {fault['path']}:{fault['line']}  {fault.get('breaks', fault.get('kind'))}{note}")
    return 1 if gone else 0


def draw(count: int, seed: int = 30) -> int:
    for number, fault in enumerate(itertools.islice(drawn.draws(ROOT, seed), count), 1):
        texts = "".join(f"{side} = '''\n{fault[side]}'''\n" for side in ("before", "after"))
        print(f'[[fault]]\nid = "drawn-{number:02}"\npath = "{fault["path"]}"\nline = {fault["line"]}')
        print(f'kind = "{fault["kind"]}"\n{texts}')
    return 0


def main(command: str = "", *given: str) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    try:
        match command:
            case "list":
                return listed()
            case "draw":
                return draw(*map(int, given))
            case "apply":
                places.apply(BY_ID[given[0]])
                return 0
            case "undo":
                print(places.undo() or "no fault is in the tree")
                return 0
            case "run" if "--" in given:
                if left := places.undo():
                    print(f"{left} was still in the tree: undone")
                wanted, arguments = given[: given.index("--")], list(given[given.index("--") + 1 :])
                faults = [f for f in BY_ID.values() if {f["id"], f["id"].split("-")[0], "all"} & {*wanted}]
                return run(faults, arguments)
    except Refused as error:
        sys.exit(str(error))
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
