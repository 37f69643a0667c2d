"""The first calls of a process, made by eight threads at once: everything lazy is made once, and nothing waits for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import faulthandler, sys, threading, traceback
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-5)
import turnout

def gradient():
    x = turnout.ones(2, requires_grad=True)
    x.exp().log().sum().backward()
    return x.grad.tolist()

def custom(n):
    op = turnout.library.custom_op(f"own{n}::inc", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    return op(turnout.ones(1)).item()

WORK = [
    lambda n: gradient() == [1.0, 1.0],
    lambda n: custom(n) == 2.0,
    lambda n: turnout.nn.functional.softmax(turnout.ones(2), 0).tolist() == [0.5, 0.5],
    lambda n: turnout.tensor([1.0, 2.0])[1].item() == 2.0,
    lambda n: "arctan2" in str(turnout.explain("aten::atan2", turnout.ones(1), turnout.ones(1))),
    lambda n: turnout.cat([turnout.ones(1)] * 2).shape == (2,),
    lambda n: turnout.ones(2, device="meta").exp().shape == (2,),
    lambda n: repr(turnout.ones(2)) == "tensor([1., 1.])",
]
start, wrong = threading.Barrier(8), []

def worker(n):
    start.wait()
    for i in range(len(WORK)):
        which = (i + n) % len(WORK)
        try:
            assert WORK[which](n), "another result"
        except BaseException:
            wrong.append(f"work {which}: {traceback.format_exc()}")

threads = [threading.Thread(target=worker, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("".join(wrong), end="")
"""


@pytest.mark.parametrize("process", range(4))
def test_the_first_calls_of_eight_threads_at_once_are_right(process, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
