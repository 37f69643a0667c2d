"""The one generated file of a third party: stubs, tables and public functions of the operators in its own yaml.

The file has `install(library)`, which defines the operators with their stubs and registers the kernels. Use it instead
of `turnout_aten.declarations.load_yaml` where PyYAML should not be needed at run time, or calls should not pay the first
compilation.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from turnout.operators.stubs import STUB_GLOBALS, stub_source
from turnout_aten.declarations.model import NativeFunctions, load
from turnout_aten.generation.catalogue import cache_name, function_packets, unique_identifiers
from turnout_aten.generation.functions import functions_lines, preamble, return_types_lines, stub_name
from turnout_aten.generation.operators import kernel_rows, sorted_tuple
from turnout_aten.generation.source import header, imports

_OPERATORS_NOTE = """
# One row per operator: schema, stub, the stub's cache, tags, whether devices are checked, whether its device is made
# current.
OPERATORS = ("""

_KERNELS_NOTE = """
# One row per kernel: operator, dispatch key, `module:function` or `autogen:KIND:OPERATOR`.
KERNELS = ("""

_INSTALL = '''

def install(library):
    """Define the operators and register their kernels; undoing the library takes them back."""
    from turnout_aten.declarations.libraries import install_tables

    install_tables(library, OPERATORS, KERNELS)'''


def thirdparty_files(yaml: Path, out: Path, namespace: str | None, module: str | None) -> dict[Path, str]:
    """The one file, path -> text. Raises ValueError for structured operators: they are loaded with `load_yaml`."""
    functions = load(yaml, namespace=namespace or "aten")
    if namespace is None and any(not f.schema.name.namespace for f in functions):
        raise ValueError("--namespace is needed: some entries of the yaml do not write theirs")
    structured = [f.name for f in functions if f.is_structured]
    if structured:
        raise ValueError(
            f"structured operators need turnout_aten.declarations.load_yaml at run time: {', '.join(structured)}"
        )
    return {out: thirdparty_text(functions, yaml.name, module)}


def thirdparty_text(functions: NativeFunctions, source: str, module: str | None) -> str:
    """The text of the file. Raises ValueError for a kernel without a module."""
    unique_identifiers(functions)

    def reference(function: object, kernel: str) -> str:
        path, _, name = kernel.rpartition(".")
        parts = [p for p in (module, path) if p]
        if not parts:
            raise ValueError(f"--module is needed: the kernel {kernel} is named without one")
        return f"{'.'.join(parts)}:{name}"

    lines = [
        header(f"The operators of {source}: stubs, tables, functions.", source),
        *imports("turnout.operators.arguments", list(STUB_GLOBALS)),
    ]
    for f in functions:
        stub = stub_source(f.schema, f.qualified_name, stub_name(f), cache_name(f)).rstrip()
        lines += ["", f"{cache_name(f)} = {{}}", "", "", stub, ""]
    lines.append(_OPERATORS_NOTE)
    for f in functions:
        flags = f"{sorted_tuple(f.tags)}, {f.device_check == 'ExactSame'}, {f.device_guard}"
        lines.append(f"    ({f.schema_text!r}, {stub_name(f)}, {cache_name(f)}, {flags}),")
    lines += [")", "", "for _row in OPERATORS:", '    _row[1].__qualname__ = _row[0][:_row[0].index("(")]']
    rows = [f"    {(f.qualified_name, *row)!r}," for f in functions for row in kernel_rows(functions, f, reference)]
    lines += [_KERNELS_NOTE, *rows, ")", _INSTALL, ""]
    modules = sorted({f.python_module or "" for f in functions})
    # One file has them all, so python_module takes nothing off their names.
    packets = [replace(p, module="") for module in modules for p in function_packets(functions, module)]
    body = functions_lines(packets)
    lines += [
        *preamble(packets, body),
        *return_types_lines(packets, "__name__"),
        *body,
        "",
        "",
        f"__all__ = {[p.public_name for p in packets]!r}",
    ]
    return "\n".join(lines) + "\n"
