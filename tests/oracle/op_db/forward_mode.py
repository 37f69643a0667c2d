"""Whether forward mode passes gradcheck on the samples of an OpInfo: first order, and second order in either way round.

PyTorch's operator database says what is called and with what; the judge are differences of Turnout's own values. Random operators
draw the same numbers at every call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import turnout
from op_db import judging
from op_db.bridge import Missing
from op_db.transforms import Side, sides, smallest
from turnout import autograd, func

FIRST, OTHERS = 3, 1  # samples of an OpInfo


def tangents(side: Side) -> None:
    """Derivatives along tangents: of all inputs, and of each alone."""
    autograd.gradcheck(steady(side), leaves(side.inputs), check_backward_ad=False, check_forward_ad=True, fast_mode=True)


def tangents_inside_vmap(side: Side) -> None:
    """Derivatives along a batch of tangents."""
    autograd.gradcheck(
        steady(side), leaves(side.inputs), check_backward_ad=False, check_forward_ad=True, check_batched_forward_grad=True,
        check_undefined_grad=False, fast_mode=True,
    )  # fmt: skip


def forward_over_reverse(side: Side) -> None:
    """Derivatives of the gradients along tangents."""
    autograd.gradgradcheck(steady(side), leaves(side.inputs), check_rev_over_rev=False, check_fwd_over_rev=True, fast_mode=True)


def reverse_over_forward(side: Side) -> None:
    """Gradients of the derivatives along tangents, with respect to the inputs and to the tangents."""
    count = len(side.inputs)

    def pushed(*given: turnout.Tensor) -> Any:
        return func.jvp(steady(side), given[:count], given[count:])[1]

    autograd.gradcheck(pushed, leaves([*side.inputs, *side.tangents]), fast_mode=True)


CHECKS: dict[str, Callable[[Side], None]] = {
    "tangents": tangents,
    "tangents inside vmap": tangents_inside_vmap,
    "forward over reverse": forward_over_reverse,
    "reverse over forward": reverse_over_forward,
}


def leaves(tensors: list[turnout.Tensor]) -> list[turnout.Tensor]:
    """Leaves in memory of their own, which gradcheck writes into."""
    return [t.detach().clone().requires_grad_() for t in tensors]


def steady(side: Side) -> Callable[..., list[turnout.Tensor]]:
    """The function of a sample with the same random numbers at every call."""

    def function(*tensors: turnout.Tensor) -> list[turnout.Tensor]:
        turnout.manual_seed(0)
        return side(*tensors)

    return function


def judge(info: Any, dtype: torch.dtype, first: int = FIRST, others: int = OTHERS) -> tuple[dict[str, int], dict[str, str]]:
    """How many samples ran each check, and what was wrong with the first that did not pass.

    `first` samples run the first check, and `others` the others.
    """
    ran = dict.fromkeys(CHECKS, 0)
    wrong: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, sample in enumerate(smallest(info, dtype, first)):
            try:
                side = sides(info, sample)[1]
            except Missing as error:
                return ran, dict.fromkeys(CHECKS, f"missing {error}")
            except Exception:  # noqa: BLE001 - a sample that PyTorch itself refuses says nothing here
                continue
            for name, check in CHECKS.items() if side.places else ():
                if name in wrong or (name != "tangents" and number >= others) or ("over" in name and not info.supports_gradgrad):
                    continue
                ran[name] += 1
                try:
                    check(side)
                except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
                    wrong[name] = f"{judging._brief(sample)}: {judging.raised(error)}"
    return ran, wrong
