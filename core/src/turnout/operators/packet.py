"""`Packet`: all overloads of a name, and the choice among them."""

from __future__ import annotations

from turnout.errors import OverloadError, UnknownOperatorError
from turnout.errors import calls as texts
from turnout.operators.arguments import Missing, check_dtypes
from turnout.operators.tracebacks import shorten
from turnout.operators.values import is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from turnout.operators.operator import Operator
    from turnout.registry import Registry
    from turnout.schema import FunctionSchema


class Packet:
    """All overloads of a name. A call uses the most specific overload that accepts the arguments.

    If the types of the arguments alone decide the choice, it is cached by them.
    """

    __slots__ = ("_schemas", "attached", "chosen", "name", "namespace", "registry")

    def __init__(self, registry: Registry, namespace: str, name: str) -> None:
        self.registry = registry
        self.namespace = namespace
        self.name = name
        self.attached: dict[str, Operator] = {}  # overloads defined so far; the registry changes it
        self.chosen: dict[Any, Operator] = {}
        self._schemas: tuple[list[Operator], list[FunctionSchema]] | None = None

    def _loaded(self) -> dict[str, Operator]:
        """The overloads by name, "" for the unnamed one."""
        self.registry.load(self.namespace, self.name)
        return self.attached

    def changed(self) -> None:
        """Called by the registry when an overload was added or removed."""
        self.chosen.clear()
        self._schemas = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            try:
                op = self.chosen[type_key(args, kwargs)]
            except (KeyError, TypeError):
                op = None
            if op is None:  # not above: an error would be shown with that one as its context
                op = self.choose(*args, **kwargs)
            return op.call(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    def choose(self, /, *args: Any, **kwargs: Any) -> Operator:
        """The overload that a call with these arguments would use. Raises OverloadError when none accepts them."""
        from turnout.schema import overloads

        candidates = self._schemas
        if candidates is None:
            with self.registry.lock:
                defined = [op for op in self._loaded().values() if op.is_defined]
                candidates = self._schemas = (defined, [op.schema for op in defined])
        operators, schemas = candidates
        given = tuple([a for a in args if a.__class__ is not Missing])
        if not operators:
            raise UnknownOperatorError(texts.gone(f"{self.namespace}::{self.name}"))
        if len(operators) == 1:
            op = operators[0]
        else:
            try:
                op = operators[overloads.choose(schemas, given, kwargs, is_tensor)]
            except OverloadError as error:
                check_dtypes(f"{self.namespace}::{self.name}", schemas, kwargs)
                raise OverloadError(f"{self.namespace}::{self.name}: {error}") from None
        key = type_key(given, kwargs)
        if overloads.decided_by_types(op.schema, given, kwargs, is_tensor):
            with self.registry.lock:
                if self._schemas is candidates:  # no overload was added or removed meanwhile
                    self.chosen[key] = op
        return op

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("__"):
            raise AttributeError(overload)
        try:
            op = self._loaded().get("" if overload == "default" else overload)
            if op is None:
                raise UnknownOperatorError(texts.unknown_overload(self, overload))
            return op
        except Exception as error:
            shorten(error)
            raise

    def __iter__(self) -> Iterator[Operator]:
        return iter(list(self._loaded().values()))

    def overloads(self) -> list[str]:
        """The names of the overloads; "default" is the one without a name."""
        return [overload or "default" for overload in self._loaded()]

    __dir__ = overloads

    def __reduce__(self) -> tuple[Any, ...]:
        return (self.registry.restore, (self.namespace, self.name))

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    def __repr__(self) -> str:
        return f"<Packet {self.namespace}::{self.name}: {', '.join(dir(self))}>"


def type_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The cache key of a choice: the types of the arguments, and for sequences those of their elements."""
    key = tuple([_sequence_key(a) if a.__class__ is list or isinstance(a, tuple) else a.__class__ for a in args])
    if kwargs:
        words = [(n, _sequence_key(v) if v.__class__ is list or isinstance(v, tuple) else v.__class__) for n, v in kwargs.items()]
        return (key, tuple(words))
    return key


def _sequence_key(value: Any) -> Any:
    return (value.__class__, frozenset(map(type, value)), len(value) == 1)
