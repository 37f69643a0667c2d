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
from turnout.operators import Operator
from turnout.registry import REGISTRY
from turnout_autocast import rules
from turnout_cuda.plugin import own_rows
from turnout_kernels.table import kernels

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


def without_a_row_on(key: str, rows: Callable[[], Iterable[str]] = tuple) -> set[str]:
    """The operators that are no composites on a backend, and of which none of `rows` is."""
    names = {row.partition(".")[0] for row in rows()}
    return {op.name for op in operators() if reason(op, key) not in COMPOSED} - names


def to_the_fallback(key: str) -> set[str]:
    return {op.name for op in operators() if reason(op, key) == "backend fallback"}


def raw() -> set[str]:
    """The operators of which cuda has a row of its own."""
    with pretended() as backend:
        return set(own_rows(backend))


def on_no_list() -> set[str]:
    """The operators that are no composites and that no list of autocast names."""
    leaves = [op for op in operators() if reason(op, "CPU") not in COMPOSED]
    named = {op.name for op in leaves for device in ("cpu", "cuda") if rules.policy_of(device, op.qualified_name[6:])}
    return {op.name for op in leaves} - named


LEFT = {
    "autocast": on_no_list,
    "cuda": lambda: without_a_row_on("CPU", raw),
    "dask": lambda: to_the_fallback("Dask"),
    "jax": lambda: to_the_fallback("Jax"),
    "kernels": lambda: without_a_row_on("CPU", kernels),
    "opencl": lambda: to_the_fallback("OpenCL"),
}


@pytest.mark.parametrize("plugin", LEFT)
def test_no_plugin_is_undecided_about_an_operator(plugin: str, need_device: Callable[[str], None]) -> None:
    if plugin in ("dask", "jax", "opencl"):
        need_device(plugin)
        turnout.ones(1, device=plugin)
    left, said = LEFT[plugin](), listed()[plugin]
    assert sorted(left - said) == [], f"{plugin} has not decided about these: write a row, or a line of decisions.txt"
    assert sorted(said - left) == [], f"decisions.txt says that {plugin} leaves these to others, and it does not"
