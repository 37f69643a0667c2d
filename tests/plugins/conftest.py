"""What tests of several plugins share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import instruction_sets
import pytest

import turnout
from turnout import plugins


@pytest.fixture(autouse=True, scope="module")
def few_objects() -> None:
    """A collection by a test looks at what its module made alone: all that was there stays, and would take a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def x() -> turnout.Tensor:
    """A leaf of three numbers."""
    return turnout.tensor([1.0, 2.0, 3.0], dtype=turnout.float64, requires_grad=True)


@pytest.fixture
def programs_of_all_sizes() -> Iterator[None]:
    """The engine `xla` compiles small graphs on cpu, too."""
    turnout.config.set({"plugin.jax.compile_from": 0})
    yield
    turnout.config.unset("plugin.jax.compile_from")


@pytest.fixture(scope="module")
def without_kernels() -> Iterator[None]:
    """turnout-kernels is not active, so that the rows of turnout-cpu serve."""
    turnout.ones(1)  # activates the plugins of cpu
    (active,) = (p.state == "active" for p in plugins.all_plugins() if p.name == "kernels")
    if active:
        plugins.deactivate("kernels")
    yield
    if active:
        plugins.activate("kernels")


@pytest.fixture
def compiled_path() -> None:
    """The compiled call path is there and switched on."""
    turnout.ones(1) + 1
    if [p.state for p in plugins.all_plugins() if p.name == "speed"] != ["active"] or not turnout.config.get("speed"):
        pytest.skip("the compiled call path is switched off")


@pytest.fixture(params=instruction_sets.ALL)
def instructions(request: pytest.FixtureRequest) -> Any:
    """Each set of instructions that compiled kernels have and the processor, too."""
    from turnout_kernels import native

    try:
        native.choose_instructions(request.param)
    except ValueError:
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    native.choose_instructions("")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`served(module)`: the names of the compiled kernels that a module of turnout-kernels calls from here on."""

    def watch(module: Any, function: str = "run") -> list[str]:
        names: list[str] = []
        called = getattr(module, function)

        def call(name: str, *args: Any, **options: Any) -> Any:
            made = called(name, *args, **options)
            if made is not NotImplemented:
                names.append(name)
            return made

        monkeypatch.setattr(module, function, call)
        return names

    return watch


@pytest.fixture
def opencl(need_device: Callable[[str], None]) -> None:
    """A device of OpenCL, without which the test is skipped or fails."""
    need_device("opencl")
