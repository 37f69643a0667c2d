"""Native functions: the entries of a `native_functions.yaml`, checked, grouped, and completed by generated variants.

`reading` makes a `NativeFunctions` from a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from turnout.config.lock import cached_property
from turnout.operators.placement import INDICES_MIX
from turnout.schema.model import Argument, FunctionSchema
from turnout_aten.declarations.tables import FINITE, INPLACE_VIEW, PARTIAL, RESIZES, SHARES_STORAGE, TOTAL
from turnout_aten.tags import Tag

VARIANTS = ("function", "method")
DEVICE_CHECKS = ("ExactSame", "NoCheck")

# The allowed tags: those of PyTorch, and those of Turnout.
# Variants made by autogen get `generated`. PyTorch's tags inplace and out are not needed; the kind of the schema says the same.
TAGS = frozenset({*map(str, Tag), FINITE, INDICES_MIX, PARTIAL, RESIZES, SHARES_STORAGE, TOTAL})


def _empty() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Precomputed:
    """The values that a shape function computes for the kernel.

    `replace` maps an argument to the arguments that the kernel gets in its place. `add` holds further arguments, passed last.
    """

    replace: Mapping[str, tuple[Argument, ...]]
    add: tuple[Argument, ...] = ()

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Argument -> the names that replace it; "" -> the added names."""
        found = {name: tuple(a.name for a in arguments) for name, arguments in self.replace.items()}
        if self.add:
            found[""] = tuple(a.name for a in self.add)
        return found


@dataclass(frozen=True, eq=False)
class NativeFunction:
    """One entry.

    schema      the declaration; its namespace is that of `namespace` or of the file
    dispatch    dispatch key -> name of the kernel function. Without a `dispatch` field it is CompositeImplicitAutograd
    and the
                operator's own name; `dispatch: {}` says that kernels come from elsewhere
    autogen     names of the variants to make from this one
    notes       one line for each historic field or spelling that was accepted
    base        for a generated variant, the entry it was made from
    """

    schema: FunctionSchema
    namespace: str
    source: str = "<text>"
    line: int = 0
    variants: frozenset[str] = frozenset({"function"})
    dispatch: Mapping[str, str] = field(default_factory=_empty)
    device_guard: bool = True
    device_check: str = "ExactSame"
    manual_kernel_registration: bool = False
    manual_cpp_binding: bool = False
    use_const_ref_for_mutable_tensors: bool = False
    autogen: tuple[str, ...] = ()
    structured: bool = False
    structured_delegate: str | None = None
    structured_inherits: str | None = None
    precomputed: Precomputed | None = None
    category_override: str | None = None
    python_module: str | None = None
    tags: frozenset[str] = frozenset()
    cpp_no_default_args: frozenset[str] = frozenset()
    ufunc_inner_loop: Mapping[str, str] = field(default_factory=_empty)
    notes: tuple[str, ...] = ()
    base: NativeFunction | None = field(default=None, repr=False)

    @cached_property
    def name(self) -> str:
        """`add.Tensor`, without the namespace."""
        name = self.schema.name
        return f"{name.name}.{name.overload}" if name.overload else name.name

    @property
    def qualified_name(self) -> str:
        """`aten::add.Tensor`."""
        return f"{self.namespace}::{self.name}"

    @property
    def schema_text(self) -> str:
        """The declaration with its namespace."""
        text = str(self.schema)
        return text if self.schema.name.namespace else f"{self.namespace}::{text}"

    @property
    def is_generated(self) -> bool:
        """Whether autogen made this function."""
        return self.base is not None

    @property
    def is_structured(self) -> bool:
        """Whether the function is structured or delegates to a structured one."""
        return self.structured or self.structured_delegate is not None

    @property
    def is_view(self) -> bool:
        """Whether the function returns a view, or turns self into one."""
        turns = INPLACE_VIEW in self.tags and RESIZES not in self.tags
        wildcard = any(a.annotation is not None and "*" in a.annotation.after for a in self.schema.arguments)
        return self.schema.is_view or turns or wildcard

    def __str__(self) -> str:
        return self.qualified_name


@dataclass(frozen=True, eq=False)
class Group:
    """The variants of one operator: the entries whose schemas have one signature."""

    functional: NativeFunction | None = None
    inplace: NativeFunction | None = None
    mutable: NativeFunction | None = None
    out: NativeFunction | None = None

    def __iter__(self) -> Iterator[NativeFunction]:
        return iter([f for f in (self.functional, self.inplace, self.mutable, self.out) if f is not None])

    @property
    def is_structured(self) -> bool:
        return self.out is not None and self.out.structured

    @property
    def name(self) -> str:
        """The name of the first existing variant, functional first."""
        return next(iter(self)).name


class NativeFunctions:
    """All functions of a file: first the declared ones, then those made by autogen. Iterates in that order."""

    def __init__(self, functions: Iterable[NativeFunction], groups: Iterable[Group], source: str) -> None:
        self.functions = tuple(functions)
        self.groups = tuple(groups)
        self.source = source
        self.by_name = {f.qualified_name: f for f in self.functions}
        self._group_of = {f.qualified_name: group for group in self.groups for f in group}

    def __iter__(self) -> Iterator[NativeFunction]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __getitem__(self, name: str) -> NativeFunction:
        """The function `namespace::name.overload`. The namespace is optional if the file has only one."""
        if "::" in name:
            return self.by_name[name]
        found = [f for f in self.functions if f.name == name]
        if len(found) != 1:
            raise KeyError(name)
        return found[0]

    def group_of(self, function: NativeFunction) -> Group:
        """The group of a function."""
        return self._group_of[function.qualified_name]

    def delegate_of(self, function: NativeFunction) -> NativeFunction | None:
        """The structured out function behind a function: itself, its delegate, or None."""
        if function.structured:
            return function
        if function.structured_delegate is None:
            return None
        return self.by_name[f"{function.namespace}::{function.structured_delegate}"]

    @property
    def notes(self) -> list[str]:
        """The historic fields and spellings that were accepted, as `file:line: entry: note`."""
        return [f"{f.source}:{f.line}: {f.name}: {note}" for f in self.functions for note in f.notes]
