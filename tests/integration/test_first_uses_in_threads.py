"""Two or three threads of a fresh process use something for the first time at once: none waits for ever, and all are right."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from installed import clean

# What is used first -> a program. `T` is turnout, of which nothing else was used.
USES = {
    "import func": "import turnout.func; turnout.func.grad",
    "import nn.functional": "import turnout.nn.functional as F; F.relu",
    "import linalg": "from turnout.linalg import det",
    "from import": "from turnout import zeros, vmap",
    "ones": "assert T.ones(3).tolist() == [1.0] * 3",
    "save": "import io; T.save(T.ones(2), io.BytesIO())",
    "explain": "assert 'CPU' in str(T.explain('aten::mul.Tensor', T.ones(2), T.ones(2)))",
    "facade": "assert 'ones' in dir(T)",
    "vmap": "assert T.vmap(lambda x: x * 2)(T.ones(2)).tolist() == [2.0, 2.0]",
    "keys": "from turnout.state import include\nwith include('Autocast'): pass",
    "keys by setting": "with T.config.override(keys__enable=['Autocast']): T.ones(1) + 1",
    "ops": "assert T.ops.aten.exp.default.schema",
    "a plugin's name": "T.fft.fft",
    "unknown name": "assert not hasattr(T, 'nosuchname')",
    "backward": "x = T.ones(2, requires_grad=True); x.exp().sum().backward(); assert x.grad is not None",
    "autocast": "with T.autocast('cpu'): assert (T.ones(2, 2) @ T.ones(2, 2)).dtype is T.bfloat16",
    "meta": "assert T.ones(2, device='meta').exp().shape == (2,)",
    "custom": "T.library.custom_op('own::f', lambda x: x + 1, mutates_args=(), schema='(Tensor x) -> Tensor')(T.ones(1))",
    "functionalize": "assert T.func.functionalize(lambda x: x.add_(1))(T.zeros(1)).item() == 1.0",
    "trace": "with T.trace_dispatch() as log: T.ones(2).sum()\nassert len(log)",
    "all": "T.plugins.activate_all()",
    "records": "assert T.plugins.all_plugins()",
    "table": "assert T.ops.aten.relu.default.table()",
    "print": "assert repr(T.ones(1)) == 'tensor([1.])'",
}  # fmt: skip
# What waited for each other while the finder of modules took the lock and plugins were imported under it: the first seeds.
KNOWN = [("import func", "ones"), ("import nn.functional", "save"), ("import nn.functional", "explain")]
PROGRAM = """
import faulthandler, sys, threading, traceback
faulthandler.dump_traceback_later(300, exit=True)
sys.setswitchinterval({interval})
import turnout as T
uses, wrong = {uses!r}, []
start = threading.Barrier(len(uses))

def use(text):
    start.wait()
    try:
        exec(text, {{"T": T, "__name__": "use"}})
    except BaseException:
        wrong.append(text + "\\n" + traceback.format_exc())

threads = [threading.Thread(target=use, args=(text,)) for text in uses]
for thread in threads: thread.start()
for thread in threads: thread.join()
faulthandler.cancel_dump_traceback_later()
print("".join(wrong), end="")
"""


def drawn(seed: int) -> tuple[tuple[str, ...], float, dict[str, str]]:
    """The uses of a seed, how often threads take turns, and settings."""
    rng = random.Random(seed)
    names = KNOWN[seed] if seed < len(KNOWN) else tuple(rng.sample(sorted(USES), rng.choice((2, 2, 3))))
    return names, rng.choice((1e-5, 1e-4, 5e-3)), {"TURNOUT_DEBUG__LOCKS": "on"} if rng.random() < 0.5 else {}


def test_no_first_use_waits_for_another_for_ever(seeds):
    programs: Iterator = map(drawn, seeds(6, many=500))
    while batch := list(islice(programs, 2 * (os.cpu_count() or 1))):  # at once, because each waits for disks and threads
        commands = [[sys.executable, "-W", "error", "-c", PROGRAM.format(interval=turns, uses=[USES[n] for n in names])]
                    for names, turns, _ in batch]  # fmt: skip
        running = [
            subprocess.Popen(command, env=clean(**settings), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for command, (_, _, settings) in zip(commands, batch, strict=True)
        ]
        try:
            said = {names: process.communicate()[0] for process, (names, _, _) in zip(running, batch, strict=True)}
        finally:
            for process in running:  # of a test that is interrupted
                if process.poll() is None:
                    process.kill()
                    process.communicate()
        assert said == dict.fromkeys(said, "")


def test_the_note_says_of_how_many():
    note = Path(__file__).parents[2] / "docs/notes/0035-how-first-uses-do-not-wait-for-each-other.md"
    assert f"triples of {len(USES)} first uses" in note.read_text("utf-8")
