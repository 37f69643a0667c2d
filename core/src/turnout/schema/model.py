"""`FunctionSchema`: the declaration of one operator, of the parts in `turnout.schema.parts`.

It is frozen. A schema that was parsed prints exactly as it was written (`text`); `canonical()` prints it from its
parts. Two schemas are equal when their parts are, white space apart: a default's spelling is a part.

Which arguments are `self` or out, and the kind, follow PyTorch's code generator.
"""

from __future__ import annotations

from typing import Any, Literal

from turnout.config.lock import cached_property
from turnout.config.tuples import NamedTuple
from turnout.schema.parse import parse_schema

from turnout.schema.parts import (  # isort: skip
    INPLACE_DUNDERS as INPLACE_DUNDERS, WILDCARD as WILDCARD, Annotation as Annotation, Argument as Argument,
    OperatorName as OperatorName, Return as Return,
)  # fmt: skip

Kind = Literal["functional", "inplace", "out", "mutable"]


class _Parts(NamedTuple):
    name: OperatorName
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    text: str | None = None


class FunctionSchema(_Parts):
    """The declaration of one operator. Make one with `FunctionSchema.parse(text)`.

    Values made by hand or with `_replace` (which must set `text=None`) are not checked; `parse(x.canonical())` does.
    """

    def __eq__(self, other: object) -> bool:
        return self[:3] == other[:3] if isinstance(other, FunctionSchema) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:3])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a schema cannot be changed, and {name} would be")

    @staticmethod
    def parse(text: str) -> FunctionSchema:
        """The schema that `text` declares. Raises SchemaSyntaxError, which has `.column` and `.expected`."""
        return FunctionSchema(*parse_schema(text), text)

    def __str__(self) -> str:
        return self.canonical() if self.text is None else self.text

    def canonical(self) -> str:
        """The schema printed from its parts, with one space after a comma."""
        arguments = [str(a) for a in self.arguments]
        if len(self.positional) < len(arguments):
            arguments.insert(len(self.positional), "*")
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returns = f"({returns})"
        return f"{self.name}({', '.join(arguments)}) -> {returns}"

    def with_name(self, namespace: str, name: str, overload: str = "") -> FunctionSchema:
        """The same operator under another name."""
        return self._replace(name=OperatorName(namespace, name, overload), text=None)

    # ---- the arguments by their part

    @cached_property
    def positional(self) -> tuple[Argument, ...]:
        """The arguments before `*`."""
        return tuple(a for a in self.arguments if not a.kwarg_only)

    @cached_property
    def kwarg_only(self) -> tuple[Argument, ...]:
        """The arguments after `*`, out arguments included."""
        return tuple(a for a in self.arguments if a.kwarg_only)

    def by_keyword(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All arguments as a call gives them: those before `*`, and those after it by name."""
        split = len(self.positional)
        return args[:split], {a.name: value for a, value in zip(self.kwarg_only, args[split:], strict=True)}

    @cached_property
    def out_arguments(self) -> tuple[Argument, ...]:
        """The keyword-only arguments that are written."""
        return tuple(a for a in self.arguments if a.is_out)

    @cached_property
    def self_argument(self) -> Argument | None:
        """The positional argument named `self`, on which the method variant is called."""
        return next((a for a in self.positional if a.name == "self"), None)

    @cached_property
    def mutated_arguments(self) -> tuple[Argument, ...]:
        """Every written argument, in order, out arguments included."""
        return tuple(a for a in self.arguments if a.is_write)

    @cached_property
    def mutated_places(self) -> tuple[int, ...]:
        """The numbers of the arguments that are written."""
        return tuple(i for i, a in enumerate(self.arguments) if a.is_write)

    def argument(self, name: str) -> Argument:
        """The argument of that name. Raises KeyError if there is none."""
        return {a.name: a for a in self.arguments}[name]

    @cached_property
    def takes_tensors(self) -> bool:
        """Whether an argument is a tensor or a list of tensors, optional ones included."""
        return any(a.type.is_tensor_like for a in self.arguments)

    @cached_property
    def gives_tensors(self) -> bool:
        """Whether a result is a tensor or a list of tensors."""
        return any(r.type.is_tensor_like for r in self.returns)

    # ---- what it does to its arguments

    @property
    def is_mutable(self) -> bool:
        """Whether any argument is written, self and out included."""
        return bool(self.mutated_arguments)

    @cached_property
    def is_view(self) -> bool:
        """Whether a return shares memory with an argument that is not written: `(a)` on both sides."""
        return any(r.annotation is not None and not r.annotation.is_write for r in self.returns)

    @cached_property
    def kind(self) -> Kind:
        """What kind of variant it is, by the rules of PyTorch's generator:

        - `inplace`: the name says so (it ends in `_`, or is `__iadd__` and the like);
        - `out`: a keyword-only argument is written (PyTorch's kind "scratch" too, an out variant with `_scratch_`
          arguments);
        - `mutable`: a positional argument other than self is written;
        - `functional`: everything else, also `set_data(Tensor(a!) self, ...)`; `is_mutable` says whether anything is written.
        """
        if self.name.is_inplace:
            return "inplace"
        if self.out_arguments:
            return "out"
        if any(a.is_write for a in self.positional if a is not self.self_argument):
            return "mutable"
        return "functional"

    @cached_property
    def return_aliases(self) -> tuple[tuple[str, ...], ...]:
        """For each return, the names of the arguments it may share memory with."""
        annotated = [(a.name, a.annotation.sets) for a in self.arguments if a.annotation is not None]
        shared = [frozenset() if r.annotation is None else r.annotation.sets - {WILDCARD} for r in self.returns]
        return tuple(tuple(name for name, own in annotated if not sets.isdisjoint(own)) for sets in shared)
