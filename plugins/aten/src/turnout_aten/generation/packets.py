"""`Packet`: the overloads of one public function or method, and the properties that its text depends on.

An overload is a `NativeFunction` of a yaml, or the row of a table: what is asked of it is `Declared`.
"""

from __future__ import annotations

from turnout.operators.stubs import python_name
from turnout_aten.declarations.signatures import tensor_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from turnout.schema.model import Argument, FunctionSchema

    class Declared(Protocol):
        """The properties of an overload that texts depend on."""

        @property
        def qualified_name(self) -> str: ...

        @property
        def schema(self) -> FunctionSchema: ...


class Packet:
    """The overloads of one public name: `bases` are called as they are, `outs` through `out=`."""

    __slots__ = ("bases", "module", "name", "namespace", "outs")

    def __init__(self, name: str, overloads: Iterable[Declared], module: str = "") -> None:
        self.name = name
        self.module = module
        given = list(overloads)
        self.bases = tuple([f for f in given if f.schema.kind != "out"])
        self.outs = tuple([f for f in given if f.schema.kind == "out"])
        self.namespace = given[0].qualified_name.partition("::")[0]

    @property
    def public_name(self) -> str:
        """The name of its function or method: `det` for `linalg_det` of python_module linalg."""
        return public_name(self.name, self.module)

    @property
    def all(self) -> tuple[Declared, ...]:
        """The functions of all overloads."""
        return self.bases + self.outs


def public_name(packet: str, module: str) -> str:
    """The name of a packet's function in the public module of a python_module."""
    return python_name(packet.removeprefix(f"{module}_") if module else packet)


def identifier(function: Declared) -> str:
    """The name of an operator's stub: `add__Tensor`. Unique, as `catalogue.unique_identifiers` checks."""
    return function.qualified_name.partition("::")[2].replace(".", "__")


def cache_name(function: Declared) -> str:
    """The variable that holds the operator's dict from key set to callable."""
    return "K_" + identifier(function)


def stub_name(function: Declared) -> str:
    """The variable that holds the operator's stub."""
    return "op_" + identifier(function)


def packet_name(packet: Packet) -> str:
    """The variable that holds a packet."""
    return "P_" + packet.name


def return_type_name(packet: Packet) -> str:
    """The variable that holds the class of a packet's results."""
    return "R_" + packet.name


# ---- shapes of packets that get better code than a call of the packet


def lead(packet: Packet) -> Declared | None:
    """The overload that a call with tensors only means, where all overloads begin with its positional names.

    Its stub stands inline: `add(x, y)` costs no overload choice, and anything else misses and goes to the packet.
    """
    if len(packet.bases) < 2:
        return None
    found = [
        f for f in packet.bases
        if all(str(a.type) == "Tensor" and not a.has_default for a in f.schema.positional)
        and all(a.has_default for a in f.schema.kwarg_only)
    ]  # fmt: skip
    if len(found) != 1:
        return None
    names = [a.name for a in found[0].schema.positional]
    for f in packet.bases:
        if [a.name for a in f.schema.positional[: len(names)]] != names:
            return None
        if len(f.schema.positional) < len(names):
            return None
    return found[0]


def has_more_positional(packet: Packet, main: Declared) -> bool:
    """Whether some overload takes more positional arguments than the lead."""
    return any(len(f.schema.positional) > len(main.schema.positional) for f in packet.bases)


def int_list_spreads(packet: Packet, *, method: bool) -> str:
    """Whether an int list may be written as several arguments: "only" positional argument, "leading" one, or "".

    "leading" is an int list that one int alone does not mean: there are flags behind it, as in x.sum(0, 1), or an overload takes
    an int, as in x.hsplit(2).

    # differs from torch: `x.sum(0, 1)` is accepted as `x.sum((0, 1))`, since there is nothing else that it could mean.
    """
    kinds = set()
    for f in packet.bases:
        positional = [a for a in f.schema.positional if not (method and a is f.schema.self_argument)]
        if not positional or not is_int_list(positional[0]):
            if len([a for a in positional[:2] if str(a.type).rstrip("?") in ("int", "SymInt", "float", "Scalar")]) == 2:
                return ""
            kinds |= {"number"} if positional and str(positional[0].type) in ("int", "SymInt") else set()
            continue
        if len(positional) == 1:
            kinds.add("only")
        elif str(positional[1].type) == "bool":
            kinds.add("leading")
        else:
            return ""
    if kinds <= {"number"}:
        return ""
    return "only" if kinds == {"only"} else "leading"


def takes_requires_grad(packet: Packet, method: bool) -> bool:
    """Whether it makes tensors from options: turnout.zeros(2), x.new_zeros(2), and no conversion such as x.to(device)."""
    return any(tensor_options(f.schema) for f in packet.bases) and (not method or packet.name.startswith("new_"))


def is_int_list(argument: Argument) -> bool:
    """Whether an argument is int[], int[N] or SymInt[], optional or not."""
    return str(argument.type).startswith(("int[", "SymInt["))


def result_fields(packet: Packet) -> tuple[str, ...]:
    """The names of the results where a packet's overloads have several and name them alike, or ()."""
    several = {tuple(r.name or "" for r in f.schema.returns) for f in packet.bases if len(f.schema.returns) > 1}
    fields = several.pop() if len(several) == 1 else ()
    return fields if all(fields) else ()


def gives_list(function: Declared) -> bool:
    """Whether the one result of an overload is a list of tensors, which its public function and method give as a tuple."""
    returns = function.schema.returns
    return len(returns) == 1 and returns[0].type.is_tensor_list


def same_inputs(base: Declared, out: Declared) -> bool:
    """Whether an out variant takes the arguments of the base, except TensorOptions."""
    options = tensor_options(base.schema)
    own = [(a.name, str(a.type), a.kwarg_only) for a in base.schema.arguments if a not in options]
    return own == [(a.name, str(a.type), a.kwarg_only) for a in out.schema.arguments if not a.is_out]
