"""The functions of `turnout.library` that need no Library object."""

from __future__ import annotations

import pytest
from plain_objects import backends, box, refused, said, values  # noqa: F401

import turnout
from refusal_tables import rows
from turnout import library
from turnout.devices import active_device_types
from turnout.errors import ConflictError, DeviceError
from turnout.library import Library
from turnout.registry import REGISTRY


def double(x):
    return box(*[2 * v for v in values(x)])


def test_an_operator_is_defined_and_implemented_by_functions():
    library.define("t::f", "(Tensor x) -> Tensor", tags=("core",))
    library.impl("t::f", "shelf", double)
    assert values(turnout.ops.t.f(box(1))) == [2]
    assert turnout.ops.t.f.default.tags == ("core",)


def test_impl_is_a_decorator_that_returns_the_function():
    library.define("t::f", "(Tensor x) -> Tensor")

    @library.impl("t::f", ["shelf", "Rack"])
    def kernel(x):
        return "kernel"

    assert turnout.ops.t.f(box(1)) == turnout.ops.t.f(box(1, on="rack")) == kernel(None) == "kernel"


def test_the_default_type_serves_every_backend():
    library.define("t::f", "(Tensor x) -> Tensor")
    library.impl("t::f", "default", lambda x: "any")
    assert list(turnout.ops.t.f.default.kernels) == ["CompositeExplicitAutograd"]
    assert turnout.ops.t.f(box(1, on="rack")) == "any"


def test_a_kernel_may_be_for_a_device_whose_plugin_is_not_active(monkeypatch):
    from turnout import plugins
    from turnout.plugins import providers

    class Catalog:
        manifests = ()

        def key_names(self):
            return ["Hall"]

    monkeypatch.setattr(plugins, "catalog", Catalog)
    monkeypatch.setattr(providers, "data", lambda: {"hall": {"devices": ["hall"], "backends": ["Hall"]}})
    library.impl("t::f", "hall", double)
    library.define("t::f", "(Tensor x) -> Tensor")
    assert list(REGISTRY.find("t::f").kernels) == ["Hall"]
    devices = ", ".join(sorted({"hall", *active_device_types()}))
    assert refused(DeviceError, lambda: library.impl("t::f", "hal", double)) == (
        f"'hal' is neither a device type nor a dispatch key; did you mean 'hall'?\n  devices  {devices}\n"
        "  also     'default' for all of them"
    )


def test_within_a_package_the_newest_kernel_wins_and_between_packages_it_is_a_conflict():
    library.define("t::f", "(Tensor x) -> Tensor")
    library.impl("t::f", "shelf", lambda x: "old")
    library.impl("t::f", "shelf", lambda x: "new")
    assert turnout.ops.t.f(box(1)) == "new"
    elsewhere = {"__name__": "another_package.module", "library": library}
    text = refused(ConflictError, lambda: exec("library.impl('t::f', 'shelf', lambda x: 'theirs')", elsewhere))
    assert text.startswith("t::f: two kernels for Shelf\n  first   t, <lambda> (")


def test_kernels_for_several_types_are_registered_for_all_or_for_none():
    def other(x):
        return x

    library.define("t::f", "(Tensor x) -> Tensor")
    with Library("t", "IMPL", "Rack") as lib:
        lib.impl("f", other)
        refused(ConflictError, lambda: library.impl("t::f", ["shelf", "rack"], double))


def test_a_library_decides_how_long_a_registration_lives():
    with Library("t", "DEF") as lib:
        library.define("t::f", "(Tensor x) -> Tensor", lib=lib)
        library.impl("t::f", "shelf", double, lib=lib)
        library.register_kernel("t::f", "rack", double, lib=lib)
        assert values(turnout.ops.t.f(box(1, on="rack"))) == [2]
    assert REGISTRY.packet("t", "f") is None


def test_the_older_forms_take_a_library_first():
    with Library("t", "DEF") as lib:

        @library.define(lib, "f(Tensor x) -> Tensor")
        def f(x):
            return turnout.ops.t.g(x)

        lib.define("g(Tensor x) -> Tensor")

        @library.impl(lib, "g", "Shelf")
        def g(x):
            return double(x)

        assert list(turnout.ops.t.f.default.kernels) == ["CompositeImplicitAutograd"]
        assert values(f(box(1))) == values(turnout.ops.t.f(box(1))) == values(g(box(1))) == [2]


def test_register_kernel_takes_operators_and_arrays():
    library.define("t::f", "(Tensor x) -> Tensor")
    library.register_kernel(turnout.ops.t.f.default, "shelf", lambda x: type(x)([5.0]), arrays=True)

    @library.register_kernel("t::f", None)
    def everywhere(x):
        return "everywhere"

    assert values(turnout.ops.t.f(box(1))) == [5.0]
    assert turnout.ops.t.f(box(1, on="rack")) == "everywhere"


REFUSED = """
library.define('f', '(Tensor x) -> Tensor')
    LibraryError: define: an operator is named 'namespace::name', got 'f'
library.define(3, '(Tensor x) -> Tensor')
    LibraryError: define: an operator is given by its name, as an operator or as what custom_op returned, got int
library.define('t::g', 'f(Tensor x) -> Tensor')
    LibraryError: define: the schema is written without a name, as '(Tensor x) -> Tensor', got 'f(Tensor x) -> Tensor'
library.define('t::g', '(Tensor x)')
    LibraryError: define: the schema is written without a name, as '(Tensor x) -> Tensor', got '(Tensor x)'
library.define('t::g', '(Tensor x, Tensor x) -> Tensor')
    SchemaSyntaxError: schema: expected another name: no two arguments share one, found 'x'...
library.impl('t::f', 'shelf', 3)
    CallError: impl: a kernel is a function, got int 3
library.impl('f', 'shelf', double)
    LibraryError: impl: an operator is named 'namespace::name', got 'f'
library.impl('t::f', 'shelf', lambda: 0)
    KernelSignatureError: kernel does not fit its schema...
library.register_kernel('t::f', 'shelf', 3)
    CallError: register_kernel: a kernel is a function, got int 3
library.register_kernel('f', 'shelf', double)
    LibraryError: register_kernel: an operator is named 'namespace::name', got 'f'
library.register_kernel(3, 'shelf', double)
    LibraryError: register_kernel: an operator is given by its name, as an operator or as what custom_op returned, got int
library.register_fake('t::f', 3)
    CallError: register_fake: a kernel is a function, got int 3
library.register_autograd('t::f', 3)
    CallError: register_autograd: a kernel is a function, got int 3
library.register_autograd('t::h', double)
    UnknownOperatorError: no operator t::h...
library.register_autograd('t::w', double)
    RegistrationError: t::w: a gradient rule needs an operator that writes nothing and returns no view
      schema  t::w(Tensor(a!) x) -> ()
      to fix  give the rule to a functional operator, and call that
library.register_autograd('t::v', double)
    RegistrationError: t::v: a gradient rule needs an operator that writes nothing and returns no view
      schema  t::v(Tensor(a) x) -> Tensor(a)
      to fix  give the rule to a functional operator, and call that
library.register_autograd('t::k', double)
    RegistrationError: t::k: a gradient rule answers for positional tensors only
      found   y after '*'
      schema  t::k(Tensor x, *, Tensor y, int n) -> Tensor
      to fix  declare them before '*'
"""


@pytest.mark.parametrize(("call", "says"), rows(REFUSED))
def test_what_functions_refuse_changes_nothing(call, says):
    library.define("t::f", "(Tensor x) -> Tensor")
    library.define("t::w", "(Tensor(a!) x) -> ()")
    library.define("t::v", "(Tensor(a) x) -> Tensor(a)")
    library.define("t::k", "(Tensor x, *, Tensor y, int n) -> Tensor")
    assert said(call, globals(), says) == says


def test_a_gradient_rule_costs_plain_calls_nothing_and_activates_nothing():
    from turnout import plugins

    active = set(plugins.ACTIVE)
    library.define("t::f", "(Tensor x) -> Tensor")
    library.impl("t::f", "shelf", double)
    library.register_autograd("t::f", lambda ctx, grad: grad)
    assert values(turnout.ops.t.f(box(1))) == [2]
    plan = REGISTRY.find("t::f").plan(REGISTRY.find("t::f").key_set([box(1)]))
    assert plan.key == "Shelf"
    verdicts = {step.key: step.verdict for step in plan.steps}
    assert verdicts["AutogradShelf"] == "left out: no argument requires a gradient"
    assert active == plugins.ACTIVE
