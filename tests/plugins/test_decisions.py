"""Every plugin with a table of operators has decided about each functional operator: a row, a composite, or a line with a reason.

What a plugin leaves to a fallback, to the host or to the library below stands in decisions.txt. (Of the array API's namespace,
`test_array_api.py` compares the names with the standard's.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pretended_cuda import pretended

import turnout
from turnout import plugins
from turnout.operators import Operator
from turnout.registry import REGISTRY
from turnout_autocast import rules
from turnout_cuda.plugin import own_rows

COMPOSED = ("math kernel", "default backend kernel")


def listed() -> dict[str, set[str]]:
    """Plugin -> the operators that it leaves to others. Each line stands under a reason, each name once."""
    found: dict[str, set[str]] = {}
    plugin, reason = "", ""
    for line in (Path(__file__).parent / "decisions.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            plugin, reason = line.strip("[]"), ""
            found[plugin] = set()
        elif line.startswith("#"):
            reason = line
        elif line:
            names = line.split()
            assert reason
            assert not found[plugin] & set(names)
            found[plugin] |= set(names)
    return found


def operators() -> list[Operator]:
    turnout.ones(1)
    every = REGISTRY.operators.values()
    return [op for op in every if op.namespace == "aten" and op.is_defined and op.schema.kind == "functional"]


def reason(op: Operator, key: str) -> str:
    entry = op.entry(key)
    return "" if entry is None else entry.reason


def without_a_row_on(key: str, names: Iterable[str]) -> set[str]:
    """The operators that are no composites on a backend, and that are not among `names`."""
    return {op.name for op in operators() if reason(op, key) not in COMPOSED} - set(names)


def to_the_fallback(key: str) -> set[str]:
    return {op.name for op in operators() if reason(op, key) == "backend fallback"}


def on_cuda() -> set[str]:
    """The operators of which cuda has no row of its own: its table is that of the arrays, with raw kernels over it."""
    with pretended() as backend:
        return without_a_row_on("CPU", [row.partition(".")[0] for row in own_rows(backend)])


def names_from(plugin: str, key: str) -> set[str]:
    """The operators whose kernel at a backend's key is a plugin's."""
    every = [op for op in REGISTRY.operators.values() if op.namespace == "aten" and op.is_defined and reason(op, key) == "kernel"]
    libraries = [(op.name, op.entry(key).kernel.library) for op in every]  # type: ignore[union-attr]  # it has a reason
    return {name for name, library in libraries if library is not None and library.name == plugin}


def on_no_list() -> set[str]:
    """The operators that are no composites and that no list of autocast names."""
    leaves = [op for op in operators() if reason(op, "CPU") not in COMPOSED]
    named = {op.name for op in leaves for device in ("cpu", "cuda") if rules.policy_of(device, op.qualified_name[6:])}
    return {op.name for op in leaves} - named


# What a plugin provides -> the operators that it leaves to others, where it is not what the fallback of its backend runs.
ASKED: dict[str, Callable[[], set[str]]] = {"backend:CUDA": on_cuda, "functionality:Autocast": on_no_list}

# Functionalities with a rule for each operator -> the file in tests/conformance, and the test that names those without one.
ELSEWHERE = {
    "functionality:Autograd": ("test_gradients", "test_nobody_left_an_operator_undecided"),
    "functionality:Batched": ("test_vmap", "test_no_standard_operator_runs_as_a_loop"),
    "functionality:Forward": ("test_tangents", "test_every_operator_with_a_formula_has_a_rule_or_no_derivatives_at_all"),
}
# Functionalities that do with each operator what follows from its schema or its kernels, and so have no rules to decide about.
BY_SCHEMA = {
    f"functionality:{name}"
    for name in ("ADInplaceOrView", "BatchedMode", "Fake", "Functionalize", "Inference", "SavedTensors", "Tracer")
}

PROVIDED = {record.name: record.provides for record in plugins.all_plugins()}  # of every plugin, from the manifests
BACKENDS = {each.partition(":")[2]: name for name, all_ in PROVIDED.items() for each in all_ if each.startswith("backend:")}


def left_by(plugin: str) -> set[str]:
    """The operators that a plugin leaves to others: a backend to its fallback, a plugin with rows at another's key to those."""
    found: set[str] = set()
    for each in PROVIDED[plugin]:
        kind, _, key = each.partition(":")
        if each in ASKED:
            found |= ASKED[each]()
        elif kind == "backend":
            found |= to_the_fallback(key)
    for key, owner in BACKENDS.items():
        if owner != plugin and (names := names_from(plugin, key)):
            found |= without_a_row_on(key, names)
    return found


@pytest.mark.parametrize("plugin", PROVIDED)
def test_no_plugin_is_undecided_about_an_operator(plugin: str, need_device: Callable[[str], None]) -> None:
    turnout.ones(1)
    for each in PROVIDED[plugin]:
        kind, _, name = each.partition(":")
        if kind == "device" and plugin != "cuda":
            need_device(name)
            turnout.ones(1, device=name)
    left, said = left_by(plugin), listed().get(plugin, set())
    assert sorted(left - said) == [], f"{plugin} has not decided about these: write a row, or a line of decisions.txt"
    assert sorted(said - left) == [], f"decisions.txt says that {plugin} leaves these to others, and it does not"


def test_every_functionality_of_a_plugin_is_asked_here_or_elsewhere() -> None:
    every = {each for all_ in PROVIDED.values() for each in all_ if each.startswith("functionality:")}
    placed = [*(each for each in ASKED if each in every), *ELSEWHERE, *BY_SCHEMA]
    assert sorted(every) == sorted(placed), "say of a new functionality who names the operators about which it has not decided"
    for file, name in ELSEWHERE.values():
        assert f"def {name}(" in (Path(__file__).parents[1] / "conformance" / f"{file}.py").read_text("utf-8")
    assert listed().keys() <= PROVIDED.keys()


def test_an_operator_that_a_plugin_has_no_row_for_is_named() -> None:
    turnout.ones(1)
    with turnout.library.Library("aten", "FRAGMENT") as library:
        library.define("nobody_decided(Tensor self) -> Tensor")
        library.impl("nobody_decided", lambda x: x, "CPU")
        for plugin in ("autocast", "kernels", "cuda"):
            assert "nobody_decided" in left_by(plugin)
    assert "nobody_decided" not in left_by("kernels")
