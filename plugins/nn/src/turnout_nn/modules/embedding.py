"""Tables of vectors that are looked up by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from turnout.nn import functional

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn.descriptions import described
from turnout_nn.module import Module
from turnout_nn.parameters import Parameter, empty_parameter

if TYPE_CHECKING:
    from typing import Self


class _Table(Module):
    """A parameter [num_embeddings, embedding_dim], one of whose rows may be for padding: zeros that are not trained."""

    __function__: ClassVar[Any]

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, max_norm: float | None, norm_type: float,
        scale_grad_by_freq: bool, sparse: bool, weight: Tensor | None, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_embeddings < 0 or embedding_dim < 0:
            raise ArgumentError(f"{type(self).__name__}: sizes must not be negative, got {num_embeddings} and {embedding_dim}")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ArgumentError(
                    f"{type(self).__name__}: padding_idx must name one of {num_embeddings} rows, got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if weight is None:
            self.weight = empty_parameter((num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        else:
            if tuple(weight.shape) != (num_embeddings, embedding_dim):
                raise ShapeError(
                    f"{type(self).__name__}: the weight must have shape {[num_embeddings, embedding_dim]}, got "
                    f"{list(weight.shape)}"
                )
            self.weight = Parameter(weight)

    def reset_parameters(self) -> None:
        """Draw the weight from the standard normal distribution; the row for padding is zero."""
        with turnout.no_grad():
            self.weight.normal_()
            if self.padding_idx is not None:
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def _of(cls, embeddings: Tensor, freeze: bool, **options: Any) -> Self:
        if embeddings.ndim != 2:
            raise ShapeError(f"{cls.__name__}: embeddings must be a matrix, got shape {list(embeddings.shape)}")
        make: Any = cls  # each class has arguments of its own
        made: Self = make(*embeddings.shape, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made


class Embedding(_Table):
    """A table of vectors: a tensor of indices, of any shape, gives a tensor with one more dimension.

    The weight [num_embeddings, embedding_dim] is drawn from the standard normal distribution.

    # differs from torch: `sparse` has no effect, gradients are dense.

    Arguments:
        num_embeddings: the number of vectors
        embedding_dim: the length of each
        padding_idx: a row that is zero and gets no gradient
        max_norm: the largest norm of a row; a longer row is scaled down in the table when it is used
        device: where the weight is
        dtype: the dtype of the weight

    Example:
        >>> words = turnout.nn.Embedding(10, 3, padding_idx=0)
        >>> words(turnout.tensor([[1, 0]])).shape
        turnout.Size([1, 2, 3])
    """

    __function__ = functional.embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        super().__init__(num_embeddings, embedding_dim, *options, _weight, device, dtype)
        if _freeze:
            self.weight.requires_grad_(False)

    def forward(self, input: Tensor) -> Tensor:
        """The rows at the indices."""
        return type(self).__function__(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        """The sizes, and what is not the default."""
        return described(
            self, "num_embeddings", "embedding_dim", padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False,
            sparse=False,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Self:  # fmt: skip
        """A module with the given table, which it shares. Raises ShapeError for a tensor that is not a matrix.

        Arguments:
            embeddings: the table [num_embeddings, embedding_dim]
            freeze: whether the table is not trained
            padding_idx: a row that gets no gradient; it keeps its values
            max_norm: the largest norm of a row
            norm_type: the order of that norm
            scale_grad_by_freq: whether gradients are divided by how often an index occurs
            sparse: without effect

        Example:
            >>> turnout.nn.Embedding.from_pretrained(turnout.tensor([[1.0, 2.0], [3.0, 4.0]]))(turnout.tensor(1))
            tensor([3., 4.])
        """
        return cls._of(
            embeddings, freeze, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """A table of vectors: each bag of indices gives the sum, the mean or the maximum of its rows.

    Bags are the rows of a 2-dim input, or start at `offsets` in a 1-dim one. The weight [num_embeddings, embedding_dim] is drawn
    from the standard normal distribution.

    # differs from torch: `sparse` has no effect, gradients are dense.

    Arguments:
        num_embeddings: the number of vectors
        embedding_dim: the length of each
        max_norm: the largest norm of a row; a longer row is scaled down in the table when it is used
        device: where the weight is
        dtype: the dtype of the weight

    Example:
        >>> bags = turnout.nn.EmbeddingBag(10, 3, mode="sum")
        >>> bags(turnout.tensor([1, 2, 4]), turnout.tensor([0, 2])).shape
        turnout.Size([2, 3])
    """

    __function__ = functional.embedding_bag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        super().__init__(num_embeddings, embedding_dim, *options, _weight, device, dtype)
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """One row for each bag."""
        return type(self).__function__(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The sizes, the mode, and what is not the default."""
        first = described(self, "num_embeddings", "embedding_dim", max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return f"{first}, {described(self, 'mode=', padding_idx=None)}"

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:  # fmt: skip
        """A module with the given table, which it shares. Raises ShapeError for a tensor that is not a matrix.

        Arguments:
            embeddings: the table [num_embeddings, embedding_dim]
            freeze: whether the table is not trained
            max_norm: the largest norm of a row
            norm_type: the order of that norm
            scale_grad_by_freq: whether gradients are divided by how often an index occurs
            mode: "sum", "mean" or "max"
            sparse: without effect
            include_last_offset: whether `offsets` ends with the number of indices
            padding_idx: a row that takes no part

        Example:
            >>> bags = turnout.nn.EmbeddingBag.from_pretrained(turnout.tensor([[1.0, 2.0], [3.0, 4.0]]))
            >>> bags(turnout.tensor([[0, 1]]))
            tensor([[2., 3.]])
        """
        return cls._of(
            embeddings, freeze, max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode,
            sparse=sparse, include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip


describe(globals())
