"""Where the time of a row goes: its pieces timed alone, each in the same loop, in turns.

A call is a nest of callables: the method with its stub, perhaps a gradient kernel, the backend's wrapper, the kernel. Each is
timed by itself with the arguments it gets in the call, so a layer's own share is its time less that of the next one in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from statistics import median
from typing import Any

import numpy as np
import rows
from timing import QUICK, Side

import turnout
from turnout.keys import TRACKED
from turnout.registry import find_operator
from turnout.state import BELOW_AUTOGRAD, DISPATCH
from turnout_aten.tensor.tensor import Tensor, wrap

Pieces = Iterable[tuple[str, Side]]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def show(pieces: Pieces, quick: bool) -> None:
    """Time the pieces in turns and print each one's median and minimum, the empty loop's time taken off."""
    named = [("an empty loop, taken off below", Side("pass")), *pieces]
    numbers = [side.number(0.0005 if quick else 0.004) for _, side in named]
    times: list[list[float]] = [[] for _ in named]
    for _ in range(QUICK if quick else 150):
        for i, (_, side) in enumerate(named):
            times[i].append(side.seconds(numbers[i]) * 1e9)
    print(f"{'piece':68}{'median':>12}{'minimum':>12}")
    loop = 0.0
    for i, (name, _) in enumerate(named):
        print(f"{name:68}{median(times[i]) - loop:9.0f} ns{min(times[i]) - loop:9.0f} ns")
        loop = loop or min(times[i])


def layers(op: Any, args: tuple[Any, ...]) -> Pieces:
    """The callables of one call from the outermost key inwards, bound to the arguments, and what a stub does before them."""
    ks = op.key_set(args)
    names = [f"a{i}" for i in range(len(args))]
    given = dict(zip(names, args, strict=True))
    inner = [("  the backend's wrapper", ks & BELOW_AUTOGRAD)]
    if ks & TRACKED:
        inner.insert(0, ("  the gradient kernel and what it calls", ks))
    for what, keys in inner:
        yield what, Side(f"call(ks, {', '.join(names)})", call=op.lookup(keys), ks=keys, **given)
    x = args[0]
    keys_of = " | ".join(f"{name}.keys" for name, value in given.items() if isinstance(value, Tensor))
    yield "  in the stub: DISPATCH.get()", Side("get()", get=DISPATCH.get)
    yield "  in the stub: the key set", Side(keys_of, **given)
    yield "  in the stub: the look-up", Side("cache[ks]", cache=op.cache, ks=ks)
    yield "  in the wrapper: a tensor on an array", Side("wrap(a, device)", wrap=wrap, a=x.array, device=x.device)


def add(quick: bool, *, requires_grad: bool = False) -> None:
    """x + y."""
    x = turnout.tensor(rows.VALUES, requires_grad=requires_grad)
    y = turnout.tensor(rows.VALUES)
    a, b = np.asarray(rows.VALUES, "f4"), np.asarray(rows.VALUES, "f4")
    op = find_operator("aten::add.Tensor")
    x + y
    show(
        [
            ("x + y", Side("x + y", x=x, y=y)),
            *layers(op, (x, y, 1)),
            ("  the array kernel: numpy.add(a, b)", Side("add(a, b)", add=np.add, a=a, b=b)),
        ],
        quick,
    )


def recorded(quick: bool) -> None:
    """x + y with a gradient recorded."""
    add(quick, requires_grad=True)


def backward(quick: bool) -> None:
    """leaf, mul, sum, backward: parts that add up, and the array work alone."""
    x, y = turnout.tensor(rows.VALUES), turnout.tensor(rows.VALUES)
    leaf = turnout.tensor(rows.VALUES, requires_grad=True)
    product = leaf * y
    total = product.sum()
    one = turnout.tensor(1.0)
    a, b = np.asarray(rows.VALUES, "f4"), np.asarray(rows.VALUES, "f4")
    kept = "leaf.grad = None; total.backward(retain_graph=True)"
    show(
        [
            (rows.BACKWARD, Side(rows.BACKWARD, x=x, y=y)),
            ("leaf = x.detach().requires_grad_()", Side("x.detach().requires_grad_()", x=x)),
            ("  x.detach()", Side("x.detach()", x=x)),
            ("leaf * y, recorded", Side("leaf * y", leaf=leaf, y=y)),
            ("  leaf * y, not recorded", Side("x * y", x=x, y=y)),
            ("product.sum(), recorded", Side("product.sum()", product=product)),
            ("  x.sum(), not recorded", Side("x.sum()", x=x)),
            ("leaf.grad = None; total.backward(retain_graph=True)", Side(kept, leaf=leaf, total=total)),
            ("  in it: one.expand((4,))", Side("one.expand((4,))", one=one)),
            ("  in it: grad * y", Side("x * y", x=x, y=y)),
            ("NumPy's part: (a * b).sum()", Side("(a * b).sum()", a=a, b=b)),
        ],
        quick,
    )


def custom(through: str) -> Callable[[bool], None]:
    """The profile of a row about a custom operator."""

    def profile(quick: bool) -> None:
        with ExitStack() as stack:
            x = turnout.tensor(rows.VALUES)
            handle: Any = rows.turnout_operator(stack, through=through, ported=False)
            handle(x)
            op = getattr(handle, "operator", handle)
            pieces = [
                ("op(x)", Side("op(x)", op=handle, x=x)),
                ("  the stub, without the handle", Side("call(x)", call=op.call, x=x)),
                *layers(op, (x,)),
                ("  the array kernel: numpy.sin(a)", Side("sin(a)", sin=np.sin, a=x.array)),
            ]
            show(pieces, quick)

    return profile


def import_times(quick: bool) -> None:
    """The modules that `import turnout` loads, by their own time in this environment."""
    program = [sys.executable, "-I", "-X", "importtime", "-c", "import turnout"]
    runs: dict[str, list[int]] = {}
    for _ in range(QUICK if quick else 20):
        report = subprocess.run(program, check=True, capture_output=True, text=True).stderr
        for text in report.splitlines()[1:]:
            own, _, name = text.removeprefix("import time:").split("|")
            runs.setdefault(name.strip(), []).append(int(own))
    ranked = sorted(((median(times), name) for name, times in runs.items()), reverse=True)
    ours = sum(time for time, name in ranked if name.partition(".")[0] == "turnout")
    print(f"{'module (own time)':58}{'median':>12}")
    print(f"{'all of turnout':58}{ours:9.0f} us")
    for time, name in ranked[:25]:
        print(f"{name:58}{time:9.0f} us")


PROFILES: dict[str, Callable[[bool], None]] = {
    "add": add,
    "recorded": recorded,
    "backward": backward,
    "custom_op": custom(rows.CUSTOM_OP),
    "impl": custom(rows.IMPL),
    "import": import_times,
}
