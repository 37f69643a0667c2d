"""What is to be generated: identifiers of stubs, which operators are public, how overloads go together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from turnout.operators.stubs import STUB_GLOBALS, python_name
from turnout.schema.model import Argument
from turnout_aten.declarations.model import NativeFunction, NativeFunctions

# python_module -> the namespace of its functions.
MODULES = {"": "functions", "nn": "nn_functional", "linalg": "linalg", "fft": "fft", "special": "special"}

# python_module -> the module in which users find its functions under their names.
HOMES = {
    "": "turnout", "nn": "turnout_aten.generated.nn_functional", "linalg": "turnout.linalg", "fft": "turnout.fft",
    "special": "turnout.special",
}  # fmt: skip


@dataclass(frozen=True)
class Packet:
    """The overloads of one public name: `bases` are called as they are, `outs` through `out=`."""

    name: str
    bases: tuple[NativeFunction, ...]
    outs: tuple[NativeFunction, ...] = ()
    module: str = ""

    @property
    def public_name(self) -> str:
        """What its function or method is called: `det` for `linalg_det` of python_module linalg."""
        return python_name(self.name.removeprefix(f"{self.module}_") if self.module else self.name)

    @property
    def all(self) -> tuple[NativeFunction, ...]:
        return self.bases + self.outs

    @property
    def namespace(self) -> str:
        return self.all[0].namespace


def identifier(function: NativeFunction) -> str:
    """The name of an operator's stub in generated code: `add__Tensor`. Unique, as `unique_identifiers` checks."""
    name = function.schema.name
    return python_name(f"{name.name}__{name.overload}" if name.overload else name.name)


def cache_name(function: NativeFunction) -> str:
    """The name of the dict from key set to callable that belongs to the stub."""
    return "K_" + identifier(function)


def unique_identifiers(functions: NativeFunctions) -> None:
    """Raise ValueError when two operators would have one identifier, or one is a name that stubs use."""
    seen: dict[str, str] = {}
    for function in functions:
        name = identifier(function)
        other = seen.setdefault(name, function.qualified_name)
        if other != function.qualified_name:
            raise ValueError(f"{other} and {function.qualified_name} would have one stub, {name}; rename an overload")
        if name in STUB_GLOBALS:
            raise ValueError(f"{function.qualified_name}: its stub would hide {name}, which stubs call; rename it")


def is_public(function: NativeFunction) -> bool:
    """Whether a function gets a public name: not those starting with `_`, not backward operators.

    Of what autogen made, out variants do: they are reached through `out=` of the function that was written.
    """
    name = function.schema.name.name
    if function.is_generated and function.schema.kind != "out":
        return False
    return not (name.startswith("_") or name.endswith("_backward"))


def function_packets(functions: NativeFunctions, module: str) -> list[Packet]:
    """The public functions of a python_module ("" for none), by name."""
    found = (
        f for f in functions
        if is_public(f) and "function" in f.variants and ((f.base or f).python_module or "") == module
    )  # fmt: skip
    return [replace(packet, module=module) for packet in _packets(found) if packet.bases]


def method_packets(functions: NativeFunctions) -> list[Packet]:
    """The methods of tensors, by name."""
    return _packets(f for f in functions if "method" in f.variants and not f.is_generated)


def _packets(functions: Iterable[NativeFunction]) -> list[Packet]:
    by_name: dict[str, list[NativeFunction]] = {}
    for function in functions:
        by_name.setdefault(function.schema.name.name, []).append(function)
    return [
        Packet(
            name,
            tuple(f for f in overloads if f.schema.kind != "out"),
            tuple(f for f in overloads if f.schema.kind == "out"),
        )
        for name, overloads in sorted(by_name.items())
    ]


# ---- shapes of packets that get better code than a call of the packet


def lead(packet: Packet) -> NativeFunction | None:
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


def has_more_positional(packet: Packet, main: NativeFunction) -> bool:
    """Whether some overload takes more positional arguments than the lead."""
    return any(len(f.schema.positional) > len(main.schema.positional) for f in packet.bases)


def int_list_spreads(packet: Packet, *, method: bool) -> str:
    """Whether an int list may be written as several arguments: "only" positional argument, "leading" one, or "".

    "leading" is an int list that one int alone does not mean: there are flags behind it, as in x.sum(0, 1), or an overload takes
    an int, as in x.hsplit(2).
    # differs from torch: x.sum(0, 1) is accepted; there is nothing else that it could mean.
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
    return any(f.schema.tensor_options for f in packet.bases) and (not method or packet.name.startswith("new_"))


def is_int_list(argument: Argument) -> bool:
    """Whether an argument is int[], int[N] or SymInt[], optional or not."""
    return str(argument.type).startswith(("int[", "SymInt["))


def result_fields(packet: Packet) -> tuple[str, ...]:
    """The names of the results where a packet's overloads have several and name them alike, or ()."""
    several = {tuple(r.name or "" for r in f.schema.returns) for f in packet.bases if len(f.schema.returns) > 1}
    fields = several.pop() if len(several) == 1 else ()
    return fields if all(fields) else ()


def named_packets(functions: NativeFunctions) -> list[Packet]:
    """The packets with functions or methods whose results have names, by name."""
    found = {p.name: p for p in method_packets(functions)}
    found |= {p.name: p for module in MODULES for p in function_packets(functions, module)}
    return [packet for _, packet in sorted(found.items()) if result_fields(packet)]


def same_inputs(base: NativeFunction, out: NativeFunction) -> bool:
    """Whether an out variant takes what the base takes, TensorOptions apart."""
    options = base.schema.tensor_options
    own = [(a.name, str(a.type), a.kwarg_only) for a in base.schema.arguments if a not in options]
    return own == [(a.name, str(a.type), a.kwarg_only) for a in out.schema.arguments if not a.is_out]
