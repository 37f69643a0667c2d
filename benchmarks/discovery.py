"""Discovery: the first operation of a process with 100 plugins installed, against the same with those of this environment alone.

    python benchmarks/discovery.py [repeats]

The other plugins are distributions as pip would leave them, each with a backend, a functionality, a requirement and an option.
None of them is activated. Both programs take turns; what is printed are medians of processor time, which other programs disturb
least.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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


def main(repeats: int) -> None:
    with tempfile.TemporaryDirectory() as parent:
        few, many = Path(parent, "few"), Path(parent, "many")
        few.mkdir()
        install(many, 85)
        pairs = [(first_operation(few), first_operation(many)) for _ in range(repeats + 1)][1:]  # the first writes bytecode
    without, others = (statistics.median(column) * 1e3 for column in zip(*pairs, strict=True))
    later = statistics.median(many - few for few, many in pairs) * 1e3
    print(f"first operation {without:.0f} ms, with 85 more plugins {others:.0f} ms")
    print(f"later by {later:.1f} ms, {later / 85:.2f} ms a plugin")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
