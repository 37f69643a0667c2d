"""The rare forms of a call to a public function or method.

The generated text handles the common form inline. It calls this module for the others: an operand that is not a tensor, `out=`
with several outputs, sizes written one by one.
"""

from __future__ import annotations

from turnout.dtypes import DTYPES, get_default_dtype
from turnout.errors import CallError
from turnout.operators.arguments import MISSING
from turnout.operators.packet import type_key
from turnout.operators.values import is_symbol, is_tensor
from turnout.registry import REGISTRY
from turnout_aten.dtypes import holds
from turnout_aten.errors import calls as texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout.dtypes import DType
    from turnout.operators import Packet

    Call = Callable[..., Any]

NUMBERS = frozenset({int, float, bool})


def binary(self: Any, other: Any, tensors: Call, scalar: Call | None) -> Any:
    """`self + other` when the method did not find a kernel: chosen by the kind of `other`, or NotImplemented."""
    if is_tensor(other):
        return tensors(self, other)
    if is_number(other):
        return NotImplemented if scalar is None else scalar(self, python_number(other))
    if is_array(other):
        return tensors(self, self._operand(other))
    return NotImplemented


def reflected(self: Any, other: Any, tensors: Call, scalar: Call | None) -> Any:
    """`other + self`, as `binary`. Raises CallError for a NumPy array, which is no less a container than the tensor."""
    if is_array(other):
        raise CallError(texts.array_on_the_left(other))
    return binary(self, other, tensors, scalar)


# NumPy's kinds of numbers; V is bfloat16's.
_KINDS = frozenset("biufcV")


def is_number(value: Any) -> bool:
    """Whether a value is a Python number, a size that is not known, or a NumPy scalar.

    Tensors, arrays (of 0 dims, too), strings and dates are not.
    """
    if isinstance(value, (int, float, complex)):
        return True
    if is_symbol(value):
        return True
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind in _KINDS and value.shape == () and hasattr(value, "item") and not hasattr(value, "__setitem__")


def python_number(value: Any) -> Any:
    """A NumPy scalar as a Python number. `item` returns a longdouble as it is, which is rounded to 64 bits here."""
    if value.__class__ in NUMBERS or not hasattr(value, "item"):
        return value
    found = value.item()
    if found.__class__ is value.__class__:
        return complex(found) if value.dtype.kind == "c" else float(found)
    return found


def is_array(value: Any) -> bool:
    """Whether a value is a NumPy array. Subclasses with operators of their own, such as masked arrays, are not."""
    own_operators = getattr(value, "__array_priority__", 1.0) > 0.0
    return hasattr(value, "__array_interface__") and hasattr(value, "__setitem__") and not own_operators


def number_dtype(value: Any) -> DType:
    """The dtype of a tensor made from a Python number."""
    if isinstance(value, bool):
        return DTYPES["bool"]
    if isinstance(value, int) or is_symbol(value):
        return DTYPES["int64"]
    return get_default_dtype() if isinstance(value, float) else DTYPES["complex64"]


def as_operand(tensor: Any, value: Any) -> dict[str, Any]:
    """The arguments of scalar_tensor for a number beside a tensor: it gets the tensor's dtype, unless that is of a lower kind.

    In the default dtype 0.3 would lose digits beside float64. A float beyond the dtype becomes infinite, as in a conversion.
    """
    dtype, own = tensor.dtype, number_dtype(value)
    if dtype.category >= own.category and holds(dtype, value):
        return {"s": value, "dtype": dtype}
    if isinstance(value, float) and not holds(own, value):
        value = float("inf") if value > 0 else -float("inf")
    return {"s": value, "dtype": own}


# PyTorch's aliases of arguments (mostly NumPy's names) -> schema names. Public functions and methods accept them.
SECOND_NAMES = {"axis": "dim", "keepdims": "keepdim", "x2": "other", "x": "input", "a": "input", "x1": "input"}

# Keywords that a function of several overloads must handle before it calls its packet.
NOT_OF_SCHEMAS = frozenset({*SECOND_NAMES, "input", "self"})


def first_names(function: Any, more: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by their schema names, for a call that may use aliases.

    `more` holds the keywords that are not parameters of the function, `given` its parameters. Raises CallError.
    """
    own = getattr(function, "__wrapped__", function)
    defaults = own.__defaults__ or ()
    names = own.__code__.co_varnames[: own.__code__.co_argcount]
    by_name = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) | (own.__kwdefaults__ or {})
    for name, value in more.items():
        first = SECOND_NAMES.get(name)
        if first not in given or given[first] is not by_name.get(first):
            raise CallError(texts.unexpected_keyword(own.__name__, name))
        given[first] = value
    return {name: value for name, value in given.items() if value is not MISSING}


# Functions that take a number before a tensor, as in PyTorch, and the method that computes them.
NUMBER_FIRST = {
    "add": "__radd__", "sub": "__rsub__", "subtract": "__rsub__", "mul": "__rmul__", "multiply": "__rmul__",
    "div": "__rtruediv__", "divide": "__rtruediv__", "true_divide": "__rtruediv__", "floor_divide": "__rfloordiv__",
}  # fmt: skip


class Overloads:
    """A packet as public functions and methods call it: arguments may be given by alias.

    A kind of call that the packet has seen before goes straight to its overload, which `chosen` holds by the types of the
    arguments. Only a new kind is searched for aliases.
    """

    __slots__ = ("_packet", "chosen")

    def __init__(self, packet: Packet) -> None:
        self._packet = packet
        self.chosen = packet.chosen

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == 2 and args[1].__class__ is tuple and not isinstance(args[0], (list, tuple)):
            # A tensor and dims: `type_key` without three frames.
            op = self.chosen.get((args[0].__class__, (tuple, frozenset(map(type, args[1])), len(args[1]) == 1)))
            if op is not None:
                return op.call(*args)
        # Without sequences, the key is just the types and the names of keywords: 500 to 1,200 ns less. Types of sequences are
        # never a key.
        key: Any = tuple(map(type, args))
        if kwargs:
            key = key, tuple(kwargs), tuple(map(type, kwargs.values()))
        op = self.chosen.get(key)
        if op is not None:
            return op.call(*args, **kwargs)
        try:
            op = self.chosen[full := type_key(args, kwargs)]
        except (KeyError, TypeError):
            pass  # not here: an error below would be shown with this one as its context
        if op is None:
            if not self._packet.attached:  # undone, and perhaps defined again since: that made another packet
                self._packet = REGISTRY.packet_handle(self._packet.namespace, self._packet.name)
                self.chosen = self._packet.chosen
            reflected_name = NUMBER_FIRST.get(self._packet.name)
            if reflected_name and len(args) == 2 and not kwargs and is_number(args[0]) and is_tensor(args[1]):
                return getattr(args[1], reflected_name)(args[0])
            if lacks(args) or not NOT_OF_SCHEMAS.isdisjoint(kwargs):
                args, kwargs = self._in_schemas_words(args, kwargs)
            return self._packet(*args, **kwargs)
        if kwargs and not any([isinstance(value, (list, tuple)) for value in (*args, *kwargs.values())]):  # noqa: C419
            with REGISTRY.lock:  # no overload is added or removed meanwhile
                if self.chosen.get(full) is op:
                    self.chosen[key] = op
        return op.call(*args, **kwargs)

    def _in_schemas_words(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments by the schemas' names. MISSING among `args` marks an argument that is given by keyword.

        Raises CallError.
        """
        schemas = [op.schema for op in self._packet]
        has_input = any(a.name == "input" for schema in schemas for a in schema.arguments)
        taken = [a.name for a in schemas[0].positional[: len(args)]]
        given = args
        if lacks(args):
            first = [value is MISSING for value in args].index(True)
            later = {n: v for n, v in zip(taken[first:], args[first:], strict=False) if v is not MISSING}
            given, taken, kwargs = args[:first], taken[:first], {**later, **kwargs}
        by_name: dict[str, Any] = {}
        for name, value in kwargs.items():
            own = SECOND_NAMES.get(name, name)
            own = "self" if own == "input" and not has_input else own
            if name == "self" or own in taken or own in by_name:
                raise CallError(texts.unexpected_keyword(self._packet.name, name))
            by_name[own] = value
        return given, by_name


def lacks(args: tuple[Any, ...]) -> bool:
    """Whether an argument is MISSING. Not `in`, which would compare arrays."""
    return any(value is MISSING for value in args)


def all_ints(values: tuple[Any, ...]) -> bool:
    """Whether sizes or dims were written one by one: x.sum(0, 1). A bool is a flag, not a dim."""
    for value in values:
        if value.__class__ is not int and (value.__class__ is bool or not hasattr(value, "__index__")):
            return False
    return True


def spread(values: tuple[Any, ...]) -> Any:
    """The int list of `x.reshape(2, 3)` or `x.reshape((2, 3))`."""
    return values[0] if len(values) == 1 and not hasattr(values[0], "__index__") else values


def out_tuple(op_name: str, out: Any, count: int) -> Any:
    """`out=` of an operator with several outputs: a sequence with one tensor for each."""
    if isinstance(out, (tuple, list)) and len(out) == count:
        return out
    raise CallError(f"{op_name}: argument 'out' must be a tuple of {count} tensors, got {type(out).__name__}")


def check_options(op_name: str, out: Any, dtype: Any, device: Any) -> None:
    """Check options given together with `out=`. Raises CallError if they differ from those of `out`."""
    if dtype is not None:
        from turnout.operators.arguments import as_dtype

        dtype = as_dtype(op_name, "dtype", dtype)
    if dtype is not None and dtype is not out.dtype:
        raise CallError(f"{op_name}: dtype {dtype.name} was given, but out has dtype {out.dtype.name}; omit dtype")
    if device is not None and str(device) != str(out.device):
        raise CallError(f"{op_name}: device {device} was given, but out is on {out.device}; omit device")


def options_of_out(op_name: str, kwargs: dict[str, Any]) -> None:
    """Take the options of a factory out of its keywords, which have `out`, and check them."""
    for name in ("layout", "pin_memory"):
        kwargs.pop(name, None)
    check_options(op_name, kwargs["out"], kwargs.pop("dtype", None), kwargs.pop("device", None))


def packet(namespace: str, name: str) -> Overloads:
    """The packet of a name. If no overload exists yet, an empty packet: a function may be made before its operators."""
    return Overloads(REGISTRY.packet_handle(namespace, name))
