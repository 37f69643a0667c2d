"""Members and states of modules: what PyTorch refuses is refused with its builtin class, and what it gives is equal.

The states are drawn: of a module's own, names are left out, added and renamed, and tensors get other shapes and dtypes.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

MODULES = {
    "linear": "nn.Linear(3, 2)",
    "no bias": "nn.Linear(3, 2, bias=False)",
    "norm": "nn.BatchNorm1d(3)",
    "plain norm": "nn.BatchNorm1d(3, affine=False, track_running_stats=False)",
    "nested": "nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.BatchNorm1d(2), nn.PReLU()))",
    "list": "nn.ModuleList([nn.Linear(1, 1), nn.Identity()])",
    "dict": "nn.ModuleDict({'a': nn.Linear(1, 1)})",
    "lstm": "nn.LSTM(2, 2)",
}
CALLS = """
m.add_module({name}, nn.Tanh())
m.add_module({name}, None)
m.add_module('new', 3)
m.register_module({name}, nn.Tanh())
m.register_buffer({name}, t.ones(2))
m.register_buffer({name}, None)
m.register_buffer('new', 3)
m.register_parameter({name}, nn.Parameter(t.ones(2)))
m.register_parameter({name}, None)
m.register_parameter('new', t.ones(2))
m.get_parameter({name})
m.get_buffer({name})
m.get_submodule({name})
m.train({name})
m.train(1)
m.train(None)
m.load_state_dict({name})
nn.ModuleDict({{{name}: nn.Tanh()}})
nn.ParameterDict({{{name}: nn.Parameter(t.ones(1))}})
nn.ModuleList([{name}])
len(nn.Sequential(m, nn.Tanh()) * 3)
3 * nn.Sequential(m, nn.Tanh())
nn.Sequential(nn.Tanh()) * 0
nn.Sequential(nn.Tanh()) * {name}
""".strip().splitlines()
# PyTorch's own code fails on a name that is not a str; a `ParameterDict` of PyTorch loses `training` to a parameter of this name.
OTHERWISE = {f"m.get_{kind}({name})" for kind in ("parameter", "buffer", "submodule") for name in ("3", "None")}
OTHERWISE.add("nn.ParameterDict({'training': nn.Parameter(t.ones(1))})")
NAMES = ("'a'", "'a.b'", "''", "'weight'", "'bias'", "'forward'", "'training'", "'keys'", "3", "None", "'0'", "'running_mean'")
BUILTINS = (NotImplementedError, IndexError, KeyError, AttributeError, TypeError, ValueError, RuntimeError)


def ended(library: Any, module: str, call: str) -> Any:
    """How a call ends: the builtin class that PyTorch raises, or the text of what is returned, and the names in the state."""
    names: dict[str, Any] = {"t": library, "nn": library.nn}
    m = names["m"] = eval(module, names)
    try:
        found = eval(call, names)
    except Exception as error:  # noqa: BLE001 - the class is compared
        return error
    return type(found).__name__, repr(found) if not isinstance(found, library.Tensor) else found.tolist(), list(m.state_dict())


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_calls_with_names_end_as_in_torch(module: str) -> None:
    found = []
    for row in CALLS:
        for name in NAMES if "{name}" in row else ("",):
            call = row.format(name=name)
            if call in OTHERWISE:
                continue
            theirs, mine = ended(torch, module, call), ended(turnout, module, call)
            if isinstance(theirs, Exception):
                alike = isinstance(mine, next(each for each in BUILTINS if isinstance(theirs, each)))
            else:
                alike = (
                    not isinstance(mine, Exception)
                    and mine[0] == ("Tensor" if theirs[0] == "Parameter" else theirs[0])
                    and mine[2] == theirs[2]
                )
            found += [] if alike else [f"{call}: {mine!r}, PyTorch: {theirs!r}"]
    assert not found, "\n".join([module, *found])


def drawn(library: Any, module: Any, seed: int) -> dict[str, Any]:
    """A state of a module in which some entries do not fit."""
    rng = random.Random(seed)
    state: dict[str, Any] = {}
    for name, tensor in module.state_dict().items():
        chance = rng.random()
        if chance < 0.15:
            continue
        if chance < 0.25:
            state[name + "x"] = tensor.clone()
        elif chance < 0.35:
            state["0." + name] = tensor.clone()
        elif chance < 0.45:
            state[name] = library.ones(5)
        elif chance < 0.55:
            state[name] = library.full(tuple(tensor.shape), 3.0, dtype=library.float64)
        elif chance < 0.6:
            state[name] = 1.5
        else:
            state[name] = library.full_like(tensor, 2)
    return state


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_states_are_loaded_as_in_torch(module: str) -> None:
    for seed in range(60):
        rng = random.Random(f"how {seed}")
        how = {"strict": rng.random() < 0.3, "assign": rng.random() < 0.3}
        ends = []
        for library in (torch, turnout):
            m = eval(module, {"nn": library.nn})
            for tensor in m.state_dict().values():
                tensor.fill_(1)
            told: list[Any] = []
            m.register_load_state_dict_post_hook(lambda _, keys, told=told: told.append((list(keys[0]), list(keys[1]))))
            try:
                missing, unexpected = m.load_state_dict(drawn(library, m, seed), **how)
                end: Any = (missing, unexpected)
            except RuntimeError:
                end = "RuntimeError"
            ends.append((end, told, [(k, str(v.dtype).split(".")[-1], v.tolist()) for k, v in m.state_dict().items()]))
        assert ends[1] == ends[0], f"{module}, seed {seed}, {how}"
