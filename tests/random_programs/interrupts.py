"""Programs that an interrupt stops at a random moment: blocks of guards and transforms in each other, drawn at random.

An interrupt is a signal whose handler raises KeyboardInterrupt, as Ctrl-C does. Where it strikes is up to the clock, so a seed
gives the program and the moment, not always the same place.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import turnout
from turnout import guards, state

Body = Callable[[Any], Any]


class Passing(turnout.DispatchMode):
    """A mode that changes nothing."""

    def dispatch(self, op: Any, ks: int, args: tuple[Any, ...]) -> Any:
        return op.redispatch(ks, *args)


class Double(turnout.autograd.Function):
    """A function with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def _block(make: Callable[[], Any]) -> Callable[[Body], Body]:
    def wrap(body: Body) -> Body:
        def run(x: Any) -> Any:
            with make():
                return body(x)

        return run

    return wrap


def _backward(body: Body) -> Body:
    def run(x: Any) -> Any:
        with turnout.enable_grad():
            leaf = turnout.ones(3, requires_grad=True)
            (leaf * 2).exp().sum().backward()
        return body(x)

    return run


def _stepped(body: Body) -> Body:
    """The body in a generator that is inside a block."""

    def steps(x: Any) -> Any:
        with turnout.no_grad():
            yield body(x)
            yield x

    def run(x: Any) -> Any:
        for made in steps(x):
            return made

    return run


# fmt: off
WRAPPERS: dict[str, Callable[[Body], Body]] = {
    "no_grad": _block(turnout.no_grad),
    "enable_grad": _block(turnout.enable_grad),
    "inference_mode": _block(turnout.inference_mode),
    "autocast": _block(lambda: turnout.autocast("cpu", turnout.bfloat16)),
    "autocast off": _block(lambda: turnout.autocast("cpu", enabled=False)),
    "exclude": _block(lambda: state.exclude("ADInplaceOrView")),
    "mode": _block(Passing),
    "override": _block(lambda: turnout.config.override(default_device="cpu")),
    "saved tensors": _block(lambda: turnout.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)),
    "decorator": lambda body: turnout.no_grad()(body),
    "vmap": lambda body: lambda x: turnout.vmap(lambda row: body(row) if row.ndim else row * 2)(x),
    "grad": lambda body: lambda x: turnout.func.grad(lambda v: body(v).sum().float())(x),
    "jvp": lambda body: lambda x: turnout.func.jvp(body, (x,), (turnout.ones_like(x),))[1],
    "function": lambda body: lambda x: Double.apply(body(x)),
    "backward": _backward,
    "generator": _stepped,
}
# fmt: on


def drawn(seed: int) -> tuple[list[str], Body]:
    """The names of the blocks, outermost first, and the program."""
    draw = random.Random(seed)
    names = [draw.choice(list(WRAPPERS)) for _ in range(draw.randint(1, 4))]
    body: Body = lambda x: (x * 2).sin() + x  # noqa: E731
    for name in reversed(names):
        body = WRAPPERS[name](body)
    return names, body


def state_now() -> tuple[Any, ...]:
    """Everything that guards and transforms set in a context."""
    from turnout.config.lock import OVERRIDES
    from turnout_aten.tensor.levels import GRAD, LEVELS
    from turnout_autocast.contexts import SETTINGS
    from turnout_autograd.engine.recorded_levels import PULLED
    from turnout_autograd.hooks.packing import HOOKS

    innermost = guards._around(guards._INNERMOST.get())
    lists = (state.DISPATCH, GRAD, LEVELS, HOOKS, state.MODES, OVERRIDES, SETTINGS)
    return (*[tuple(variable.get()) for variable in lists], PULLED.get(), innermost)


def broken_by(seed: int, rounds: int = 1) -> list[str]:
    """What is wrong after a program was interrupted: a line for each round that left something changed."""
    names, body = drawn(seed)
    draw = random.Random(seed)
    x = turnout.ones(3, 3)
    try:
        start = time.perf_counter()
        for _ in range(3):
            body(x)
        length = (time.perf_counter() - start) / 3
    except turnout.TurnoutError:
        return []  # these blocks do not fit into each other
    before = state_now()
    wrong = []
    ignored, sys.unraisablehook = sys.unraisablehook, lambda _: None
    handled = signal.signal(signal.SIGALRM, _interrupt)
    try:
        for _ in range(rounds):
            if not _interrupted(body, x, draw.uniform(1e-6, 2 * length)):
                continue
            found = state_now()
            if found != before or turnout.func.grad(lambda v: (v * v).sum())(turnout.ones(2)).tolist() != [2.0, 2.0]:
                wrong.append(f"seed {seed}: an interrupt inside {' / '.join(names)} left {found}, not {before}")
                return wrong
    finally:
        signal.signal(signal.SIGALRM, handled)
        sys.unraisablehook = ignored
    return wrong


def _interrupted(body: Body, x: Any, after: float) -> bool:
    """Run a program in a loop until the interrupt comes, which no traceback survives. False if a destructor swallowed it."""
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        for _ in range(200):
            body(x)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
