"""Sequences of different lengths in one tensor: `turnout.nn.utils.rnn`.

A padded tensor [T, N, ...] is as long as the longest sequence. A `PackedSequence` has no padding: the elements of all sequences
at the first step, then those at the second, and so on, with the longest sequence first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from turnout.nn import functional

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
__dir__ = __all__.copy


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of different lengths without padding, as `pack_sequence` and `pack_padded_sequence` make them.

    Recurrent layers take and return it.

    Arguments:
        data: the elements, step by step
        batch_sizes: how many sequences have each step: int64, on the cpu
        sorted_indices: the places of the sequences, the longest first, in the batch that they were packed from
        unsorted_indices: the places of that batch among the sequences here; None finds them from `sorted_indices`

    Raises:
        ArgumentError: `batch_sizes` is missing or is not on the cpu.

    Example:
        >>> packed = turnout.nn.utils.rnn.pack_sequence([turnout.tensor([1, 2]), turnout.tensor([3])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls, data: Tensor, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:  # fmt: skip
        if batch_sizes is None:
            raise ArgumentError("PackedSequence: batch_sizes is missing; pack_sequence and pack_padded_sequence make it")
        if batch_sizes.device.type != "cpu":
            raise ArgumentError(f"PackedSequence: batch_sizes must be on the cpu, got {batch_sizes.device}")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequences with data of another dtype or on another device, as `Tensor.to`.

        Arguments:
            args: those of `Tensor.to`
            kwargs: those of `Tensor.to`
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        orders = [None if order is None else order.to(data.device) for order in self[2:]]
        return type(self)(data, self.batch_sizes, *orders)

    def cpu(self) -> PackedSequence:
        """The same sequences on the cpu."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequences on a CUDA device.

        Arguments:
            args: the device, by default the current one, and those of `Tensor.to` that follow it
            kwargs: those of `Tensor.to`
        """
        return self.to(*(args or ("cuda",)), **kwargs)

    def double(self) -> PackedSequence:
        """The same sequences in float64."""
        return self.to(dtype=turnout.float64)

    def float(self) -> PackedSequence:
        """The same sequences in float32."""
        return self.to(dtype=turnout.float32)

    def half(self) -> PackedSequence:
        """The same sequences in float16."""
        return self.to(dtype=turnout.float16)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return bool(self.data.device.type == "cuda")


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another one; None for None.

    Arguments:
        permutation: the numbers from 0 to n - 1 in some order

    Example:
        >>> turnout.nn.utils.rnn.invert_permutation(turnout.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The sequences of a padded tensor without the padding.

    Arguments:
        input: the sequences [T, N, ...]
        lengths: the length of each sequence, at least 1
        batch_first: whether the input is [N, T, ...]
        enforce_sorted: whether the longest sequence has to come first; otherwise the sequences are sorted

    Raises:
        ArgumentError: the lengths do not fit the input, or are not sorted.

    Example:
        >>> padded = turnout.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
        >>> packed = turnout.nn.utils.rnn.pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False)
        >>> packed.data, packed.sorted_indices
        (tensor([4, 1, 3, 5, 2, 6]), tensor([2, 0, 1]))
    """
    known = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    x = input.transpose(0, 1) if batch_first else input
    steps, batch = x.shape[:2]
    if len(known) != batch or not known:
        raise ArgumentError(f"pack_padded_sequence: there must be one length for each of {batch} sequences, got {len(known)}")
    if min(known) < 1 or max(known) > steps:
        raise ArgumentError(f"pack_padded_sequence: lengths must be from 1 to {steps}, the steps of the input, got {known}")
    order = None
    if not enforce_sorted:
        places = sorted(range(batch), key=lambda i: -known[i])
        known = [known[i] for i in places]
        order = turnout.tensor(places, device=input.device)
        x = x.index_select(1, order)
    elif known != sorted(known, reverse=True):
        raise ArgumentError(
            f"pack_padded_sequence: lengths must not increase, got {known}\n  to fix  pass enforce_sorted=False, which sorts them"
        )
    counts = [sum(n > step for n in known) for step in range(known[0])]
    data = turnout.cat([x[step, :count] for step, count in enumerate(counts)])
    return PackedSequence(data, turnout.tensor(counts, device="cpu"), order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The sequences in a padded tensor [T, N, ...], in the order in which they were packed, and their lengths on the cpu.

    Arguments:
        sequence: the packed sequences
        batch_first: whether the result is [N, T, ...]
        padding_value: the value of the padding
        total_length: the number of steps, by default the length of the longest sequence

    Raises:
        ArgumentError: `total_length` is less than the longest sequence.

    Example:
        >>> packed = turnout.nn.utils.rnn.pack_sequence([turnout.tensor([1, 2]), turnout.tensor([3])])
        >>> turnout.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    counts = sequence.batch_sizes.tolist()
    steps = len(counts) if total_length is None else total_length
    if steps < len(counts):
        raise ArgumentError(f"pad_packed_sequence: total_length must be at least {len(counts)}, the longest length, got {steps}")
    rows = [_extended(row, counts[0] - row.shape[0], padding_value) for row in sequence.data.split(counts)]
    padded = _extended(turnout.stack(rows), steps - len(counts), padding_value)
    lengths = turnout.tensor([sum(count > i for count in counts) for i in range(counts[0])], device="cpu")
    places = sequence.unsorted_indices
    if places is not None:
        padded, lengths = padded.index_select(1, places), lengths.index_select(0, places.cpu())
    return padded.transpose(0, 1) if batch_first else padded, lengths


def _extended(tensor: Tensor, more: int, value: float) -> Tensor:
    """The tensor with more entries of one value behind those of the first dimension."""
    return turnout.cat([tensor, tensor.new_full((more, *tensor.shape[1:]), value)]) if more else tensor


def pad_sequence(
    sequences: Tensor | Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences [T_i, ...] in one padded tensor [T, N, ...].

    Arguments:
        sequences: the sequences; a tensor has one in each row
        batch_first: whether the result is [N, T, ...]
        padding_value: the value of the padding
        padding_side: "right" or "left"

    Raises:
        ArgumentError: there is no sequence, or the side is unknown.

    Example:
        >>> turnout.nn.utils.rnn.pad_sequence([turnout.tensor([1, 2]), turnout.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    each = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not each or not all(isinstance(one, Tensor) for one in each):
        raise ArgumentError("pad_sequence: sequences must be one or more tensors")
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"pad_sequence: padding_side must be 'left' or 'right', got {padding_side!r}")
    steps = max(one.shape[0] for one in each)
    before = padding_side == "left"

    def padded(one: Tensor) -> Tensor:
        more = steps - one.shape[0]
        if not more:
            return one
        return functional.pad(one, [0, 0] * (one.ndim - 1) + ([more, 0] if before else [0, more]), value=padding_value)

    return turnout.stack([padded(one) for one in each], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor [T, N, ...].

    Arguments:
        padded_sequences: the padded tensor
        lengths: the length of each sequence
        batch_first: whether the tensor is [N, T, ...]

    Raises:
        ShapeError: there is not one length for each sequence.

    Example:
        >>> turnout.nn.utils.rnn.unpad_sequence(turnout.tensor([[1, 3], [2, 0]]), turnout.tensor([2, 1]))
        [tensor([1, 2]), tensor([3])]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    known = lengths.tolist()
    if len(known) != x.shape[0]:
        raise ShapeError(f"unpad_sequence: there must be one length for each of {x.shape[0]} sequences, got {len(known)}")
    return [row[:length] for row, length in zip(x.unbind(0), known, strict=True)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences [T_i, ...], packed.

    Arguments:
        sequences: the sequences
        enforce_sorted: whether the longest has to come first; otherwise they are sorted

    Raises:
        ArgumentError: there is no sequence, or they are not sorted.

    Example:
        >>> turnout.nn.utils.rnn.pack_sequence([turnout.tensor([1, 2]), turnout.tensor([3])]).batch_sizes
        tensor([2, 1])
    """
    each = list(sequences)
    return pack_padded_sequence(pad_sequence(each), [one.shape[0] for one in each], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences [T_i, ...] of packed ones.

    Arguments:
        packed_sequences: the packed sequences

    Example:
        >>> packed = turnout.nn.utils.rnn.pack_sequence([turnout.tensor([1, 2]), turnout.tensor([3])])
        >>> turnout.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
