"""`turnout.compile`: calls give what the function gives, in values, strides, aliases, writes, gradients and random numbers."""

from __future__ import annotations

import gc
import re
import warnings
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from os.path import exists
from pathlib import Path
from typing import Any

import pytest

import turnout
from failing_checks import FAILING, check_that_calls_fail_as_eager_ones
from outcomes import in_threads, refused
from turnout import compiler
from turnout.errors import ArgumentError, TurnoutError
from turnout_aten import trees
from turnout_conformance.cases import CASES
from turnout_conformance.making import leaf, row_major, samples, samples_of_kinds
from turnout_conformance.replays import Way, call_of, check_replays, gradients_of
from turnout_tracer.compiling import eager, functions

W = turnout.tensor([2.0, 3.0, 4.0])
SCALE = [2.0]


def facts(tree: Any) -> list[Any]:
    """What two calls must agree in: dtypes, strides, values, gradients, and which tensors are the same or share memory."""
    tensors = [leaf for leaf in trees.flatten(tree)[0] if isinstance(leaf, turnout.Tensor)]
    found: list[Any] = [repr([leaf for leaf in trees.flatten(tree)[0] if not isinstance(leaf, turnout.Tensor)])]
    for i, x in enumerate(tensors):
        grad = x.grad if x.is_leaf else None
        found.append(
            (
                x.dtype,
                tuple(x.shape),
                x.stride(),
                x.requires_grad,
                repr(x.detach().tolist()),
                None if grad is None else repr(grad.tolist()),
            )
        )
        found.append([(x is y, x.is_alias_of(y)) for y in tensors[:i]])
    return found


def agrees(function: Callable[..., Any], make: Callable[[int], tuple[Any, ...]], calls: int = 3, **options: Any) -> Any:
    """Compare calls of a compiled function with those of the function; returns the compiled one."""
    compiled = turnout.compile(function, engine="eager", **options)
    for i in range(calls):
        ours, theirs = make(i), make(i)
        turnout.manual_seed(i)
        found = compiled(*ours)
        turnout.manual_seed(i)
        expected = function(*theirs)
        assert facts([found, ours]) == facts([expected, theirs]), (function.__name__, i)
    return compiled


def ran(compiled: Any) -> int:
    """How often programs ran."""
    return sum(entry.program.calls for entry in compiled.entries.values() if entry.program is not None)


def vector(i: int) -> turnout.Tensor:
    return turnout.tensor([1.0 + i, -2.0, 3.0])


def writes(x: Any, y: Any) -> Any:
    x.mul_(2)
    return x + y, x[1:], x


def views(x: Any) -> Any:
    made = turnout.zeros(3, 3)
    for i in range(3):
        made[i] = x * i
        made[:, i] += 1
    return made, made.t(), made.diagonal(), x.detach()


def constants(x: Any) -> Any:
    made = turnout.tensor([1.0, 2.0, 3.0])
    made.add_(x)
    return made, turnout.tensor([5.0]), x + 1, x + 1, x.clone()


def draws(x: Any) -> Any:
    return turnout.rand(3) + x, turnout.nn.functional.dropout(x), x.normal_()


def outside(x: Any) -> Any:
    return x * W * SCALE[0]


def step(w: Any, x: Any) -> Any:
    loss = (w * x).sum() ** 2
    loss.backward()
    with turnout.no_grad():
        w.sub_(w.grad, alpha=0.1)
    return loss.detach()


def forgets(w: Any, x: Any) -> Any:
    w.grad = None
    return turnout.func.grad(lambda v: (v * x).sum() ** 2)(x), turnout.vmap(lambda r: r * r.sum())(turnout.ones(2, 3) * x)


def tracked(i: int) -> tuple[Any, ...]:
    w = vector(i).requires_grad_()
    w.grad = turnout.ones(3) if i else None
    return w, vector(2)


AGREE: list[tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = [
    (writes, lambda i: (vector(i), vector(1))),
    (writes, lambda i: (vector(i),) * 2),
    (writes, lambda i: (lambda t: (t[:3], t))(turnout.arange(3.0) + i)),
    (views, lambda i: (vector(i),)),
    (constants, lambda i: (vector(i),)),
    (draws, lambda i: (vector(i),)),
    (outside, lambda i: (vector(i),)),
    (step, lambda i: (vector(i).requires_grad_(), vector(1))),
    (step, tracked),
    (forgets, tracked),
]


@pytest.mark.parametrize(("function", "make"), AGREE)
def test_a_compiled_call_leaves_what_the_call_leaves(function: Any, make: Any) -> None:
    assert ran(agrees(function, make, calls=4, strict=True)) >= 2


def test_what_is_outside_is_read_at_each_call_and_may_be_replaced() -> None:
    class Memory:
        def __init__(self) -> None:
            self.state, self.rate = turnout.zeros(3), 0.5

        def update(self, x: Any) -> Any:
            self.state = self.state * self.rate + x + weight[0]
            return self.state

    weight = [turnout.ones(3)]
    ours, theirs = Memory(), Memory()
    compiled = turnout.compile(ours.update, strict=True)
    for i in range(6):
        found = compiled(vector(i))
        assert turnout.equal(found, theirs.update(vector(i))), i
        assert found is ours.state
        weight[0].add_(1)
        weight[0] = weight[0] * 2 if i == 2 else weight[0]
        ours.rate = theirs.rate = 0.25 if i > 3 else 0.5
    assert ran(compiled) == 4
    assert len(compiled.entries) == 2  # type: ignore[attr-defined]


def test_random_programs_of_writes_and_views(seeds: Callable[..., range]) -> None:
    from random_programs.writes import Program

    for seed in seeds(25, many=2000):
        lines = Program(seed).lines
        text = "def program():\n" + "".join(f"    {line}\n" for line in lines)
        names = ", ".join(dict.fromkeys(line.partition(" = ")[0] for line in lines if " = " in line.partition("(")[0]))
        scope: dict[str, Any] = {"t": turnout, "__name__": "program"}
        exec(text + f"    return {names}", scope)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                scope["program"]()
            except Exception:  # noqa: BLE001 - a program that raises is not compiled
                continue
            agrees(scope["program"], lambda i: (), calls=2)


def mutant(name: str) -> Callable[..., Any]:
    """An engine with one fault."""

    def compile(graph: Any, examples: Any, options: Any) -> Any:
        kept: list[Any] = []

        def run(*values: Any) -> list[Any]:
            given = list(values)
            if name == "swapped inputs":
                given.reverse()
            if name == "inputs of the first call":
                kept[:] = kept or [each.clone() for each in given]
                given = kept
            made = list(graph(*given))
            if name == "results of the first call":
                kept[:] = kept or made
                made = kept
            if name == "dropped write":
                made[-1] = values[0].clone()
            if name == "a result is an input":
                made[0] = values[0]
            if name == "swapped results":
                made.reverse()
            if name == "one memory":
                made = [made[0]] * len(made)
            if name == "one bit":
                made[0] = made[0] * 1.0000002
            if name == "too few":
                made.pop()
            if name == "other dtype":
                made[0] = made[0].double()
            return made

        return run

    return compile


FAULTS = ("swapped inputs", "inputs of the first call", "results of the first call", "dropped write", "a result is an input",
    "swapped results", "one memory", "one bit", "too few", "other dtype")  # fmt: skip


def program(x: Any, y: Any) -> Any:
    made = x * 3.1 - y
    x.add_(y)
    return made, x * y + turnout.rand(3)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_engine_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees(program, lambda i: (vector(i), vector(5)), strict=True)
    monkeypatch.setattr(eager, "compile", mutant(fault))
    refused((AssertionError, compiler.CompileError), lambda: agrees(program, lambda i: (vector(i), vector(5)), strict=True))


def test_inside_other_things_the_function_itself_runs() -> None:
    compiled = turnout.compile(lambda x: (x * x).sum(), strict=True)
    x = vector(0)
    compiled(x), compiled(x)
    assert turnout.func.grad(compiled)(x).tolist() == (2 * x).tolist()
    assert turnout.vmap(compiled)(turnout.ones(2, 3)).tolist() == [3.0, 3.0]
    assert turnout.func.jvp(compiled, (x,), (x,))[1].item() == 28.0
    assert turnout.func.functionalize(compiled)(x).item() == 14.0
    assert [node.op.name for node in turnout.trace(compiled)(x).nodes] == ["mul", "sum"]
    with turnout.amp.autocast("cpu"):
        compiled(x)
    assert ran(compiled) == 1
    w = vector(0).requires_grad_()
    for _ in range(2):
        compiled(w).backward()
    assert w.grad.tolist() == (4 * x).tolist()


def reads(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def prints(x: Any) -> Any:
    print(end="")  # noqa: T201
    return x


def of_the_clock(x: Any) -> Any:
    return x * (datetime.now().year > 0)


def of_a_file(x: Any) -> Any:
    return x if exists("some file") else -x


def sets(x: Any) -> Any:
    turnout.config.set({"strict": False})
    return x


def appends(x: Any, seen: list[Any]) -> Any:
    seen.append(1)
    return x


HIDDEN = iter([1])
EAGER: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (reads, (W,), "the call takes values out of a tensor: aten::_local_scalar_dense, at "),
    (lambda x: turnout.tensor(x.tolist()), (W,), "the call takes values out of a tensor: tolist(), at "),
    (lambda x: turnout.tensor(x.numpy()), (W,), "the call takes values out of a tensor: numpy(), at "),
    (lambda x: (x, repr(x)), (W,), "the call takes values out of a tensor: repr(), at "),
    (lambda x: x[x > 2], (W,), "aten::index.Tensor: the shape of the result depends on values, at "),
    (lambda x: x.where()[0], (W,), "the graph: the shape of the result depends on values"),  # of composites no tag says it
    (lambda x: x.repeat_interleave(x.long()), (W,), "the graph: the shape of the result depends on values"),
    *(
        (function, (W,), f"the function names {name}, which reads or changes what a signature does not see")
        for function, name in ((prints, "print()"), (of_the_clock, "datetime"), (of_a_file, "exists"))
    ),
    (sets, (W,), "the call uses config.set(), which reads or changes what a signature does not see, at "),
    (lambda x: (HIDDEN, x)[1], (W,), "HIDDEN is a list_iterator, whose state cannot be compared between calls"),
    (
        lambda x: {x},
        (W,),
        "the result has a set; only tensors, numbers and strings, nested in lists, tuples and dicts, can be results",
    ),
    (
        lambda x: x.view(turnout.int32),
        (W,),
        "a result shares memory with an input in another dtype, or counts its versions apart",
    ),
    (
        lambda a, b: a + b,
        (lambda t: (t[:4], t[2:]))(turnout.arange(6.0)),
        "inputs share memory that none of them covers from its start, or see it in several dtypes",
    ),
]


@pytest.mark.parametrize(("function", "args", "why"), EAGER)
def test_what_is_not_compiled_runs_eagerly_with_one_warning_or_raises(function: Any, args: Any, why: str) -> None:
    compiled = turnout.compile(function)
    name = "function" if "<lambda>" in function.__qualname__ else function.__name__
    with pytest.warns(compiler.CompileWarning) as caught:
        found = [compiled(*args) for _ in range(3)]
    [warning] = caught
    assert str(warning.message).startswith(f"compile: {name} runs eagerly: {why}")
    assert warning.filename == __file__
    assert why in compiler.explain(compiled)
    assert facts(found[0]) == facts(function(*args)) or isinstance(found[0], set)
    with pytest.raises(compiler.CompileError) as error:
        turnout.compile(function, strict=True)(*args)
    assert str(error.value).startswith(f"compile: {name} cannot be compiled, and strict=True was given\n  why     {why}")
    assert str(error.value).endswith("\n  to fix  leave strict out, or change the function")


def test_an_effect_on_python_objects_happens_in_each_call_and_is_said_when_it_comes_again() -> None:
    compiled, seen = turnout.compile(appends), [0]
    compiled(W, seen)  # which could have been the first use of an object
    with pytest.warns(compiler.CompileWarning) as caught:
        [compiled(W, seen) for _ in range(3)]
    assert seen == [0, 1, 1, 1, 1]
    assert not ran(compiled)
    why = "the call changes arguments[1], and a compiled call would not"
    assert [str(each.message) for each in caught] == [f"compile: appends runs eagerly: {why}"]
    assert caught[0].filename == __file__
    assert why in compiler.explain(compiled)
    strict = turnout.compile(appends, strict=True)
    strict(W, seen)
    with pytest.raises(compiler.CompileError, match=r"why     the call changes arguments\[1\], and a compiled call would not"):
        strict(W, seen)


def test_new_objects_that_each_call_changes_are_said_after_some_calls() -> None:
    compiled = turnout.compile(appends, strict=True)
    for _ in range(functions.FIRST_USES):
        compiled(W, [])
    with pytest.raises(compiler.CompileError, match=r"the call changes arguments\[1\]"):
        compiled(W, [])


class Lazy:
    """It makes its state at its first use."""

    def __call__(self, x: Any) -> Any:
        if not hasattr(self, "scale"):
            self.scale, self.shift = 2.0, turnout.ones(3)
        self.shift.add_(1)
        return x * self.scale + self.shift


def test_state_that_is_made_at_the_first_use_is_not_a_fault_and_is_named() -> None:
    compiled = turnout.compile(lambda function, x: function(x), strict=True)
    ours, theirs = [Lazy() for _ in range(3)], [Lazy() for _ in range(3)]
    for i in range(4):
        for mine, other in zip(ours, theirs, strict=True):
            assert compiled(mine, vector(i)).tolist() == other(vector(i)).tolist()
    assert ran(compiled) == 8
    assert "eager   the call changes arguments[0].scale, and a compiled call would not" in compiler.explain(compiled)


def test_the_page_has_the_options_that_an_engine_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    got: dict[str, Any] = {}
    monkeypatch.setattr(eager, "compile", lambda graph, examples, options: got.update(options) or graph)
    turnout.compile(turnout.exp, engine="eager")(turnout.ones(2))
    page = (Path(__file__).parents[2] / "docs/compile.md").read_text("utf-8")
    [row] = re.findall(r"^\| `options` \| (.*) \|$", page, re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", row)} == got.keys()


def test_an_interrupted_or_failing_call_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (KeyboardInterrupt(), ValueError("no")):
        monkeypatch.setattr(eager, "compile", lambda *args, error=error: (_ for _ in ()).throw(error))
        compiled = turnout.compile(lambda x: x + 1)
        with pytest.raises((KeyboardInterrupt, compiler.CompileError)) as found:
            compiled(W)
        assert not compiled.entries  # type: ignore[attr-defined]
    assert str(found.value) == "compile: the engine 'eager' failed to compile function: ValueError: no"
    monkeypatch.setattr(eager, "compile", lambda *args: (_ for _ in ()).throw(compiler.EngineError("too large")))
    with pytest.warns(compiler.CompileWarning, match="the engine 'eager' does not take the graph: too large$"):
        assert compiled(W).tolist() == [3.0, 4.0, 5.0]


TEXTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: turnout.compile(3), "compile: argument 'function' must be callable, got int"),
    (lambda: compiler.explain(abs), "explain: expected what turnout.compile returned, got builtin_function_or_method"),
    (lambda: compiler.signatures(3), "signatures: expected what turnout.compile returned, got int"),
    (lambda: turnout.compile(lambda x: x + 1, engine="nosuch")(W), "compile: there is no engine 'nosuch'\n  known   eager"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), TEXTS)
def test_the_texts_of_errors(call: Any, text: str) -> None:
    assert refused(TurnoutError, call).startswith(text)


def test_too_many_signatures_are_dropped_with_a_warning_that_names_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "LIMIT", 3)
    compiled: Any = turnout.compile(lambda x, n: x * n)
    with pytest.warns(compiler.CompileWarning) as caught:
        found = [compiled(W, n).tolist() for n in range(8)]
    assert found == [(W * n).tolist() for n in range(8)]
    [warning] = caught
    assert str(warning.message) == (
        "compile: function has had more than 3 signatures; the least recently used are dropped and compiled again\n"
        "  differs most often: arguments[1]"
    )
    assert len(compiled.entries) == 3
    compiler.reset()
    assert not compiled.entries


def test_threads_compile_and_call_one_function() -> None:
    compiled = turnout.compile(lambda x, n: (x * n + W).t(), strict=True)
    wrong: list[Any] = []

    def work(i: int) -> None:
        for n in range(12):
            x = vector(i)
            if compiled(x, n % 4).tolist() != (x * (n % 4) + W).tolist():
                wrong.append((i, n))

    in_threads(*[partial(work, i) for i in range(8)])
    assert not wrong
    assert ran(compiled) >= 8


def way(function: Callable[..., Any]) -> Callable[..., Any]:
    """`check_replays` calls the compiled function again where it would replay a trace."""

    def first(args: Any, kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", compiler.CompileWarning)
            compiled = turnout.compile(function, engine="eager")
            compiled(args, kwargs)
        return compiled

    return first


@pytest.mark.parametrize("part", range(64))
def test_operator_cases_compiled_give_the_same_bits(part: int) -> None:
    for case in CASES[part::64]:
        check_replays(call_of(case), samples_of_kinds(case, "cpu"), row_major("cpu"), (Way(way),))
        if case.differentiable and "float32" in case.dtypes:
            check_replays(gradients_of(case), samples(case, "cpu", ("float32",)), leaf("cpu"), (Way(way),))


def through(case: Any, engine: str = "eager") -> Way:
    """The gradients of a compiled call where a trace would be replayed."""

    def first(_: Any) -> Callable[..., Any]:
        def start(args: Any, kwargs: Any) -> Any:
            gradients = gradients_of(case, turnout.compile(call_of(case), engine=engine))
            gradients(args, kwargs)
            return gradients

        return start

    return Way(first)


@pytest.mark.parametrize("part", range(64))
def test_gradients_through_compiled_calls_have_the_same_bits(part: int) -> None:
    for case in CASES[part::64]:
        if case.differentiable and "float32" in case.dtypes:
            check_replays(gradients_of(case), samples(case, "cpu", ("float32",)), leaf("cpu"), (through(case),))


@pytest.mark.parametrize(
    ("momentum", "state"), [(0.0, "optimiser._has_stepped"), (0.9, "optimiser.state")], ids=["plain", "momentum"]
)
def test_a_module_and_a_step_of_its_optimiser_are_compiled(momentum: float, state: str) -> None:
    nn = turnout.nn

    def losses(wrap: Callable[[Any], Any]) -> list[float]:
        turnout.manual_seed(0)
        module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        optimiser = turnout.optim.SGD(module.parameters(), lr=0.1, momentum=momentum)

        def step(x: Any) -> Any:
            optimiser.zero_grad()
            loss = (module(x) ** 2).mean()
            loss.backward()
            optimiser.step()
            return loss.detach()

        run, infer = wrap(step), wrap(module)
        found = [run(turnout.ones(2, 3) * i).item() for i in range(6)]
        with turnout.no_grad():
            return found + [infer(turnout.ones(2, 3)).sum().item() for _ in range(3)]

    compiled: list[Any] = []

    def wrap(function: Any) -> Any:
        compiled.append(turnout.compile(function, engine="eager", strict=True))
        return compiled[-1]

    assert losses(wrap) == losses(lambda function: function)
    # The first step makes what the optimiser and the modules keep, so that it has a signature of its own.
    assert [ran(each) for each in compiled] == [4, 2]
    assert f"eager   the call changes {state}, and a compiled call would not" in compiler.explain(compiled[0])


def test_a_check_of_shapes_and_dtypes_reads_no_value() -> None:
    def checked(x: Any) -> Any:
        turnout.ops.aten._assert_tensor_metadata(x, None, None, turnout.float32)
        return x * 2

    compiled = turnout.compile(checked, strict=True)
    for i in range(3):
        assert compiled(vector(i)).tolist() == (vector(i) * 2).tolist()
    assert ran(compiled) == 2


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adagrad", "SGD"])
@pytest.mark.parametrize("of_tensor", [False, True])
def test_a_fused_step_reads_no_number_and_one_graph_serves_all_rates_that_are_tensors(name: str, of_tensor: bool) -> None:
    nn = turnout.nn

    def trained(wrap: Callable[[Any], Any]) -> list[Any]:
        turnout.manual_seed(0)
        module = nn.Linear(3, 2)
        rate = turnout.tensor(0.1) if of_tensor else 0.1
        optimiser = getattr(turnout.optim, name)(module.parameters(), lr=rate, fused=True)

        def step(x: Any) -> Any:
            optimiser.zero_grad()
            loss = (module(x) ** 2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimiser.step()
            return loss.detach()

        run, found = wrap(step), []
        for i in range(6):
            found.append(run(turnout.ones(2, 3) * i).item())
            if isinstance(rate, turnout.Tensor):
                rate.mul_(0.5)
        return [*found, *[each.tolist() for each in module.parameters()]]

    compiled: list[Any] = []

    def wrap(function: Any) -> Any:
        compiled.append(turnout.compile(function, engine="eager", strict=True))
        return compiled[-1]

    assert trained(wrap) == trained(lambda function: function)
    assert ran(compiled[0]) == 4  # all but the first two, which make state and signature


@pytest.mark.parametrize("is_scaled", [False, True])
def test_a_step_that_reads_numbers_runs_eagerly_with_one_warning(is_scaled: bool) -> None:
    def trained(wrap: Callable[[Any], Any]) -> list[Any]:
        turnout.manual_seed(0)
        module = turnout.nn.Linear(3, 2)
        rule = turnout.optim.SGD if is_scaled else turnout.optim.Adam
        optimiser, scaler = rule(module.parameters(), lr=0.1), turnout.amp.GradScaler("cpu", enabled=is_scaled)

        def step(x: Any) -> Any:
            optimiser.zero_grad()
            loss = (module(x) ** 2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimiser)
            scaler.update()
            return loss.detach()

        run = wrap(step)
        return [*[run(turnout.ones(2, 3) * i).item() for i in range(4)], *[each.tolist() for each in module.parameters()]]

    with pytest.warns(compiler.CompileWarning) as caught:
        found = trained(lambda step: turnout.compile(step, engine="eager"))
    assert found == trained(lambda step: step)
    [warning] = caught
    why = "compile: step runs eagerly: the call takes values out of a tensor: aten::_local_scalar_dense, at "
    assert str(warning.message).startswith(why)


def test_a_graph_is_compiled_with_its_state_and_may_be_edited() -> None:
    kept = turnout.tensor([5.0, 6.0, 7.0])
    graph = turnout.trace(lambda x: x * 2 + kept)(W)
    compiled = turnout.compile(graph, strict=True)
    assert [compiled(vector(i)).tolist() for i in range(3)] == [(vector(i) * 2 + kept).tolist() for i in range(3)]
    assert ran(compiled) == 2
    tripled = turnout.trace(lambda x: x * 3 + kept)(W)
    graph.nodes[0] = tripled.nodes[0]
    assert [compiled(vector(i)).tolist() for i in range(3)] == [(vector(i) * 3 + kept).tolist() for i in range(3)]
    assert [(each.calls, len(each.graph.nodes)) for each in compiler.signatures(compiled)] == [(2, 2), (2, 2)]


def test_a_generator_is_an_argument_of_the_graph() -> None:
    compiled: Any = turnout.compile(lambda g: turnout.rand(3, generator=g) + turnout.empty(3).uniform_(generator=g), strict=True)
    for seed in (1, 1, 5):
        generator, expected = turnout.Generator().manual_seed(seed), turnout.Generator().manual_seed(seed)
        for _ in range(2):
            assert compiled(generator).tolist() == compiled.__wrapped__(expected).tolist()
        assert generator.get_state() == expected.get_state() == (seed, 12)
    [signature] = compiler.signatures(compiled)
    assert signature.calls == 5


# ---- sizes that are symbols


def branches(x: Any) -> Any:
    y = turnout.tanh(x + W[:1]) * x.shape[0]
    x.add_(1)
    return (y.sum(0), y * 2) if x.shape[0] > 4 else (y.sum(0), y)


def test_one_trace_serves_all_sizes_for_which_the_function_decides_the_same() -> None:
    compiled: Any = turnout.compile(branches, dynamic=True, strict=True, engine="eager")
    for n in (3, 4, 2, 7, 5, 6, 3, 1, 1, 0):
        ours, theirs = turnout.arange(2.0 * n).reshape(n, 2), turnout.arange(2.0 * n).reshape(n, 2)
        assert facts([compiled(ours), ours]) == facts([branches(theirs), theirs])
    found = {tuple(each.guards[1].split("[")[2].split("]")[0].split(", ")): each for each in compiler.signatures(compiled)}
    small, large = found["3", "2"].sizes, found["7", "2"].sizes
    assert "s0 <= 4" in small
    assert "s0 > 4" in large
    assert {n: found[n, "2"].sizes for n in "42"} == dict.fromkeys("42", small)
    assert {n: found[n, "2"].sizes for n in "56"} == dict.fromkeys("56", large)
    assert {n: each.calls for (n, _), each in found.items()} == {"3": 1, "4": 1, "2": 1, "7": 0, "5": 1, "6": 1, "1": 1, "0": 0}
    assert f"sizes   of a trace that holds where {small}" in compiler.explain(compiled)
    compiler.reset()
    assert compiled(turnout.ones(2, 2))[0].tolist() == branches(turnout.ones(2, 2))[0].tolist()


class Holder:
    state: Any
    weight: Any


HOLDER = Holder()


@pytest.mark.parametrize(("function", "traces"), [(lambda x: x * 2, 1), (lambda x: x * (2 if x._base is None else 3), 0)])
def test_batches_of_a_larger_tensor_are_served_by_one_trace_unless_the_function_asks_for_that(function: Any, traces: int) -> None:
    compiled = turnout.compile(function, dynamic=True, strict=True, engine="eager")
    data = turnout.arange(40.0).reshape(20, 2)
    for start, stop in ((0, 4), (4, 8), (8, 10), (4, 8), (10, 14)):
        assert compiled(data[start:stop]).tolist() == function(data[start:stop]).tolist()
    found = [each.sizes for each in compiler.signatures(compiled)]
    assert len(found) == 4
    assert len({each for each in found if each}) == traces
    assert compiled(turnout.ones(2, 2)).tolist() == function(turnout.ones(2, 2)).tolist()


HOLDER.state = turnout.zeros(1)


def writes_outside(x: Any) -> Any:
    HOLDER.state.add_(1)
    return x + HOLDER.state


def replaces(x: Any) -> Any:
    HOLDER.state = HOLDER.state + 1
    return x + HOLDER.state


def makes_of_sizes(x: Any) -> Any:
    before = HOLDER.state
    HOLDER.state = x * 2
    y = HOLDER.state + turnout.tensor([float(x.shape[0])] * x.shape[0])
    HOLDER.state = before
    return y


def step_of_sizes(x: Any) -> Any:
    (HOLDER.weight * x).sum().backward()
    HOLDER.weight.grad = None
    return x * 2


def counts_to_its_size(x: Any) -> Any:
    for _ in range(x.shape[0]):
        x = x * 2
    return x


def asks_a_dict(x: Any) -> Any:
    try:
        return x + turnout.tensor([float({3: 1, 4: 1}[x.shape[0]])])
    except TypeError:  # a symbol is not hashable
        return x + turnout.tensor([1.0, 1.0])[:1]


FOR_ONE_SIZE: list[tuple[Callable[[Any], Any], str]] = [
    (writes_outside, "it writes tensors, gradients or attributes that are not arguments"),
    (replaces, "it writes tensors, gradients or attributes that are not arguments"),
    (step_of_sizes, "gradients are recorded"),
    (makes_of_sizes, ""),
    (asks_a_dict, "a tensor is made from numbers that depend on sizes"),
    (lambda x: (x + 1, x.shape[0]), "numbers or the nesting of the results depend on sizes"),
    (lambda x: x[1:], "a result is a view, or not in row-major order"),
]


@pytest.mark.parametrize(("function", "why"), FOR_ONE_SIZE)
def test_what_no_trace_of_symbols_takes_has_a_graph_for_each_size(function: Any, why: str) -> None:
    HOLDER.state, HOLDER.weight = turnout.zeros(1), turnout.ones(1, requires_grad=True)
    state = HOLDER.state
    compiled = turnout.compile(function, dynamic=True, strict=True, engine="eager")
    for n in (3, 4, 3, 4):
        found = compiled(turnout.ones(n))
        HOLDER.state.zero_()
        expected = function(turnout.ones(n))
        HOLDER.state.zero_()
        assert facts(found)[0] == facts(expected)[0]
    signatures = compiler.signatures(compiled)
    assert [each.calls for each in signatures] == [1, 1]
    if why:
        assert {each.notes for each in signatures} == {(f"for this size alone: {why}",)}
    assert HOLDER.state is state or function is replaces
    assert HOLDER.state.fake_mode is None


def test_a_size_that_is_counted_to_has_a_trace_of_its_own_and_there_are_few_of_them() -> None:
    compiled = turnout.compile(counts_to_its_size, dynamic=True, strict=True, engine="eager")
    for n in range(2, 13):
        for _ in range(2):
            assert compiled(turnout.ones(n)).tolist() == [2.0**n] * n
    found = compiler.signatures(compiled)
    assert [f"s0 == {n}" in each.sizes for n, each in enumerate(found, 2)] == [True] * 8 + [False] * 3
    assert {each.notes for each in found[8:]} == {("for this size alone: each of several traces holds for few sizes",)}


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_function_keeps_no_tensor_of_its_calls(dynamic: bool) -> None:
    compiled = turnout.compile(lambda x: (x * 2 + 1, x.sum()), dynamic=dynamic, engine="eager")
    kept: list[Any] = []
    for n in (3, 3, 4, 4):
        x = turnout.ones(n)
        kept += [weakref.ref(each) for each in (x, *compiled(x))]
    del x
    gc.collect()
    assert [each() for each in kept] == [None] * 12
    assert ran(compiled) == (3 if dynamic else 2)


@pytest.mark.parametrize("name", FAILING)
def test_a_check_of_numbers_fails_as_in_an_eager_call(name: str) -> None:
    check_that_calls_fail_as_eager_ones("eager", name)


def test_a_call_whose_check_fails_leaves_the_writes_of_an_eager_one() -> None:
    def function(x: Any, q: Any) -> Any:
        x.add_(1)
        found = x.quantile(q)
        x.add_(1)
        return found

    compiled: Any = turnout.compile(function, engine="eager", strict=True)
    compiled(turnout.ones(3), turnout.tensor(0.5))
    for q, expected in ((0.5, [3.0] * 3), (2.0, [2.0] * 3)):
        x = turnout.ones(3)
        with nullcontext() if q < 1 else pytest.raises(ArgumentError, match=r"^quantile: every q must lie between 0 and 1$"):
            compiled(x, turnout.tensor(q))
        assert x.tolist() == expected
    [entry] = compiled.entries.values()
    assert entry.program.calls == 2


# ---- gradients through a call

WEIGHT = turnout.tensor([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]], requires_grad=True)


def layer(x: Any) -> Any:
    y = turnout.tanh(x @ WEIGHT)
    z = y * 2
    z[0] = 0
    with turnout.no_grad():
        scale = y.sum()
    return (z * z).sum(0) * scale + y, {"size": x.shape[0], "plain": scale}


def derivatives(function: Callable[[Any], Any], i: int) -> list[Any]:
    """The results of a call, its gradients, and gradients of these."""
    x = (turnout.arange(6.0).reshape(2, 3) * 0.1 + i).requires_grad_()
    y, rest = function(x)
    loss = (y**3).sum()
    first = turnout.autograd.grad(loss, [x, WEIGHT], create_graph=True)
    second = turnout.autograd.grad(sum((each**2).sum() for each in first), [x, WEIGHT])
    y, rest = function(x)
    y.sum().backward()
    found = [loss, *first, x.grad, WEIGHT.grad, rest["plain"]]
    WEIGHT.grad = None
    facts_of_y = y.requires_grad, y.is_leaf, rest["plain"].requires_grad, rest["size"]
    return [[each.tolist() for each in found], facts_of_y, turnout.cat([each.reshape(-1) for each in second])]


def test_a_call_whose_results_record_is_one_node_and_its_backward_is_compiled_and_recorded() -> None:
    compiled = turnout.compile(layer, engine="eager", strict=True)
    for i in range(3):
        (*found, second), (*expected, other) = derivatives(compiled, i), derivatives(layer, i)
        assert found == expected
        assert turnout.allclose(second, other, rtol=1e-5)  # what is summed first is another matter
    [signature] = compiler.signatures(compiled)
    assert signature.calls == 5
    assert any(note.startswith("one node for gradients, whose backward has ") for note in signature.notes)
    y = compiled(turnout.ones(2, 3))[0]
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(TurnoutError):
        y.sum().backward()
    WEIGHT.grad = None


RECORDING_THEMSELVES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: (a.exp(), b.exp()),
    lambda a, b: (a * 2, (a * 2).detach() * b),
    lambda a, b: (a * 2)[1:],
    lambda a, b: list((a + b).split(1)),
]


@pytest.mark.parametrize("function", RECORDING_THEMSELVES)
def test_results_with_histories_of_their_own_have_them(function: Any) -> None:
    compiled = turnout.compile(function, engine="eager", strict=True)
    for _ in range(3):
        a, b = (turnout.ones(3, requires_grad=True) for _ in range(2))
        results = compiled(a, b)
        results = [results] if isinstance(results, turnout.Tensor) else results
        for each in results:  # one after the other: each frees what is its own
            each.sum().backward()
        c, d = (turnout.ones(3, requires_grad=True) for _ in range(2))
        others = function(c, d)
        for each in [others] if isinstance(others, turnout.Tensor) else others:
            each.sum().backward()
        assert [facts(x.grad) for x in (a, b) if x.grad is not None] == [facts(x.grad) for x in (c, d) if x.grad is not None]
        assert (a.grad is None, b.grad is None) == (c.grad is None, d.grad is None)
    assert sum(each.calls for each in compiler.signatures(compiled)) == 0


def test_an_input_that_no_result_comes_from_gets_no_gradient() -> None:
    compiled = turnout.compile(lambda a, b: a * 2 + b.detach(), engine="eager", strict=True)
    for _ in range(3):
        a, b = (turnout.ones(3, requires_grad=True) for _ in range(2))
        compiled(a, b).sum().backward()
        assert (a.grad.tolist(), b.grad) == ([2, 2, 2], None)
    assert ran(compiled) == 2


def test_what_is_saved_is_guarded_against_writes() -> None:
    compiled = turnout.compile(lambda x, y: x * y, engine="eager", strict=True)
    for write in (False, False, True):
        x, y = vector(1).requires_grad_(), vector(2)
        z = compiled(x, y)
        if write:
            y.add_(1)
            with pytest.raises(TurnoutError, match="was changed in place after it was used"):
                z.sum().backward()
        else:
            z.sum().backward()
            assert x.grad.tolist() == y.tolist()


def test_a_second_derivative_that_would_be_wrong_is_refused() -> None:
    compiled = turnout.compile(lambda x: (x * x + turnout.rand(3)).sum(), engine="eager", strict=True)
    x = vector(1).requires_grad_()
    for _ in range(2):
        compiled(x).backward()
    with pytest.raises(compiler.CompileError) as error:
        turnout.autograd.grad(compiled(x), x, create_graph=True)
    assert str(error.value) == (
        "compile: function draws random numbers, so its backward cannot be recorded: the numbers would be others\n"
        "  to fix  call the function itself where create_graph=True is wanted"
    )
    compiled = turnout.compile(lambda x, y: (x * 2 + y).sum(), engine="eager", strict=True)
    y = vector(2)
    compiled(x, y)
    total = compiled(x, y)
    y.add_(1)
    with pytest.raises(compiler.CompileError) as error:
        turnout.autograd.grad(total, x, create_graph=True)
    assert str(error.value) == (
        "compile: an input of function was changed in place after the call, so its backward cannot be recorded\n"
        "  to fix  write into a clone(), or after backward()"
    )


class Twenty(turnout.autograd.Function):
    """A gradient that is not that of the operators; `what` is how the result is made."""

    @staticmethod
    def forward(ctx: Any, x: Any, what: str) -> Any:
        if what == "written":
            ctx.mark_dirty(x.mul_(2))
        return {"new": x.round(), "input": x, "written": x, "view": x.view(-1)}[what]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 20, None


def of_hooked_module(x: Any) -> Any:
    module = turnout.nn.Tanh()
    module.register_full_backward_hook(lambda module, of_inputs, of_outputs: (of_inputs[0] * 3,))
    return module(x) + x


RECORD_THEMSELVES: list[Callable[[Any], Any]] = [
    *[partial(lambda what, x: Twenty.apply(x * 1, what) * 2 + x, what) for what in ("new", "input", "written", "view")],
    of_hooked_module,
    lambda x: x[1:],
    lambda x: turnout.prod(x),
    lambda x: (x * 2).mul_(3) if x.sum else x,
    lambda x: (lambda y: (y, y[0]))(turnout.zeros(3).copy_(x)),
]


@pytest.mark.parametrize("function", RECORD_THEMSELVES)
def test_other_calls_record_as_the_function_does(function: Any) -> None:
    compiled = turnout.compile(function, engine="eager", strict=True)
    for values in ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0], [2.0, 1.0, 1.0]):
        grads = []
        for call in (compiled, function):
            x = turnout.tensor(values, requires_grad=True)
            leaves = trees.flatten(call(x))[0]
            sum(each.sum() for each in leaves).backward()
            grads.append(x.grad.tolist())
        assert grads[0] == grads[1]


def test_a_check_of_numbers_fails_at_the_first_call_of_a_size() -> None:
    compiled = turnout.compile(lambda x, q: x.quantile(q) * 2, engine="eager", strict=True, dynamic=True)
    half, wrong = turnout.tensor(0.5), turnout.tensor(2.0)
    for n in (3, 4, 5):
        x = turnout.arange(float(n))
        if n > 3:
            with pytest.raises(ArgumentError, match=r"^quantile: every q must lie between 0 and 1$"):
                compiled(x, wrong)
        assert [compiled(x, half).item() for _ in range(2)] == [n - 1.0] * 2
    assert len({each.sizes for each in compiler.signatures(compiled)}) == 1
