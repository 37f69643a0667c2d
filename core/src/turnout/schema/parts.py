"""The parts of a schema: `OperatorName`, `Argument`, `Return`, `Annotation`. All are frozen."""

from __future__ import annotations

from typing import Any

from turnout.config.tuples import NamedTuple
from turnout.schema.defaults import default_of
from turnout.schema.types import Type

# __iadd__ and so on write self; other names between double underscores do not.
_AUGMENTED = ("add", "sub", "mul", "div", "mod", "pow", "lshift", "rshift", "and", "xor", "or")
INPLACE_DUNDERS = frozenset(f"__i{name}__" for name in _AUGMENTED)

WILDCARD = "*"


class OperatorName(NamedTuple):
    """`namespace::name.overload`; `namespace` and `overload` may be ""."""

    namespace: str
    name: str
    overload: str = ""

    @property
    def is_dunder(self) -> bool:
        """Whether the name is `__x__`."""
        return len(self.name) > 4 and self.name.startswith("__") and self.name.endswith("__")

    @property
    def is_inplace(self) -> bool:
        """Whether the name means that self is written: it ends in `_`, or is one such as `__iadd__`."""
        return self.name in INPLACE_DUNDERS if self.is_dunder else self.name.endswith("_") and self.name != "_"

    @property
    def base(self) -> str:
        """The name of all variants: `add` for `add_`, `__add__` for `__iadd__`, `f` for `f_functional`."""
        if self.is_dunder:
            return f"__{self.name[3:]}" if self.is_inplace else self.name
        return self.name[:-1] if self.is_inplace else self.name.removesuffix("_functional")

    @property
    def packet(self) -> str:
        """`namespace::name`, which all overloads share."""
        return f"{self.namespace}::{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.packet}.{self.overload}" if self.overload else self.packet


class Annotation(NamedTuple):
    """The alias annotation of a tensor: `(a)`, `(a!)`, `(a|b)`, `(a! -> a|b)`, `(a -> *)`, `(*)`, or the shorthand `!`.

    `before` are its alias sets, `after` those when the operator returns (empty if not given). The wildcard set is "*".
    `Tensor!` is written, and in a set of its own: `before` is empty.
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
        """Every alias set of the tensor, before or after."""
        return frozenset(self.before + self.after)

    @property
    def before_set(self) -> frozenset[str]:
        """The alias sets before the call."""
        return frozenset(self.before)

    @property
    def after_set(self) -> frozenset[str]:
        """The alias sets after the call."""
        return frozenset(self.after or self.before)

    def __str__(self) -> str:
        """The text after `Tensor`."""
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


class Argument(NamedTuple):
    """One argument. `default_text` is the default as written, or None."""

    name: str
    type: Type
    default_text: str | None = None
    annotation: Annotation | None = None
    kwarg_only: bool = False

    @property
    def has_default(self) -> bool:
        """Whether a call may leave it out."""
        return self.default_text is not None

    @property
    def default(self) -> Any:
        """The default as the Python value that a kernel receives (see `turnout.schema.defaults`). A list is a new one each time.

        Raises LookupError if there is no default: None is a value.
        """
        if self.default_text is None:
            raise LookupError(f"argument {self.name} has no default")
        return default_of(self.type, self.default_text)

    @property
    def default_value(self) -> Any:
        """The default, None if there is none, too: `has_default` tells them apart."""
        return self.default if self.has_default else None

    @property
    def may_be_none(self) -> bool:
        """Whether None is a value of it. `Tensor x=[]` has an undefined tensor for its default, which is None."""
        return self.type.is_optional or (self.has_default and self.default is None)

    @property
    def alias_info(self) -> Annotation | None:
        """The annotation, under PyTorch's name."""
        return self.annotation

    @property
    def is_write(self) -> bool:
        """Whether it is written, as its annotation says."""
        return self.annotation is not None and self.annotation.is_write

    @property
    def is_out(self) -> bool:
        """Whether it is an out argument: keyword-only and written."""
        return self.kwarg_only and self.is_write

    def __str__(self) -> str:
        default = "" if self.default_text is None else f"={self.default_text}"
        return f"{_typed(self.type, self.annotation)} {self.name}{default}"


class Return(NamedTuple):
    """One return. `name` may be None."""

    type: Type
    name: str | None = None
    annotation: Annotation | None = None

    @property
    def alias_info(self) -> Annotation | None:
        """The annotation, under PyTorch's name."""
        return self.annotation

    @property
    def is_write(self) -> bool:
        """Whether it is written, as its annotation says."""
        return self.annotation is not None and self.annotation.is_write

    def __str__(self) -> str:
        typed = _typed(self.type, self.annotation)
        return typed if self.name is None else f"{typed} {self.name}"
