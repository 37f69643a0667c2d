"""The generator: deterministic, and what it makes says what the schema says."""

from __future__ import annotations

import dis
import importlib.util
import pickle
import re
import subprocess
import sys
from functools import cache

import pytest

import turnout
from outcomes import printed, refused
from turnout.errors import SchemaError
from turnout.registry import REGISTRY, Registrations
from turnout_aten.declarations import documentation, tables
from turnout_aten.declarations.reading import load, parse
from turnout_aten.functions import compilation, lookup, public_modules
from turnout_aten.generated import groups, rows
from turnout_aten.generation import catalogue, docstrings, files
from turnout_aten.generation.__main__ import main
from turnout_aten.generation.functions import function_source
from turnout_aten.generation.methods import operator_method
from turnout_aten.generation.packets import int_list_spreads
from turnout_aten.generation.tables import check_names, operator_names, rows_text
from turnout_aten.generation.thirdparty import thirdparty_files, thirdparty_text
from turnout_aten.generation.typestubs import functions_stub, overloads
from turnout_aten.kernels.contract import read_signature, row_signature


def table(text):
    """The table that is generated from a yaml text."""
    namespace = {}
    exec(rows_text(parse(text), "the.yaml", lambda function, kernel: kernel), namespace)
    return tables.Table(namespace["OPERATORS"])


def packet(text, name, *, methods=False):
    functions = parse(text)
    packets = catalogue.method_packets(functions) if methods else catalogue.function_packets(functions, "")
    return next(p for p in packets if p.name == name)


# ---- the files


@cache
def standard():
    return load(files.STANDARD)


def test_functions_of_each_generated_module_have_a_public_one():
    assert [*files.MODULES] == [*public_modules.HOMES]


def test_a_fresh_interpreter_generates_the_files_on_disk_and_imports_nothing_that_is_generated():
    program = (
        "import sys; from turnout_aten.generation import files; print(files.stale(files.standard_files()[0]))\n"
        "print(*(name for name in sys.modules if name.startswith('turnout_aten.generated')))"
    )
    assert printed(program) == "", "the yaml or the generator was edited since: run `make codegen`"


def test_every_kernel_that_the_yaml_names_exists():
    assert [str(p) for p in files.missing_kernels(standard())] == []


def test_a_structured_operator_without_a_shape_function_and_the_reverse_are_reported():
    functions, families = standard(), files.shape_families()
    assert files.missing_shapes(functions, families) == []
    without = {name: family for name, family in families.items() if name != "add.out"}
    (problem,) = files.missing_shapes(functions, without)
    assert problem.text == "structured: no module of turnout_aten.shapes has a shape function for it in SHAPES"
    assert problem.entry == "add.out"
    with pytest.raises(ValueError, match=re.escape("no structured operator belongs to these shape functions: nosuch.out")):
        files.missing_shapes(functions, families | {"nosuch.out": "pointwise"})


def test_check_prints_a_diff_of_what_is_stale(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.py"
    path.write_text("a = 1\nb = 2\n")
    monkeypatch.setattr("turnout_aten.generation.__main__.standard_files", lambda: ({path: "a = 1\nb = 3\n"}, []))
    assert main(["--check"]) == 1
    printed = capsys.readouterr()
    assert "-b = 2\n+b = 3" in printed.out
    assert "generated files are stale" in printed.err
    assert path.read_text() == "a = 1\nb = 2\n"
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_a_build_without_pyyaml_says_what_to_install(tmp_path):
    program = (
        "import runpy, sys; sys.modules['yaml'] = None\n"
        f"sys.argv = ['setup.py', '-q', 'build_py', '-d', {str(tmp_path)!r}]; runpy.run_path('setup.py')"
    )
    project = files.PACKAGE.parents[1]
    done = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("turnout-aten is built from native_functions.yaml, which needs PyYAML: pip install PyYAML\n")
    assert list(tmp_path.iterdir()) == []


# ---- tables


def test_every_operator_has_one_row():
    declared = standard().by_name
    found = [tables.Row.read(row) for own in rows.OPERATORS.values() for row in own.split(tables.END)]
    assert len(found) == len(declared)
    for schema, module, is_method, tags, device_check, device_guard, kernels, called in found:
        f = declared[schema[: schema.index("(")]]
        assert (module, is_method, tags) == (catalogue.module_of(f), catalogue.is_method(f), tuple(sorted(f.tags)))
        op = REGISTRY.find(f.qualified_name)
        assert str(op.schema) == schema
        of_group = groups.STRUCTURED.get(f.qualified_name)
        assert read_signature(called) == (of_group[2] if of_group is not None else row_signature(op.schema, {}))
        assert (op.tags, op.device_check, op.device_guard) == (tags, device_check, device_guard)
        assert {key for key, _ in kernels} <= {key for key in op.kernels if key.startswith("Composite")}


def test_stubs_are_found_by_names_that_underscores_make_hard_to_read():
    made = table(
        "- func: __and__.Tensor(Tensor self, Tensor other) -> Tensor\n- func: _f_(Tensor(a!) self) -> Tensor(a!)\n"
        "- func: _f_.x__y(Tensor(a!) self, int n) -> Tensor(a!)\n"
    )
    for name, expected in (
        ("__and____Tensor", "__and__.Tensor"), ("_f_", "_f_"), ("_f___x__y", "_f_.x__y"), ("_f___x", None), ("__and__", None),
    ):  # fmt: skip
        found = made.find(name)
        assert (None if found is None else found.qualified_name) == (None if expected is None else f"aten::{expected}")


def test_structured_operators_list_whom_they_serve():
    served, precomputed, signature, family = groups.STRUCTURED["aten::add.out"]
    assert served["aten::add.Tensor"] == "functional"
    assert served["aten::add_.Tensor"] == "inplace"
    assert served["aten::add.Scalar"] == "functional"
    assert served["aten::add.out"] == "out"
    assert precomputed == {}
    assert (signature, family) == ((("self", "other", "alpha", "out"), 1, 2), "pointwise")


def test_arity_errors_name_the_operator():
    assert refused(TypeError, turnout.ops.aten.add.Tensor) == (
        "aten::add.Tensor() missing 2 required positional arguments: 'self' and 'other'"
    )


# ---- functions


def test_private_and_backward_operators_get_no_function():
    text = """
- func: _hidden(Tensor self) -> Tensor
- func: f_backward(Tensor self) -> Tensor
- func: f(Tensor self) -> Tensor
  autogen: f.out
- func: g(Tensor self) -> Tensor
  variants: method
- func: h_(Tensor(a!) self) -> Tensor(a!)
  variants: method
  autogen: h, h.out
"""
    (only,) = catalogue.function_packets(parse(text), "")
    assert only.name == "f"
    assert [f.name for f in only.all] == ["f", "f.out"]


@pytest.mark.parametrize("module", ["linalg", "fft", "special"])
def test_a_python_module_takes_its_name_off_its_functions(module):
    text = f"""
- func: {module}_f(Tensor self, int n=1) -> Tensor
  python_module: {module}
  variants: function
- func: {module}_f.out(Tensor self, int n=1, *, Tensor(a!) out) -> Tensor(a!)
  python_module: {module}
- func: other(Tensor self) -> Tensor
"""
    (only,) = catalogue.function_packets(parse(text), module)
    lines = function_source(only).lines
    assert lines[0] == "def f(input=MISSING, n=1, **more):"
    assert f"            return op_{module}_f__out(input, n, out=out)" in lines
    assert lookup.function_in(table(text), f"turnout.{module}", "f").operator_name == f"aten::{module}_f"
    assert lookup.function_in(table(text), "turnout", "f") is None
    assert lookup.function_in(table(text), "turnout", "other").__name__ == "other"
    stub = functions_stub(parse(text), module, "the.yaml")
    assert "\ndef f(input: Tensor, n: _int = ..., *, out: Tensor | None = None) -> Tensor: ...\n" in stub
    assert stub.endswith("\n__all__ = ['f']\n")


@pytest.mark.parametrize("module", ["linalg", "fft", "special"])
def test_a_public_module_has_all_functions_of_its_python_module(module):
    public = getattr(turnout, module)
    assert set(lookup.names(f"turnout.{module}")) <= set(public.__all__)
    assert all(callable(getattr(public, name)) for name in public.__all__)


def test_a_star_import_leaves_out_what_the_public_module_writes_itself():
    text = "- func: f(Tensor self) -> Tensor\n- func: g(Tensor self) -> Tensor"
    stub = functions_stub(parse(text), "", "the.yaml", hidden={"f", "other"})
    assert "\ndef f(input: Tensor) -> Tensor: ...\n" in stub
    assert stub.endswith("\n__all__ = ['g']\n")
    assert {"tensor", "einsum", "nn"} <= files.hidden_names("turnout")


# ---- methods


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("int[] size", "only"),
        ("int[1]? dim, bool keepdim=False", "leading"),
        ("int[1] shifts, int[1] dims=[]", ""),
        ("int dim0, int dim1", ""),
        ("Tensor other", ""),
    ],
)
def test_int_lists_that_may_be_written_one_by_one(arguments, expected):
    text = f"- func: f(Tensor self, {arguments}) -> Tensor\n  variants: method"
    assert int_list_spreads(packet(text, "f", methods=True), method=True) == expected


def test_python_operators_exist_where_their_operators_do():
    text = "- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n- func: neg(Tensor self) -> Tensor"
    assert operator_names(parse(text)) == ["__neg__", "__add__", "__radd__"]
    by_name = {f.schema.name.name: [f] for f in parse(text)}
    lines = operator_method("__add__", lambda name: by_name.get(name, [])).lines
    assert lines[-1] == "    return kernel(ks, self, other, 1)"
    assert "        return binary(self, other, op_add__Tensor, None)" in lines


def test_type_stubs_have_one_signature_per_overload():
    text = """
- func: f(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor
  variants: function, method
- func: f.out(Tensor self, int[] size, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)
"""
    (function,) = overloads(packet(text, "f"), method=False, spread="")
    assert function == (
        "def f(input: Tensor, size: Sequence[_int], *, dtype: DType | type | None = ..., "
        "out: Tensor | None = None) -> Tensor: ..."
    )
    assert overloads(packet(text, "f", methods=True), method=True, spread="only") == [
        "@overload",
        "def f(self, size: Sequence[_int], *, dtype: DType | type | None = ...) -> Tensor: ...",
        "@overload",
        "def f(self, *size: _int, dtype: DType | type | None = ...) -> Tensor: ...",
    ]


# ---- names


def test_stubs_that_would_share_a_name_are_refused():
    text = "- func: f.a(Tensor self) -> Tensor\n- func: f__a(Tensor self, int x) -> Tensor"
    assert refused(ValueError, catalogue.unique_identifiers, parse(text)) == (
        "aten::f.a and aten::f__a would have one stub, f__a; rename an overload"
    )


def test_functions_that_would_share_a_name_are_refused():
    assert refused(ValueError, check_names, ["f", "g", "f"]) == "two public functions would be called f"
    assert refused(ValueError, check_names, ["as_int"]) == (
        "the public function as_int would hide a name that functions use; rename the operator"
    )


def test_every_variable_of_the_texts_is_bound():
    made = tables.standard()
    functions = [lookup.function("turnout", name) for name in lookup.names("turnout")]
    methods = [
        compilation.make_method(made, name) for name in ("softmax", "where", "__add__", "__rtruediv__", "__rfloordiv__", "max")
    ]
    for function in [*functions, *methods]:
        own = getattr(function, "__wrapped__", function)
        opcodes = {i.argval for i in dis.get_instructions(own) if i.opname == "LOAD_GLOBAL"}
        assert opcodes <= {*own.__globals__, *own.__builtins__}, own


# ---- a third party's file

YAML = """
- func: mine::double(int x) -> int
- func: mine::half.int(int x) -> int
  dispatch: {CompositeImplicitAutograd: halves.half_int}
"""


def test_a_third_party_gets_one_file(tmp_path, monkeypatch):
    (tmp_path / "my.yaml").write_text(YAML)
    out = tmp_path / "my_generated.py"
    arguments = ["--yaml", str(tmp_path / "my.yaml"), "--out", str(out), "--module", "my_kernels"]
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    (tmp_path / "my_kernels").mkdir()
    (tmp_path / "my_kernels" / "__init__.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "my_kernels" / "halves.py").write_text("def half_int(x):\n    return x // 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = importlib.util.spec_from_file_location("my_generated", out)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with Registrations("mine") as library:
        module.install(library)
        assert module.double(3) == 6
        assert module.half(7) == 3
        assert turnout.ops.mine.double(5) == 10
        assert turnout.ops.mine.double.default.cache is module.double.__globals__["K_double"]
    refused(turnout.errors.StaleOperatorError, module.double, 3)
    with Registrations("mine") as library:
        module.install(library)
        assert module.double(3) == 6
    assert refused(AttributeError, lambda: module.treble) == "module 'my_generated' has no attribute 'treble'"
    for name in ("my_kernels", "my_kernels.halves"):
        sys.modules.pop(name, None)


def test_a_third_partys_file_needs_no_pyyaml(tmp_path):
    (tmp_path / "my_table.py").write_text(thirdparty_text(parse(YAML), "my.yaml", "my_kernels"))
    (tmp_path / "my_kernels.py").write_text(
        "class halves:\n    def half_int(x): return x // 2\ndef double(x): return 2 * x\n"
        "import sys; sys.modules['my_kernels.halves'] = halves"
    )
    program = (
        f"import sys; sys.modules['yaml'] = None; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from my_table import *\nimport my_kernels, my_table\nfrom turnout.registry import Registrations\n"
        "my_table.install(Registrations('mine'))\n"
        "print(double(4), half(9), sorted(my_table.__all__))"
    )
    assert printed(program) == "8 4 ['double', 'half']"


def test_a_third_partys_named_results_pickle(tmp_path, monkeypatch):
    text = "- func: mine::f(int x) -> (int low, int high)"
    (tmp_path / "my_named.py").write_text(thirdparty_text(parse(text), "my.yaml", "my_kernels"))
    (tmp_path / "my_kernels.py").write_text("def f(x):\n    return x - 1, x + 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("my_named")
    try:
        with Registrations("mine") as library:
            module.install(library)
            result = module.f(3)
        assert (result.low, result.high) == (2, 4)
        assert pickle.loads(pickle.dumps(result)).high == 4
    finally:
        for name in ("my_named", "my_kernels"):
            sys.modules.pop(name, None)


def test_bad_input_writes_nothing_and_says_why(tmp_path, capsys):
    path = tmp_path / "my.yaml"
    out = tmp_path / "out.py"
    path.write_text("- func: double(int x) -> int\n  varaints: function\n")
    assert main(["--yaml", str(path), "--out", str(out), "--namespace", "mine"]) == 2
    assert capsys.readouterr().err == f"codegen: {path}:2: double: unknown field 'varaints'; did you mean 'variants'?\n"
    path.write_text("- func: double(int x) -> int\n")
    assert main(["--yaml", str(path), "--out", str(out)]) == 2
    assert capsys.readouterr().err == "codegen: --namespace is needed: some entries of the yaml do not write theirs\n"
    assert main(["--yaml", str(path), "--out", str(out), "--namespace", "mine"]) == 2
    assert capsys.readouterr().err == "codegen: --module is needed: the kernel double is named without one\n"
    assert not out.exists()


def test_an_operator_has_one_shape_function(monkeypatch, tmp_path):
    folder = tmp_path / "shapes"
    folder.mkdir()
    for name in ("first", "second"):
        (folder / f"{name}.py").write_text('SHAPES: dict = {"add.out": None}\n')
    monkeypatch.setattr(files, "PACKAGE", tmp_path)
    assert refused(ValueError, files.shape_families) == (
        "turnout_aten.shapes.second and first both have a shape function for add.out"
    )


def test_structured_operators_of_another_package_are_not_generated(tmp_path):
    path = tmp_path / "operators.yaml"
    path.write_text(
        "- func: mine::f(Tensor self) -> Tensor\n  structured_delegate: f.out\n"
        "- func: mine::f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True\n  dispatch:\n    CPU: f_out\n"
    )
    assert refused(ValueError, thirdparty_files, path, tmp_path / "made.py", None, None) == (
        "structured operators need turnout_aten.declarations.load_yaml at run time: f, f.out"
    )


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"b": "operators:\n  add:\n    does: adds\n"}, "add is documented in a.yaml and in b.yaml; keep one entry"),
        ({"b": "operators:\n  mul:\n    family: a\n"}, "b.yaml: mul: unknown field family; known: "),
        ({"b": "operators:\n  mul: {}\n"}, "b.yaml: mul: write what it does ('does'), or what it is another name of ('alias')"),
    ],
)
def test_documentation_that_is_wrong_is_refused(tmp_path, more, text):
    for name, held in ({"a": "operators:\n  add:\n    does: adds\n"} | more).items():
        (tmp_path / f"{name}.yaml").write_text(held)
    assert refused(SchemaError, documentation.read, tmp_path).startswith(text)


def test_an_example_that_does_not_call_what_it_shows_is_refused():
    assert refused(SchemaError, docstrings._recast, ">>> turnout.mul(x, y)\n", "turnout.add", ".add") == (
        "no line of the example calls turnout.add, which is needed to show .add:\n>>> turnout.mul(x, y)\n"
    )
