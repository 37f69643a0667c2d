"""The schema of a Python function, read from its annotations, as `torch.library.infer_schema` reads them.

| annotation | type | also as |
|---|---|---|
| Tensor | Tensor | `T | None`, list, list of `T | None` |
| int, float, bool | SymInt, float, bool | `T | None`, list, `list[T] | None` |
| int | float | bool, numbers.Number | Scalar | `T | None`, list |
| str, dtype, Device | str, ScalarType, Device | `T | None` |

`list[T]` may be `List[T]` or either `Sequence[T]`, and `T | None` may be `Optional[T]` or `Union[T, None]`. Any annotation
may be a string. Returns are Tensor, list[Tensor], int, float, bool, a number, a tuple of these, or None.
"""

from __future__ import annotations

import collections.abc
import inspect
import numbers
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from turnout.errors.schemas import SchemaSyntaxError, inference
from turnout.schema.defaults import read_default
from turnout.schema.types import Type, list_of, optional_of, type_named

Call = Callable[..., Any]

UNKNOWN = "unknown"

# The lists of each type that has any.
_LISTS = {"Tensor": ("[]", "?[]"), "Scalar": ("[]",), **dict.fromkeys(("SymInt", "float", "bool"), ("[]", "[]?"))}
_PYTHON_TYPES: dict[Any, str] = {int: "SymInt", float: "float", bool: "bool", str: "str", numbers.Number: "Scalar"}
_NUMBER = frozenset({int, float, bool})
_RETURNS = ("Tensor", "SymInt", "float", "bool", "Scalar")

_SUPPORTED = "Tensor, int, float, bool, str, int | float | bool, dtype, Device, `T | None`, list[T], list[Tensor | None]"
_SUPPORTED_RETURNS = "Tensor, list[Tensor], int, float, bool, int | float | bool, a tuple of these, or None"


def infer_schema(
    function: Call, /, *, mutates_args: str | Iterable[str], op_name: str | None = None, classes: Mapping[Any, str] | None = None,
    tags: str | Iterable[str] | None = (),
) -> str:  # fmt: skip
    """The schema text of a function, by its annotations. No return is taken to share memory with an argument.

    Raises SchemaError, which names the parameter and what is supported.

    Arguments:
        function: the function
        mutates_args: the names of the tensors that it writes; "unknown" means all
        op_name: what stands before the schema
        classes: the schema types for which classes stand; otherwise that in their attribute `schema_type`
        tags: with "inplace" it returns its first argument, with "out" its written keyword-only ones

    Example:
        >>> def scaled(x: turnout.Tensor, by: float = 2.0) -> turnout.Tensor: ...
        >>> turnout.library.infer_schema(scaled, mutates_args=())
        '(Tensor x, float by=2.0) -> Tensor'
    """
    reader = _Reader(function, classes or {})
    written = reader.written(mutates_args)
    parts: list[str] = []
    for index, parameter in enumerate(reader.parameters):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(reader.argument(index, parameter, written))
    named = {"inplace", "out"}.intersection((tags,) if isinstance(tags, str) else tags or ())
    returns = reader.annotated(written or frozenset(), named) if named else reader.returns()
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


class _Reader:
    """One function and the classes that its annotations may name."""

    def __init__(self, function: Call, classes: Mapping[Any, str]) -> None:
        self.function = function
        self.named = {**_PYTHON_TYPES, **classes}
        self.globals = getattr(inspect.unwrap(function), "__globals__", {})
        self.signature = inspect.signature(function)
        self.parameters = list(self.signature.parameters.values())

    def fail(self, problem: str, remedy: str) -> NoReturn:
        name = getattr(self.function, "__qualname__", repr(self.function))
        raise inference(f"{name}{self.signature}", problem, remedy)

    def written(self, mutates_args: str | Iterable[str]) -> frozenset[str] | None:
        """The names of the written arguments; None for all tensors."""
        if isinstance(mutates_args, str):
            if mutates_args != UNKNOWN:
                self.fail(f"mutates_args is {mutates_args!r}", 'give a list of argument names, or "unknown"')
            return None
        written = frozenset(mutates_args)
        unseen = sorted(written - set(self.signature.parameters))
        if unseen:
            self.fail(f"mutates_args names {', '.join(unseen)}", "name parameters of the function")
        return written

    def argument(self, index: int, parameter: inspect.Parameter, written: frozenset[str] | None) -> str:
        name = parameter.name
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            self.fail(f"parameter {parameter} has no schema", "declare every argument by name, without * and /")
        if parameter.annotation is inspect.Parameter.empty:
            self.fail(f"parameter {name} has no annotation", f"annotate it with one of {_SUPPORTED}")
        annotation = self.evaluated(parameter.annotation, f"parameter {name}")
        type = self.type(annotation)
        if type is None:
            is_tuple = typing.get_origin(annotation) is tuple or annotation is tuple
            remedy = f"use {'list instead of tuple; supported are' if is_tuple else 'one of'} {_SUPPORTED}"
            self.fail(f"parameter {name} has the unsupported type {_shown(annotation)}", remedy)
        text = str(type)
        if name in written if written is not None else type.is_tensor_like:
            if not type.is_tensor_like:
                self.fail(f"parameter {name} is in mutates_args, but is a {text}", "name tensors and lists of tensors only")
            text = f"Tensor(a{index}!){text.removeprefix('Tensor')}"
        if parameter.default is inspect.Parameter.empty:
            return f"{text} {name}"
        return f"{text} {name}={self.default(name, type, parameter.default)}"

    def evaluated(self, annotation: Any, where: str) -> Any:
        """The annotation, with the types that its strings name."""
        if isinstance(annotation, typing.ForwardRef):
            annotation = annotation.__forward_arg__
        if isinstance(annotation, str):
            try:
                return self.evaluated(eval(annotation, self.globals), where)
            except Exception as error:  # noqa: BLE001 - an expression may raise anything
                problem = f"{where} is annotated {annotation!r}, which cannot be read ({type(error).__name__}: {error})"
                self.fail(problem, "make the names it uses importable at the top of the function's module")
        origin = typing.get_origin(annotation)
        if origin is None:
            return annotation
        args = tuple(self.evaluated(argument, where) for argument in typing.get_args(annotation))
        if origin in (typing.Union, types.UnionType):
            return typing.Union[args]  # noqa: UP007 - made from values
        return types.GenericAlias(origin, args) if args else annotation

    def type(self, annotation: Any) -> Type | None:
        """The schema type of an evaluated annotation; None when there is none."""
        inner, optional = _without_none(annotation)
        args = typing.get_args(inner)
        if not args or typing.get_origin(inner) not in (list, collections.abc.Sequence):
            base = self.base(inner)
            return optional_of(base) if optional and base is not None else base
        inner_element, optional_element = _without_none(args[0])
        base = self.base(inner_element)
        form = f"{'?' if optional_element else ''}[]{'?' if optional else ''}"
        if base is None or form not in _LISTS.get(str(base), ()):
            return None
        listed = list_of(optional_of(base) if optional_element else base, None)
        return optional_of(listed) if optional else listed

    def base(self, annotation: Any) -> Type | None:
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            return type_named("Scalar") if set(typing.get_args(annotation)) == _NUMBER else None
        try:
            name = self.named.get(annotation) or (_declared(annotation) if isinstance(annotation, type) else "")
        except TypeError:  # it cannot be hashed, so it is not a type
            return None
        return type_named(name) if name else None

    def default(self, name: str, wanted: Type, value: Any) -> str:
        if value is None or isinstance(value, (bool, int, float)):
            text = str(value)
        elif isinstance(value, str):
            text = _quoted(value)
        else:
            classes = (schema for cls, schema in self.named.items() if isinstance(cls, type) and isinstance(value, cls))
            kind = next(classes, _declared(value.__class__))
            if kind == "ScalarType":
                text = repr(value).rpartition(".")[2]
            elif kind == "Device":
                text = _quoted(str(value))
            else:
                problem = f"the default of {name} is a {value.__class__.__name__}"
                self.fail(problem, "use None, a number, bool, str, dtype or device")
        try:
            read_default(wanted, text)
        except SchemaSyntaxError as error:
            missing = value is None and not wanted.is_optional
            remedy = f"annotate {name} with `... | None`" if missing else f"use {error.expected}"
            self.fail(f"the default of {name} is {text}, which is not a {wanted}", remedy)
        return text

    def returns(self) -> str:
        annotation = self.signature.return_annotation
        if annotation is inspect.Signature.empty:
            self.fail("the return has no annotation", f"annotate it with {_SUPPORTED_RETURNS}")
        annotation = self.evaluated(annotation, "the return")
        if annotation is None:
            return "()"
        elements = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)
        texts = list(map(self.returned, elements))
        if not all(texts):
            self.fail(f"the return has the unsupported type {_shown(annotation)}", f"use {_SUPPORTED_RETURNS}")
        if typing.get_origin(annotation) is not tuple:
            return texts[0]
        # A tuple of one is not the same as one return in parentheses.
        return f"(({texts[0]}))" if len(texts) == 1 else f"({', '.join(texts)})"

    def annotated(self, written: frozenset[str], tags: set[str]) -> str:
        """The returns as the written arguments that they are, of the tag "inplace" or "out"."""
        targets = [(i, p) for i, p in enumerate(self.parameters) if p.name in written]
        plain = all(str(self.type(self.evaluated(p.annotation, p.name))) == "Tensor" for _, p in targets)
        if "inplace" in tags and [i for i, _ in targets] != [0]:
            self.fail('the tag "inplace" needs mutates_args to name the first argument alone', "name it, or omit the tag")
        if "out" in tags and not (targets and all(p.kind is p.KEYWORD_ONLY for _, p in targets)):
            self.fail('the tag "out" needs mutates_args to name keyword-only arguments', "declare them after *, or omit the tag")
        marked = [f"Tensor(a{i}!)" for i, _ in targets]
        if not plain or self.returns() != ("Tensor" if len(marked) == 1 else f"({', '.join(['Tensor'] * len(marked))})"):
            self.fail("the written tensors are not those that are returned", "annotate both with Tensor")
        return marked[0] if len(marked) == 1 else f"({', '.join(marked)})"

    def returned(self, annotation: Any) -> str:
        """The type of one return, "" if it is not supported."""
        args = typing.get_args(annotation)
        if args and typing.get_origin(annotation) is list:
            return "Tensor[]" if str(self.base(args[0])) == "Tensor" else ""
        base = str(self.base(annotation))
        return base if base in _RETURNS else ""


def _declared(cls: type) -> str:
    """The schema type of a class's instances, by its own attribute, or ""."""
    found = getattr(cls, "schema_type", "")
    return found if isinstance(found, str) else ""


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """`T | None` as (T, True), anything else as (itself, False)."""
    args = typing.get_args(annotation)
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType) or types.NoneType not in args:
        return annotation, False
    return typing.Union[tuple(a for a in args if a is not types.NoneType)], True  # noqa: UP007 - made from values


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _shown(annotation: Any) -> str:
    is_class = isinstance(annotation, type) and typing.get_origin(annotation) is None
    return annotation.__name__ if is_class else str(annotation)
