"""The registry: registrations, conflicts, undo, and that a failed one leaves everything as it was."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from itertools import count

import pytest
from plain_objects import Handle

from outcomes import refused
from turnout import config
from turnout.errors import ConfigError, ConflictError, KernelSignatureError, SchemaError, UniverseError
from turnout.keys import BackendRow
from turnout.operators.kernels import ARRAY, FALLTHROUGH, INTERNAL, Kernel
from turnout.registry import Registrations, Registry
from turnout.registry.preferences import preference


def tensor(registry: Registry, backend: str = "CPU") -> Handle:
    return Handle(registry.keys.tensor_bits(backend))


def run(op, *args):
    """Call an operator as its stub would, over the registry of the test."""
    return op.call_boxed(args)


@contextmanager
def settings(values):
    """Set some settings for a block."""
    config.set(values)
    try:
        yield
    finally:
        config.unset(*values)


def state_of(registry: Registry) -> tuple:
    return (
        sorted(registry.operators),
        {n: {k: list(s) for k, s in op.kernels.items()} for n, op in registry.operators.items()},
        dict(registry.fallbacks),
        dict(registry.backends),
        registry.keys.universe.runtime_keys,
        (dict(registry.services), list(registry.line_keepers), list(registry.context_notes)),
    )


def test_an_implementation_may_come_before_the_definition_and_is_listed_as_dangling(registry, library):
    library.impl("later", "CPU", lambda x: "waited")
    assert [op.qualified_name for op in registry.dangling()] == ["lib::later"]
    op = library.define("lib::later(Tensor x) -> Tensor")
    assert registry.dangling() == []
    assert run(op, tensor(registry)) == "waited"


def test_a_waiting_kernel_that_does_not_fit_the_definition_refuses_the_definition(registry, library):
    library.impl("later", "CPU", lambda: "no argument")
    before = state_of(registry)
    refused(KernelSignatureError, library.define, "lib::later(Tensor x) -> Tensor")
    assert state_of(registry) == before


def test_two_libraries_at_one_slot_are_a_conflict_that_names_both(registry, library):
    def first(x):
        return x

    def second(x):
        return x

    other = Registrations("other", distribution="other-dist", version="3", registry=registry)
    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "CPU", first)
    before = state_of(registry)
    assert refused(ConflictError, other.impl, "lib::f", "CPU", second) == (
        "lib::f: two kernels for CPU\n"
        f"  first   lib-dist 1.2, first ({__file__}:{first.__code__.co_firstlineno})\n"
        f"  second  other-dist 3, second ({__file__}:{second.__code__.co_firstlineno})\n"
        "  to fix  let one of them say allow_override=True, or uninstall one"
    )
    assert state_of(registry) == before
    assert len(op.kernels["CPU"]) == 1


# Patterns of kernels.prefer for g::mul_add.Tensor at CPU -> the one that decides, or two that are equal.
PREFERRED = {
    ("*@CPU", "mul*@CPU", "mul_*@CPU"): ["mul_*@CPU"],
    ("mul*d@CPU", "mul_*@CPU"): ["mul_*@CPU"],
    ("mul_add@CPU", "mul_add*@CPU", "g::mul_a*@CPU"): ["mul_add@CPU"],
    ("g::mul_add@CPU", "mul_add.Tensor@CPU"): ["mul_add.Tensor@CPU"],
    ("g::mul_add@CPU", "mul_add@CPU"): ["g::mul_add@CPU", "mul_add@CPU"],
    ("mul*d@CPU", "mul*a*@CPU", "m*@CPU"): ["mul*a*@CPU", "mul*d@CPU"],
    ("h::mul*@CPU", "mul*@CUDA", "mul@CPU", "add*@CPU", "mul_add.Scalar@CPU"): [],
}


@pytest.mark.parametrize("patterns", PREFERRED, ids=" ".join)
def test_the_closest_preference_decides_whatever_their_order(patterns):
    for given in (patterns, patterns[::-1]):
        with settings({f'kernels.prefer."{pattern}"': [pattern] for pattern in given}):
            found = preference("g::mul_add.Tensor", "CPU")
            deciding = [] if found is None else sorted(filter(None, (found.setting, found.equal)))
            assert deciding == [f"kernels.prefer.{pattern}" for pattern in PREFERRED[patterns]]
            assert found is None or found.equal or found.names == (PREFERRED[patterns][0],)
            with settings({'kernels.choose."g::mul_add.Tensor@CPU"': "own"}):
                assert preference("g::mul_add.Tensor", "CPU").names == ("own",)


def test_preferred_libraries_come_first_and_end_conflicts(library, registry):
    configured = Registry(registry.keys, follows_config=True)
    a, b, c = (Registrations(name, registry=configured) for name in "abc")
    op = a.define("lib::f(Tensor x) -> Tensor")
    a.impl("lib::f", "CPU", lambda x: "a")
    b.impl("lib::f", "CPU", lambda x: "b", allow_override=True)
    assert run(op, tensor(configured)) == "b"
    with settings({'kernels.prefer."f@CPU"': ["c", "a"]}):
        assert run(op, tensor(configured)) == "a"
        c.impl("lib::f", "CPU", lambda x: "c")  # without the setting a conflict
        c.impl("lib::f", "CPU", lambda x: "newer c")
        assert run(op, tensor(configured)) == "newer c"
    assert run(op, tensor(configured)) == "b"
    with settings({'kernels.prefer."f@CPU"': ["a"], 'kernels.prefer."lib::f@CPU"': ["b"]}):
        assert refused(ConfigError, run, op, tensor(configured)) == (
            "lib::f: two settings say whose kernels for CPU come first\n"
            '  first   kernels.prefer."f@CPU" (turnout.config.set)\n  second  kernels.prefer."lib::f@CPU" (turnout.config.set)\n'
            '  to fix  write kernels.prefer."lib::f@CPU", which comes before both'
        )


def test_two_libraries_that_both_override_are_a_conflict(registry, library):
    other = Registrations("other", registry=registry)
    library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "CPU", lambda x: 1, allow_override=True)
    assert 'both say allow_override=True: choose one with the setting kernels.choose."lib::f@CPU"' in refused(
        ConflictError, other.impl, "lib::f", "CPU", lambda x: 2, allow_override=True
    )


def test_an_operator_defined_twice_is_refused(registry, library):
    library.define("lib::f(Tensor x) -> Tensor")
    assert refused(ConflictError, Registrations("other", registry=registry).define, "lib::f(Tensor y) -> Tensor") == (
        "lib::f is defined already\n  first   lib-dist 1.2: lib::f(Tensor x) -> Tensor\n  second  other\n"
        "  to fix  give the second one another overload name or namespace"
    )


def test_overloads_that_tie_are_refused_in_either_order(registry):
    one, two = "lib::f.a(Tensor x, int y) -> Tensor", "lib::f.b(Tensor x, int z) -> Tensor"
    for first, second in ((one, two), (two, one)):
        with Registrations("lib", registry=registry) as library:
            library.define(first)
            refused(SchemaError, library.define, second)
            assert len(list(registry.packet("lib", "f"))) == 1


def test_old_names_of_alias_keys_are_accepted(registry, library):
    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "Math", lambda x: "math")
    assert list(op.kernels) == ["CompositeImplicitAutograd"]


def test_a_fallback_at_the_autograd_alias_covers_backends_that_come_later(registry, library):
    op = library.define("lib::f(Tensor x) -> Tensor")
    library.fallback("Autograd", lambda op, ks, args: "autograd")
    registry.keys.add_backend(BackendRow("NPU"))
    registry.changed()
    assert run(op, tensor(registry, "NPU")) == "autograd"
    library.impl("f", "AutogradNPU", lambda x: "own")
    assert run(op, tensor(registry, "NPU")) == "own"
    assert run(op, tensor(registry, "XPU")) == "autograd"


def test_a_specialised_fallback_is_made_once_per_operator(registry, library):
    made = []

    def specialize(op):
        made.append(op.qualified_name)
        return (lambda op, ks, args: "special") if op.name == "f" else FALLTHROUGH

    f = library.define("lib::f(Tensor x) -> Tensor")
    g = library.define("lib::g(Tensor x) -> Tensor")
    library.impl("g", "CPU", lambda x: "cpu")
    library.fallback("AutogradCPU", lambda op, ks, args: "unused", specialize=specialize)
    for _ in range(3):
        assert run(f, tensor(registry)) == "special"
        assert run(g, tensor(registry)) == "cpu"
        f.cache.clear()
    assert made == ["lib::f", "lib::g"]


def test_boxed_and_unboxed_kernels_are_called_through_each_other(registry, library):
    seen = []

    def boxed(op, ks, args):
        seen.append(args)
        return op.redispatch(ks & ~registry.keys.bit("Autograd"), *args)

    op = library.define("lib::f(Tensor x, int[2] n=1, *, Scalar alpha=2.5) -> Tensor")
    library.impl("f", "CPU", lambda x, n, *, alpha: (n, alpha))
    library.impl("f", "AutogradCPU", boxed, form="boxed")
    x = tensor(registry)
    n, alpha = op.redispatch(x.keys, x, alpha=3)
    assert (list(n), alpha) == ([1, 1], 3)
    assert seen[0][0] is x
    assert seen[0][2] == 3
    assert op.kernel("CPU")(x, alpha=4)[1] == 4


def test_a_namespace_has_one_source_and_a_functionality_one_service(registry, library):
    registry.add_source("fruit", object())
    assert refused(ConflictError, registry.add_source, "fruit", object()) == (
        "the operators of namespace 'fruit' have a source already"
    )
    library.service("CPU", object())
    assert refused(ConflictError, library.service, "CPU", object()) == (
        f"CPU has a service already; {library.origin} cannot offer a second one"
    )


# ---- tables of kernels


def register(
    library: Registrations, names: str, *, yields: bool = False, said: str = "table", made: list[str] | None = None
) -> None:
    """A table at CPU for some operators of `lib`; `made` collects those whose kernels were made."""

    def make(name: str, row: str) -> Kernel:
        if made is not None:
            made.append(name)
        binder = lambda op, kernel, key: lambda ks, *args: f"{row} of {library.name}"  # noqa: E731
        return Kernel(None, ARRAY, library=library, binder=binder, yields=yields)

    library.impl_table("CPU", {f"lib::{name}": said for name in names.split()}, make, yields=yields)


def test_a_kernel_of_a_table_is_made_when_its_operator_is_first_named(registry, library):
    made = []
    register(library, "f g h", made=made)
    assert (made, library.provides("kernel:lib::f@CPU")) == ([], False)
    assert library.provided() == {"kernel:lib::f@CPU", "kernel:lib::g@CPU", "kernel:lib::h@CPU"}
    assert library.provided(tables=False) == set()
    op = library.define("lib::f(Tensor x) -> Tensor")
    assert (run(op, tensor(registry)), made) == ("table of lib", ["lib::f"])
    assert registry.get("lib::g", define=False).kernels.keys() == {"CPU"}
    assert made == ["lib::f", "lib::g"]
    assert [op.qualified_name for op in registry.dangling()] == ["lib::g", "lib::h"]
    assert sorted(registry.operators) == ["lib::f", "lib::g", "lib::h"]
    assert made == ["lib::f", "lib::g", "lib::h"]


@pytest.mark.parametrize("is_named", [False, True])
def test_kernels_of_tables_and_others_stand_in_the_order_of_their_registration(registry, library, is_named):
    op = library.define("lib::f(Tensor x) -> Tensor") if is_named else None
    said = []
    for number in range(2):
        register(library, "f", said=f"table {number}")
        library.impl("f", "CPU", None, form=INTERNAL, binder=lambda op, kernel, key: None, label=f"single {number}")
    register(library, "f", said="last")
    op = op or library.define("lib::f(Tensor x) -> Tensor")
    for kernel in op.kernels["CPU"]:
        said.append(kernel.label or kernel.binder(op, kernel, "CPU")(0))
    assert said == ["table 0 of lib", "single 0", "table 1 of lib", "single 1", "last of lib"]
    assert run(op, tensor(registry)) == "last of lib"


@pytest.mark.parametrize("first", ["kernel", "table"])
def test_a_table_with_a_kernel_where_another_library_has_one_is_refused_whole(registry, library, first):
    with Registrations("other", registry=registry) as other:
        if first == "kernel":
            other.impl("lib::g", "CPU", lambda x: "kernel of other")
        else:
            register(other, "g")
        before = state_of(registry)
        text = refused(ConflictError, register, library, "f g h")
        assert "lib::g" in text
        assert (state_of(registry), library.provided()) == (before, set())
        refused(ConflictError, library.impl, "g", "CPU", lambda x: "kernel of lib")
        register(library, "f g h", yields=True)
        op = library.define("lib::g(Tensor x) -> Tensor")
        assert run(op, tensor(registry)).endswith("of other")
    assert run(op, tensor(registry)) == "table of lib"


def test_undoing_a_table_takes_back_its_kernels_made_or_not(registry, library):
    op = library.define("lib::f(Tensor x) -> Tensor")
    before = state_of(registry)
    with Registrations("other", registry=registry) as other:
        register(other, "f g")
        assert run(op, tensor(registry)) == "table of other"
        registry.get("lib::g", define=False)
        register(other, "h")
    assert (state_of(registry), registry.tables) == (before, ())
    assert registry.get("lib::h", define=False) is None


def test_a_table_at_an_unknown_key_is_refused(registry, library):
    text = refused(UniverseError, library.impl_table, "Cpu", {"lib::f": None}, lambda name, row: Kernel(None))
    assert text == "unknown dispatch key 'Cpu'"
    assert registry.tables == ()


@pytest.mark.parametrize("register_one", [
    lambda library, said: register(library, "f", said=said, yields=True),
    lambda library, said: library.impl("lib::f", "CPU", lambda x: said, yields=True),
])  # fmt: skip
@pytest.mark.parametrize("kept", [[], ["nobody"]])
@pytest.mark.parametrize("below", [False, True])
def test_kernels_that_yield_conflict_again_once_no_setting_chooses_between_them(registry, register_one, kept, below):
    configured = Registry(registry.keys, follows_config=True)
    a, b, own = (Registrations(name, registry=configured) for name in ("a", "b", "own"))
    op = a.define("lib::f(Tensor x) -> Tensor")
    if below:
        own._provided.append("backend:CPU")
        own.impl("lib::f", "CPU", lambda x: "the backend's own")
    with settings({'kernels.prefer."lib::f@CPU"': ["b"]}):
        for library in (a, b):
            register_one(library, f"kernel of {library.name}")
        assert "kernel of b" in run(op, tensor(configured))
    with settings({'kernels.prefer."lib::f@CPU"': kept} if kept else {}):
        text = refused(ConflictError, run, op, tensor(configured))
        assert text.startswith("lib::f: two kernels for CPU\n  first   a, ")
        choose = 'choose one with the setting kernels.choose."lib::f@CPU", or uninstall one'
        assert text.endswith(choose) == (op.kernels["CPU"][-1].binder is not None)


def interrupted(function, nth: int) -> bool:
    """Call a function, and interrupt it where the nth call in it begins or ends. Whether there were that many."""
    calls = count(1)

    def at_call(frame, event, arg):
        if event in ("call", "return", "c_return") and frame.f_code is not interrupted.__code__ and next(calls) == nth:
            sys.setprofile(None)
            raise KeyboardInterrupt

    before = sys.getprofile()
    try:
        sys.setprofile(at_call)
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


def register_each_kind(library: Registrations) -> None:
    library.define("t::f(Tensor x) -> Tensor")
    library.impl("t::f", "CPU", lambda x: x)
    library.fallthrough("AutogradCPU")
    library.functionality("Seen", after="Autograd")
    library.alias("Both", ["CPU"])
    library.service("Seen", object())
    library.keeps_lines(lambda call: call)
    library.context_note(str)
    library.impl_table("XPU", {"t::f": None}, lambda name, row: Kernel(lambda x: x, ARRAY, library=library))


def test_an_undo_that_is_interrupted_anywhere_takes_everything_back(registry, library):
    before = state_of(registry)
    for nth in count(1):
        register_each_kind(library)
        done = not interrupted(library.undo, nth)
        if library.mark()[0] > 0:  # it was interrupted before it began
            library.undo()
            assert nth <= 3
        assert state_of(registry) == before
        if done:
            break
    assert nth > 50


def test_a_callback_may_undo_its_library(library):
    done = []
    library.on_undo(lambda: done.append("first"))
    library.on_undo(library.undo)
    library.undo()
    assert done == ["first"]
