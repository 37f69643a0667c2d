"""Runs the steps that standard input names, a line each. Nothing can run without the first; any other that fails leaves the
others to run, so that one report has all failures. `.ci/run` has the steps."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Step:
    """A step: its name, its command, and what became of it."""

    name: str
    command: str
    status: int | None = None
    seconds: float = 0.0
    memory: int = 0  # of its largest process, in KiB
    lines: list[str] = field(default_factory=list)

    def run(self, shown: bool) -> None:
        """Run the command; print what it prints now, or else keep it."""
        start = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", self.command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        RUNNING.add(process.pid)
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(line)
            if shown:
                print(line, end="", flush=True)
        _, status, usage = os.wait4(process.pid, 0)
        RUNNING.discard(process.pid)
        self.status = os.waitstatus_to_exitcode(status)
        self.seconds, self.memory = time.monotonic() - start, usage.ru_maxrss

    @property
    def tests(self) -> int:
        """How many tests passed."""
        return sum(int(n) for line in self.lines for n in re.findall(r"^(?:=+ )?(?:\d+ failed, )?(\d+) passed", line))


RUNNING: set[int] = set()
SKIPS = re.compile(r"(skipped: |left out: |SKIPPED )")


def groups(text: str) -> list[list[Step]]:
    """The steps that run beside each other."""
    found: list[list[Step]] = []
    for line in text.splitlines():
        beside = line.startswith("+")
        name, command = line.removeprefix("+").split(maxsplit=1)
        found[-1].append(Step(name, command)) if beside else found.append([Step(name, command)])
    return found


def run(group: list[Step]) -> bool:
    """Run steps beside each other; the output of the first is printed as it comes, that of the others afterwards."""
    first, *others = group
    threads = [threading.Thread(target=step.run, args=(False,)) for step in others]
    for thread in threads:
        thread.start()
    print(f"\n==> {first.command}", flush=True)
    first.run(True)
    for step, thread in zip(others, threads, strict=True):
        thread.join()
        print(f"\n==> {step.command}\n{''.join(step.lines)}", end="", flush=True)
    return all(step.status == 0 for step in group)


def report(steps: list[Step]) -> None:
    """What was skipped, and the table."""
    print("\n==> skipped and left out")
    told = [f"{step.name}: {line}" for step in steps for line in step.lines if SKIPS.match(line)]
    told += [f"{step.name}: not run\n" for step in steps if step.status is None]
    print("".join(told) or "nothing\n", end="")
    print(f"\n==> {'step':<8}{'seconds':>8}{'tests':>8}{'GiB':>6}")
    for step in steps:
        if step.status is not None:
            end = "" if step.status == 0 else f"  failed ({step.status})"
            print(f"    {step.name:<8}{step.seconds:>8.0f}{step.tests or '':>8}{step.memory / 2**20:>6.2f}{end}")
    print(f"    {'all':<8}{time.monotonic() - START:>8.0f}", flush=True)


def main() -> int:
    """Run the groups in order."""
    planned = groups(sys.stdin.read())
    done = run(planned[0])
    for group in planned[1:] if done else ():
        done = run(group) and done
    report([step for group in planned for step in group])
    return 0 if done else 1


def stop(*_: object) -> None:
    """End what runs."""
    for pid in RUNNING:
        os.killpg(pid, signal.SIGTERM)
    sys.exit(1)


START = time.monotonic()

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sys.exit(main())
