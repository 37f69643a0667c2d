"""`GradScaler`: losses are scaled up so that small gradients survive float16; a step whose gradients overflowed is skipped.

The scale follows what training shows: it shrinks after a step that overflowed and grows after `growth_interval` that did not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from turnout.dtypes import DType, float16, float32
from turnout.errors import CallError, DTypeError
from turnout_aten.dtypes import WIDE
from turnout_aten.tensor.creation import tensor as new_tensor
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.tensor import Tensor
from turnout_autocast import errors
from turnout_autocast.errors import ScalingError

_UNSCALED, _STEPPED = "unscaled", "stepped"


class _Progress:
    """How far one optimiser is since the last `update`: the stage, and per device whether its gradients overflowed."""

    __slots__ = ("optimizer", "overflows", "stage")

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer  # kept, so that its id stays its own
        self.stage: str | None = None
        self.overflows: list[Tensor] = []

    def overflowed(self) -> bool:
        return any(math.isnan(float(found)) for found in self.overflows)


class GradScaler:
    """Scales losses and unscales gradients, for training with float16.

        scaler.scale(loss).backward()
        scaler.step(optimizer)   # unscales, and steps unless a gradient is inf or nan
        scaler.update()

    device           accepted for programs written for PyTorch; the scale goes to where the outputs are
    init_scale       the first scale
    growth_factor    what it is multiplied by after `growth_interval` steps without overflow; greater than 1
    growth_interval  how many steps these are
    backoff_factor   what it is multiplied by after a step with one; less than 1
    enabled          False: `scale` returns its argument, `step` only steps, `update` does nothing

    An optimiser is any object with `step()` and `param_groups`, a list of dicts whose "params" are tensors. Raises CallError for
    factors out of range. Methods called out of order raise ScalingError, which is a RuntimeError, and change nothing.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._enabled = bool(enabled)
        if growth_factor <= 1.0 or backoff_factor >= 1.0:
            raise CallError(errors.factors(growth_factor, backoff_factor))
        self._scale: Tensor | None = None
        self._value = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._progress: dict[int, _Progress] = {}

    # ---- one step of training

    def scale(self, outputs: Any) -> Any:
        """A tensor, or an iterable of them (lists and tuples keep their type), times the scale. Raises CallError for others."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._on(outputs)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(each) for each in outputs)
        if isinstance(outputs, Iterable):
            return map(self.scale, outputs)
        raise CallError(errors.not_outputs(outputs))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimiser's parameters by the scale, in place, for instance to clip them before `step`.

        Raises ScalingError when this was done since the last `update`, DTypeError for float16 gradients, which overflow.
        """
        if not self._enabled:
            return
        progress = self._of(optimizer)
        if progress.stage is not None:
            raise ScalingError(errors.unscaled_before(progress.stage))
        by_device: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is not None:
                    if grad.dtype is float16:
                        raise DTypeError(errors.float16_gradients())
                    by_device.setdefault(grad.device, []).append(grad)
        scale = self._required("unscale_")
        with no_grad():
            # The reciprocal in float64, as PyTorch takes it.
            inverse = new_tensor(1.0 / float(scale), dtype=float32)
            progress.overflows = [_unscale(grads, inverse.to(where)) for where, grads in by_device.items()]
        progress.stage = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)`, unless a gradient is inf or nan; unscales first where that was not done.

        Returns what the optimiser returns, None when the step is left out. Raises ScalingError when called twice since the
        last `update`, for a closure, and when no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ScalingError(errors.closure())
        progress = self._of(optimizer)
        if progress.stage == _STEPPED:
            raise ScalingError(errors.stepped_before())
        if progress.stage is None:
            self.unscale_(optimizer)
        if not progress.overflows:
            raise ScalingError(errors.nothing_unscaled("step"))
        result = None if progress.overflowed() else optimizer.step(*args, **kwargs)
        progress.stage = _STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what the steps since the last `update` showed, or set it; the next step may begin.

        Raises ScalingError when nothing was unscaled and no scale is given.
        """
        if not self._enabled:
            return
        scale = self._required("update")
        if new_scale is not None:
            self._set(float(new_scale))
        else:
            found = [p for p in self._progress.values() if p.overflows]
            if not found:
                raise ScalingError(errors.nothing_unscaled("update"))
            self._adapt(float(scale), any(p.overflowed() for p in found))
        self._progress = {}

    def _adapt(self, scale: float, overflowed: bool) -> None:
        if overflowed:
            self._growth_tracker = 0
            self._set(scale * self._backoff_factor)
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            self._growth_tracker = 0
            grown = float(new_tensor(scale * self._growth_factor, dtype=float32))
            if math.isfinite(grown):
                self._set(grown)

    # ---- the scale

    def _set(self, value: float) -> None:
        self._value = value
        if self._scale is not None:
            self._scale = new_tensor(value, dtype=float32, device=self._scale.device)

    def _on(self, output: Tensor) -> Tensor:
        if self._scale is None:
            self._scale = new_tensor(self._value, dtype=float32, device=output.device)
        return self._scale if self._scale.device is output.device else self._scale.to(output.device)

    def _required(self, method: str) -> Tensor:
        if self._scale is None:
            raise ScalingError(errors.nothing_scaled(method))
        return self._scale

    def _of(self, optimizer: Any) -> _Progress:
        if not hasattr(optimizer, "param_groups"):
            raise CallError(errors.no_optimiser(optimizer))
        return self._progress.setdefault(id(optimizer), _Progress(optimizer))

    def get_scale(self) -> float:
        """The scale, 1.0 when not enabled; waits for the device."""
        if not self._enabled:
            return 1.0
        return self._value if self._scale is None else float(self._scale)

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Change it."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Change it."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Steps without overflow until it grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Change it."""
        self._growth_interval = new_interval

    # ---- saving

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs, under PyTorch's names; empty when not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where another scaler was. Raises ScalingError for the empty state of one that was not enabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise ScalingError(errors.empty_state())
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
        self._set(float(state_dict["scale"]))

    def __getstate__(self) -> dict[str, Any]:
        if self._progress:
            raise ScalingError(errors.pickled_in_a_step())
        return {**self.__dict__, "_scale": None, "_value": self.get_scale() if self._enabled else self._value}


def _unscale(grads: list[Tensor], inverse: Tensor) -> Tensor:
    """Multiply gradients of one device; nan where one of them has an element that is inf or nan, else 0."""
    found: Tensor | None = None
    for grad in grads:
        # inf * 0 and nan * 0 are nan: one reduction, and nothing waits for the device.
        zero = (grad * 0).sum(dtype=_counted(grad.dtype))
        found = zero if found is None else found + zero
        grad.mul_(inverse)
    assert found is not None
    return found


def _counted(dtype: DType) -> DType | None:
    wide = WIDE[dtype]
    return None if wide is dtype else wide
