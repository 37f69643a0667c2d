"""Functionalities with one key for each backend, such as one for quantised data: how a tensor gets such a key and keeps it.

`with_key(tensor, "Quantized")` is the same memory under QuantizedCPU. Views and clones of it are under that key too. Results of
other operators have the keys that the functionality's own kernels give them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.errors import AliasError, ArgumentError
from turnout.keys import KEYS
from turnout_aten.errors.tensors import tracked
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator

    Call = Callable[..., Any]

_DENSE = KEYS.bit("Dense")


def with_key(tensor: Tensor, functionality: str) -> Tensor:
    """A tensor over the same memory whose calls go to the functionality's key of its backend.

    If the functionality's keys count as backend keys (`backend_key` in the manifest), its key takes the place of the backend's
    own; otherwise it is added. The plugin that provides it is activated. Raises ArgumentError for a functionality without a
    key for each backend, AliasError for a tensor that requires a gradient.
    """
    return _changed(tensor, functionality, "with_key", add=True)


def without_key(tensor: Tensor, functionality: str) -> Tensor:
    """The opposite of `with_key`: the same memory under the backend's own key, as the functionality's kernels read it."""
    return _changed(tensor, functionality, "without_key", add=False)


def _changed(tensor: Tensor, functionality: str, function: str, *, add: bool) -> Tensor:
    rows = _rows()
    row = rows.get(functionality)
    if row is None:
        there = ", ".join(rows) or "none"
        raise ArgumentError(
            f"{function}: {functionality!r} is not a functionality with a key for each backend; there are: {there}"
        )
    if tensor.gmask & 1:
        raise AliasError(tracked(function, ", which the new one would not record; detach() it first"))
    plugins.enabled_keys().require((functionality,))
    made = tensor.new_alias(tensor.array, tensor.storage_offset())
    replaced = _DENSE if row.backend_key else 0
    kept = kept_keys(made.keys, tensor.keys)
    made.keys = kept & ~replaced | row.bit if add else kept & ~row.bit | replaced
    return made


def _rows() -> dict[str, Any]:
    """The functionalities with a key for each backend that not every tensor brings."""
    KEYS.discovered()
    return {row.name: row for row in KEYS.functionalities if row.prefix is not None and not row.on_tensors}


def names_of(tensor: Tensor) -> tuple[str, ...]:
    """The functionalities whose keys `with_key` put on a tensor."""
    return tuple(name for name, row in _rows().items() if tensor.keys & row.bit)


def kept_keys(keys: int, original: int) -> int:
    """The keys of a view or clone: those of a plain tensor, with the functionalities of the original's backend."""
    mask = sum(row.bit for row in _rows().values()) | _DENSE
    kept = keys & ~mask | original & mask
    return keys if kept == keys else kept  # one object for all plain tensors of a backend


def keeping(op: Operator, key: str, call: Call) -> Call:
    """A kernel bound at a backend's key: views and clones keep such keys of the tensor. Without such functionalities, `call`."""
    mask = sum(row.bit for row in _rows().values())
    if not mask or not (op.schema.is_view or op.name == "clone"):
        return call

    def call_keeping(ks: int, *args: Any) -> Any:
        result = call(ks, *args)
        if args[0].keys & mask:
            for made in result if isinstance(result, (list, tuple)) else (result,):
                if isinstance(made, Tensor) and made is not args[0]:
                    made.keys = kept_keys(made.keys, args[0].keys)
        return result

    return call_keeping
