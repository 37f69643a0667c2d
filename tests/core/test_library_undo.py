"""Libraries come and go in any order: what they registered, overrode or failed to register leaves no trace."""

from __future__ import annotations

import gc
import linecache
import random

import pytest
from plain_objects import backends, box, state_of_registry  # noqa: F401

from outcomes import refused
from turnout.errors import RegistrationError, TurnoutError
from turnout.library import Library, custom_op, fallthrough_kernel
from turnout.library.libraries import _DEFINERS
from turnout.registry import REGISTRY, Registrations

NAMESPACES = ("t", "u")
NAMES = ("f", "g", "f.more")
SCHEMAS = ("(Tensor x) -> Tensor", "(Tensor x, int n) -> Tensor", "(Tensor(a!) x) -> ()")
KEYS = (
    "Shelf", "Rack", "Autograd", "AutogradRack", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "ADInplaceOrView",
)  # fmt: skip


def _kernel(x, *rest):
    return x


def _library(draw):
    kind = draw.choice(("DEF", "FRAGMENT", "IMPL"))
    return Library(draw.choice(NAMESPACES), kind)


def _act(draw, lib):
    """One registration, which may be refused."""
    name = draw.choice(NAMES)
    kind = draw.choice(("define", "impl", "impl", "impl", "fallback"))
    if kind == "define":
        lib.define(name + draw.choice(SCHEMAS))
    elif kind == "impl":
        override = draw.random() < 0.3
        lib.impl(name, _kernel, draw.choice(KEYS), allow_override=override or None, with_keyset=draw.random() < 0.2)
    else:
        with_namespace = Library("_", "IMPL", draw.choice(KEYS[:4]))
        with_namespace.fallback(_kernel)
        with_namespace.undo()


@pytest.fixture(autouse=True)
def _bystanders(backends):  # noqa: F811
    """Operators of another library, which nothing that comes and goes may change."""
    with Registrations("bystander") as library:
        library.define("plain(Tensor x) -> Tensor")
        library.impl("plain", "Shelf", _kernel)
        library.define("composite.more(Tensor x, int n) -> Tensor")
        library.impl("composite.more", "CompositeExplicitAutograd", _kernel)
        yield


def _tables():
    """What every operator would run: filled into its caches too, so that a stale one shows."""
    found = {}
    for name in ("bystander::plain", "bystander::composite.more"):
        op = REGISTRY.find(name)
        op.plan(box(1).keys)
        found[name] = {key: (entry.reason, entry.kernel.name, entry.kernel.origin) for key, entry in op.table().items()}
    return found


def _run(draw):
    """Two or three libraries register by turns and are undone in a drawn order, each in a drawn way."""
    libraries = []
    while len(libraries) < draw.choice((2, 3)):
        try:
            libraries.append(_library(draw))
        except TurnoutError:
            continue
    refusals = 0
    for _ in range(draw.randrange(4, 20)):
        before = state_of_registry()
        try:
            _act(draw, draw.choice(libraries))
        except TurnoutError:
            refusals += 1
            assert state_of_registry() == before
        if draw.random() < 0.3 and REGISTRY.packet("t", "f") is not None:
            for op in REGISTRY.packet("t", "f"):
                op.plan(box(1).keys)
    draw.shuffle(libraries)
    while libraries:
        lib = libraries.pop()
        if draw.random() < 0.5:
            lib.undo()
        del lib
    return refusals


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_any_sequence_undone_in_any_order_leaves_the_registry_as_it_was(start):
    before, tables = state_of_registry(), _tables()
    gc.collect()
    gc.freeze()  # what is there already is not looked at again with each sequence
    refusals = 0
    for seed in range(start, start + 20):
        refusals += _run(random.Random(seed))
        gc.collect()
        assert state_of_registry() == before, seed
        assert _tables() == tables, seed
        assert _DEFINERS == {}, seed
    assert refusals >= 20, "they say too little"


def test_what_two_libraries_overrode_is_back_in_any_order():
    for order in ((0, 1), (1, 0)):
        with Library("t", "DEF") as lib:
            lib.define("f(Tensor x) -> Tensor")
            lib.impl("f", lambda x: "base", "Shelf")
            over = [Library("t", "IMPL"), Library("t", "IMPL")]
            over[0].impl("f", lambda x: "over", "Shelf", allow_override=True)
            over[1].impl("f", lambda x: "rack", "Rack")
            op = REGISTRY.find("t::f")
            assert (op(box(1)), op(box(1, on="rack"))) == ("over", "rack")
            for i in order:
                over[i].undo()
            assert op(box(1)) == "base"
            assert list(op.kernels) == ["Shelf"]


def test_a_custom_operator_that_was_undone_leaves_the_registry_as_it_was():
    before = state_of_registry()
    op = custom_op("t::f", _kernel, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_kernel(["shelf", "rack"], lambda x: box(1))
    op.register_fake(lambda x: x)
    op.register_autograd(lambda ctx, grad: grad)
    with op.set_kernel_enabled("rack", False):
        op.undo()
    assert state_of_registry() == before


@pytest.mark.parametrize(
    "key", ["CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"]
)
def test_fallthrough_at_a_composite_key_is_refused_and_registers_nothing(key):
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        before = state_of_registry()
        assert refused(RegistrationError, lib.impl, "f", fallthrough_kernel, key) == (
            f"t::f: FALLTHROUGH cannot be registered at {key}, which stands for many keys\n"
            "  to fix  register FALLTHROUGH at each key that should pass the call on"
        )
        assert state_of_registry() == before


def test_the_source_of_a_stub_goes_with_the_operator():
    def once(name):
        with Registrations(name) as library:
            library.define("f(Tensor x) -> Tensor")
            library.impl("f", "Shelf", _kernel)
            REGISTRY.find(f"{name}::f")(box(1))

    once("t")
    before = set(linecache.cache)
    for name in ("u", "v"):
        once(name)
    assert set(linecache.cache) == before
