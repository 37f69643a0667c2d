"""Compiled kernels: threads, forks, what is left to the kernels below, who serves a call, and special numbers of some of them.

Layouts, dtypes and sizes of every row are in `test_kernels_variants`.
"""

from __future__ import annotations

import ctypes
import os
import pkgutil
import re
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import instruction_sets
import numpy as np
import pytest
from instruction_sets import available
from known_words import check_words
from turnout.nn import functional as F

import turnout
from outcomes import printed, refused
from turnout import config
from turnout.errors import NoKernelError, PluginWarning
from turnout.explanation import explain
from turnout.library import Library
from turnout.registry import Registrations
from turnout_arrays.random import random_bits
from turnout_aten import operators as aten
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.contract import misfit
from turnout_aten.kernels.rows import Accepts, Row
from turnout_aten.kernels.tables import register_over
from turnout_aten.tensor.random import default_generator
from turnout_conformance.pairwise import pairwise
from turnout_cpu.kernels import kernels as rows_of_cpu
from turnout_cpu.pool import Pool

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

import turnout_kernels
from turnout_kernels import native
from turnout_kernels.table import FAMILIES, kernels

RNG = np.random.default_rng(7)


def test_every_module_that_has_rows_is_in_the_table() -> None:
    names = [each.name for each in pkgutil.iter_modules(turnout_kernels.__path__) if each.name[0] != "_"]
    modules = [import_module(f"turnout_kernels.{name}") for name in names]
    assert {m.__name__ for m in modules if hasattr(m, "KERNELS")} == {m.__name__ for m in FAMILIES}


# ---- threads


def everything() -> list[bytes]:
    """Results of large calls of every family."""
    turnout.manual_seed(11)
    x, m, wide = turnout.randn(300_001), turnout.randn(700, 513), turnout.randn(1, 70_000)
    grid, rows = turnout.randint(0, 513, (700, 513)), turnout.randint(0, 700, (2000,))
    image, weight, channels = turnout.randn(4, 32, 40, 41), turnout.randn(32, 1, 3, 3), turnout.randn(24, 32, 3, 3)
    q, first, second, of_wide = turnout.randn(2, 7, 200, 64), turnout.randn(9, 100, 70), turnout.randn(9, 70, 130), rows[:3] * 0
    layer = turnout.randn(40, 70, 24), turnout.randn(1, 70, 32), [turnout.randn(96, n) for n in (24, 32)]
    made = [x, F.gelu(x), x.sum(), x.mean(), x.norm(), m.sum(-1), m.amax(-1), F.softmax(m, -1), F.log_softmax(m, -1), m > m[0]]
    made += [F.layer_norm(m, (513,)), F.rms_norm(m, (513,)), m.cumsum(-1), m.cumsum(0), m.gather(1, grid)]
    made += [m.scatter_add(1, grid, m), m.index_add(0, rows, m[rows]), m[rows], m.masked_select(m > 0), (m > 0).nonzero()]
    made += [wide.index_add(0, of_wide, wide[of_wide]), m[:9, :1].index_add(0, rows % 5, x[:2000, None])]
    made += [F.conv2d(image, weight, padding=1, groups=32), F.interpolate(image, scale_factor=2, mode="bilinear")]
    made += [F.dropout(x, 0.3), turnout.rand(70_000), turnout.randn(70_000), m.flip(-1), m.triu(), F.mse_loss(m, m.flip(0))]
    made += [turnout.cat([m, m.flip(0), m[:5]]), turnout.cat([m, m[:, :3].clone(), m], 1), x.to(turnout.float64)]
    made += [F.softmax(m, 0), F.log_softmax(m, 0), *m.topk(7), m + m[0], x.half(), *F.max_pool2d(image, 2, return_indices=True)]
    made += [first @ second, F.scaled_dot_product_attention(q, q, q, is_causal=True)]
    made += turnout.gru(*layer, False, 1, 0.0, False, False, False)
    convolved = F.conv2d(image.requires_grad_(), channels.requires_grad_(), padding=1)
    made += [convolved, *turnout.autograd.grad(convolved.square().sum(), [image, channels])]
    for f in (lambda t: F.layer_norm(t, (513,), t[0]).sum(), lambda t: t[rows].square().sum(), lambda t: F.silu(t).sum()):
        leaf = m.clone().requires_grad_()
        made += turnout.autograd.grad(f(leaf), [leaf])
    return [t.detach().numpy().tobytes() for t in made]


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for threads in (1, 2, 3, 7):
        with config.override({"plugin.cpu.threads": threads}):
            assert native.threads() == threads
            found.append(everything())
    assert found[0] == found[1] == found[2] == found[3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_calls_from_several_threads_and_after_a_fork_finish() -> None:
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
    assert printed(program, options=()) == "done"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no such call")
@pytest.mark.parametrize("only_one", [False, True])
def test_threads_keep_the_processors_that_they_may_use(only_one: bool) -> None:
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
    assert printed(program, options=()) == "done"


# ---- who serves a call


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_tensors_are_left_to_the_kernel_below(shape: tuple[int, ...]) -> None:
    x = turnout.ones(shape)
    for found in (F.gelu(x), x * 2, F.softmax(x, -1), x.cumsum(-1)):
        assert found.shape == x.shape


def test_what_a_row_does_not_take_is_computed_by_the_kernel_below() -> None:
    assert turnout.clamp(turnout.arange(9), 2, 5).tolist() == [2, 2, 2, 3, 4, 5, 5, 5, 5]
    assert turnout.ones(5000, dtype=turnout.complex64).sum().item() == 5000


SOURCE = turnout.ones(16, 600)
INDEXED: dict[str, Callable[[Any], Any]] = {
    "gather": lambda places: SOURCE.gather(1, places.expand(16, 600)),
    "index_select": lambda places: SOURCE.t().contiguous().index_select(0, places),
    "index_add": lambda places: turnout.zeros(600, 16).index_add(0, places, turnout.ones(600, 16)),
    "scatter_add": lambda places: turnout.zeros(16, 600).scatter_add(1, places.expand(16, 600), SOURCE),
}


@pytest.mark.parametrize("index", [-1, 600, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("name", INDEXED)
def test_an_index_out_of_range_is_the_error_of_the_kernel_below(name: str, index: int) -> None:
    places = turnout.zeros(600, dtype=turnout.int64)
    places[599] = index
    said = refused(turnout.errors.DimError, INDEXED[name], places)
    assert said == f"{name}: index {index} is out of bounds for a dimension of size 600"


@pytest.mark.parametrize(
    ("setting", "value"),
    [('kernels.choose."aten::gelu@CPU"', "turnout-cpu"), ('kernels.prefer."ge*@CPU"', ["turnout-cpu", "turnout-kernels"])],
)
def test_configuration_may_choose_the_kernel_of_cpu(setting, value) -> None:
    x = turnout.ones(3)
    try:
        config.set({setting: value})
        chosen = explain("gelu", x).chosen
        assert (chosen.distribution, chosen.note) == ("turnout-cpu", f"preferred by {setting}, turnout.config.set")
    finally:
        config.unset(setting)
    chosen = explain("gelu", x).chosen
    assert (chosen.distribution, chosen.note, chosen.kernel) == ("turnout-kernels", "", "gelu, or the kernel below")


def test_a_row_says_why_it_leaves_a_call_and_is_not_called_for_it() -> None:
    """In functional, in-place and out calls alike; `explain` shows each reason, and so does the error where nothing is below."""
    called: list[str] = []

    def row(name: str, limit: int) -> Row:
        def kernel(x: Any, out: Any) -> None:
            called.append(name)
            np.cosh(x, out=out)

        return Row(kernel, accepts=Accepts(unless=lambda x, *_: f"over {limit} elements" if x.size > limit else None))

    groups = [Registrations(name) for name in "ab"]
    config.set({'kernels.prefer."*cosh*@CPU"': ["a", "b"]})
    try:
        for group, limit in zip(groups, (2, 4), strict=True):
            register_over(group, "CPU", {"cosh.out": row(group.name, limit)})
        for n, wanted in ((2, "a"), (4, "b"), (6, "")):
            x = turnout.ones(n)
            for call in (lambda x: x.cosh(), lambda x: x.clone().cosh_(), lambda x: turnout.cosh(x, out=turnout.empty(len(x)))):
                for _ in range(3):  # then what is kept of the first calls
                    called.clear()
                    assert call(x).tolist() == pytest.approx([np.cosh(1.0)] * n)
                    assert "".join(called) == wanted
            told = "".join(f"; {name} leaves it: over {limit} elements" for name, limit in (("a", 2), ("b", 4)) if n > limit)
            computing = [*wanted, *("b" for _ in wanted if wanted == "a"), "turnout-cpu"]
            told += f"; computed by {', which may leave the call to '.join(computing)}"
            assert explain("cosh", x).chosen.path.partition(";")[2] == told.removeprefix(";")
    finally:
        config.unset("kernels.prefer")
        for group in groups:
            group.undo()


def test_explain_says_whose_row_computes() -> None:
    both = "turnout-kernels, which may leave the call to turnout-cpu"
    for n, wanted in ((3, "turnout-cpu"), (500, both)):
        x = turnout.ones(n, n)
        for call in (("add", x, x), ("exp", x)):
            assert explain(*call).chosen.path.partition("; computed by ")[2] == wanted


def test_an_error_has_the_reasons_of_all_rows() -> None:
    with Library("lone", "DEF") as library, Registrations("c") as group:
        library.define("cube(Tensor x) -> Tensor")
        rows = {"cube": Row(lambda x: x**3, accepts=Accepts(unless=lambda x: "x has dims" if x.shape else None))}
        register_over(group, "CPU", rows, namespace="lone")
        assert turnout.ops.lone.cube(turnout.tensor(2.0)).item() == 8.0
        assert refused(NoKernelError, turnout.ops.lone.cube, turnout.ones(1)) == (
            "lone::cube: the kernel of CPU leaves this call to the one below, and there is none\n  why  c: x has dims"
        )


def test_without_the_plugin_everything_works() -> None:
    program = """
import sys, turnout
from turnout.explanation import explain
turnout.config.set({"plugins.disable": sys.argv[1:]})
x = turnout.linspace(-3, 3, 101).requires_grad_()
y = turnout.nn.functional.silu(x).sum()
y.backward()
print(explain("silu", x.detach()).chosen.distribution, f"{y.item():.3f} {x.grad.sum().item():.3f}")
"""
    without, with_plugin = printed(program, "kernels").split(), printed(program).split()
    assert (without[0], with_plugin[0]) == ("turnout-cpu", "turnout-kernels")
    assert without[1:] == with_plugin[1:]


def test_running_statistics_count_their_writes_and_move() -> None:
    x = turnout.randn(4, 3, 5, dtype=turnout.float64).requires_grad_()
    mean, var = turnout.zeros(3, dtype=turnout.float64), turnout.ones(3, dtype=turnout.float64)
    before = mean._version
    F.batch_norm(x, mean, var, training=True, momentum=0.5).sum().backward()
    assert mean._version > before
    values = x.detach().numpy()
    np.testing.assert_allclose(mean.numpy(), values.mean((0, 2)) / 2)
    np.testing.assert_allclose(var.numpy(), 0.5 + values.var((0, 2), ddof=1) / 2)


SECOND: dict[str, Callable[..., Any]] = {
    "silu": lambda x, w, b, m, v: F.silu(x),
    "batch_norm in training": lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True),
    "batch_norm": lambda x, w, b, m, v: F.batch_norm(x, m, v * v + 0.5, w, b, False),
}


@pytest.mark.parametrize("name", SECOND)
def test_a_gradient_that_is_composed_otherwise_has_a_second_derivative(name: str) -> None:
    given = [turnout.randn(*shape, dtype=turnout.float64).requires_grad_() for shape in ((2, 3, 4), *[(3,)] * 4)]
    assert turnout.autograd.gradcheck(SECOND[name], given)
    assert turnout.autograd.gradgradcheck(SECOND[name], given)


def test_rows_over_those_that_allocate_may_be_called_without_an_output() -> None:
    below = rows_of_cpu(Pool(lambda: 1))
    for name, row in kernels().items():
        if f"aten::{name}" in STRUCTURED and getattr(below[name], "allocates", ""):
            given, outputs, _ = STRUCTURED[f"aten::{name}"][2]
            assert not misfit(getattr(row, "fn", row), len(given) - outputs), name


def test_wrong_calls_of_the_extension_module_are_errors() -> None:
    x, run = np.ones(3, np.float32), native._native.run
    of_many_dims: Any = ctypes.c_double()
    for _ in range(65):
        of_many_dims = (type(of_many_dims) * 1)()
    for call, text in (
        (lambda: run(1000, (x,), (x,), (), (), 1, 1), "there is no kernel 1000, or nothing to do"),
        (lambda: run(0, (of_many_dims,), (), (), (), 1, 1), "an array has 65 dims, at most 64 are supported"),
        (lambda: native.choose_instructions("mmx"), "this processor or this build has no instructions 'mmx'"),
    ):
        assert refused(ValueError, call) == text


def test_the_sets_of_instructions_have_the_same_names_everywhere() -> None:
    folder = Path(__file__).parents[2] / "plugins" / "kernels" / "src" / "turnout_kernels"
    option = tomllib.loads((folder / "plugin.toml").read_text("utf-8"))["option"]["instructions"]
    text = (folder / "native" / "module.c").read_text("utf-8")
    assert option["choices"] == ["", *instruction_sets.ALL]
    numbered = re.findall(r'!strcmp\(name, "(\w+)"\) \? (\d)', text)
    assert numbered == [(each, str(i)) for i, each in enumerate(instruction_sets.ALL)]


def test_the_instructions_of_the_setting_are_used_whenever_it_is_set() -> None:
    turnout.ones(1)
    best = native.instructions()
    try:
        turnout.config.set({"plugin.kernels.instructions": "generic"})
        assert native.instructions() == "generic"
        missing = patch.object(native._native, "instructions", side_effect=ValueError("no instructions 'avx2'"))
        with missing, pytest.warns(PluginWarning, match="no instructions 'avx2'"):
            turnout.config.set({"plugin.kernels.instructions": "avx2"})
        assert native.instructions() == "generic"
    finally:
        turnout.config.unset("plugin.kernels.instructions")
    assert native.instructions() == best


# ---- arrays that broadcast


@pytest.mark.parametrize(
    "shapes", [((5, 3, 8), (3, 8)), ((3, 8), (5, 3, 8)), ((2, 1, 40), (3, 40)), ((5, 8), (1,)), ((0, 8), (8,))]
)
def test_row_major_arrays_that_broadcast_give_the_same_bits_with_and_without_an_output(shapes: Any) -> None:
    turnout.manual_seed(3)
    grad, output = (turnout.randn(shape) for shape in shapes)
    into = turnout.empty(turnout.broadcast_shapes(*shapes))
    found = aten.tanh_backward(grad, output)
    assert found.is_contiguous()
    assert turnout.equal(found, aten.tanh_backward__grad_input(grad, output, grad_input=into))
    turnout.testing.assert_close(found, grad * (1 - output * output))


def test_an_input_is_repeated_over_the_output_or_refused() -> None:
    row, column, out = np.arange(3.0, dtype="f"), np.arange(2.0, dtype="f")[:, None], np.empty((4, 2, 3), "f")
    kinds = (native.F32, native.POINTWISE["add"], *(native.F32,) * 3)
    native.run("map", (out,), (row, column), kinds, (1.0, 0.0, 0.0))
    assert np.array_equal(out, np.broadcast_to(row + column, out.shape))
    for wrong in (np.ones(2, "f"), np.ones((1, 4, 2, 3), "f"), np.ones((2, 2, 3), "f")):
        said = refused(ValueError, native.run, "map", (out,), (wrong, column), kinds, (1.0, 0.0, 0.0))
        assert said == "an input does not broadcast to the output"


# ---- joining, drawing, the largest


@pytest.mark.parametrize(
    ("dtype", "dim"), [("float32", 0), ("float64", 1), ("bfloat16", 2), ("int64", -1), ("bool", 1), ("complex64", 0)]
)
def test_many_joined_tensors_are_those_of_numpy(dtype: str, dim: int) -> None:
    lengths = [3, 0, 1, 7, 2, 5, 1, 1, 4, 6]  # more than C takes at a time
    shapes = [tuple(n if d == dim % 3 else size for d, size in enumerate((21, 18, 33))) for n in lengths]
    for some in (shapes, [*shapes[:2], (0,), *shapes[2:]], shapes[3:4]):
        parts = [turnout.randint(0, 200, shape).to(getattr(turnout, dtype)) for shape in some]
        kept = [p.float().numpy() if dtype == "bfloat16" else p.numpy() for p in parts if p.shape != (0,)]
        across = [p if p.ndim == 1 else p.transpose(0, 1).contiguous().transpose(0, 1) for p in parts]
        for given in (parts, across):
            found = turnout.cat(given, dim)
            out = turnout.cat(given, dim, out=turnout.empty(found.shape, dtype=found.dtype))
            assert np.array_equal((found.float() if dtype == "bfloat16" else found).numpy(), np.concatenate(kept, dim))
            assert turnout.equal(out, found)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 10), (-(1 << 63), -(1 << 63) + 5), ((1 << 63) - 4, (1 << 63) - 1), (3, 4), (-7, 1 << 31)]
)
def test_drawn_integers_are_the_remainders_that_cpu_takes(low: int, high: int, instructions: str) -> None:
    check_words("cpu")
    turnout.manual_seed(4)
    made = turnout.randint(low, high, (5000,))
    turnout.manual_seed(4)
    words = random_bits(np, (5000,), *default_generator("cpu").reserve(5000))
    assert made.tolist() == [int(w & np.uint64((1 << 63) - 1)) % (high - low) + low for w in words]


@pytest.mark.parametrize(
    ("dtype", "largest", "k", "instructions"),
    pairwise(["float32", "float64", "float16", "bfloat16"], [True, False], [1, 5, 64, 65], available()),
    indirect=["instructions"],
)
def test_topk_is_the_beginning_of_a_stable_sort(dtype: str, largest: bool, k: int, instructions: str) -> None:
    x = RNG.integers(-40, 40, (70, 203)).astype("f")
    x[3, 5:90:7], x[4, 9], x[5, 2:9] = np.nan, -np.inf, [np.inf, -np.inf, np.nan, 0.0, -0.0, np.inf, np.nan]
    x[6] = np.arange(203)
    t = turnout.from_numpy(x).to(getattr(turnout, dtype))
    values, indices = t.topk(k, -1, largest)
    ordered, order = t.sort(dim=-1, descending=largest, stable=True)
    assert turnout.equal(values.nan_to_num(77.0), ordered[:, :k].nan_to_num(77.0))
    assert k > 64 or turnout.equal(indices, order[:, :k])


def test_softmax_of_columns_takes_infinite_elements_as_that_of_rows_does(instructions: str) -> None:
    x = RNG.standard_normal((130, 600)).astype("f")
    x[:64, 0], x[:, 1], x[70, 2], x[5, 3], x[0, 4], x[100:, 5] = -np.inf, -np.inf, np.inf, np.nan, -np.inf, 200.0
    for name in ("softmax", "log_softmax"):
        columns = getattr(turnout.from_numpy(x), name)(0).numpy()
        rows = getattr(turnout.from_numpy(x.T.copy()), name)(1).numpy().T
        np.testing.assert_allclose(columns, rows, rtol=2e-6, atol=1e-7)
