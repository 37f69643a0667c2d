"""Optimisers, learning rates and averages take the way that PyTorch's take, for every row of PyTorch's `optim_db`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import turnout

INFOS = {info.name: info for info in optim_db if info.name != "SparseAdam"}
CASES = [
    pytest.param(name, kwargs | flag, id="-".join([name, made.desc or "default", *flag]))
    for name, info in INFOS.items()
    for made in info.optim_inputs_func("cpu")
    for kwargs in [made.kwargs]
    for flag in [{}, *({flag: True} for flag in info.supported_impls)]
    if not (name.startswith("Adam") and "foreach" in flag and isinstance(kwargs.get("lr"), torch.Tensor))
]
# Muon's iteration runs in bfloat16 in both, with the same bits. Where the learning rate is a tensor of float32, PyTorch computes
# the decay's factor in float32; Turnout reads the number.
TOLERANCE = {"LBFGS": 1e-6, "Muon with a tensor": 1e-6}


@pytest.fixture(autouse=True)
def _numbers_in_float64() -> Iterator[None]:
    """Counts of steps are tensors of the default dtype, and PyTorch computes with them where a step is differentiated."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    turnout.set_default_dtype(turnout.float64)
    yield
    torch.set_default_dtype(torch.float32)
    turnout.set_default_dtype(turnout.float32)


def ours(value: Any) -> Any:
    """The same value with turnout's tensors."""
    if isinstance(value, torch.Tensor):
        return turnout.tensor(value.tolist(), dtype=getattr(turnout, str(value.dtype)[6:]))
    if isinstance(value, dict):
        return {key: ours(v) for key, v in value.items()}
    return type(value)(map(ours, value)) if isinstance(value, (list, tuple)) else value


class Way:
    """A small problem, on which an optimiser takes steps."""

    def __init__(self, library: Any, name: str, kwargs: dict[str, Any], groups: bool = False, kind: str = "float64") -> None:
        random = np.random.default_rng(0)
        shapes = [(4, 3)] if name in ("LBFGS", "Muon") else [(4, 3), (3,), (2, 3, 2), ()]
        dtype = getattr(library, kind)
        numbers = [[random.standard_normal(shape) for shape in shapes] for _ in range(2)]
        if dtype.is_complex:
            numbers = [[n + 1j * random.standard_normal(n.shape) for n in each] for each in numbers]
        self.parameters, self.targets = ([library.tensor(n.tolist(), dtype=dtype) for n in each] for each in numbers)
        self.library, self.by_hand = library, not (groups or name == "LBFGS" or dtype.is_complex)
        for p in self.parameters:
            p.requires_grad_(not self.by_hand)
        first, *rest = self.parameters
        params: Any = self.parameters
        if groups:
            params = [{"params": [first], "lr": 0.02}, *([{"params": rest}] if rest else [])]
        self.optimizer = getattr(library.optim, name)(params, **kwargs)

    def loss(self) -> Any:
        self.optimizer.zero_grad()
        far = [(p - t) * (p - t).conj() if p.is_complex() else (p - t) ** 2 + (p * t).sin() for p, t in self.pairs()]
        loss = sum((f.real if f.is_complex() else f).sum() for f in far)
        loss.backward()
        return loss

    def pairs(self) -> Any:
        return zip(self.parameters, self.targets, strict=True)

    def step(self) -> list[np.ndarray]:
        if self.by_hand:  # quicker
            for p, t in self.pairs():
                there, to = p.detach().numpy(), t.numpy()
                p.grad = self.library.from_numpy(np.asarray(2 * (there - to) + to * np.cos(there * to)))
            self.optimizer.step()
        else:
            self.optimizer.step(self.loss)
        return [np.array(p.tolist()) for p in self.parameters]


def compare(mine: Way, theirs: Way, steps: int, tolerance: float) -> None:
    for step in range(steps):
        for found, wanted in zip(mine.step(), theirs.step(), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * 1e-2, err_msg=f"step {step}")


@pytest.mark.parametrize(("name", "kwargs"), CASES)
def test_fifty_steps_are_those_of_pytorch(name: str, kwargs: dict[str, Any]) -> None:
    mine, theirs = Way(turnout, name, ours(kwargs)), Way(torch, name, copy.deepcopy(kwargs))
    given = f"{name} with a tensor" if isinstance(kwargs.get("lr"), torch.Tensor) else name
    compare(mine, theirs, 50, TOLERANCE.get(given, TOLERANCE.get(name, 1e-10)))
    state, wanted = mine.optimizer.state_dict(), theirs.optimizer.state_dict()
    assert [sorted(s) for s in state["state"].values()] == [sorted(s) for s in wanted["state"].values()]
    assert [sorted(g) for g in state["param_groups"]] == [sorted(g) for g in wanted["param_groups"]]


@pytest.mark.parametrize("name", [name for name, info in INFOS.items() if info.supports_param_groups])
def test_groups_and_a_state_of_pytorch_go_on_as_there(name: str) -> None:
    kwargs = {"momentum": 0.9} if name == "SGD" else {}
    mine, theirs = Way(turnout, name, kwargs, groups=True), Way(torch, name, kwargs, groups=True)
    compare(mine, theirs, 5, TOLERANCE.get(name, 1e-10))
    assert mine.optimizer.param_groups[0]["lr"] == 0.02
    for _ in range(5):
        theirs.step()
    mine.optimizer.load_state_dict(ours(theirs.optimizer.state_dict()))
    for p, other in zip(mine.parameters, theirs.parameters, strict=True):
        p.data = ours(other.detach())
    compare(mine, theirs, 5, TOLERANCE.get(name, 1e-10))
    again = Way(turnout, name, kwargs, groups=True)
    for p, other in zip(again.parameters, mine.parameters, strict=True):
        p.data = other.detach().clone()
    again.optimizer.load_state_dict(copy.deepcopy(mine.optimizer.state_dict()))
    compare(again, mine, 5, 1e-15)


@pytest.mark.parametrize("name", [name for name, info in INFOS.items() if info.supports_complex])
def test_complex_parameters_take_the_same_way(name: str) -> None:
    for flag in ({}, {"foreach": True}) if "foreach" in INFOS[name].supported_impls else ({},):
        mine, theirs = (Way(library, name, dict(flag), kind="complex128") for library in (turnout, torch))
        compare(mine, theirs, 10, TOLERANCE.get(name, 1e-10))


@pytest.mark.parametrize("name", INFOS)
def test_wrong_arguments_raise_what_they_raise_in_pytorch(name: str) -> None:
    for wrong in INFOS[name].optim_error_inputs_func("cpu", torch.float64):
        made = wrong.optimizer_error_input
        params = [torch.rand(2, 2)] if made.params is None else made.params
        mine = turnout.rand(2, 2) if isinstance(params, torch.Tensor) else _same(params)
        if wrong.error_on is OptimizerErrorEnum.STEP_ERROR:
            optimizer = getattr(turnout.optim, name)(mine, **ours(made.kwargs))
            for p, other in zip(mine, params, strict=True):
                p.grad = ours(other.grad)
            with pytest.raises(wrong.error_type):
                optimizer.step()
        elif wrong.error_type is UserWarning:
            with pytest.warns(UserWarning, match="twice in a group"):
                getattr(turnout.optim, name)(mine, **ours(made.kwargs))
        else:
            with pytest.raises(wrong.error_type):
                getattr(turnout.optim, name)(mine, **ours(made.kwargs))


def _same(params: Any) -> Any:
    """The parameters as turnout's, the same where they are the same."""
    known: dict[int, Any] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return known.setdefault(id(value), ours(value.detach()))
        if isinstance(value, dict):
            return {k: convert(v) for k, v in value.items()}
        return type(value)(map(convert, value)) if isinstance(value, (list, tuple)) else value

    return convert(list(params))


ONE_STEP = ("Adamax", "Rprop", "SGD")  # PyTorch's second step changes what the first one saved


@pytest.mark.parametrize("name", [name for name, info in INFOS.items() if "differentiable" in info.supported_impls])
def test_a_step_has_the_gradients_of_pytorch(name: str) -> None:
    found = []
    for library in (turnout, torch):
        start = library.tensor([0.5, -1.0, 2.0], requires_grad=True)
        gradient = library.tensor([0.3, 0.1, -0.2], requires_grad=True)
        kwargs = {"momentum": 0.9} if name == "RMSprop" else {}
        lr = library.tensor(0.1, requires_grad=True) if name == "SGD" else 0.1
        parameter = start.clone()
        optimizer = getattr(library.optim, name)([parameter], lr=lr, differentiable=True, **kwargs)
        for factor in (1.0,) if name in ONE_STEP else (1.0, 2.0):
            parameter.grad = gradient * factor
            optimizer.step()
        leaves = [start, gradient, *([lr] if name == "SGD" else [])]
        found.append([g.tolist() for g in library.autograd.grad((parameter**2).sum(), leaves)])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


# fmt: off
SCHEDULES: dict[str, Any] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.4, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.4, 0.8, 4),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 3, 5, mode="triangular2"),
    "CyclicLR exp": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.9),
    "CyclicLR own": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, scale_fn=lambda x: 0.5, cycle_momentum=False),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.1, 0.3], total_steps=20),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(o, 0.1, None, 4, 5, three_phase=True, anneal_strategy="linear"),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=1, cooldown=1, min_lr=[0.0, 0.03], threshold=0.1),
    "ReduceLROnPlateau max": lambda s, o: s.ReduceLROnPlateau(o, "max", 0.5, 0, threshold_mode="abs"),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.CosineAnnealingLR(o, 4), s.ExponentialLR(o, 0.5)], [4, 9]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.LinearLR(o, 0.5, 1.0, 4), s.ExponentialLR(o, 0.9)]),
    "SWALR": lambda s, o: s.SWALR(o, [0.5, 0.05], 6),
    "SWALR linear": lambda s, o: s.SWALR(o, 0.05, 4, "linear"),
}
# fmt: on
METRICS = [5.0, 4.0, 4.0, 3.9, 3.9, 3.9, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5]


def _rates(library: Any, name: str, as_tensor: bool, stop: int | None = None) -> list[Any]:
    parameters = [library.zeros(2, requires_grad=True) for _ in range(2)]
    lr = library.tensor(0.1) if as_tensor else 0.1
    optimizer = library.optim.SGD([{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.2}], lr=lr, momentum=0.9)
    make = SCHEDULES[name]
    schedules = library.optim.swa_utils if name.startswith("SWALR") else library.optim.lr_scheduler
    scheduler = make(schedules, optimizer)
    made = []
    for place, metric in enumerate(METRICS):
        if place == stop:  # another scheduler goes on
            kept, state = scheduler.state_dict(), copy.deepcopy(optimizer.state_dict())
            scheduler = make(schedules, optimizer)
            scheduler.load_state_dict(kept)
            optimizer.load_state_dict(state)
        made.append([(float(g["lr"]), g["momentum"]) for g in optimizer.param_groups] + [*map(float, scheduler.get_last_lr())])
        optimizer.step()
        scheduler.step(*([metric] if name.startswith("Reduce") else []))
    return made


WITH_TENSORS = [name for name in SCHEDULES if not name.startswith(("CyclicLR", "OneCycleLR"))]


@pytest.mark.parametrize(("name", "as_tensor"), [*((n, False) for n in SCHEDULES), *((n, True) for n in WITH_TENSORS)])
def test_a_schedule_sets_what_it_sets_in_pytorch(name: str, as_tensor: bool) -> None:
    wanted = _rates(torch, name, as_tensor)
    for found in (_rates(turnout, name, as_tensor), _rates(turnout, name, as_tensor, stop=6)):
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.hstack(mine), np.hstack(theirs), rtol=1e-12)
