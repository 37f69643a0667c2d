"""What `turnout.library` has beside definitions and rules: kernels by key, rules for modes and subclasses, tags, former names."""

from __future__ import annotations

import pytest
from plain_objects import Box, backends, box, values  # noqa: F401

import turnout
from outcomes import refused
from turnout import library, plugins
from turnout.errors import CallError, ConflictError, NoKernelError, PublicNameError, SchemaError, UniverseError
from turnout.library import Library
from turnout.plugins import current_manager
from turnout.plugins.discovery import Catalog
from turnout.plugins.public_names import Facade


@pytest.fixture(autouse=True)
def lib(backends):  # noqa: F811
    with Library("t", "DEF") as made:
        made.define("f(Tensor x, int n=2, *, int m=3) -> Tensor")
        made.impl("f", lambda x, n=2, *, m=3: box(*[v * n * m for v in values(x)]), "Shelf")
        yield made


# ---- get_kernel


def test_the_kernel_of_a_key_is_called_without_dispatch_and_with_defaults():
    kernel = library.get_kernel("t::f", "Shelf")
    assert values(kernel(box(1))) == [6]
    assert values(kernel(box(1), 5, m=1)) == [5]
    assert values(library.get_kernel(turnout.ops.t.f.default, "Shelf")(box(2))) == [12]


def test_a_kernel_that_was_got_stays_when_another_overrides_it(lib):
    kernel = library.get_kernel("t::f", "Shelf")
    lib.impl("f", lambda x, n=2, *, m=3: "new", "Shelf")
    assert turnout.ops.t.f(box(1)) == "new"
    assert values(kernel(box(1))) == [6]


def test_a_key_without_a_kernel_and_an_unknown_key_are_errors():
    refused(NoKernelError, library.get_kernel, "t::f", "Rack")
    refused(UniverseError, library.get_kernel, "t::f", "NoSuchKey")


# ---- register_torch_dispatch


class Mode(turnout.DispatchMode):
    def dispatch(self, op, ks, args):
        return "method"


class Wrapped(Box):
    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):
        return "method"


def wrapped(value):
    from turnout.keys import KEYS

    made = Wrapped(value.array, value.device)
    made.keys |= KEYS.bit("Python")
    return made


def test_a_rule_takes_the_place_of_a_modes_method_for_one_operator(lib):
    lib.define("g(Tensor x) -> Tensor")
    lib.impl("g", lambda x: x, "Shelf")
    seen = []

    @library.register_torch_dispatch("t::f", Mode, lib=lib)
    def rule(mode, op, types, args, kwargs):
        seen.append((type(mode), op.qualified_name, types, args[1:], kwargs))
        return values(op(*args, **kwargs))

    with Mode():
        assert turnout.ops.t.f(box(1), m=5) == [10]
        assert turnout.ops.t.g(box(1)) == "method"
    assert seen == [(Mode, "t::f", (), (2,), {"m": 5})]
    assert rule is not None


def test_a_rule_takes_the_place_of_a_subclasss_method(lib):
    library.register_torch_dispatch("t::f", Wrapped, lambda cls, op, types, args, kwargs: (cls, types), lib=lib)
    assert turnout.ops.t.f(wrapped(box(1))) == (Wrapped, (Wrapped,))


def test_a_rule_ends_with_its_library_and_there_is_one_for_each_class(lib):
    def rule(*args):
        return "rule"

    other = Library("t", "FRAGMENT")
    library.register_torch_dispatch("t::f", Mode, rule, lib=other)
    assert refused(ConflictError, library.register_torch_dispatch, "t::f", Mode, rule, lib=lib) == (
        "t::f has a rule for Mode already\n  to fix  undo the library that registered it"
    )
    with Mode():
        assert turnout.ops.t.f(box(1)) == "rule"
        other.undo()
        assert turnout.ops.t.f(box(1)) == "method"


def test_a_class_that_dispatches_nothing_is_refused(lib):
    assert refused(CallError, library.register_torch_dispatch, "t::f", int, lambda *args: None, lib=lib) == (
        "register_torch_dispatch: expected a DispatchMode, or a Tensor subclass with __turnout_dispatch__, got <class 'int'>"
    )


def test_the_rule_of_a_custom_operator_ends_with_it():
    def make(x: Box) -> Box:
        return box(*values(x))

    op = library.custom_op("u::f", make, mutates_args=())
    op.register_torch_dispatch(Mode, lambda mode, op, types, args, kwargs: "rule")
    with Mode():
        assert op(box(1)) == "rule"
    op.undo()
    again = library.custom_op("u::f", make, mutates_args=())
    with Mode():
        assert again(box(1)) == "method"
    again.undo()


# ---- tags of infer_schema


def scaled_in_place(x: Box, by: float) -> Box: ...
def add_into(x: Box, *, out: Box) -> Box: ...
def both_into(x: Box, *, low: Box, high: Box) -> tuple[Box, Box]: ...
def nothing(x: Box) -> None: ...


@pytest.mark.parametrize(
    ("function", "written", "tags", "schema"),
    [
        (scaled_in_place, ["x"], "inplace", "(Tensor(a0!) x, float by) -> Tensor(a0!)"),
        (scaled_in_place, ["x"], ["pointwise", "inplace"], "(Tensor(a0!) x, float by) -> Tensor(a0!)"),
        (scaled_in_place, ["x"], None, "(Tensor(a0!) x, float by) -> Tensor"),
        (scaled_in_place, [], "pointwise", "(Tensor x, float by) -> Tensor"),
        (add_into, ["out"], "out", "(Tensor x, *, Tensor(a1!) out) -> Tensor(a1!)"),
        (both_into, ["low", "high"], "out", "(Tensor x, *, Tensor(a1!) low, Tensor(a2!) high) -> (Tensor(a1!), Tensor(a2!))"),
    ],
)
def test_the_tags_inplace_and_out_say_what_is_returned(function, written, tags, schema):
    assert library.infer_schema(function, mutates_args=written, tags=tags) == schema


@pytest.mark.parametrize(
    ("function", "written", "tags", "problem"),
    [
        (scaled_in_place, [], "inplace", 'the tag "inplace" needs mutates_args to name the first argument alone'),
        (scaled_in_place, "unknown", "inplace", 'the tag "inplace" needs mutates_args to name the first argument alone'),
        (add_into, ["x"], "out", 'the tag "out" needs mutates_args to name keyword-only arguments'),
        (add_into, [], "out", 'the tag "out" needs mutates_args to name keyword-only arguments'),
        (nothing, ["x"], "inplace", "the written tensors are not those that are returned"),
        (scaled_in_place, ["x"], ["inplace", "out"], 'the tag "out" needs mutates_args to name keyword-only arguments'),
    ],
)
def test_a_tag_that_does_not_fit_says_what_it_needs(function, written, tags, problem):
    with pytest.raises(SchemaError, match=problem):
        library.infer_schema(function, mutates_args=written, tags=tags)


# ---- former and other names


def test_ported_code_finds_former_names(lib):
    assert library.impl_abstract is library.register_fake
    other = Library("t", "FRAGMENT")
    other.define("h(Tensor x) -> Tensor")
    other._destroy()
    assert not hasattr(turnout.ops.t, "h")


def test_overloads_are_listed_by_name(lib):
    lib.define("f.other(Tensor x, Tensor y) -> Tensor")
    assert turnout.ops.t.f.overloads() == ["default", "other"]


def test_a_name_that_nobody_provides_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'turnout.library' has no attribute 'opchek'"):
        library.opchek  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "package"), [("opcheck", "turnout-opcheck"), ("triton_op", "turnout-aten")])
def test_without_its_package_a_function_for_tensors_names_it(monkeypatch, name, package):
    facade = Facade("turnout", current_manager())
    monkeypatch.setattr(plugins, "facade", lambda: facade)
    monkeypatch.setattr("turnout.plugins.public_names.catalog", lambda: Catalog([]))
    with pytest.raises(PublicNameError) as caught:
        getattr(library, name)
    folder = package.replace("turnout-", "plugins/")  # where core was installed from a clone, the remedy is a folder of it
    assert str(caught.value).endswith((f"pip install {package}", folder))
