"""From samples to a batch: tensors are stacked, numbers become a tensor, and what holds them keeps its form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, CallError


def default_collate(batch: Sequence[Any]) -> Any:
    """One batch of samples that have the same form: tensors, arrays, numbers, text, and tuples, lists and dicts of these.

    Raises ArgumentError for sequences of different lengths and CallError for what cannot be put together.

    Arguments:
        batch: the samples

    Example:
        >>> turnout.utils.data.default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return turnout.stack(list(batch))
    if _is_array(first):
        return turnout.stack([turnout.as_tensor(each) for each in batch])
    if isinstance(first, float):
        return turnout.tensor(batch, dtype=turnout.float64)
    if isinstance(first, (bool, int)):
        return turnout.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([each[key] for each in batch]) for key in first})
    if isinstance(first, Sequence):
        if len({len(each) for each in batch}) > 1:
            raise ArgumentError(f"default_collate: samples must have one length, got {[len(each) for each in batch]}")
        made = [default_collate(parts) for parts in zip(*batch, strict=True)]
        return type(first)(*made) if hasattr(first, "_fields") else made
    raise CallError(
        f"default_collate: expected tensors, arrays, numbers, text, dicts or sequences, got {type(first).__name__}\n"
        "  to fix  pass collate_fn=, a function that makes a batch of a list of samples"
    )


def default_convert(data: Any) -> Any:
    """What is in arrays as tensors, in what holds them; all else as it is.

    Arguments:
        data: a sample
    """
    return turnout.as_tensor(data) if _is_array(data) else _inside(data, default_convert)


def pinned(data: Any) -> Any:
    """The tensors of a batch in page-locked memory."""
    return data.pin_memory() if isinstance(data, Tensor) else _inside(data, pinned)


def _inside(data: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(data, Mapping):
        return _like(data, {key: function(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(function, data))
    if isinstance(data, (list, tuple)):
        return [function(each) for each in data]
    return data


def _like(mapping: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    try:
        return type(mapping)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _is_array(value: Any) -> bool:
    """Whether a value is an array of NumPy or the like, or one of its numbers."""
    return hasattr(value, "__array_interface__") and not isinstance(value, Tensor)
