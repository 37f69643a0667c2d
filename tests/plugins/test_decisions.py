"""Every plugin has decided about each form of every operator: a row, a composite, or a line of decisions.txt with the reason.

What stands at a key of the plugin says so. A functionality that treats operators of one form alike has nothing to decide. Of any
other, an operator is undecided that gets what one gets that nobody knows. A backend has decided about a composite when it has
decided about the operators that this calls: a row of its own would only make it faster.
"""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from importlib.resources import files
from pathlib import Path
from unittest.mock import MagicMock, patch

import array_api_strict
import ml_dtypes
import numpy as np
import pytest
from pretended_cuda import pretended

import turnout
from turnout import plugins
from turnout.keys import IMPLICIT, KEYS
from turnout.operators import Operator
from turnout.plugins.activation import Options
from turnout.registry import REGISTRY, Registrations
from turnout.table import DEFAULT_BACKEND, FALLBACK, KERNEL, MATH
from turnout_aten.declarations.signatures import functional_of
from turnout_aten.declarations.tables import DYNAMIC_SHAPE, PARTIAL, SEEDED
from turnout_aten.kernels.tables import served_by
from turnout_cuda.table import kernels as raw_rows

PROVIDED = {record.name: record.provides for record in plugins.all_plugins()}  # of every plugin, from the manifests
ROOT = Path(__file__).parents[2]
BACKENDS = {each.partition(":")[2]: name for name, all_ in PROVIDED.items() for each in all_ if each.startswith("backend:")}

# What plugins import, where it is not installed or finds no device: tables can be read without.
JAX = MagicMock(numpy=types.SimpleNamespace(**vars(np), bfloat16=ml_dtypes.bfloat16))
STAND_INS = {
    "jax": {"jax": JAX, "jax.numpy": JAX.numpy, "jax.experimental.compilation_cache": MagicMock()},
    "opencl": {"pyopencl": MagicMock(), "pyopencl.tools": MagicMock()},
}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """All plugins that provide keys have registered: they are active, or registered over stand-ins, cuda as `pretended`."""
    turnout.ones(1)
    with ExitStack() as stack:
        for record in plugins.all_plugins():
            if record.name == "cuda" or not record.provides:
                continue
            try:
                plugins.activate(record.name)
            except turnout.errors.PluginError:
                stand_ins, library = STAND_INS.get(record.name, {}), stack.enter_context(Registrations(record.name))
                with patch.dict(sys.modules, stand_ins):
                    importlib.import_module(record.module).turnout_activate(library, Options(record.manifest))
                    forgotten = {name.partition(".")[0] for name in (record.module, *stand_ins)}
                    others = {name: each for name, each in sys.modules.items() if name.partition(".")[0] not in forgotten}
                sys.modules.update(others)
        stack.enter_context(pretended())
        yield


# ---- what a plugin leaves to others


def operators() -> list[Operator]:
    return [op for op in REGISTRY.operators.values() if op.namespace == "aten" and op.is_defined]


@cache
def base(op: Operator) -> str:
    """The name that an operator shares with its in-place form."""
    return op.name.removesuffix("_") if op.schema.kind == "inplace" else op.name


@cache
def stands(op: Operator, key: str) -> tuple[str, str, str]:
    """What stands at a key: the reason, the kernel's label without the operator's name, and whose the kernel is."""
    entry = op.entry(key)
    if entry is None or entry.kernel is None:
        return "" if entry is None else entry.reason, "", ""
    library = entry.kernel.library
    return entry.reason, entry.kernel.label.replace(op.qualified_name, "it"), "" if library is None else library.name


def leaves(key: str) -> list[Operator]:
    """The operators that are no composites on a backend."""
    return [op for op in operators() if stands(op, key)[0] not in (MATH, DEFAULT_BACKEND)]


@cache
def leading(op: Operator) -> Operator:
    """The functional operator of which this is an in-place or out form, by its schema; otherwise the operator itself."""
    return op if op.schema.kind == "functional" else functional_of(op) or op


def named(every: Iterable[Operator], left: set[Operator]) -> set[str]:
    """The names of those that are left: that of the functional operator, if all its forms are."""
    others = {leading(op) for op in every if op not in left}
    return {(op if leading(op) in others else leading(op)).__name__.removesuffix(".default") for op in left}


def to_the_fallback(key: str) -> set[str]:
    every = leaves(key)
    return named(every, {op for op in every if stands(op, key)[0] in ("", FALLBACK)})


def without_rows_over(key: str, plugin: str) -> set[str]:
    """Where a plugin has rows at the key of another's backend, the operators without one.

    A plugin without rows there has no line for them in decisions.txt, so one that lost them all would fail by those that it has.
    """
    every = leaves(key)
    left = {op for op in every if stands(op, key)[::2] != (KERNEL, plugin)}
    return named(every, left) if len(left) < len(every) else set()


def on_cuda() -> set[str]:
    """The operators of which cuda has no row of its own: its table is that of the arrays, with raw kernels over it."""
    every = leaves("PRETENDED")
    rows = served_by(f"aten::{row}" for row in raw_rows(REGISTRY.backends["PRETENDED"]))
    return named(every, {op for op in every if op.qualified_name not in rows})


@cache
def form(op: Operator) -> tuple[object, ...]:
    """What is known of an operator without its name."""
    schema = op.schema
    has_tensors = schema.takes_tensors, schema.gives_tensors
    functional = any(each.schema.kind == "functional" for each in REGISTRY.packet("aten", base(op)) or ())
    return schema.kind, schema.is_view, has_tensors, functional, IMPLICIT in op.kernels, op.tags


@cache
def keys_with_rules(functionality: str) -> dict[str, tuple[str, str, str]]:
    """The keys at which operators of one form are treated differently, each with what one gets that nobody knows."""
    found: dict[str, tuple[str, str, str]] = {}
    with turnout.library.Library("nobody", "DEF") as library:
        library.define("knows(Tensor self) -> Tensor")
        for key in KEYS.universe.aliases.get(functionality, [functionality]):
            treated = {(form(op), stands(op, key)) for op in operators()}
            if len(treated) > len(dict(treated)):
                found[key] = stands(REGISTRY.find("nobody::knows"), key)
    return found


def without_a_rule(functionality: str) -> set[str]:
    keys = keys_with_rules(functionality)
    return named(operators(), {op for op in operators() if any(stands(op, key) == keys[key] for key in keys)})


def on_no_list() -> set[str]:
    """The functional leaves that no list of autocast names. In-place and out forms have their result's dtype, and are on none."""
    keys = keys_with_rules("Autocast")
    on_lists = {op for op in operators() if any(stands(op, key) != keys[key] for key in keys)}
    assert {op.schema.kind for op in on_lists} == {"functional"}
    every = [op for op in leaves("CPU") if op.schema.kind == "functional"]
    return named(every, {*every} - on_lists)


def without_a_tangent() -> set[str]:
    """The operators whose tangents are made of the gradient, for want of a rule, and that do not say that they have none."""
    from turnout_autograd.forward import kernels
    from turnout_autograd.tangents import missing

    left = set()
    with patch.object(kernels, "transposed") as made:
        for op in operators():
            made.called = False
            kernels.decide(op)
            left |= {op} if made.called and missing(op) is None else set()
    return named(operators(), left)


def of_the_standard() -> set[str]:
    """The operators whose names are those of functions of the array API standard, and which its namespace lacks."""
    lacks = set()
    for part in ("", "linalg", "fft"):
        theirs, ours = (getattr(of, part) if part else of for of in (array_api_strict, turnout.array_api))
        lacks |= {f"{part}_{name}".strip("_") for name in {*theirs.__all__} - {*ours.__all__}}
    return lacks & {base(op) for op in operators()}


def without_a_module() -> set[str]:
    """The operators with a function in `nn.functional` that is neither called by a module nor named like one."""
    modules = {name.lower() for name in dir(turnout.nn) if name[0].isupper()}
    paths = [path for path in (files("turnout_nn") / "modules").iterdir() if path.name.endswith(".py")]
    called = {name for path in paths for name in re.findall(r"functional\.(\w+)", path.read_text("utf-8"))}
    names = {*turnout.nn.functional.__all__} & {base(op) for op in operators()} - called
    return {name for name in names if name.replace("_", "") not in modules}


def without_a_mask() -> set[str]:
    """The operators that reduce dims, which have no function in `masked`."""
    reductions = {base(op) for op in operators() if {"dim", "keepdim"} <= {each.name for each in op.schema.arguments}}
    return reductions.difference(turnout.masked.__all__)


def without_a_window() -> set[str]:
    """The operators that make windows, which have no function in `signal.windows`."""
    made = {base(op) for op in operators() if op.name.endswith("_window")}
    return {name for name in made if name.removesuffix("_window") not in turnout.signal.windows.__all__}


def in_one_piece() -> set[str]:
    """The operators with a row of arrays that dask runs on whole arrays, for want of a word about its chunks."""
    from turnout_dask import kernels

    every = [op for op in leaves("Dask") if op.schema.kind == "functional"]
    rows = served_by(f"aten::{row}" for row in kernels.in_one_piece(turnout.device("dask").backend))
    return named(every, {op for op in every if op.qualified_name in rows})


def views_by_positions() -> set[str]:
    """The views that functionalize knows how to undo by their positions alone. A composite one is made of others."""
    from turnout_functionalize.inverses import rule_of

    every = [op for op in operators() if op.schema.is_view and op.schema.kind == "functional" and IMPLICIT not in op.kernels]
    return named(every, {op for op in every if rule_of(op) is None})


def kept_as_recorded() -> set[str]:
    """The functional leaves of which the optimiser of graphs moves and shares no call, although no tag says why, and operators
    whose number no graph has."""
    from turnout_tracer.compiling.capture import ABOUT_SHAPES
    from turnout_tracer.compiling.optimiser import is_plain

    every = [op for op in leaves("CPU") if op.schema.kind == "functional"]
    kept = {op for op in every if not is_plain(op) and not {PARTIAL, SEEDED, DYNAMIC_SHAPE} & {*op.tags}}
    numbers = [op for op in operators() if op.schema.returns and not any(each.type.is_tensor_like for each in op.schema.returns)]
    return named([*every, *numbers], kept | {op for op in numbers if op.name not in ABOUT_SHAPES})


def test_operators_about_shapes_are_those_that_there_are() -> None:
    from turnout_tracer.compiling.capture import ABOUT_SHAPES

    assert {op.name for op in operators()} >= ABOUT_SHAPES


# What says that it leaves an operator to others, where what stands at the key does not: a plugin, or what one provides.
ASKED: dict[str, Callable[[], set[str]]] = {
    "array_api": of_the_standard,
    "dask": in_one_piece,
    "functionalize": views_by_positions,
    "masked": without_a_mask,
    "nn": without_a_module,
    "signal": without_a_window,
    "tracer": kept_as_recorded,
    "backend:CUDA": on_cuda,
    "functionality:Autocast": on_no_list,
    "functionality:Forward": without_a_tangent,
}
BY_KEY = {"backend": to_the_fallback, "functionality": without_a_rule}
# Plugins with nothing to decide about an operator: they read what its schema and the plans of its calls say.
UNASKED = {"export", "opcheck", "speed"}


def left_by(plugin: str) -> dict[str, set[str]]:
    """What a plugin provides, and the backends of others for which it has rows -> the operators that it leaves to others."""
    found: dict[str, set[str]] = {}
    for each in (plugin, *PROVIDED[plugin]):
        kind, _, key = each.partition(":")
        if each in ASKED:
            found[each] = ASKED[each]()
        elif kind in BY_KEY:
            found[each] = BY_KEY[kind](key)
    return found | {f"rows for {key}": without_rows_over(key, plugin) for key, owner in BACKENDS.items() if owner != plugin}


# ---- decisions


def listed() -> dict[str, set[str]]:
    """Plugin -> the operators that it leaves to others. Each line stands under a reason, each name once."""
    found: dict[str, set[str]] = {}
    plugin, reason = "", ""
    for line in (Path(__file__).parent / "decisions.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            plugin, reason = line.strip("[]"), ""
            found[plugin] = set()
        elif line.startswith("#"):
            reason = line
        elif line:
            parts = [(*name.split("."), "default")[:2] for name in line.split()]
            names = [f"{name}.{each}".removesuffix(".default") for name, overloads in parts for each in overloads.split("|")]
            assert reason
            assert not found[plugin] & set(names)
            found[plugin] |= set(names)
    assert found.keys() <= PROVIDED.keys()
    return found


def test_every_plugin_is_asked_about_operators() -> None:
    kinds = {plugin: {each.partition(":")[0] for each in provided} for plugin, provided in PROVIDED.items()}
    asked = {plugin for plugin in PROVIDED if plugin in ASKED or kinds[plugin] & {*BY_KEY}} | listed().keys()
    assert sorted(asked ^ UNASKED) == sorted(PROVIDED)


@pytest.mark.parametrize("plugin", PROVIDED)
def test_no_plugin_is_undecided_about_an_operator(plugin: str) -> None:
    left, said = left_by(plugin), listed().get(plugin, set())
    undecided = "; ".join(f"{each}: {' '.join(sorted(names - said))}" for each, names in left.items() if names - said)
    assert not undecided, f"{plugin} has not decided about these: write a row, or a line of decisions.txt\n{undecided}\n"
    assert sorted(said.difference(*left.values())) == [], f"decisions.txt says that {plugin} leaves these to others"


# One operator of each form, and overloads of one that has rows everywhere and of one that most plugins leave to others.
PLANTED = ("new(Tensor self) -> Tensor", "new_view(Tensor(a) self) -> Tensor(a)",
    "new_window(Tensor self) -> Tensor", "new_total(Tensor self, int[] dim, bool keepdim) -> Tensor",
    "cumsum.new(Tensor self) -> Tensor", "polygamma.new(Tensor self) -> Tensor", "new_number(Tensor self) -> bool",
    "new_write_(Tensor(a!) self) -> Tensor(a!)", "new_out.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")  # fmt: skip
PLAIN = "cumsum.new new"
FUNCTIONAL = f"{PLAIN} new_number new_total new_view new_window polygamma.new"
ALL = f"{PLAIN} new_number new_out.out new_total new_view new_window new_write_ polygamma.new"
WRITTEN = f"{PLAIN} new_total new_view new_window new_write_ polygamma.new"
# Plugin -> what it says. The silences follow from the schema. An out form and a number have no gradient and no tangent. Of an
# operator that writes, autocast casts nothing, fakes and functionalize run the functional form, and the optimiser of graphs
# neither moves nor shares a call. A public namespace has no in-place or out functions of its own. Batched has one rule for all
# that reduce dims.
NAMED = {
    "array_api": "array_api: new",
    "autocast": f"functionality:Autocast: {FUNCTIONAL}",
    "autograd": f"functionality:Autograd: {WRITTEN}; functionality:Forward: {WRITTEN}",
    "batched": f"functionality:Batched: {PLAIN} new_number new_out.out new_view new_window new_write_ polygamma.new",
    "cpu": f"backend:CPU: {ALL}",
    "cuda": f"backend:CUDA: {ALL}",
    "dask": f"backend:Dask: {ALL}",
    "functionalize": "functionalize: new_view",
    "jax": f"backend:Jax: {ALL}",
    "kernels": f"rows for CPU: {ALL}",
    "meta": f"backend:Meta: {ALL}; functionality:Fake: {FUNCTIONAL}",
    "masked": "masked: new_total",
    "nn": "nn: new",
    "opencl": f"backend:OpenCL: {ALL}",
    "signal": "signal: new_window",
    "tracer": f"tracer: {PLAIN} new_number new_total new_window polygamma.new",
}


def test_an_operator_about_which_a_plugin_has_not_decided_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (array_api_strict, turnout.nn.functional):
        monkeypatch.setattr(module, "__all__", [*module.__all__, "new"])
    found = {}
    with turnout.library.Library("aten", "FRAGMENT") as library:
        for schema in PLANTED:
            library.define(schema)
        for plugin in PROVIDED:
            try:
                test_no_plugin_is_undecided_about_an_operator(plugin)
            except AssertionError as error:
                head, names, *_ = map(str.strip, str(error).splitlines())
                assert head.startswith(f"{plugin} has not decided about these")
                found[plugin] = names
    assert found == NAMED


# ---- what pages say of it

# What a page may say has kernels, or has none -> operators for which that must then be so, as decisions.txt names them.
FAMILIES = {
    "activations": "gelu leaky_relu relu sigmoid silu",
    "bessel functions": "special_bessel_j0 special_bessel_y1 special_modified_bessel_k0",
    "convolutions": "convolution",
    "dropout": "native_dropout",
    "element-wise operators": "add.Tensor exp gelu where.self",
    "extremes": "amax amin argmax argmin",
    "factorisations": "geqrf linalg_eig linalg_ldl_factor_ex linalg_lu_factor_ex",
    "fourier transforms": "_fft_c2c _fft_c2r _fft_r2c",
    "fractional pooling": "fractional_max_pool2d fractional_max_pool3d",
    "gradients of interpolation": "upsample_bilinear2d_backward upsample_nearest1d_backward upsample_trilinear3d_backward",
    "indexing": "gather index.Tensor index_select",
    "interpolation": "upsample_bicubic2d upsample_bilinear2d upsample_nearest2d upsample_trilinear3d",
    "interpolation with `antialias=true`": "_upsample_bicubic2d_aa _upsample_bilinear2d_aa",
    "losses": "mse_loss nll_loss_forward",
    "losses of classes": "nll_loss_forward",
    "matrix products": "addmm bmm mm",
    "means": "mean.dim",
    "medians": "median.dim nanmedian.dim",
    "normalisation": "native_group_norm native_layer_norm",
    "norms": "linalg_vector_norm",
    "pooling": "_adaptive_avg_pool2d avg_pool2d max_pool2d_with_indices",
    "random numbers": "bernoulli.p normal_ uniform",
    "running sums": "cumsum",
    "scattering": "scatter.src scatter_add",
    "searching": "searchsorted.Tensor",
    "softmax": "_log_softmax _softmax",
    "sorting": "sort.stable topk",
    "steps of optimisers": "_fused_adam _fused_sgd",
    "arithmetic of lists": "_foreach_add.List _foreach_mul.Scalar",
    "sums": "sum.dim_IntList",
    "unique values": "_unique2 unique_dim",
    "variances": "var.correction",
}  # fmt: skip
# What a passage is about, where that is not the host fallback of a key -> the key, and the operators without it.
ABOUT: dict[str, tuple[str, Callable[[], set[str]]]] = {
    "chunks": ("Dask", in_one_piece),
    "compiled kernels": ("CPU", lambda: without_rows_over("CPU", "kernels")),
    "raw kernels": ("PRETENDED", on_cuda),
}
# A page, what a passage is about, whether it names operators that have that, and the passage.
PASSAGES = [
    ("docs/dask.md", "chunks", True, r"(Element-wise operators.*?) run chunk by chunk"),
    ("plugins/cuda/README.md", "PRETENDED", False, r"no kernel over CuPy, such as (.*?), runs"),
    ("plugins/cuda/README.md", "raw kernels", True, r"^- (Activations.*?) are raw kernels"),
    ("plugins/dask/README.md", "Dask", False, r"such as (`.*?`), are computed on the host"),
    ("plugins/dask/README.md", "chunks", False, r"^- Other operators, such as (.*?), run as one task"),
    ("plugins/dask/README.md", "chunks", True, r"(Softmax.*?) and the like need"),
    ("plugins/dask/README.md", "chunks", True, r"; (convolutions.*?) work on a chunk of images"),
    ("plugins/dask/README.md", "chunks", True, r"^- (Element-wise operators) run chunk by chunk"),
    ("plugins/dask/README.md", "chunks", True, r"`cpu`\. (Sums.*?) combine"),
    ("plugins/jax/README.md", "Jax", False, r"such as (`.*?`), run on cpu"),
    ("plugins/kernels/README.md", "compiled kernels", True, r"what is compiled \|\n[^\n]*\n((?:\|[^\n]*\n)*)"),
    ("plugins/opencl/README.md", "OpenCL", False, r"What has no kernel, such as (.*?), runs"),
    ("plugins/opencl/README.md", "OpenCL", True, r"^- (Element-wise.*?) have kernels here"),
]


def meant(name: str, key: str) -> set[str]:
    """The operators of a name in code marks, as decisions.txt names them; none for that of a composite."""
    names = {f"{form}{name}" for form in ("", "_", "native_")} | {name.rstrip("_"), f"{name}_with_indices"}
    return {leading(op).__name__.removesuffix(".default") for op in leaves(key) if base(leading(op)) in names}


@pytest.mark.parametrize(("page", "about", "has", "pattern"), PASSAGES, ids=[f"{page}: {about}" for page, about, *_ in PASSAGES])
def test_what_a_page_says_to_have_kernels_or_none_is_so(page: str, about: str, has: bool, pattern: str) -> None:
    key, left = ABOUT.get(about, (about, lambda: to_the_fallback(about)))
    text = re.sub(r"\n +|(?<=\S)\n(?=\w)", " ", (ROOT / page).read_text("utf-8"))
    [passage] = re.findall(pattern, text, re.MULTILINE)
    others, every = left(), named(leaves(key), set(leaves(key)))
    for name in re.findall(r"`(\w+)`", passage):
        found = meant(name, key)
        assert not found or bool(found - others) == has, name
    words = [] if "|" in passage else re.split(r",? and |, ", re.sub(r" \(.*?\)", "", passage))  # a table has names
    for word in [word.removeprefix("most ").lower() for word in words if not word.startswith("`")]:
        names = set(FAMILIES[word].split())
        assert names <= every, f"{word}: no such operators"
        assert names & others == (set() if has else names), word
