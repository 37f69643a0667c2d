"""The types of the schema language: base types, `T?`, `T[]`, `T[N]`, and the tuple of a returned 1-tuple.

All are frozen, interned by spelling, and print as they were written: the historic `BoolTensor` stays `BoolTensor`. Rules read
`canonical`, which is `Tensor` for it.
"""

from __future__ import annotations

from functools import cache

from turnout.config.tuples import NamedTuple

# `overloads` decides which values each type takes, `defaults` which defaults.
BASE_TYPES = (
    "Tensor", "bool", "int", "SymInt", "DeviceIndex", "float", "SymFloat", "complex", "Scalar", "SymBool", "str",
    "ScalarType", "Device", "Layout", "MemoryFormat", "QScheme", "Generator", "Storage", "Stream", "DimVector",
    "Dimname", "GraphModule", "TensorOptions",
)  # fmt: skip

INTS = ("int", "SymInt", "DeviceIndex")  # base types of whole numbers

# Spellings of older native_functions.yaml files.
HISTORIC_TYPES = dict.fromkeys(("BoolTensor", "ByteTensor", "IndexTensor", "IntegerTensor", "SparseTensorRef"), "Tensor")

CUSTOM_CLASS_PREFIX = "__torch__.torch.classes."

_NAMED = {**{name: name for name in BASE_TYPES}, **HISTORIC_TYPES}


class Type:
    """A type. Rules compare its spelling `canonical`. Types of the same spelling are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Type) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    @property
    def canonical(self) -> str:
        """The spelling by which rules compare."""
        raise NotImplementedError(f"{type(self).__name__} must define canonical")

    @property
    def base(self) -> BaseType | None:
        """The innermost type: `int` for `int[2]?`. None for a tuple."""
        return self.elem.base if isinstance(self, (OptionalType, ListType)) else None

    @property
    def is_tensor_like(self) -> bool:
        """Whether it is Tensor, or an optional or list of it."""
        return self.base is not None and self.base.canonical == "Tensor"

    @property
    def is_tensor(self) -> bool:
        """Whether it is Tensor or Tensor?."""
        return self.is_tensor_like and not self.is_list

    @property
    def is_tensor_list(self) -> bool:
        """Whether it is a list of tensors, optional or of optional ones."""
        return self.is_tensor_like and self.is_list

    @property
    def is_list(self) -> bool:
        """Whether it is a list, optional or not."""
        return isinstance(self.elem if isinstance(self, OptionalType) else self, ListType)

    @property
    def is_optional(self) -> bool:
        """Whether it takes None."""
        return isinstance(self, OptionalType)


class _Base(NamedTuple):
    name: str


class BaseType(Type, _Base):
    """`Tensor`, `int`, ..., or a custom class `__torch__.torch.classes.ns.Name`."""

    __slots__ = ()

    @property
    def canonical(self) -> str:
        return _NAMED.get(self.name, self.name)

    @property
    def base(self) -> BaseType:
        return self

    @property
    def is_custom_class(self) -> bool:
        """Whether it is a class of TorchScript."""
        return self.name.startswith(CUSTOM_CLASS_PREFIX)

    def __str__(self) -> str:
        return self.name


class _Optional(NamedTuple):
    elem: Type


class OptionalType(Type, _Optional):
    """`elem?`: `None` is accepted as well."""

    __slots__ = ()

    @property
    def canonical(self) -> str:
        return f"{self.elem.canonical}?"

    def __str__(self) -> str:
        return f"{self.elem}?"


class _List(NamedTuple):
    elem: Type
    size: int | None = None


class ListType(Type, _List):
    """`elem[]`, or `elem[size]`: a bare element is accepted too and repeated `size` times."""

    __slots__ = ()

    @property
    def canonical(self) -> str:
        return f"{self.elem.canonical}[{'' if self.size is None else self.size}]"

    def __str__(self) -> str:
        return f"{self.elem}[{'' if self.size is None else self.size}]"


class _Tuple(NamedTuple):
    elems: tuple[Type, ...]


class TupleType(Type, _Tuple):
    """`(T, ...)` as the type of one return: that of a function annotated `tuple[Tensor]`, `-> ((Tensor))`."""

    __slots__ = ()

    @property
    def canonical(self) -> str:
        return f"({', '.join(e.canonical for e in self.elems)})"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elems))})"


@cache
def type_named(name: str) -> BaseType | None:
    """The base type of a spelling, which may be historic or a custom class; None for any other."""
    if name in _NAMED or (name.startswith(CUSTOM_CLASS_PREFIX) and len(name) > len(CUSTOM_CLASS_PREFIX)):
        return BaseType(name)
    return None


optional_of = cache(OptionalType)
list_of = cache(ListType)
