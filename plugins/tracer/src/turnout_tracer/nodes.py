"""What a graph consists of: numbered values, the calls that make them, and tensors from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from turnout.operators import Operator
from turnout.schema import Argument
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout.explanation.user_frames import UserFrame


class Ref:
    """A value of the graph.

    index  its number
    """

    __slots__ = ("index",)
    __unwrapped__ = ("*",)  # a trace makes one for each value

    def __init__(self, index: int) -> None:
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.index == self.index

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return f"%{self.index}"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One call of an operator. It never changes: to edit a graph, put another node into its list.

    op       the operator
    args     its arguments in schema order, `Ref` for tensors
    outputs  a Ref, None, or a list or tuple of them; None for what was written in place
    no_grad  it ran, and runs, with gradients switched off
    line     the line of the program that it was traced from, if a functionality with `asks_lines` was on; no part of a file
    """

    __unwrapped__ = ("*",)

    op: Operator
    args: tuple[Any, ...]
    outputs: Any
    no_grad: bool
    line: UserFrame | None = None

    def __repr__(self) -> str:
        return f"<Node {self.outputs} = {self.op.qualified_name}{self.args}>"


class Constant:
    """A tensor from outside, copied when the function met it. One that the function writes is copied for each replay."""

    __slots__ = ("ref", "tensor", "written")

    def __init__(self, ref: Ref, tensor: Tensor, written: bool = False) -> None:
        self.ref = ref
        self.tensor = tensor
        self.written = written

    def value(self) -> Tensor:
        """The tensor for one replay."""
        return self.tensor.clone() if self.written else self.tensor


def refs_in(value: Any) -> Iterator[Ref]:
    """The values that an argument or an output names."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from refs_in(each)


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """An argument or an output with `change` of each value in it: lists and tuples are made anew."""
    if type(value) in (list, tuple):
        return type(value)([mapped(change, each) for each in value])
    return change(value)


def is_default(argument: Argument, value: Any) -> bool:
    """Whether an argument is what the schema has as its default, to the sign of a zero, so that a call may leave it out."""
    return argument.has_default and _same(argument.default, value)


def _same(default: Any, value: Any) -> bool:
    if isinstance(default, (list, tuple)) and isinstance(value, (list, tuple)):
        return len(default) == len(value) and all(map(_same, default, value))
    return type(default) is type(value) and bool(default == value) and (value != 0 or repr(default) == repr(value))
