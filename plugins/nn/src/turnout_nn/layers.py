"""What families of modules share: `layer`, which makes a class from its fields; sizes along several dimensions; checks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from itertools import repeat
from types import CodeType, FunctionType
from typing import Any, ClassVar, TypeVar, dataclass_transform

from turnout.nn import functional

from turnout.errors import ShapeError
from turnout_nn import errors
from turnout_nn.module import Module

C = TypeVar("C", bound="type[Layer]")
Size = int | tuple[int, ...]


@dataclass_transform(eq_default=False)
def layer(cls: C) -> C:
    """A class of modules whose annotated fields are the arguments of its `__init__`, and attributes of its instances.

    Its `shows` are all fields if it says nothing else. A class with a `__function__` but no `forward` gives them to that.
    """
    made: Any = dataclass(eq=False, repr=False)(cls)
    names = [field.name for field in fields(made)]
    if made.shows is None:
        made.shows = ", ".join(f"{name}={{{name}}}" for name in names if name != "inplace")
    if hasattr(made, "__function__") and made.forward is Module.forward:
        made.forward = _forward(made, names)
    return made


@cache
def _code(count: int) -> CodeType:
    """The code of a call with so many attributes; no loop over their names is left in it."""
    space: dict[str, Any] = {}
    exec(f"def forward(self, input): return function(input, {', '.join(f'self._{i}' for i in range(count))})", space)
    return space["forward"].__code__


def _forward(cls: Any, names: list[str]) -> FunctionType:
    code = _code(len(names)).replace(co_names=("function", *names))
    made = FunctionType(code, {"__name__": cls.__module__, "function": cls.__function__})
    made.__qualname__, made.__doc__ = f"{cls.__qualname__}.forward", "The function of the input."
    made.__annotations__ = {"input": "Tensor", "return": "Tensor"}
    return made


class Layer(Module):
    """A module without parameters: a function, and the values that it is called with. `layer` makes classes of such.

    shows         what `repr` says, with the names of attributes in braces
    __function__  the function, whose docstring describes the fields that nothing else describes
    """

    shows: ClassVar[Any] = None
    __function__: ClassVar[Any]

    __post_init__ = Module.__init__

    def extra_repr(self) -> str:
        """The values of the fields."""
        own = vars(self)
        shown = [self.shows.format_map(own), "inplace=True" if own.get("inplace") and "{inplace}" not in self.shows else ""]
        return ", ".join(filter(None, shown))


def each(value: Any, ndim: int) -> Any:
    """A value for each of so many dimensions: a number stands for all of them."""
    return tuple(value) if isinstance(value, (tuple, list)) else tuple(repeat(value, ndim))


def check_dims(module: Module, input: Any, *dims: int) -> None:
    """Raise ShapeError unless the input of a module has one of these numbers of dimensions."""
    if input.ndim not in dims:
        raise ShapeError(errors.wrong_ndim(type(module).__name__, " or ".join(map(str, dims)), input))


class _Times(int):
    def __getitem__(self, size: int) -> str:
        return f", {size}" * self


class OfDims(Module):
    """Classes for 1, 2 and 3 dimensions that differ in nothing else: `class MaxPool2d(_MaxPool, ndim=2)`. Their family has

    about  their docstring, if they have none. In braces: dims for "the last 2 dimensions", sizes for "H, W", of[4] for
           ", 4, 4", name and plain for the names of the class and of its last base, ndim and fill
    fill   what the docstring says besides
    calls  the name of their function in `turnout.nn.functional`, with {ndim}
    """

    ndim: ClassVar[int]
    about: ClassVar[str]
    calls: ClassVar[str] = ""
    fill: ClassVar[str] = ""
    __function__: ClassVar[Any]

    def __init_subclass__(cls, ndim: int = 0, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if ndim:
            cls.ndim = ndim
            dims = f"the last {ndim} dimensions" if ndim > 1 else "the last dimension"
            words = {"dims": dims, "sizes": ("L", "H, W", "D, H, W")[ndim - 1], "of": _Times(ndim)}
            words |= {"name": cls.__name__, "plain": cls.__bases__[-1].__name__, "ndim": str(ndim), "fill": cls.fill}
            cls.__doc__ = cls.__doc__ or cls.about.format_map(words)
            if cls.calls:
                cls.__function__ = getattr(functional, cls.calls.format(ndim=ndim))
