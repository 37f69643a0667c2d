"""The text of a tensor, in PyTorch's layout: `tensor([1., 2.])`.

Large tensors are shortened; an unusual device, dtype or gradient state follows the elements. The elements are read from the
host bytes without calling an operator, so printing never appears in a trace.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX, FLOAT, bool_, get_default_dtype, int64
from turnout.errors import NoDataError
from turnout_aten.tensor import host_bytes as elements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

PRECISION = 4  # digits after the point
THRESHOLD = 1000  # elements; a tensor with more is shortened
EDGE = 3  # elements shown at each end of a shortened dim
LINE = 80  # characters

_PREFIX, _FAKE = "tensor(", "FakeTensor("


def tensor_text(tensor: Tensor) -> str:
    """The text of `repr(tensor)`."""
    fake = tensor.fake_mode is not None
    prefix = _FAKE if fake else _PREFIX
    indent = len(prefix)
    try:
        body = "..." if fake else _body(tensor, indent)
    except NoDataError:
        body = "..."
    return _with_suffixes(prefix + body, _suffixes(tensor, body), indent)


# ---- the elements


def _body(tensor: Tensor, indent: int) -> str:
    shape = tensor.shape
    if 0 in shape:
        return "[]"
    shown = shape
    array = tensor.array
    if tensor.numel() > THRESHOLD:
        shown = tuple([min(length, 2 * EDGE) for length in shape])
        array = _edges(tensor, shown)
    tree = _tree(tensor.device.backend.to_host(array), tensor, shown, 0, 0)
    formatter = _formatter(_leaves(tree), tensor.dtype.category)
    if not shape:
        return formatter(tree)
    return _lines(tree, len(shape), indent, formatter)


class _Gap:
    """A marker for omitted elements."""


_GAP = _Gap()


def _edges(tensor: Tensor, shown: Sequence[int]) -> Any:
    """A view of the elements that a shortened text shows: a long dim becomes two, its ends and the places in each."""
    storage = tensor.storage
    root, offset = (tensor.array, 0) if storage is None else (storage.array, tensor.offset)
    shape: list[int] = []
    strides: list[int] = []
    for length, count, stride in zip(tensor.shape, shown, tensor.stride(), strict=True):
        if length > count:
            shape += [2, EDGE]
            strides += [(length - EDGE) * stride, stride]
        else:
            shape.append(length)
            strides.append(stride)
    return tensor.device.backend.strided(root, tuple(shape), tuple(strides), offset)


def _tree(data: bytes | memoryview, tensor: Tensor, shown: Sequence[int], dim: int, start: int) -> Any:
    """The shown elements as nested lists, with `_GAP` for omitted ones. `start` is the index of the first element."""
    if dim == len(shown):
        return elements.decode_at(data, tensor.dtype, start)
    step = math.prod(shown[dim + 1 :])
    tree = [_tree(data, tensor, shown, dim + 1, start + i * step) for i in range(shown[dim])]
    if shown[dim] < tensor.shape[dim]:
        tree.insert(EDGE, _GAP)
    return tree


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, list):
        return [leaf for branch in tree for leaf in _leaves(branch)]
    return [] if tree is _GAP else [tree]


def _lines(tree: list[Any], dims: int, indent: int, formatter: _Formatter) -> str:
    if dims > 1:
        inner = ["..." if branch is _GAP else _lines(branch, dims - 1, indent + 1, formatter) for branch in tree]
        return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(inner) + "]"
    texts = [" ..." if leaf is _GAP else formatter(leaf) for leaf in tree]
    per_line = max(1, (LINE - indent) // (formatter.width + 2))
    rows = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"


# ---- numbers


class _Formatter:
    """Formats all numbers of one tensor the same way, right-aligned to the longest."""

    width = 0

    def __call__(self, value: Any) -> str:
        return self.text(value).rjust(self.width)

    def text(self, value: Any) -> str:
        return str(value)

    def fit(self, values: Sequence[Any]) -> _Formatter:
        self.width = max((len(self.text(value)) for value in values), default=0)
        return self


class _FloatFormatter(_Formatter):
    """Whole numbers as "1.", others with four digits; scientific notation if the magnitudes differ too much."""

    def __init__(self, values: Sequence[float]) -> None:
        counted = [v for v in values if math.isfinite(v) and v]
        sizes = [abs(v) for v in counted]
        self.whole = all(size.is_integer() for size in sizes)
        low, high = (min(sizes), max(sizes)) if sizes else (1.0, 1.0)
        self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        self.fit(counted)

    def text(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{PRECISION}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{PRECISION}f}"


class _ComplexFormatter(_Formatter):
    """Real and imaginary parts, each with a separate formatter."""

    def __init__(self, values: Sequence[complex]) -> None:
        self.real = _FloatFormatter([v.real for v in values])
        self.imaginary = _FloatFormatter([v.imag for v in values])
        self.fit(values)

    def text(self, value: complex) -> str:
        imaginary = self.imaginary(value.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{self.real(value.real)}{sign}{imaginary}j"


def _formatter(values: Sequence[Any], category: int) -> _Formatter:
    if category == COMPLEX:
        return _ComplexFormatter(values)
    return _FloatFormatter(values) if category == FLOAT else _Formatter().fit(values)


# ---- after the elements


def _suffixes(tensor: Tensor, body: str) -> list[str]:
    found = []
    dtype, empty = tensor.dtype, body == "[]"
    if tensor.device.type != "cpu":
        found.append(f"device='{tensor.device}'")
    if body == "..." or (empty and tensor.ndim != 1):
        found.append(f"size={tuple(tensor.shape)}")
    default = get_default_dtype()
    usual = (default,) if empty or body == "..." else (default, default.to_complex(), int64, bool_)
    if dtype not in usual:
        found.append(f"dtype={dtype!r}")
    if tensor.requires_grad:
        node = tensor.grad_fn
        found.append("requires_grad=True" if node is None else f"grad_fn=<{_node_name(node)}>")
    return found


def _node_name(node: Any) -> str:
    name = getattr(node, "name", None)
    name = name() if callable(name) else name
    return name if isinstance(name, str) else type(node).__name__


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """The text with its suffixes. A suffix that does not fit on the line starts a new one."""
    length = len(text) - text.rfind("\n") - 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > LINE:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"
