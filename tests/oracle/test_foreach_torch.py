"""Operators on lists of tensors and steps of optimisers give what they give in torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import turnout

DEVICES = ["cpu", "opencl", "meta"]
SHAPES = ((3,), (2, 2), ())
# What an argument of each name is filled with, where it matters.
LISTS = {"weights": (0.1, 0.9), "exponent": (0.5, 2.0), "scalars": (0.5, 2.0)}


def overloads(prefix: str) -> list[str]:
    """The operators of torch with a prefix, but out variants: packet.overload."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith(f"aten::{prefix}") and not schema.overload_name.endswith("out"):
            found[f"{schema.name[6:]}.{schema.overload_name or 'default'}"] = None
    return sorted(found)


FOREACH = overloads("_foreach_")


def _numbers(seed: int, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
    made = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return (low + (high - low) * made).to(torch.float32)


def _argument(kind: str, name: str, place: int) -> Any:
    low, high = LISTS.get(name, (0.3, 0.9))
    if kind == "List[Tensor]":
        return [_numbers(10 * place + i, (2, 2) if MATRICES in name else shape, low, high) for i, shape in enumerate(SHAPES)]
    if kind in ("List[number]", "List[Scalar]"):
        return [0.5, 2.0, 1.5]
    if kind == "Tensor":
        return torch.tensor([0.5, 2.0, 1.5]) if name == "scalars" else torch.tensor(1.5)
    return {"number": 1.5, "Scalar": 1.5, "bool": False}.get(kind)


MATRICES = "mat2"


def arguments(name: str) -> list[Any]:
    """Arguments of an operator on lists; those with defaults are left out."""
    packet, _, overload = name.partition(".")
    schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
    made = [_argument(str(a.type), a.name, i) for i, a in enumerate(schema.arguments) if not a.has_default_value()]
    if packet == "_foreach_mm":
        return [[_numbers(i + 7 * j, (2, 2), 0.1, 0.9) for i in range(3)] for j in range(2)]
    return made


def ours(value: Any, device: str = "cpu") -> Any:
    """The same arguments as turnout's tensors."""
    if isinstance(value, torch.Tensor):
        return turnout.from_numpy(value.detach().numpy().copy()).to(device)
    return [ours(v, device) for v in value] if isinstance(value, list) else value


def same(found: Any, expected: Any, tolerance: float = 2e-6) -> bool:
    """Whether two results, or the arguments after a write, agree."""
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(same(f, e, tolerance) for f, e in zip(found, expected, strict=True))
    if not isinstance(expected, torch.Tensor):
        return bool(found == expected)
    if found.dtype.name != str(expected.dtype).removeprefix("torch.") or tuple(found.shape) != tuple(expected.shape):
        return False
    if found.device.type == "meta":
        return True
    return torch.allclose(torch.from_numpy(found.detach().cpu().numpy().copy()), expected.detach(), rtol=tolerance, atol=1e-6)


def call(library: Any, name: str) -> Any:
    """An overload."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(library.ops.aten, packet), overload)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FOREACH)
def test_an_operator_on_lists_gives_and_writes_what_it_does_in_torch(name: str, device: str, need_device: Any) -> None:
    need_device(device)
    theirs = arguments(name)
    wanted = call(torch, name)(*theirs)
    given = ours(arguments(name), device)
    if device == "meta" and name.endswith(".Tensor") and "addc" in name:
        given[-1] = ours(arguments(name)[-1])  # numbers are read
    assert same(call(turnout, name)(*given), wanted, 1e-5)
    assert same(given, theirs, 1e-5)


@pytest.mark.parametrize("name", [name for name in FOREACH if "_." not in name])
def test_an_operator_on_lists_has_the_gradients_of_torch(name: str) -> None:
    theirs = arguments(name)
    leaves = [x.requires_grad_() for x in next(a for a in theirs if isinstance(a, list) and isinstance(a[0], torch.Tensor))]
    results = call(torch, name)(*theirs)
    if not all(r.requires_grad for r in results):
        return
    try:
        sum((r * r).sum() for r in results).backward()
    except RuntimeError as error:  # in torch some have no derivative
        if "is not implemented" not in str(error):
            raise
        return
    mine = ours(arguments(name))
    own = [x.requires_grad_() for x in next(a for a in mine if isinstance(a, list) and isinstance(a[0], turnout.Tensor))]
    sum((r * r).sum() for r in call(turnout, name)(*mine)).backward()
    assert same([x.grad for x in own], [x.grad for x in leaves], 1e-4)


SGD = {"lr": 0.1, "weight_decay": 0.0, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "is_first_step": True}
STEPS = [
    ("_fused_adam_", {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "eps": 1e-8, "amsgrad": False}),
    ("_fused_adam_", {"lr": 0.1, "beta1": 0.0, "beta2": 0.9, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": True}),
    ("_fused_adamw_", {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": True}),
    ("_fused_sgd_", SGD | {"weight_decay": 0.01, "dampening": 0.1, "is_first_step": False}),
    ("_fused_sgd_", SGD | {"nesterov": True}),
    ("_fused_sgd_", SGD | {"weight_decay": 0.1, "momentum": 0.0}),
    ("_fused_adagrad_", {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.01, "eps": 1e-10}),
]


def _lists(name: str, options: dict[str, Any]) -> list[Any]:
    schema = call(torch, f"{name}.default")._schema
    made: list[Any] = []
    for place, argument in enumerate(schema.arguments):
        if str(argument.type) != "List[Tensor]":
            continue
        unused = (argument.name == "max_exp_avg_sqs" and not options.get("amsgrad")) or (
            argument.name == "momentum_buffer_list" and not options.get("momentum")
        )
        if argument.name == "state_steps":
            made.append([torch.tensor(float(i + 1)) for i in range(3)])
        else:
            made.append([] if unused else [_numbers(10 * place + i, shape, 0.1, 1.0) for i, shape in enumerate(SHAPES)])
    return made


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("extra", ["none", "scaled", "found", "maximize", "tensor_lr"])
@pytest.mark.parametrize(("name", "options"), STEPS)
def test_a_step_of_an_optimiser_writes_what_it_writes_in_torch(
    name: str, options: dict[str, Any], extra: str, device: str, need_device: Any
) -> None:
    need_device(device)
    options = options | {"maximize": extra == "maximize"}
    tensors = {}
    if extra in ("scaled", "found"):
        tensors = {"grad_scale": torch.tensor(4.0), "found_inf": torch.tensor(float(extra == "found"))}
    if extra == "tensor_lr":
        tensors = {"lr": torch.tensor(options.pop("lr"))}
    overload = "tensor_lr" if extra == "tensor_lr" else "default"
    theirs = _lists(name, options)
    call(torch, f"{name}.{overload}")(*theirs, **options, **tensors)
    mine = ours(_lists(name, options), device)
    call(turnout, f"{name}.{overload}")(*mine, **options, **{n: ours(t, device) for n, t in tensors.items()})
    assert same(mine, theirs, 1e-5)
    if device != "cpu":
        return
    before, given = ours(_lists(name, options)), {n: ours(t) for n, t in tensors.items()}
    returned = call(turnout, f"{name.removesuffix('_')}.{overload}")(*before, **options, **given)
    assert same(before, _lists(name, options))
    assert same(list(returned), theirs[: len(returned)], 1e-5)
