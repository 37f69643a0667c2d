"""What libraries over PyTorch's API do: einops' recipes, tensorly's backend and decompositions, torchdiffeq's solvers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

import turnout
from outcomes import agree
from turnout import nn


@pytest.fixture(params=["cpu", "opencl"])
def device(request: pytest.FixtureRequest, need_device: Callable[[str], None]) -> str:
    need_device(request.param)
    return str(request.param)


# ---- einops: axes are split, reordered, reduced, added and joined


class Recipe(NamedTuple):
    shape: tuple[int, ...]
    split: tuple[int, ...]
    order: tuple[int, ...]
    reduction: str
    reduced: tuple[int, ...]
    added: dict[int, int]
    joined: tuple[int, ...]


def joined(random: Random, axes: list[int]) -> tuple[int, ...]:
    """A shape in which some neighbours of these axes are one axis."""
    shape: list[int] = []
    for size in axes:
        if shape and random.random() < 0.4:
            shape[-1] *= size
        else:
            shape.append(size)
    return tuple(shape)


def drawn(seed: int) -> Recipe:
    random = Random(seed)
    axes = [random.randint(1, 4) for _ in range(random.randint(1, 5))]
    order = random.sample(range(len(axes)), len(axes))
    reduction = random.choice(["amin", "amax", "sum", "mean", "prod", "any", "all"])
    reduced = tuple(sorted(random.sample(range(len(axes)), random.randint(0, len(axes) - 1))))
    left = [axes[k] for at, k in enumerate(order) if at not in reduced]
    added: dict[int, int] = {}
    for position in sorted(random.sample(range(len(left) + 1), random.randint(0, 2) if len(left) > 1 else 0)):
        added[position] = random.randint(1, 3)
        left.insert(position, added[position])
    return Recipe(joined(random, axes), tuple(axes), tuple(order), reduction, reduced, added, joined(random, left))


def cooked(x: turnout.Tensor, recipe: Recipe) -> turnout.Tensor:
    x = x.reshape(recipe.split).permute(recipe.order)
    if recipe.reduced and recipe.reduction in ("amin", "amax", "sum", "mean"):
        x = getattr(x, recipe.reduction)(dim=recipe.reduced)
    elif recipe.reduced:
        for dim in reversed(recipe.reduced):
            x = getattr(x, recipe.reduction)(dim=dim)
    for position in recipe.added:
        x = turnout.unsqueeze(x, position)
    return x.expand([recipe.added.get(dim, -1) for dim in range(x.ndim)]).reshape(recipe.joined)


def cooked_by_numpy(x: np.ndarray, recipe: Recipe) -> np.ndarray:
    x = x.reshape(recipe.split).transpose(recipe.order)
    if recipe.reduced:
        x = getattr(np, recipe.reduction)(x, axis=recipe.reduced)
    x = np.expand_dims(x, tuple(recipe.added))
    shape = [recipe.added.get(dim, size) for dim, size in enumerate(x.shape)]
    return np.broadcast_to(x, shape).reshape(recipe.joined)


def test_recipes_give_what_numpy_gives_on_every_device(device: str, seeds: Callable[..., range]) -> None:
    for seed in seeds(30, many=2000) if device == "cpu" else seeds(6, many=200):  # each compiles programs of its own on opencl
        recipe = drawn(seed)
        numbers = np.random.default_rng(seed).integers(-3, 4, recipe.shape).astype(np.float32)
        found = cooked(turnout.from_numpy(numbers).to(device), recipe)
        np.testing.assert_allclose(
            found.cpu().numpy(), cooked_by_numpy(numbers, recipe), rtol=1e-6, atol=1e-6, err_msg=f"seed {seed}"
        )


def test_recipes_have_the_same_results_in_vmap_in_a_graph_and_the_same_shape_on_meta(seeds: Callable[..., range]) -> None:
    for seed in seeds(15, many=1000):
        recipe = drawn(seed)
        x = turnout.from_numpy(np.random.default_rng(seed).integers(-3, 4, (2, *recipe.shape)).astype(np.float32))
        plain = [cooked(each, recipe) for each in x]
        agree(turnout.vmap(lambda each, recipe=recipe: cooked(each, recipe))(x), turnout.stack(plain), 1e-6)
        agree(turnout.trace(lambda each, recipe=recipe: cooked(each, recipe))(x[0])(x[1]), plain[1])
        assert cooked(x[0].to("meta"), recipe).shape == plain[0].shape == recipe.joined, seed


def test_what_is_kept_for_a_shape_is_found_with_a_size_and_with_a_tuple() -> None:
    @lru_cache
    def kept(shape: tuple[int, ...], device: turnout.device) -> object:
        return object()

    x = turnout.ones(2, 3)
    assert kept(x.shape, x.device) is kept((2, 3), turnout.device("cpu")) is kept(x.t().shape[::-1], x.device)
    assert kept(x.shape, x.device) is not kept(x.t().shape, x.device)
    assert x.dtype in [turnout.float16, turnout.float32]


class Mix(nn.Module):
    """A layer of which the weights' axes are a pattern."""

    def __init__(self, pattern: str, shape: list[int], bound: float) -> None:
        super().__init__()
        self.pattern = pattern
        self.weight = nn.Parameter(turnout.zeros(shape).uniform_(-bound, bound), requires_grad=True)
        self.register_parameter("bias", None)

    def forward(self, x: turnout.Tensor) -> turnout.Tensor:
        return turnout.einsum(self.pattern, x, self.weight)


class Cooked(nn.Module):
    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe

    def forward(self, x: turnout.Tensor) -> turnout.Tensor:
        return cooked(x, self.recipe)


def test_layers_of_patterns_and_recipes_learn() -> None:
    turnout.manual_seed(0)
    shape = Recipe((8, 6), (8, 2, 3), (1, 0, 2), "mean", (0,), {}, (8, 3))
    model = nn.Sequential(Cooked(shape), Mix("bi,io->bo", [3, 1], 0.5))
    assert sorted(model.state_dict()) == ["1.weight"]
    x = turnout.randn(8, 6)
    target = x.reshape(8, 2, 3).mean(dim=1) @ turnout.tensor([[1.0], [-2.0], [3.0]])
    for _ in range(200):
        model.zero_grad()
        (model(x) - target).square().mean().backward()
        with turnout.no_grad():
            for each in model.parameters():
                each.sub_(each.grad, alpha=0.5)
    agree(model[1].weight, turnout.tensor([[1.0], [-2.0], [3.0]]), 1e-3)


# ---- tensorly: a backend of the module's names, and decompositions


def context(x: turnout.Tensor) -> dict[str, Any]:
    return {"dtype": x.dtype, "device": x.device, "requires_grad": x.requires_grad}


def made(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> turnout.Tensor:
    x = data.clone().detach() if isinstance(data, turnout.Tensor) else turnout.tensor(data)
    x = x if dtype is None else x.type(dtype)
    x = x if device is None else x.to(device=device)
    return x if requires_grad is None else x.requires_grad_(requires_grad)


def unfolded(x: turnout.Tensor, mode: int) -> turnout.Tensor:
    return turnout.reshape(turnout.moveaxis(x, mode, 0), (x.shape[mode], -1))


def start(x: turnout.Tensor, rank: int) -> turnout.Tensor:
    """The first singular vectors, with the sign by which the largest number of each is positive."""
    u = turnout.linalg.svd(x, full_matrices=False)[0]
    rows = turnout.argmax(turnout.abs(u), dim=0)
    return u[:, :rank] * turnout.sgn(made([u[i, j] for i, j in zip(rows, range(u.shape[1]), strict=True)], **context(u)))[:rank]


def decomposed(x: turnout.Tensor, rank: int, steps: int) -> list[turnout.Tensor]:
    factors = [start(unfolded(x, mode), rank) for mode in range(3)]
    for _ in range(steps):
        for mode in range(3):
            a, b = (each for k, each in enumerate(factors) if k != mode)
            both = turnout.einsum("ir,jr->ijr", a, b).reshape(-1, rank)
            gram = turnout.matmul(a.T, a) * turnout.matmul(b.T, b)
            factors[mode] = turnout.linalg.solve(gram.T, turnout.matmul(unfolded(x, mode), both).T).T
    return factors


def test_alternating_least_squares_find_a_tensor_of_low_rank_again() -> None:
    turnout.manual_seed(3)
    parts = [turnout.randn(size, 2, dtype=turnout.float64) for size in (4, 5, 6)]
    x = turnout.einsum("ir,jr,kr->ijk", *parts)
    found = decomposed(x, 2, 40)
    assert all(context(each) == context(x) for each in found)
    agree(turnout.einsum("ir,jr,kr->ijk", *found), x, 1e-6)
    gram = turnout.matmul(unfolded(x, 0), unfolded(x, 0).T)
    agree(turnout.sqrt(turnout.trace(gram)), turnout.norm(x), 1e-12)


def test_a_backend_gets_its_functions_from_the_module_by_name() -> None:
    names = [
        "exp",
        "log",
        "tanh",
        "cosh",
        "sinh",
        "sin",
        "arctan",
        "sqrt",
        "cumsum",
        "log2",
        "conj",
        "count_nonzero",
        "any",
        "prod",
        "trace",
    ]
    numbers = np.array([[0.5, 0.25, 2.0], [1.0, 0.125, 4.0], [3.0, 1.5, 0.75]])
    for name in names:
        options = {"axis": 1} if name == "cumsum" else {}
        found = getattr(turnout, name)(turnout.from_numpy(numbers), **options)
        np.testing.assert_allclose(found.numpy(), getattr(np, name)(numbers, **options), rtol=1e-12, err_msg=name)
    assert [getattr(turnout, name) for name in ("pi", "e", "inf")] == [np.pi, np.e, np.inf]
    assert turnout.finfo(turnout.float32).eps == np.finfo(np.float32).eps
    x = made(numbers, **context(turnout.ones(1, dtype=turnout.float32)))
    assert turnout.clip(x, 0.5, 2.0, out=x) is x
    assert (x.max().item(), x.min().item(), x.cpu().numpy().dtype) == (2.0, 0.5, np.float32)
    assert turnout.sort(x.flatten(), dim=-1).values.tolist() == sorted(np.clip(numbers, 0.5, 2.0).ravel())
    right = turnout.ones(3, 1, dtype=turnout.float64)
    solved = turnout.linalg.lstsq(made(numbers), right, rcond=None, driver="gelsd")[0]
    agree(made(numbers) @ solved, right, 1e-10)


# ---- torchdiffeq: stages are written into one tensor, step sizes are tensors, and the adjoint is solved backwards


class Written(turnout.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scratch: turnout.Tensor, value: turnout.Tensor, at: tuple[Any, ...]) -> turnout.Tensor:
        ctx.at = at
        scratch.data[at] = value
        return scratch

    @staticmethod
    def backward(ctx: Any, grad: turnout.Tensor) -> tuple[Any, ...]:
        return grad, grad[ctx.at], None


# Bogacki and Shampine's pair of orders 3 and 2 (Applied Mathematics Letters 2, 1989).
STAGES = [[1 / 2], [0.0, 3 / 4], [2 / 9, 1 / 3, 4 / 9]]
TIMES = [1 / 2, 3 / 4, 1.0]
ERROR = [2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8]


def step(f: Callable[..., Any], t: Any, dt: Any, y: Any, first: Any) -> tuple[Any, Any, Any]:
    stages = Written.apply(turnout.empty(*first.shape, 4, dtype=y.dtype), first, (..., 0))
    for k, (time, weights) in enumerate(zip(TIMES, STAGES, strict=True)):
        at = t + time * dt if time < 1 else turnout.nextafter(t + dt, t)
        now = y + turnout.sum(stages[..., : k + 1] * (turnout.tensor(weights, dtype=y.dtype) * dt), dim=-1).view_as(first)
        last = f(at, now)
        stages = Written.apply(stages, last, (..., k + 1))
    return now, last, turnout.sum(stages * (dt * turnout.tensor(ERROR, dtype=y.dtype)), dim=-1)


def solved(f: Callable[..., Any], y: turnout.Tensor, start: float, stop: float, tolerance: float = 1e-7) -> turnout.Tensor:
    sign = 1.0 if stop > start else -1.0
    t, end = turnout.tensor(sign * start, dtype=y.dtype), turnout.tensor(sign * stop, dtype=y.dtype)

    def towards(t: turnout.Tensor, y: turnout.Tensor) -> turnout.Tensor:
        return sign * f(sign * t, y)

    dt, first = turnout.tensor(0.1, dtype=y.dtype), towards(t, y)
    while t < end:
        dt = turnout.min(dt, end - t)
        new, last, error = step(towards, t, dt, y, first)
        ratio = (error / (tolerance + tolerance * turnout.max(y.abs(), new.abs()))).abs().pow(2).mean().sqrt().detach()
        if ratio <= 1:
            t, y, first = turnout.where(t + dt >= end, end, t + dt), new, last
        dt = dt * turnout.clamp(0.9 * ratio.clamp(min=1e-10) ** (-1 / 3), min=0.2, max=5.0)
    return y


class Adjoint(turnout.autograd.Function):
    """The gradient of a solution, from a second problem that runs backwards and keeps no stages."""

    @staticmethod
    def forward(ctx: Any, f: Callable[..., Any], y: turnout.Tensor, stop: float, *parameters: turnout.Tensor) -> turnout.Tensor:
        with turnout.no_grad():
            end = solved(f, y, 0.0, stop)
        ctx.f, ctx.stop = f, stop
        ctx.save_for_backward(end, *parameters)
        return end

    @staticmethod
    def backward(ctx: Any, grad: turnout.Tensor) -> tuple[Any, ...]:
        end, *parameters = ctx.saved_tensors
        shapes = [each.shape for each in (end, end, *parameters)]

        def parts(flat: turnout.Tensor) -> list[turnout.Tensor]:
            pieces = flat.split([shape.numel() for shape in shapes])
            return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]

        def backwards(t: turnout.Tensor, state: turnout.Tensor) -> turnout.Tensor:
            y, adjoint, *_ = parts(state)
            with turnout.enable_grad():
                y, t = y.detach().requires_grad_(True), t.detach().requires_grad_(True)
                value = ctx.f(t, y)
                of_t, *others = turnout.autograd.grad(value, (t, y, *parameters), -adjoint, allow_unused=True, retain_graph=True)
            assert of_t is None, "f does not depend on the time"
            return turnout.cat([each.reshape(-1) for each in (value.detach(), *others)])

        with turnout.no_grad():
            state = turnout.cat([each.reshape(-1) for each in (end, grad, *(turnout.zeros_like(p) for p in parameters))])
            _, of_y, *of_parameters = parts(solved(backwards, state, ctx.stop, 0.0))
        return None, of_y, None, *of_parameters


def test_an_adaptive_solver_and_its_adjoint_agree_with_the_exact_solution() -> None:
    def exact(matrix: turnout.Tensor, y: turnout.Tensor) -> turnout.Tensor:
        return turnout.linalg.matrix_exp(matrix * 1.5) @ y

    def by_stages(matrix: turnout.Tensor, y: turnout.Tensor) -> turnout.Tensor:
        return solved(lambda t, y: matrix @ y, y, 0.0, 1.5)

    def by_adjoint(matrix: turnout.Tensor, y: turnout.Tensor) -> turnout.Tensor:
        return Adjoint.apply(lambda t, y: matrix @ y, y, 1.5, matrix)

    results = []
    for way in (exact, by_stages, by_adjoint):
        matrix = turnout.tensor([[-0.5, 2.0], [-2.0, 0.25]], dtype=turnout.float64, requires_grad=True)
        y = turnout.tensor([1.0, -0.5], dtype=turnout.float64, requires_grad=True)
        end = way(matrix, y)
        (end * turnout.tensor([1.0, 3.0], dtype=turnout.float64)).sum().backward()
        results.append((end.detach(), matrix.grad, y.grad))
    agree(results[1], results[0], 1e-5)
    agree(results[2], results[0], 1e-5)
