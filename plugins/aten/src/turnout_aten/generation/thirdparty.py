"""The one generated file of a third party: the table of the operators in its own yaml, and its public functions.

The file has `install(library)`, which defines the operators and registers the kernels. Use it instead of
`turnout_aten.declarations.load_yaml` where PyYAML should not be needed at run time. Functions are made when they are first used.
"""

from __future__ import annotations

from pathlib import Path

from turnout_aten.declarations.model import NativeFunction, NativeFunctions
from turnout_aten.declarations.reading import load
from turnout_aten.generation.catalogue import module_of
from turnout_aten.generation.packets import public_name
from turnout_aten.generation.tables import check_names, header, rows_lines

_HEAD = """from turnout_aten.declarations.tables import Table
from turnout_aten.functions.lookup import functions_of
"""

_TAIL = '''
TABLE = Table(OPERATORS)


def install(library):
    """Define the operators and register their kernels; undoing the library takes them back."""
    from turnout_aten.declarations.libraries import install_table

    install_table(library, TABLE)


__getattr__, __dir__ = functions_of(globals(), __name__, TABLE)
'''


def thirdparty_files(yaml: Path, out: Path, namespace: str | None, module: str | None) -> dict[Path, str]:
    """The one file, path -> text. Raises ValueError for structured operators: they are loaded with `load_yaml`."""
    functions = load(yaml, namespace=namespace or "aten")
    if namespace is None and any(not f.schema.name.namespace for f in functions):
        raise ValueError("--namespace is needed: some entries of the yaml do not write theirs")
    structured = [f.name for f in functions if f.is_structured]
    if structured:
        raise ValueError(f"structured operators need turnout_aten.declarations.load_yaml at run time: {', '.join(structured)}")
    return {out: thirdparty_text(functions, yaml.name, module)}


def thirdparty_text(functions: NativeFunctions, source: str, module: str | None) -> str:
    """The text of the file. Raises ValueError for a kernel without a module, and for names that clash."""

    def reference(function: object, kernel: str) -> str:
        path, _, name = kernel.rpartition(".")
        parts = [p for p in (module, path) if p]
        if not parts:
            raise ValueError(f"--module is needed: the kernel {kernel} is named without one")
        return f"{'.'.join(parts)}:{name}"

    def one_module(function: NativeFunction) -> str | None:
        # One file has all functions, so python_module takes nothing off their names.
        return None if module_of(function) is None else ""

    bases = [f for f in functions if one_module(f) is not None and f.schema.kind != "out"]
    public = sorted({public_name(f.schema.name.name, "") for f in bases})
    check_names(public)
    lines = [header(f"The operators of {source}: table, functions.", source), _HEAD]
    lines += [*rows_lines(functions, reference, one_module), _TAIL, f"__all__ = {public!r}"]
    return "\n".join(lines) + "\n"
