"""`FunctionSchema`: the declaration of one operator, of the parts in `turnout.schema.parts`.

It is frozen. A schema that was parsed prints exactly as it was written (`text`); `canonical()` prints it from its
parts. Two schemas are equal when their parts are, white space apart: a default's spelling is a part.

Which arguments are `self`, out or TensorOptions, the kind and the signature follow PyTorch's code generator, so that
the variants of one operator can be grouped as it groups them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from turnout.schema.compatibility import backward_break, forward_break
from turnout.schema.parse import parse_schema
from turnout.schema.parts import INPLACE_DUNDERS as INPLACE_DUNDERS
from turnout.schema.parts import WILDCARD as WILDCARD
from turnout.schema.parts import Annotation as Annotation
from turnout.schema.parts import Argument as Argument
from turnout.schema.parts import OperatorName as OperatorName
from turnout.schema.parts import Return as Return
from turnout.schema.types import OptionalType

Kind = Literal["functional", "inplace", "out", "mutable"]

# The keyword-only run that makes a factory function's tensor, in this order; each may be optional.
TENSOR_OPTIONS = (("dtype", "ScalarType"), ("layout", "Layout"), ("device", "Device"), ("pin_memory", "bool"))

# A schema whose default for one argument is missing for historic reasons, and what its variants have there: without it
# bernoulli.p would not be grouped with bernoulli_.float.
_HISTORIC_DEFAULTS = {"bernoulli.p": {"p": "0.5"}}


@dataclass(frozen=True)
class FunctionSchema:
    """The declaration of one operator. Make one with `FunctionSchema.parse(text)`.

    Values made by hand or with `dataclasses.replace` (set `text=None` there) are not checked; `parse(x.canonical())`
    does.
    """

    name: OperatorName
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    text: str | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def parse(text: str) -> FunctionSchema:
        """The schema that `text` declares. Raises SchemaSyntaxError, which has `.column` and `.expected`."""
        return FunctionSchema(*parse_schema(text), text)

    def __str__(self) -> str:
        return self.canonical() if self.text is None else self.text

    def canonical(self) -> str:
        """The schema printed from its parts, with one space after a comma."""
        arguments = [str(a) for a in self.arguments]
        positional = len(self.positional)
        if positional < len(arguments):
            arguments.insert(positional, "*")
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returns = f"({returns})"
        return f"{self.name}({', '.join(arguments)}) -> {returns}"

    def with_name(self, namespace: str, name: str, overload: str = "") -> FunctionSchema:
        """The same operator under another name."""
        return replace(self, name=OperatorName(namespace, name, overload), text=None)

    # ---- the arguments by their part

    @cached_property
    def positional(self) -> tuple[Argument, ...]:
        """The arguments before `*`."""
        return tuple(a for a in self.arguments if not a.kwarg_only)

    @cached_property
    def kwarg_only(self) -> tuple[Argument, ...]:
        """The arguments after `*`, out arguments included."""
        return tuple(a for a in self.arguments if a.kwarg_only)

    @cached_property
    def out_arguments(self) -> tuple[Argument, ...]:
        """The keyword-only arguments that are written."""
        return tuple(a for a in self.arguments if a.is_out)

    @cached_property
    def self_argument(self) -> Argument | None:
        """The positional argument named `self`: what the method variant is called on."""
        return next((a for a in self.positional if a.name == "self"), None)

    @cached_property
    def mutated_arguments(self) -> tuple[Argument, ...]:
        """Every written argument, in order, out arguments included."""
        return tuple(a for a in self.arguments if a.is_write)

    @cached_property
    def tensor_options(self) -> tuple[Argument, ...]:
        """The keyword-only dtype, layout, device and pin_memory where all four follow each other; else empty."""
        words = self.kwarg_only
        for start in range(len(words) - len(TENSOR_OPTIONS) + 1):
            run = words[start : start + len(TENSOR_OPTIONS)]
            if all(_is_option(a, *option) for a, option in zip(run, TENSOR_OPTIONS, strict=True)):
                return run
        return ()

    def argument(self, name: str) -> Argument:
        """The argument of that name; KeyError when there is none."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise KeyError(name)

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
    def is_factory(self) -> bool:
        """Whether it makes tensors from none: no tensor is an input, and one is returned or written into `out`."""
        if any(a.type.is_tensor_like and not a.is_out for a in self.arguments):
            return False
        return bool(self.out_arguments) or any(r.type.is_tensor_like for r in self.returns)

    @cached_property
    def kind(self) -> Kind:
        """What kind of variant it is, by the rules of PyTorch's generator:

        - `inplace`: the name says so (it ends in `_`, or is `__iadd__` and the like);
        - `out`: a keyword-only argument is written (PyTorch's kind "scratch" too, an out variant with `_scratch_`
          arguments);
        - `mutable`: a positional argument other than self is written;
        - `functional`: everything else, also `set_data(Tensor(a!) self, ...)`. Ask `is_mutable` whether anything is
          written.
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
        found = []
        for r in self.returns:
            sets = frozenset() if r.annotation is None else r.annotation.sets - {WILDCARD}
            found.append(
                tuple(
                    a.name
                    for a in self.arguments
                    if a.annotation is not None and not sets.isdisjoint(a.annotation.sets)
                )
            )
        return tuple(found)

    # ---- how it relates to others

    def signature(self) -> FunctionSchema:
        """What all variants of one operator share; two schemas are variants when their signatures are equal.

        Namespace, overload, in-place mark, annotations, return names, out arguments and TensorOptions are dropped;
        written arguments that are not returned become returns, self first.
        """
        returns = [Return(r.type) for r in self.returns]
        returned = {r.annotation for r in self.returns}
        self_argument = self.self_argument
        after_self = self.positional
        if self_argument is not None:
            after_self = after_self[after_self.index(self_argument) + 1 :]
        written = (*(() if self_argument is None else (self_argument,)), *self.out_arguments, *after_self)
        returns += [Return(a.type) for a in written if a.is_write and a.annotation not in returned]
        options = self.tensor_options
        historic = _HISTORIC_DEFAULTS.get(str(replace(self.name, namespace="")), {})
        arguments = tuple(
            replace(a, annotation=None, default_text=historic.get(a.name, a.default_text))
            for a in self.arguments
            if not a.is_out and a not in options
        )
        return FunctionSchema(OperatorName("", self.name.base), arguments, tuple(returns))

    def is_backward_compatible_with(self, older: FunctionSchema) -> bool:
        """Whether every call that `older` accepts still works the same with this schema."""
        return backward_break(self, older) is None

    def is_forward_compatible_with(self, older: FunctionSchema) -> bool:
        """Whether a call recorded with this schema, defaults left out, works where only `older` is known."""
        return forward_break(self, older) is None


def _is_option(argument: Argument, name: str, type_name: str) -> bool:
    type = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
    return argument.name == name and type.canonical == type_name
