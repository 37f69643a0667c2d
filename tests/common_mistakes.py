"""Common mistakes: what each raises in PyTorch and here, as names of classes.

A row is the mistake, a function of the library that makes it, the class that PyTorch raises, and the class that Turnout raises,
which is also PyTorch's. `tests/plugins/test_error_kinds.py` compares Turnout with the table,
`tests/oracle/test_error_kinds_torch.py` PyTorch.
"""

# ruff: noqa: E501 - rows of a table

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Row = tuple[str, Callable[[Any], object], str, str]

# fmt: off
MISTAKES: tuple[Row, ...] = (
    # making tensors
    ("a ragged list", lambda t: t.tensor([[1, 2], [3]]), "ValueError", "DataError"),
    ("a number beside a list", lambda t: t.tensor([1, [2]]), "TypeError", "DataError"),
    ("a list beside a number", lambda t: t.tensor([[1], 2]), "TypeError", "DataError"),
    ("a text as data", lambda t: t.tensor("a"), "TypeError", "DataError"),
    ("texts as data", lambda t: t.tensor(["a"]), "ValueError", "DataError"),
    ("None as data", lambda t: t.tensor(None), "RuntimeError", "DataError"),
    ("an object as data", lambda t: t.tensor([object()]), "RuntimeError", "DataError"),
    ("a number too large for int64", lambda t: t.tensor(2**70), "ValueError", "RangeError"),
    ("a negative size", lambda t: t.zeros(-1), "RuntimeError", "ShapeError"),
    ("a float as a size", lambda t: t.zeros(2.5), "TypeError", "CallError"),
    ("an unknown device", lambda t: t.device("foo"), "RuntimeError", "DeviceError"),
    ("a device without an index", lambda t: t.device("cpu:"), "RuntimeError", "DeviceError"),
    ("a tensor on an unknown device", lambda t: t.zeros(2, device="foo"), "RuntimeError", "DeviceError"),
    ("a name as a dtype", lambda t: t.zeros(2, dtype="float32"), "TypeError", "DTypeError"),
    ("integers that require a gradient", lambda t: t.ones(2, dtype=t.int64, requires_grad=True), "RuntimeError", "DTypeError"),
    ("arange that goes away", lambda t: t.arange(3, 0), "RuntimeError", "ArgumentError"),
    ("full without a value", lambda t: t.full((2,)), "TypeError", "TypeError"),
    # indexing
    ("a float as an index", lambda t: t.ones(3)[1.0], "IndexError", "IndexKindError"),
    ("a text as an index", lambda t: t.ones(3)["a"], "TypeError", "IndexKindError"),
    ("an object as an index", lambda t: t.ones(3)[object()], "IndexError", "IndexKindError"),
    ("a float among indices", lambda t: t.ones(3, 3)[0, 1.5], "IndexError", "IndexKindError"),
    ("an index out of range", lambda t: t.ones(3)[3], "IndexError", "DimError"),
    ("a list out of range", lambda t: t.ones(3)[[5]], "IndexError", "DimError"),
    ("too many indices", lambda t: t.ones(3)[0, 0], "IndexError", "DimError"),
    ("an index of a number", lambda t: t.tensor(1.0)[0], "IndexError", "DimError"),
    ("floats as a tensor of indices", lambda t: t.ones(3)[t.tensor([0.0])], "IndexError", "IndexKindError"),
    ("a ragged list of indices", lambda t: t.ones(3, 3)[[[0, 1], [2]],], "ValueError", "DataError"),
    ("a mask of another size", lambda t: t.ones(3)[t.tensor([True, False])], "IndexError", "DimError"),
    ("a float in a slice", lambda t: t.ones(3)[0.5:], "TypeError", "CallError"),
    ("a step of 0", lambda t: t.ones(3)[::0], "ValueError", "ShapeError"),
    ("a value of another shape", lambda t: t.ones(3).__setitem__(slice(0, 2), t.ones(3)), "RuntimeError", "ShapeError"),
    ("a text as a value", lambda t: t.ones(3).__setitem__(0, "a"), "TypeError", "CallError"),
    # shapes and dims
    ("shapes that do not broadcast", lambda t: t.ones(2) + t.ones(3), "RuntimeError", "ShapeError"),
    ("matrices that do not fit", lambda t: t.ones(2, 3) @ t.ones(2, 3), "RuntimeError", "ShapeError"),
    ("a vector as a matrix", lambda t: t.mm(t.ones(2), t.ones(2)), "RuntimeError", "ShapeError"),
    ("a view of another size", lambda t: t.ones(4).view(3), "RuntimeError", "ShapeError"),
    ("a view that needs a copy", lambda t: t.ones(2, 3).t().view(6), "RuntimeError", "ShapeError"),
    ("a reshape of another size", lambda t: t.ones(4).reshape(3, -1), "RuntimeError", "ShapeError"),
    ("a dim out of range", lambda t: t.ones(2).sum(1), "IndexError", "DimError"),
    ("a dim twice", lambda t: t.ones(2, 2).permute(0, 0), "RuntimeError", "ShapeError"),
    ("a dim out of range of softmax", lambda t: t.softmax(t.ones(2), 1), "IndexError", "DimError"),
    ("a size out of range", lambda t: t.ones(2).size(1), "IndexError", "DimError"),
    ("cat of nothing", lambda t: t.cat([]), "ValueError", "ArgumentError"),
    ("cat of other sizes", lambda t: t.cat([t.ones(2, 2), t.ones(2, 3)]), "RuntimeError", "ShapeError"),
    ("cat of a tensor", lambda t: t.cat(t.ones(2)), "TypeError", "CallError"),
    ("stack of other sizes", lambda t: t.stack([t.ones(2), t.ones(3)]), "RuntimeError", "ShapeError"),
    ("an expand of a long dim", lambda t: t.ones(2).expand(3), "RuntimeError", "ShapeError"),
    ("a maximum of nothing", lambda t: t.ones(0).max(), "RuntimeError", "ShapeError"),
    ("an item of many", lambda t: t.ones(2).item(), "RuntimeError", "ArgumentError"),
    ("the truth of many", lambda t: bool(t.ones(2)), "RuntimeError", "ArgumentError"),
    ("the length of a number", lambda t: len(t.tensor(1.0)), "TypeError", "CallError"),
    ("a loop over a number", lambda t: list(t.tensor(1.0)), "TypeError", "CallError"),
    # dtypes
    ("matrices of two dtypes", lambda t: t.ones(2, 2) @ t.ones(2, 2, dtype=t.float64), "RuntimeError", "DTypeError"),
    ("a float added to integers in place", lambda t: t.ones(2, dtype=t.int64).add_(0.5), "RuntimeError", "DTypeError"),
    ("a mean of integers", lambda t: t.ones(2, dtype=t.int64).mean(), "RuntimeError", "DTypeError"),
    ("bits of floats", lambda t: t.ones(2) & t.ones(2), "RuntimeError", "DTypeError"),
    ("complex numbers in order", lambda t: t.tensor([1j]) < 1, "RuntimeError", "DTypeError"),
    ("a text as an operand", lambda t: t.ones(2) + "a", "TypeError", "TypeError"),
    ("an argument that nobody takes", lambda t: t.sum(t.ones(2), axes=0), "TypeError", "OverloadError"),
    ("an argument that is missing", lambda t: t.matmul(t.ones(2)), "TypeError", "CallError"),
    ("an attribute that is missing", lambda t: t.ones(2).no_such, "AttributeError", "AttributeError"),
    ("a function that is missing", lambda t: t.no_such, "AttributeError", "PublicNameError"),
    # gradients
    ("backward of many", lambda t: t.ones(2, requires_grad=True).mul(2).backward(), "RuntimeError", "GradientError"),
    ("backward of a constant", lambda t: t.ones(1).backward(), "RuntimeError", "GradientError"),
    ("backward twice", lambda t: (y := t.ones(1, requires_grad=True).exp(), y.backward(), y.backward()), "RuntimeError", "GradientError"),
    ("a write into a leaf", lambda t: t.ones(1, requires_grad=True).add_(1), "RuntimeError", "AliasError"),
    ("numpy of a tracked tensor", lambda t: t.ones(1, requires_grad=True).numpy(), "RuntimeError", "AliasError"),
    ("a gradient of another shape", lambda t: setattr(t.ones(2, requires_grad=True), "grad", t.ones(3)), "RuntimeError", "ShapeError"),
    ("a gradient of what was not used", lambda t: t.autograd.grad(t.ones(1, requires_grad=True) * 2, t.ones(1, requires_grad=True)), "RuntimeError", "GradientError"),
    ("jvp of integers", lambda t: t.func.jvp(lambda x: x * 2, (t.arange(3),), (t.arange(3),)), "ValueError", "KindError"),
    ("jacfwd of integers", lambda t: t.func.jacfwd(lambda x: x * 2)(t.arange(3)), "ValueError", "KindError"),
    ("jacrev of integers", lambda t: t.func.jacrev(lambda x: x * 2)(t.arange(3)), "RuntimeError", "KindError"),
    ("in_dims out of range", lambda t: t.func.vmap(lambda x: x, in_dims=5)(t.ones(3)), "ValueError", "VmapDimError"),
    ("out_dims out of range", lambda t: t.func.vmap(lambda x: x, out_dims=5)(t.ones(3)), "IndexError", "VmapDimError"),
    ("results of vmap that are numbers", lambda t: t.func.vmap(lambda x: 3)(t.ones(3)), "ValueError", "VmapArgumentError"),
    # arrays, and places for results
    ("an array that goes backwards", lambda t: t.from_numpy(np.arange(3.0)[::-1]), "ValueError", "DataError"),
    ("an array of another byte order", lambda t: t.from_numpy(np.arange(3, dtype=">i4")), "ValueError", "DataError"),
    ("an array of texts", lambda t: t.from_numpy(np.array(["a"])), "TypeError", "DTypeError"),
    ("a float power in float32", lambda t: t.ones(2).float_power_(2), "RuntimeError", "DTypeError"),
    ("a float power into float32", lambda t: t.float_power(t.ones(2), t.ones(2), out=t.ones(2)), "RuntimeError", "DTypeError"),
    ("a float power of complex numbers into float64", lambda t: t.float_power(t.ones(2) * 1j, 2, out=t.ones(2).double()), "RuntimeError", "DTypeError"),
    ("places that are int32", lambda t: t.ones(3).index_fill(0, t.tensor([0], dtype=t.int32), 1), "IndexError", "IndexKindError"),
    ("places that are floats", lambda t: t.ones(3).index_copy(0, t.ones(1), t.ones(1)), "RuntimeError", "IndexKindError"),
    # members of modules
    ("a member with a dot", lambda t: t.nn.Linear(1, 1).add_module("a.b", t.nn.Tanh()), "KeyError", "MemberNameError"),
    ("a member twice", lambda t: t.nn.Linear(1, 1).register_buffer("weight", t.ones(1)), "KeyError", "MemberNameError"),
    ("a member without a name", lambda t: t.nn.Linear(1, 1).register_parameter(3, None), "TypeError", "CallError"),
    ("a number as training mode", lambda t: t.nn.Linear(1, 1).train(1), "ValueError", "DataError"),
    ("a state that does not fit", lambda t: t.nn.Linear(1, 1).load_state_dict({}), "RuntimeError", "StateError"),
    ("functional_call without all tensors", lambda t: t.func.functional_call(t.nn.Linear(1, 1), {}, (t.ones(1),), strict=True), "RuntimeError", "ArgumentError"),
    # linear algebra and layers
    ("an inverse of a singular matrix", lambda t: t.linalg.inv(t.zeros(2, 2)), "RuntimeError", "LinAlgError"),
    ("a matrix that is not positive", lambda t: t.linalg.cholesky(-t.eye(2)), "RuntimeError", "LinAlgError"),
    ("a determinant of a rectangle", lambda t: t.linalg.det(t.ones(2, 3)), "RuntimeError", "ShapeError"),
    ("classes out of range", lambda t: t.nn.functional.cross_entropy(t.ones(1, 2), t.tensor([5])), "IndexError", "DimError"),
    ("an embedding out of range", lambda t: t.nn.functional.embedding(t.tensor([5]), t.ones(2, 2)), "IndexError", "DimError"),
    ("a reduction that is none", lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(2), reduction="all"), "ValueError", "ArgumentError"),
    ("a mode that is none", lambda t: t.nn.functional.interpolate(t.ones(1, 1, 2), scale_factor=2, mode="no"), "NotImplementedError", "ModeError"),
    ("channels that do not fit", lambda t: t.nn.functional.conv2d(t.ones(1, 3, 4, 4), t.ones(1, 2, 2, 2)), "RuntimeError", "ShapeError"),
    ("a window that is too large", lambda t: t.nn.functional.max_pool2d(t.ones(1, 1, 2, 2), 3), "RuntimeError", "ShapeError"),
    ("a probability above 1", lambda t: t.nn.functional.dropout(t.ones(2), 1.5), "ValueError", "ArgumentError"),
    ("a one_hot of a negative", lambda t: t.nn.functional.one_hot(t.tensor([-1])), "RuntimeError", "ShapeError"),
    ("a seed that is none", lambda t: t.manual_seed(None), "TypeError", "CallError"),
    ("labels of another batch", lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0])), "ValueError", "ShapeError"),
    ("a padding that is none", lambda t: t.nn.functional.pad(t.ones(2), (1, 1), mode="no"), "NotImplementedError", "ModeError"),
    ("a softmax of integers", lambda t: t.softmax(t.ones(2, dtype=t.int64), 0), "NotImplementedError", "DTypeError"),
    ("random integers", lambda t: t.rand(2, dtype=t.int64), "NotImplementedError", "DTypeError"),
    ("a shift of floats", lambda t: t.ones(2) << 1, "NotImplementedError", "DTypeError"),
    ("numbers as dtypes", lambda t: t.promote_types(1, 2), "TypeError", "DTypeError"),
    ("a dtype of a text", lambda t: t.result_type(1, "a"), "TypeError", "CallError"),
)
# fmt: on
