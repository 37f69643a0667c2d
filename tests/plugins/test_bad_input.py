"""Bad input, over the families of operators: the whole text of the error, or the number that is right; inputs stay as they were.

`x` is 0 to 11 in shape [3, 4], `e` is empty, `s` has no dims, `i` holds indices of which one is out of range.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import turnout
from outcomes import refused
from turnout.errors import (
    AliasError,
    ArgumentError,
    CallError,
    DataError,
    DeviceError,
    DimError,
    DTypeError,
    LinAlgError,
    OutOfMemoryError,
    RangeError,
    ShapeError,
)  # fmt: skip
from turnout_aten.nn import functional as F

HUGE = 10**15


def given() -> dict[str, turnout.Tensor]:
    return {
        "x": turnout.arange(12.0).reshape(3, 4),
        "e": turnout.zeros(0, 3),
        "s": turnout.tensor(2.0),
        "i": turnout.tensor([[0, 9]]),
    }


# ruff: noqa: E501 - rows of a table
# fmt: off
REFUSED: list[tuple[str, type[Exception], str]] = [
    # negative steps, dims out of range or named twice
    ("x[::0]", ShapeError, "slice: step must be positive, got 0"),
    ("x.unfold(0, 2, 0)", ShapeError, "unfold: step must be positive, got 0"),
    ("x.narrow(0, 2, 5)", ShapeError, "narrow: start 2 and length 5 reach outside dim 0 of length 3"),
    ("x.select(0, -4)", DimError, "select: index -4 is out of range for dim 0 of length 3"),
    ("x.sum(2)", DimError, "sum: dim 2 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    ("x.softmax(-3)", DimError, "softmax: dim -3 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    ("x.sum([0, -2])", ShapeError, "sum: dims [0, -2] name a dimension twice"),
    ("x.permute(0, 0)", ShapeError, "permute: dims [0, 0] name a dimension twice"),
    ("x.size(2)", DimError, "size: dim 2 is out of range for a tensor of shape [3, 4]"),
    ("s.size(0)", DimError, "size: dim 0 is out of range for a tensor of shape []"),
    ("s.squeeze(1)", DimError, "squeeze: dim 1 is out of range for a tensor of 0 dimensions, which takes -1 to 0"),
    # shapes
    ("x.reshape(-1, -1)", ShapeError, "reshape: shape [-1, -1]: only one length can be -1"),
    ("x.t().view(12)", ShapeError, "view: shape [12] needs a copy of shape [4, 3] with strides [1, 4]; use reshape"),
    ("turnout.zeros(3, -1)", ShapeError, "shape [3, -1] has a negative length"),
    ("turnout.cat([x, x.t()])", ShapeError, "cat: shapes [3, 4] and [4, 3] must be equal apart from dim 0"),
    ("x @ x", ShapeError, "mm: shapes [3, 4] and [3, 4] do not match: 4 against 3"),
    ("s @ x", ShapeError, "matmul: both operands need at least one dimension, got shapes [] and [3, 4]"),
    ("turnout.einsum('ij,jk', x, x)", ShapeError, "einsum: 'j' of 'ij,jk' has two lengths, 4 and 3"),
    ("x.repeat(-1, 2)", ShapeError, "repeat: repeats must not be negative, got [-1, 2]"),
    ("x.clamp()", ArgumentError, "clamp: at least one of 'min' and 'max' must be given"),
    ("turnout.clamp_(x)", ArgumentError, "clamp: at least one of 'min' and 'max' must be given"),
    ("x.split(0)", ShapeError, "split: split_size must be positive, got 0"),
    ("turnout.linspace(0, 1, -1)", ShapeError, "linspace: steps must not be negative, got -1"),
    # nothing to choose from
    ("e.max()", ShapeError, "max: a tensor of shape [0, 3] has no element to choose"),
    ("e.amax(0)", DimError, "amax: cannot choose an element from dim 0 of shape [0, 3], which has length 0"),
    ("e.argmax(0)", DimError, "argmax: cannot choose an element from dim 0 of shape [0, 3], which has length 0"),
    ("x.topk(5)", ShapeError, "topk: k must be 0 to 4, the length of dim 1 of shape [3, 4], got 5"),
    ("x.kthvalue(0)", ArgumentError, "kthvalue: k must be 1 to 4, the length of the dim, got 0"),
    ("x.item()", ArgumentError, "item: expected a tensor with one element, got shape [3, 4]; use tolist()"),
    # indices
    ("x.gather(0, i)", DimError, "gather: index 9 is out of bounds for a dimension of size 3"),
    ("x.scatter(0, i, 1.0)", DimError, "scatter: index 9 is out of bounds for a dimension of size 3"),
    ("x.index_select(0, i[0])", DimError, "index_select: index 9 is out of bounds for a dimension of size 3"),
    ("x[i]", DimError, "index: index 9 is out of bounds for a dimension of size 3"),
    ("F.one_hot(-i)", ShapeError, "one_hot: a class index is negative"),
    ("turnout.bincount(-i[0])", ArgumentError, "bincount: values must not be negative, got -9"),
    # values
    ("turnout.arange(0, math.inf)", ArgumentError, "arange: start, end and step must be finite, got 0, inf and 1"),
    ("turnout.arange(0, 1, math.nan)", ArgumentError, "arange: start, end and step must be finite, got 0, 1 and nan"),
    ("turnout.full((2,), math.nan, dtype=turnout.int16)", RangeError,
     "full: argument 'fill_value' is nan, which does not fit in int16 (-32768 to 32767); choose another number or a wider dtype"),
    ("turnout.full((2,), -math.inf, dtype=turnout.int8)", RangeError,
     "full: argument 'fill_value' is -inf, which does not fit in int8 (-128 to 127); choose another number or a wider dtype"),
    ("turnout.multinomial(s.log() * math.nan + turnout.ones(2), 1)", ArgumentError, "multinomial: a probability is negative, infinite or nan"),
    ("turnout.bernoulli(s)", ArgumentError, "bernoulli: probabilities must lie between 0 and 1"),
    ("turnout.quantile(x, 2.0)", ArgumentError, "quantile: q must lie between 0 and 1, got 2.0"),
    ("i // 0", ArgumentError, "floor_divide: integer division by zero"),
    ("i % 0", ArgumentError, "remainder: integer division by zero"),
    ("i ** -1", ArgumentError, "pow: integers to negative integer powers have no integer result; convert to a float dtype first"),
    ("i[:0] ** -1", ArgumentError, "pow: integers to negative integer powers have no integer result; convert to a float dtype first"),
    ("i[:0].clone().pow_(-1)", ArgumentError, "pow: integers to negative integer powers have no integer result; convert to a float dtype first"),
    ("(x > 1) - (x > 2)", DTypeError, "sub: subtraction is not defined for bool operands; use logical_xor, or ~x to invert a mask"),
    ("turnout.linalg.cholesky(-turnout.eye(2))", LinAlgError, "linalg.cholesky: the input is not positive-definite; see the leading minor of order 1"),
    # layers
    ("F.conv2d(x[None, None], turnout.ones(1, 1, 5, 5))", ShapeError, "convolution: a kernel of [5, 5] with dilation [1, 1] does not fit the padded input, [3, 4]"),
    ("F.conv2d(x[None, None], x[None, None], stride=0)", ShapeError, "convolution: 'stride' must be at least 1, got [0, 0]"),
    ("F.max_pool2d(x[None], 5)", ShapeError, "max_pool2d: a kernel of [5, 5] does not fit 'self' of shape [1, 3, 4] with padding [0, 0]"),
    ("F.pad(x, (1,))", ShapeError, "pad: 'pad' must hold two numbers for each of at most 2 dims, got [1]"),
    ("x.index_fill(0, i[0, :1], turnout.tensor(1j))", DTypeError, "index_fill: a complex number cannot be written into a float32 tensor"),
    ("turnout.lerp(x, x, 1j)", DTypeError, "lerp: a complex number cannot be written into a float32 tensor"),
    ("x.scatter(0, i - i, 1j)", DTypeError, "scatter: a complex number cannot be written into a float32 tensor"),
    ("F.threshold(x, 0, 1j)", DTypeError, "threshold: a complex number cannot be written into a float32 tensor"),
    ("F.hardtanh(x, 1j)", DTypeError, "hardtanh: a complex number cannot be written into a float32 tensor"),
    ("F.softshrink(x, 1j)", DTypeError, "softshrink: a complex number cannot be written into a float32 tensor"),
    ("F.softplus(x, 1, 1j)", DTypeError, "softplus: a complex number cannot be written into a float32 tensor"),
    ("x[0].fill_diagonal_(1)", DimError, "fill_diagonal_: needs at least 2 dimensions, got shape [4]"),
    ("x[None].fill_diagonal_(1)", ShapeError, "fill_diagonal_: all dimensions must have one length, got shape [1, 3, 4]"),
    ("F.embedding(i, x)", DimError, "index_select: index 9 is out of bounds for a dimension of size 3"),
    ("F.cross_entropy(x, turnout.tensor([0, 1, 9]))", DimError, "nll_loss: target 9 is out of bounds for 4 classes"),
    ("turnout.fft.fft(x, n=0)", ShapeError, "fft.fft: cannot transform 0 elements"),
    *((f"turnout.fft.{name}(x, n=-1)", ShapeError, f"fft.{name}: cannot transform -1 elements")
      for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    ("turnout.linalg.eigh(turnout.full((2, 2), math.nan))", LinAlgError, "linalg.eigh: the input has infinite or NaN elements"),
    ("turnout.linalg.eigvalsh(turnout.full((2, 2), math.nan))", LinAlgError, "linalg.eigh: the input has infinite or NaN elements"),
    ("turnout.linalg.eigvalsh(turnout.full((2, 2), math.inf))", LinAlgError, "linalg.eigh: the input has infinite or NaN elements"),
    ("F.softsign([1])", CallError, "softsign: argument 'input' must be a tensor, got list [1]"),
    ("F.margin_ranking_loss(x, 2, x)", CallError, "margin_ranking_loss: argument 'input2' must be a tensor, got int 2"),
    ("turnout.masked.sum(x, 0, mask='m')", CallError, "sum: argument 'mask' must be a tensor or None, got str 'm'"),
    ("turnout.numel(3)", CallError, "numel: argument 'input' must be a tensor, got int 3"),
    ("turnout.can_cast(turnout.int8, 'a')", DTypeError, "can_cast: argument 'to' must be a dtype such as turnout.float32, got str 'a'"),
    ("turnout.can_cast(1, 'a')", DTypeError, "can_cast: argument 'from_' must be a dtype such as turnout.float32, got int 1"),
    ("x.is_alias_of(3)", CallError, "is_alias_of: argument 'other' must be a tensor, got int 3"),
    ("F.embedding(x, 3, 2)", CallError, "embedding: argument 'weight' must be a tensor, got int 3"),
    ("F.gaussian_nll_loss(x, x, 'a')", CallError, "gaussian_nll_loss: argument 'var' must be a number or a tensor, got str 'a'"),
    ("F.fractional_max_pool2d(x[0], 2, output_size=1)", ShapeError, "fractional_max_pool2d: 'input' must have 3 or 4 dimensions, none but the batch empty; got shape [4]"),
    ("F.max_unpool3d(x, x, 2)", ShapeError, "max_unpool3d: 'input' must have 4 or 5 dimensions, none but the batch empty; got shape [3, 4]"),
    ("turnout.device([1])", DeviceError, "a device is named by a string such as 'cpu' or 'cuda:0', got [1]"),
    ("turnout.device('cpu', 'a')", DeviceError, "the index of a device is an int, got 'a' for 'cpu'"),
    ("F.dropout(x, 1.5)", ArgumentError, "dropout: p must lie between 0 and 1, got 1.5"),
    ("F.batch_norm(x[:1], x[0], x[1], training=True)", ArgumentError, "batch_norm: more than one element per channel is needed in training, got shape [1, 4]"),
    ("F.fractional_max_pool2d(x[None], 2)", ArgumentError, "fractional_max_pool2d: give output_size or output_ratio"),
    ("F.interpolate(x[None, None], size=3, scale_factor=2.0)", ArgumentError, "interpolate: give one of size and scale_factor"),
    ("F.interpolate(x[None, None], size=3, mode='trilinear')", ArgumentError, "interpolate: mode 'trilinear' does not resize 4 dimensions"),
    ("F.mse_loss(x, x, 'average')", ArgumentError, "mse_loss: argument 'reduction' must be one of none, mean, sum, got 'average'"),
    ("F.conv2d(turnout.ones(1, 3, 4, 4), turnout.ones(2, 2, 3, 3))", ShapeError, "convolution: 'weight' of shape [2, 2, 3, 3] with 1 groups takes 2 channels, 'input' has shape [1, 3, 4, 4]"),
    ("F.conv1d(turnout.ones(1, 1, 2), turnout.ones(1, 1, 3))", ShapeError, "convolution: a kernel of [3] with dilation [1] does not fit the padded input, [2]"),
    ("F.conv_transpose2d(turnout.ones(0, 3, 4, 5), turnout.ones(3, 2, 3, 3), padding=3)", ShapeError, "convolution: padding [3, 3] leaves nothing of the transposed result, whose lengths would be [0, 1]"),
    # objects of other types where a word is expected, and arguments that another one requires
    ("turnout.zeros_like(x, memory_format=[1])", ArgumentError, "memory_format must be contiguous_format, preserve_format, channels_last or channels_last_3d, got [1]"),
    ("turnout.zeros_like(x, layout=x.numpy()[0, :2])", ArgumentError, "layout must be turnout.strided, got array([0., 1.], dtype=float32)"),
    ("x.is_contiguous(memory_format=[1])", ArgumentError, "is_contiguous: [1] is not a memory format that a tensor can have"),
    ("turnout.ops.aten.native_batch_norm_backward(x, x, None, None, None, None, None, True, 1e-5, [True] * 3)", ArgumentError, "native_batch_norm_backward: in training, save_mean and save_invstd must be given"),
    ("turnout.ops.aten.native_batch_norm_backward(x, x, None, None, None, x, x, False, 1e-5, [True] * 3)", ArgumentError, "native_batch_norm_backward: without training, running_mean and running_var must be given"),
    ("turnout.nan_to_num(x, x.numpy()[0, :2])", CallError, "aten::nan_to_num: argument 'nan' must be float, got ndarray array([0., 1.], dtype=float32)"),
    ("turnout.ops.aten.add.Scalar(x, x.numpy()[0, :2])", CallError, "aten::add.Scalar: argument 'other' must be a number, got ndarray array([0., 1.], dtype=float32)"),
    # sizes that do not fit the values or the other arguments
    ("turnout.repeat_interleave(turnout.tensor([1, 2]), output_size=5)", ShapeError, "repeat_interleave: output_size is 5, but the result has length 3"),
    ("turnout.repeat_interleave(turnout.tensor([1, 2]), output_size=2)", ShapeError, "repeat_interleave: output_size is 2, but the result has length 3"),
    ("turnout.repeat_interleave(turnout.tensor([0, 0]), output_size=1)", ShapeError, "repeat_interleave: output_size is 1, but the result has length 0"),
    ("turnout.ops.aten._fft_c2r(x[:, :1] * 1j, [1], 2, 6)", ShapeError, "fft: 6 elements along dim 1 are made of 4, got 1"),
    ("turnout.ops.aten._fft_c2r(turnout.ones(2, 5) * 1j, [1], 2, 6)", ShapeError, "fft: 6 elements along dim 1 are made of 4, got 5"),
    ("x[0].mT", ShapeError, "mT needs at least 2 dimensions, this tensor has shape [4]"),
    # what leaves the library, and seeds
    ("x.clone().requires_grad_().numpy()", AliasError, "numpy: the tensor requires a gradient; use .detach().numpy(), or .numpy(force=True)"),
    ("x.to('meta').numpy()", CallError, "numpy: the tensor is on meta; use .cpu().numpy(), or .numpy(force=True)"),
    ("x.clone().requires_grad_().__dlpack__()", BufferError, "a tensor that requires a gradient cannot be exported through DLPack; detach() it first"),
    ("x.to('meta').__dlpack__()", BufferError, "tensors on meta cannot be exported through DLPack"),
    ("turnout.from_dlpack([1])", CallError, "from_dlpack: list has no __dlpack__ and __dlpack_device__"),
    ("turnout.manual_seed(1.5)", CallError, "manual_seed: argument 'seed' must be an int, got float"),
    ("turnout.Generator().set_state((1,))", CallError, "set_state: expected a state from get_state(), two ints of 64 bits; got (1,)"),
    # memory that overlaps, or ends too early
    ("x[:1].expand(3, 4).add_(1)", AliasError, "aten::add_.Scalar: cannot write into an expanded tensor: several of its elements are one memory location; clone() it first"),
    ("x[:1].expand(3, 4).index_fill_(0, turnout.tensor([0, 1]), 1)", AliasError, "aten::copy_: cannot write into an expanded tensor: several of its elements are one memory location; clone() it first"),
    ("x[1:].mul_(x[:-1])", AliasError, "aten::mul_.Tensor: the output and an input share part of their memory; clone() one of them first"),
    ("turnout.exp(x[1:], out=x[:-1])", AliasError, "aten::exp.out: the output and an input share part of their memory; clone() one of them first"),
    ("turnout.as_strided(x, (5, 5), (4, 1))", ShapeError, "as_strided: size [5, 5], stride [4, 1] and offset 0 reach element 20 of a storage with 12"),
    ("x[::2**62]", ShapeError, "a tensor on cpu has strides of less than 2**63 bytes, got stride [18446744073709551616, 1] of elements of 4 bytes"),
    ("turnout.as_strided(x, (2, 2), (-1, 1))", ShapeError, "as_strided: size [2, 2] and stride [-1, 1] must not be negative"),
]
# fmt: on


def evaluated(text: str, names: dict[str, turnout.Tensor]) -> Any:
    return eval(text, {"turnout": turnout, "F": F, "math": math}, dict(names))


@pytest.mark.parametrize(("text", "kind", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_bad_input_is_refused_and_changes_nothing(text: str, kind: type[Exception], says: str) -> None:
    names = given()
    before = {name: t.tolist() for name, t in names.items()}
    assert refused(kind, evaluated, text, names) == says
    assert {name: t.tolist() for name, t in names.items()} == before


REMEDY = "\n  to fix     use smaller tensors or a smaller dtype, or delete tensors that are no longer needed"
# fmt: off
TOO_LARGE = [
    ("turnout.zeros(HUGE)", "", "3.6 PiB (float32 [1000000000000000])", ""),
    ("turnout.empty(HUGE, dtype=turnout.int8)", "", "909.5 TiB (int8 [1000000000000000])", ""),
    ("turnout.arange(HUGE)", "aten::arange: ", "7.1 PiB (int64 [1000000000000000])", "end: int 1000000000000000, device: Device device('cpu')"),
    ("s.expand(HUGE) + 1", "aten::add.Scalar: ", "3.6 PiB (float32 [1000000000000000])", "self: Tensor float32 [1000000000000000] on cpu, other: int 1"),
    ("s.expand(HUGE).clone()", "aten::clone: ", "3.6 PiB (float32 [1000000000000000])", "self: Tensor float32 [1000000000000000] on cpu"),
    ("turnout.eye(10**8)", "aten::eye: ", "35.5 PiB (float32 [100000000, 100000000])", "n: int 100000000, device: Device device('cpu')"),
    ("s.expand(10**7, 1) @ s.expand(1, 10**7)", "aten::mm: ", "363.8 TiB (float32 [10000000, 10000000])",
     "self: Tensor float32 [10000000, 1] on cpu, mat2: Tensor float32 [1, 10000000] on cpu"),
    ("F.pad(x, (0, HUGE))", "aten::constant_pad_nd: ", "10.7 PiB (float32 [3, 1000000000000004])",
     "self: Tensor float32 [3, 4] on cpu, pad: tuple (0, 1000000000000000)"),
    ("s.expand(HUGE).sort()", "aten::sort.stable: ", "3.6 PiB (float32 [1000000000000000])",
     "self: Tensor float32 [1000000000000000] on cpu, stable: bool False"),
    ("turnout.zeros(2**62, 4)", "", "64.0 EiB (float32 [4611686018427387904, 4])", ""),
]
# fmt: on


@pytest.mark.parametrize(("text", "operator", "size", "arguments"), TOO_LARGE, ids=[row[0] for row in TOO_LARGE])
def test_a_result_that_no_memory_holds_names_operator_size_and_arguments(text, operator, size, arguments) -> None:
    with pytest.raises(OutOfMemoryError) as caught:
        evaluated(text.replace("HUGE", str(HUGE)), given())
    listed = f"\n  arguments  {arguments}" if arguments else ""
    assert str(caught.value) == f"{operator}cpu has no room for {size}{listed}{REMEDY}"
    assert isinstance(caught.value, (MemoryError, RuntimeError))
    assert isinstance(caught.value.__cause__, (MemoryError, ValueError))
    assert f"({caught.value.dtype.name} {list(caught.value.shape)})" in size


def test_a_tensor_has_at_most_64_dims() -> None:
    assert refused(ShapeError, lambda: turnout.zeros(1).expand([1] * 65)) == "a tensor on cpu has at most 64 dims, got 65"
    assert refused(ShapeError, lambda: turnout.zeros([1] * 65)) == "a tensor on cpu has at most 64 dims, got 65"


@pytest.mark.parametrize("data", [1.0, 1, [1, 2.5], [], turnout.tensor(1.0)], ids=repr)
def test_data_of_more_dims_than_a_device_has_is_refused_with_their_number(data) -> None:
    dims = 65 + isinstance(data, list)
    for _ in range(65):
        data = [data]
    assert refused(ShapeError, lambda: turnout.tensor(data)) == f"a tensor on cpu has at most 64 dims, got {dims}"


class Nested:
    """A sequence that is nested without an end, in new objects each time."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Nested:
        return Nested()


def looped(wide: int, within: int) -> list[Any]:
    """A list of `wide` lists, which lead back to it after `within` more."""
    made: list[Any] = []
    inner: Any = made
    for _ in range(within):
        inner = [inner]
    made += [inner] * wide
    return made


@pytest.mark.parametrize("make", ["tensor", "as_tensor", "asarray", "new_tensor"])
@pytest.mark.parametrize("dtype", [None, turnout.float32], ids=str)
def test_data_without_an_end_is_refused_at_once(make, dtype) -> None:
    function = getattr(turnout, make, turnout.ones(1).new_tensor)
    for wide in (1, 1000):
        for within in (0, 1, 5):
            data = looped(wide, within)
            assert refused(DataError, lambda data=data: function(data, dtype=dtype)) == "tensor: the data contains itself"
    assert refused(DataError, lambda: function(Nested(), dtype=dtype)) == "tensor: the data is nested deeper than 500 levels"


def test_a_list_that_occurs_twice_is_no_circle() -> None:
    row = [1.0, 2.0]
    assert turnout.tensor([[row, row], [row, row]]).shape == (2, 2, 2)


def test_meta_takes_any_size() -> None:
    x = turnout.zeros(HUGE, device="meta")
    assert (x + 1).sort().values.shape == (HUGE,)
    assert (x[:, None] * x).shape == (HUGE, HUGE)
    assert turnout.arange(HUGE, device="meta").sum().shape == ()


# fmt: off
ANSWERED = [
    ("e.sum()", 0.0),
    ("e.sum(0)", [0.0, 0.0, 0.0]),
    ("e.prod(0)", [1.0, 1.0, 1.0]),
    ("e.mean()", math.nan),
    ("e.all()", True),
    ("e.any()", False),
    ("turnout.cat([e, e]).shape", (0, 3)),
    ("(e @ e.t()).shape", (0, 0)),
    ("(e.t() @ e)", [[0.0] * 3] * 3),
    ("turnout.linalg.det(e[:, :0])", 1.0),
    ("e.sort().values.shape", (0, 3)),
    ("F.softmax(e, 0).shape", (0, 3)),
    *((f"({how}).shape", (0, 3)) for how in ("e.long() // 0", "e.long() % 0", "turnout.fmod(e.long(), turnout.tensor(0))", "e.long() // turnout.zeros(3).long()")),
    ("s.sum(0)", 2.0),
    ("s.sort().values", 2.0),
    ("s.cumsum(0)", 2.0),
    ("(s * math.inf - s * math.inf)", math.nan),
    ("(s * math.nan).clamp(0, 1)", math.nan),
    ("turnout.tensor([1.0, math.nan, -math.inf]).sort().values", [-math.inf, 1.0, math.nan]),
    ("turnout.tensor([1.0, math.nan]).max()", math.nan),
    ("turnout.tensor([1.0, math.nan, 3.0]).argmax()", 1),
    ("turnout.tensor([1.0, math.nan, 3.0]).nansum()", 4.0),
    ("turnout.tensor([math.inf, 0.0]).softmax(0)", [math.nan, math.nan]),
    ("turnout.tensor([-math.inf, 0.0]).softmax(0)", [0.0, 1.0]),
    ("turnout.tensor([math.inf, -1.0]).logsumexp(0)", math.inf),
]
# fmt: on


@pytest.mark.parametrize(("text", "expected"), ANSWERED, ids=[row[0] for row in ANSWERED])
def test_what_is_odd_but_has_an_answer_gets_it(text: str, expected: Any) -> None:
    found = evaluated(text, given())
    plain = found.tolist() if isinstance(found, turnout.Tensor) else tuple(found) if isinstance(found, turnout.Size) else found
    assert str(plain) == str(expected)


def test_a_copy_between_views_that_overlap_reads_before_it_writes() -> None:
    x = turnout.arange(4)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2]
