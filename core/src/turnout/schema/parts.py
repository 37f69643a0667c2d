"""The values a schema consists of: `OperatorName`, `Argument`, `Return`, `Annotation`. All are frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turnout.schema.defaults import default_of
from turnout.schema.types import Type

# __iadd__ and so on write self; other names between double underscores do not.
_AUGMENTED = ("add", "sub", "mul", "div", "mod", "pow", "lshift", "rshift", "and", "xor", "or")
INPLACE_DUNDERS = frozenset(f"__i{name}__" for name in _AUGMENTED)

WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class OperatorName:
    """`namespace::name.overload`; `namespace` and `overload` are "" where they are not written."""

    namespace: str
    name: str
    overload: str = ""

    @property
    def is_dunder(self) -> bool:
        """Whether the name is `__x__`."""
        return len(self.name) > 4 and self.name.startswith("__") and self.name.endswith("__")

    @property
    def is_inplace(self) -> bool:
        """Whether the name says that self is written: it ends in `_`, or is `__iadd__` and the like."""
        return self.name in INPLACE_DUNDERS if self.is_dunder else self.name.endswith("_") and self.name != "_"

    @property
    def base(self) -> str:
        """The name that all variants share: `add` for `add_`, `__add__` for `__iadd__`, `f` for `f_functional`."""
        if self.is_dunder:
            return f"__{self.name[3:]}" if self.is_inplace else self.name
        return self.name[:-1] if self.is_inplace else self.name.removesuffix("_functional")

    @property
    def packet(self) -> str:
        """`namespace::name`, what all overloads share."""
        return f"{self.namespace}::{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.packet}.{self.overload}" if self.overload else self.packet


@dataclass(frozen=True, slots=True)
class Annotation:
    """The alias annotation of a tensor: `(a)`, `(a!)`, `(a|b)`, `(a! -> a|b)`, `(a -> *)`, `(*)`, or the shorthand `!`.

    `before` are the alias sets it belongs to, `after` those it is in when the operator returns (empty where not
    written); the wildcard set is "*". `Tensor!` is written and in a fresh set of its own: `before` is empty.
    """

    before: tuple[str, ...] = ()
    is_write: bool = False
    after: tuple[str, ...] = ()

    @property
    def is_shorthand(self) -> bool:
        """Whether it is `Tensor!`."""
        return not self.before

    @property
    def sets(self) -> frozenset[str]:
        """Every alias set the tensor is in before or after."""
        return frozenset(self.before + self.after)

    def __str__(self) -> str:
        """What stands behind `Tensor`."""
        if not self.before:
            return "!"
        after = f" -> {'|'.join(self.after)}" if self.after else ""
        return f"({'|'.join(self.before)}{'!' if self.is_write else ''}{after})"


def _typed(type: Type, annotation: Annotation | None) -> str:
    text = str(type)
    if annotation is None:
        return text
    base = str(type.base)
    return f"{base}{annotation}{text[len(base) :]}"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `default_text` is the default as written, None where there is none."""

    name: str
    type: Type
    default_text: str | None = None
    annotation: Annotation | None = None
    kwarg_only: bool = False

    @property
    def has_default(self) -> bool:
        return self.default_text is not None

    @property
    def default(self) -> Any:
        """The default as the Python value a kernel receives (`turnout.schema.defaults` has the table).

        A list is a new one each time. Raises LookupError when there is no default: None is a value.
        """
        if self.default_text is None:
            raise LookupError(f"argument {self.name} has no default")
        return default_of(self.type, self.default_text)

    @property
    def is_write(self) -> bool:
        return self.annotation is not None and self.annotation.is_write

    @property
    def is_out(self) -> bool:
        """Whether results are written into it: keyword-only and written."""
        return self.kwarg_only and self.is_write

    def __str__(self) -> str:
        default = "" if self.default_text is None else f"={self.default_text}"
        return f"{_typed(self.type, self.annotation)} {self.name}{default}"


@dataclass(frozen=True, slots=True)
class Return:
    """One return; `name` is None where it has none."""

    type: Type
    name: str | None = None
    annotation: Annotation | None = None

    @property
    def is_write(self) -> bool:
        return self.annotation is not None and self.annotation.is_write

    def __str__(self) -> str:
        typed = _typed(self.type, self.annotation)
        return typed if self.name is None else f"{typed} {self.name}"
