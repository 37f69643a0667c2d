"""Operators that are defined, used and destroyed many times leave nothing behind, without the cyclic collector's help."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import turnout
from outcomes import printed
from turnout import Tensor, library


class Mode(turnout.DispatchMode):
    def dispatch(self, op, ks, args):
        return op.redispatch(ks, *args)


def by_library(x: Tensor) -> None:
    with library.Library("leaks", "DEF") as lib:
        lib.define("f(Tensor x, float by=2.0) -> Tensor")
        lib.impl("f", lambda x, by=2.0: x * by, "CPU")
        library.register_fake("leaks::f", lambda x, by=2.0: x.new_empty(x.shape), lib=lib)
        library.register_autograd("leaks::f", lambda ctx, grad: (grad * 2, None), lib=lib)
        library.register_vmap("leaks::f", lambda info, dims, x, by=2.0: (x * by, dims[0]), lib=lib)
        library.register_torch_dispatch("leaks::f", Mode, lambda mode, op, types, args, kwargs: op(*args, **kwargs), lib=lib)
        turnout.ops.leaks.f(x).sum().backward()
        with Mode():
            turnout.ops.leaks.f(x.detach())
        library.get_kernel("leaks::f", "CPU")(x.detach())


def by_handle(x: Tensor) -> None:
    op = library.custom_op("leaks2::g", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_autograd(lambda ctx, grad: grad * 2)
    op(x).sum().backward()
    op.undo()


def left_by(rounds: int) -> tuple[int, int]:
    """The objects in cycles that some rounds leave, and the bytes that as many rounds add each time.

    A table that grows by doubling is no leak, so the least of three measurements counts.
    """
    x = turnout.ones(3, requires_grad=True)

    def found_after(count: int) -> int:
        for _ in range(count):
            by_library(x)
            by_handle(x)
        return gc.collect()  # it also frees the interpreter's spare tuples

    gc.collect()
    gc.disable()
    try:
        found_after(50)  # fills caches
        tracemalloc.start()
        found_after(1)
        cycles, grown = 0, []
        for _ in range(3):
            before = tracemalloc.get_traced_memory()[0]
            cycles += found_after(rounds)
            grown.append(tracemalloc.get_traced_memory()[0] - before)
        return cycles, min(grown)
    finally:
        tracemalloc.stop()
        gc.enable()


def test_rounds_of_defining_using_and_destroying_leak_nothing_with_the_collector_off(seeds):
    # In an interpreter that has run nothing else, since some caches grow with what is there.
    program = f"import sys; sys.path[:0] = {sys.path!r}; import {__name__} as suite; print(*suite.left_by({len(seeds(300))}))"
    cycles, grown = map(int, printed(program).split())
    assert cycles == 0
    assert grown < 10_000  # what caches of Python and NumPy still take, whatever the number of rounds
