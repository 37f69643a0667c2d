"""trace_dispatch: what is recorded, where, and that nothing of it stays."""

from __future__ import annotations

import contextvars
import json
import threading
from functools import partial

import pytest

from outcomes import in_threads, refused
from turnout.errors import NoKernelError
from turnout.explanation import explain
from turnout.explanation.tracing import spelled, trace_dispatch
from turnout.operators.kernels import FALLTHROUGH
from turnout.registry import Registrations


@pytest.fixture
def registry(registry, library):
    f = library.define("lib::f(Tensor x) -> Tensor")
    g = library.define("lib::g(Tensor x) -> Tensor")
    below_autograd = ~(registry.keys.bit("Autograd"))

    def autograd_f(ks, x):
        return f.redispatch(ks & below_autograd, x)

    def cpu_f(x):
        return g.call_boxed((x,))

    def cpu_g(x):
        return x

    library.impl("f", "AutogradCPU", autograd_f, with_keyset=True)
    library.impl("f", "CPU", cpu_f)
    library.impl("g", "CPU", cpu_g)
    library.impl("g", "Autograd", FALLTHROUGH)
    return registry


def call(registry, name, *args):
    return registry.find(name).call_boxed(args)


TREE = (
    "AutogradCPU  lib::f  autograd_f (lib-dist 1.2)\n  CPU  lib::f  cpu_f (lib-dist 1.2)\n    CPU  lib::g  cpu_g (lib-dist 1.2)"
)


def test_redispatches_and_inner_calls_are_nested(registry, x):
    with trace_dispatch(registry=registry) as log:
        assert call(registry, "lib::f", x) is x
    assert log.tree(times=False) == TREE
    assert len(log) == 3
    outer = log.calls[0]
    assert (outer.op, outer.key, outer.reason, outer.distribution) == ("lib::f", "AutogradCPU", "kernel", "lib-dist 1.2")
    assert outer.source.startswith(f"{__file__}:")
    assert outer.ns >= outer.calls[0].ns > 0
    assert outer.own_ns == outer.ns - outer.calls[0].ns


def test_a_notebook_shows_the_tree_with_every_word_escaped(registry, x):
    with trace_dispatch(registry=registry) as log:
        call(registry, "lib::f", x)
    log.calls[0].kernel = "<b>&"
    shown = log._repr_html_()
    assert (shown.count("<details"), shown.count("</details>"), shown.count("&lt;b&gt;&amp;"), "<b>" in shown) == (2, 2, 1, False)
    explained = explain(registry.find("lib::f"), x)
    shown = explained._repr_html_()
    assert shown.count("<table>") == shown.count("</table>") == 2 + len(explained.hops)
    assert [word in shown for word in ("lib::f(Tensor x) -&gt; Tensor", "AutogradCPU", "cpu_f")] == [True] * 3


def test_a_printed_trace_has_times(registry, x):
    with trace_dispatch(registry=registry) as log:
        call(registry, "lib::g", x)
    ns = log.calls[0].ns
    assert str(log) == f"CPU  lib::g  cpu_g (lib-dist 1.2)  {ns / 1000:.1f} us"


def test_counts_are_per_key_and_kernel_most_frequent_first(registry, x):
    with trace_dispatch(registry=registry) as log:
        call(registry, "lib::g", x)
        call(registry, "lib::f", x)
    assert list(log.counts().items()) == [(("CPU", "cpu_g"), 2), (("AutogradCPU", "autograd_f"), 1), (("CPU", "cpu_f"), 1)]
    assert sum(ns for _, ns in log.totals().values()) == sum(call.ns for call in log.calls)


def test_what_was_resolved_before_the_trace_is_recorded_and_leaves_no_wrapper_behind(registry, x):
    call(registry, "lib::g", x)
    before = dict(registry.find("lib::g").cache)
    with trace_dispatch(registry=registry) as log:
        call(registry, "lib::g", x)
    call(registry, "lib::g", x)
    assert len(log) == 1
    assert registry.instruments == ()
    after = registry.find("lib::g").cache
    assert [c.__code__ for c in after.values()] == [c.__code__ for c in before.values()]


def test_a_trace_inside_a_trace_records_its_part_and_both_end_well(registry, x):
    with trace_dispatch(registry=registry) as outer:
        call(registry, "lib::g", x)
        with trace_dispatch(registry=registry) as inner:
            call(registry, "lib::f", x)
        call(registry, "lib::g", x)
    assert inner.tree(times=False) == TREE
    assert [c.op for c in outer.calls] == ["lib::g", "lib::f", "lib::g"]
    assert len(outer) == 5
    assert registry.instruments == ()


def test_a_trace_opened_by_a_kernel_records_what_the_kernel_calls(registry, x):
    logs = []

    def traced(x):
        with trace_dispatch(registry=registry) as log:
            logs.append(log)
            return call(registry, "lib::g", x)

    with Registrations("more", registry=registry) as more:
        more.define("more::h(Tensor x) -> Tensor")
        more.impl("h", "CPU", traced)
        more.impl("h", "Autograd", FALLTHROUGH)
        with trace_dispatch(registry=registry) as outer:
            call(registry, "more::h", x)
    assert [c.op for c in outer.walk()] == ["more::h", "lib::g"]
    assert [c.op for c in logs[0].walk()] == ["lib::g"]


def test_an_exception_is_recorded_and_the_trace_goes_on_and_ends(registry, x):
    def failing(x):
        raise ZeroDivisionError("no")

    with Registrations("more", registry=registry) as more:
        more.define("more::h(Tensor x) -> Tensor")
        more.impl("h", "CPU", failing)
        more.impl("h", "Autograd", FALLTHROUGH)
        logs = []

        def body():
            with trace_dispatch(registry=registry) as log:
                logs.append(log)
                refused(ZeroDivisionError, call, registry, "more::h", x)
                call(registry, "lib::g", x)
                raise RuntimeError("body")

        refused(RuntimeError, body)
    (log,) = logs
    assert [(c.op, c.error, c.calls) for c in log.calls] == [("more::h", "ZeroDivisionError", []), ("lib::g", "", [])]
    assert "raised ZeroDivisionError" in log.tree()
    assert registry.instruments == ()
    call(registry, "lib::g", x)
    assert len(log) == 2


def test_a_missing_kernel_is_recorded_too(registry, x):
    with Registrations("more", registry=registry) as more:
        more.define("more::h(Tensor x) -> Tensor")
        more.impl("h", "Autograd", FALLTHROUGH)
        with trace_dispatch(registry=registry) as log, pytest.raises(NoKernelError):
            call(registry, "more::h", x)
    assert log.tree(times=False) == "CPU  more::h  missing  raised NoKernelError"


def test_threads_are_recorded_only_in_a_copy_of_the_context(registry, x):
    def work():
        call(registry, "lib::g", x)

    with trace_dispatch(registry=registry) as log:
        in_threads(work)
        assert len(log) == 0
        in_threads(partial(contextvars.copy_context().run, work))
    assert len(log) == 1
    assert log.calls[0].thread not in (0, threading.get_ident())


def test_a_change_of_the_registry_during_a_trace_is_followed(registry, x):
    with trace_dispatch(registry=registry) as log:
        call(registry, "lib::g", x)
        with Registrations("over", distribution="over-dist", version="2", registry=registry) as over:
            over.impl("lib::g", "CPU", lambda x: x, allow_override=True, label="other g")
            call(registry, "lib::g", x)
        call(registry, "lib::g", x)
    assert [c.distribution for c in log.calls] == ["lib-dist 1.2", "over-dist 2", "lib-dist 1.2"]


def test_arguments_are_recorded_in_a_word_each_when_asked_for(registry, x):
    with trace_dispatch(registry=registry, arguments=True) as log:
        call(registry, "lib::g", x)
    assert log.calls[0].arguments == (spelled(x),)


def test_a_long_argument_is_shortened():
    assert spelled("y" * 50) == "'" + "y" * 36 + "..."
    assert spelled([1, (2.5, None)]) == "[1, [2.5, None]]"


def test_a_trace_as_data_goes_through_json(registry, x):
    with trace_dispatch(registry=registry) as log:
        call(registry, "lib::f", x)
    (outer,) = json.loads(json.dumps(log.to_dict()))
    assert outer["kernel"] == "autograd_f"
    assert outer["calls"][0]["calls"][0]["op"] == "lib::g"


def test_one_object_is_entered_once(registry):
    trace = trace_dispatch(registry=registry)
    with trace, pytest.raises(RuntimeError) as caught, trace:
        pass
    assert str(caught.value) == "a trace can be entered once; make a new one with turnout.trace_dispatch()"
    assert registry.instruments == ()
