"""What families of modules share: `layer`, which makes a class from its fields; sizes along several dimensions; checks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, TypeVar, dataclass_transform

from turnout_nn.module import Module

C = TypeVar("C", bound="type[Layer]")
Size = int | tuple[int, ...]


@dataclass_transform(eq_default=False)
def layer(cls: C) -> C:
    """A class of modules whose annotated fields are the arguments of its `__init__`, and attributes of its instances."""
    made: Any = dataclass(eq=False, repr=False)(cls)
    return made


class Layer(Module):
    """A module without parameters: a function, and the values that it is called with. `layer` makes classes of such.

    shows  what `repr` says, with the names of attributes in braces
    """

    shows: ClassVar[str] = ""

    def __post_init__(self) -> None:
        super().__init__()

    def extra_repr(self) -> str:
        """The values of the fields."""
        own = vars(self)
        shown = [self.shows.format_map(own), "inplace=True" if own.get("inplace") and "{inplace}" not in self.shows else ""]
        return ", ".join(filter(None, shown))


def each(value: Any, ndim: int) -> Any:
    """A value for each of so many dimensions: a number stands for all of them."""
    return tuple(value) if isinstance(value, (tuple, list)) else tuple(repeat(value, ndim))
