"""Functions that check numbers: of a tensor that they take, and of one for which they raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import turnout
from turnout import compiler

NUMBERS, WHOLE = turnout.linspace(0.1, 0.9, 6), turnout.arange(6)
SIGNAL = turnout.stft(turnout.linspace(0, 3, 64), 16, return_complex=True, window=turnout.ones(16))
# A function, a tensor that it takes, and one for which it raises.
FAILING: dict[str, tuple[Callable[[Any], Any], turnout.Tensor, turnout.Tensor]] = {
    # operators that stay whole
    "repeat_interleave": (lambda n: turnout.repeat_interleave(n, output_size=3), WHOLE[1:3] + 0, WHOLE[1:3] - 1),
    "floor_divide": (lambda d: 7 // d, WHOLE + 1, WHOLE + 0),
    "remainder": (lambda d: WHOLE % d, WHOLE + 1, WHOLE + 0),
    "fmod": (lambda d: WHOLE.fmod(d), WHOLE + 1, WHOLE + 0),
    "div": (lambda d: WHOLE.div(d, rounding_mode="trunc"), WHOLE + 1, WHOLE + 0),
    "lu_unpack": (lambda p: turnout.lu_unpack(turnout.eye(3), p)[0], WHOLE[1:4].int(), WHOLE[:3].int()),
    "normal": (lambda s: turnout.normal(0.0, s) * 0, NUMBERS + 0, -NUMBERS),
    "bernoulli": (lambda p: p.bernoulli() * 0, NUMBERS + 0, NUMBERS + 1),
    "multinomial": (lambda w: turnout.multinomial(w, 2).sum() * 0, NUMBERS + 0, -NUMBERS),
    "multinomial of nothing": (lambda w: turnout.multinomial(w, 2).sum() * 0, NUMBERS + 0, NUMBERS * 0),
    # composites, of which a graph has the parts
    "quantile": (NUMBERS.quantile, turnout.tensor([0.5]), turnout.tensor([1.5])),
    "cov": (lambda w: turnout.cov(NUMBERS, aweights=w), NUMBERS + 0, -NUMBERS),
    "segment_reduce": (lambda n: turnout.segment_reduce(NUMBERS, "sum", lengths=n), WHOLE[2:4] * 2 - 2, WHOLE[2:4] * 3),
    "negative lengths": (lambda n: turnout.segment_reduce(NUMBERS, "sum", lengths=n), WHOLE[2:4] * 2 - 2, WHOLE[2:4] * 20 - 47),
    "masked_scatter": (lambda m: NUMBERS.masked_scatter(m, NUMBERS[:0]), WHOLE > 9, WHOLE > 3),
    "istft": (lambda w: turnout.istft(SIGNAL, 16, window=w), turnout.ones(16), turnout.zeros(16)),
    "several": (lambda q: NUMBERS.quantile(q) + turnout.cov(NUMBERS, aweights=q * NUMBERS), NUMBERS[:1] + 0, -NUMBERS[:1]),
    "after drawing": (lambda q: turnout.rand(6).quantile(q) * 0 + turnout.rand(1) * 0, NUMBERS[:1] + 0, NUMBERS[:1] + 1),
}


def check_that_calls_fail_as_eager_ones(engine: str, name: str) -> None:
    """Compiled by an engine, a function takes the one tensor and raises for the other what it raises itself, with the program."""
    function, good, bad = FAILING[name]
    compiled: Any = turnout.compile(function, engine=engine, strict=True)
    for _ in range(2):
        turnout.testing.assert_close(compiled(good), function(good))
    raised = []
    for call in (function, compiled):
        turnout.manual_seed(1)
        try:
            raised.append(call(bad))
        except turnout.errors.TurnoutError as error:
            raised.append((type(error), str(error), turnout.get_rng_state()))
    assert isinstance(raised[0], tuple)
    assert raised[1] == raised[0]
    [entry] = compiled.entries.values()
    assert (entry.program.calls, entry.program.notes) == (2, ()), compiler.explain(compiled)
