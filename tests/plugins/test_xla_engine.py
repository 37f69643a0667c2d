"""The engine `xla`: compiled calls give what eager ones give, in memory of their own, and say what runs elsewhere."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import turnout
from failing_checks import FAILING, check_that_calls_fail_as_eager_ones
from outcomes import in_threads
from turnout import compiler
from turnout.errors import DimError
from turnout.library import Library
from turnout_conformance.cases import CASES
from turnout_conformance.making import arguments, leaf, row_major, samples, samples_of_kinds
from turnout_conformance.replays import alike, call_of, gradients_of

NEEDS_DEVICE = "jax"
pytestmark = pytest.mark.usefixtures("programs_of_all_sizes")
CLOSE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-5, "complex64": 1e-4}  # else 1e-11
# Why a compiled call may run eagerly: it needs a number, or no program could give what it gives.
EAGERLY = (
    "result depends on values", "has no known value", "DataDependentSizeError", "TraceError", "gives numbers",
    "draws random numbers and has to know numbers", "shares memory with an input",
)  # fmt: skip
F = turnout.nn.functional


@pytest.mark.parametrize(
    ("calls", "length", "is_compiled"), [(1, 4, False), (30, 1024, False), (1, 200_000, True), (70, 1, True)]
)
def test_the_sizes_of_a_graph_decide_whether_it_is_compiled(calls: int, length: int, is_compiled: bool) -> None:
    turnout.config.unset("plugin.jax.compile_from")

    def function(x: Any) -> Any:
        for _ in range(calls):
            x = x.abs()
        return x.t()  # a view is no work

    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    x = turnout.linspace(-1, 1, length)
    for _ in range(3):
        assert compiled(x).tolist() == function(x).tolist()
    [entry] = compiled.entries.values()
    assert (entry.program is not None) == is_compiled
    if is_compiled:
        assert entry.program.calls == 2
    else:
        assert compiler.explain(compiled).splitlines()[-1] == (
            "  eager   the engine 'xla' leaves it to eager calls: a small graph is faster so: the numbers that its operators "
            f"read and write, and 4,096 for each operator, are {calls * (2 * length + 4096):,}, "
            "and plugin.jax.compile_from is 262,144"
        )


def test_calls_of_a_small_graph_are_known_by_their_sizes() -> None:
    turnout.config.unset("plugin.jax.compile_from")

    class Layer:
        def __init__(self) -> None:
            self.weight, self.scale = turnout.ones(4, 4), 2.0

        def __call__(self, x: Any) -> Any:
            return x @ self.weight * self.scale

    layer, x = Layer(), turnout.ones(1, 4)
    compiled: Any = turnout.compile(layer, engine="xla", strict=True)
    for _ in range(3):
        compiled(x)
    [small] = compiled.entries.values()
    guards = small.guards
    layer.weight = turnout.full((4, 4), 3.0, dtype=turnout.float64).float().t()[:]  # another one of this size
    layer.weight.requires_grad_()
    found = compiled(x)
    assert found.tolist() == [[24.0] * 4]
    assert found.requires_grad
    assert (small.guards, len(compiled.entries)) == (guards, 1)
    layer.scale = 3.0
    assert compiled(x).tolist() == [[36.0] * 4]
    assert len(compiled.entries) == 2
    layer.weight, x = turnout.ones(4, 200_000), turnout.ones(1, 4)
    for _ in range(3):
        assert compiled(x).sum().item() == 2_400_000
    assert [entry.program is not None for entry in compiled.entries.values()] == [False, False, True]


def compiled_and_eager(case: Any, function: Any, sample: Any, dtype: str, make: Any) -> tuple[Any, Any, Any]:
    compiled: Any = turnout.compile(function, engine="xla")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        turnout.manual_seed(1)
        expected = function(*arguments(sample, dtype, make))
        compiled(*arguments(sample, dtype, make))
        turnout.manual_seed(1)
        return compiled, compiled(*arguments(sample, dtype, make)), expected


@pytest.mark.parametrize("part", range(24))
def test_operator_cases_compiled_by_xla_agree(part: int) -> None:
    for case in CASES[part::24]:
        for sample, dtype in samples_of_kinds(case, "cpu"):
            compiled, found, expected = compiled_and_eager(case, call_of(case), sample, dtype, row_major("cpu"))
            assert alike(found, expected, CLOSE.get(dtype, 1e-11)), (case.op, dtype, sample)
            [entry] = compiled.entries.values()
            assert entry.program is not None or any(reason in entry.why for reason in EAGERLY), (case.op, entry.why)


@pytest.mark.parametrize("part", range(8))
def test_gradients_compiled_by_xla_agree(part: int) -> None:
    for case in [c for c in CASES if c.differentiable and "float32" in c.dtypes][part::16]:
        for sample, dtype in samples(case, "cpu", ("float32",)):
            _, found, expected = compiled_and_eager(case, gradients_of(case), sample, dtype, leaf("cpu"))
            assert alike(found, expected, 1e-4), (case.op, dtype, sample)


@pytest.mark.parametrize("part", range(4))
def test_operator_cases_compiled_on_jax_agree(part: int) -> None:
    for case in CASES[part::32]:
        for sample, dtype in list(samples_of_kinds(case, "jax"))[:1]:
            _, found, expected = compiled_and_eager(case, call_of(case), sample, dtype, row_major("jax"))
            assert alike(found, expected, CLOSE.get(dtype, 1e-11)), (case.op, dtype, sample)


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_training_agrees(device: str) -> None:
    def step(weights: list[Any], x: Any, y: Any) -> Any:
        loss = F.cross_entropy((x @ weights[0]).relu() @ weights[1], y)
        loss.backward()
        with turnout.no_grad():
            for w in weights:
                w.sub_(w.grad, alpha=0.5)
                w.grad = None
        return loss.detach()

    def train(function: Any) -> tuple[list[float], list[Any]]:
        turnout.manual_seed(0)
        weights = [turnout.randn(6, 8).to(device).requires_grad_(), turnout.randn(8, 3).to(device).requires_grad_()]
        x, y = turnout.randn(16, 6).to(device), turnout.randint(0, 3, (16,)).to(device)
        return [function(weights, x, y).item() for _ in range(8)], [w.tolist() for w in weights]

    compiled: Any = turnout.compile(step, engine="xla", strict=True)
    found, expected = train(compiled), train(step)
    assert found[0] == pytest.approx(expected[0], rel=1e-5)
    for ours, theirs in zip(found[1], expected[1], strict=True):
        turnout.testing.assert_close(turnout.tensor(ours), turnout.tensor(theirs), rtol=1e-4, atol=1e-5)
    [entry] = compiled.entries.values()
    assert entry.program.calls == 7
    assert entry.program.notes == ()


def test_results_on_cpu_are_writable_memory_of_their_own() -> None:
    def function(x: Any) -> tuple[Any, ...]:
        return x.clone(), x.clone(), x + 0, turnout.ones(3), turnout.ones(3), turnout.empty(0), x.bfloat16(), x > 1

    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    x = turnout.tensor([1.0, 2.0, 3.0])
    compiled(x)
    first, second = compiled(x), compiled(x)
    places = [each.data_ptr() for each in (x, *first, *second) if each.numel()]
    assert len(set(places)) == len(places)
    expected = [each.tolist() for each in function(x)]
    for each in first:
        if each.numel():
            each.zero_()
    assert [each.tolist() for each in second] == expected
    assert x.tolist() == [1.0, 2.0, 3.0]
    x.fill_(5)  # what was computed does not see it
    assert second[0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("dtype", [turnout.float32, turnout.int64, turnout.bfloat16, turnout.uint8, turnout.complex64])
def test_what_is_written_in_place_after_a_call_goes_into_the_next_one(dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return turnout.logical_not(x), x[1:] == y[1:]

    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    halves: Any = turnout.compile(lambda x: (x.clone(), x.clone()), engine="xla", strict=True)
    given = turnout.tensor([1, 0, 1, 0]).to(dtype)
    for _ in range(3):
        x, y = halves(given)  # over values of XLA
        for i in range(3):
            x[i], y[i] = 1 - i % 2, i % 2
            expected = function(x, y)
            assert [each.tolist() for each in compiled(x, y)] == [each.tolist() for each in expected]
            view = x[::2]  # another part of the same memory
            assert [each.tolist() for each in compiled(view, view)] == [each.tolist() for each in function(view, view)]
            assert [each.tolist() for each in compiled(x.t(), y)] == [each.tolist() for each in expected]


def test_a_written_input_takes_over_the_memory_of_its_new_value() -> None:
    def step(weights: list[Any], x: Any) -> Any:
        for each in weights:
            each.mul_(0.5).add_(x)
        return weights[0].sum()

    compiled: Any = turnout.compile(step, engine="xla", strict=True)
    length = 200_000  # so many that XLA computes in other threads, and holds what goes in for longer than the call
    weights, theirs = [[turnout.full((length,), float(i)) for i in range(3)] for _ in range(2)]
    x, taken = turnout.linspace(0, 1, length), 0
    for _ in range(10):
        places = [each.data_ptr() for each in weights]
        assert compiled(weights, x).item() == pytest.approx(step(theirs, x).item(), rel=1e-4)
        taken += sum(a != each.data_ptr() for a, each in zip(places, weights, strict=True))
        for ours, other in zip(weights, theirs, strict=True):
            turnout.testing.assert_close(ours, other, rtol=1e-6, atol=1e-6)
    assert taken >= 18  # of 27: nobody else sees the memory


def test_a_number_among_truth_values_is_no_warning() -> None:
    compiled: Any = turnout.compile(lambda x: x.tril(2), engine="xla", strict=True)
    x = turnout.ones(64, 64) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert turnout.equal(compiled(x), x.tril(2))


def unaligned(held: Callable[[Any, Any], Any] = lambda x, array: None, behind: int = 16) -> tuple[Any, Any]:
    """A tensor that begins so many bytes behind a multiple of 64, so that XLA would copy its memory, and what sees that too."""
    room = np.zeros(4 * LENGTH + 128, np.uint8)
    start = behind - room.ctypes.data % 64
    array = room[start % 64 :][: 4 * LENGTH].view(np.float32)
    array[:] = np.arange(LENGTH)
    x = turnout.from_numpy(array)
    assert x.data_ptr() % 64 == behind
    return x, held(x, array)


LENGTH = 50_000


def check_convolution(function: Callable[..., Any], given: list[Any]) -> None:
    """Compiled, a convolution and its gradients are those of the eager calls."""

    def gradients(x: Any, w: Any, b: Any) -> Any:
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        (function(x, w, b) ** 2).sum().backward()
        return x.grad, w.grad

    for each in (function, gradients):
        compiled: Any = turnout.compile(each, engine="xla", strict=True)
        for _ in range(2):
            turnout.testing.assert_close(compiled(*given), each(*given), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "kernel", "options"),
    [
        ((2, 5, 9, 8), (3, 2), {}), ((1, 4, 11), (3,), {"dilation": 2}),
        ((2, 5, 9, 8), (3, 3), {"stride": (2, 3), "padding": (1, 2)}),
        ((2, 3, 5, 6, 7), (2, 3, 2), {"stride": 2, "padding": 1, "dilation": (1, 2, 1)}), ((1, 4, 3, 3), (3, 3), {}),
        ((2, 4, 40, 20), (13, 11), {}),
    ],
)  # fmt: skip
def test_convolutions_of_each_channel_alone_agree(shape: Any, kernel: Any, options: Any) -> None:
    call = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(kernel)]

    def function(x: Any, w: Any, b: Any) -> Any:
        return call(x, w, b, groups=shape[1], **options)

    turnout.manual_seed(0)
    given = [turnout.randn(shape), turnout.randn(shape[1], 1, *kernel), turnout.randn(shape[1])]
    check_convolution(function, given)


@pytest.mark.parametrize(
    ("shape", "outside", "options", "is_product"),
    [
        ((2, 5, 9, 8), 7, {}, True), ((1, 4, 11), 3, {"stride": 2}, True), ((2, 3, 5, 6, 7), 4, {"stride": (2, 1, 3)}, True),
        ((40, 4, 3, 3), 6, {}, True), ((0, 4, 3, 3), 6, {}, True), ((2, 5, 5, 5), 6, {"padding": 1}, False),
        ((2, 4, 5, 5), 6, {"groups": 2}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_transposed", [False, True])
def test_convolutions_with_one_place_agree(shape: Any, outside: int, options: Any, is_product: bool, is_transposed: bool) -> None:
    import jax

    call = getattr(F, f"conv{'_transpose' * is_transposed}{len(shape) - 2}d")
    groups = options.get("groups", 1)

    def function(x: Any, w: Any, b: Any) -> Any:
        return call(x, w, b, **options)

    turnout.manual_seed(0)
    ends = (shape[1], outside // groups) if is_transposed else (outside, shape[1] // groups)
    given = [turnout.randn(shape), turnout.randn(*ends, *[1] * (len(shape) - 2)), turnout.randn(outside)]
    check_convolution(function, given)
    traced = jax.jit(lambda *given: function(*map(turnout.as_tensor, given)).array.value())
    text = traced.lower(*[each.numpy() for each in given]).as_text()
    assert ("stablehlo.convolution" not in text) == (is_product and not (is_transposed and "stride" in options))


@pytest.mark.parametrize(
    ("shape", "kernel", "options", "is_product"),
    [
        ((2, 3, 9, 8), (3, 2), {}, True), ((3, 1, 11), (3,), {"dilation": 2, "padding": 1}, True),
        ((2, 3, 15, 18), (7, 5), {"stride": (2, 3), "padding": (3, 1)}, True),
        ((2, 2, 5, 6, 7), (2, 3, 1), {"stride": 2, "padding": 1, "dilation": (1, 2, 1)}, True), ((0, 3, 4, 4), (3, 3), {}, True),
        ((2, 4, 6, 6), (3, 3), {"groups": 2}, False), ((2, 5, 6, 6), (3, 3), {}, False), ((30, 3, 60, 60), (7, 7), {}, False),
    ],
)  # fmt: skip
def test_convolutions_of_few_channels_agree(shape: Any, kernel: Any, options: Any, is_product: bool) -> None:
    import jax

    call = getattr(F, f"conv{len(kernel)}d")

    def function(x: Any, w: Any, b: Any) -> Any:
        return call(x, w, b, **options)

    turnout.manual_seed(0)
    given = [turnout.randn(shape), turnout.randn(6, shape[1] // options.get("groups", 1), *kernel), turnout.randn(6)]
    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    for _ in range(2):
        turnout.testing.assert_close(compiled(*given), function(*given), rtol=1e-3, atol=1e-4)
    traced = jax.jit(lambda *given: function(*map(turnout.as_tensor, given)).array.value())
    text = traced.lower(*[each.numpy() for each in given]).as_text()
    assert ("stablehlo.convolution" not in text) == is_product


@pytest.mark.parametrize("behind", [0, 16])
def test_a_large_tensor_is_moved_to_a_value_of_xla(behind: int) -> None:
    from turnout_jax.engine import Result

    compiled: Any = turnout.compile(lambda x: x * 2, engine="xla", strict=True)
    x, _ = unaligned(behind=behind)
    with turnout.enable_grad():
        loss = (x.clone().requires_grad_() * x).sum()  # saves it
    version = x.version()
    for _ in range(3):
        assert turnout.equal(compiled(x), x * 2)
    assert isinstance(x.array.base, Result)
    place = x.data_ptr()
    assert place % 64 == 0
    assert x.version() == version
    assert turnout.equal(x, turnout.arange(LENGTH).float())
    loss.backward()
    x.add_(1)
    assert turnout.equal(compiled(x), x * 2)
    assert x.data_ptr() == place


@pytest.mark.parametrize(
    "held",
    [
        lambda x, array: array, lambda x, array: array[:3], lambda x, array: x.numpy(), lambda x, array: x.detach(),
        lambda x, array: x[1:], lambda x, array: memoryview(array), lambda x, array: x.view(turnout.int32),
    ],
)  # fmt: skip
def test_a_tensor_whose_memory_others_see_stays_where_it_is(held: Any) -> None:
    compiled: Any = turnout.compile(lambda x: x * 2, engine="xla", strict=True)
    x, other = unaligned(held)
    place = x.data_ptr()
    for i in range(3):
        x[2] = i
        assert turnout.equal(compiled(x), x * 2)
    assert x.data_ptr() == place
    assert other is not None
    strided, _ = unaligned()
    matrix = strided.reshape(100, -1).t()
    compiled_again: Any = turnout.compile(lambda x: x * 2, engine="xla", strict=True)
    for _ in range(3):
        assert turnout.equal(compiled_again(matrix), matrix * 2)


def test_a_result_that_numpy_gave_another_shape_in_place_is_read_in_that_shape() -> None:
    compiled = turnout.compile(lambda x: x * 2, engine="xla", strict=True)
    for _ in range(3):
        result = compiled(turnout.arange(6.0))
    seen = result.numpy()
    seen.shape = (2, 3)
    for _ in range(3):
        assert compiled(turnout.from_numpy(seen)).tolist() == [[0.0, 4.0, 8.0], [12.0, 16.0, 20.0]]


def test_no_write_of_another_thread_is_lost_where_a_tensor_moves() -> None:
    compiled: Any = turnout.compile(lambda x: x.sum(), engine="xla", strict=True)
    for _ in range(3):
        compiled(unaligned()[0])
    moved = 0
    for _ in range(30):
        x, _ = unaligned()
        expected = turnout.arange(LENGTH).float() + 20

        def write(x: Any = x) -> None:
            for _ in range(20):
                x.add_(1)

        in_threads(write, lambda x=x: [compiled(x) for _ in range(20)])
        assert turnout.equal(x, expected)
        moved += x.data_ptr() % 64 == 0
    assert moved


def test_a_program_for_cpu_begins_in_the_thread_that_calls_it() -> None:
    import jax
    from jax.sharding import SingleDeviceSharding

    from turnout_jax.engine import HOST

    seen: list[int] = []

    def noted(x: Any) -> Any:
        seen.append(threading.get_ident())
        return np.asarray(x)

    x = jax.ShapeDtypeStruct((3,), np.float32, sharding=SingleDeviceSharding(HOST))
    run = jax.jit(lambda x: jax.pure_callback(noted, x, x)).lower(x).compile()
    for _ in range(20):
        run(np.ones(3, np.float32)).block_until_ready()
    assert set(seen) == {threading.get_ident()}
    assert HOST not in jax.devices(), "other code of the process would find it"
    assert jax.numpy.ones(3).devices() == {jax.devices()[0]}


def host_of(result: Any) -> str:
    from turnout_jax import engine

    return {engine.HOST: "shared", engine.HOST_OF_ONE: "one thread"}[type(result.array.base).host]


@pytest.mark.parametrize(
    ("function", "shape", "host"),
    [
        (lambda x: x @ x, (100, 100), "one thread"), (lambda x: x @ x, (200, 200), "shared"),
        (lambda x: x * 2, (1 << 20,), "one thread"), (lambda x: x.exp(), (1 << 20,), "shared"),
        (lambda x: x.sin(), (0, 3), "one thread"), (lambda x: turnout.special.erfcx(x), (4, 4), "one thread"),
    ],
)  # fmt: skip
def test_a_program_of_little_arithmetic_runs_on_one_thread(function: Any, shape: Any, host: str) -> None:
    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    turnout.manual_seed(0)
    x = turnout.rand(shape)
    compiled(x)
    found = compiled(x)
    assert host_of(found) == host
    turnout.testing.assert_close(found, function(x), rtol=1e-3, atol=1e-3)


def test_what_one_host_gives_goes_into_the_other() -> None:
    few: Any = turnout.compile(lambda w, x: (w[0] * x, w + 1), engine="xla", strict=True)
    many: Any = turnout.compile(lambda w: w @ w / 256, engine="xla", strict=True)
    turnout.manual_seed(0)
    x, w = turnout.rand(256), turnout.rand(256, 256)
    weight, place = turnout.rand(256, 256), 0
    for i in range(6):
        weight[1, i] = i  # also where both hosts have a value over the memory
        expected = weight @ weight / 256
        first, more = few(weight, x)
        turnout.testing.assert_close(first, weight[0] * x)
        turnout.testing.assert_close(many(weight), expected, rtol=1e-4, atol=1e-4)
        turnout.testing.assert_close(many(more), more @ more / 256, rtol=1e-4, atol=1e-4)
        product = many(w)
        product.add_(1)
        turnout.testing.assert_close(few(product, x)[1], product + 1)
        if i:
            assert (host_of(more), host_of(many(more)), host_of(product)) == ("one thread", "shared", "shared")
            assert weight.data_ptr() == place or i < 2, "each turn copies it"
        place = weight.data_ptr()


@pytest.mark.parametrize("given", [None, "3"])
def test_the_environment_is_what_it_was_once_a_host_is_made(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_jax import engine

    seen = []

    def make(**options: Any) -> Any:
        seen.append(os.environ.get("NPROC"))
        raise RuntimeError("no client")

    monkeypatch.setattr(engine.xla_client, "make_cpu_client", make)
    monkeypatch.setenv("NPROC", given or "")
    if given is None:
        monkeypatch.delenv("NPROC")
    for threads in (None, "1"):
        with pytest.raises(RuntimeError, match="no client"):
            engine.new_host(threads)
        assert os.environ.get("NPROC") == given
    assert seen == [given, "1"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not list threads")
def test_xla_reads_how_many_threads_a_host_has() -> None:
    from turnout_jax.engine import new_host

    def threads(count: str) -> tuple[Any, int]:
        before = len(os.listdir("/proc/self/task"))
        return new_host(count), len(os.listdir("/proc/self/task")) - before

    (_, one), (_, nine) = threads("1"), threads("9")
    assert 0 < one <= nine - 8


def test_a_callback_runs_no_program() -> None:
    # It holds a thread of the program that called it. A program of its own would wait for one: here, for the only one.
    from turnout_jax.engine import Result

    inner: Any = turnout.compile(lambda x: (x.sin() + F.dropout(x, 0.5) * 0, x.sort(0)[0] @ x), engine="xla", strict=True)
    x, seen, fails = turnout.linspace(0, 1, 64).reshape(8, 8), [], False
    for _ in range(3):
        expected = inner(x)
    assert isinstance(expected[0].array.base, Result)

    def kernel(x: Any, number: int) -> Any:
        made = inner(x)
        seen.append([isinstance(each.array.base, Result) for each in made])
        if fails:
            raise ValueError("no number")
        return made[0] + made[1] + number

    with Library("callbacks", "DEF") as library:
        library.define("asks(Tensor x, int number) -> Tensor")
        library.impl("asks", kernel, "CPU")
        library.impl("asks", lambda x, number: turnout.empty_like(x), "Meta")
        asks = turnout.ops.callbacks.asks
        compiled: Any = turnout.compile(lambda x: turnout.stack([asks(x, i) for i in range(8)]), engine="xla")
        for _ in range(5):
            found = compiled(x)
        [entry] = compiled.entries.values()
        assert entry.program.notes == ("callbacks::asks runs on cpu, in a callback",)
        turnout.testing.assert_close(found, turnout.stack([sum(expected) + i for i in range(8)]))
        assert len(seen) >= 5 * 8
        assert not any(map(any, seen[8:]))
        fails = True
        with pytest.raises(Exception, match="no number"):
            compiled(x)
    assert isinstance(inner(x)[0].array.base, Result)


def test_what_has_no_row_runs_on_cpu_and_is_noted() -> None:
    def function(x: Any, i: Any, z: Any) -> Any:
        return turnout.special.erfcx(x) * 2, turnout.linalg.inv(x.reshape(2, 2)), turnout.bitwise_or(i, 1 << 40), z.conj().abs()

    compiled: Any = turnout.compile(function, engine="xla")
    given = turnout.tensor([1.0, 2.0, 3.0, 5.0], dtype=turnout.float64), turnout.tensor([1 << 50]), turnout.tensor([3 + 4j])
    for _ in range(2):
        found = compiled(*given)
    turnout.testing.assert_close(found, function(*given))
    assert "  note    aten::special_erfcx runs on cpu, in a callback\n" in compiler.explain(compiled)


def test_64_bits_come_through_a_callback() -> None:
    compiled: Any = turnout.compile(lambda x: turnout.special.zeta(x, 2.0), engine="xla")
    x = turnout.linspace(2, 3, 5000, dtype=turnout.float64)  # so many that XLA has another thread call
    for _ in range(2):
        found = compiled(x)
    turnout.testing.assert_close(found, turnout.special.zeta(x, 2.0), rtol=1e-14, atol=0.0)


def test_64_bits_come_out_of_a_callback_to_which_none_go_in() -> None:
    def function(x: Any) -> Any:
        return turnout.linalg.matrix_rank(x), turnout.special.zeta(x, 2.0).double() * 0.1

    compiled: Any = turnout.compile(function, engine="xla")
    x = turnout.linspace(2, 3, 4).reshape(2, 2)
    for _ in range(2):
        found = compiled(x)
    assert [each.dtype for each in found] == [each.dtype for each in function(x)]
    turnout.testing.assert_close(found, function(x))
    [entry] = compiled.entries.values()
    assert entry.program.notes


def test_an_index_that_is_out_of_bounds_is_an_error_as_in_eager_calls() -> None:
    x, inside, outside = turnout.arange(5.0), turnout.tensor([0, 4]), turnout.tensor([0, 5])
    functions = {
        "index": lambda i: x[i],
        "gather": lambda i: x.gather(0, i),
        "embedding": lambda i: F.embedding(i, x.reshape(5, 1)),
        "index_add": lambda i: x.index_add(0, i, turnout.ones(2)),
        "nll_loss": lambda i: F.nll_loss(x.reshape(1, 5).expand(2, 5), i),
    }
    for name, function in functions.items():
        compiled: Any = turnout.compile(function, engine="xla", strict=True)
        for _ in range(2):
            assert compiled(inside).tolist() == function(inside).tolist(), name
        with pytest.raises(DimError) as caught:
            compiled(outside)
        with pytest.raises(DimError) as expected:
            function(outside)
        assert str(caught.value) == str(expected.value), name


def test_a_program_that_is_traced_again_is_the_same() -> None:
    import jax

    compiled: Any = turnout.compile(lambda x: x + turnout.ones(3) + turnout.special.erfcx(x), engine="xla", strict=True)
    x = turnout.tensor([1.0, 2.0, 3.0])
    found = [compiled(x).tolist() for _ in range(2)]
    jax.clear_caches()
    assert compiled(x).tolist() == found[1]


@pytest.mark.parametrize("name", FAILING)
def test_what_must_hold_of_numbers_is_checked_by_the_program(name: str) -> None:
    check_that_calls_fail_as_eager_ones("xla", name)


def test_what_could_draw_and_does_not_leaves_the_generator_alone() -> None:
    still: Any = turnout.compile(lambda x: F.dropout(x, 0.5, False) + 1, engine="xla", strict=True)
    state = turnout.get_rng_state()
    assert [still(turnout.ones(100)).sum().item() for _ in range(2)] == [200.0, 200.0]
    assert turnout.get_rng_state() == state
    q = turnout.linspace(0, 1, 24).reshape(1, 2, 3, 4)
    compiled: Any = turnout.compile(lambda q: F.scaled_dot_product_attention(q, q, q), engine="xla", strict=True)
    for _ in range(2):
        found = compiled(q)
    turnout.testing.assert_close(found, F.scaled_dot_product_attention(q, q, q))


def test_threads_compile_and_call() -> None:
    compiled: Any = turnout.compile(lambda x, n: (x * n).sin().sum(0), engine="xla", strict=True)
    wrong: list[Any] = []

    def work(i: int) -> None:
        for n in range(6):
            x = turnout.full((4, 300), float(i))
            if not turnout.allclose(compiled(x, n), (x * n).sin().sum(0), atol=1e-5):
                wrong.append((i, n))

    in_threads(*[partial(work, i) for i in range(8)])
    assert not wrong


def test_a_call_that_is_left_to_eager_ones_is_known_by_sizes_alone() -> None:
    state = turnout.ones(3, requires_grad=True)
    (state * 2).sum().backward()
    graph = turnout.trace(lambda x: x * 2 + state)(turnout.ones(3))
    held = [turnout.ones(3, requires_grad=True)]
    (held[0] * 2).sum().backward()
    compiled: Any = turnout.compile(lambda x, held: graph(x) + held[0], engine="xla", strict=True)
    with turnout.config.override({"plugin.jax.compile_from": 10**9}):
        for _ in range(3):
            compiled(turnout.ones(3), held)
        [entry] = compiled.entries.values()
        known = entry.guard
        assert known((turnout.ones(3), held), {}) is not None
        held[0].grad = None
        graph.state.clear()
        with turnout.no_grad():
            assert known((turnout.ones(3).double(), held), {}) is not None
        for other in (
            (turnout.ones(4), held),
            (turnout.ones(3), [turnout.ones(4)]),
            (turnout.ones(3), (held[0],)),
            (turnout.ones(3),),
        ):
            assert known(other, {}) is None
