"""Random programs on a device beside the same programs on `cpu`: line by line, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import turnout
from autograd_programs import Program as Smooth
from autograd_programs.as_function import function_of
from outcomes import as_array
from random_programs.running import Lines, difference, run, says
from turnout import Tensor, autograd
from turnout.errors import AliasError

_MADE_THERE = ("tensor", "zeros", "ones", "arange")


class Library:
    """The library, with new tensors on a device."""

    def __init__(self, device: str) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        found = getattr(turnout, name)
        return partial(found, device=self._device) if name in _MADE_THERE else found


def judge(device: str, *, close: float = 2e-5, strides: bool = False) -> Callable[[Lines], str]:
    """What differs between a program on the device and on cpu; "" if nothing does. `strides` compares those, too."""

    def judge_lines(lines: Lines) -> str:
        ours: dict[str, Any] = {"t": Library(device)}
        plain: dict[str, Any] = {"t": turnout}
        for line in lines:
            found, expected = run(line, ours), run(line, plain)
            if isinstance(expected, NameError):
                return ""
            if found is None and isinstance(expected, AliasError) and "share part of their memory" in str(expected):
                return ""  # what runs on the host runs on copies
            if found is None and expected is not None and _later(ours):
                return ""  # the error comes with the numbers
            if type(found) is not type(expected):
                return f"{line}\n  {says(found)}, expected {says(expected)}"
            if found is not None and not isinstance(found, turnout.errors.TurnoutError):
                return f"{line}\n  {says(found)} is not an error of Turnout"
            if found is not None and "out=" in line:
                return ""  # outputs may have been resized
            for name, value in plain.items():
                if isinstance(value, Tensor):
                    wrong = _wrong(name, ours[name], value, device, close, strides)
                    if wrong:
                        return f"after {line}\n  {wrong}"
        return ""

    return judge_lines


def _later(scope: dict[str, Any]) -> bool:
    """Whether some tensor's numbers cannot be read: a device that computes later raises then."""
    for value in scope.values():
        if isinstance(value, Tensor):
            try:
                value.tolist()
            except turnout.errors.TurnoutError:
                return True
    return False


def _wrong(name: str, ours: Tensor, value: Tensor, device: str, close: float, strides: bool) -> str:
    close = 4e-3 if value.dtype in (turnout.float16, turnout.bfloat16) else close
    if (ours.dtype, ours.shape) != (value.dtype, value.shape) or value.numel() <= 1000:
        wrong = difference(name, ours, value, close=close)
    else:
        found, expected = as_array(ours), as_array(value)
        places = np.argwhere(~np.isclose(found, expected, close, close, equal_nan=True))
        first = tuple(places[0]) if len(places) else ()
        wrong = f"{name}: {len(places)} differ, at {first} {found[first]} from {expected[first]}" if len(places) else ""
    if wrong:
        return wrong
    if ours.device.type != device:
        return f"{name} is on {ours.device}"
    found, expected = (f"strides {x.stride()} from {x.storage_offset()}" for x in (ours, value))
    return f"{name}: {found}, expected {expected}" if strides and 0 not in value.shape and found != expected else ""


def let_go_of_programs(most: int = 100) -> None:
    """Drop what opencl has compiled where it is more: a program takes more than a megabyte."""
    place = turnout.empty(1, device="opencl").array.place
    if len(place._programs) > most:
        place.finish()
        place._programs.clear()
        place._kernels.clear()


# ---- gradients

CLOSE = 1e-9


def gradients(function: Callable[..., Tensor], start: list[Tensor]) -> list[float]:
    """The value, and the gradients with respect to the starts; 0 where there is none."""
    value = function(*start)
    return [float(value.detach()), *[0.0 if g is None else float(g) for g in autograd.grad(value, start, allow_unused=True)]]


def gradient_difference(seed: int, device: str, change: Callable[[Any], Any] = lambda function: function) -> str:
    """What differs between the gradients of a seed's program on the device, which `change` may transform, and on cpu."""
    expected = gradients(*function_of(Smooth(seed, smooth=True)))
    function, start = function_of(Smooth(seed, smooth=True), library=Library(device))
    found = gradients(change(function), start)
    same = all(math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE) for a, b in zip(found, expected, strict=True))
    return "" if same else f"{found}, expected {expected}"
