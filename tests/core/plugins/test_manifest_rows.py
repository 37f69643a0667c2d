"""Rows from manifests: the keys and backends of what is installed are in the universe, active or not."""

from __future__ import annotations

import itertools

import pytest
from counting_plugin import DEVICE
from installed_folder import FUNCTIONALITY, LIBRARY

import turnout
from outcomes import refused
from turnout import config, plugins, state
from turnout.devices import Backend, default_device, device
from turnout.errors import DeviceError, NoKernelError, PluginError, PluginWarning
from turnout.keys import KEYS, TRACKED
from turnout.plugins import providers
from turnout.registry import REGISTRY, Registrations

WRAPS = """\
from turnout.plugins import hookimpl

calls = []

def wrap(op, ks, args):
    calls.append(op.qualified_name)
    return op.redispatch(ks & ~BIT, *args)

@hookimpl
def turnout_activate(library, options):
    global BIT
    BIT = library.registry.keys.bit("KEY")
    library.fallback("KEY", wrap)
"""
SELLER = DEVICE + '    library.impl("shop::sell", "{backend}", lambda x: "sold on {name}")\n'


class Thing:
    def __init__(self, keys: int, shape: tuple[int, ...] = (1,)) -> None:
        self.keys = keys
        self.shape = shape

    def __repr__(self) -> str:
        return "thing"


def functionality(site, name, row, activation="", key=""):
    """A plugin with one key; `row` is what its manifest says of it."""
    key = key or name.capitalize()
    tables = f'[[provides.key]]\nname = "{key}"\n{row}\n'
    site.plugin(name, manifest=FUNCTIONALITY, tables=tables, activation=activation or WRAPS.replace("KEY", key))
    plugins.reset_discovery()


def order(*wanted):
    """Some functionalities as they stand, lowest first."""
    return [f.name for f in KEYS.functionalities if f.name in wanted]


@pytest.fixture
def shop():
    """An operator of the process's registry, served by a backend of the tests."""

    class Till(Backend):
        name = "Till"
        device_type = "till"

    with Registrations("shop") as library:
        library.backend(Till())
        op = library.define("shop::sell(Tensor x) -> Tensor")
        library.impl("sell", "Till", lambda x: "sold")
        yield op


def test_the_rows_are_there_from_the_first_look_on(site):
    functionality(site, "counter", 'after = "Autograd"')
    site.plugin("alpha")
    keys = KEYS.universe.runtime_keys
    assert {"Counter", "Alpha", "AutogradAlpha", "AutocastAlpha"} <= set(keys)
    assert keys.index("AutogradAlpha") < keys.index("Counter") < keys.index("Tracer")
    assert {record.state for record in plugins.all_plugins()} == {"discovered"}


def test_a_key_may_be_placed_by_that_of_a_backend_which_is_found_in_the_same_look(site):
    site.plugin("alpha")
    functionality(site, "counter", 'after = "AutocastAlpha"')
    assert KEYS.universe
    assert [record.state for record in plugins.all_plugins()] == ["discovered", "discovered"]
    assert order("AutocastAlpha", "Counter", "Batched") == ["AutocastAlpha", "Counter", "Batched"]


def test_an_anchor_that_does_not_exist_makes_the_plugin_fail_and_no_other(site):
    functionality(site, "counter", 'after = "Autogard"')
    functionality(site, "leaning", 'after = "Counter"')
    functionality(site, "audit", 'after = "Autograd"')
    states = {record.name: record for record in plugins.all_plugins()}
    there = ", ".join(f.name for f in KEYS.functionalities if f.name != "Audit")
    assert {name: record.state for name, record in states.items()} == {
        "audit": "discovered",
        "counter": "failed",
        "leaning": "failed",
    }
    assert states["counter"].reason == (
        "the manifest of dist-counter 0.1 is not accepted\n"
        f"  file          {states['counter'].path}\n"
        f"  provides.key  functionality Counter is placed after Autogard, which does not exist; there are {there}"
    )
    assert states["leaning"].reason.endswith(f"Leaning is placed after Counter, which does not exist; there are {there}")
    assert order("Counter", "Leaning", "Audit") == ["Audit"]
    with pytest.warns(PluginWarning, match="leaning"), pytest.raises(PluginError) as caught:
        plugins.require_functionality("Counter")
    assert str(caught.value).startswith("Counter: the plugin counter has failed\n  why     the manifest of dist-counter")


def test_keys_that_are_placed_by_each_other_make_their_plugins_fail(site):
    functionality(site, "chicken", 'after = "Egg"')
    functionality(site, "egg", 'before = "Chicken"')
    assert KEYS.universe
    reasons = [record.reason.splitlines()[-1] for record in plugins.all_plugins()]
    assert reasons == ["  provides.key  functionalities are placed in a cycle: Chicken, Egg"] * 2
    assert order("Chicken", "Egg") == []


def test_a_place_between_two_that_stand_the_other_way_round_makes_the_plugin_fail(site):
    functionality(site, "counter", 'after = "Tracer"\nbefore = "Dense"')
    assert KEYS.universe
    [record] = plugins.all_plugins()
    assert record.reason.splitlines()[-1] == (
        "  provides.key  functionality Counter cannot stand after Tracer and before Dense: Dense is the lower one"
    )


@pytest.mark.parametrize(
    ("passes", "untracked", "tracked"), [("never", "error", "error"), ("untracked", "sold", "error"), ("always", "sold", "sold")]
)
def test_a_row_without_its_plugin_active_passes_calls_over_or_is_an_error_as_it_says(
    registering, shop, passes, untracked, tracked
):
    functionality(registering, "counter", f'after = "Autograd"\npasses = "{passes}"')
    ks = REGISTRY.backends["Till"].dense | KEYS.bit("Counter")
    for keys, expected in ((ks, untracked), (ks | TRACKED, tracked)):
        thing = Thing(keys)
        if expected == "sold":
            assert shop(thing) == "sold"
            continue
        with pytest.raises(NoKernelError) as caught:
            shop(thing)
        assert str(caught.value).splitlines()[0] == "shop::sell: no kernel for Counter"
        assert str(caught.value).splitlines()[-1] == (
            '  to fix        turnout.plugins.activate("counter"); `turnout table shop::sell` prints the whole table'
        )
    plugins.activate("counter")
    assert shop(Thing(ks)) == shop(Thing(ks | TRACKED)) == "sold"


def test_a_functionality_of_an_installed_package_wraps_every_operator_until_it_is_deactivated(registering, shop):
    import sys

    functionality(registering, "counter", 'after = "Autograd"\npasses = "always"')
    with Registrations("stall") as other, state.include("Counter"):
        late = other.define("stall::give(Tensor x, int n=1) -> Tensor")
        other.impl("give", "CompositeImplicitAutograd", lambda x, n: shop(x))
        thing = Thing(REGISTRY.backends["Till"].keys)
        calls = sys.modules["fake_counter.plugin"].calls
        assert calls == []
        assert late(thing) == "sold"
        assert calls == ["stall::give", "shop::sell"]
        assert turnout.explain(late, thing).chosen.kernel == "wrap"
        plugins.deactivate("counter")
        assert late(thing) == "sold"
        assert len(calls) == 2


def test_an_opt_in_key_takes_part_only_while_it_is_switched_on(registering, shop):
    functionality(registering, "counter", 'after = "Autograd"\nopt_in = true')
    ks = REGISTRY.backends["Till"].dense | KEYS.bit("Counter")
    assert shop(Thing(ks)) == "sold"
    switched = ks | KEYS.switch_bit("Counter")
    assert "no kernel for Counter" in refused(NoKernelError, shop, Thing(switched))


def test_keys_for_each_backend_that_count_as_backend_keys_are_served_by_composite_kernels(registering, shop):
    functionality(registering, "sparse", 'prefix = "Sparse"\nafter = "Dense"\nbackend_key = true')
    functionality(registering, "profile", 'prefix = "Profile"\nafter = "Autograd"')
    aliases = KEYS.universe.aliases
    assert "SparseTill" in aliases["CompositeExplicitAutograd"]
    assert "ProfileTill" not in aliases["CompositeExplicitAutograd"]
    with Registrations("shop") as more:
        more.impl("sell", "CompositeExplicitAutograd", lambda x: "by the composite")
        till = KEYS.backend_bit("Till")
        assert shop(Thing(till | KEYS.bit("Sparse"))) == "by the composite"
        assert "no kernel for ProfileTill" in refused(NoKernelError, shop, Thing(till | KEYS.bit("Profile")))


def test_backends_stand_by_rank_and_name_with_what_their_rows_say(site):
    for name, row in (
        ("zeta", 'rank = "lowest"'),
        ("alpha", 'rank = "highest"\ndataless = true'),
        ("mid", 'functional_only = true\nadopts = ["numbers"]'),
    ):
        site.plugin(name)
        path = site.folder / f"fake_{name}/plugin.toml"
        path.write_text(path.read_text().replace(f'device = "{name}"', f'device = "{name}"\n{row}'))
    site.plugin("beta")
    assert KEYS.universe
    assert KEYS.backends == ("Zeta", "Beta", "Mid", "Alpha")
    assert KEYS.dataless_backends == ("Alpha",)
    assert {row.device: row.adopts for row in KEYS.backend_rows.values()} == {
        "zeta": (),
        "beta": (),
        "mid": ("numbers",),
        "alpha": (),
    }
    assert KEYS.universe.aliases["CompositeExplicitAutogradNonFunctional"] == {"Zeta", "Beta", "Alpha"}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ('rank = "top"', "provides.backend.rank: expected one of lowest, highest, got 'top'"),
        ('dataless = "yes"', "provides.backend.dataless: expected true or false, got 'yes'"),
    ],
)
def test_a_property_of_a_row_that_is_not_one_is_refused(site, row, text):
    site.plugin("alpha")
    path = site.folder / "fake_alpha/plugin.toml"
    path.write_text(path.read_text().replace('device = "alpha"', f'device = "alpha"\n{row}'))
    [record] = plugins.all_plugins()
    assert record.reason.endswith(text)


def test_the_tables_do_not_depend_on_the_order_of_activation(registering, shop):
    functionality(registering, "counter", 'after = "Autograd"\npasses = "always"')
    functionality(registering, "audit", 'after = "Autograd"\npasses = "always"')
    for name in ("alpha", "beta"):
        registering.plugin(name, activation=SELLER)
    plugins.reset_discovery()
    universe = KEYS.universe
    seen = []
    for names in itertools.permutations(("counter", "audit", "alpha", "beta")):
        for name in names:
            plugins.activate(name)
        seen.append(
            {key: (entry.reason, entry.key, entry.kernel.name, entry.kernel.origin) for key, entry in shop.table().items()}
        )
        assert shop(Thing(REGISTRY.backends["Alpha"].keys)) == "sold on alpha"
        for name in names:
            plugins.deactivate(name)
    assert KEYS.universe is universe
    assert all(table == seen[0] for table in seen)
    assert {key for key in seen[0] if key in ("Alpha", "Beta", "Till", "Audit", "Counter")} == {
        "Alpha", "Beta", "Till", "Audit", "Counter",
    }  # fmt: skip


def test_a_pickled_operator_activates_the_plugin_of_its_namespace(registering):
    import pickle

    text = (
        "from turnout.plugins import hookimpl\n\n@hookimpl\ndef turnout_activate(library, options):\n"
        "    library.define('alpha::go(Tensor x) -> Tensor')\n"
    )
    registering.plugin("alpha", manifest=LIBRARY, activation=text)
    data = pickle.dumps(turnout.ops.alpha.go.default)
    plugins.deactivate("alpha")
    assert REGISTRY.get("alpha::go") is None
    assert pickle.loads(data) is turnout.ops.alpha.go.default


# ---- the default device


def test_the_default_device_is_that_of_the_installed_backend_of_lowest_rank(registering):
    two = 'device_type = "{name}"\n    indexed = True\n    device_count = lambda self: 2'
    for name in ("beta", "alpha"):
        registering.plugin(name, activation=SELLER.replace('device_type = "{name}"', two))
        path = registering.folder / f"fake_{name}/plugin.toml"
        path.write_text(path.read_text().replace(f'device = "{name}"', f'device = "{name}"\nrank = "lowest"'))
    assert default_device() is device("alpha")
    config.set(default_device="beta:1")
    assert default_device() is device("beta", 1)
    config.unset("default_device")
    assert default_device() is device("alpha")
    config.set(default_device="beta:2")
    assert refused(DeviceError, default_device) == (
        "device 'beta:2' (default_device, turnout.config.set): beta:2 does not exist: beta has 2 device(s)"
    )


def test_without_an_installed_backend_the_default_is_the_device_of_a_known_package(site, monkeypatch):
    row = {"distribution": "dist-omega", "devices": ["omega"], "backends": ["Omega"], "functionalities": []}
    row |= {"namespaces": [], "public": [], "lowest_device": "omega"}
    monkeypatch.setattr(providers, "data", lambda: {"omega": row})
    assert default_device() is device("omega")
    assert refused(PluginError, lambda: default_device().backend.device_count()) == (
        "device 'omega': no installed plugin provides it\n  to fix  pip install dist-omega"
    )


def test_without_any_backend_there_is_no_default_device(site, monkeypatch):
    monkeypatch.setattr(providers, "data", dict)
    assert refused(DeviceError, default_device) == (
        "no backend is installed whose device is the default one; say device=..., or set default_device"
    )


def test_a_factory_without_a_device_asks_for_the_default_one(registering, monkeypatch):
    monkeypatch.setattr(providers, "data", dict)
    with Registrations("shop") as library:
        op = library.define("shop::make(int n, *, Device? device=None) -> Tensor")
        assert "no backend is installed whose device is the default one" in refused(DeviceError, op, 3)
        registering.plugin("alpha", activation=SELLER)
        path = registering.folder / "fake_alpha/plugin.toml"
        path.write_text(path.read_text().replace('device = "alpha"', 'device = "alpha"\nrank = "lowest"'))
        plugins.reset_discovery()
        library.impl("make", "Alpha", lambda n, *, device: (n, str(device)))
        assert op(3) == (3, "alpha")
