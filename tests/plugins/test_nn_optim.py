"""Optimisers, learning rates, data loaders and files of weights: what PyTorch's test data does not ask."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sys
import warnings
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from turnout.utils import data

import turnout
from outcomes import refused
from turnout.errors import ArgumentError, CallError, FileFormatError
from turnout_nn.data.workers import WorkerError
from turnout_nn.optim import operands

optim, nn = turnout.optim, turnout.nn


def leaf(*values: float) -> turnout.Tensor:
    made = turnout.tensor(values, requires_grad=True)
    made.grad = turnout.ones_like(made)
    return made


NO_LEAF = leaf(1.0) * 2
P = leaf(1.0)
SGD = optim.SGD([leaf(1.0)], lr=0.1)
lrs = optim.lr_scheduler


# fmt: off
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: optim.SGD(P), CallError,
     "SGD: params must be an iterable of tensors or groups, got a tensor\n  to fix  pass a list, [tensor]"),
    (lambda: optim.SGD([]), ArgumentError, "SGD: params is empty; there is nothing to optimise"),
    (lambda: optim.SGD([1.0]), CallError, "SGD: a parameter must be a tensor, got float"),
    (lambda: optim.SGD([{"params": {P}}]), CallError,
     "SGD: params must have an order, which a set does not have\n  to fix  pass a list"),
    (lambda: optim.SGD([NO_LEAF]), ArgumentError, "SGD: a parameter has a history, so it is not a leaf that can be optimised"),
    (lambda: optim.SGD([("a", P), leaf(1.0)]), ArgumentError,
     "SGD: either all parameters of a group have names or none, got 1 names of 2"),
    (lambda: optim.SGD([{"params": [P]}, {"params": [P]}]), ArgumentError, "SGD: a parameter is in two groups"),
    (lambda: optim.SGD([P], lr=-1.0), ArgumentError, "SGD: lr must be at least 0, got -1"),
    (lambda: optim.SGD([P], lr="a"), CallError, "SGD: lr must be a number or a tensor of one element, got 'a'"),
    (lambda: optim.Adam([P], betas=0.9), CallError, "Adam: betas must be a tuple of numbers, got 0.9"),
    (lambda: optim.SGD([P], lr=turnout.ones(2)), ArgumentError,
     "SGD: lr must be a number or a tensor of one element, got shape [2]"),
    (lambda: optim.SGD([P], nesterov=True), ArgumentError, "SGD: nesterov=True needs momentum above 0 and dampening=0"),
    (lambda: optim.SGD([P], fused=True, foreach=True), ArgumentError, "SGD: fused=True and foreach=True exclude each other"),
    (lambda: optim.Adam([P], betas=(1.0, 0.9)), ArgumentError, "Adam: betas[0] must be at least 0 and less than 1, got 1"),
    (lambda: optim.AdamW([P], capturable=True), ArgumentError,
     "AdamW: capturable=True is not supported: Turnout does not capture graphs of launches"),
    (lambda: optim.Adagrad([turnout.ones(1, dtype=turnout.complex64)], fused=True), ArgumentError,
     "Adagrad: fused=True needs floating-point parameters, got turnout.complex64"),
    (lambda: optim.Adafactor([P], beta2_decay=1.0), ArgumentError, "Adafactor: beta2_decay must be at most 0, got 1"),
    (lambda: optim.Muon([P]), ArgumentError, "Muon: a parameter must be a matrix, got shape [1]"),
    (lambda: optim.Rprop([P], etas=(2.0, 3.0)), ArgumentError,
     "Rprop: etas must be one number between 0 and 1 and one above 1, got 2 and 3"),
    (lambda: optim.LBFGS([P]).step(), ArgumentError,
     "LBFGS.step: a closure is needed, which computes the loss and its gradients again"),
    (lambda: SGD.load_state_dict({"state": {}, "param_groups": []}), ArgumentError,
     "SGD.load_state_dict: the groups have [1] parameters, and those of the state have []"),
    (lambda: lrs.StepLR(P, 1), CallError, "StepLR: optimizer must be an Optimizer, got Tensor"),
    (lambda: lrs.StepLR(optim.SGD([P]), 1, last_epoch=3), ArgumentError,
     ("StepLR: group 0 has no 'initial_lr', from which epoch 3 could go on\n"
      "  to fix  load the optimiser's state first, or leave out last_epoch")),
    (lambda: lrs.LambdaLR(SGD, [abs, abs]), ArgumentError, "LambdaLR: lr_lambda has 2 values, and the optimiser has 1 groups"),
    (lambda: lrs.ConstantLR(SGD, 2.0), ArgumentError, "ConstantLR: factor must be between 0 and 1, got 2"),
    (lambda: lrs.CyclicLR(optim.Adadelta([P]), 0.1, 1.0), ArgumentError,
     "CyclicLR: cycle_momentum=True needs an optimiser with momentum or betas"),
    (lambda: lrs.OneCycleLR(SGD, 0.1), ArgumentError,
     "OneCycleLR: either total_steps or both epochs and steps_per_epoch are needed"),
    (lambda: lrs.SequentialLR(SGD, [lrs.ExponentialLR(SGD, 0.9)], [3]), ArgumentError,
     "SequentialLR: 1 schedulers need 0 milestones, got 1"),
    (lambda: lrs.ChainedScheduler([lrs.ReduceLROnPlateau(SGD)]), ArgumentError,
     "ChainedScheduler: schedulers[0] is a ReduceLROnPlateau, whose step() needs a metric"),
    (lambda: lrs.ReduceLROnPlateau(SGD, "most"), ArgumentError,
     "ReduceLROnPlateau: mode must be one of 'min', 'max', got 'most'"),
    (lambda: data.DataLoader([1], num_workers=0, prefetch_factor=1), ArgumentError,
     "DataLoader: prefetch_factor needs num_workers above 0"),
    (lambda: iter(data.DataLoader([1], timeout=3)), ArgumentError, "DataLoader: timeout needs num_workers above 0"),
    (lambda: data.DataLoader([1], multiprocessing_context="fork"), ArgumentError,
     "DataLoader: multiprocessing_context needs num_workers above 0"),
    (lambda: data.DataLoader([1], 2.5), ArgumentError, "DataLoader: batch_size must be an integer above 0, or None, got 2.5"),
    (lambda: data.DataLoader([1], True), ArgumentError, "DataLoader: batch_size must be an integer above 0, or None, got True"),
    (lambda: setattr(data.DataLoader([1]), "batch_size", 2), ArgumentError,
     "DataLoader: batch_size cannot be set once there is a loader; make another one"),
    (lambda: data.DataLoader([1], batch_sampler=[[0]], drop_last=True), ArgumentError,
     "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last"),
    (lambda: data.TensorDataset(turnout.ones(2), turnout.ones(3)), ArgumentError,
     "TensorDataset: tensors must have one length, got [2, 3]"),
    (lambda: data.random_split(range(3), [1, 1]), ArgumentError,
     "random_split: lengths must sum to 3 samples, or to 1 as shares, got [1, 1]"),
    (lambda: data.BatchSampler([1], 0, False), ArgumentError, "BatchSampler: batch_size must be an integer above 0, got 0"),
    (lambda: data.default_collate([[1], [1, 2]]), ArgumentError, "default_collate: samples must have one length, got [1, 2]"),
    (lambda: data.default_collate([object()]), CallError,
     ("default_collate: expected tensors, arrays, numbers, text, dicts or sequences, got object\n"
      "  to fix  pass collate_fn=, a function that makes a batch of a list of samples")),
    (lambda: nn.save_safetensors({"a": 1}, "x"), CallError, "save_safetensors: expected tensors by name, got int at 'a'"),
    (lambda: nn.save_safetensors({"a": turnout.ones(1, dtype=turnout.complex128)}, "x"), ArgumentError,
     "save_safetensors: 'a' has dtype turnout.complex128, which safetensors files do not have"),
]
# fmt: on


@pytest.mark.parametrize(("call", "kind", "says"), WRONG)
def test_what_cannot_be_meant_is_refused(call: Any, kind: type[Exception], says: str) -> None:
    assert refused(kind, call) == says


def test_hooks_see_a_step_and_a_derived_class_calls_them_once() -> None:
    seen: list[Any] = []

    class Twice(optim.SGD):
        def step(self, closure: Any = None) -> Any:
            seen.append("own")
            return super().step(closure)

    optimizer = Twice([leaf(1.0)], lr=0.5)
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    with (
        optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 7.0,), {})),
        optim.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all")),
    ):
        assert optimizer.step() == 7.0
    assert seen == ["all", "own", "after"]
    assert optimizer.step() is None
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(state.pop("more")))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen[-1] == 1


def test_an_optimiser_of_ones_own_needs_a_step_only() -> None:
    class Signs(optim.Optimizer):
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr})

        @turnout.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["steps"] = self.state[p].get("steps", 0) + 1
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    parameter = leaf(1.0, 2.0)
    optimizer = Signs([{"params": [parameter], "lr": 0.5}])
    scheduler = turnout.optim.lr_scheduler.ExponentialLR(optimizer, 0.1)
    optimizer.step()
    scheduler.step()
    assert parameter.tolist() == [0.5, 1.5]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)
    assert optimizer.state_dict()["state"] == {0: {"steps": 1}}
    with pytest.raises(NotImplementedError):
        optim.Optimizer([parameter], {}).step()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copy_of_parameters_and_optimiser_goes_on(copied: Any) -> None:
    parameter = leaf(1.0)
    optimizer = optim.Adam([parameter], lr=0.1)
    optimizer.step()
    other, its = copied((parameter, optimizer))
    other.grad = turnout.ones(1)
    its.step()
    optimizer.step()
    assert other.tolist() == parameter.tolist()
    assert repr(its).startswith("Adam (\nParameter Group 0\n    amsgrad: False\n    betas: (0.9, 0.999)")


def test_gradients_are_forgotten_or_become_zeros() -> None:
    parameter = leaf(1.0)
    gradient, optimizer = parameter.grad, optim.SGD([parameter, leaf(2.0)])
    optimizer.zero_grad(set_to_none=False)
    assert parameter.grad is gradient
    assert gradient.tolist() == [0.0]
    optimizer.zero_grad()
    assert parameter.grad is None
    optimizer.step()
    assert parameter.tolist() == [1.0]


def test_lists_are_chosen_where_the_backend_has_a_kernel_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not operands.on_lists(P.device)
    made = []
    monkeypatch.setattr(optim.optimizer, "on_lists", lambda device: True)
    monkeypatch.setattr(optim.optimizer, "Lists", lambda tensors: made.append(len(tensors)) or operands.Lists(tensors))
    optim.SGD([leaf(1.0), leaf(1.0), turnout.ones(1)], lr=0.1).step()
    assert made == [2, 2]
    optim.SGD([leaf(1.0)], lr=0.1, foreach=False).step()
    assert made == [2, 2]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (optim.SGD, {}),
        (optim.SGD, {"momentum": 0.9, "dampening": 0.25}),
        (optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (optim.Adagrad, {"lr_decay": 0.2, "eps": 0.01}),
        (optim.Adam, {"eps": 0.01}),
        (optim.Adam, {"eps": 0.01, "amsgrad": True}),
        (optim.AdamW, {"eps": 0.01, "amsgrad": True}),
    ],
)
def test_a_fused_step_is_that_of_the_rule(kind: Any, options: dict[str, Any]) -> None:
    """Both write the formula, one for a tensor's methods, the other for counts of steps that stay on the device."""
    found = []
    for fused in (False, True):
        parameter = turnout.tensor([0.5, -2.0, 3.0], dtype=turnout.float64, requires_grad=True)
        optimizer = kind([parameter], lr=0.1, weight_decay=0.3, maximize=True, fused=fused, **options)
        for scale in (1.0, -0.4, 0.0, 0.2):  # the squares shrink, which amsgrad sees
            parameter.grad = turnout.tensor([1.0, 0.1, -4.0], dtype=turnout.float64) * scale
            optimizer.step()
        found.append({"parameter": parameter.detach(), **optimizer.state[parameter]})
    turnout.testing.assert_close(*found, rtol=1e-12, atol=1e-14)


def test_averages_of_a_model_and_its_norms() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    averaged = optim.swa_utils.AveragedModel(model, avg_fn=optim.swa_utils.get_ema_avg_fn(0.5))
    weight = model[0].weight
    for value in (1.0, 3.0):
        with turnout.no_grad():
            weight.fill_(value)
        averaged.update_parameters(model)
    assert averaged.module[0].weight.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert int(averaged.n_averaged) == 2
    batches = [turnout.randn(8, 2) for _ in range(3)]
    optim.swa_utils.update_bn([(x,) for x in batches], averaged)
    mean = averaged.module[0](turnout.cat(batches)).mean(0)
    assert turnout.allclose(averaged.module[1].running_mean, mean, atol=1e-5)
    assert averaged.module[1].momentum == 0.1


# ---- data


class Numbers(data.IterableDataset):
    def __iter__(self) -> Any:
        worker = data.get_worker_info()
        return iter(range(11)) if worker is None else iter(range(worker.id, 11, worker.num_workers))


class Failing(data.Dataset):
    def __init__(self, how: str) -> None:
        self.how = how

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        if self.how == "raise":
            raise KeyError(index)
        if self.how == "exit":
            os._exit(3)
        return lambda: index


PAIRS = data.TensorDataset(turnout.arange(10), turnout.arange(10) * 10)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_reads_in_the_order_of_its_sampler(workers: int) -> None:
    loader = data.DataLoader(PAIRS, 4, num_workers=workers, persistent_workers=workers > 0)
    wanted = [[[0, 1, 2, 3], [0, 10, 20, 30]], [[4, 5, 6, 7], [40, 50, 60, 70]], [[8, 9], [80, 90]]]
    for _ in range(2):
        assert [[t.tolist() for t in batch] for batch in loader] == wanted
    for _ in loader:  # a loop that is left does not disturb the next one
        break
    assert [[t.tolist() for t in batch] for batch in loader] == wanted
    assert len(loader) == 3
    found = sorted(i for batch in data.DataLoader(Numbers(), 4, num_workers=workers) for i in batch.tolist())
    assert found == list(range(11))
    unordered = data.DataLoader(PAIRS, 1, num_workers=workers, in_order=False)
    assert sorted(int(i) for i, _ in unordered) == list(range(10))


@pytest.mark.parametrize(
    ("how", "kind", "says"),
    [
        ("raise", KeyError, "0"),
        ("exit", WorkerError, "DataLoader: worker 0 ended unexpectedly, with exit code 3"),
        ("lambda", WorkerError, "a batch cannot be sent: "),
    ],
)
def test_what_fails_in_a_worker_is_told_here(how: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as raised:
        list(data.DataLoader(Failing(how), 2, num_workers=1, collate_fn=list))
    assert says in str(raised.value)
    assert how == "exit" or raised.value.__notes__[0].startswith("in worker 0 of a DataLoader:\nTraceback")


def test_orders_and_seeds_come_from_the_generator() -> None:
    def orders(seed: int) -> list[Any]:
        generator = turnout.Generator().manual_seed(seed)
        loader = data.DataLoader(range(20), 20, shuffle=True, generator=generator)
        drawn = data.WeightedRandomSampler([0.0, 1.0, 1.0], 8, generator=generator)
        return [batch.tolist() for _ in range(2) for batch in loader] + [list(drawn)]

    found = orders(3)
    assert found == orders(3) != orders(4)
    assert sorted(found[0]) == sorted(found[1]) == list(range(20))
    assert set(found[2]) <= {1, 2}


def test_sets_of_data_are_joined_and_parted() -> None:
    both = data.ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in (0, 3, -1)] == [0, 10, 11]
    stacked = data.StackDataset(a=range(2), b=[5.0, 6.0])
    batch = next(iter(data.DataLoader(stacked, 2)))
    assert {name: value.tolist() for name, value in batch.items()} == {"a": [0, 1], "b": [5.0, 6.0]}
    assert list(data.ChainDataset([Numbers(), Numbers()])) == [*range(11)] * 2
    parts = data.random_split(range(10), [0.5, 0.5])
    assert sorted([*parts[0], *parts[1]]) == list(range(10))


# ---- weights


def test_weights_are_saved_and_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {
        "half": turnout.tensor([1.5, -2.0], dtype=turnout.bfloat16), "whole": turnout.arange(3), "none": turnout.empty(0, 2),
        "one": turnout.tensor(2.5), "odd": turnout.tensor([True]), "turned": turnout.randn(3, 4).t(),
        "two": turnout.tensor([1 + 2j]),
    }  # fmt: skip
    nn.save_safetensors(tensors, path, {"from": "a test"})
    found = nn.load_safetensors(path)
    assert all(turnout.equal(found[name], tensors[name]) and found[name].dtype is tensors[name].dtype for name in tensors)
    found["half"].fill_(0)
    assert nn.load_safetensors(str(path))["half"].tolist() == [1.5, -2.0]
    module = nn.Linear(2, 2)
    nn.save_safetensors(module.state_dict(), path)
    module.load_state_dict(nn.load_safetensors(path))


HEADER = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


def file_of(header: Any, body: bytes = bytes(8)) -> bytes:
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return len(text).to_bytes(8, "little") + text + body


# fmt: off
BAD_FILES = [
    (b"", "is damaged"), (file_of(HEADER, bytes(7)), "is damaged"), (file_of(b"{"), "is damaged"),
    (b"\xff" * 8, "is damaged"), (file_of({"a": HEADER["a"] | {"data_offsets": [8, 0]}}), "is damaged"),
    (file_of({"a": HEADER["a"] | {"shape": [2**62, 4]}}), "is damaged"),
    (file_of({"a": HEADER["a"], "b": HEADER["a"]}), "is damaged"),
    (file_of({"a": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}),
     "'a' has dtype F8_E4M3, which Turnout does not have"),
    (b"\x80\x02\x8a\nl\xfc\x9cF",
     "to fix  convert it once, where PyTorch is: safetensors.torch.save_file(torch.load(path), new_path)"),
    (b"PK\x03\x04\0\0\x08\x08", "is a pickle or an archive of one, as torch.save writes"),
]
# fmt: on


@pytest.mark.parametrize(("content", "says"), BAD_FILES)
def test_files_that_are_damaged_hostile_or_of_another_kind_are_errors(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert says in refused(FileFormatError, lambda: nn.load_safetensors(path))


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert refused(ImportError, lambda: nn.load_safetensors("x")) == (
        "load_safetensors: the package safetensors, which checks files, is not installed\n  to fix  pip install safetensors"
    )


def test_no_optimiser_compares_or_iterates_what_is_no_number() -> None:
    unnamed, numbers = [], ("lr", "weight_decay", "eps", "betas", "momentum", "rho", "lambd", "lr_decay", "alpha")
    for name in sorted(set(dir(optim)) - {"Adafactor"}):  # whose eps are two numbers or None
        kind = getattr(optim, name)
        for parameter in set(signature(kind).parameters) & {*numbers} if isinstance(kind, type) else ():
            for wrong in ("a", [1.0], object()):
                try:
                    kind([turnout.ones(1, requires_grad=True)], **{parameter: wrong})
                except TypeError as error:
                    if not isinstance(error, CallError):
                        unnamed.append(f"{name} {parameter}: {error}")
                except ArgumentError:
                    continue
    assert not unnamed


def warned_at(*calls: Any) -> list[tuple[str, int]]:
    """Where each call, in a line of its own, warns."""
    found = []
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        found += [(each.filename, each.lineno - call.__code__.co_firstlineno) for each in caught]
    return found


def test_warnings_of_constructors_and_methods_point_at_the_line_of_the_program():
    weight = turnout.zeros(2, requires_grad=True)

    class Stack(turnout.nn.LSTM):
        def __init__(self) -> None:
            super().__init__(2, 3, dropout=0.5)

    def scheduled() -> None:
        optimizer = turnout.optim.SGD([weight], lr=0.1)
        turnout.optim.lr_scheduler.StepLR(optimizer, 1).step()

    def epoch() -> None:
        optimizer = turnout.optim.SGD([weight], lr=0.1)
        turnout.optim.lr_scheduler.ReduceLROnPlateau(optimizer).step(1.0, epoch=1)

    assert warned_at(
        lambda: turnout.nn.LSTM(2, 3, dropout=0.5), lambda: turnout.nn.RNNBase("LSTM", 2, 3, dropout=0.5),
        lambda: turnout.optim.SGD([weight, weight], lr=0.1), lambda: turnout.optim.AdamW([weight, weight]),
        lambda: turnout.nn.init.kaiming_normal_(turnout.zeros(0, 2)),
    ) == [(__file__, 0)] * 5  # fmt: skip
    assert warned_at(scheduled, epoch) == [(__file__, 2)] * 2
    with pytest.warns(UserWarning, match="no effect with one layer") as caught:
        Stack()
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, Stack.__init__.__code__.co_firstlineno + 1)]
