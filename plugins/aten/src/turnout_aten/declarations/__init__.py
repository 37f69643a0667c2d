"""Native functions: the yaml model, its loader, and the definition of the standard operators."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike
    from types import ModuleType
    from typing import Any

    from turnout.registry import Registrations
    from turnout_aten.declarations.model import NativeFunctions


def load_yaml(
    path: str | PathLike[str],
    *,
    module: ModuleType | str,
    library: Registrations,
    arrays: bool = False,
    shapes: Mapping[str, Callable[..., Any]] | None = None,
    tags: Iterable[str] = (),
) -> NativeFunctions:
    """Define the operators of a yaml file and register the kernels that it names; see `declarations.libraries`."""
    from turnout_aten.declarations import libraries

    return libraries.load_yaml(path, module=module, library=library, arrays=arrays, shapes=shapes, tags=tags)
