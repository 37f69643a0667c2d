"""Reads the arguments of `turnout explain`: small expressions, never evaluated as code.

float32[2,3]            a tensor; also float32[2,3]:grad, float32[2,3]@cuda:0, both together in either order
ones(2,3)               a tensor of the default dtype; also zeros, rand, randn, empty, tensor
3  2.5  1e-3  true  none  "text"  float64   numbers, constants, texts, dtypes
[1,2]  [float32[2],float32[2]]               lists
alpha=2                 any of them by keyword
"""

from __future__ import annotations

import re
from typing import Any

import click

from turnout.keys.rows import DEVICE_NAME

_DEVICE = rf"{DEVICE_NAME}(?::[0-9]+)?"
_REST = re.compile(rf":grad|@{_DEVICE}")
_TENSOR = re.compile(rf"(?P<dtype>[a-z]+[0-9]*)\[(?P<shape>[0-9, ]*)\](?P<rest>({_REST.pattern})*)")
_FACTORY = re.compile(rf"(ones|zeros|rand|randn|empty|tensor)\((?P<shape>[0-9, ]*)\)(?P<rest>({_REST.pattern})*)")
_KEYWORD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?!=)(.+)", re.DOTALL)
_CONSTANTS = {"none": None, "true": True, "false": False, "inf": float("inf"), "nan": float("nan")}


def read(texts: tuple[str, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments. Raises click.BadParameter for any other form.

    Tensors activate the backend of their device, `:grad` activates Autograd; their elements are not set.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for text in texts:
        keyword = _KEYWORD.fullmatch(text)
        if keyword:
            keywords[keyword[1]] = value(keyword[2])
        elif keywords:
            raise click.BadParameter(f"{text!r} stands after a keyword argument")
        else:
            positional.append(value(text))
    return positional, keywords


def value(text: str) -> Any:
    """What one expression stands for."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [value(part) for part in _split(text[1:-1])]
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    for read_number in (int, float, complex):
        try:
            return read_number(text)
        except ValueError:
            pass
    tensor = _TENSOR.fullmatch(text) or _FACTORY.fullmatch(text)
    if tensor:
        return _tensor(tensor.groupdict().get("dtype"), tensor["shape"], tensor["rest"] or "", text)
    dtype = _dtype(text)
    if dtype is not None:
        return dtype
    if re.fullmatch(_DEVICE, text):
        return text  # a device, a layout or a rounding mode: texts without blanks need no quotes
    raise click.BadParameter(
        f"{text!r} is not a value: write float32[2,3], float32[2,3]:grad@cpu, ones(2,3), a number, [1,2], true, none or 'text'"
    )


def _split(text: str) -> list[str]:
    """The parts between the commas that are outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]] if text[start:].strip() else parts


def _dtype(name: str) -> Any:
    import turnout

    found = getattr(turnout, name, None) if name.isidentifier() else None
    return found if isinstance(found, turnout.DType) else None


def _tensor(dtype_name: str | None, shape: str, rest: str, text: str) -> Any:
    import turnout
    from turnout.dtypes import DTYPES
    from turnout.errors.layout import near
    from turnout_aten.tensor.devices import default_device, device
    from turnout_aten.tensor.tensor import wrap

    dtype = turnout.get_default_dtype() if dtype_name is None else _dtype(dtype_name)
    if dtype is None:
        hint = near(dtype_name or "", DTYPES) or "; turnout has float32, int64, bool and others"
        raise click.BadParameter(f"{text!r}: {dtype_name!r} is not a dtype{hint}")
    options = _REST.findall(rest)
    places = [option[1:] for option in options if option.startswith("@")]
    place = device(places[-1]) if places else default_device()
    backend = place.backend
    place = backend.resolve_device(place)
    sizes = tuple(int(size) for size in shape.replace(" ", "").split(",") if size)
    made = wrap(backend.empty(sizes, dtype, place), place)
    return made.requires_grad_() if ":grad" in options else made
