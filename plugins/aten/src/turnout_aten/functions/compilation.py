"""Compiles a public function or method from the overloads of its packet, at the first use.

`turnout_aten.generation` writes the text. The first letters of a variable say what it is bound to: `K_add__Tensor` is the dict
from key set to callable of aten::add.Tensor, `op_add__Tensor` its stub, `P_add` the packet, `R_max` the class of a packet's
results.
"""

from __future__ import annotations

from types import CodeType

from turnout.operators.arguments import MISSING
from turnout.operators.calls import Source, entry_point, public_lines
from turnout.operators.stubs import STUB_GLOBALS, run_source
from turnout.registry import REGISTRY
from turnout_aten.declarations.tables import GENERATED, standard
from turnout_aten.functions import call_forms, docstrings, return_types
from turnout_aten.functions.public_modules import HOMES, PUBLIC
from turnout_aten.generation.functions import function_source
from turnout_aten.generation.methods import SPECIAL, UNARY, method_source, operator_method
from turnout_aten.generation.packets import Packet
from turnout_aten.generation.parameters import LateSignature, shown
from turnout_aten.tensor.late_methods import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from turnout_aten.declarations.tables import Overload, Table

_PUBLIC = {home: PUBLIC[module] for module, home in HOMES.items()}
# The other names that the texts use.
GLOBALS: dict[str, Any] = {
    **STUB_GLOBALS, "MISSING": MISSING, "NUMBERS": call_forms.NUMBERS, "all_ints": call_forms.all_ints,
    "as_operand": call_forms.as_operand,
    "binary": call_forms.binary, "check_options": call_forms.check_options,
    "first_names": call_forms.first_names,
    "miss": REGISTRY.miss, "named": return_types.named, "nested": return_types.nested, "new_tuple": return_types.new_tuple,
    "options_of_out": call_forms.options_of_out,
    "only_ints": frozenset({int}).issuperset, "out_tuple": call_forms.out_tuple, "reflected": call_forms.reflected,
    "spread": call_forms.spread,
}  # fmt: skip


def make_function(table: Table, packet: Packet, home: str) -> Any:
    """The public function of a packet in the public module `home`."""
    name = packet.public_name
    written = function_source(packet)
    made, source = _run(written.lines, name, f"<{home}.{name}>", table, home)
    made.__module__ = _PUBLIC.get(home, home)
    made.__qualname__ = made.__name__
    made.operator_name = f"{packet.namespace}::{packet.name}"
    text = docstrings.of(f"{home}.{name}") if table is standard() else None
    made.__doc__ = text or ", ".join(f.qualified_name for f in packet.all)
    made.__signature__ = LateSignature(make=lambda: shown(packet, method=False))
    return made if written.spec is None else entry_point(made, written.spec, source)


def make_method(table: Table, name: str) -> Any:
    """The method of that name: from a packet, or for one of Python's operators."""
    packet = None if name in SPECIAL else method_packet(table, name)
    if packet is None:
        written = operator_method(name, lambda packet: _written(table, packet))
    else:
        written = method_source(packet)
    found, source = _run(written.lines, name, f"<turnout.Tensor.{name}>", table, "turnout")
    made = named(found, name)
    served = UNARY[name][0] if name in UNARY else name  # one docstring for `neg` and `__neg__`
    made.operator_name = f"aten::{served}"
    if packet is not None:
        made.__signature__ = LateSignature(make=lambda: shown(packet, method=True))
    made.__doc__ = docstrings.of(f"turnout.Tensor.{served}")
    return made if written.spec is None else entry_point(made, written.spec, source)


def method_packet(table: Table, name: str) -> Packet:
    """The packet of a method."""
    packet = name if table.overloads(name) else name.removesuffix("_")  # the underscore avoids a Python keyword
    return Packet(packet, [f for f in table.overloads(packet) if f.is_method])


def _written(table: Table, packet: str) -> Sequence[Overload]:
    """The overloads that Python's operators may call: no generated ones and no out variants."""
    return [f for f in table.overloads(packet) if GENERATED not in f.tags and f.schema.kind != "out"]


def _run(lines: Sequence[str], name: str, filename: str, table: Table, home: str) -> tuple[Any, Source]:
    """The value of `name` after running the lines, with all their variables bound, and what it came from."""
    source = "\n".join(public_lines(lines, "written by turnout_aten.generation from the schemas of its overloads"))
    code = compile(source, filename, "exec", dont_inherit=True)
    namespace = {**GLOBALS, "__name__": __name__}
    for variable in _variables(code):
        kind, mark, what = variable.partition("_")
        if not mark:
            continue
        if kind == "K":
            namespace[variable] = _overload(table, what).cache
        elif kind == "op":
            namespace[variable] = _late(_overload(table, what), variable, namespace)
        elif kind == "P":
            namespace[variable] = call_forms.packet(table.overloads(what)[0].namespace, what)
        elif kind == "R":
            namespace[variable] = return_types.of_packet(table, what, home) or tuple
    run_source(source, code, namespace)
    return namespace[name], Source(filename, name, namespace)


def _variables(code: CodeType) -> Iterator[str]:
    """The global names that code uses, including the functions in it. Attribute names are among them."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _variables(constant)


def _overload(table: Table, identifier: str) -> Overload:
    found = table.find(identifier)
    assert found is not None, identifier
    return found


def _late(overload: Overload, variable: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """A placeholder for a stub. The first call puts the stub into the namespace; later calls cost one global look-up."""

    def first_call(*args: Any, **kwargs: Any) -> Any:
        stub = namespace[variable] = overload.stub
        return stub(*args, **kwargs)

    return first_call
