"""One entry of a native function file: every field is read, and every mistake in one is a problem with its line."""

from __future__ import annotations

import sys

import pytest

from outcomes import refused
from turnout_aten.declarations.reading import load, parse
from turnout_aten.errors.declarations import DeclarationError

ADD = """
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  variants: function, method
  structured_delegate: add.out
  tags: [core, pointwise]
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  variants: method
  structured_delegate: add.out
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  device_check: NoCheck
  precomputed:
  - other -> Tensor left, Tensor right
  - int count
  dispatch:
    CPU, CUDA: add_kernel
    SparseCPU: add_sparse
"""


def problems(text, **options):
    with pytest.raises(DeclarationError) as caught:
        parse(text, source="f.yaml", **options)
    return [str(p) for p in caught.value.problems]


def test_every_field_of_a_structured_operator_is_read():
    functions = parse(ADD)
    out = functions["add.out"]
    assert out.structured
    assert out.structured_inherits == "TensorIteratorBase"
    assert out.device_check == "NoCheck"
    assert dict(out.dispatch) == {"CPU": "add_kernel", "CUDA": "add_kernel", "SparseCPU": "add_sparse"}
    assert out.precomputed.names == {"other": ("left", "right"), "": ("count",)}
    add = functions["aten::add.Tensor"]
    assert add.variants == {"function", "method"}
    assert add.tags == {"core", "pointwise"}
    assert functions.delegate_of(add) is out
    assert [f.name for f in functions.group_of(add)] == ["add.Tensor", "add_.Tensor", "add.out"]
    assert (add.source, add.line) == ("<text>", 2)


def test_remaining_fields_and_their_defaults():
    (f,) = parse(
        """
- func: ns::f(Tensor self, int dim=0) -> Tensor
  device_guard: False
  manual_kernel_registration: True
  category_override: factory
  python_module: nn
  use_const_ref_for_mutable_tensors: True
  cpp_no_default_args: ['dim']
"""
    )
    assert (f.namespace, f.name, f.qualified_name) == ("ns", "f", "ns::f")
    assert (f.device_guard, f.manual_kernel_registration, f.python_module) == (False, True, "nn")
    assert f.use_const_ref_for_mutable_tensors
    assert f.cpp_no_default_args == {"dim"}
    assert f.category_override == "factory"
    assert dict(f.dispatch) == {}
    (g,) = parse("- func: g(Tensor self) -> Tensor")
    assert (g.variants, g.device_check, g.device_guard, g.tags) == ({"function"}, "ExactSame", True, frozenset())
    assert dict(g.dispatch) == {"CompositeImplicitAutograd": "g"}


def test_an_out_variant_without_dispatch_has_a_kernel_named_out():
    f = parse("- func: f(Tensor self) -> Tensor\n- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")["f.out"]
    assert dict(f.dispatch) == {"CompositeImplicitAutograd": "f_out"}


def test_an_empty_dispatch_says_that_kernels_come_from_elsewhere():
    (f,) = parse("- func: f(Tensor self) -> Tensor\n  dispatch: {}")
    assert dict(f.dispatch) == {}


def test_historic_fields_are_accepted_with_a_note():
    functions = parse(
        """
- func: f(Tensor self) -> Tensor
  use_c10_dispatcher: full
  matches_jit_signature: False
  dispatch: f_impl
- func: g(Tensor self) -> Tensor
  dispatch:
    Math: g_math
- func: h(Tensor self) -> Tensor
  dispatch:
    DefaultBackend: h_default
""",
        source="old.yaml",
    )
    assert dict(functions["f"].dispatch) == {"CompositeImplicitAutograd": "f_impl"}
    assert dict(functions["g"].dispatch) == {"CompositeImplicitAutograd": "g_math"}
    assert dict(functions["h"].dispatch) == {"CompositeExplicitAutograd": "h_default"}
    assert functions.notes == [
        "old.yaml:2: f: use_c10_dispatcher is historic and has no effect: every operator can be called both ways",
        "old.yaml:2: f: matches_jit_signature is historic and has no effect: only one schema language exists",
        "old.yaml:2: f: `dispatch: f_impl` is historic: read as `dispatch: {CompositeImplicitAutograd: f_impl}`",
        "old.yaml:6: g: the dispatch key Math is historic: read as CompositeImplicitAutograd",
        "old.yaml:9: h: the dispatch key DefaultBackend is historic: read as CompositeExplicitAutograd",
    ]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("variant: function", "unknown field 'variant'; did you mean 'variants'?"),
        ("variants: functoin", "variants: unknown 'functoin'; did you mean 'function'?"),
        ("variants: 3", "variants must be words with commas between them, or a list of words, got a number: 3"),
        ("variants: function, function", "variants: 'function' is given twice"),
        ("device_guard: no thanks", "device_guard must be True or False, got a text: 'no thanks'"),
        ("device_check: Never", "device_check: unknown 'Never'; known are ExactSame, NoCheck"),
        ("structured: 1", "structured must be True or False, got a number: 1"),
        ("tags: pointwize", "tags: unknown 'pointwize'; did you mean 'pointwise'?"),
        ("python_module: [nn]", "python_module must be a text, got a list: ['nn']"),
        ("dispatch: [CPU]", "dispatch must be a mapping from dispatch keys to kernel names, got a list: ['CPU']"),
        ("dispatch: {CPU: 1}", "dispatch: CPU must be the name of a kernel, got a number: 1"),
        ("dispatch: {cpu: f}", "dispatch: no key 'cpu'"),
        ("dispatch: {'CPU, CPU': f}", "dispatch: two kernels for CPU: f and f"),
        (
            "dispatch: {CompositeExplictAutograd: f}",
            "dispatch: no key 'CompositeExplictAutograd'; did you mean 'CompositeExplicitAutograd'?",
        ),
        (
            "dispatch: {CompositeExplicitAutograd: f, CompositeImplicitAutograd: g}",
            "dispatch has CompositeExplicitAutograd and CompositeImplicitAutograd, and one hides the other; keep one",
        ),
        ("structured_delegate: aten::f.out", "structured_delegate: the namespace is the entry's own; write 'f.out'"),
        ("cpp_no_default_args: [dims]", "cpp_no_default_args: no argument 'dims' with a default; did you mean 'dim'?"),
        ("structured_inherits: X", "structured_inherits needs structured: True"),
    ],
)
def test_a_wrong_field_is_a_problem_at_its_line(field, expected):
    assert problems(f"- func: f(Tensor self, int dim=0) -> Tensor\n  {field}") in (
        [f"f.yaml:2: f: {expected}"],
        [f"f.yaml:1: f: {expected}"],
    )


def test_a_misspelled_field_with_nothing_near_lists_the_fields():
    (text,) = problems("- func: f(Tensor self) -> Tensor\n  zzz: 1")
    assert text.startswith("f.yaml:2: f: unknown field 'zzz'; fields are func, variants, dispatch, structured,")


def test_dispatch_and_manual_registration_exclude_each_other():
    assert problems("- func: f(Tensor self) -> Tensor\n  manual_kernel_registration: True\n  dispatch: {CPU: g}") == [
        "f.yaml:3: f: dispatch together with manual_kernel_registration: the kernels would not be registered"
    ]


def test_a_bad_schema_shows_its_column():
    (text,) = problems("- func: f(Tensor self, Tensor self) -> Tensor")
    assert text.startswith("f.yaml:1: f: schema: expected ")
    assert "^" in text


def test_entries_that_are_none():
    assert problems("- 3\n- variants: function\n- func: [f]") == [
        "f.yaml:1: an entry must be a mapping with a field 'func', got a number: 3",
        "f.yaml:2: an entry needs the field 'func'",
        "f.yaml:3: func must be a schema, got a list: ['f']",
    ]
    assert problems("func: f") == ["f.yaml:1: the file must be a list of entries `- func: ...`"]


def test_text_that_is_not_yaml_and_keys_given_twice():
    assert problems("- func: 'f")[0].startswith("f.yaml:1: not yaml: ")
    twice = "- func: f(Tensor self) -> Tensor\n  tags: core\n  tags: core"
    assert problems(twice) == ["f.yaml:3: 'tags' is given twice, first in line 2"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("[dims -> int a]", "precomputed: no argument 'dims'; did you mean 'dim'?; there are self, dim"),
        ("[dim -> inty a]", "precomputed: 'inty a' must be arguments such as `int dim, bool flag`"),
        ("[int a, dim -> int b]", "precomputed: 'int a' has no arrow; only the last line can add arguments"),
        ("[dim -> int a, dim -> int b]", "precomputed: 'dim' is replaced twice"),
        ("[dim -> int self]", "precomputed: the kernel would have two arguments 'self'"),
    ],
)
def test_precomputed_names_arguments(lines, expected):
    text = f"""
- func: f(Tensor self, int dim) -> Tensor
  structured_delegate: f.out
- func: f.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  precomputed: {lines}
"""
    assert problems(text) == [f"f.yaml:6: f.out: {expected}"]


def test_precomputed_lines_must_be_a_list():
    text = "- func: f(Tensor self) -> Tensor\n  precomputed: dim"
    assert problems(text)[0].startswith("f.yaml:2: f: precomputed must be a list of lines `argument -> type name, ...`")


def test_all_problems_of_a_file_are_reported_together():
    assert refused(
        DeclarationError,
        parse,
        "- func: f(Tensor self) -> Tensor\n  tag: core\n- func: g(Tensor x) -> Tensor\n  variants: method",
        source="f.yaml",
    ) == (
        "2 problems\n"
        "  f.yaml:2: f: unknown field 'tag'; did you mean 'tags'?\n"
        "  f.yaml:3: g: variants: a method needs an argument 'Tensor self'"
    )


def test_an_empty_file_has_no_functions(tmp_path):
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing\n")
    assert len(load(path)) == 0


def test_a_missing_pyyaml_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert refused(ImportError, parse, "- func: f(Tensor self) -> Tensor") == (
        "reading yaml needs PyYAML, which is not installed\n  to fix  pip install PyYAML"
    )


def test_own_tags_can_be_allowed():
    (f,) = parse("- func: f(Tensor self) -> Tensor\n  tags: mine", tags=["mine"])
    assert f.tags == {"mine"}
