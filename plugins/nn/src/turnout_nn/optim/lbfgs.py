"""`LBFGS`: steps along an estimate of Newton's direction, with a line search where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError
from turnout_nn.optim import limits
from turnout_nn.optim.optimizer import Optimizer, arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_nn.optim.optimizer import Closure, Parameters, State

_SUFFICIENT, _CURVATURE = 1e-4, 0.9  # what the strong Wolfe conditions ask for (Nocedal and Wright, 2006, chapter 3)


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal, 1989): the last changes of parameters and gradients estimate the inverse of the Hessian.

    It takes one group of parameters on one device. `step` needs a closure, and calls it several times.

    Arguments:
        params: tensors, or pairs of name and tensor
        lr: the length of a step, a number or a tensor of one element
        max_iter: the most iterations in a step
        max_eval: the most calls of the closure in a step; None: a quarter more than `max_iter`
        tolerance_grad: a step ends where no gradient is larger
        tolerance_change: a step ends where parameters or loss change less
        history_size: how many changes are kept
        line_search_fn: None, or "strong_wolfe"
    """

    numbers = ()

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr)
        super().__init__(params, given | {"max_eval": max_iter * 5 // 4 if max_eval is None else max_eval})
        limits.require(self, len(self.param_groups) == 1, f"there can be one group of parameters, got {len(self.param_groups)}")

    def step(self, closure: Closure | None = None) -> Any:
        """Iterate until a limit or a tolerance is reached. Returns the loss of the first call of the closure.

        Arguments:
            closure: computes the loss and its gradients again, and returns the loss
        """
        if closure is None:
            raise ArgumentError("LBFGS.step: a closure is needed, which computes the loss and its gradients again")
        with turnout.no_grad():
            (group,) = self.param_groups
            lr = float(group["lr"])
            state = self.state[group["params"][0]]
            state.setdefault("func_evals", 0)
            state.setdefault("n_iter", 0)
            first_loss = self._evaluated(closure)
            loss, gradient = float(first_loss), self._flat_gradient()
            state["func_evals"] += 1
            calls, iterations = 1, 0
            while _largest(gradient) > group["tolerance_grad"] and iterations < group["max_iter"] and calls <= group["max_eval"]:
                iterations += 1
                state["n_iter"] += 1
                is_first = state["n_iter"] == 1
                _set_direction(state, gradient, group["history_size"])
                direction, before = state["d"], loss
                state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
                t = state["t"] = min(1.0, 1.0 / float(gradient.abs().sum())) * lr if is_first else lr
                slope = float(gradient.dot(direction))
                if slope > -group["tolerance_change"]:
                    break
                made = 0
                if group["line_search_fn"] is None:
                    self._move(t, direction)
                    if iterations != group["max_iter"]:  # the last loss would not be used
                        loss, gradient, made = float(self._evaluated(closure)), self._flat_gradient(), 1
                elif group["line_search_fn"] == "strong_wolfe":
                    found, made = self._search(closure, direction, _Point(0.0, loss, gradient, slope), t, group, calls)
                    t, loss, gradient = found.t, found.loss, found.gradient
                    state["t"] = t
                    self._move(t, direction)
                else:
                    raise ArgumentError(f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {group['line_search_fn']!r}")
                calls += made
                state["func_evals"] += made
                if calls >= group["max_eval"] or _largest(direction) * t <= group["tolerance_change"]:
                    break
                if abs(loss - before) < group["tolerance_change"]:
                    break
        return first_loss

    def _flat_gradient(self) -> Tensor:
        """The gradients of all parameters in one vector of real numbers."""
        flat = [turnout.zeros_like(p) if p.grad is None else p.grad for p in self.param_groups[0]["params"]]
        return turnout.cat([(turnout.view_as_real(g) if g.is_complex() else g).reshape(-1) for g in flat])

    def _move(self, t: float, direction: Tensor) -> None:
        start = 0
        for p in self.param_groups[0]["params"]:
            real = turnout.view_as_real(p) if p.is_complex() else p
            real.add_(direction[start : start + real.numel()].view_as(real), alpha=t)
            start += real.numel()

    def _search(
        self, closure: Closure, direction: Tensor, origin: _Point, t: float, group: dict[str, Any], calls: int
    ) -> tuple[_Point, int]:
        """A point that satisfies the strong Wolfe conditions, if it is found soon, and how often the closure was called."""
        kept = [p.clone() for p in group["params"]]

        def at(t: float) -> _Point:
            self._move(t, direction)
            loss, gradient = float(self._evaluated(closure)), self._flat_gradient()
            for p, value in zip(group["params"], kept, strict=True):
                p.copy_(value)
            return _Point(t, loss, gradient, float(gradient.dot(direction)))

        return _strong_wolfe(at, origin, t, _largest(direction), group["tolerance_change"], group["max_eval"] - calls)


class _Point(NamedTuple):
    """A place on the line of a search, with the loss, its gradient, and its slope along the line."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


def _largest(vector: Tensor) -> float:
    return float(vector.abs().max())


def _set_direction(state: State, gradient: Tensor, history: int) -> None:
    """Set state["d"] to minus the gradient times the estimate of the inverse Hessian, by the recursion of two loops."""
    if state["n_iter"] == 1:
        state.update(d=gradient.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return
    dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
    change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = float(change.dot(step))
    if curvature > 1e-10:
        if len(dirs) == history:
            for kept in (dirs, steps, ro):
                kept.pop(0)
        dirs.append(change)
        steps.append(step)
        ro.append(1.0 / curvature)
        state["H_diag"] = curvature / float(change.dot(change))
    direction = gradient.neg()
    factors = state.setdefault("al", [None] * history)
    for i in reversed(range(len(dirs))):
        factors[i] = float(steps[i].dot(direction)) * float(ro[i])
        direction.add_(dirs[i], alpha=-factors[i])
    direction.mul_(float(state["H_diag"]))
    for i in range(len(dirs)):
        direction.add_(steps[i], alpha=factors[i] - float(dirs[i].dot(direction)) * float(ro[i]))
    state["d"] = direction


def _strong_wolfe(
    at: Callable[[float], _Point], origin: _Point, t: float, scale: float, tolerance: float, most: int
) -> tuple[_Point, int]:
    """Widen the search until two points enclose a minimum, then narrow it. Returns the best point and the number of points."""

    def is_high(point: _Point) -> bool:
        return point.loss > origin.loss + _SUFFICIENT * point.t * origin.slope

    def is_flat(point: _Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * origin.slope

    before, now, count = origin, at(t), 0
    while count < most:
        if is_high(now) or (count > 1 and now.loss >= before.loss):
            break
        if is_flat(now):
            return now, count + 1
        if now.slope >= 0:
            break
        following = _between(before, now, (now.t + 0.01 * (now.t - before.t), now.t * 10))
        before, now = now, at(following)
        count += 1
    ends = [before if count < most else origin, now]
    low = 0 if ends[0].loss <= ends[1].loss else 1
    is_slow = False
    while count < most and abs(ends[1].t - ends[0].t) * scale >= tolerance:
        t = _between(ends[0], ends[1])
        least, largest = sorted((ends[0].t, ends[1].t))
        margin = 0.1 * (largest - least)
        if min(largest - t, t - least) >= margin:
            is_slow = False
        elif is_slow or t >= largest or t <= least:  # near an end again: go inside
            t = largest - margin if abs(t - largest) < abs(t - least) else least + margin
            is_slow = False
        else:
            is_slow = True
        now = at(t)
        count += 1
        high = 1 - low
        if is_high(now) or now.loss >= ends[low].loss:
            ends[high] = now
            low = 0 if ends[0].loss <= ends[1].loss else 1
            continue
        is_done = is_flat(now)
        if not is_done and now.slope * (ends[high].t - ends[low].t) >= 0:
            ends[high] = ends[low]
        ends[low] = now
        if is_done:
            break
    return ends[low], count + 1


def _between(one: _Point, other: _Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with these slopes has its minimum, within bounds; their middle if it has none."""
    left, right = (one, other) if one.t <= other.t else (other, one)
    least, largest = bounds or (left.t, right.t)
    mean = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.t - other.t)
    square = mean * mean - one.slope * other.slope
    if square < 0:
        return (least + largest) / 2
    found = right.t - (right.t - left.t) * ((right.slope + square**0.5 - mean) / (right.slope - left.slope + 2 * square**0.5))
    return float(min(max(found, least), largest))
