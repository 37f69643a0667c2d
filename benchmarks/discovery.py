"""The first operation of a process, and warm calls, with 85 more plugins installed, against those of this environment alone.

    python benchmarks/discovery.py [repeats]

The other plugins are distributions as pip would leave them, each with a backend, a functionality, a requirement and an option.
None of them is activated. Both programs take turns. Of first operations the medians of processor time are printed, of warm calls
the ratio of the least times.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

MANIFEST = """\
name = "p{i}"
distribution = "bench-p{i}"
kind = "backend"
api = "1.0"
module = "bench_p{i}.plugin"
summary = "one of many"
requires_plugins = ["aten"]

[[provides.backend]]
name = "Bench{i}"
device = "bench{i}"

[[provides.key]]
name = "BenchKey{i}"
after = "Autograd"
passes = "always"

[[needs]]
module = "numpy"
install = "pip install numpy"

[option.memory]
type = "float"
default = 0.9
help = "how much of the device's memory may be taken"
"""
PROGRAM = "import sys; sys.path.append({!r}); import turnout; turnout.ones(1)"
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
WARM = """
import sys
from time import perf_counter

sys.path.append({!r})
import turnout

x, m, p = turnout.ones(4), turnout.ones(4, 4), turnout.ones(4, requires_grad=True)
calls = [
    lambda: x + x, lambda: x.sum(), lambda: m @ m, lambda: x[1:], lambda: turnout.zeros(3),
    lambda: (p * 2).sum().backward(), lambda: turnout.softmax(m, 0), lambda: x.add_(0),
]
for call in calls:
    for _ in range(300):
        call()
print(len(calls), flush=True)
for line in sys.stdin:
    call, times = calls[int(line)], []
    for _ in range(5):
        start = perf_counter()
        for _ in range(1000):
            call()
        times.append(perf_counter() - start)
    print(min(times), flush=True)
"""


def install(folder: Path, count: int) -> None:
    """Write distributions with a plugin each."""
    for i in range(count):
        files = {
            f"bench_p{i}/__init__.py": "",
            f"bench_p{i}/plugin.toml": MANIFEST.format(i=i),
            f"bench_p{i}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: bench-p{i}\nVersion: 1.0\n",
            f"bench_p{i}-1.0.dist-info/entry_points.txt": f"[turnout.plugins]\np{i} = bench_p{i}:plugin.toml\n",
        }
        files[f"bench_p{i}-1.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def first_operation(folder: Path) -> float:
    """Seconds of processor time of a new interpreter that computes once."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", "-c", PROGRAM.format(str(folder))], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def warm_calls(folders: tuple[Path, Path], processes: int = 4, turns: int = 8) -> list[float]:
    """The ratios of the least times of warm calls with the plugins of the second folder to those of the first."""
    least: dict[tuple[int, int], float] = {}
    for _ in range(processes):
        with ExitStack() as ended:
            running = [
                ended.enter_context(subprocess.Popen([sys.executable, "-I", "-c", WARM.format(str(folder))], text=True, **PIPES))
                for folder in folders
            ]
            (count,) = {int(answer(process)) for process in running}
            for turn in range(turns):
                for call in range(count):
                    for which in (0, 1) if turn % 2 == 0 else (1, 0):
                        taken = float(answer(running[which], call))
                        least[call, which] = min(taken, least.get((call, which), taken))
            for process in running:
                process.communicate()
    return [least[call, 1] / least[call, 0] for call in range(count)]


def answer(process: subprocess.Popen[str], call: int | None = None) -> str:
    """The next line of a process, which is asked for a call first."""
    assert process.stdin is not None
    assert process.stdout is not None
    if call is not None:
        print(call, file=process.stdin, flush=True)
    return process.stdout.readline()


def main(repeats: int) -> None:
    with tempfile.TemporaryDirectory() as parent:
        few, many = Path(parent, "few"), Path(parent, "many")
        few.mkdir()
        install(many, 85)
        pairs = [(first_operation(few), first_operation(many)) for _ in range(repeats + 1)][1:]  # the first writes bytecode
        ratios = warm_calls((few, many))
    without, others = (statistics.median(column) * 1e3 for column in zip(*pairs, strict=True))
    later = statistics.median(many - few for few, many in pairs) * 1e3
    print(f"first operation {without:.0f} ms, with 85 more plugins {others:.0f} ms")
    print(f"later by {later:.1f} ms, {later / 85:.2f} ms a plugin")
    print(f"warm calls {statistics.geometric_mean(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
