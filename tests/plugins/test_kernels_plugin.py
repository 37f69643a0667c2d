"""Compiled kernels: accuracy of each function, layouts, threads, instructions, and what is left to the kernels below."""

from __future__ import annotations

import itertools
import os
import pkgutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.special
from turnout.nn import functional as F

import turnout
from turnout import config
from turnout.explanation import explain
from turnout.library import Library
from turnout_arrays.random import random_bits
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.contract import misfit
from turnout_aten.tensor.random import default_generator
from turnout_cpu.kernels import kernels as rows_of_cpu
from turnout_cpu.pool import Pool

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

import turnout_kernels
from turnout_kernels import native, pointwise
from turnout_kernels.table import FAMILIES, kernels

RNG = np.random.default_rng(7)


def test_every_module_that_has_rows_is_in_the_table() -> None:
    modules = [import_module(f"turnout_kernels.{each.name}") for each in pkgutil.iter_modules(turnout_kernels.__path__)]
    assert {m.__name__ for m in modules if hasattr(m, "KERNELS_BY_OPERATOR")} == {m.__name__ for m in FAMILIES}


def sweep(low: float, high: float, count: int = 400_000) -> Any:
    """float32 numbers of every size between two bounds, with special values."""
    even = np.linspace(low, high, count)
    small = np.concatenate([s * np.logspace(-38, 0, 20_000) for s in (-1, 1)])
    special = np.array([0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan])
    made = np.concatenate([even, small[(small >= low) & (small <= high)], special])
    return made.astype(np.float32)


def ulps(found: Any, exact: Any) -> float:
    """The largest distance in units in the last place of float32. nan and infinities have to agree."""
    rounded = exact.astype(np.float32)
    finite = np.isfinite(rounded)
    assert np.array_equal(np.isnan(found), np.isnan(rounded))
    assert np.array_equal(found[np.isinf(rounded)], rounded[np.isinf(rounded)])
    step = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    return float(np.max(np.abs(found[finite].astype(np.float64) - exact[finite]) / step))


def gelu(x: Any) -> Any:
    return x * scipy.special.ndtr(x)


# fmt: off
ACCURACY = {  # function -> (exact in float64, lowest, highest, units in the last place)
    "exp":       (np.exp, -100, 88.5, 1.0),
    "log":       (np.log, 1e-38, 100, 1.0),
    "tanh":      (np.tanh, -12, 12, 2.0),
    "erf":       (scipy.special.erf, -6, 6, 2.0),
    "sigmoid":   (scipy.special.expit, -80, 80, 3.0),
    "silu":      (lambda x: x * scipy.special.expit(x), -80, 80, 3.5),
    "rsqrt":     (lambda x: 1 / np.sqrt(x), 1e-38, 100, 1.5),
    "log1p":     (np.log1p, -0.9999, 100, 3.0),
    "expm1":     (np.expm1, -20, 88, 4.0),
    "mish":      (lambda x: x * np.tanh(np.logaddexp(0, x)), -80, 80, 5.0),
}
# fmt: on


@pytest.mark.parametrize("name", ACCURACY)
def test_a_function_is_within_its_units_in_the_last_place_with_all_instructions(name: str, instructions: str):
    exact, low, high, most = ACCURACY[name]
    x = sweep(low, high)
    if low > 0:
        x = x[(x > 0) | np.isnan(x)]
    with np.errstate(all="ignore"):
        assert ulps(pointwise.apply(name, (x,), np.empty_like(x)), exact(x.astype(np.float64))) <= most


def test_hypot_is_within_a_unit_in_the_last_place(instructions: str):
    x, y = sweep(-1e3, 1e3), sweep(-1e3, 1e3)[::-1].copy()
    with np.errstate(all="ignore"):
        exact = np.hypot(x.astype(np.float64), y.astype(np.float64))
        assert ulps(pointwise.apply("hypot", (x, y), np.empty_like(x)), exact) <= 1


def test_softplus_is_within_four_units_in_the_last_place(instructions: str):
    x = sweep(-80, 80)[:-4]
    found = pointwise.apply("softplus", (x,), np.empty_like(x), (1.0, 20.0))
    exact = np.where(x > 20, x, np.logaddexp(0, x.astype(np.float64)))
    assert ulps(found, exact) <= 4


def test_gelu_is_within_three_units_in_the_last_place_of_its_argument(instructions: str):
    x = sweep(-30, 30)[:-4]
    found = pointwise.apply("gelu", (x,), np.empty_like(x))
    assert np.max(np.abs(found - gelu(x.astype(np.float64))) / np.spacing(np.abs(x).astype(np.float32) + 1e-30)) <= 3


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8)])
def test_two_byte_floats_are_rounded_to_nearest_even_from_any_float32(dtype: str, bits: int):
    patterns = np.concatenate([np.arange(0, 1 << 32, 997, np.uint32), np.arange(1 << 16, dtype=np.uint32) << 16])
    x = patterns.view(np.float32)
    x = x[~np.isnan(x)]
    made = turnout.from_numpy(x).to(getattr(turnout, dtype))
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16) if dtype == "float16" else x.astype(made.numpy().dtype)
    assert np.array_equal(made.numpy().view(np.uint16), expected.view(np.uint16))
    back = made.to(turnout.float32).numpy()
    assert np.array_equal(back, expected.astype(np.float32))


# ---- layouts


def layouts(shape: tuple[int, ...]) -> dict[str, Any]:
    """Arrays of one shape that lie differently in memory."""
    base = RNG.standard_normal((2 * shape[0], 2 * shape[1])).astype(np.float32)
    misaligned = np.zeros(4 * shape[0] * shape[1] + 1, np.uint8)[1:].view(np.float32).reshape(shape)
    misaligned[...] = base[: shape[0], : shape[1]]
    return {
        "contiguous": np.ascontiguousarray(base[: shape[0], : shape[1]]),
        "every second": base[::2, ::2],
        "transposed": np.ascontiguousarray(base[: shape[0], : shape[1]].T).T,
        "repeated row": np.broadcast_to(base[0, : shape[1]], shape),
        "repeated number": np.broadcast_to(base[0, 0], shape),
        "misaligned": misaligned,
    }


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 513), (600, 129)])
def test_inputs_may_lie_anyhow_in_memory(shape: tuple[int, int], instructions: str):
    made = layouts(shape)
    for (_, a), (_, b), out_layout in itertools.product(made.items(), made.items(), ("contiguous", "every second", "transposed")):
        out = layouts(shape)[out_layout]
        pointwise.apply("add", (a, b), out, (1.0,))
        np.testing.assert_array_equal(out, a + b)


def test_arrays_that_do_not_begin_at_a_multiple_of_their_size_are_read():
    memory = np.zeros(4 * 100_001, np.uint8)
    x = memory[1:-3].view(np.float32)
    x[...] = RNG.standard_normal(x.shape)
    np.testing.assert_array_equal(pointwise.apply("relu", (x,), np.empty(x.shape, np.float32)), np.maximum(x, 0))


def test_an_output_may_be_an_input():
    x = turnout.randn(100_000)
    expected = x.mul(2.0).add(x)
    assert x.mul_(2.0).data_ptr() == x.data_ptr()
    y = x.clone()
    y.add_(y)
    assert turnout.equal(y, x + x)
    assert turnout.allclose(expected, x * 1.5)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_tensors_are_left_to_the_kernel_below(shape: tuple[int, ...]):
    x = turnout.ones(shape)
    for found in (F.gelu(x), x * 2, F.softmax(x, -1), x.cumsum(-1)):
        assert found.shape == x.shape


# ---- threads


def everything() -> list[Any]:
    """Results of large calls of every family."""
    turnout.manual_seed(11)
    x, m = turnout.randn(300_001), turnout.randn(700, 513)
    grid = turnout.randint(0, 513, (700, 513))
    rows = turnout.randint(0, 700, (2000,))
    image = turnout.randn(4, 32, 40, 41)
    weight = turnout.randn(32, 1, 3, 3)
    made = [x, F.gelu(x), x.sum(), x.mean(), x.norm(), m.sum(-1), m.amax(-1), F.softmax(m, -1), F.log_softmax(m, -1)]
    made += [F.layer_norm(m, (513,)), F.rms_norm(m, (513,)), m.cumsum(-1), m.cumsum(0), m.gather(1, grid)]
    made += [m.scatter_add(1, grid, m), m.index_add(0, rows, m[rows]), m[rows], m.masked_select(m > 0), (m > 0).nonzero()]
    made += [F.conv2d(image, weight, padding=1, groups=32), F.interpolate(image, scale_factor=2, mode="bilinear")]
    made += [F.dropout(x, 0.3), turnout.rand(70_000), turnout.randn(70_000), m.flip(-1), m.triu(), F.mse_loss(m, m.flip(0))]
    made += [turnout.cat([m, m.flip(0), m[:5]]), turnout.cat([m, m[:, :3].clone(), m], 1), x.to(turnout.float64)]
    pooled, at = F.max_pool2d(image, 2, return_indices=True)
    made += [pooled, at]
    channels = turnout.randn(24, 32, 3, 3).requires_grad_()
    convolved = F.conv2d(image.requires_grad_(), channels, padding=1)
    made += [F.softmax(m, 0), F.log_softmax(m, 0), *m.topk(7), m + m[0], x.half(), convolved]
    made += turnout.autograd.grad(convolved.square().sum(), [image, channels])
    for f in (lambda t: F.layer_norm(t, (513,), t[0]).sum(), lambda t: t[rows].square().sum(), lambda t: F.silu(t).sum()):
        leaf = m.clone().requires_grad_()
        made += turnout.autograd.grad(f(leaf), [leaf])
    return [t.detach().numpy().tobytes() for t in made]


def test_results_do_not_depend_on_the_number_of_threads():
    found = []
    for threads in (1, 2, 3, 7):
        with config.override({"plugin.cpu.threads": threads}):
            found.append(everything())
    assert found[0] == found[1] == found[2] == found[3]


def test_calls_from_several_threads_and_after_a_fork_finish():
    program = """
import os, threading, turnout
turnout.config.set({"plugin.cpu.threads": 2})
x = turnout.randn(500_000)
expected = x.sum().item()
def work():
    for _ in range(20):
        assert (x.sigmoid() > 0).all() and x.sum().item() == expected
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
child = os.fork()
if not child:
    work()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""
    if not hasattr(__import__("os"), "fork"):
        pytest.skip("this system has no fork")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (run.stdout, run.returncode) == ("done\n", 0), run.stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no such call")
@pytest.mark.parametrize("only_one", [False, True])
def test_threads_keep_the_processors_that_they_may_use(only_one: bool):
    program = f"""
import os, time, turnout
allowed = os.sched_getaffinity(0)
if {only_one}:
    allowed = set(sorted(allowed)[:1])
    os.sched_setaffinity(0, allowed)
turnout.config.set({{"plugin.cpu.threads": 3}})
x = turnout.randn(500_000)
expected = x.sum().item()
for _ in range(300):
    assert x.sum().item() == expected
threads = [int(each) for each in os.listdir("/proc/self/task")]
assert len(threads) >= 3
end = time.monotonic() + 60  # a thread that was woken and has not run yet is kept off one processor until it does
while any(os.sched_getaffinity(each) != allowed for each in threads):
    assert time.monotonic() < end
print("done")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (run.stdout, run.returncode) == ("done\n", 0), run.stderr


# ---- joining, copying


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_joined_tensors_are_those_of_numpy(dtype: str, dim: int):
    lengths = [3, 0, 1, 7, 2, 5, 1, 1, 4, 6]  # more than C takes at a time
    shapes = [tuple(n if d == dim % 3 else size for d, size in enumerate((21, 18, 33))) for n in lengths]
    for some in (shapes, [*shapes[:2], (0,), *shapes[2:]], shapes[3:4]):
        parts = [turnout.randint(0, 200, shape).to(getattr(turnout, dtype)) for shape in some]
        kept = [p.float().numpy() if dtype == "bfloat16" else p.numpy() for p in parts if p.shape != (0,)]
        expected = np.concatenate(kept, dim)
        across = [p if p.ndim == 1 else p.transpose(0, 1).contiguous().transpose(0, 1) for p in parts]
        for given in (parts, across):
            for threads in (1, 3):
                with config.override({"plugin.cpu.threads": threads}):
                    found = turnout.cat(given, dim)
                    out = turnout.cat(given, dim, out=turnout.empty(found.shape, dtype=found.dtype))
                assert np.array_equal((found.float() if dtype == "bfloat16" else found).numpy(), expected)
                assert turnout.equal(out, found)


def test_tensors_of_different_dtypes_are_joined_as_the_wider_one():
    whole, half = turnout.arange(9000).reshape(90, 100), turnout.ones(90, 5, dtype=turnout.float16)
    made = turnout.cat([whole, half], 1)
    assert made.dtype is turnout.float16
    assert turnout.equal(made[:, :100], whole.to(turnout.float16))
    assert bool((made[:, 100:] == 1).all())


@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
def test_floats_that_are_copied_into_wider_ones_keep_their_values(source: str):
    made = turnout.randn(70, 1003).to(getattr(turnout, source))
    for x in (made, made.t(), made[:, ::2], made[:, 1:], made[::3].transpose(0, 1)):
        for wide in {turnout.float32, turnout.float64} - {made.dtype}:
            found = x.to(wide)
            assert found.dtype is wide
            assert found.tolist() == x.tolist()


# ---- who serves a call


def test_explain_names_the_package_and_that_there_is_a_kernel_below():
    step = explain("gelu", turnout.ones(3)).chosen
    assert (step.distribution, step.kernel) == ("turnout-kernels", "gelu, or the kernel below")


def test_what_a_row_does_not_take_is_computed_by_the_kernel_below():
    whole = turnout.arange(9).reshape(3, 3)
    assert turnout.clamp(whole, 2, 5).tolist() == [[2, 2, 2], [3, 4, 5], [5, 5, 5]]
    wide = turnout.linspace(-2, 2, 100, dtype=turnout.float64)
    np.testing.assert_allclose(F.gelu(wide).numpy(), gelu(wide.numpy()), rtol=1e-14)
    half = turnout.ones(5000, dtype=turnout.complex64)
    assert half.sum().item() == 5000


@pytest.mark.parametrize("index", [-1, 600])
def test_an_index_out_of_range_is_the_error_of_the_kernel_below(index: int):
    m = turnout.randn(600, 16)
    wrong = turnout.zeros((600, 16), dtype=turnout.int64)
    wrong[599, 15] = index
    with pytest.raises(turnout.errors.DimError, match=rf"^gather: index {index} is out of bounds for a dimension of size 600$"):
        m.gather(0, wrong)
    with pytest.raises(turnout.errors.DimError, match=f"index {index} is out of bounds for a dimension of size 600"):
        m.index_select(0, wrong.reshape(-1))


def test_a_kernel_that_a_program_registers_comes_before_the_compiled_one():
    x = turnout.ones(3)
    with Library("aten", "IMPL", "CPU") as library:
        library.impl("gelu", lambda self, approximate="none": self * 7, allow_override=True)
        assert F.gelu(x).tolist() == [7, 7, 7]
        assert explain("gelu", x).chosen.distribution != "turnout-kernels"
    assert explain("gelu", x).chosen.distribution == "turnout-kernels"


def test_configuration_may_choose_the_kernel_of_cpu():
    x = turnout.ones(3)
    try:
        config.set({'kernels.choose."aten::gelu@CPU"': "turnout-cpu"})
        assert explain("gelu", x).chosen.distribution == "turnout-cpu"
    finally:
        config.unset('kernels.choose."aten::gelu@CPU"')
    assert explain("gelu", x).chosen.distribution == "turnout-kernels"


def test_without_the_plugin_everything_works():
    program = """
import turnout
from turnout.explanation import explain
turnout.config.set({"plugins.disable": ["kernels"]})
x = turnout.linspace(-3, 3, 101).requires_grad_()
y = turnout.nn.functional.silu(x).sum()
y.backward()
print(explain("silu", x.detach()).chosen.distribution, f"{y.item():.3f} {x.grad.sum().item():.3f}")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    with_plugin = program.replace('turnout.config.set({"plugins.disable": ["kernels"]})\n', "")
    other = subprocess.run([sys.executable, "-c", with_plugin], capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout.split()[0] == "turnout-cpu"
    assert other.stdout.split()[0] == "turnout-kernels"
    assert run.stdout.split()[1:] == other.stdout.split()[1:]


def test_a_gradient_that_is_composed_otherwise_has_a_second_derivative():
    x = turnout.linspace(-3, 3, 50, dtype=turnout.float64).requires_grad_()
    assert turnout.autograd.gradgradcheck(F.silu, [x])


def test_running_statistics_count_their_writes():
    mean, variance = turnout.zeros(3), turnout.ones(3)
    before = mean._version
    F.batch_norm(turnout.randn(4, 3, 5), mean, variance, training=True)
    assert mean._version > before


def test_rows_over_those_that_allocate_may_be_called_without_an_output():
    below = rows_of_cpu(Pool(lambda: 1))
    for name, row in kernels().items():
        if f"aten::{name}" in STRUCTURED and getattr(below[name], "allocates", ""):
            given, outputs, _ = STRUCTURED[f"aten::{name}"][2]
            assert not misfit(getattr(row, "fn", row), [len(given) - outputs]), name


def test_wrong_calls_of_the_extension_module_are_errors():
    x = np.ones(3, np.float32)
    with pytest.raises(ValueError, match=r"^there is no kernel 1000, or nothing to do$"):
        native._native.run(1000, (x,), (x,), (), (), 1, 1)
    with pytest.raises(ValueError, match=r"^an array has 17 dims, at most 16 are supported$"):
        native._native.run(0, (np.ones((1,) * 17),), (), (), (), 1, 1)
    with pytest.raises(ValueError, match=r"^this processor or this build has no instructions 'mmx'$"):
        native.choose_instructions("mmx")


@pytest.mark.parametrize(
    "shapes", [((5, 3, 8), (3, 8)), ((3, 8), (5, 3, 8)), ((2, 1, 40), (3, 40)), ((5, 8), (1,)), ((0, 8), (8,))]
)
def test_row_major_arrays_that_broadcast_give_the_same_bits_with_and_without_an_output(shapes: Any) -> None:
    from turnout_aten import operators as aten

    turnout.manual_seed(3)
    grad, output = (turnout.randn(shape) for shape in shapes)
    into = turnout.empty(turnout.broadcast_shapes(*shapes))
    found = aten.tanh_backward(grad, output)
    assert found.is_contiguous()
    assert turnout.equal(found, aten.tanh_backward__grad_input(grad, output, grad_input=into))
    turnout.testing.assert_close(found, grad * (1 - output * output))


def test_an_input_is_repeated_over_the_output_or_refused():
    row, column, out = np.arange(3.0, dtype="f"), np.arange(2.0, dtype="f")[:, None], np.empty((4, 2, 3), "f")
    kinds = (native.F32, native.POINTWISE["add"], *(native.F32,) * 3)
    native.run("map", (out,), (row, column), kinds, (1.0, 0.0, 0.0))
    assert np.array_equal(out, np.broadcast_to(row + column, out.shape))
    for wrong in (np.ones(2, "f"), np.ones((1, 4, 2, 3), "f"), np.ones((2, 2, 3), "f")):
        with pytest.raises(ValueError, match=r"^an input does not broadcast to the output$"):
            native.run("map", (out,), (wrong, column), kinds, (1.0, 0.0, 0.0))


# ---- normalisation and losses: against the same formulas in float64, of every layout and dtype

LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2),
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "misaligned": lambda a: misaligned(a),
}


def misaligned(a: Any) -> Any:
    """The same numbers at addresses that are no multiple of their size."""
    made = np.frombuffer(bytearray(a.nbytes + 1), np.uint8)[1:].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


def drawn(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def results(call: Any, arrays: Sequence[Any], grad: Any, dtype: str) -> list[Any]:
    """What a call gives, and its gradients with respect to all arrays, in float64."""
    leaves = [turnout.from_numpy(a).to(getattr(turnout, dtype)).requires_grad_() for a in arrays]
    made = call(*leaves)
    found = turnout.autograd.grad(made, leaves, turnout.from_numpy(grad).to(made.dtype))
    return [t.detach().to(turnout.float64).numpy() for t in (made, *found)]


def batch_norm_in_float64(x: Any, w: Any, b: Any, g: Any, mean: Any, var: Any, *, training: bool) -> list[Any]:
    axes, per = (0, 2, 3), (1, -1, 1, 1)
    x, w, b, g = (a.astype(np.float64) for a in (x, w, b, g))
    if training:
        mean, var = x.mean(axes), x.var(axes)
    rstd = 1 / np.sqrt(var + 1e-5)
    normal = (x - mean.reshape(per)) * rstd.reshape(per)
    each = g * w.reshape(per)
    inner = each
    if training:
        inner = each - each.mean(axes, keepdims=True) - normal * (each * normal).mean(axes, keepdims=True)
    return [normal * w.reshape(per) + b.reshape(per), inner * rstd.reshape(per), (g * normal).sum(axes), g.sum(axes)]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_norm_and_its_gradient_agree_with_float64(layout: str, dtype: str, training: bool, instructions: str):
    x, g = LAYOUTS[layout](drawn((3, 5, 7, 33), 1)), LAYOUTS[layout](drawn((3, 5, 7, 33), 2))
    w, b, mean, var = drawn((5,), 3), drawn((5,), 4), drawn((5,), 5), np.abs(drawn((5,), 6)) + 0.5
    if dtype == "bfloat16":
        x, g, w, b, mean, var = (
            turnout.from_numpy(np.ascontiguousarray(a)).to(turnout.bfloat16).float().numpy() for a in (x, g, w, b, mean, var)
        )
    wanted = getattr(turnout, dtype)

    def call(x: Any, w: Any, b: Any) -> Any:
        running = [turnout.from_numpy(r).to(wanted) for r in (mean, var)]
        return F.batch_norm(x, *running, w, b, training)

    tolerance = {"float32": 1e-5, "bfloat16": 2e-2, "float64": 1e-12}[dtype]
    exact = batch_norm_in_float64(x, w, b, g, mean.astype(np.float64), var.astype(np.float64), training=training)
    for made, right in zip(results(call, (x, w, b), g, dtype), exact, strict=True):
        np.testing.assert_allclose(made, right, tolerance, tolerance * np.abs(right).max())


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_of_group_norm_is_that_without_the_kernels(layout: str, groups: int, instructions: str):
    x, g = LAYOUTS[layout](drawn((2, 4, 9, 21), 1)), LAYOUTS[layout](drawn((2, 4, 9, 21), 2))
    w, b = drawn((4,), 3), drawn((4,), 4)
    found = results(lambda x, w, b: F.group_norm(x, groups, w, b), (x, w, b), g, "float32")
    for made, right in zip(found, results(lambda x, w, b: F.group_norm(x, groups, w, b), (x, w, b), g, "float64"), strict=True):
        np.testing.assert_allclose(made, right, 1e-5, 1e-5 * np.abs(right).max())


def test_batch_norm_in_training_saves_statistics_that_it_then_moves():
    x = turnout.randn(4, 3, 5, dtype=turnout.float64).requires_grad_()
    mean, var = turnout.zeros(3, dtype=turnout.float64), turnout.ones(3, dtype=turnout.float64)
    made = F.batch_norm(x, mean, var, training=True, momentum=0.5)
    made.sum().backward()
    values = x.detach().numpy()
    np.testing.assert_allclose(mean.numpy(), values.mean((0, 2)) / 2)
    np.testing.assert_allclose(var.numpy(), 0.5 + values.var((0, 2), ddof=1) / 2)


def test_batch_norm_has_a_second_derivative():
    x, w, b = (turnout.randn(*shape, dtype=turnout.float64).requires_grad_() for shape in ((2, 3, 4), (3,), (3,)))
    assert turnout.autograd.gradgradcheck(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [x, w, b])
    running = (
        turnout.randn(3, dtype=turnout.float64).requires_grad_(),
        (turnout.rand(3, dtype=turnout.float64) + 0.5).requires_grad_(),
    )
    assert turnout.autograd.gradcheck(lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, False), [x, w, b, *running])
    assert turnout.autograd.gradgradcheck(lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, False), [x, w, b, *running])


@pytest.mark.parametrize("shape", [(3, 70, 33), (40, 9), (2, 5, 8, 3), (1300, 2)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_softmax_goes_along_any_dim(layout: str, shape: tuple[int, ...], instructions: str):
    x, g = LAYOUTS[layout](5 * drawn(shape, 1)), LAYOUTS[layout](drawn(shape, 2))
    for dim, softmax in ((d, s) for d in range(len(shape)) for s in (F.softmax, F.log_softmax)):
        found = results(lambda x, d=dim, s=softmax: s(x, d), (x,), g, "float32")
        powers = np.exp(x.astype(np.float64) - x.max(dim, keepdims=True))
        shares = powers / powers.sum(dim, keepdims=True)
        if softmax is F.softmax:
            exact = [shares, (g - (g * shares).sum(dim, keepdims=True)) * shares]
        else:
            exact = [np.log(shares), g - shares * g.sum(dim, keepdims=True, dtype=np.float64)]
        for made, right in zip(found, exact, strict=True):
            np.testing.assert_allclose(made, right, 2e-6, 2e-6 * np.abs(right).max())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_of_distances_agree_with_float64(reduction: str, dtype: str):
    for layout in LAYOUTS.values():
        x, y = (turnout.from_numpy(layout(drawn((70, 90), seed))).to(getattr(turnout, dtype)) for seed in (1, 2))
        far = np.abs(x.to(turnout.float64).numpy() - y.to(turnout.float64).numpy())
        near = np.minimum(far, 0.7)
        exact = {"l1": far, "smooth_l1": near * (far - near / 2) / 0.7, "huber": near * (far - near / 2)}
        found = {
            "l1": F.l1_loss(x, y, reduction=reduction),
            "smooth_l1": F.smooth_l1_loss(x, y, reduction=reduction, beta=0.7),
            "huber": F.huber_loss(x, y, reduction=reduction, delta=0.7),
        }
        tolerance = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 1e-2, "float64": 1e-14}[dtype]
        for name, made in found.items():
            right = {"none": exact[name], "sum": exact[name].sum(), "mean": exact[name].mean()}[reduction]
            np.testing.assert_allclose(made.to(turnout.float64).numpy(), right, tolerance, tolerance)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 4), (7, 5), (8, 8), (2, 1)])
def test_means_of_windows_that_share_out_an_image_agree_with_slices(height: int, width: int, instructions: str):
    x = drawn((2, 3, 8, 10), 1)
    made = F.adaptive_avg_pool2d(turnout.from_numpy(x), (height, width)).numpy()
    for i, k in np.ndindex(height, width):
        rows, columns = slice(i * 8 // height, -(-(i + 1) * 8 // height)), slice(k * 10 // width, -(-(k + 1) * 10 // width))
        np.testing.assert_allclose(made[..., i, k], x[..., rows, columns].mean((-1, -2)), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 10), (-(1 << 63), -(1 << 63) + 5), ((1 << 63) - 4, (1 << 63) - 1), (3, 4), (-7, 1 << 31)]
)
def test_drawn_integers_are_the_remainders_that_cpu_takes(low: int, high: int, instructions: str):
    turnout.manual_seed(4)
    made = turnout.randint(low, high, (5000,))
    turnout.manual_seed(4)
    words = random_bits(np, (5000,), *default_generator("cpu").reserve(5000))
    assert made.tolist() == [int(w & np.uint64((1 << 63) - 1)) % (high - low) + low for w in words]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 5, 64, 65])
def test_topk_is_the_beginning_of_a_stable_sort(k: int, largest: bool, dtype: str, instructions: str):
    x = RNG.integers(-40, 40, (70, 203)).astype("f")
    x[3, 5:90:7], x[4, 9], x[5, 2:9] = np.nan, -np.inf, [np.inf, -np.inf, np.nan, 0.0, -0.0, np.inf, np.nan]
    x[6] = np.arange(203)
    t = turnout.from_numpy(x).to(getattr(turnout, dtype))
    values, indices = t.topk(k, -1, largest)
    ordered, order = t.sort(dim=-1, descending=largest, stable=True)
    assert turnout.equal(values.nan_to_num(77.0), ordered[:, :k].nan_to_num(77.0))
    if k <= 64:
        assert turnout.equal(indices, order[:, :k])


def test_softmax_of_columns_takes_infinite_elements_as_that_of_rows_does(instructions: str):
    x = RNG.standard_normal((130, 600)).astype("f")
    x[:64, 0], x[:, 1], x[70, 2], x[5, 3], x[0, 4], x[100:, 5] = -np.inf, -np.inf, np.inf, np.nan, -np.inf, 200.0
    for name in ("softmax", "log_softmax"):
        columns = getattr(turnout.from_numpy(x), name)(0).numpy()
        rows = getattr(turnout.from_numpy(x.T.copy()), name)(1).numpy().T
        np.testing.assert_allclose(columns, rows, rtol=2e-6, atol=1e-7)
