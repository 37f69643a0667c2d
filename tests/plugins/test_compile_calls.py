"""How a later call finds its program: a guard, made from the walk of an earlier call, reads what the walk has read."""

from __future__ import annotations

import gc
import random
import types
import warnings
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from checked_guards import Counts, checked_guards

import turnout
from turnout import compiler
from turnout_tracer.compiling import guards
from turnout_tracer.compiling.reach import Code
from turnout_tracer.compiling.signatures import Walk

SCALE = [2.0]


@pytest.fixture
def counts() -> Iterator[Counts]:
    with checked_guards() as found:
        yield found


class Held:
    """An object of a class of the program."""

    __slots__ = ("kept", "other", "state")
    factor = 2.0

    def __init__(self, state: Any) -> None:
        self.state = self.kept = state

    def __call__(self, x: Any) -> Any:
        return x * self.factor + self.state


class Counter:
    def __init__(self) -> None:
        self.state = turnout.zeros(3)

    def step(self, x: Any) -> Any:
        self.state = self.state + x
        return self.state


def vector(i: float = 1.0) -> Any:
    return turnout.tensor([1.0, -2.0, 3.0]) * i


def many(tree: Any, *, name: str = "") -> Any:
    return turnout.stack([each * SCALE[0] for each in turnout.trees.flatten(tree)[0] if isinstance(each, turnout.Tensor)])


def leaf() -> Any:
    made = vector().requires_grad_()
    made.grad = vector(3.0)
    return made


def descends(w: Any) -> Any:
    (w * w).sum().backward()
    with turnout.no_grad():
        w.sub_(w.grad)
    return w.grad.clone()


HELD, COUNTER, LAYER = Held(vector()), Counter(), turnout.nn.Linear(3, 2).requires_grad_(False)
CALLS: list[tuple[Callable[..., Any], Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]]] = [
    (many, lambda: ((vector(),), {"name": "a"})),
    (many, lambda: (([vector(), {"a": vector(2.0), 3: (vector(), 1.5, None, True)}, b"a", range(3), slice(1, None), ...],), {})),
    (many, lambda: ((OrderedDict(a=vector()),), {})),
    (many, lambda: ((defaultdict(list, a=vector()),), {})),
    (many, lambda: ((deque([vector()]),), {"name": {"a"}})),
    (many, lambda: (([vector(), -0.0, float("nan"), float("-inf"), 1j, np.float32(2), np.arange(3), turnout.float32],), {})),
    (many, lambda: (([vector()] * 2,), {})),
    (lambda x, y: x + y, lambda: ((lambda t: (t[:3], t[:3]))(turnout.arange(6.0)), {})),
    (lambda x, f: f(x), lambda: ((vector(), lambda x: x * SCALE[0]), {})),
    (lambda x, f: f(x), lambda: ((vector(), partial(turnout.add, other=2)), {})),
    (lambda x: HELD(x), lambda: ((vector(),), {})),
    (lambda x: LAYER(x), lambda: ((vector(),), {})),
    (COUNTER.step, lambda: ((vector(),), {})),
    (descends, lambda: ((leaf(),), {})),
    (lambda x, g: x.clone().normal_(generator=g), lambda: ((vector(), turnout.Generator().manual_seed(3)), {})),
]


@pytest.mark.parametrize(("function", "given"), CALLS)
def test_from_the_third_call_on_no_walk_is_made(function: Any, given: Any, counts: Counts) -> None:
    compiled: Any = turnout.compile(function, engine="eager", strict=True)
    for _ in range(2):
        args, kwargs = given()
        compiled(*args, **kwargs)
    walks = counts.walks
    for i in range(3):
        args, kwargs = given()
        state = COUNTER.state
        found = compiled(*args, **kwargs)
        COUNTER.state = state
        args, kwargs = given()
        assert found.tolist() == function(*args, **kwargs).tolist()
        assert (counts.walks, counts.hits) == (walks, i + 1)


def test_signatures_take_turns_without_walks(counts: Counts) -> None:
    compiled: Any = turnout.compile(lambda x, n: x * n, engine="eager", strict=True)
    for _ in range(2):
        for n in range(8):
            compiled(vector(), n)
    walks = counts.walks
    for n in (3, 3, 0, 7, 5, 5):
        assert compiled(vector(), n).tolist() == (vector() * n).tolist()
    assert (counts.walks, counts.hits) == (walks, 6)


def test_a_guard_that_asked_too_much_is_made_anew_a_few_times(counts: Counts) -> None:
    held = Counter()
    compiled: Any = turnout.compile(lambda x: x + held.state, engine="eager", strict=True)
    for i in range(8):
        setattr(held, f"note{i}", i)  # no part of the signature
        for _ in range(3):
            compiled(vector())
    assert len(compiled.entries) == 1
    [entry] = compiled.entries.values()
    assert entry.program.calls == 23
    assert entry.guards == 4
    # The first guard is made by the second call; then each note costs a walk, and after the fourth guard each call does.
    assert (counts.hits, counts.walks) == (1 + 3 * 2, 2 + 23 - (1 + 3 * 2))


def test_a_signature_that_is_too_long_has_no_guard(monkeypatch: pytest.MonkeyPatch, counts: Counts) -> None:
    monkeypatch.setattr(guards, "LIMIT", 20)
    compiled: Any = turnout.compile(many, engine="eager", strict=True)
    for _ in range(4):
        assert compiled([vector()] * 9).tolist() == many([vector()] * 9).tolist()
    assert not counts.hits


def test_modes_are_part_of_a_guard(counts: Counts) -> None:
    compiled: Any = turnout.compile(lambda x: (x + 1, turnout.zeros(2)), engine="eager", strict=True)
    for _ in range(3):
        compiled(vector())
    assert counts.hits == 1
    with turnout.no_grad():
        compiled(vector())
    turnout.set_default_dtype(turnout.float64)
    try:
        assert compiled(vector())[1].dtype is turnout.float64
    finally:
        turnout.set_default_dtype(turnout.float32)
    assert counts.hits == 1
    assert len(compiled.entries) == 3


def test_what_runs_eagerly_is_found_by_a_guard_too(counts: Counts) -> None:
    compiled: Any = turnout.compile(lambda x: x if x.sum() > 0 else -x, engine="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", compiler.CompileWarning)
        for i in (1.0, -1.0, 1.0, -1.0):
            assert compiled(vector(i)).tolist() == vector(1.0).tolist()
    assert counts.hits == 2


# ---- random trees of values: where a guard fits, the key is the same


class Point:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


def read(tree: Any) -> Any:  # names x and y, so that they are walked
    return tree.x, tree.y


ONE = vector()
BASE = turnout.arange(12.0)
LEAVES: list[Callable[[random.Random], Any]] = [
    lambda r: r.choice([0, 1, -1, True, False, None, 1 << 70, "a", "b", "", b"a"]),
    lambda r: r.choice([0.0, -0.0, 1.0, 0.1, float("nan"), float("inf"), 1j, -1j]),
    lambda r: r.choice([range(3), range(0, 3, 2), slice(1), slice(1, 2), ..., NotImplemented]),
    lambda r: r.choice([turnout.float32, turnout.device("cpu")]),
    lambda r: r.choice([ONE, BASE, BASE[:3], BASE[3:6], BASE.reshape(3, 4), BASE.reshape(3, 4).t(), vector(), vector().double()]),
    lambda r: r.choice([leaf(), vector().requires_grad_(), turnout.ones(1, 3), turnout.nn.Parameter(vector())]),
    lambda r: r.choice([np.arange(3), np.arange(3.0), np.float32(1), np.float64(1)]),
    lambda r: r.choice([len, abs, turnout.add, int, Point, Held, read, r.choice, [].append]),
]  # fmt: skip


def drawn(r: random.Random, made: list[Any], depth: int = 3) -> Any:
    """A random tree; parts of it may stand in several places."""
    if made and r.random() < 0.25:
        return r.choice(made)
    kind = r.randrange(9) if depth else 8
    parts = [drawn(r, made, depth - 1) for _ in range(r.randrange(4))] if kind < 8 else []
    found: Any
    if kind == 0:
        found = parts
    elif kind == 1:
        found = tuple(parts)
    elif kind == 2:
        found = {r.choice(["a", "b", 0, 1, True, 1.0, (1, 2), None]): each for each in parts}
    elif kind == 3:
        found = Point(parts, r.choice([1, 2.0]))
    elif kind == 4:
        found = partial(many, parts, name=r.choice("ab"))
    elif kind == 5:
        held = parts
        found = lambda: held  # noqa: E731
    elif kind == 6:
        kinds: list[Callable[[Any], Any]] = [deque, OrderedDict.fromkeys, tuple]
        found = r.choice(kinds)(r.sample(["a", "b", "c"], 2))
    elif kind == 7:
        found = Held(parts)
    else:
        found = r.choice(LEAVES)(r)
    made.append(found)
    return found


def alike(r: random.Random, value: Any) -> Any:
    """Another object that looks like this one, where it is a list or a tensor: what is shared tells them apart."""
    if isinstance(value, list):
        return [*value]
    if isinstance(value, turnout.Tensor) and value.storage is not None and not value.requires_grad:
        base = r.choice([BASE, BASE.clone()])
        return base.as_strided(value.shape, value.stride(), value.storage_offset())
    return value.detach().clone() if isinstance(value, turnout.Tensor) else value


def changed(r: random.Random, made: list[Any]) -> None:
    """Change one of the mutable parts of a tree."""
    value = r.choice(made)
    if isinstance(value, list) and value and r.random() < 0.6:
        i = r.randrange(len(value))
        value[i] = alike(r, value[i])
        return
    other = r.choice([r.choice(made), drawn(r, [], 1)])
    if isinstance(value, list):
        if value and r.random() < 0.7:
            value[r.randrange(len(value))] = other
        else:
            value.append(other)
    elif isinstance(value, dict):
        value[r.choice(["a", "b", "c", 0, True])] = other
    elif isinstance(value, Point):
        setattr(value, r.choice("xyz"), other)
    elif isinstance(value, Held):
        setattr(value, r.choice(["kept", "state", "other"]), other)
    elif isinstance(value, turnout.Tensor) and value.is_leaf and value is not ONE and value.storage is None:
        if r.random() < 0.5:
            value.requires_grad_(not value.requires_grad)
        elif value.requires_grad:
            value.grad = r.choice([None, value.detach().clone()])


def test_where_a_guard_fits_the_key_is_the_same(seeds: Callable[..., range]) -> None:
    fits, same = compared(seeds(60, many=4000))
    assert fits > 0.8 * same > 0


MADE: list[Callable[[], Any]] = [
    lambda: vector().double(), lambda: turnout.ones(4), lambda: turnout.ones(6)[::2], lambda: turnout.arange(4.0)[1:],
    lambda: vector().requires_grad_(), lambda: turnout.nn.Parameter(vector()), lambda: turnout.zeros(3, device="meta"),
    lambda: vector().requires_grad_() * 1, lambda: turnout.ones(1, 3),
]  # fmt: skip
# Arguments that look alike, and have other signatures.
PAIRS: list[tuple[Callable[[], tuple[Any, ...]], Callable[[], tuple[Any, ...]]]] = [
    (lambda: (1, "a"), lambda: (1, "b")),
    (lambda: (1,), lambda: (True,)),
    (lambda: (None,), lambda: (0,)),
    (lambda: (0.0,), lambda: (-0.0,)),
    (lambda: (1.5,), lambda: (float("nan"),)),
    (lambda: (1j,), lambda: (-1j,)),
    (lambda: (range(3),), lambda: (range(4),)),
    (lambda: (slice(1, 2),), lambda: (types.SimpleNamespace(start=1, stop=2, step=None),)),
    (lambda: (np.arange(3),), lambda: (np.arange(3) + 1,)),
    (lambda: ([1, 2],), lambda: ([1, 2, 3],)),
    (lambda: ([1, 2],), lambda: ((1, 2),)),
    (lambda: ({"a": 1, "b": 2},), lambda: ({"b": 2, "a": 1},)),
    (lambda: (len,), lambda: (abs,)),
    (lambda: (turnout.float32,), lambda: (turnout.float64,)),
    (lambda: (Point,), lambda: (Held,)),
    (lambda: (Held(1),), lambda: (types.SimpleNamespace(state=1, kept=1),)),
    *[
        (lambda: (vector(),), partial(lambda make: (make(),), made))
        for made in MADE
    ],
    (lambda: (vector().requires_grad_(),), lambda: (leaf(),)),
    (lambda: (leaf(),), lambda: (vector().requires_grad_(),)),
    (lambda: (vector(), vector()), lambda: (ONE, ONE)),
    (lambda: (ONE, ONE), lambda: (vector(), vector())),
    (lambda: ([1], [1]), lambda: ([1],) * 2),
    (lambda: ([1], [[1]]), lambda: (lambda one: (one, [one]))([1])),
    (lambda: (BASE[:3], BASE[3:6]), lambda: (BASE[:3], BASE.clone()[3:6])),
    (lambda: (BASE[:3], BASE.clone()[3:6]), lambda: (BASE[:3], BASE[3:6])),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_guard_tells_calls_apart_that_look_alike(one: Any, other: Any) -> None:
    args, others, code = one(), other(), Code()
    walk = Walk(read, args, {}, code)
    assert walk.key != Walk(read, others, {}, code).key
    guard = walk.guard([])
    assert guard is not None
    assert guard(args, {}) is not None
    assert guard(others, {}) is None
    assert guard(args, {"more": 1}) is None


@pytest.mark.parametrize("kind", ["is_plain", "has_text", "is_a", "is_tensor", "unless"])
def test_a_guard_that_asks_too_little_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards.Lines, kind, lambda *given, **options: None)
    with pytest.raises((AssertionError, ValueError)):
        compared(range(400))


def compared(seeds: range) -> tuple[int, int]:
    """How often guards fit, and how often a changed tree has the key that it had."""
    fits = same = 0
    for seed in seeds:
        made: list[Any] = []
        r, code = random.Random(seed), Code()
        args = (drawn(r, made), drawn(r, made))
        walk = Walk(read, args, {}, code)
        if walk.reason:
            continue
        slots = list(range(len(walk.slots)))
        guard = walk.guard(slots)
        assert guard is not None
        for _ in range(6):
            again = Walk(read, args, {}, code)
            found = guard(args, {})
            if found is not None:
                assert again.key == walk.key, seed
                assert not again.reason, seed
                expected = again.found(slots)
                assert all(a is b for a, b in zip(found[0], expected[0], strict=True)), seed
                assert all(a[0] is b[0] and a[1] == b[1] for a, b in zip(found[2], expected[2], strict=True)), seed
            fits += found is not None
            same += again.key == walk.key
            changed(r, made)
    return fits, same


# ---- writes: a tensor takes over the memory of its new value, where nobody sees the old one


def base_and_view() -> tuple[Any, Any]:
    base = np.ones(6, np.float32)
    return turnout.from_numpy(base[:3]), base


def weak() -> tuple[Any, Any]:
    made = turnout.ones(3)
    return made, made.detach()[:]


HOLDERS: list[tuple[Callable[[], tuple[Any, Any]], bool]] = [
    (lambda: (turnout.ones(3), None), True),
    (lambda: (turnout.from_numpy(np.ones(3, np.float32)), None), True),
    (lambda: (lambda x: (x, (x.numpy() * 0)[:0]))(turnout.ones(3)), True),
    (lambda: (lambda x: (x, x.t()[:0].tolist()))(turnout.ones(3)), True),
    (lambda: (lambda a: (turnout.from_numpy(a), a))(np.ones(3, np.float32)), False),
    (base_and_view, False),
    (weak, False),
    *[
        (partial(lambda hold: (lambda x: (x, hold(x)))(turnout.ones(3)), hold), False)
        for hold in (
            lambda x: x.numpy(), lambda x: x.detach(), lambda x: x[1:], lambda x: memoryview(x.numpy()), np.from_dlpack,
            lambda x: turnout.from_dlpack(x), lambda x: x.view(turnout.int32), lambda x: x.data,
        )
    ],
    (lambda: (turnout.from_numpy(np.frombuffer(bytearray(np.ones(3, np.float32).tobytes()), np.float32)), None), False),
]  # fmt: skip


@pytest.mark.parametrize(("make", "is_taken"), HOLDERS)
def test_whoever_sees_the_memory_of_a_written_input_sees_the_write(make: Any, is_taken: bool) -> None:
    compiled: Any = turnout.compile(lambda x: x.mul_(3).sum(), engine="eager", strict=True)
    for _ in range(2):
        compiled(make()[0])
    ours, theirs = make(), make()
    place, version = ours[0].data_ptr(), ours[0].version()
    assert compiled(ours[0]).tolist() == theirs[0].mul_(3).sum().tolist()
    assert (ours[0].data_ptr() != place) == is_taken
    assert ours[0].version() == version + 1
    assert ours[0].tolist() == theirs[0].tolist() == [3.0, 3.0, 3.0]
    if ours[1] is not None:
        assert np.asarray(ours[1]).tolist() == np.asarray(theirs[1]).tolist()


def test_a_gradient_that_needs_a_value_that_was_taken_over_is_an_error() -> None:
    x = vector().requires_grad_()
    texts = []
    compiled: Any = turnout.compile(scaled, engine="eager", strict=True)
    for function in (compiled, compiled, compiled, scaled):
        loss = (x * x).sum()
        with turnout.no_grad():
            function(x)
        with pytest.raises(turnout.errors.TurnoutError) as caught:
            loss.backward()
        texts.append(str(caught.value).partition("\n")[0].partition("version")[0])
    assert len(set(texts)) == 1


def scaled(x: Any) -> Any:
    return x.mul_(3).sum()


def test_a_program_keeps_none_of_the_tensors_of_the_first_call() -> None:
    compiled: Any = turnout.compile(lambda x, w: (x.sin() @ w.t()).relu().sum(), engine="eager", strict=True)
    kept: list[Any] = []
    given, left = [turnout.ones(3, 3), turnout.ones(3, 3)], []
    sine = turnout.Tensor.sin

    def noted(x: Any) -> Any:
        made = sine(x)
        kept.append(weakref.ref(made))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turnout.Tensor, "sin", noted)
        left.append(compiled(*given))
    left.append(compiled(*given))
    [entry] = compiled.entries.values()
    assert entry.program.calls == 1
    kept += [weakref.ref(each) for each in (*given, *left)]
    given.clear()
    left.clear()
    gc.collect()
    assert [each() for each in kept] == [None] * 5


OVER_INPUTS = {
    "a detached part": lambda w, b: w.detach()[1:],
    "a part, detached": lambda w, b: w[1:].detach(),
    "a part": lambda w, b: w[1:],
    "a detached tensor in another shape": lambda w, b: w.detach().view(-1),
    "all of the second": lambda w, b: b[:],
    "the second": lambda w, b: b,
    "detached twice": lambda w, b: b.detach()[1:].detach(),
    "without gradients": lambda w, b: turnout.no_grad()(lambda: w[1:])(),
}


@pytest.mark.parametrize("function", [pytest.param(f, id=name) for name, f in OVER_INPUTS.items()])
@pytest.mark.parametrize("detached", ["neither", "first", "second"])
def test_a_result_over_the_memory_of_an_input_records_and_is_a_view_where_eagers_is(function, detached):
    compiled = turnout.compile(function, engine="eager")
    for _ in range(3):
        made = []
        for call in (function, compiled):
            w = turnout.full((3,), 2.0, requires_grad=True)
            w, b = (w.detach() if detached == "first" else w), (w.detach() if detached == "second" else w)
            result = call(w, b)
            base = result._base
            facts = (result.requires_grad, base is None, base is w, base is b, base is not None and base.requires_grad)
            with turnout.no_grad():
                result.mul_(3)
            made.append((facts, w.tolist(), b.tolist()))
        assert made[0] == made[1]


def test_a_trace_inside_a_compiled_function_is_that_of_an_eager_call_each_time() -> None:
    def traces(x: turnout.Tensor) -> turnout.Tensor:
        y = x * 3
        return turnout.trace(lambda a: a * 2)(y)(x) + y

    compiled = turnout.compile(traces)
    with pytest.warns(compiler.CompileWarning, match=r"traces runs eagerly: the call uses turnout.trace\(\)"):
        found = [compiled(turnout.ones(2) + i).tolist() for i in range(3)]
    assert found == [[5.0 * (i + 1)] * 2 for i in range(3)]
    with pytest.raises(turnout.graphs.TraceError, match="another trace is being recorded here"):
        turnout.trace(traces)(turnout.ones(2))
