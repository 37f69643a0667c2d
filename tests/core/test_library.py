"""`turnout.library.Library`: definitions, kernels, fallbacks, their errors, and that an error changes nothing."""

from __future__ import annotations

import gc
import weakref

import pytest
from plain_objects import Ghost, backends, box, refused, said, source, values  # noqa: F401

import turnout
from refusal_tables import rows
from turnout.errors import ConflictError, KernelSignatureError, RegistrationError, StaleOperatorError, UniverseError
from turnout.errors.library import LibraryError
from turnout.keys import DispatchKeySet
from turnout.library import Library, fallthrough_kernel
from turnout.registry import REGISTRY, Registrations


def double(x):
    return box(*[2 * v for v in values(x)])


def test_a_definition_returns_the_name_with_its_overload():
    with Library("t", "DEF") as lib:
        assert lib.define("f.one(Tensor x) -> Tensor") == "f.one"
        assert lib.define("t::f.two(Tensor x, int n) -> Tensor", "CONSERVATIVE", tags="core") == "t::f.two"
        assert turnout.ops.t.f.two.tags == ("core",)


def test_kernels_go_to_the_key_of_the_library_and_else_to_the_composite_one():
    with Library("t", "DEF") as lib, Library("t", "IMPL", "Shelf") as kernels:
        lib.define("f(Tensor x) -> Tensor")
        lib.define("g(Tensor x) -> Tensor")
        kernels.impl("f", double)
        kernels.impl(turnout.ops.t.f.default, double, "Shelf")
        lib.impl("t::g", lambda x: turnout.ops.t.f(x))
        assert sorted(turnout.ops.t.f.default.kernels) == ["Shelf"]
        assert list(turnout.ops.t.g.default.kernels) == ["CompositeImplicitAutograd"]
        assert values(turnout.ops.t.g(box(4))) == [8]


def test_kernels_may_come_before_the_definition():
    with Library("t", "IMPL") as kernels, Library("t", "DEF") as lib:
        kernels.impl("f", double, "Shelf")
        lib.define("f(Tensor x) -> Tensor")
        assert values(turnout.ops.t.f(box(1))) == [2]


def test_kernels_may_come_before_the_plugin_of_their_backend_is_active(monkeypatch):
    from turnout import plugins

    class Catalog:
        found = ()

        def key_names(self):
            return ["Hall", "AutogradHall"]

    monkeypatch.setattr(plugins, "catalog", Catalog)
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", double, "Hall")
        assert list(turnout.ops.t.f.default.kernels) == ["Hall"]
        assert "unknown dispatch key 'Hal'" in refused(UniverseError, lambda: lib.impl("f", double, "Hal"))


def test_a_kernel_that_asks_for_the_key_set_gets_one_to_redispatch_with():
    seen = []

    def above(keys, x, *, n):
        seen.append(keys)
        return turnout.ops.t.f.default.redispatch(keys.remove("Autograd"), x, n=n + 1)

    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x, *, int n=1) -> Tensor")
        lib.impl("f", lambda x, *, n: n, "Shelf")
        lib.impl("f", above, "AutogradShelf", with_keyset=True)
        assert turnout.ops.t.f(box(1), n=5) == 6
        assert type(seen[0]) is DispatchKeySet
        assert seen[0].has("AutogradShelf")
        text = refused(KernelSignatureError, lambda: lib.impl("f", lambda x, *, n: n, "Rack", with_keyset=True))
        assert text.startswith("kernel does not fit its schema: it takes 1 positional arguments, and is given the key set and 1")


def test_a_fallthrough_kernel_passes_on():
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", double, "Shelf")
        lib.impl("f", fallthrough_kernel, "AutogradShelf")
        assert values(turnout.ops.t.f(box(1))) == [2]
    assert "fallthrough_kernel stands for no kernel and is never called" in refused(NotImplementedError, fallthrough_kernel)


def test_a_kernel_on_arrays_gets_and_returns_the_arrays_of_its_backend():
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x, Tensor? y, int n=2, *, Scalar scale=1) -> Tensor")
        kernel = lambda x, y, n, *, scale: type(x)([v * n * scale for v in x.values])  # noqa: E731
        lib.impl("f", kernel, "Shelf", arrays=True)
        assert values(turnout.ops.t.f(box(1, 2), None, 3, scale=10)) == [30, 60]
        lib.define("g(Tensor x) -> Tensor")
        lib.impl("g", lambda x: type(x)([-v for v in x.values]), "Shelf", arrays=True)
        assert values(turnout.ops.t.g(box(1, 2))) == [-1, -2]


def test_a_kernel_on_arrays_may_write_what_the_schema_says():
    def fill(x, value):
        x.values[:] = [value] * len(x.values)

    with Library("t", "DEF") as lib:
        lib.define("fill_(Tensor(a!) x, Scalar value) -> Tensor(a!)")
        lib.impl("fill_", fill, "Shelf", arrays=True)
        x = box(1, 2)
        assert turnout.ops.t.fill_(x, 7) is x
        assert values(x) == [7, 7]


def test_a_kernel_on_arrays_at_a_key_that_is_no_backends_is_an_error():
    def kernel(x):
        return x

    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", kernel, "AutogradShelf", arrays=True)
        assert refused(turnout.errors.NoKernelError, turnout.ops.t.f, box(1)) == (
            "t::f: a kernel on arrays was reached at AutogradShelf, which is not a backend's key\n"
            f"  kernel  {source(kernel)}\n  to fix  register it without arrays=True, or for device types"
        )


# ---- fallbacks


def test_a_fallback_gets_the_operator_and_the_arguments_as_it_would_be_called():
    seen = []

    def fallback(op, *args, **kwargs):
        seen.append((op, args, kwargs))
        return "fell back"

    with Library("t", "DEF") as lib, Library("_", "IMPL") as fallbacks:
        lib.define("f(Tensor x, int n=1, *, int m=2) -> Tensor")
        fallbacks.fallback(fallback, "Rack")
        x = box(1, on="rack")
        assert turnout.ops.t.f(x, m=5) == "fell back"
        assert seen == [(turnout.ops.t.f.default, (x, 1), {"m": 5})]


def test_a_fallback_with_the_key_set_gets_it_first():
    with Library("t", "DEF") as lib, Library("_", "IMPL", "Rack") as fallbacks:
        lib.define("f(Tensor x) -> Tensor")
        fallbacks.fallback(lambda keys, op, x: (type(keys), op.name), with_keyset=True)
        assert turnout.ops.t.f(box(1, on="rack")) == (DispatchKeySet, "f")


def test_a_fallthrough_fallback_passes_on():
    with Registrations("seals") as seals, Library("t", "DEF") as lib, Library("_", "IMPL") as fallbacks:
        seals.functionality("Seal", before="Autograd")
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", double, "Shelf")
        fallbacks.fallback(fallthrough_kernel, "Seal")
        with turnout.state.include("Seal"):
            assert values(turnout.ops.t.f(box(1))) == [2]


def test_a_key_has_one_fallback():
    with Library("_", "IMPL") as fallbacks:

        def first(op, *args):
            return None

        fallbacks.fallback(first, "Rack")
        text = refused(RegistrationError, lambda: fallbacks.fallback(first, "Rack"))
        assert text == f"Rack has a fallback already\n  first   _, {source(first)}\n  second  _, {source(first)}"


# ---- what a library refuses


REFUSED = """
Library('t', 'def')
    LibraryError: Library: kind must be 'DEF', 'IMPL' or 'FRAGMENT', got 'def'
Library('a b', 'DEF')
    LibraryError: Library: a namespace is a name such as 'mylib', got 'a b'
Library(3, 'DEF')
    LibraryError: Library: a namespace is a name such as 'mylib', got 3
Library('prim', 'FRAGMENT')
    LibraryError: Library: no operator can be defined in namespace 'prim', it is reserved
      asked   FRAGMENT
      to fix  use a name of your own
Library('_', 'DEF')
    LibraryError: Library: no operator can be defined in namespace '_', it is for fallbacks
      asked   DEF
      to fix  use a name of your own
Library('t', 'DEF', 'Shelf')
    LibraryError: Library: a default dispatch key goes with kind IMPL
      found   Library('t', 'DEF', 'Shelf')
      to fix  Library('t', 'IMPL', 'Shelf') for the kernels
Library('t', 'IMPL', 'Shelff')
    UniverseError: unknown dispatch key 'Shelff'; did you mean Shelf?
lib.define('g(Tensor x) -> Tensor', 'PURE')
    LibraryError: define: alias_analysis must be '', 'FROM_SCHEMA' or 'CONSERVATIVE', got 'PURE'
kernels.define('g(Tensor x) -> Tensor')
    LibraryError: define('g(Tensor x) -> Tensor'): this library is of kind IMPL and defines no operators
      to fix  Library('t', 'FRAGMENT').define(...)
lib.define('u::g(Tensor x) -> Tensor')
    LibraryError: u::g: the library is of namespace 't'
      to fix  omit u::, or use a library of namespace 'u'
lib.define('f(Tensor x) -> Tensor')
    ConflictError: t::f is defined already...
lib.define('g(Tensr x) -> Tensor')
    SchemaSyntaxError: schema: expected an argument's type...
lib.impl('f', 3)
    CallError: impl: a kernel is a function, got int 3
lib.impl(3, double)
    LibraryError: impl: an operator is given by its name, as an operator or as what custom_op returned, got int
kernels.impl('f', double, 'Rack')
    LibraryError: impl('f'): the library is for Shelf, and the kernel for Rack
      to fix  omit the key, or use a library without a key
lib.impl('u::f', double)
    LibraryError: u::f: the library is of namespace 't'
      to fix  omit u::, or use a library of namespace 'u'
lib.impl('f', double, 'Shelff')
    UniverseError: unknown dispatch key 'Shelff'; did you mean Shelf?
lib.impl('f', lambda: 0, 'Shelf')
    KernelSignatureError: kernel does not fit its schema: it takes 0 positional arguments, and is given 1...
lib.impl('f', double, 'Shelf', arrays=True, with_keyset=True)
    LibraryError: impl('t::f'): a kernel on arrays calls no operators and gets no key set; choose arrays or with_keyset
lib.fallback(double, 'Shelf')
    LibraryError: fallback: a fallback serves all namespaces, and this library is of 't'
      to fix  Library('_', 'IMPL').fallback(...)
fallbacks.fallback(double)
    LibraryError: fallback: a dispatch key is missing
      to fix  fallback(function, 'Tracer'), or Library('_', 'IMPL', 'Tracer')
fallbacks.fallback(3, 'Shelf')
    CallError: fallback: a kernel is a function, got int 3
fallbacks.fallback(double, 'Shelff')
    UniverseError: unknown dispatch key 'Shelff'; did you mean Shelf?
"""


@pytest.mark.parametrize(("call", "says"), rows(REFUSED))
def test_what_a_library_refuses_changes_nothing(call, says):
    with Library("t", "IMPL", "Shelf") as kernels, Library("_", "IMPL") as fallbacks, Library("t", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        assert said(call, {**globals(), "lib": lib, "kernels": kernels, "fallbacks": fallbacks}, says) == says


def test_a_namespace_that_a_plugin_defines_takes_no_library_of_kind_def():
    with Registrations("v", distribution="dist-v", version="1.5") as plugin:
        plugin.define("f(Tensor x) -> Tensor")
        assert refused(ConflictError, lambda: Library("v", "DEF")) == (
            "Library: namespace 'v' is defined already\n  first   dist-v 1.5\n"
            "  to fix  Library('v', 'FRAGMENT') adds operators to it, Library('v', 'IMPL') kernels"
        )


def test_a_namespace_has_one_library_of_kind_def_and_any_number_of_fragments():
    with Library("t", "FRAGMENT") as before, Library("t", "DEF") as lib, Library("t", "FRAGMENT") as after:
        before.define("a(Tensor x) -> Tensor")
        lib.define("b(Tensor x) -> Tensor")
        after.define("c(Tensor x) -> Tensor")
        assert refused(ConflictError, lambda: Library("t", "DEF")) == (
            "Library: namespace 't' is defined already\n  first   t\n"
            "  to fix  Library('t', 'FRAGMENT') adds operators to it, Library('t', 'IMPL') kernels"
        )
    with Library("t", "DEF"):
        pass


def test_kernels_of_two_libraries_at_one_key_conflict_unless_one_overrides():
    def other(x):
        return "other"

    with Library("t", "DEF") as lib, Library("t", "IMPL") as kernels:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", double, "Shelf")
        assert refused(ConflictError, lambda: kernels.impl("f", other, "Shelf")) == (
            f"t::f: two kernels for Shelf\n  first   t, {source(double)}\n  second  t, {source(other)}\n"
            "  to fix  let one of them say allow_override=True, or uninstall one"
        )
        kernels.impl("f", other, "Shelf", allow_override=True)
        assert turnout.ops.t.f(box(1)) == "other"
        kernels.undo()
        assert values(turnout.ops.t.f(box(1))) == [2]


CHOOSE = "choose one: Implicit where gradients come from the operators it calls, Explicit where they have a rule of their own"
LEAVE = "omit the Ghost kernel: the operator runs on tensors without data through the operators it calls"


@pytest.mark.parametrize(("other", "fix"), [("CompositeExplicitAutograd", CHOOSE), ("Ghost", LEAVE)])
@pytest.mark.parametrize("order", [1, -1])
def test_kernels_that_exclude_each_other_are_refused_in_either_order(other, fix, order):
    one = "CompositeImplicitAutograd"
    first, second = (one, other)[::order]
    with Registrations("ghosts") as ghosts, Library("t", "DEF") as lib, Library("t", "FRAGMENT") as more:
        ghosts.backend(Ghost(), dataless=True)
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", double, first)
        assert refused(RegistrationError, lambda: more.impl("f", double, second)) == (
            f"t::f: a kernel for {second} beside one for {first}\n  found   {first}: t, {source(double)}\n  to fix  {fix}"
        )


# ---- how long registrations live


def test_a_library_that_is_collected_takes_its_registrations_along():
    lib = Library("t", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", double, "Shelf")
    op = turnout.ops.t.f.default
    assert values(op(box(1))) == [2]
    gone = weakref.ref(lib)
    del lib
    gc.collect()
    assert gone() is None
    assert REGISTRY.packet("t", "f") is None
    assert refused(StaleOperatorError, op, box(1)) == (
        "t::f is gone: the library that defined it was undone; look the operator up again"
    )
    refused(StaleOperatorError, op.redispatch, box(1).keys, box(1))


def test_a_library_collected_in_the_middle_of_a_change_is_undone_before_the_next():
    lib = Library("t", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    with REGISTRY.lock:
        del lib
        gc.collect()
        assert REGISTRY.packet("t", "f") is not None
    with Library("t", "DEF"):
        assert REGISTRY.packet("t", "f") is None


def test_a_library_that_was_undone_registers_no_more():
    lib = Library("t", "DEF")
    lib.undo()
    lib.undo()
    text = "the library of namespace 't' was undone; make a new one"
    assert refused(LibraryError, lambda: lib.define("f(Tensor x) -> Tensor")) == text
    assert refused(LibraryError, lambda: lib.impl("f", double)) == text


def test_an_exception_in_a_with_block_undoes_the_library():
    def fail():
        with Library("t", "DEF") as lib:
            lib.define("f(Tensor x) -> Tensor")
            raise ZeroDivisionError

    refused(ZeroDivisionError, fail)
    assert REGISTRY.packet("t", "f") is None


def test_a_library_prints_as_it_was_made():
    with Library("t", "IMPL", "Shelf") as lib:
        assert repr(lib) == "Library(kind=IMPL, ns=t, dispatch_key=Shelf)"


def test_kernels_name_the_distribution_that_brought_them():
    with Library("t", "DEF") as lib:
        lib.registrations.package = "pytest"
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", double, "Shelf")
        assert turnout.ops.t.f.default.kernels["Shelf"][0].origin == f"pytest {pytest.__version__}"
        with pytest.raises(AttributeError, match="'Registrations' object has no attribute 'colour'"):
            _ = lib.registrations.colour
