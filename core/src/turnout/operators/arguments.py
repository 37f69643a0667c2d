"""The normalisers that call stubs use, one for each type of argument.

A stub passes arguments of the expected Python type on as they are. Any other value comes here. It is converted, or refused with
an error that names the operator and the argument.
"""

from __future__ import annotations

from functools import partial

from turnout.devices import Device, named
from turnout.dtypes import DTYPES as DTYPES
from turnout.dtypes import PYTHON_TYPES, DType
from turnout.errors import CallError, DTypeError, RangeError
from turnout.errors import calls as texts
from turnout.operators.values import is_generator, is_symbol, is_tensor
from turnout.state import FRESH as FRESH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from turnout.operators.operator import Operator
    from turnout.schema.model import FunctionSchema


class Missing:
    """The type of MISSING, which stands for an omitted argument in functions whose arguments have second names."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


def check_tensors(op: Operator, args: tuple[Any, ...]) -> None:
    """Raise CallError for the first argument that is not the tensor, generator or list of tensors that the schema declares."""
    for argument, value in zip(op.schema.arguments, args, strict=True):
        kind = argument.type.canonical
        if kind.startswith("Generator") and value is not None and not is_generator(value):
            _refuse(op.qualified_name, argument.name, "a turnout.Generator", value)
        if not argument.type.is_tensor_like:
            continue
        if argument.type.is_tensor_list:
            good = isinstance(value, (list, tuple)) and all(is_tensor(v) or (v is None and "?[" in kind) for v in value)
        else:
            good = is_tensor(value)
        if not good and not (value is None and argument.may_be_none):
            _refuse(op.qualified_name, argument.name, kind, value)


def _refuse(op_name: str, argument: str, expected: str, value: Any) -> NoReturn:
    if value is MISSING:
        raise CallError(texts.missing_argument(op_name, argument, expected))
    raise CallError(texts.wrong_type(op_name, argument, expected, value))


def _item(value: Any) -> Any:
    """The number in a 0-dim tensor or array, or of an array library's own kind; anything else unchanged."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        found = value.item()  # NumPy's longdouble returns itself
        return float(found) if type(found).__name__ == "longdouble" else found
    return value


def _items(value: Any, size: int) -> list[Any] | None:
    """The numbers in a list, or one repeated; None for neither."""
    given = value if isinstance(value, (list, tuple)) else (value,) * size
    return [_item(v) for v in given] if size or given is value else None


def as_scalar(op_name: str, argument: str, value: Any) -> Any:
    """Scalar: a number or bool of Python or an array library, or a 0-dim tensor. Raises RangeError beyond 64 bits."""
    value = _item(value)
    if isinstance(value, (bool, float, complex)) or is_symbol(value):
        return value
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        _refuse(op_name, argument, "a number", value)
    return _within(op_name, argument, number, 1 << 64, "a float or an int in -2**63 to 2**64 - 1")


def _within(op_name: str, argument: str, value: int, end: int = 1 << 63, expected: str = "an int in -2**63 to 2**63 - 1") -> int:
    """The int, if it is in -2**63 to `end` - 1; raises RangeError otherwise."""
    if -(1 << 63) <= value < end:
        return value
    raise RangeError(texts.wrong_type(op_name, argument, expected, value))


def as_int(op_name: str, argument: str, value: Any) -> int:
    """int: anything with `__index__`, or a 0-dim integer tensor. Raises RangeError beyond 64 bits."""
    value = _item(value)
    try:
        return _within(op_name, argument, int(value.__index__()))
    except (AttributeError, TypeError):
        _refuse(op_name, argument, "int", value)


def as_symint(op_name: str, argument: str, value: Any) -> Any:
    """SymInt: an int, or a size whose value is not known."""
    return value if is_symbol(value) else as_int(op_name, argument, value)


def as_float(op_name: str, argument: str, value: Any) -> float:
    """float: an int or float, or a 0-dim tensor of either."""
    if not hasattr(value := _item(value), "__float__"):
        _refuse(op_name, argument, "float", value)
    try:
        return float(value)
    except TypeError:  # an array of several elements
        _refuse(op_name, argument, "float", value)
    except OverflowError:
        raise RangeError(texts.wrong_type(op_name, argument, "a number that fits in a float", value)) from None


def as_bool(op_name: str, argument: str, value: Any) -> bool:
    """bool: a bool of Python or an array library, or a 0-dim bool tensor. Any other value is refused."""
    return value if isinstance(value := _item(value), bool) else _refuse(op_name, argument, "bool", value)


def as_str(op_name: str, argument: str, value: Any) -> str:
    """str."""
    return value if isinstance(value, str) else _refuse(op_name, argument, "str", value)


def as_ints(op_name: str, argument: str, value: Any, size: int = 0, symbols: bool = False) -> tuple[Any, ...]:
    """int[] or int[N]: a sequence of ints. For int[N], a bare number is repeated N times. `symbols`: as `as_symint`, each."""
    if value.__class__ is tuple or value.__class__ is list or isinstance(value, tuple):
        for v in value:
            if v.__class__ is not int or not (-1073741824 < v < 1073741824 or -(1 << 63) <= v < 1 << 63):  # 30 bits: fast
                break
        else:
            return tuple(value)
    elif size and (value.__class__ is int or hasattr(value, "__index__")):
        return (value if symbols and is_symbol(value) else as_int(op_name, argument, value),) * size
    if isinstance(value, (list, tuple, range)):
        try:
            return tuple(v if symbols and is_symbol(v) else _within(op_name, argument, int(_item(v).__index__())) for v in value)
        except (AttributeError, TypeError):
            pass
    _refuse(op_name, argument, f"int[{size or ''}]", value)


as_symints = partial(as_ints, symbols=True)  # a function that calls `as_ints` would cost each call of a view a frame


_NUMBERS = frozenset({int, float})


def as_floats(op_name: str, argument: str, value: Any, size: int = 0) -> tuple[float, ...]:
    """float[] or float[N]: a sequence of numbers. For float[N], a bare number is repeated N times."""
    if (value.__class__ is tuple or value.__class__ is list) and {*map(type, value)} <= _NUMBERS:
        try:
            return tuple(map(float, value))
        except OverflowError:
            pass  # said below
    if (items := _items(value, size)) is not None and all(isinstance(v, (int, float)) for v in items):
        return tuple(as_float(op_name, argument, v) for v in items)
    _refuse(op_name, argument, f"float[{size or ''}]", value)


def as_bools(op_name: str, argument: str, value: Any, size: int = 0) -> tuple[bool, ...]:
    """bool[N]: exactly N bools, or one that is repeated."""
    if (items := _items(value, size)) is not None and all(isinstance(v, bool) for v in items) and size in (0, len(items)):
        return tuple(items)
    _refuse(op_name, argument, f"bool[{size or ''}]", value)


def as_scalars(op_name: str, argument: str, value: Any) -> tuple[Any, ...]:
    """Scalar[]: a sequence of numbers."""
    if isinstance(value, (list, tuple)):
        return tuple(as_scalar(op_name, argument, v) for v in value)
    _refuse(op_name, argument, "Scalar[]", value)


def as_dtype(op_name: str, argument: str, value: Any) -> DType:
    """ScalarType: a turnout dtype, or Python's float, int, bool or complex, which mean float64, int64, bool and complex128."""
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in PYTHON_TYPES:
        return PYTHON_TYPES[value]
    if value is MISSING:
        raise CallError(texts.missing_argument(op_name, argument, texts.A_DTYPE))
    raise DTypeError(texts.wrong_type(op_name, argument, texts.A_DTYPE, value))


def check_dtypes(op_name: str, schemas: Sequence[FunctionSchema], named: Mapping[str, Any]) -> None:
    """Raise DTypeError for an argument by name that is no dtype, where every overload that has it takes a dtype."""
    for name, value in named.items():
        kinds = {a.type.canonical.rstrip("?") for schema in schemas for a in schema.arguments if a.name == name}
        if kinds == {"ScalarType"} and value is not None:
            as_dtype(op_name, name, value)


def as_device(op_name: str, argument: str, value: Any) -> Device:
    """Device: a `turnout.device` or a string such as "cpu" or "cuda:1"."""
    if isinstance(value, Device):
        return value
    if isinstance(value, str):
        return named(value)
    _refuse(op_name, argument, "a device", value)


def as_sequence(op_name: str, argument: str, value: Any) -> Any:
    """Tensor[] or Tensor?[]: a list or tuple. Its elements are checked when the key set is computed."""
    return value if isinstance(value, (list, tuple)) else _refuse(op_name, argument, "a list of tensors", value)
