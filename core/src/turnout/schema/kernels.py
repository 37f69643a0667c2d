"""Whether a Python function can be a kernel: it must accept the calls of the schema, and its defaults must agree.

A kernel is called with all arguments, keyword-only ones by keyword and the others by position. Its own defaults are never
used, so a different one is a mistake that only a direct call would show.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from turnout.dtypes import DType
from turnout.errors.schemas import kernel_signature
from turnout.schema.model import Argument, FunctionSchema
from turnout.schema.types import ListType, OptionalType

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_EMPTY = inspect.Parameter.empty


def check_kernel_signature(function: Callable[..., Any], schema: FunctionSchema, *, with_keyset: bool = False) -> None:
    """Raise KernelSignatureError, showing both signatures, when `function` does not fit `schema`.

    `with_keyset`: a key set is passed before the arguments. Parameters that the schema lacks need a default. Callables
    without a signature, such as some builtins, are accepted.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    problem = next(_problems(list(signature.parameters.values()), schema, int(with_keyset)), None)
    if problem is not None:
        name = getattr(function, "__name__", type(function).__name__)
        raise kernel_signature(schema, f"{name}{signature}", problem)


def _problems(parameters: list[inspect.Parameter], schema: FunctionSchema, leading: int) -> Iterator[str]:
    by_position = [p for p in parameters if p.kind in _BY_POSITION]
    kinds = {p.kind for p in parameters}
    count = leading + len(schema.positional)
    if len(by_position) < count and inspect.Parameter.VAR_POSITIONAL not in kinds:
        what = "the key set and " if leading else ""
        yield f"it takes {len(by_position)} positional arguments, and is given {what}{len(schema.positional)}"
    pairs = list(zip(by_position[leading:], schema.positional, strict=False))
    taking, given = [p.name for p, _ in pairs], [a.name for _, a in pairs]
    if taking != given and sorted(taking) == sorted(given):
        # differs from torch: a kernel with the names of its schema in another order, `(b, a)` for `(a, b)`, is refused. PyTorch
        # calls it with its arguments exchanged.
        yield f"it takes {', '.join(taking)} by position, and is given {', '.join(given)}"
    taken = {p.name: p for p in by_position[:count] if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
    free = {p.name: p for p in by_position[count:] + [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]}
    for argument in schema.kwarg_only:
        if argument.name in taken:
            yield f"{argument.name} is given by keyword, and its place is taken by a positional argument"
        parameter = free.get(argument.name)
        if parameter is not None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            del free[argument.name]
            pairs.append((parameter, argument))
        elif inspect.Parameter.VAR_KEYWORD not in kinds:
            yield f"it has no keyword argument {argument.name}"
    for extra in free.values():
        if extra.default is _EMPTY:
            yield f"it requires {extra.name}, which the schema does not have"
    for parameter, argument in pairs:
        if parameter.default is not _EMPTY and argument.has_default and not _agrees(parameter.default, argument):
            yield (f"{parameter.name} defaults to {parameter.default!r}, and to {argument.default_text} in the schema")


def _agrees(own: Any, argument: Argument) -> bool:
    declared = argument.default
    type = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
    if isinstance(declared, list):
        if isinstance(own, (list, tuple)):
            return len(own) == len(declared) and all(map(_equal, own, declared))
        # A bare number means the list that repeats it.
        return isinstance(type, ListType) and type.size is not None and bool(declared) and all(_equal(own, d) for d in declared)
    if isinstance(declared, str) and type.canonical != "str" and not isinstance(own, str) and own is not None:
        # The schema names a device, layout or memory format; its object prints as the name or as module.name.
        return str(own) == declared or str(own).rpartition(".")[2] == declared
    return _equal(own, declared)


def _equal(own: Any, declared: Any) -> bool:
    if declared is None or isinstance(declared, (bool, DType)) or own is None or isinstance(own, bool):
        return own is declared
    if isinstance(declared, float) and declared != declared:
        return isinstance(own, float) and own != own
    # Only a plain value can equal a default in a schema: the == of an array does not return a bool.
    return isinstance(own, (int, float, complex, str)) and bool(own == declared)
