"""The values of defaults: `read_default(type, text)` is the Python value that a kernel receives.

| type | spelling | value |
|---|---|---|
| int SymInt DeviceIndex | `-1`; `Mean`, `Sum` (the reductions) | int; 1, 2 |
| float SymFloat | `1`, `1e-05`, `inf`, `-inf`, `nan` | float, also for an int literal |
| complex | any number, `1j` | complex |
| Scalar | any number, `True`, `False` | int, float, complex or bool as written |
| bool SymBool | `True`, `False` | bool |
| str, Device | a quoted string | the str |
| ScalarType | `long`, `float32`, ... | the `DType` |
| Layout MemoryFormat QScheme | `strided`, `contiguous_format`, ... | the name, a str |
| T? | `None`, or as T | None |
| Tensor Tensor? TensorOptions | `[]` | None: an undefined tensor |
| T[] | `[0, 0]` | list |
| T[N] | as T[], or one element | list, the element repeated N times |

A list must have the declared length if that is 2 or more and the list is not empty: `int[1] dim=[-2,-1]` exists.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from turnout.dtypes import ALIASES, DTYPES
from turnout.errors.schemas import SchemaSyntaxError
from turnout.schema.tokens import END, NAME, NUMBER, STRING, Token, described, tokenize
from turnout.schema.types import INTS, ListType, OptionalType, Type

REDUCTIONS = {"Mean": 1, "Sum": 2}

LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
QSCHEMES = ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric")
_NAMES = {"Layout": LAYOUTS, "MemoryFormat": MEMORY_FORMATS, "QScheme": QSCHEMES}

_BOOLS = ({"True": True, "False": False}, "True or False")
# `turnout.dtypes` does not know byte and char, which are PyTorch's.
_DTYPES = {**DTYPES, **ALIASES, "byte": DTYPES["uint8"], "char": DTYPES["int8"]}
# The types whose defaults are single words: the value of each word, and what an error says of them.
_WORDS: dict[str, tuple[Mapping[str, Any], str]] = {
    "bool": _BOOLS,
    "SymBool": _BOOLS,
    "ScalarType": (_DTYPES, "the name of a dtype, such as long or float32"),
    **{type: ({word: word for word in words}, f"one of {', '.join(words)}") for type, words in _NAMES.items()},
}

_FLOATS = ("float", "SymFloat")
_SPECIAL_FLOATS = ("inf", "nan")


def default_of(type: Type, text: str) -> Any:
    """The value of a default. A list is a new one each time, so that callers cannot change each other's."""
    value = read_default(type, text)
    return list(value) if isinstance(value, tuple) else value


@lru_cache(maxsize=4096)
def read_default(type: Type, text: str) -> Any:
    """The value of a default, with tuples for lists. Raises SchemaSyntaxError with a column in `text`."""
    tokens = tokenize(text)
    value, index = _read(type, text, tokens, 0)
    if tokens[index][0] != END:
        raise _wrong(text, tokens[index], "one value")
    return value


def _wrong(text: str, token: Token, expected: str) -> SchemaSyntaxError:
    return SchemaSyntaxError(text, token[2], expected, described(token))


def _read(type: Type, text: str, tokens: list[Token], index: int) -> tuple[Any, int]:
    token = tokens[index]
    if isinstance(type, OptionalType):
        if token[1] == "None":
            return None, index + 1
        return _read(type.elem, text, tokens, index)
    if isinstance(type, ListType):
        if token[0] == "[":
            return _read_list(type, text, tokens, index)
        if type.size is None:
            raise _wrong(text, token, f"a list of {type.elem} in brackets")
        value, index = _read(type.elem, text, tokens, index)
        return (value,) * type.size, index
    return _read_base(type, text, tokens, index)


def _read_list(type: ListType, text: str, tokens: list[Token], index: int) -> tuple[Any, int]:
    opening = tokens[index]
    values: list[Any] = []
    index += 1
    while tokens[index][0] != "]":
        if values:
            if tokens[index][0] != ",":
                raise _wrong(text, tokens[index], "',' or ']'")
            index += 1
        value, index = _read(type.elem, text, tokens, index)
        values.append(value)
    base = type.base
    exact = type.size is not None and (type.size > 1 or (base is not None and base.canonical == "bool"))
    if exact and values and len(values) != type.size:
        raise SchemaSyntaxError(text, opening[2], f"{type.size} values for {type}", f"{len(values)}")
    return tuple(values), index + 1


def _read_base(type: Type, text: str, tokens: list[Token], index: int) -> tuple[Any, int]:
    name = type.canonical
    kind, word, _ = token = tokens[index]
    if name in ("Tensor", "TensorOptions"):
        if kind == "[" and tokens[index + 1][0] == "]":
            return None, index + 2
        raise _wrong(text, token, f"[] (undefined), or the type {type}? for None")
    if name in _WORDS:
        words, expected = _WORDS[name]
        if word in words:
            return words[word], index + 1
        raise _wrong(text, token, expected)
    if name in ("str", "Device"):
        if kind == STRING:
            return ast.literal_eval(word), index + 1
        raise _wrong(text, token, "a quoted string")
    if name in INTS or name in _FLOATS or name in ("Scalar", "complex"):
        return _read_number(name, text, tokens, index)
    raise _wrong(text, token, f"no default, because a {type} has none; a {type}? may have None")


def _read_number(name: str, text: str, tokens: list[Token], index: int) -> tuple[Any, int]:
    start = tokens[index]
    negative = start[0] == "-"
    kind, word, _ = tokens[index + 1] if negative else start
    stop = index + 2 if negative else index + 1
    if name in INTS and not negative and word in REDUCTIONS:
        return REDUCTIONS[word], stop
    if name == "Scalar" and not negative and word in ("True", "False"):
        return word == "True", stop
    value: int | float | complex
    if kind == NAME and word in _SPECIAL_FLOATS and name not in INTS:
        value = float(word)
    elif kind == NUMBER:
        # Not literal_eval: it refuses 007, which is a decimal number here.
        value = int(word) if word.isdigit() else complex(word) if word.endswith("j") else float(word)
    else:
        raise _wrong(text, start, _NUMBERS.get(name, "a number"))
    if (name in INTS and not isinstance(value, int)) or (name in _FLOATS and isinstance(value, complex)):
        raise _wrong(text, start, _NUMBERS[name])
    if name in _FLOATS:
        value = float(value.real)
    elif name == "complex":
        value = complex(value)
    return (-value if negative else value), stop


_NUMBERS = {**dict.fromkeys(INTS, "an integer"), **dict.fromkeys(_FLOATS, "a real number")}
