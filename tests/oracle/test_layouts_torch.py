"""How results lie in memory against PyTorch: operator cases with their tensors in other layouts, spread evenly over them all."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cases_in_both import in_torch  # noqa: E402
from op_db.bridge import mapped  # noqa: E402

import turnout  # noqa: E402
from outcomes import flat  # noqa: E402
from random_programs.layouts import Combination, chosen, here  # noqa: E402
from turnout.errors import LinAlgError  # noqa: E402
from turnout.registry import find_operator  # noqa: E402

# The operators whose results may lie otherwise than in PyTorch, with the reason; docs/coming-from-pytorch.md says so.
OTHERWISE = {
    "conj": "a new tensor; in PyTorch a view",
    "copy": "gaps between elements are not kept",
    "select_scatter": "gaps between elements are not kept",
    "slice_scatter": "gaps between elements are not kept",
    "diagonal_scatter": "gaps between elements are not kept",
    "histogramdd.TensorList_bins": "the edges are copies without gaps",
    "linalg_lstsq": "without the rows behind the solution that LAPACK leaves",
    "einsum": "the product is made in another order of dims",
    "conv_transpose3d.input": "PyTorch chooses among libraries by size",
    "conv3d": "PyTorch chooses among libraries by size",
}

# Functions that write a result into an empty tensor in another layout than they return it in; here none does.
COPIED = {"abs", "cholesky", "cholesky_solve", "kron", "nan_to_num", "nanquantile", "quantile", "slice_scatter", "take"}


def there(memory: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    return torch.from_numpy(memory).as_strided(shape, strides)


def lies(tensor: Any) -> list[int]:
    """The strides that say where elements are."""
    return [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1] if tensor.numel() > 1 else []


def results_there(combination: Combination) -> list[Any] | None:
    """What PyTorch gives; None where the operator is not there, or refuses the call."""
    name, _, overload = combination.case.op.partition(".")
    if not hasattr(torch.ops.aten, name):
        return None
    args, kwargs = mapped(combination.arguments(there), in_torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return flat(getattr(getattr(torch.ops.aten, name), overload or "default")(*args, **kwargs))
        except RuntimeError:  # a singular matrix of equal rows, or a view that this layout does not have
            return None


@pytest.mark.timeout(1800)  # thousands of calls in a sweep
def test_results_lie_as_in_pytorch(seeds: Any) -> None:
    compared, wrong = 0, []
    for combination in chosen(seeds(400, many=5000)):
        expected = results_there(combination)
        if expected is None or combination.case.op in OTHERWISE:
            continue
        args, kwargs = combination.arguments(here)
        try:
            found = flat(find_operator(f"aten::{combination.case.op}")(*args, **kwargs))
        except LinAlgError:  # equal rows, of which PyTorch only warns
            continue
        compared += 1
        for i, (f, e) in enumerate(zip(found, expected, strict=True)):
            if isinstance(e, torch.Tensor) and f.shape == tuple(e.shape) and lies(f) != lies(e):
                wrong.append(
                    f"{combination}: result {i} of shape {list(f.shape)} has strides {f.stride()}, expected {e.stride()}"
                )
    assert not wrong, "\n".join(wrong[:20])
    assert compared > len(seeds(400, many=5000)) * 0.8


def test_results_written_into_empty_tensors_lie_as_in_pytorch(seeds: Any) -> None:
    compared, wrong = 0, []
    for combination in chosen(seeds(400, many=5000)):
        name = combination.case.op.partition(".")[0]
        if not hasattr(torch, name) or not hasattr(turnout, name) or name in COPIED or combination.case.op in OTHERWISE:
            continue
        args, kwargs = mapped(combination.arguments(there), in_torch)
        expected = written(torch, getattr(torch, name), args, kwargs)
        args, kwargs = combination.arguments(here)
        found = written(turnout, getattr(turnout, name), args, kwargs)
        if expected is None or found is None:
            continue
        compared += 1
        if found.shape == tuple(expected.shape) and lies(found) != lies(expected):
            wrong.append(f"{combination}: shape {list(found.shape)} has strides {found.stride()}, expected {expected.stride()}")
    assert not wrong, "\n".join(wrong[:20])
    assert compared > len(seeds(400, many=5000)) * 0.3


def written(of: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """What a function of a library writes into an empty tensor; None where it takes no such call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs, out=of.empty(0, dtype=function(*args, **kwargs).dtype))
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return None
