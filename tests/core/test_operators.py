"""How a key set becomes a kernel: plans, guards below Autograd, opt-in functionalities, missing kernels."""

from __future__ import annotations

import pickle

import pytest
from plain_objects import Handle

from outcomes import refused
from turnout import config, plugins, state
from turnout.devices import Backend
from turnout.errors import DisabledError, NoKernelError
from turnout.keys import KEYS, TRACKED
from turnout.plugins import providers
from turnout.registry import REGISTRY, Registrations, Registry
from turnout.state import DISPATCH


class OffBackend(Backend):
    name = "Off"
    device_type = "off"


@pytest.fixture
def no_plugin_active(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors name the package of a plugin that is not active, whatever earlier tests have activated."""
    monkeypatch.setattr(plugins, "ACTIVE", frozenset())


def bits(registry: Registry, backend: str = "CPU") -> int:
    return registry.keys.tensor_bits(backend)


def test_a_plan_lists_every_step_down_to_the_kernel_that_runs(registry, library):
    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "CPU", lambda x: x)
    library.impl("f", "AutogradCPU", lambda x: x, tracked_only=True)
    plan = op.plan(bits(registry))
    assert [(s.key, s.verdict) for s in plan.steps] == [
        ("AutogradCPU", "left out: no argument requires a gradient"),
        ("ADInplaceOrView", "fallthrough"),
        ("CPU", "chosen"),
    ]
    plan = op.plan(bits(registry) | TRACKED)
    assert [(s.key, s.verdict) for s in plan.steps] == [("AutogradCPU", "chosen")]


def test_an_untracked_call_passes_over_a_missing_autograd_kernel_and_a_tracked_one_does_not(registry, library, no_plugin_active):
    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "CPU", lambda x: "cpu")
    x = Handle(bits(registry))
    assert op.redispatch(x.keys, x) == "cpu"
    x.keys |= TRACKED
    with pytest.raises(NoKernelError) as caught:
        op.redispatch(x.keys, x)
    assert str(caught.value).startswith("lib::f: no kernel for AutogradCPU\n")
    assert providers.install("turnout-autograd") in str(caught.value)


def test_a_missing_kernel_names_the_operator_the_key_the_argument_and_the_kernels_there_are(registry, library, no_plugin_active):
    def xpu_kernel(x):
        return x

    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "XPU", xpu_kernel)
    x = Handle(bits(registry))
    with pytest.raises(NoKernelError) as caught:
        op.redispatch(x.keys, x)
    assert str(caught.value) == (
        "lib::f: no kernel for CPU\n"
        f"  asked for by  x: Handle handle\n"
        f"  kernels       XPU (lib-dist 1.2, {__file__}:{xpu_kernel.__code__.co_firstlineno})\n"
        f"  to fix        {providers.install('turnout-cpu')}; `turnout table lib::f` prints the whole table"
    )
    assert isinstance(caught.value, NotImplementedError)


def test_a_call_without_tensors_takes_the_undefined_slot(registry, library):
    op = library.define("lib::f(int n) -> int")
    library.impl("f", "CompositeExplicitAutograd", lambda n: n + 1)
    assert op.call_boxed((1,)) == 2
    none = library.define("lib::g(int n) -> int")
    assert refused(NoKernelError, none.call_boxed, (1,)) == (
        "lib::g: no kernel for Undefined\n"
        "  asked for by  the call itself: no argument is a tensor\n"
        "  kernels       none\n"
        "  to fix        `turnout table lib::g` prints the whole table"
    )


def test_the_ambiguous_autogradother_kernel_is_an_error_when_called(registry, library):
    library.functionality("Sparse", per_backend="Sparse", after="Dense", backend_key=True)
    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "SparseCPU", lambda x: x)
    library.impl("f", "CompositeImplicitAutograd", lambda x: x)
    ks = registry.keys.bit("Sparse") | registry.keys.backend_bit("CPU") | registry.keys.bit("AutogradOther")
    assert "ambiguous kernel for AutogradOther" in refused(NoKernelError, op.redispatch, ks, Handle(ks))


@pytest.mark.parametrize(
    ("key", "form", "guarded"),
    [("CPU", "unboxed", True), ("CompositeExplicitAutograd", "unboxed", True), ("CompositeImplicitAutograd", "unboxed", False),
     ("CPU", "array", False), ("Python", "unboxed", True)],
)  # fmt: skip
def test_a_kernel_that_calls_operators_runs_below_autograd_when_it_is_reached_from_there(registry, library, key, form, guarded):
    seen = []

    def kernel(x):
        seen.append(DISPATCH.get()[1] & KEYS.bit("Autograd") == 0)

    def binder(op, kernel, key):
        return lambda ks, *args: kernel.fn(*args)

    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", key, kernel, form=form, binder=binder if form == "array" else None)
    x = Handle(bits(registry) | registry.keys.bit("Python") if key == "Python" else bits(registry))
    op.redispatch(x.keys & state.BELOW_AUTOGRAD, x)
    before = DISPATCH.get()
    if key not in ("CompositeImplicitAutograd", "Python"):
        op.redispatch(x.keys, x)
        assert seen == [guarded, False]
    else:
        assert seen == [guarded]
    assert DISPATCH.get() == before


def test_the_guard_is_undone_when_the_kernel_raises(registry, library):
    def kernel(x):
        raise KeyError("inside")

    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "CPU", kernel)
    before = DISPATCH.get()
    assert "inside" in refused(KeyError, op.redispatch, bits(registry) & state.BELOW_AUTOGRAD, Handle(0))
    assert DISPATCH.get() == before


def test_an_opt_in_functionality_takes_part_only_while_it_is_switched_on(registry, library):
    op = library.define("lib::f(Tensor x) -> Tensor")
    library.impl("f", "CPU", lambda x: "cpu")
    library.impl("f", "AutocastCPU", lambda x: "autocast")
    ks = bits(registry)
    switch = registry.keys.bit("switch:AutocastCPU")
    assert op.redispatch(ks, Handle(ks)) == "cpu"
    assert op.redispatch(ks | switch, Handle(ks)) == "autocast"
    other = bits(registry, "XPU")
    library.impl("f", "XPU", lambda x: "xpu")
    assert op.redispatch(other | switch, Handle(other)) == "xpu"


def test_a_disabled_key_falls_through_and_asking_for_it_is_an_error_that_names_the_setting():
    with Registrations("offlib", distribution="off", version="1") as library:
        op = library.define("offlib::f(Tensor x) -> Tensor")
        library.impl("f", "CompositeExplicitAutograd", lambda x: "backend")
        library.impl("f", "Tracer", lambda x: "tracer")
        library.backend(OffBackend())
        ks = KEYS.tensor_bits("Off") | KEYS.bit("Tracer")
        assert op.redispatch(ks, Handle(ks)) == "tracer"
        config.set({"keys.disable": ["Tracer"]})
        try:
            assert op.redispatch(ks, Handle(ks)) == "backend"
            assert op.plan(ks).steps[0].verdict == "disabled by configuration"
            from turnout import plugins

            assert "keys.disable" in refused(DisabledError, plugins.require_functionality, "Tracer")
        finally:
            config.unset("keys.disable")
        assert op.redispatch(ks, Handle(ks)) == "tracer"


@pytest.fixture
def shop():
    """Operators of the process's registry."""
    with Registrations("shop") as library:
        library.define("sell(Tensor x) -> Tensor")
        library.define("sell.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
        yield library


def test_an_operator_pickles_by_name(shop):
    op = REGISTRY.find("shop::sell.out")
    assert pickle.loads(pickle.dumps(op)) is op


def test_default_is_another_name_of_the_unnamed_overload(shop):
    assert REGISTRY.find("shop::sell.default") is REGISTRY.find("shop::sell")


def test_the_entries_of_an_operator_are_those_of_each_key_and_each_fallback_is_specialised_once(registry, library):
    op = library.define("lib::f(Tensor x) -> Tensor")
    asked = []

    def special(op, key):
        asked.append(key)
        return lambda ks, *args: key

    for key in ("Tracer", "Python"):
        library.fallback(key, None, form="internal", specialize=special, by_key=True)
    entries = op.entries()
    assert sorted(asked) == ["Python", "Tracer"]
    assert [entries[key].kernel.fn(0) for key in ("Python", "Tracer")] == ["Python", "Tracer"]
    assert {key: entry.kernel for key, entry in entries.items()} == {key: op.entry(key).kernel for key in entries}
    assert sorted(asked) == ["Python", "Tracer"]


def test_the_table_has_a_fallbacks_own_kernel_for_the_operator_and_nothing_where_it_declines(registry, library):
    op = library.define("lib::f(Tensor x) -> Tensor")
    other = library.define("lib::g(Tensor x) -> Tensor")

    def special(op, key):
        return (lambda ks, *args: "special") if op.name == "f" else None

    library.fallback("Tracer", None, form="internal", specialize=special, by_key=True)
    assert op.table()["Tracer"].kernel.fn(0) == "special"
    assert op.table()["Tracer"].reason == "backend fallback"
    assert "Tracer" not in other.table()
    assert op.cache == {}
