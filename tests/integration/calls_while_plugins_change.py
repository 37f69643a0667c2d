"""Eight threads call operators while a ninth activates and deactivates plugins and registers and undoes kernels.

Run by `test_threads_and_changes.py` in an environment with the fixtures `letters`, `counter` and `numpy_twin`:
`python calls_while_plugins_change.py SECONDS CHANGES CALLS [autograd]`: it goes on until all three are reached. With
`autograd` all eight compute gradients while that plugin itself goes and comes back. Prints JSON: calls per kind of work,
errors that docs/threads.md names, by class; what was wrong: results, and errors that it does not name.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections import Counter
from typing import Any

import turnout
from turnout import plugins
from turnout.errors import DeviceError, NoKernelError, StaleOperatorError, UniverseError, UnknownOperatorError
from turnout.registry import Registrations

OPS: dict[str, Any] = {}  # the operators that stay, made by `define`
STOP = threading.Event()


def define(library: Registrations) -> None:
    """An operator whose kernel will be overridden, and a view."""
    OPS["scale"] = library.define("threads::scale(Tensor x, float by=2.0) -> Tensor")
    library.impl("threads::scale", "CPU", lambda x, by: x * by)
    OPS["row"] = library.define("threads::row(Tensor(a) x, int i) -> Tensor(a)")
    library.impl("threads::row", "CompositeExplicitAutograd", lambda x, i: x[i])


# ---- work that nothing the ninth thread does may disturb


def arithmetic(i: int) -> None:
    x = turnout.tensor([float(i), 1.0, 2.0])
    y = (x + x * 3 - 1).tolist()
    assert y == [4.0 * i - 1, 3.0, 7.0], f"x + x * 3 - 1 is {y} for {i}"


def gradients(i: int) -> None:
    x = turnout.tensor([float(i), 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0 * i, 4.0], f"the gradient of x * x is {x.grad} for {i}"


def writes_through_views(i: int) -> None:
    x = turnout.zeros(2, 3)
    x.t()[1].add_(i)
    x[0, 2] = 1.0
    assert (x.tolist(), x._version) == ([[0.0, i, 1.0], [0.0, i, 0.0]], 2), f"{x} of version {x._version} for {i}"


def overridden_operator(i: int) -> None:
    x = turnout.tensor([float(i)])
    found = OPS["scale"](x, 3.0).item()
    assert found in (3.0 * i, -3.0 * i), f"scale gave {found} for {i}"


def custom_view(i: int) -> None:
    x = turnout.zeros(2, 2, requires_grad=True) * 1
    row = OPS["row"](x, 1)
    assert row._base is x, "row made no view"
    row.add_(1)
    assert x.tolist() == [[0.0, 0.0], [1.0, 1.0]], f"{x}"


# ---- work with what comes and goes: documented errors are fine, wrong results are not


def gone_operator(i: int) -> None:
    assert turnout.ops.letters.greet("you") == "hello you!", "greet gave another text"


def other_backend(i: int) -> None:
    x = turnout.tensor([float(i), 1.0], device="twin")
    y = (x + x).to("cpu").tolist()
    assert y == [2.0 * i, 2.0], f"x + x on twin is {y} for {i}"


def counted_calls(i: int) -> None:
    from fixture_counter import counting

    with counting() as counts:
        y = turnout.tensor([float(i)]) * 2
    assert y.item() == 2.0 * i, f"{y}"
    assert set(counts) <= {"aten::mul.Scalar"}, f"{dict(counts)}"


def new_operator(i: int) -> None:
    assert turnout.ops.threads_passing.negate(turnout.tensor([1.0])).item() == -1.0, "negate gave something else"


STEADY = (arithmetic, gradients, writes_through_views, overridden_operator, custom_view)
PASSING = (gone_operator, other_backend, counted_calls, new_operator)
DOCUMENTED = (StaleOperatorError, UnknownOperatorError, NoKernelError, DeviceError, UniverseError)


class Report:
    """What all threads found."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.documented: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._lock = threading.Lock()

    def run(self, work: Any, i: int, *, steady: bool) -> None:
        try:
            work(i)
        except DOCUMENTED as error:
            with self._lock:
                if steady:
                    self.wrong.append(f"{work.__name__}: {traceback.format_exc()}")
                self.documented[type(error).__name__] += 1
        except BaseException:  # noqa: BLE001 - whatever it is, it is reported
            with self._lock:
                self.wrong.append(f"{work.__name__}: {traceback.format_exc()}")
        else:
            with self._lock:
                self.calls[work.__name__] += 1


def worker(number: int, report: Report, alone: Any) -> None:
    i = 0
    while not STOP.is_set() and len(report.wrong) < 20:
        i += 1
        if alone is not None:
            report.run(alone, i, steady=False)
        elif number < 5:
            report.run(STEADY[(i + number) % len(STEADY)], i, steady=True)
        else:
            report.run(PASSING[(i + number) % len(PASSING)], i, steady=False)


def negated(x: Any, by: float) -> Any:
    return x * -by


def change(round_: int) -> None:
    """One round of changes: a kernel overridden, an operator defined and gone, a plugin switched off and on."""
    with Registrations("override") as library:
        library.impl("threads::scale", "CPU", negated, allow_override=True)
    with Registrations("passing") as library:
        library.define("threads_passing::negate(Tensor x) -> Tensor")
        library.impl("threads_passing::negate", "CompositeImplicitAutograd", lambda x: -x)
        library.fallthrough("Tracer")
    name = ("counter", "numpy_twin", "letters")[round_ % 3]
    plugins.activate(name)
    plugins.deactivate(name)


def change_autograd(round_: int) -> None:
    """Autograd itself goes and comes back."""
    plugins.deactivate("autograd")
    plugins.activate("autograd")


def main(seconds: float, changes: int, calls: int, of: str = "") -> dict[str, Any]:
    sys.setswitchinterval(1e-5)
    define(Registrations("threads"))
    report = Report()
    alone, changing = (gradients, change_autograd) if of == "autograd" else (None, change)
    threads = [threading.Thread(target=worker, args=(n, report, alone), name=f"worker {n}") for n in range(8)]
    for thread in threads:
        thread.start()
    started = time.monotonic()
    made = 0
    try:
        while not report.wrong:
            if time.monotonic() - started >= seconds and made >= changes and report.calls.total() >= calls:
                break
            changing(made)
            made += 1
    finally:
        STOP.set()
        for thread in threads:
            thread.join()
    negatives = OPS["scale"](turnout.tensor([1.0])).item()
    return {
        "changes": made,
        "seconds": time.monotonic() - started,
        "calls": report.calls,
        "documented": report.documented,
        "wrong": report.wrong[:3],
        "afterwards": negatives,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(float(sys.argv[1]), *map(int, sys.argv[2:4]), *sys.argv[4:])))
