"""What a shape function answered, kept for the next call that looks the same.

A shape function sees shapes, strides and dtypes of tensors, and the other arguments as they are. So the answer for a tuple of
these, the *key* of a call, holds for every call with that key. A *plan* is the answer as a wrapper needs it. Finding one takes a
tenth of the time of a shape function.

An answer is not kept where something else than the key can decide it: values of a tensor (a bool mask that selects), or the
default dtype.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from turnout_aten.shapes import promotion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout.operators import Operator
    from turnout.schema import Argument
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.shapes.specs import Result

# How many answers an operator keeps. All are dropped when there are more: a program that gets there has no call twice.
LIMIT = 256
# What the sources below read of each tensor of a list, and of its array.
SOURCE_NAMES: dict[str, Any] = {"ARRAY_OF": attrgetter("array"), "FACTS_OF": attrgetter("shape", "strides", "dtype")}
AS_GIVEN: Any = object()  # in `Plan.values`: the argument itself
_FIXED = frozenset({int, bool, str, type(None)})
_WITH_FLOATS = _FIXED | {float}


def array_maker(backend: TensorBackend, op: Operator) -> Callable[..., Any] | None:
    """What makes a row-major array in a call of an operator, of its shape and native dtype; None: `empty` does."""
    return backend.new_array or (backend.guarded_array if op.device_guard else None)


def array_lines(argument: Argument, name: str) -> str:
    """The statement that takes the arrays out of a tensor argument: `x_a = x.array`."""
    kind = argument.type.canonical
    if argument.type.is_tensor_list:
        # `map` needs no frame, unlike a comprehension before Python 3.12.
        each = f"[None if v is None else v.array for v in {name}]" if "?[" in kind else f"list(map(ARRAY_OF, {name}))"
        return f"{name}_a = {each}" if not kind.endswith("?") else f"{name}_a = None if {name} is None else {each}"
    if kind.endswith("?"):
        return f"{name}_a = None if {name} is None else {name}.array"
    return f"{name}_a = {name}.array"


def key_source(arguments: Sequence[Argument], names: Sequence[str]) -> str:
    """The expression for the key of a call, over what `array_lines` made."""
    parts: list[str] = []
    for argument, name in zip(arguments, names, strict=True):
        kind = argument.type.canonical
        facts = "{0}.shape, {0}.strides, {0}.dtype"
        if argument.type.is_tensor_list:
            each = f"({facts.format('v')})"
            if "?[" in kind:
                each = f"None if v is None else {each}"
            source = f"tuple([{each} for v in {name}_a])" if "?[" in kind else f"tuple(map(FACTS_OF, {name}_a))"
            parts.append(f"None if {name}_a is None else {source}" if kind.endswith("?") else source)
        elif argument.type.is_tensor:
            source = facts.format(f"{name}_a")
            parts.append(f"None if {name}_a is None else ({source})" if kind.endswith("?") else source)
        elif "Scalar" in kind and "ScalarType" not in kind:  # 1, 1.0 and True are equal, and give different dtypes
            one = f"{name}.__class__, {name}"
            parts.append(one if "[" not in kind else f"None if {name} is None else tuple([(v.__class__, v) for v in {name}])")
        else:
            parts.append(name)
    return f"({', '.join(parts)},)"


def is_fixed(value: Any, kinds: frozenset[object]) -> bool:
    """Whether a replaced argument is decided by the key: it has one of these classes, or is a list of such. A tensor has not, and
    a float has unless an argument is a zero, of which both signs are one key."""
    if value.__class__ in kinds:
        return True
    return value.__class__ in (tuple, list) and all(is_fixed(each, kinds) for each in value)


def _has_zero(args: Sequence[Any]) -> bool:
    """Whether a float argument is a zero, or has parts that may be."""
    return any(
        _has_zero(value)
        if value.__class__ in (tuple, list)
        else value.__class__ is complex or (value.__class__ is float and not value)
        for value in args
    )


class Plans:
    """The answers of one operator's shape function on one backend.

    shape      the shape function
    arguments  the operator's arguments without outputs, by name
    known      key -> (shape, native dtype, dtype and strides of each output..., casts, values, extra, ready)

    casts      None, or for each tensor argument the dtype that it is converted to, or None
    values     None, or for each other argument what replaces it, or AS_GIVEN
    extra      the kernel's additional arguments, as the operator's `precomputed` field declares
    ready      None, or what to call in place of the kernel: `prepared` made it from the answer and the call's arguments
    """

    __slots__ = ("_backend", "_extra", "_others", "_prepared", "_tensors", "known", "results")

    def __init__(
        self, backend: TensorBackend, tensors: Sequence[str], others: Sequence[str], precomputed: Mapping[str, Sequence[str]],
        prepared: Callable[[Result, Sequence[Any]], Callable[..., Any] | None] | None = None,
    ) -> None:  # fmt: skip
        self._backend = backend
        self._tensors = tensors
        self._others = others
        self._extra = [name for names in precomputed.values() for name in names]
        self._prepared = prepared
        self.known: dict[Any, tuple[Any, ...]] = {}
        self.results: dict[Any, Result] = {}

    def answer(self, key: Any, shape: Callable[..., Result], *args: Any) -> Result:
        """The shape function's answer, kept for the next call with this key if the key decides it."""
        promotion.DEFAULT_READ[0] = mark = object()
        result = shape(*args)
        kinds = _FIXED if not result.precomputed or _has_zero(args) else _WITH_FLOATS
        if promotion.DEFAULT_READ[0] is mark and is_fixed([*result.precomputed.values()], kinds):
            if len(self.results) >= LIMIT:
                self.results.clear()
                self.known.clear()
            self.results[key] = result
            self.known[key] = plan = self._plan(result, args)
            result.ready = plan[-1]
        return result

    def learn(self, key: Any, shape: Callable[..., Result], *args: Any) -> Result | None:
        """The answer if it is kept; None if it is not, or is an error."""
        try:
            self.answer(key, shape, *args)
        except Exception:  # noqa: BLE001 - the general path meets it again
            return None
        return self.results.get(key)

    def _plan(self, result: Result, args: Sequence[Any]) -> tuple[Any, ...]:
        backend = self._backend
        native = _no_native if backend.new_array is None and backend.guarded_array is None else backend.native_dtype
        outs = [fact for out in result.outs for fact in (out.shape, native(out.dtype), out.dtype, out.strides)]
        casts = tuple([result.casts.get(name) for name in self._tensors]) if result.casts else None
        replaced = [result.precomputed.get(name, AS_GIVEN) for name in self._others]
        values = replaced if any(value is not AS_GIVEN for value in replaced) else None
        ready = None if self._prepared is None else self._prepared(result, args)
        return (*outs, casts, values, tuple([result.precomputed[name] for name in self._extra]), ready)


def _no_native(dtype: Any) -> None:
    """What arrays are made of for a dtype, by a backend whose `empty` makes them."""


def converted(backend: TensorBackend, array: Any, dtype: Any) -> Any:
    """An array, or a list of them, in the dtype that a plan names."""
    if array is None or array.__class__ is list:
        return array and [converted(backend, each, dtype) for each in array]
    if backend.dtype_of(array) is dtype:
        return array
    made = backend.duplicate(array, dtype)
    if made is None:
        made = backend.empty(array.shape, dtype, backend.current_device())
        backend.copy(made, array)
    return made
