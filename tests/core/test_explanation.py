"""explain: the facts of a call that is not made, and how they print."""

from __future__ import annotations

import json

import pytest
from plain_objects import Handle, installed

import turnout
from outcomes import refused
from turnout import state
from turnout.errors import CallError, OverloadError, StaleOperatorError, UnknownOperatorError
from turnout.explanation.explanation import explain, find
from turnout.registry import Registrations


def never(*args):
    raise AssertionError("explain called a kernel")


def composite(*args):
    raise AssertionError("explain called a kernel")


def line_of(function) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno}"


def test_the_whole_text_of_a_call_with_a_gradient_kernel_above_a_backend_kernel(registry, library, x):
    library.define("f(Tensor x, int n=2) -> Tensor")
    library.impl("f", "Autograd", never)
    library.impl("f", "CPU", never)
    text = str(explain(registry.find("lib::f"), x))
    assert text == (
        "lib::f(Tensor x, int n=2) -> Tensor\n"
        "arguments\n"
        "  x  Handle handle  brings AutogradCPU, ADInplaceOrView, CPU, AutocastCPU (off)\n"
        "  n  int 2\n"
        "state\n"
        "  added    BackendSelect\n"
        "  removed  AutocastCPU (off by default)\n"
        "keys: AutogradCPU, ADInplaceOrView, BackendSelect, CPU\n"
        f"-> AutogradCPU  never [autograd kernel, registered at Autograd] (lib-dist 1.2, {line_of(never)})\n"
        "next, if it redispatches: ADInplaceOrView, BackendSelect, CPU\n"
        "   ADInplaceOrView  fallthrough [backend fallback] (core-dist 0)\n"
        "   BackendSelect    fallthrough [backend fallback] (core-dist 0)\n"
        f"-> CPU              never [kernel] (lib-dist 1.2, {line_of(never)})"
    )


def test_a_composite_kernel_ends_the_path_since_it_calls_other_operators(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", "CompositeImplicitAutograd", composite)
    found = explain(registry.find("lib::f"), x)
    assert [(s.key, s.reason, s.at) for s in found.path] == [("AutogradCPU", "math kernel", "CompositeImplicitAutograd")]
    assert found.chosen.verdict == "chosen"


def test_next_says_what_a_redispatch_below_would_run(registry, library, x):
    library.functionality("Guard", after="Autograd")
    library.fallback("Guard", never, label="guard")
    for name, kernels in {
        "own": {"CPU": {}},
        "made": {"CompositeImplicitAutograd": {}},
        "row": {"CPU": {"may_decline": True}},
        "lost": {},
        "both": {
            "CompositeImplicitAutograd": {},
            "CPU": {},
            "Autograd": {"tracked_only": True, "composes": lambda args: args[0] is x},
        },
    }.items():
        library.define(f"{name}(Tensor x) -> Tensor")
        for key, how in kernels.items():
            library.impl(name, key, never, label=f"{name} of {key}", **how)

    def said(name, ks, *args):
        found = registry.find(f"lib::{name}").next(ks, *args)
        return found.key, found.reason, found.label, found.composite, found.may_decline

    guard, tracked = x.keys | registry.keys.bit("Guard"), x.keys | 1
    assert said("own", x.keys) == ("CPU", "kernel", "own of CPU", False, False)
    assert said("row", x.keys) == ("CPU", "kernel", "row of CPU", False, True)
    assert said("made", x.keys) == ("AutogradCPU", "math kernel", "made of CompositeImplicitAutograd", True, False)
    assert said("made", guard) == ("Guard", "backend fallback", "guard", True, False)  # what the guard passes on to
    assert said("own", guard)[2:] == ("guard", False, False)
    assert said("lost", x.keys) == ("CPU", "missing", "missing", False, False)
    assert said("both", x.keys) == ("CPU", "kernel", "both of CPU", False, False)
    composed = ("AutogradCPU", "autograd kernel", "both of Autograd", True, True)
    assert said("both", tracked) == said("both", tracked, (x,)) == composed
    assert said("both", tracked, (None,)) == said("both", x.keys)
    assert said("both", tracked | guard, (None,)) == ("Guard", "backend fallback", "guard", False, False)
    library.impl("lost", "CPU", never, label="found")
    assert said("lost", x.keys)[2] == "found"


def test_keys_without_a_kernel_are_shown_as_passed_over_or_missing(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    found = explain(registry.find("lib::f"), x)
    assert [(s.key, s.verdict) for s in found.hops[0].steps] == [
        ("AutogradCPU", "no kernel, passed over: no argument requires a gradient"),
        ("ADInplaceOrView", "fallthrough"),
        ("BackendSelect", "fallthrough"),
        ("CPU", "missing"),
    ]
    assert found.chosen.verdict != "chosen"


def test_a_tracked_only_kernel_says_why_it_is_left_out(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", "Autograd", never, tracked_only=True)
    library.impl("f", "CPU", never)
    op = registry.find("lib::f")
    assert explain(op, x).hops[0].steps[0].verdict == "left out: no argument requires a gradient"
    tracked = Handle(x.keys | 1)
    assert [s.key for s in explain(op, tracked).path] == ["AutogradCPU", "CPU"]
    assert explain(op, tracked).arguments[0].keys[-1] == "tracked"


def test_a_kernel_that_composes_some_calls_says_whether_it_composes_this_one(registry, library, x):
    library.define("f(Tensor x, int n=2) -> Tensor")
    library.impl("f", "CompositeImplicitAutograd", composite)
    library.impl("f", "Autograd", never, tracked_only=True, composes=lambda args: args[1] > 2)
    library.impl("f", "CPU", never)
    op, tracked = registry.find("lib::f"), Handle(x.keys | 1)

    def notes(*args):
        found = explain(op, *args)
        return [step.note for hop in found.hops for step in hop.steps if step.kernel == "never"]

    assert notes(tracked, 3) == ["here it runs the composite kernel", ""]
    assert notes(tracked) == ["here it does not run the composite kernel", ""]
    assert notes(x, 3) == ["", ""]  # left out: nothing is asked
    assert str(explain(op, tracked, 3).chosen).endswith(f"(lib-dist 1.2, {line_of(never)}) here it runs the composite kernel")


def test_an_ambiguous_slot_is_named(registry, library, x):
    library.functionality("Sparse", per_backend="Sparse", after="Dense", backend_key=True)
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", "SparseCPU", never)
    library.impl("f", "CompositeImplicitAutograd", composite)
    keys = registry.keys
    sparse = Handle(keys.bit("Sparse") | keys.backend_bit("CPU") | keys.bit("AutogradOther"))
    found = explain(registry.find("lib::f"), sparse)
    assert (found.chosen.key, found.chosen.verdict) == ("AutogradOther", "ambiguous autogradother")
    assert len(found.hops) == 1


def test_what_the_state_adds_and_removes_is_shown_and_used(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", "Autograd", never)
    library.impl("f", "CPU", never)
    with state.exclude(["Autograd", "AutogradOther"]):
        found = explain(registry.find("lib::f"), x)
    assert found.state.removed == ["AutocastCPU (off by default)", "Autograd"]
    assert [s.key for s in found.path] == ["CPU"]


def test_what_plugins_say_of_the_context_is_shown_until_they_are_undone(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    with Registrations("weather", registry=registry) as weather:
        weather.context_note(lambda: "rain  umbrellas are out")
        weather.context_note(lambda: "")
        found = explain(registry.find("lib::f"), x)
    assert found.state.notes == ["rain  umbrellas are out"]
    assert "  rain  umbrellas are out\n" in str(found)
    assert explain(registry.find("lib::f"), x).state.notes == []


def test_lists_of_tensors_bring_the_keys_of_all_of_them(registry, library, x):
    library.define("f(Tensor[] xs) -> Tensor")
    library.impl("f", "CPU", never)
    found = explain(registry.find("lib::f"), [x, Handle(0)])
    assert found.arguments[0].value == "[Handle handle, Handle handle]"
    assert "CPU" in found.arguments[0].keys


def test_a_packet_is_explained_by_the_overload_that_the_call_would_choose(registry, library, x):
    library.define("f.int(int n) -> int")
    library.define("f.str(str s) -> int")
    packet = registry.packet("lib", "f")
    assert explain(packet, 3).operator == "lib::f.int"
    assert explain(packet, "a").operator == "lib::f.str"
    refused(OverloadError, explain, packet, None)


def test_the_explanation_as_data_goes_through_json(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", "CPU", never)
    data = json.loads(json.dumps(explain(registry.find("lib::f"), x).to_dict()))
    assert data["operator"] == "lib::f"
    assert data["hops"][0]["steps"][-1] == {
        "key": "CPU",
        "verdict": "chosen",
        "reason": "kernel",
        "at": "CPU",
        "kernel": "never",
        "form": "unboxed",
        "distribution": "lib-dist",
        "version": "1.2",
        "source": line_of(never),
        "note": "",
        "path": "",
    }


def test_explaining_fills_no_cache(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", "CPU", never)
    op = registry.find("lib::f")
    explain(op, x)
    assert op.cache == {}


def test_wrong_arguments_are_the_errors_of_the_call(registry, library, x):
    library.define("f(Tensor x) -> Tensor")
    refused(CallError, explain, registry.find("lib::f"), x, x)


def test_an_operator_that_was_undone_is_a_clear_error(registry, x):
    with Registrations("gone", registry=registry) as gone:
        op = gone.define("gone::f(Tensor x) -> Tensor")
    assert refused(StaleOperatorError, explain, op, x) == (
        "gone::f is gone: the library that defined it was undone; look the operator up again"
    )


@pytest.fixture
def shop():
    """Operators of the process's registry."""
    with installed(), Registrations("shop", distribution="shop-dist", version="3") as library:
        library.define("sell(Tensor x) -> Tensor")
        library.define("sell.two(Tensor x, int n) -> Tensor")
        yield turnout.ops.shop


@pytest.mark.parametrize("name", ["sell", "shop::sell"])
def test_a_name_without_overload_finds_the_packet(shop, name):
    assert find(name) is shop.sell


@pytest.mark.parametrize("name", ["sell.two", "shop::sell.two"])
def test_a_name_with_overload_finds_the_operator(shop, name):
    assert find(name) is shop.sell.two


def test_what_says_its_operator_is_found(shop):
    class Function:
        operator = shop.sell.two

    class Method:
        packet = shop.sell

    def named():
        return None

    named.operator_name = "shop::sell"
    assert find(Function()) is shop.sell.two
    assert find(Method()) is shop.sell
    assert find(named) is shop.sell


def test_what_is_no_operator_is_refused(shop):
    refused(UnknownOperatorError, find, "shop::no_such_operator")
    assert refused(TypeError, find, 3) == (
        "explain: expected an operator, a function of an operator or a name such as 'mylib::add', got 3"
    )
