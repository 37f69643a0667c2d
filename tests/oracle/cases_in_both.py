"""Operator cases, called in PyTorch and in Turnout on the cpu device."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from op_db.bridge import mapped

import turnout
from outcomes import flat
from turnout.registry import find_operator
from turnout_conformance.cases import OperatorCase, calls

# Results that the operator leaves open, by position: they are compared by dtype and shape.
# Signs of singular vectors; the factors that a determinant comes from, which may be of the transposed matrix; what is in the
# factor of a matrix that has none.
OPEN: dict[str, tuple[int, ...]] = {
    "linalg_svd": (0, 2),
    "_linalg_det": (1,),
    "_linalg_slogdet": (2,),
    "linalg_cholesky_ex": (0,),
}


def to_torch(data: Any, dtype: str) -> torch.Tensor:
    return torch.tensor(data, dtype=getattr(torch, dtype))


def to_turnout(data: Any, dtype: str) -> turnout.Tensor:
    return turnout.tensor(data, dtype=turnout.dtypes.dtype_named(dtype), device="cpu")


def in_torch(value: Any) -> Any:
    """An argument that is no tensor: dtypes are the libraries' own."""
    return getattr(torch, value.name) if isinstance(value, turnout.dtypes.DType) else value


def dtype_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def results(
    case: OperatorCase,
    dtype: str,
    theirs_inside: AbstractContextManager[Any] = nullcontext(),  # noqa: B008 - it can be entered again
    ours_inside: AbstractContextManager[Any] = nullcontext(),  # noqa: B008
) -> Iterator[tuple[tuple[Any, Any], list[Any], list[Any]]]:
    """The arguments of each sample in Turnout, what is found and what is expected, which have the same dtypes."""
    name, _, overload = case.op.partition(".")
    theirs, ours = getattr(getattr(torch.ops.aten, name), overload or "default"), find_operator(f"aten::{case.op}")
    for given, own in zip(calls(case, dtype, to_torch), calls(case, dtype, to_turnout), strict=True):
        args, kwargs = mapped(given, in_torch)
        # differs from torch: a mean of losses is divided by how many there are; PyTorch counts the input's elements before it
        # broadcasts, so its gradient is too large where the target is larger.
        if case.op == "mse_loss_backward" and args[1].shape != args[2].shape:
            continue
        with warnings.catch_warnings(), theirs_inside:
            warnings.simplefilter("ignore")
            expected = flat(theirs(*args, **kwargs))
        with ours_inside:
            found = flat(ours(*own[0], **own[1]))
        assert [f.dtype.name for f in found] == list(map(dtype_of, expected)), (dtype, own)
        yield own, found, expected
