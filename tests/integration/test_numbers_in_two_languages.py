"""Numbers that stand in Python and in C or on a page, or in two packages that do not need each other: the copies are equal."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS, SPEED = "plugins/kernels/src/turnout_kernels", "plugins/speed/src/turnout_speed"
ATEN = "plugins/aten/src/turnout_aten"
AUTOGRAD, ARRAYS = "plugins/autograd/src/turnout_autograd", "plugins/arrays/src/turnout_arrays"
CUDA, OPENCL = "plugins/cuda/src/turnout_cuda", "plugins/opencl/src/turnout_opencl"
JAX, ARRAY_API = "plugins/jax/src/turnout_jax", "plugins/array-api/src/turnout_array_api"

# Each number: where it stands, a file and a pattern whose group is the number.
NUMBERS = {
    "parts of the work of a kernel": [
        (f"{KERNELS}/native.py", r"^MOST_PARTS = (.+)$"), (f"{KERNELS}/native/module.c", r"#define MOST_PARTS (\d+)"),
    ],
    "arrays of a kernel": [
        (f"{KERNELS}/native.py", r"^MAX_ARRAYS = (.+)$"), (f"{KERNELS}/native/job.h", r"#define MAX_ARRAYS (\d+)"),
    ],
    "ints that are compared quickly": [
        ("core/src/turnout/operators/stubs.py", r"not (-\d+) < \{0\} < (\d+)"),
        ("core/src/turnout/operators/arguments.py", r"not \((-\d+) < v < (\d+)"),
        (f"{SPEED}/native/call.h", r"number > (-\(1LL << 30\)) && number < (\(1LL << 30\))"),
    ],
    "rows of a tile of products": [
        (f"{KERNELS}/matrix_products.py", r"^_ROWS, _BYTES = (\d+),"),
        (f"{KERNELS}/native/batches.h", r"#define ROWS_OF_TILE (\d+)"),
    ],
    "bytes of a register of columns of a tile": [
        (f"{KERNELS}/matrix_products.py", r"^_ROWS, _BYTES = \d+, (\d+)"),
        (f"{KERNELS}/native/module.c", r"#define ISA avx512\n#define VECTOR_BYTES (\d+)"),
    ],
    "elements that expand writes": [
        (f"{AUTOGRAD}/formulas/broadcasting.py", r"^_SMALL = (\d+)"), (f"{SPEED}/native/sweeps.h", r"#define SPREADS (\d+)"),
    ],
    "bytes of a gradient that is added in new memory": [
        (f"{AUTOGRAD}/engine/accumulation.py", r"^FEW_BYTES = ([\d <]+)"), (f"{SPEED}/native/sweeps.h", r"#define SUMMED (\d+)"),
    ],
    "arguments of a compiled call": [
        (f"{SPEED}/callables.py", r"^MOST = (\d+)"), (f"{SPEED}/native/shared.h", r"#define MOST (\d+)"),
    ],
    "operands that are no arguments of a step": [
        (f"{SPEED}/replacements.py", r"^_OF_STEP, _COUNT, _FREEDOM = (.+)$"),
        (f"{SPEED}/native/programs.h", r"FROM_STEP = (\d+), .* COUNT = (\d+), FREEDOM = (\d+) "),
    ],
    "where the numbers of what a plan adds begin": [
        (f"{SPEED}/replacements.py", r"^_EXTRA = (\d+)"), (f"{SPEED}/native/plans.h", r"enum \{ EXTRA = (\d+)"),
    ],
    "views from which on dead ones are looked for": [
        (f"{ATEN}/views/recording.py", r"^_PRUNE_AT = (\d+)"), (f"{SPEED}/native/views.h", r"enum \{ PRUNE_AT = (\d+)"),
    ],
    "elements of a row that one block sorts": [
        (f"{CUDA}/sorting.py", r"^_MOST = (\d+)"), (f"{CUDA}/kernels/sorting.cu", r"#define MOST_SORTED (\d+)"),
    ],
    "results of one vector of a convolution": [
        (f"{KERNELS}/convolutions.py", r"^_BLOCK = (\d+)$"), (f"{KERNELS}/native/convolutions.h", r"#define BLOCK (\d+)"),
    ],
    "taps of a convolution": [
        (f"{KERNELS}/convolutions.py", r"^_MOST_TAPS = (\d+)$"), (f"{KERNELS}/native/convolutions.h", r"#define MOST_TAPS (\d+)"),
    ],
    "elements of topk": [
        (f"{KERNELS}/sorting.py", r"^_MOST_OF_TOPK = (\d+)$"), (f"{KERNELS}/native/sorting.h", r"#define MOST_OF_TOPK (\d+)"),
    ],
    "rows of a recurrent layer at a time": [
        (f"{KERNELS}/recurrent.py", r"^_ROWS = (\d+)"), (f"{KERNELS}/native/recurrent.h", r"#define ROWS (\d+)"),
    ],
    "bytes of a vector of a recurrent layer": [
        (f"{KERNELS}/recurrent.py", r"^_VECTOR = (\d+)"), (f"{KERNELS}/native/recurrent.h", r"#define GATE_BYTES (\d+)"),
    ],
    "elements above which a call of NumPy costs as little": [
        (f"{KERNELS}/native/few.h", r"#define FEW_ELEMENTS (\d+)"), (f"{SPEED}/native/programs.h", r"#define SMALL_SIZE (\d+)"),
    ],
    "the first operand of an ending that is another ending": [
        (f"{SPEED}/endings.py", r"operands\.append\((\d+) \+ len"), (f"{SPEED}/native/composites.h", r"ENDING = (\d+)"),
    ],
    "the number behind which a condition of an ending is one of equality": [
        (f"{SPEED}/endings.py", r"return (\d+) \+ wanted\.number"), (f"{SPEED}/native/composites.h", r"EQUALS = (\d+)"),
    ],
    "elements of a list that one block takes": [
        (f"{CUDA}/lists.py", r"^_CHUNK = (\d+)"), (f"{CUDA}/kernels/optimisers.cu", r"#define CHUNK (\d+)"),
    ],
    "elements of a mask that one block takes": [
        (f"{CUDA}/selection.py", r"^_CHUNK = (\d+)"), (f"{CUDA}/kernels/selection.cu", r"#define CHUNK (\d+)"),
    ],
    "columns of the table of a list: addresses, a step and a size": [
        (f"{CUDA}/lists.py", r"^_COLUMNS = (\d+)"), (f"{CUDA}/kernels/optimisers.cu", r"#define COLUMNS (\d+)"),
    ],
    "bytes that a kernel of CUDA reads at once": [
        (f"{CUDA}/programs.py", r"^_PACK = (\d+)"), (f"{CUDA}/kernels/types.cuh", r"#define WIDTH \((\d+) / "),
    ],
    "elements of a row that a thread keeps": [
        (f"{CUDA}/programs.py", r"^_WARP, _HELD = 32, (\d+)"), (f"{CUDA}/kernels/types.cuh", r"#define HELD (\d+)"),
        ("docs/notes/0031-how-the-cuda-device-computes.md", r"A row of up to (\d+) elements for each thread"),
    ],
    "products of a convolution that is one launch": [
        (f"{CUDA}/direct_convolutions.py", r"^PRODUCTS = 1 << (\d+)"),
        ("docs/notes/0031-how-the-cuda-device-computes.md", r"up to 2\^(\d+) products"),
    ],
    "elements of a block of a kernel of several steps": [
        ("plugins/cpu/src/turnout_cpu/blocks.py", r"^BLOCK = (.+)$"),
        ("docs/notes/0014-how-kernels-go-over-memory-once-without-a-compiler.md", r" ([\d,]+)\n  elements at a time"),
    ],
    "elements from which OpenCL has a program for a function or a reduction": [
        (f"{OPENCL}/loops.py", r"^_MANY = ([\d <]+) "), (f"{OPENCL}/reductions.py", r"^_MANY = ([\d <]+) "),
        ("docs/notes/0028-how-the-opencl-device-computes.md", r"^From ([\d,]+) elements on, a function or a reduction"),
    ],
    "ints that need no normalisation": [
        ("core/src/turnout/operators/stubs.py", r"not -(\d+) < \{0\}"),
        ("core/src/turnout/operators/arguments.py", r"not \(-(\d+) < v"),
    ],
    "threads of a block": [
        (f"{CUDA}/programs.py", r"^_BLOCK = (\d+)"), (f"{CUDA}/kernels/statistics.cu", r"#define MOST (\d+)"),
    ],
    "rows of a block of gradients of parameters": [
        (f"{CUDA}/normalisation.py", r"^_ROWS = (\d+)"), (f"{CUDA}/kernels/normalisation.cu", r"#define ROWS_OF_BLOCK (\d+)"),
    ],
    "lines of a thread of a convolution": [
        (f"{CUDA}/direct_convolutions.py", r"^_LINES, _ELEMENTS = (\d+), \d+"),
        (f"{CUDA}/kernels/convolutions.cu", r"#define ALONE_LINES (\d+)"),
    ],
    "elements of a kernel of which a thread has the sums": [
        (f"{CUDA}/direct_convolutions.py", r"^_LINES, _ELEMENTS = \d+, (\d+)"),
        (f"{CUDA}/kernels/convolutions.cu", r"#define ALONE_ELEMENTS (\d+)"),
    ],
    "channels of a thread of a convolution": [
        (f"{CUDA}/direct_convolutions.py", r"^_CHANNELS = (\d+)"),
        (f"{CUDA}/kernels/convolutions.cu", r"#define CONV_TILE (\d+)"),
    ],
    "weights of a warp of a convolution": [
        (f"{CUDA}/direct_convolutions.py", r"^_ROWS, _COLUMNS = ([\d, ]+)"),
        (f"{CUDA}/kernels/convolutions.cu", r"#define CONV_WEIGHTS ([\d, ]+)"),
    ],
    "neighbours that a thread adds up": [
        (f"{CUDA}/statistics.py", r"^_EACH = (\d+)"), (f"{CUDA}/kernels/statistics.cu", r"#define EACH (\d+)"),
    ],
    "threads of a column": [
        (f"{CUDA}/reductions.py", r"^COLUMN_BLOCK = \(32, (\d+)\)"),
        (f"{CUDA}/kernels/lines.cuh", r"#define COLUMN_THREADS (\d+)"),
    ],
    "results of a work-item of products": [
        (f"{OPENCL}/matrix_products.py", r"^_BLOCK = (\d+)"), (f"{OPENCL}/templates/matmul.cl", r"#define ROWS (\d+)"),
    ],
    "columns of results along rows and columns": [
        (f"{OPENCL}/matrix_products.py", r"^_DOTS = (\d+)"), (f"{OPENCL}/templates/matmul.cl", r"#define COLUMNS_OF_DOTS (\d+)"),
    ],
    "rows of a panel": [
        (f"{OPENCL}/matrix_products.py", r"^PANEL_ROWS = (\d+)"), (f"{OPENCL}/templates/matmul.cl", r"#define ROWS_OF (6)"),
    ],
    "results of a work-item across lines": [
        (f"{OPENCL}/reductions.py", r"^_LINE = (\d+)"), (f"{OPENCL}/templates/sweep.cl", r"#define LINE (\d+)"),
    ],
    "dims of a call of OpenCL": [
        (f"{OPENCL}/grids.py", r"^DIMS = (\d+)"), (f"{OPENCL}/templates/types.cl", r"#define DIMS (\d+)"),
    ],
    "operands of a call of OpenCL": [
        (f"{OPENCL}/grids.py", r"^OPERANDS = (\d+)"), (f"{OPENCL}/templates/types.cl", r"#define OPERANDS (\d+)"),
    ],
    "the cube in the tanh form of gelu": [
        (f"{ARRAYS}/activations.py", r"^_TANH_CUBE = (\S+)"), (f"{AUTOGRAD}/formulas/activations.py", r"a, b = .*\), (0\.\d+)$"),
        (f"{ARRAYS}/expressions.txt", r"^GELU_CUBE  = 2 \* (0\.\d+)"),
    ],
    "what a manifest may have: kilobytes and options": [
        ("core/src/turnout/plugins/manifest.py", r"^SIZE, OPTIONS = (\d+) << 10, (\d+)"),
        ("docs/manifest.md", r"A manifest has at most (\d+) KB, (\d+) options"),
    ],
    "levels of a manifest": [
        ("core/src/turnout/config/lines.py", r"^DEPTH = (\d+)"), ("docs/manifest.md", r"and (\d+) levels of tables and lists"),
    ],
    "signatures of a compiled function": [
        ("plugins/tracer/src/turnout_tracer/compiling/functions.py", r"^LIMIT = (\d+)"),
        ("docs/compile.md", r"^At most (\d+) signatures of a function are kept"),
    ],
    "dims of an array of NumPy": [
        (f"{ARRAYS}/backend.py", r"^DIMS = (\d+)"), (f"{ARRAY_API}/namespace/inspection.py", r'"max dimensions": (\d+)'),
    ],
    "containers inside each other in a file": [
        (f"{ATEN}/plain_data.py", r"^DEEPEST = (\d+)"), ("docs/files.md", r"nested at most (\d+) deep"),
    ],
    "programs that JAX may keep": [
        (f"{JAX}/backend.py", r"^MANY = (\d+)"), ("plugins/jax/README.md", r"forgets programs once there are (\d+)"),
    ],
    "numbers that take an eager call of cpu as long as the call itself": [
        (f"{JAX}/engine.py", r"^EACH = (\d+)"), ("docs/compile.md", r"and ([\d,]+) for each operator"),
        (f"{JAX}/plugin.toml", r"and ([\d,]+) for each"),
    ],
    "bytes at a multiple of which XLA's arrays begin": [
        (f"{JAX}/engine.py", r"^LINE = (\d+)"), (f"{JAX}/engine.py", r"begins at a multiple of (\d+) bytes"),
        ("docs/compile.md", r"begins at a\n  multiple of (\d+) bytes"),
        ("docs/notes/0039-how-graphs-are-compiled.md", r"begins at a multiple of (\d+) bytes"),
    ],
    "millions of results of arithmetic that several threads share": [
        (f"{JAX}/engine.py", r"^SHARED = (\d+)_000_000 "), ("docs/compile.md", r"fewer than (\d+) million results"),
    ],
    "results of arithmetic that an exponential counts as": [
        (f"{JAX}/engine.py", r"^TRANSCENDENTAL = (\d+) "), ("docs/compile.md", r"an exponential or a sine as (\d+)\)"),
    ],
    "guards of a signature": [
        ("plugins/tracer/src/turnout_tracer/compiling/functions.py", r"^GUARDS = (\d+)"),
        ("docs/notes/0039-how-graphs-are-compiled.md", r"and makes it anew, (\w+) times"),
    ],
    "elements of topk that are found one by one": [
        (f"{ARRAYS}/sorting.py", r"^_FEW = (\d+)"),
        ("docs/notes/0014-how-kernels-go-over-memory-once-without-a-compiler.md", r"up to (\d+) elements of `topk`"),
    ],
    "rows that are added up one after the other": [
        ("plugins/cpu/src/turnout_cpu/normalisation.py", r"^_TOGETHER = (\d+)"),
        ("docs/notes/0014-how-kernels-go-over-memory-once-without-a-compiler.md", r"are taken of (\d+) rows"),
    ],
    "version of the array API standard": [
        (f"{ATEN}/tensor/interop.py", r'^ARRAY_API_VERSIONS = .*"(\d+\.\d+)"\)$'),
        (f"{ARRAY_API}/namespace/__init__.py", r'^__array_api_version__ = "(.*)"'),
        ("docs/array-api.md", r"^Turnout's tensors follow the Python array API standard, version (\d+\.\d+),"),
        ("docs/compatibility.md", r"^`turnout.array_api` follows version (\d+\.\d+) of"),
        ("plugins/array-api/README.md", r"Python array API standard, version (\d+\.\d+),"),
        ("CHANGELOG.md", r"the Python array API standard (\d+\.\d+)\."),
    ],
    "version of PyTorch that decides": [
        ("constraints.txt", r"^torch==(\d+\.\d+)\."), ("README.md", r"PyTorch (\d+\.\d+) is the reference"),
        ("docs/coming-from-pytorch.md", r"PyTorch (\d+\.\d+) is the reference"),
        ("docs/compatibility.md", r"^PyTorch (\d+\.\d+) decides"),
    ],
    "megabytes that the C library keeps for the next arrays": [
        ("plugins/cpu/src/turnout_cpu/plugin.py", r"^_KEPT = (\d+) << 20"), ("plugins/cpu/README.md", r"keep up to (\d+) MiB"),
    ],
    "what a loss makes of those of its elements": [
        ("plugins/aten/src/turnout_aten/shapes/losses.py", r"^NONE, MEAN, SUM = (.+)$"),
        (f"{KERNELS}/native/few.h", r"OF_EACH = (\d), BY_MEAN = (\d), BY_SUM = (\d)"),
        (f"{CUDA}/kernels/losses.cu", r"OF_EACH = (\d), BY_MEAN = (\d), BY_SUM = (\d)"),
    ],
}  # fmt: skip


def found(file: str, pattern: str) -> str:
    (match,) = re.finditer(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    return re.sub(r"(?<=\d),(?=\d{3}\b)|(?<=\d)LL\b", "", ", ".join(match.groups()))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_stands_twice_is_the_same(name: str) -> None:
    values = [(file, eval(found(file, pattern), {"four": 4})) for file, pattern in NUMBERS[name]]
    assert len(values) > 1
    assert len({value for _, value in values}) == 1, values


DEFAULT = re.compile(  # of an option, where a page names it: in a table, before "by default", or in brackets
    r"`plugin\.(\w+)\.(\w+)`(?: \| `?([^|`]+?)`? \||[^`|.]*?, ([\w ]+) by default| \(([\d,]+); )"
)


def test_pages_name_the_defaults_of_options() -> None:
    options: dict[str, dict[str, Any]] = {}
    for path in ROOT.glob("*/*/src/*/plugin.toml"):
        manifest = tomllib.loads(path.read_text("utf-8"))
        options[manifest["name"]] = manifest.get("option", {})
    pages = set()
    for path in sorted(page for pattern in ("docs/*.md", "*/*/README.md") for page in ROOT.glob(pattern)):
        for plugin, name, *said in DEFAULT.findall(path.read_text("utf-8")):
            default = re.sub(r"(?<=\d)[ ,]", "", "".join(said)).strip('"')
            page = path.relative_to(ROOT).as_posix()
            assert (page, name, default) == (page, name, json.dumps(options[plugin][name]["default"]).strip('"'))
            pages.add(page)
    assert pages > {"docs/compile.md", "docs/dask.md", *(f"plugins/{name}/README.md" for name in ("cpu", "dask", "kernels"))}


def test_pages_name_the_choices_of_options() -> None:
    """A page that says one of them says all, but for the default."""
    compared = []
    for path in sorted(ROOT.glob("*/*/src/*/plugin.toml")):
        manifest = tomllib.loads(path.read_text("utf-8"))
        page = (path.parents[2] / "README.md").read_text("utf-8")
        for name, option in manifest.get("option", {}).items():
            named = {each for each in option.get("choices", ()) if each and re.search(rf"`\"?{each}\"?`", page)}
            if f"plugin.{manifest['name']}.{name}" in page and named:
                assert named | {option["default"]} == {*option["choices"]}
                compared.append(f"{manifest['name']}.{name}")
    assert {"autograd.missing", "cuda.matmul_precision", "kernels.instructions"} <= set(compared)


def test_dtypes_of_kernels_have_the_same_numbers_in_both_languages() -> None:
    words = {"F32": "f", "F64": "d", "F16": "e", "BF16": "E", "BYTE": "?"}
    listed = found(f"{KERNELS}/native/job.h", r"^enum \{ (.*), I64, DTYPES \};").split(", ")
    codes = found(f"{KERNELS}/native.py", r"^CODES = (.+)$").replace("F32", "0").replace("F64", "1")
    assert [words[each] for each in listed] == sorted(literal_eval(codes), key=literal_eval(codes).__getitem__)
    assert sorted(literal_eval(codes).values()) == list(range(len(listed)))


def test_reductions_of_kernels_have_the_same_numbers_in_both_languages() -> None:
    names = found(f"{KERNELS}/reductions.py", r"^\(\n((?:    .*\n)+)\) = range")
    listed = found(f"{KERNELS}/native/reductions.h", r"^enum \{\n(    SUM, [^}]*)\n\};")
    assert re.findall(r"\w+", names) == re.findall(r"\w+", listed)


CASES = (
    (f"{OPENCL}/complexes.py", f"{OPENCL}/templates/complex.cl"), (f"{OPENCL}/scattering.py", f"{OPENCL}/templates/move.cl"),
    (f"{OPENCL}/softmax.py", f"{OPENCL}/templates/softmax.cl"), (f"{CUDA}/floats.py", f"{CUDA}/kernels/types.cuh"),
    (f"{CUDA}/foreach.py", f"{CUDA}/kernels/optimisers.cu"), (f"{CUDA}/reductions.py", f"{CUDA}/kernels/reductions.cu"),
    (f"{CUDA}/scattering.py", f"{CUDA}/kernels/scattering.cu"),
)  # fmt: skip


@pytest.mark.parametrize(("module", "kernels"), CASES)
def test_cases_of_kernels_have_the_same_names_in_both_languages(module: str, kernels: str) -> None:
    names = re.findall(r"^(.+) = range\(\d+\)", (ROOT / module).read_text("utf-8"), re.MULTILINE)
    listed = re.findall(r"^enum \{ (.+) \};", (ROOT / kernels).read_text("utf-8"), re.MULTILINE)
    assert listed
    assert [re.sub(r"\b_", "", each) for each in names] == listed


def test_no_kernel_of_opencl_or_cuda_has_a_case_without_a_name() -> None:
    """More than a choice of two."""
    found = {}
    for path in (*(ROOT / OPENCL / "templates").glob("*.cl"), *(ROOT / CUDA / "kernels").glob("*.cu*")):
        found[path.name] = re.findall(r"case \d+:|\b(?:op|which|order|kind) [=<>]=? \d", path.read_text("utf-8"))
    assert len(found) > 25
    assert {name: cases for name, cases in found.items() if cases} == {}


def test_reductions_of_losses_are_called_by_their_names() -> None:
    """The public losses call the number of one `number`."""
    pattern = r"\b(?:reduction|number) (?:[!=]=|in|not in) (?:\d|\(\d)|(?:\bnot |!)reduction\b"
    wrong = []
    for path in (path for folder in ("plugins", "tools") for path in (ROOT / folder).glob("*/src/**/*.*")):
        if path.suffix in (".py", ".c", ".h", ".cl", ".cu", ".cuh"):
            text = path.read_text("utf-8")
            wrong += [(path.name, each) for each in re.findall(pattern, text) if "loss" in text]
    assert wrong == []


def test_conditions_of_endings_have_the_same_numbers_in_both_languages() -> None:
    names = {"None": "NO_VALUE", "False": "IS_FALSE", '"contiguous_format"': "CONTIGUOUS", "ZERO": "IS_ZERO"}
    pairs = re.findall(r"([^\s,]+): (-\d+)", found(f"{SPEED}/endings.py", r"^_WHEN = \{\n((?:.*\n)+?)\}"))
    listed = dict(re.findall(r"([A-Z_]+) = (-\d+)", found(f"{SPEED}/native/composites.h", r"^enum \{ (ANYTHING [^}]*)\}")))
    assert {names.get(name, name): value for name, value in pairs} | {"ANYTHING": "-1"} == listed


def test_each_number_that_says_where_its_copy_is_stands_in_the_table() -> None:
    """A comment such as "as in native/sorting.h" above a number or behind it."""
    missing = []
    for path in sorted(ROOT.glob("plugins/*/src/**/*.py")):
        file, lines = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8").splitlines()
        patterns = [pattern for rows in NUMBERS.values() for at, pattern in rows if at == file]
        for i, line in enumerate(lines):
            if re.search(r"# .*\b[Aa]s in (native|kernels|the te)", line):
                numbers = lines[i : i + 1] if line[0] != "#" else [each for each in lines[i + 1 : i + 3] if each[:1] == "_"]
                missing += [(file, each) for each in numbers if not all_are_compared(each, patterns)]
    assert missing == []


def all_are_compared(line: str, patterns: list[str]) -> bool:
    """Whether the groups of the patterns take each number of a line "_ONE, _TWO = 1, 2"."""
    taken = [group for pattern in patterns for match in re.finditer(pattern, line) for group in match.groups()]
    return len(line.partition(" = ")[0].split(", ")) <= sum(len(group.split(", ")) for group in taken)


def test_a_number_beside_one_that_is_compared_is_missing() -> None:
    line = "_ROWS, _BYTES = 6, 64  # as in native/batches.h"
    assert not all_are_compared(line, [r"^_ROWS, _BYTES = (\d+),"])
    assert all_are_compared(line, [r"^_ROWS, _BYTES = (\d+), (\d+)"])
    assert all_are_compared(line, [r"^_ROWS, _BYTES = ([\d, ]+)"])
    assert not all_are_compared("_ROWS = 6", [])


# ---- types of extension modules

TYPES = sorted(path for path in ROOT.glob("plugins/*/src/*/_*.pyi"))


@pytest.mark.parametrize("path", TYPES, ids=lambda path: path.stem)
def test_types_of_an_extension_module_have_its_names_and_the_parameters_of_its_texts(path: Path) -> None:
    module = pytest.importorskip(f"{path.parent.name}.{path.stem}")
    typed: dict[str, list[str] | None] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            typed[node.name] = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            typed[node.target.id] = None
    assert typed.keys() == {name for name in dir(module) if name[:2] != "__"}
    texts = {name: getattr(getattr(module, name), "__text_signature__", None) for name in typed}
    said = {name: re.findall(r"\w+", text) for name, text in texts.items() if text}
    assert {name: typed[name] for name in said} == said
    sources = "".join(each.read_text("utf-8") for each in path.parent.rglob("*.[ch]"))
    assert not re.findall(r'METH_(?:O|NOARGS),\s+"(?!\w+\()', sources), "Python 3.13 gives a text without parameters its own"


def test_each_extension_module_has_types() -> None:
    assert {path.stem for path in TYPES} == {path.stem for path in ROOT.glob("plugins/*/src/*/_*.c")} | {"_native"}
