"""What is checked of every OpInfo: in which dtypes, of which of them, and by what. A verdict is empty where nothing differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from op_db import gradients, judging, tangents, transforms


class Check(NamedTuple):
    """dtypes, whether an OpInfo has such a check, and the verdict."""

    dtypes: tuple[str, ...]
    chosen: Callable[[Any], Any]
    verdict: Callable[[Any, torch.dtype], object]

    def infos(self, dtype: str) -> list[Any]:
        """The OpInfos that are checked in a dtype."""
        return [info for info in judging.infos(getattr(torch, dtype)) if self.chosen(info)]


def _differentiable(info: Any) -> bool:
    return bool(info.supports_autograd)


def _drawing_nothing(info: Any) -> bool:
    return _differentiable(info) and info.name not in judging.RANDOM


REAL, COMPLEX = "float64", "complex128"
# fmt: off
CHECKS = {
    "forward":    Check(("float32", "int64"), lambda info: True, judging.forward),
    "errors":     Check(("float32",), lambda info: info.error_inputs_func, judging.errors),
    "gradients":  Check((REAL, COMPLEX), _differentiable, gradients.first),
    "second":     Check((REAL,), lambda info: _differentiable(info) and info.supports_gradgrad, gradients.second),
    "tangents":   Check((REAL, COMPLEX), _differentiable, tangents.verdict),
    "transforms": Check((REAL, COMPLEX), _drawing_nothing, transforms.judge),
}
# fmt: on
