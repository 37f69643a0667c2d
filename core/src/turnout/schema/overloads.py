"""Which overload of a packet takes a call. It depends on the arguments alone, never on the order of definition.

The most specific overload that accepts the arguments wins. The first of these that differs decides:

1. fewer conversions: a 0-dim tensor or array for a Scalar is one, so a Tensor argument takes a tensor first;
2. the types of the arguments that were given, positions first, then keywords by name, each by `specificity`: fewer
   brackets, then the order of `types.BASE_TYPES` (Tensor, bool, int, ..., Scalar, ...), then `T[N]` before `T[]`,
   then fewer `?`;
3. fewer arguments;
4. more arguments without a default;
5. the overload without a name; then the types of all arguments as in 2, for calls that leave the differing ones out.

So two overloads tie only if all their types are the same in order and one call suits both. `check_no_tie` finds that when the
second one is defined.

What each type accepts: `int` integers except bools; `float` ints too; `Scalar` any number and bool; each of these a 0-dim tensor
of such a dtype; `ScalarType` Python's float, int, bool and complex too, as conversions; `T[N]` a bare `T`, which is repeated N
times, and lists of any length; `T?` None. An undefined tensor is None: `Tensor x=[]` takes it, `Tensor` does not. Where a list
is empty by default, None is that: `int[1] dims=[]`.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from turnout.dtypes import BOOL, FLOAT, INT, PYTHON_TYPES, DType
from turnout.errors.calls import too_many
from turnout.errors.schemas import ambiguous, no_overload, tie
from turnout.schema.model import Argument, FunctionSchema
from turnout.schema.types import BASE_TYPES, BaseType, ListType, OptionalType, Type

IsTensor = Callable[[Any], bool]

# How well a value fits a type.
REJECTED = -1
EXACT = 0
CONVERTED = 1

# Core does not import the classes of these values, so it knows them by name.
_CLASS_NAMES: dict[str, tuple[str, ...]] = {
    "ScalarType": ("dtype",),
    "Device": ("Device", "device"),
    "Layout": ("Layout", "layout"),
    "MemoryFormat": ("MemoryFormat", "memory_format"),
    "QScheme": ("QScheme", "qscheme"),
    "Storage": ("Storage", "UntypedStorage", "TypedStorage"),
    **{name: (name,) for name in ("Generator", "Stream", "GraphModule", "TensorOptions")},
}
_TEXT_TYPES = ("str", "Device", "Layout", "MemoryFormat", "QScheme", "Dimname")


def _grade(type: Type, value: Any, is_tensor: IsTensor) -> int:
    if isinstance(type, OptionalType):
        return EXACT if value is None else _grade(type.elem, value, is_tensor)
    if isinstance(type, ListType):
        if isinstance(value, (list, tuple)):
            grades = [_grade(type.elem, element, is_tensor) for element in value]
            return REJECTED if REJECTED in grades else max(grades, default=EXACT)
        return REJECTED if type.size is None else _grade(type.elem, value, is_tensor)
    if isinstance(type, BaseType):
        return _grade_base(type, value, is_tensor)
    return REJECTED


def _grade_base(type: BaseType, value: Any, is_tensor: IsTensor) -> int:
    name = type.canonical
    if is_tensor(value):
        if name == "Tensor":
            return EXACT
        # A 0-dim tensor, judged by its dtype, may stand for a number.
        fits = name == "Scalar" or (hasattr(value, "dtype") and value.dtype.category in _CATEGORIES.get(name, ()))
        return CONVERTED if fits and len(value.shape) == 0 else REJECTED
    if name == "DimVector":
        return EXACT if isinstance(value, (list, tuple)) and all(map(_is_int, value)) else REJECTED
    check = _CHECKS.get(name)
    if check is not None and check(value):
        return EXACT
    if name == "ScalarType" and _is_type_of_numbers(value):
        return CONVERTED
    if check is not None and getattr(value, "shape", None) == () and hasattr(value, "item") and check(value.item()):
        return CONVERTED  # an array library's bool or 0-dim array, whose class alone does not decide
    if name in _TEXT_TYPES and isinstance(value, str):
        return EXACT
    names = (name.rpartition(".")[2],) if type.is_custom_class else _CLASS_NAMES.get(name, ())
    return EXACT if any(c.__name__ in names for c in value.__class__.__mro__) else REJECTED


def _is_type_of_numbers(value: Any) -> bool:
    return isinstance(value, type) and value in PYTHON_TYPES


def _is_int(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "SymBool": lambda value: isinstance(value, bool),
    "int": _is_int,
    "SymInt": _is_int,
    "DeviceIndex": _is_int,
    "float": _is_real,
    "SymFloat": _is_real,
    "complex": lambda value: isinstance(value, numbers.Complex) and not isinstance(value, bool),
    # numbers.Number holds the bools of array libraries that register them.
    "Scalar": lambda value: isinstance(value, numbers.Number),
    "ScalarType": lambda value: isinstance(value, DType),
}


_CATEGORIES = {"bool": (BOOL,), "int": (INT,), "SymInt": (INT,), "float": (INT, FLOAT), "SymFloat": (INT, FLOAT)}


# ---- the order of types

Specificity = tuple[int, int, int, int, str]


@lru_cache(maxsize=1024)
def specificity(type: Type) -> Specificity:
    """The place of a type in the fixed order. A smaller one is more specific. Only equal types have equal places."""
    depth = optional = unsized = 0
    inner = type
    while not isinstance(inner, BaseType):
        if isinstance(inner, OptionalType):
            optional += 1
            inner = inner.elem
        elif isinstance(inner, ListType):
            depth += 1
            unsized += inner.size is None
            inner = inner.elem
        else:
            return (99, 0, 0, 0, inner.canonical)
    rank = BASE_TYPES.index(inner.canonical) if inner.canonical in BASE_TYPES else len(BASE_TYPES)
    return (depth, rank, unsized, optional, type.canonical)


Standing = tuple[int, int, bool, list[Specificity]]


def _standing(schema: FunctionSchema) -> Standing:
    """The criteria 3 to 5, which do not depend on the call."""
    required = sum(not a.has_default for a in schema.arguments)
    types = [specificity(a.type) for a in schema.arguments]
    return (len(schema.arguments), -required, bool(schema.name.overload), types)


# ---- choosing

Fit = tuple[int, list[Specificity]]


def choose(schemas: Sequence[FunctionSchema], args: Sequence[Any], kwargs: Mapping[str, Any], is_tensor: IsTensor) -> int:
    """The index of the overload that a call uses.

    Raises OverloadError when none accepts the arguments, with a line for each overload that says why.
    """
    best: Fit | None = None
    found: list[int] = []
    reasons: list[tuple[str, str]] = []
    for index, schema in enumerate(schemas):
        fit = _match(schema, args, kwargs, is_tensor)
        if isinstance(fit, str):
            reasons.append((schema.name.overload or "default", fit))
        elif best is None or fit < best:
            best, found = fit, [index]
        elif fit == best:
            found.append(index)
    if not found:
        raise no_overload(_described_call(args, kwargs, is_tensor), reasons)
    if len(found) > 1:
        standings = {index: _standing(schemas[index]) for index in found}
        least = min(standings.values())
        found = [index for index, standing in standings.items() if standing == least]
        if len(found) > 1:
            raise ambiguous(_described_call(args, kwargs, is_tensor), [str(schemas[index].name) for index in found])
    return found[0]


def decided_by_types(schema: FunctionSchema, args: Sequence[Any], kwargs: Mapping[str, Any], is_tensor: IsTensor) -> bool:
    """Whether every call with arguments and elements of the same classes chooses `schema`, as this call did.

    That is so when nothing was converted: then only classes decide, and an overload that converts loses.
    """
    fit = _match(schema, args, kwargs, is_tensor)
    return not isinstance(fit, str) and fit[0] == EXACT


def _match(schema: FunctionSchema, args: Sequence[Any], kwargs: Mapping[str, Any], is_tensor: IsTensor) -> Fit | str:
    """The conversions and types (criteria 1 and 2) of an overload that accepts the call, or why it does not."""
    positional = schema.positional
    if len(args) > len(positional):
        return too_many(len(positional), len(args))
    given = list(zip(positional, args, strict=False))
    rest = {a.name: a for a in schema.arguments[len(args) :]}
    names = sorted(kwargs)
    known = list(takewhile(rest.__contains__, names))
    given += [(rest.pop(name), kwargs[name]) for name in known]
    conversions = 0
    for argument, value in given:
        undefined = value is None and argument.has_default and argument.default in (None, (), [])
        grade = EXACT if undefined else _grade(argument.type, value, is_tensor)
        if grade == REJECTED:
            return f"{argument.name}: expected {argument.type}, got {_described(value, is_tensor)}"
        conversions += grade
    if len(known) < len(names):
        name = names[len(known)]
        return f"{name} was given twice" if any(a.name == name for a in positional) else f"has no argument {name}"
    missing = [a.name for a in rest.values() if not a.has_default]
    if missing:
        return f"needs {', '.join(missing)}"
    return conversions, [specificity(argument.type) for argument, _ in given]


def _described_call(args: Sequence[Any], kwargs: Mapping[str, Any], is_tensor: IsTensor) -> str:
    given = [_described(value, is_tensor) for value in args]
    given += [f"{name}={_described(value, is_tensor)}" for name, value in kwargs.items()]
    return ", ".join(given)


def _described(value: Any, is_tensor: IsTensor) -> str:
    """The type of a value in a few words."""
    if value is None:
        return "None"
    if is_tensor(value):
        return "Tensor"
    if isinstance(value, (list, tuple)):
        kinds = list(dict.fromkeys(_described(element, is_tensor) for element in value))
        return f"{type(value).__name__} of {' and '.join(kinds)}" if kinds else f"empty {type(value).__name__}"
    return type(value).__name__


# ---- ties


def check_no_tie(existing: Sequence[FunctionSchema], new: FunctionSchema) -> None:
    """Raise SchemaError if a call fits `new` and one of `existing`, and neither is more specific."""
    for other in existing:
        call = _tying_call(other, new)
        if call is not None:
            raise tie(other, new, f"({', '.join(call)})")


def _tying_call(a: FunctionSchema, b: FunctionSchema) -> list[str] | None:
    """The types of the arguments of a call for which the two tie, or None."""
    # An overload without a name must not win over one that is otherwise the same.
    (size, required, _, types), (other_size, other_required, _, other_types) = _standing(a), _standing(b)
    if (size, required, types) != (other_size, other_required, other_types):
        return None
    for count in _equal_prefixes(a.positional, b.positional):
        rest_a = {x.name: x for x in a.arguments[count:]}
        rest_b = {x.name: x for x in b.arguments[count:]}
        # The keywords that must be given, to the one or to the other.
        needed = sorted({n for rest in (rest_a, rest_b) for n, x in rest.items() if not x.has_default})
        if all(n in rest_a and n in rest_b and specificity(rest_a[n].type) == specificity(rest_b[n].type) for n in needed):
            return [str(x.type) for x in a.positional[:count]] + [f"{n}={rest_a[n].type}" for n in needed]
    return None


def _equal_prefixes(a: Sequence[Argument], b: Sequence[Argument]) -> Iterator[int]:
    yield 0
    for count, (x, y) in enumerate(zip(a, b, strict=False), start=1):
        if specificity(x.type) != specificity(y.type):
            return
        yield count
