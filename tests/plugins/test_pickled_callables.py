"""What is called can be pickled and copied: methods, operators, namespaces and public functions, by hand and for a worker."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pytest

import turnout
from outcomes import refused

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "pickle of protocol 2": lambda value: pickle.loads(pickle.dumps(value, 2)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
MODULES = (
    "turnout", "turnout.nn", "turnout.nn.functional", "turnout.linalg", "turnout.fft", "turnout.special", "turnout.func",
    "turnout.signal.windows", "turnout.masked", "turnout.return_types", "turnout.array_api", "turnout.autograd",
)  # fmt: skip


def functions_of(module: ModuleType) -> dict[str, FunctionType]:
    """The public functions of a module by name."""
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {name: each for name, each in found.items() if isinstance(each, FunctionType)}


@pytest.mark.parametrize("way", WAYS)
def test_every_method_is_found_again_by_its_name_unbound_and_bound(way: str) -> None:
    x = turnout.tensor([1.0, 2.0])
    names = [name for name in dir(turnout.Tensor) if isinstance(getattr(turnout.Tensor, name), FunctionType)]
    assert len(names) > 550
    for name in names:
        method = getattr(turnout.Tensor, name)
        assert WAYS[way](method) is method, name
        bound = getattr(x, name)
        again = WAYS[way](bound)
        assert isinstance(again, MethodType), name
        assert again.__func__ is bound.__func__, name
        assert again.__self__.tolist() == [1.0, 2.0], name


def test_a_method_says_its_own_name() -> None:
    for name in ("sin", "__abs__", "__getitem__", "__array__", "tolist", "flatten", "new_tensor", "transpose"):
        method = getattr(turnout.Tensor, name)
        assert (method.__module__, method.__qualname__, method.__name__) == ("turnout", f"Tensor.{name}", name)


@pytest.mark.parametrize("way", WAYS)
def test_every_public_function_is_found_again(way: str) -> None:
    import importlib

    count = 0
    for name in MODULES:
        for function in functions_of(importlib.import_module(name)).values():
            assert WAYS[way](function) is function, function
            count += 1
    assert count > 800


@pytest.mark.parametrize("way", WAYS)
def test_operators_packets_and_namespaces_are_found_again(way: str) -> None:
    ops = turnout.ops
    for each in (ops, ops.aten.sin, ops.aten.sin.default, ops.aten.add, ops.aten.add.Tensor, ops.aten.max):
        assert WAYS[way](each) is each
    assert repr(WAYS[way](ops.aten)) == repr(ops.aten)
    assert WAYS[way](ops.aten).sin is ops.aten.sin


def test_an_operator_that_is_not_defined_where_it_is_read_is_named() -> None:
    with turnout.library.Library("not_for_long", "DEF") as library:
        library.define("gone(Tensor x) -> Tensor")
        texts = [pickle.dumps(turnout.ops.not_for_long.gone), pickle.dumps(turnout.ops.not_for_long.gone.default)]
    for text in texts:
        assert "not_for_long::gone" in refused(turnout.errors.UnknownOperatorError, pickle.loads, text)


POOL = """
import multiprocessing
import sys

import turnout as T

if __name__ == "__main__":
    x = T.tensor([1.0, 4.0])
    calls = [
        (x.sqrt, ()), (x.add, (1,)), (x.__getitem__, (0,)), (x.tolist, ()), (T.Tensor.sqrt, (x,)), (T.ops.aten.sqrt, (x,)),
        (T.ops.aten.sqrt.default, (x,)), (T.ops.aten.add.Tensor, (x, x)), (T.sqrt, (x,)), (T.nn.functional.relu, (-x,)),
    ]
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        pending = [pool.apply_async(function, args) for function, args in calls]
        for each in pending:
            found = each.get(60)
            print(found.tolist() if isinstance(found, T.Tensor) else found)
"""


@pytest.mark.parametrize(
    "method", ["spawn", pytest.param("fork", marks=pytest.mark.skipif(os.name == "nt", reason="no fork there"))]
)
def test_workers_of_a_pool_call_methods_operators_and_functions(tmp_path: Any, method: str) -> None:
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    done = subprocess.run([sys.executable, str(program), method], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    roots, plus = "[1.0, 2.0]", "[2.0, 5.0]"
    expected = [roots, plus, "1.0", "[1.0, 4.0]", roots, roots, roots, "[2.0, 8.0]", roots, "[0.0, 0.0]"]
    assert done.stdout.splitlines() == expected
