"""PyTorch's own native_functions.yaml, read by Turnout and by torchgen: the same functions, tables and groups."""

from __future__ import annotations

from pathlib import Path

import pytest

torchgen = pytest.importorskip("torchgen", reason="torch is not installed")
from turnout_aten.declarations import reading  # noqa: E402

FOLDER = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"


@pytest.fixture(scope="module")
def ours():
    return reading.load(FOLDER / "native_functions.yaml")


def made_here_only(ours):
    """Variants that entries ask for and torchgen does not make: those of groups that decompose and are not `core`."""
    return {
        f.name
        for group in ours.groups
        if all(g.is_generated or "CompositeImplicitAutograd" in g.dispatch for g in group)
        and not any("core" in g.tags for g in group)
        for f in group
        if f.is_generated
    }


@pytest.fixture(scope="module")
def theirs():
    from torchgen.gen import parse_native_yaml

    return parse_native_yaml(str(FOLDER / "native_functions.yaml"), str(FOLDER / "tags.yaml"))


def their_dispatch(parsed):
    tables = {}
    for key, index in parsed.backend_indices.items():
        for name, metadata in index.index.items():
            tables.setdefault(str(name), {})[str(key)] = metadata.kernel
    return tables


def differences(expected, got):
    names = sorted(expected.keys() | got.keys())
    return {n: (expected.get(n), got.get(n)) for n in names if expected.get(n) != got.get(n)}


def test_the_same_functions_are_declared_and_generated(ours, theirs):
    expected = {str(f.func.name): str(f.func) for f in theirs.native_functions}
    extra = made_here_only(ours)
    assert len(extra) == 13
    got = {f.name: f.schema.canonical() for f in ours if f.name not in extra}
    assert {n: d for n, d in differences(expected, got).items() if None in d} == {}
    # White space apart: torchgen prints `[0, 0]` as `[0,0]`.
    expected = {n: s.replace(" ", "") for n, s in expected.items()}
    assert differences(expected, {n: s.replace(" ", "") for n, s in got.items()}) == {}


def test_the_same_variants_are_generated(ours, theirs):
    expected = {str(f.func.name): str(f.func) for f in theirs.native_functions if "generated" in f.tags}
    extra = made_here_only(ours)
    got = {f.name: f.schema.canonical() for f in ours if f.is_generated and f.name not in extra}
    assert differences(expected, got) == {}
    assert len(got) > 500


def test_dispatch_tables_are_equal(ours, theirs):
    expected = their_dispatch(theirs)
    extra = made_here_only(ours)
    generated = {f.name for f in ours if f.is_generated} - extra
    got = {f.name: dict(f.dispatch) for f in ours if f.dispatch and f.name not in extra}
    for f in ours:
        for key in ("CPU", "CUDA"):
            if f.ufunc_inner_loop:
                # PyTorch makes these kernels from the inner loop, under a name of its own.
                got[f.name][key] = expected[f.name][key]
    for name in generated:
        assert set(expected[name]) == set(got[name]), name
        expected[name] = got[name]
    assert differences(expected, got) == {}


def test_fields_are_equal(ours, theirs):
    def precomputed(p):
        if p is None:
            return None
        replaced = {n: [str(a) for a in arguments] for n, arguments in p.replace.items()}
        return replaced, [str(a) for a in p.add]

    for f in theirs.native_functions:
        g = ours[str(f.func.name)]
        if "generated" in f.tags:
            continue
        # Given by torchgen to every aten function, and by kind; and tags of our own.
        automatic = {"pt2_compliant_tag", "out", "inplace", "finite", "indices_mix", "partial", "total"}
        assert {v.name for v in f.variants} == g.variants, g.name
        assert f.tags - automatic == g.tags - automatic, g.name
        assert f.structured == g.structured, g.name
        assert (str(f.structured_delegate) if f.structured_delegate else None) == g.structured_delegate, g.name
        assert f.structured_inherits == g.structured_inherits, g.name
        assert precomputed(f.precomputed) == precomputed(g.precomputed), g.name
        assert [str(n) for n in f.autogen] == list(g.autogen), g.name
        assert f.device_guard == g.device_guard, g.name
        assert f.device_check.name == g.device_check, g.name
        assert f.python_module == g.python_module, g.name
        assert f.category_override == g.category_override, g.name
        assert f.manual_kernel_registration == g.manual_kernel_registration, g.name
        assert f.manual_cpp_binding == g.manual_cpp_binding, g.name
        assert f.use_const_ref_for_mutable_tensors == g.use_const_ref_for_mutable_tensors, g.name
        assert f.cpp_no_default_args == g.cpp_no_default_args, g.name
        # torchgen knows by name which in-place operators resize; here a tag says so, which PyTorch's file does not have.
        assert f.is_view_op == (g.is_view and g.name not in ("resize_", "resize_as_")), g.name
        assert f.loc.line == g.line, g.name


def test_groups_are_equal(ours, theirs):
    from torchgen.gen import get_grouped_native_functions
    from torchgen.model import NativeFunctionsGroup

    expected = {
        str(g.functional.func.name): {str(f.func.name) for f in g.functions()}
        for g in get_grouped_native_functions(theirs.native_functions)
        if isinstance(g, NativeFunctionsGroup)
    }
    extra = made_here_only(ours)
    pairs = [g for g in ours.groups if g.functional and g.out and g.out.name not in extra]
    got = {g.functional.name: {f.name for f in g} for g in pairs}
    assert differences(expected, got) == {}
