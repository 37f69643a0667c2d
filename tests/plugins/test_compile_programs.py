"""Random programs of compiled functions, and engines with faults, which these programs must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout import compiler
from turnout.errors import AliasError, TurnoutError
from turnout_conformance.compiled import DrawnSizes, Outcome, SizedOutcome, outcome, tensors_of
from turnout_tracer.compiling import dynamic, eager
from turnout_tracer.nodes import Ref, mapped
from turnout_tracer.sizes import Sizes


def test_compiled_random_programs_give_the_same_bits(seeds: Callable[..., range]) -> None:
    ran = 0
    chosen = seeds(12, many=4000)
    for seed in chosen:
        outcome = Outcome(seed, "eager", "cpu")
        assert not outcome.problem, f"seed {seed}: {outcome.problem}\n{outcome.text}"
        ran += outcome.ran
    assert ran >= len(chosen)


def test_programs_of_several_sizes_give_the_same_bits_by_few_traces(seeds: Callable[..., range]) -> None:
    traced = 0
    chosen = seeds(8, many=2000)
    for seed in chosen:
        outcome = SizedOutcome(seed, "eager", "cpu")
        assert not outcome.problem, f"seed {seed}: {outcome.problem}\n{outcome.text}"
        traced += outcome.traced
    assert traced >= 2 * len(chosen)


def of_row_major_values(graph: Any, examples: list[Any], options: dict[str, Any]) -> Callable[..., list[Any]]:
    """An engine whose values have no strides, as those of XLA: each is a row-major tensor with memory of its own."""

    def run(*given: Any) -> list[Any]:
        values: dict[int, Any] = {i: owned(each) for i, each in enumerate(given)}
        values.update({each.ref.index: owned(each.tensor) for each in graph.constants})
        for node in graph.nodes:
            made = node.op.call_boxed(mapped(lambda each: values[each.index] if isinstance(each, Ref) else each, node.args))
            several = isinstance(node.outputs, (list, tuple))
            outputs, results = (node.outputs, made) if several else ([node.outputs], [made])
            values.update({output.index: owned(each) for output, each in zip(outputs, results, strict=True)})
        return [values[each.index].clone() for each in graph.results]

    return run


def owned(value: Any) -> Any:
    if not isinstance(value, turnout.Tensor):
        return value
    return value.detach().clone(memory_format="contiguous_format")


WRITES: dict[str, Callable[[Any], Any]] = {
    "all": lambda a: a.mul_(2),
    "a row": lambda a: a[0].fill_(7),
    "a column": lambda a: a[:, -1].add_(a[:, 0]),
    "a diagonal": lambda a: a.diagonal().mul_(3),
    "at an index": lambda a: a.index_put_((turnout.tensor([0, 1]),), turnout.ones(())),
    "a copy": lambda a: a.copy_(turnout.arange(float(a.numel())).reshape(a.shape)),
    "nothing": lambda a: None,
}
PAIRS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "transposed first": lambda x: (x.t(), x),
    "transposed last": lambda x: (x, x.t()),
    "a part last": lambda x: (x.t(), x.t()[1:]),
    "turned": lambda x: (x.view(2, 2, 3).permute(2, 0, 1), x.view(2, 2, 3).permute(2, 0, 1)[1]),
    "flat": lambda x: (x.t(), x.view(-1)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_engines_may_have_values_without_strides(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "compile", of_row_major_values)
    for write in WRITES.values():

        def function(a: Any, b: Any, write: Any = write) -> Any:
            write(a)
            if b.numel() < 12:  # a part of its memory, of which as_strided may see more
                return a + 1, b * 2
            double, scattered = b * 2, turnout.as_strided_scatter(b * 2, b.new_zeros(2), (2,), (3,))
            double.as_strided((2,), (3,)).mul_(5)
            return a + 1, double, (b * 2).as_strided((2, 2), (1, 2)), turnout.as_strided_copy(b + 1, (3,), (2,)), scattered

        compiled = turnout.compile(function, engine="eager")
        for _ in range(2):
            first, second = (turnout.arange(1.0, 13.0).reshape(4, 3) for _ in range(2))
            expected = [(each.tolist(), each.stride()) for each in function(*PAIRS[pair](second))]
            assert [(each.tolist(), each.stride()) for each in compiled(*PAIRS[pair](first))] == expected
            assert first.tolist() == second.tolist()
        assert [each.calls for each in compiler.signatures(compiled)] == [1]


def test_random_programs_need_no_strides_of_values(seeds: Callable[..., range], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "compile", of_row_major_values)
    for seed in seeds(4, many=2000):
        outcome = Outcome(seed, "eager", "cpu")
        assert not outcome.problem, f"seed {seed}: {outcome.problem}\n{outcome.text}"


def with_gradients(call: Callable[..., Any], sizes: tuple[int, int]) -> tuple[list[Any], list[Any]]:
    """What a call of a program of several sizes gives, and the gradients through it, or that a write forbids them."""
    leaves = [turnout.linspace(-1, 1, sizes[0] * sizes[1]).reshape(sizes).mul(k).requires_grad_() for k in (1, 2)]
    turnout.manual_seed(1)
    found = outcome(call, tuple([leaf * 1 for leaf in leaves]), 0)
    if isinstance(found, str):
        return [found], []
    results = list(tensors_of(found))
    loss = sum(each.sum() * (i + 1) for i, each in enumerate(results) if each.requires_grad)
    values = [(each.tolist(), each.requires_grad, each.stride()) for each in results]
    if not isinstance(loss, turnout.Tensor):
        return values, []
    try:
        return values, list(turnout.autograd.grad(loss, leaves, allow_unused=True))
    except AliasError:  # the program has written what the backward needs
        return [*values, AliasError], []


@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_through_programs_are_those_of_the_function(seeds: Callable[..., range], dynamic: bool) -> None:
    nodes = 0
    chosen = seeds(10, many=1000)
    for seed in chosen:
        scope: dict[str, Any] = {"__name__": "drawn"}
        text = DrawnSizes(seed).text
        exec(text, scope)
        function = scope["make"](turnout.tensor([0.25, 0.5]), turnout, "cpu")
        compiled = turnout.compile(function, engine="eager", dynamic=dynamic)
        for sizes in ((3, 3), (3, 3), (5, 3), (5, 3)):
            (found, grads), (expected, others) = with_gradients(compiled, sizes), with_gradients(function, sizes)
            assert found == expected, f"seed {seed}\n{text}"
            assert len(grads) == len(others)
            for mine, other in zip(grads, others, strict=True):  # what is summed first is another matter
                assert mine is other is None or turnout.allclose(mine, other, rtol=1e-5, atol=1e-5), f"seed {seed}\n{text}"
        signatures = compiler.signatures(compiled)
        nodes += sum(any("one node" in note for note in each.notes) and each.calls > 0 for each in signatures)
    assert nodes > max(2, len(chosen) // 8)  # others have several results that record


def ignores_guards(general: dynamic.General, walk: Any) -> dict[str, Any]:
    tensors = [walk.tensors[i] for i in general._lowered.bases]
    return {name: tensors[i].shape[dim] for name, i, dim in general.sizes.of_inputs()}


def keeps_sizes(general: dynamic.General, walk: Any) -> dict[str, Any] | None:
    found: dict[str, Any] | None = NAMED(general, walk)
    if found is not None and not hasattr(general, "kept"):
        general.kept = found  # type: ignore[attr-defined]
    return None if found is None else general.kept  # type: ignore[attr-defined]


def loses_a_guard(general: dynamic.General, walk: Any) -> dict[str, Any] | None:
    general.sizes = Sizes(general.sizes.inputs, (), [each for each in general.sizes.assumptions if each.sign in (">=", "==")])
    return NAMED(general, walk)


NAMED = dynamic.General._named


@pytest.mark.parametrize("fault", [ignores_guards, keeps_sizes, loses_a_guard])
def test_programs_of_several_sizes_notice_a_faulty_trace(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic.General, "_named", fault)
    for seed in range(100):
        try:
            if SizedOutcome(seed, "eager", "cpu").problem:
                return
        except (compiler.CompileError, TurnoutError):
            return
    pytest.fail(f"no program notices {fault.__name__}")


Fault = Callable[[Any, list[Any], dict[str, Any]], list[Any]]


def floats(values: list[Any]) -> list[int]:
    """Which of some values are tensors."""
    return [i for i, each in enumerate(values) if isinstance(each, turnout.Tensor)]


def swapped_inputs(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    at = floats(values)
    if len(at) > 1:
        values[at[0]], values[at[-1]] = values[at[-1]], values[at[0]]
    return list(graph(*values))


def stale_inputs(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    kept.setdefault("values", [each.clone() if isinstance(each, turnout.Tensor) else each for each in values])
    return list(graph(*kept["values"]))


def stale_last_input(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    at = floats(values)
    if at:
        values[at[-1]] = kept.setdefault("last", values[at[-1]].clone())
    return list(graph(*values))


def stale_results(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    made = list(graph(*values))
    return [each.clone() for each in kept.setdefault("made", made)]


def constant_random_numbers(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    state = turnout.get_rng_state()
    turnout.manual_seed(0)
    made = list(graph(*values))
    turnout.set_rng_state(state)
    return made


def random_numbers_twice(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    graph(*values)
    return list(graph(*values))


def of_results(change: Callable[[list[Any]], list[Any]]) -> Fault:
    return lambda graph, values, kept: change(list(graph(*values)))


def dropped_write(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    made = list(graph(*values))
    for i in floats(values):
        if made and made[-1].shape == values[i].shape:
            made[-1] = values[i].clone()
    return made


def input_as_result(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    made = list(graph(*values))
    for i in floats(values):
        if made and made[0].shape == values[i].shape:
            made[0] = values[i]
    return made


def writes_an_input(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    made = list(graph(*values))
    for i in floats(values)[:1]:
        values[i].add_(1)
    return made


def stale_memory(graph: Any, values: list[Any], kept: dict[str, Any]) -> list[Any]:
    """Results are in memory that the next call writes again."""
    made = list(graph(*values))
    held = kept.setdefault("memory", [each.clone() for each in made])
    for to, value in zip(held, made, strict=True):
        to.copy_(value)
    return list(held)


FAULTS: dict[str, Fault] = {
    "swapped inputs": swapped_inputs,
    "inputs of the first call": stale_inputs,
    "one input of the first call": stale_last_input,
    "results of the first call": stale_results,
    "constant random numbers": constant_random_numbers,
    "random numbers drawn twice": random_numbers_twice,
    "dropped write": dropped_write,
    "a result is an input": input_as_result,
    "an input is written": writes_an_input,
    "memory of the last call": stale_memory,
    "swapped results": of_results(lambda made: made[::-1]),
    "one memory for all": of_results(lambda made: [made[0]] * len(made)),
    "two results share memory": of_results(lambda made: [*made[:-1], made[0]] if len(made) > 1 else made),
    "one bit": of_results(lambda made: [made[0] * 1.0000002, *made[1:]]),
    "one bit of the last": of_results(lambda made: [*made[:-1], made[-1] * 1.0000002]),
    "a lost sign": of_results(lambda made: [each.abs() for each in made]),
    "too few": of_results(lambda made: made[:-1]),
    "too many": of_results(lambda made: [*made, made[-1]]),
    "other dtype": of_results(lambda made: [each.double() for each in made]),
    "other shape": of_results(lambda made: [each.reshape(-1) for each in made]),
    "half precision inside": of_results(lambda made: [each.half().float() for each in made]),
    "zeros": of_results(lambda made: [each * 0 for each in made]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_random_programs_notice_a_faulty_engine(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile(graph: Any, examples: Any, options: Any) -> Any:
        kept: dict[str, Any] = {}
        return lambda *values: FAULTS[fault](graph, list(values), kept) if graph.results else graph(*values)

    monkeypatch.setattr(eager, "compile", compile)
    for seed in range(60):
        try:
            if Outcome(seed, "eager", "cpu").problem:
                return
        except compiler.CompileError:
            return
    pytest.fail(f"no program notices {fault}")
