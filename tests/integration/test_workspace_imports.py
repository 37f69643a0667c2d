"""Who imports whom: what `import turnout` loads, that nothing goes in circles, and what distributions take from each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from workspace import ROOT, Distribution, Module, circles, distributions, files, graph_of, module, modules, rooms

EVERY = distributions()
each = pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
CORE = next(one for one in EVERY if one.name == "turnout-core")

# Imported at first use, if at all.
LATE = [
    "ctypes", "dataclasses", "importlib.metadata", "importlib_metadata", "inspect", "json", "ml_dtypes", "numpy", "pluggy", "re",
    "scipy", "tomllib", "typing", "yaml",
]  # fmt: skip

# ---- what is loaded when


def loaded_by(program: str) -> set[str]:
    """The modules that are loaded after a program."""
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_import_turnout_loads_nothing_heavy():
    before, after = loaded_by(""), loaded_by("import turnout")
    assert not set(LATE) & before, "loaded by the start of the interpreter: this test would see nothing"
    assert "turnout" in after
    assert not set(LATE) & after


def test_import_turnout_loads_no_plugin():
    assert not {one.module for one in EVERY if one is not CORE} & loaded_by("import turnout")


def test_using_the_cpu_loads_scipy_only_where_a_kernel_needs_it():
    assert "scipy" not in loaded_by("import turnout; (turnout.ones(2) + 1).sum()")


def test_the_first_operation_loads_nothing_for_archives_files_or_custom_operators():
    late = {"importlib_metadata", "importlib.metadata", "importlib.resources", "tempfile", "shutil", "zipfile", "csv", "email",
            "turnout.library"}  # fmt: skip
    assert not late & loaded_by("import turnout; turnout.ones(2) + 1")


def test_public_modules_are_loaded_when_they_are_first_used():
    late = {f"turnout_aten.{name}" for name in ("fft", "linalg", "nn", "special")}
    assert not late & loaded_by("import turnout; turnout.Tensor")
    assert late <= loaded_by("import turnout; turnout.fft, turnout.linalg, turnout.nn, turnout.special")


# ---- no circles


@each
def test_no_file_imports_itself_through_others(one: Distribution):
    found = circles(files(one))
    assert [f"{a} -> {b}" for circle in found for a in circle for b in sorted(files(one)[a] & set(circle))] == []


NOTE = ROOT / "docs" / "notes" / "0001-how-the-parts-fit.md"


def stated_order(text: str) -> list[str]:
    """The rooms of core as the note states them: by rows, from left to right."""
    table = text.split("## Rooms of core")[1].split("\n\n")[1]
    return [room for cell in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE) for room in re.findall(r"`(\w+)`", cell)]


def test_the_note_has_each_distribution_in_a_row_by_its_kind():
    (table,) = re.findall(r"^## Distributions\n((?:\|.*\n)+)", NOTE.read_text("utf-8"), re.MULTILINE)
    rows = dict(re.findall(r"^\| `(.*?)` \|.*?\| (.*) \|$", table, re.MULTILINE))
    kinds: dict[str, set[str]] = {"backend": set(), "functionality": set(), "library": set()}
    for one in EVERY:
        if one.folder.parent.name == "plugins" and f"plugins/{one.folder.name}" not in rows:
            kinds[tomllib.loads((one.source / "plugin.toml").read_text("utf-8"))["kind"]].add(one.module.removeprefix("turnout_"))
    for kind, shown in (("backend", "backend"), ("functionality", "functionality"), ("library", "namespace")):
        assert set(re.findall(r"`(\w+)`", rows[f"plugins/<{shown}>"])) == kinds[kind]
    assert [folder for folder in rows if not re.search("[<*]", folder) and not (ROOT / folder).is_dir()] == []
    assert set(re.findall(r"`([\w-]+)`", rows["tools/*"])) == {one.name for one in EVERY if one.folder.parent.name == "tools"}


def against(order: list[str], graph: dict[str, set[str]]) -> list[str]:
    """The imports of a room from one that does not stand before it."""
    known = [(room, other) for room in graph for other in sorted(graph[room]) if other != room]
    return [f"{room} imports {other}" for room, other in known if order.index(room) < order.index(other)]


def test_each_room_of_core_imports_only_those_that_the_note_states_before_it():
    order, graph = stated_order(NOTE.read_text("utf-8")), rooms(files(CORE))
    assert sorted(order) == sorted(graph)
    assert against(order, graph) == []


def test_an_import_against_the_stated_order_is_found_in_a_row_and_between_rows():
    order = stated_order("## Rooms of core, in order\n\n| room | holds |\n|---|---|\n| `a`, `b` | x, `y` |\n| `c` | z |\n\n`d`")
    assert order == ["a", "b", "c"]
    assert against(order, {"a": set(), "b": {"a"}, "c": {"a", "b"}}) == []
    assert against(order, {"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a imports b", "b imports c"]


def test_each_room_of_autograd_imports_only_those_before_it_is_in_the_map_and_says_what_it_holds():
    # Importing a family of `generated` is what `recording` does when an operator is first used.
    order = [
        "errors", "declarations", "generation", "duals", "formulas", "tangents", "engine", "recording", "transforms", "forward",
        "hooks", "function", "passes", "functional", "checkpointing", "modules", "checking", "drawing", "public", "service",
        "plugin",
    ]  # fmt: skip
    autograd = next(one for one in EVERY if one.name == "turnout-autograd")
    found = {name: imports - {"generated"} for name, imports in rooms(files(autograd)).items() if name != "generated"}
    assert found.keys() == set(order)
    assert [(room, name) for room in found for name in found[room] if order.index(room) < order.index(name)] == []
    for folder in (path for path in autograd.source.iterdir() if path.name in found and path.is_dir()):
        assert f"| `{folder.name}` |" in (autograd.source / "__init__.py").read_text("utf-8")
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))


def docstring(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""


def columns(text: str) -> list[str]:
    """The names in the first column of a package's map, if it has one."""
    return [name for cell in re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)/?`", cell)]


PACKAGES = [path.parent for one in EVERY if not one.is_stubs for path in sorted(one.source.rglob("__init__.py"))]
MAPS = [folder for folder in (*PACKAGES, ROOT / "docs/site/generated_pages") if columns(docstring(folder))]
NAME_SAYS_IT = {"__main__", "errors", "generated", "plugin"}


@pytest.mark.parametrize("folder", MAPS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_map_of_a_package_has_every_module_once(folder: Path):
    text = docstring(folder)
    named, said = columns(text), set(re.findall(r"`(\w+)(?:/|\.py)?`", text))
    there = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert len(set(named)) == len(named)
    assert set(named) <= there
    assert "| the others |" in text or there - said <= {"__init__", *NAME_SAYS_IT}


def test_a_map_is_read_by_the_first_column_of_its_table():
    assert columns("A room.\n\n| module | holds |\n|---|---|\n| `a`, `b/` | `c` |\n| the others | `d` |\n") == ["a", "b"]
    assert len(MAPS) > 25


def test_the_top_level_of_core_fits_a_screen():
    names = {p.name for p in CORE.source.iterdir()} - {"__pycache__"}
    assert len(names) <= 16, sorted(names)


def test_an_import_counts_wherever_it_runs_and_a_package_counts_as_its_init():
    texts = {
        "p.__init__": "from p.a import x",
        "p.a": "def f():\n    from p import b\n",
        "p.b": "try:\n    pass\nexcept E:\n    import p.c\n",
        "p.c": "if TYPE_CHECKING:\n    from p.b import y\nelse:\n    from p import d\n",
        "p.d": "from . import nothing",
    }
    graph = graph_of({name: module(name, text) for name, text in texts.items()})
    assert graph == {"p": {"p.a"}, "p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": {"p.d"}, "p.d": {"p"}}
    assert circles(graph) == [["p", "p.a", "p.b", "p.c", "p.d"]]
    assert circles({**graph, "p.d": set()}) == []
    assert rooms(graph)["a"] == {"b"}


# ---- core knows nobody


def test_no_file_of_core_names_a_plugin():
    """Which package provides what is data that the build makes of the manifests."""
    names = [n for one in EVERY if one is not CORE for n in (one.module, one.name)]
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))}|aten)\b")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "core"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    paths = [ROOT / name for name in tracked if name] or [
        p for p in CORE.folder.rglob("*") if p.suffix in (".py", ".toml", ".md")
    ]
    found = []
    for path in paths:
        if path.is_file():  # one that was moved is still listed
            lines = path.read_text("utf-8").splitlines()
            found += [f"{path.relative_to(ROOT)}:{i}: {m[0]}" for i, t in enumerate(lines, 1) if (m := pattern.search(t))]
    assert len(paths) > 70
    assert found == []


def test_core_imports_only_itself_and_what_it_depends_on():
    allowed = {"turnout", "importlib_metadata", "pluggy", *sys.stdlib_module_names}
    found = [(path, name) for path, read in modules(CORE.source).items() for _, name in read.imports]
    assert [(path, name) for path, name in found if name.partition(".")[0] not in allowed] == []


def test_no_test_of_core_imports_a_plugin_or_an_array_library():
    allowed = {"hypothesis", "pytest", "setuptools", "turnout", "pluggy", "importlib_metadata", *sys.stdlib_module_names}
    folder = ROOT / "tests" / "core"
    shared = [ROOT / "tests" / f"{name}.py" for name in ("guard_scenarios", "subinterpreters", "random_programs/registration")]
    own = {path.stem for path in folder.rglob("*.py")} | {"fake_alpha"}  # a package that the tests write
    own |= {"guard_scenarios", "outcomes", "random_programs", "refusal_tables"}  # NumPy where numbers are compared
    own |= {"subinterpreters"}
    for path in (*folder.rglob("*.py"), *shared):
        for _, name in module("", path.read_text("utf-8")).imports:
            assert name.partition(".")[0] in allowed | own, f"{path}: {name}"


# ---- what distributions take from each other


# ---- the state of dispatch


STATE = re.compile(r"turnout\.state\.(DISPATCH|FRESH|MODES|STUB_BUILTINS|current)")
READ = re.compile(r"\bstate\.(DISPATCH|FRESH|MODES|STUB_BUILTINS)\b")
FORMULA = re.compile(r"\|\s*(?:include|state\[0\])\)\s*&\s*(?:keep|state\[1\])|PySequence_GetItem\(state, [01]\)")


def test_few_files_read_the_state_of_dispatch_and_one_of_each_language_knows_the_key_set_of_a_call():
    others = [one for one in EVERY if one is not CORE]
    every = [(name, read) for one in others for name, read in modules(one.source).items()]
    readers = {name for name, read in every if any(STATE.fullmatch(each) for _, each in read.imports)}
    sources = [path for one in others for path in one.source.rglob("*.py")]
    readers |= {str(path) for path in sources if READ.search(path.read_text("utf-8"))}
    assert len(readers) <= 12, sorted(readers)
    folders = [path for one in EVERY for path in one.source.rglob("*") if path.suffix in (".py", ".h", ".c")]
    # Beside the function, the text of stubs has the formula, because a call would cost a frame.
    assert {path.name for path in folders if FORMULA.search(path.read_text("utf-8"))} == {"state.py", "stubs.py", "state.h"}


# ---- one name for a family of operators


HAS_ROWS = {"kernels", "KERNELS"}
# Modules with rows whose name is no family's -> why.
OF_SEVERAL = {
    "turnout_cpu.blocks": "element-wise rows of any family, which share work among threads",
    "turnout_cpu.rows": "rows of any family that share lines of an array among threads",
    "turnout_cuda.biased_products": "products of linear layers, by cuBLASLt beside cuBLAS",
    "turnout_cuda.direct_convolutions": "convolutions of few products, beside those of cuDNN",
    "turnout_cuda.selection": "what masks select: rows of indexing and of sorting, which share kernels",
    "turnout_kernels.few": "rows of any family that serve few elements alone",
    "turnout_opencl.complexes": "rows of any family for complex64, beside those of the family",
}  # fmt: skip


def families() -> set[str]:
    """The names of families: modules of shape functions and composites, and files of gradients."""
    aten, autograd = ROOT / "plugins/aten/src/turnout_aten", ROOT / "plugins/autograd/src/turnout_autograd"
    found = [*(aten / "shapes").glob("*.py"), *(aten / "composites").glob("*.py"), *(autograd / "declarations").glob("*.yaml")]
    return {path.stem for path in found}


def names_of(path: Path) -> set[str]:
    """The functions and the tables that a module defines."""
    statements = ast.parse(path.read_text("utf-8")).body
    assigned = [t for s in statements if isinstance(s, ast.Assign) for t in s.targets]
    assigned += [s.target for s in statements if isinstance(s, ast.AnnAssign)]
    return {s.name for s in statements if isinstance(s, ast.FunctionDef)} | {t.id for t in assigned if isinstance(t, ast.Name)}


def modules_with_rows() -> set[str]:
    """The modules beside the one that puts the table of a backend together."""
    found = set()
    for folder in (ROOT / "plugins").glob("*/src/turnout_*"):
        for path in folder.glob("*.py"):
            if names_of(path) & HAS_ROWS and path.stem not in ("table", "kernels"):
                found.add(f"{folder.name}.{path.stem}")
    return found


def test_a_family_of_operators_has_one_name_in_all_backends():
    known, found = families(), modules_with_rows()
    assert {"turnout_arrays.sorting", "turnout_cuda.indexing", "turnout_kernels.pointwise", "turnout_opencl.indexing"} < found
    assert {name for name in found if name.partition(".")[2] not in known} == OF_SEVERAL.keys()


def test_a_plugin_has_a_table_of_families_or_kernels_beside_their_table():
    """`table` puts the tables of families together; `kernels` holds kernels and their table, or what runs at a key."""
    found = {}
    for folder in (ROOT / "plugins").glob("*/src/turnout_*"):
        for name in ("table", "kernels"):
            if (folder / f"{name}.py").exists():
                assert folder.name not in found, "both"
                found[folder.name] = name
                has = names_of(folder / f"{name}.py")
                assert ("FAMILIES" in has) == (name == "table"), folder.name
                assert has & {"kernels", "specialize"}, folder.name
    assert {"turnout_opencl": "table", "turnout_cpu": "kernels", "turnout_batched": "kernels"}.items() <= found.items()
    assert len(found) >= 11


def test_a_program_in_cuda_c_has_the_name_of_the_module_that_calls_it_or_of_a_part_of_a_family():
    folder = ROOT / "plugins/cuda/src/turnout_cuda"
    parts = {"arithmetic", "functions", "batch"}  # of `pointwise` and `normalisation`
    programs = {path.stem for path in (folder / "kernels").glob("*.cu")}
    assert programs - {path.stem for path in folder.glob("*.py")} == parts


# ---- C


FUNCTION = re.compile(r"^([A-Za-z_]+ [^\n;={]*\([^;={]*\))\s*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def functions_in_c(text: str) -> dict[str, str]:
    """What each function of some lines does, without blanks -> its head."""
    return {short: head for head, body in FUNCTION.findall(text) if len(short := "".join(body.split())) > 80}


def test_no_function_in_c_stands_twice():
    found: dict[str, list[str]] = {}
    for path in (path for one in EVERY for path in one.source.rglob("*") if path.suffix in (".c", ".h", ".cu", ".cuh", ".cl")):
        if not path.is_symlink():
            for body, head in functions_in_c(path.read_text("utf-8")).items():
                found.setdefault(body, []).append(f"{path.name}: {head}")
    assert len(found) > 400
    assert [heads for heads in found.values() if len(heads) > 1] == []


def test_a_function_in_c_is_found_with_its_body():
    body = (
        "    int here = 0;\n    for (int i = 0; i < 100; i++)\n        here += values[i] * values[i];\n" + "    more(here);\n" * 4
    )
    text = f"#define ONE 1\nint declared(int);\n\nstatic int added(const int *values)\n{{\n{body}}}\n"
    assert functions_in_c(text) == {"".join(body.split()): "static int added(const int *values)"}


# ---- classes of objects


EXCHANGED = re.compile(r"\.__class__\s*=(?!=)|__setattr__\(.*__class__|\bsetattr\(.*__class__|\bPy_SET_TYPE\b|\bob_type\s*=(?!=)")
# What becomes an object of another class, because users see its type: file -> (how often, why).
BECOMES = {
    "turnout/plugins/public_names.py": (1, "a module that has members: how Python lets a module answer for a name"),
    "turnout_nn/modules/lazy.py": (1, "a lazy module is of its plain class after the first call, as in PyTorch"),
    "turnout_nn/utils/parametrize.py": (2, "a module with a parametrization has a class of its own, as in PyTorch"),
    "turnout_nn/parameters.py": (1, "a parameter that gets its shape is the object that an optimiser knows"),
    "turnout_functionalize/values.py": (1, "a tensor that outlives its function is an ordinary one then"),
    "turnout_autograd/hooks/packing.py": (1, "a node that others have as their edge unpacks before its formula runs"),
}


def test_no_object_changes_its_class_but_where_users_see_its_type_or_hold_it():
    found: dict[str, int] = {}
    for path in (path for one in EVERY for path in one.source.rglob("*") if path.suffix in (".py", ".h", ".c")):
        times = sum(bool(EXCHANGED.search(line)) for line in path.read_text("utf-8").splitlines())
        if times:
            found["/".join(path.parts[path.parts.index("src") + 1 :])] = times
    assert found == {file: times for file, (times, _) in BECOMES.items()}


@pytest.mark.parametrize("line", [
    "    storage.__class__ = Other", "x.__class__=Other", 'object.__setattr__(x, "__class__", Other)',
    "setattr(x, '__class__', Other)", "    Py_SET_TYPE(made, Other);", "    made->ob_type = Other;",
])  # fmt: skip
def test_a_change_of_class_is_found_in_every_spelling(line: str):
    assert EXCHANGED.search(line)


def test_a_comparison_of_classes_is_no_change():
    assert not any(map(EXCHANGED.search, ["x.__class__ == Other", "x.__class__ is Other", "x->ob_type == Other"]))


def private_uses(own: str, module: str, read: Module) -> list[str]:
    """Names with a leading underscore that `module` takes from another distribution, by an import or as turnout.a._b."""
    found = []
    for line, name in sorted([*read.imports, *read.private]):
        parts = name.split(".")
        foreign = (parts[0] == "turnout" or parts[0].startswith("turnout_")) and parts[0] != own
        if foreign and any(p.startswith("_") and not p.startswith("__") for p in parts):
            found.append(f"{module}:{line} uses {name}")
    return found


@each
def test_distributions_use_no_private_name_of_another(one: Distribution):
    assert [line for name, read in modules(one.source).items() for line in private_uses(one.module, name, read)] == []


def test_a_private_use_is_found_in_every_spelling():
    text = (
        "from turnout.keys import _bits\nimport turnout_y._state\nx = turnout.keys._bits\nturnout.keys.__doc__\n"
        "from turnout_x.b import _own\n"
    )
    assert private_uses("turnout_x", "turnout_x.a", module("turnout_x.a", text)) == [
        "turnout_x.a:1 uses turnout.keys._bits",
        "turnout_x.a:2 uses turnout_y._state",
        "turnout_x.a:3 uses turnout.keys._bits",
    ]
