"""The text of a tensor, in PyTorch's layout: `tensor([1., 2.])`.

Large tensors are shortened; an unusual device, dtype or gradient state follows the elements. The elements are read from the
host bytes without calling an operator, so printing never appears in a trace. `set_printoptions` says how much is shown.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from turnout.config.effects import effect
from turnout.config.lock import new_lock
from turnout.config.tuples import NamedTuple
from turnout.dtypes import COMPLEX, FLOAT, bool_, get_default_dtype, int64
from turnout.errors import ArgumentError, NoDataError
from turnout.operators.tracebacks import shortening
from turnout_aten.tensor import host_bytes as elements
from turnout_aten.tensor.reads import reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

_PREFIX, _FAKE = "tensor(", "FakeTensor("
_NOTHING = "[...]"  # the elements of a large tensor when none are asked for


class PrintOptions(NamedTuple):
    """What `set_printoptions` sets. A text is made from one set of options, whatever other threads set meanwhile."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {"default": PrintOptions(), "short": PrintOptions(precision=2, edgeitems=2), "full": PrintOptions(threshold=math.inf)}
_options = PROFILES["default"]
_LOCK = new_lock()


@shortening
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, in all threads of the process. What is None stays as it is, except `sci_mode`.

    Raises ArgumentError for an unknown profile and for a number that is negative or of the wrong type; nothing is changed then.

    Arguments:
        precision: how many digits stand after the point
        threshold: a tensor with more elements than this is shortened
        edgeitems: how many elements are shown at each end of a shortened dimension
        linewidth: the length of a line, in characters
        profile: "default", "short" or "full": sets all options, before the others are set
        sci_mode: whether numbers are in scientific notation; None, also by default, decides it for each tensor

    Example:
        >>> turnout.set_printoptions(precision=2)
        >>> turnout.tensor([3.14159, 2.71828])
        tensor([3.14, 2.72])
        >>> turnout.set_printoptions(profile="default")
    """
    effect("set_printoptions()")
    global _options
    if profile is not None and profile not in PROFILES:
        raise ArgumentError(f"set_printoptions: {profile!r} is not a profile; use one of {', '.join(map(repr, PROFILES))}")
    numbers = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    for name, value in given.items():
        kinds, kind = ((int, float), "a number") if name == "threshold" else (int, "an int")
        if not isinstance(value, kinds) or isinstance(value, bool) or not value >= 0:
            raise ArgumentError(f"set_printoptions: {name} must be {kind} of at least 0, got {value!r}")
    if sci_mode is not None and not isinstance(sci_mode, bool):
        raise ArgumentError(f"set_printoptions: sci_mode must be True, False or None, got {sci_mode!r}")
    with _LOCK:
        _options = (_options if profile is None else PROFILES[profile])._replace(**given, sci_mode=sci_mode)


def tensor_text(tensor: Tensor) -> str:
    """The text of `repr(tensor)`."""
    reads("repr()")
    fake = tensor.fake_mode is not None
    prefix = _FAKE if fake else _PREFIX
    indent = len(prefix)
    options = _options
    try:
        body = "..." if fake else _body(tensor, indent, options)
    except NoDataError:
        body = "..."
    return _with_suffixes(prefix + body, _suffixes(tensor, body, options), indent, options.linewidth)


def tensor_html(tensor: Tensor) -> str:
    """What notebooks show of a tensor: its text, below its shape, dtype and device."""
    from turnout.explanation.html import preformatted

    shape = " x ".join(map(str, tensor.shape)) or "0-dim"
    return preformatted(repr(tensor), f"{shape} {tensor.dtype.name} on {tensor.device}")


# ---- the elements


def _body(tensor: Tensor, indent: int, options: PrintOptions) -> str:
    shape = tensor.shape
    if 0 in shape:
        return "[]"
    shown: tuple[int, ...] = shape
    array = tensor.array
    said = tensor.device.backend.describe(array)
    if said is not None:
        return said
    edge = options.edgeitems
    if tensor.numel() > options.threshold:
        if not edge:
            return _NOTHING
        shown = tuple([min(length, 2 * edge) for length in shape])
        array = _edges(tensor, shown, edge)
    tree = _tree(tensor.device.backend.to_host(array), tensor, shown, edge, 0, 0)
    formatter = _formatter(_leaves(tree), tensor.dtype.category, options)
    if not shape:
        return formatter(tree)
    return _lines(tree, len(shape), indent, formatter, options.linewidth)


class _Gap:
    """A marker for omitted elements."""


_GAP = _Gap()


def _edges(tensor: Tensor, shown: Sequence[int], edge: int) -> Any:
    """A view of the elements that a shortened text shows: a long dim becomes two, its ends and the places in each."""
    storage = tensor.storage
    root, offset = (tensor.array, 0) if storage is None else (storage.array, tensor.offset)
    shape: list[int] = []
    strides: list[int] = []
    for length, count, stride in zip(tensor.shape, shown, tensor.stride(), strict=True):
        if length > count:
            shape += [2, edge]
            strides += [(length - edge) * stride, stride]
        else:
            shape.append(length)
            strides.append(stride)
    return tensor.device.backend.strided(root, tuple(shape), tuple(strides), offset)


def _tree(data: bytes | memoryview, tensor: Tensor, shown: Sequence[int], edge: int, dim: int, start: int) -> Any:
    """The shown elements as nested lists, with `_GAP` for omitted ones. `start` is the index of the first element."""
    if dim == len(shown):
        return elements.decode_at(data, tensor.dtype, start)
    step = math.prod(shown[dim + 1 :])
    tree = [_tree(data, tensor, shown, edge, dim + 1, start + i * step) for i in range(shown[dim])]
    if shown[dim] < tensor.shape[dim]:
        tree.insert(edge, _GAP)
    return tree


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, list):
        return [leaf for branch in tree for leaf in _leaves(branch)]
    return [] if tree is _GAP else [tree]


def _lines(tree: list[Any], dims: int, indent: int, formatter: _Formatter, width: int) -> str:
    if dims > 1:
        inner = ["..." if branch is _GAP else _lines(branch, dims - 1, indent + 1, formatter, width) for branch in tree]
        return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(inner) + "]"
    texts = [" ..." if leaf is _GAP else formatter(leaf) for leaf in tree]
    per_line = max(1, (width - indent) // (formatter.width + 2))
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
        self.width = max((len(self.text(value)) for value in values), default=1)
        return self


class _FloatFormatter(_Formatter):
    """Whole numbers as "1.", others with all digits; scientific notation if the magnitudes differ too much."""

    def __init__(self, values: Sequence[float], options: PrintOptions) -> None:
        self.precision = options.precision
        counted = [v for v in values if math.isfinite(v) and v]
        sizes = [abs(v) for v in counted]
        self.whole = all(size.is_integer() for size in sizes)
        low, high = (min(sizes), max(sizes)) if sizes else (1.0, 1.0)
        self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode and bool(counted)
        self.fit(counted)

    def text(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{self.precision}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{self.precision}f}"


class _ComplexFormatter(_Formatter):
    """Real and imaginary parts, each with a separate formatter; only real parts are aligned."""

    def __init__(self, values: Sequence[complex], options: PrintOptions) -> None:
        self.real = _FloatFormatter([v.real for v in values], options)
        self.imaginary = _FloatFormatter([v.imag for v in values], options)
        self.width = self.real.width + self.imaginary.width + 1

    def __call__(self, value: complex) -> str:
        imaginary = self.imaginary(value.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{self.real(value.real)}{sign}{imaginary}j"


def _formatter(values: Sequence[Any], category: int, options: PrintOptions) -> _Formatter:
    if category == COMPLEX:
        return _ComplexFormatter(values, options)
    return _FloatFormatter(values, options) if category == FLOAT else _Formatter().fit(values)


# ---- after the elements


def _suffixes(tensor: Tensor, body: str, options: PrintOptions) -> list[str]:
    found = []
    dtype, empty = tensor.dtype, body == "[]"
    if tensor.device.type != "cpu":
        found.append(f"device='{tensor.device}'")
    if body in ("...", _NOTHING) or (tensor.ndim != 1 if empty else not options.edgeitems):
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


def _with_suffixes(text: str, suffixes: list[str], indent: int, width: int) -> str:
    """The text with its suffixes. A suffix that does not fit on the line starts a new one."""
    length = len(text) - text.rfind("\n") - 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > width:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"
