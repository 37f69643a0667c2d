"""The API reference: a page for each family of operators, for `Tensor`, and for each public module.

Which family a function belongs to is what `turnout_aten`'s documentation says. A function that no operator is behind is placed by
the module that defines it (`PLACES`).
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import turnout
from generated_pages import public_names
from generated_pages.docstrings import described, in_python, signatures
from turnout_aten.declarations.documentation import read

ROOT = Path(__file__).resolve().parents[3]

# fmt: off
# A page of functions of `turnout` -> its title.
FAMILIES = {
    "factories": "Making tensors",
    "arithmetic": "Arithmetic",
    "pointwise": "Pointwise functions",
    "comparisons": "Comparisons and logic",
    "reductions": "Reductions",
    "sorting": "Sorting and searching",
    "views": "Shapes and views",
    "joining": "Joining, splitting and broadcasting",
    "indexing": "Indexing",
    "linear_algebra": "Matrices",
    "random": "Random numbers",
    "neural": "Neural networks",
    "fourier": "Signals",
    "linalg": "Linear algebra",
    "dtypes": "Dtypes and limits",
    "files": "Files",
    "calls": "Devices, calls and their context",
}
# The module of a function that no operator is behind -> its page, if that is not `calls`.
PLACES = {
    "turnout.dtypes": "dtypes",
    "turnout_aten.dtypes": "dtypes",
    "turnout_aten.functions.arrays": "factories",
    "turnout_aten.functions.broadcasting": "joining",
    "turnout_aten.functions.inquiries": "dtypes",
    "turnout_aten.functions.limits": "dtypes",
    "turnout_aten.functions.linear_algebra": "linear_algebra",
    "turnout_aten.functions.reductions": "reductions",
    "turnout_aten.shapes.promotion": "dtypes",
    "turnout_aten.tensor.creation": "factories",
    "turnout_aten.tensor.interop": "factories",
    "turnout_aten.tensor.random": "random",
    "turnout_aten.tensor.saving": "files",
    "turnout_aten.tensor.size": "views",
    "turnout_aten.tensor.subclasses": "factories",
}
# Public modules -> titles of their pages, in the order of the page that lists them.
MODULES = {
    "nn": "Modules",
    "nn.functional": "Functions for neural networks",
    "nn.init": "Initial values of parameters",
    "nn.modules.module": "Hooks of all modules",
    "nn.utils": "Parameters and gradients of modules",
    "nn.utils.parametrize": "Computed parameters",
    "nn.utils.parametrizations": "Orthogonal and normalised parameters",
    "nn.utils.rnn": "Sequences of different lengths",
    "optim": "Optimisers",
    "optim.lr_scheduler": "Learning rates over time",
    "optim.swa_utils": "Averages of weights",
    "utils.data": "Data sets and loaders",
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "special": "Special functions",
    "signal": "Signals",
    "signal.windows": "Windows",
    "masked": "Reductions under a mask",
    "autograd": "Gradients",
    "autograd.forward_ad": "Forward mode",
    "autograd.function": "Functions with gradients of their own",
    "autograd.functional": "Derivatives of functions",
    "autograd.graph": "The recorded graph",
    "func": "Function transforms",
    "utils.checkpoint": "Saved tensors that are computed again",
    "amp": "Mixed precision",
    "cuda": "CUDA devices",
    "opencl": "OpenCL devices",
    "dask": "Tensors in chunks",
    "random": "The default generators of random numbers",
    "testing": "Comparing tensors in tests",
    "compiler": "Compiled functions",
    "graphs": "Recorded graphs of operators",
    "export": "Exported programs",
    "array_api": "The Python array API standard",
    "array_api.fft": "Fourier transforms of the standard",
    "array_api.linalg": "Linear algebra of the standard",
    "return_types": "Results with names",
    "trees": "Nested arguments and results",
    "library": "Custom operators",
    "state": "The state of dispatch",
    "config": "Settings",
    "plugins": "Plugins",
    "devices": "Devices and backends",
    "host_fallback": "The host fallback",
    "errors": "Errors",
}
# Public modules without a page: rooms of core whose names are for plugins (docs/plugin-api.md), and modules with no name that the
# page of the module around them has not.
FOR_PLUGINS = {"dtypes", "explanation", "guards", "keys", "operators", "registry", "schema", "table"}
REPEATED = {"nn.modules", "nn.parameter", "utils"}
# fmt: on


def module_of(name: str, found: Any) -> str:
    """The module that defines a public name: a plugin's own, where the object names the public one."""
    offering = turnout.plugins.catalog().offering("", name)
    return found.__module__ if not offering or offering[0].manifest is None else offering[0].manifest.offers("").all[name]


def files() -> dict[str, str]:
    """The pages, and `reference.md`, which lists them."""
    documentation = read()
    by_page: dict[str, dict[str, Any]] = {page: {} for page in FAMILIES}
    constants = []
    for name in dir(turnout):
        found = getattr(turnout, name)
        entry = documentation.find(name)
        if name.startswith("_") or inspect.ismodule(found) or name in NOT_PUBLIC:
            continue
        if isinstance(found, turnout.DType) or not callable(found):
            constants.append(name)
        elif name != "Tensor":
            by_page[PLACES.get(module_of(name, found), "calls") if entry is None else entry.family][name] = found
    pages = {
        f"functions-{page}": _page(
            title,
            "Names of the module ``turnout``.",
            (_object("turnout", name, found) for name, found in by_page[page].items()),
            summary=_summary("turnout", by_page[page]),
        )
        for page, title in FAMILIES.items()
    }
    pages["functions-dtypes"] += "\n\n" + _constants(constants)
    pages["tensor"] = _tensor_page(documentation)
    listed = {"Tensors and their functions": ["tensor", *(f"functions-{page}" for page in FAMILIES)], "Modules": []}
    for path, title in MODULES.items():
        module, found = public_names.resolve(f"turnout.{path}"), public_names.of_module(path)
        introduction = described(module.__doc__).text if path not in MAPS else described(module.__doc__).summary
        members = [_object(f"turnout.{path}", name, found[name]) for name in found]
        summary = _summary(f"turnout.{path}", found)
        pages[path] = _page(f"turnout.{path}: {title}", introduction, members, summary=summary, module=f"turnout.{path}")
        listed["Modules"].append(path)
    made = {f"reference/{name}.rst": text + "\n" for name, text in pages.items()}
    made["reference.md"] = "\n".join(_toctree(caption, names) for caption, names in listed.items())
    return made


# Names of `turnout` that its own code needs.
NOT_PUBLIC = {"dtype", "ops"}
# Modules whose docstring is a map of their files, for people who change them: its first sentence is for users.
MAPS = {
    "array_api",
    "library",
    "config",
    "plugins",
    "autograd",
    "state",
    "devices",
    "linalg",
    "special",
    "fft",
    "nn.functional",
    "errors",
}


def _toctree(caption: str, pages: Iterable[str]) -> str:
    return "\n".join([f"## {caption}\n", ":::{toctree}", *(f"generated/reference/{page}" for page in pages), ":::\n"])


def _summary(module: str, objects: Mapping[str, Any]) -> str:
    """A table of the names of a page, each a link to its place, with the first sentence of what is said there."""
    rows = []
    for name, found in objects.items():
        place = "turnout" if module != "turnout" and vars(turnout).get(name) is found else module
        sentence = described(_heads(name, found)[1]).summary
        rows.append(f"    * - :py:obj:`{name} <{place}.{name}>`\n      - {sentence}")
    return "\n".join([".. list-table::\n    :widths: 30 70\n    :class: names\n", *rows]) if rows else ""


def _source(found: Any) -> str:
    """The file of a written function or class, a link where the build is told the address of the repository; "" for others."""
    members = vars(found).values() if inspect.isclass(found) else (found,)  # a class may name another module
    written = [inspect.unwrap(value) for value in members if callable(value)]
    codes = [value.__code__ for value in written if inspect.isfunction(value) and Path(value.__code__.co_filename).is_file()]
    if not codes:
        return ""
    path, line = Path(codes[0].co_filename).resolve(), codes[0].co_firstlineno
    if not path.is_relative_to(ROOT) or "generated" in path.parts:
        return ""
    name, repository = path.relative_to(ROOT).as_posix(), os.environ.get("REPOSITORY", "").rstrip("/")
    return f"*Source:* `{name} <{repository}/blob/main/{name}#L{line}>`__" if repository else f"*Source:* ``{name}``"


def _page(title: str, introduction: str, objects: Iterable[str], summary: str = "", module: str = "turnout") -> str:
    # Each module has one page that is its target; the pages of `turnout` share one name.
    directive = "currentmodule" if module == "turnout" else "module"
    head = [f"{title}\n{'=' * len(title)}", f".. py:{directive}:: {module}", ".. py:currentmodule:: turnout"]
    return "\n\n".join([*head, *(part for part in (introduction, summary) if part), *objects])


def _constants(names: Iterable[str]) -> str:
    lines = ["Constants\n---------"]
    for name in sorted(names):
        value = getattr(turnout, name)
        lines.append(_directive("data", "turnout", [name], f"``{value!r}``"))
    return "\n\n".join(lines)


def _object(module: str, name: str, found: Any) -> str:
    """A function, or a class with its methods."""
    is_class = inspect.isclass(found)
    if module != "turnout" and vars(turnout).get(name) is found:
        kind = "class" if is_class else "function"
        # Two classes of one name would both be meant by the name in a signature.
        return _directive(kind, module, [name], f"The same as ``turnout.{name}``.", is_indexed=not is_class)
    heads, text = _heads(name, found)
    body = [described(text).text]
    if is_class and not issubclass(found, BaseException):
        body += list(_methods(found))
    body.append(_source(found))
    kind = "class" if is_class else "function"
    if is_class and issubclass(found, BaseException):
        kind, heads = "exception", [name]
        body.append("Bases: " + ", ".join(f"``{base.__name__}``" for base in found.__bases__))
    return _directive(kind, module, heads, "\n\n".join(part for part in body if part))


def _methods(cls: type) -> Iterator[str]:
    for name, found in vars(cls).items():
        # The docstring of a named tuple has its fields; several of one name would be meant by the name in a signature.
        if name.startswith("_") or name in getattr(cls, "_fields", ()):
            continue
        value = getattr(found, "__func__", found)
        if isinstance(value, property):
            yield _directive("property", "", [name], described(value.__doc__).text)
        elif inspect.isfunction(value) and value.__doc__:
            heads, text = _heads(name, value, is_method=not isinstance(found, staticmethod))
            yield _directive("method", "", heads, described(text).text)


def _heads(name: str, found: Any, *, is_method: bool = False) -> tuple[list[str], str]:
    """The signatures of an object, and its docstring without them."""
    docstring = inspect.cleandoc(found.__doc__ or "")
    if re.match(rf"{re.escape(name)}\(.*\)( -> .+)?\n", docstring):
        heads, rest = signatures(docstring)
        return [re.sub(r"\((self|cls)(?:, )?", "(", head, count=1) if is_method else head for head in heads], rest
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return [name], docstring
    parameters = [p.replace(annotation=p.empty, default=_shown(p.default)) for p in signature.parameters.values()]
    if is_method:
        parameters = parameters[1:]
    plain = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    return [in_python(name + plain)], docstring


class _Shown:
    """A default value that prints as `...`, because its own text is no Python."""

    def __repr__(self) -> str:
        return "..."


def _shown(default: Any) -> Any:
    return _Shown() if default is not inspect.Parameter.empty and "<" in repr(default) else default


def _directive(kind: str, module: str, heads: list[str], body: str, *, is_indexed: bool = True) -> str:
    margin = " " * len(f".. py:{kind}:: ")
    lines = [f".. py:{kind}:: {heads[0]}", *(margin + head for head in heads[1:])]
    if module:
        lines.append(f"    :module: {module}")
    if not is_indexed:
        lines.append("    :no-index:")
    return "\n".join([*lines, "", *(f"    {line}" if line else "" for line in body.splitlines())])


def _tensor_page(documentation: Any) -> str:
    """`Tensor`: what it defines itself in full, and the methods of operators by family, each with one sentence."""
    groups: dict[str, list[str]] = {"": [], **{family: [] for family in FAMILIES}}
    for name in dir(turnout.Tensor):
        value = getattr(turnout.Tensor, name)  # puts what is defined in another module in its place
        found = inspect.getattr_static(turnout.Tensor, name)
        entry = documentation.find(name)
        if name.startswith("_") or not (isinstance(found, property) or callable(value)):
            continue
        groups["" if entry is None else entry.family].append(name)
    own = described(turnout.Tensor.__doc__).text
    parts = [_page("Tensor", "", [_directive("class", "turnout", ["Tensor"], own)])]
    for family, names in groups.items():
        title = FAMILIES.get(family, "Attributes and methods of its own")
        if names:
            members = [_method_of_tensor(name) for name in names]
            parts.append("\n\n".join([f"{title}\n{'-' * len(title)}", *members]))
    return "\n\n".join(parts)


def _method_of_tensor(name: str) -> str:
    found = inspect.getattr_static(turnout.Tensor, name)
    if isinstance(found, property):
        return _directive("property", "turnout", [f"Tensor.{name}"], described(found.__doc__).text)
    value = getattr(turnout.Tensor, name)
    heads, text = _heads(name, value, is_method=True)
    description = described(text)
    body = description.text
    function = getattr(turnout, name.removesuffix("_"), None)
    if function is not None and name.removesuffix("_") not in NOT_PUBLIC and "aten::" in text:
        body = f"{description.summary} See :py:func:`turnout.{name.removesuffix('_')}`."
    return _directive("method", "turnout", [f"Tensor.{head}" for head in heads], body)
