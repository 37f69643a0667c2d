"""What the code of a function names: globals, modules that it imports, and attributes.

The names of attributes narrow the walk over objects. Where code asks for attributes by computed names, they do not.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import NamedTuple

from turnout.plugins import is_ours

_GLOBAL = ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME")
# What changes or reads more than a signature can hold.
OUTSIDE_FUNCTIONS = frozenset(("print", "input", "open", "exec", "eval", "breakpoint", "__import__", "id"))
# The modules of Python whose functions depend on nothing but their arguments. All others may read or change what is outside.
_PURE = frozenset(
    ("abc", "array", "bisect", "builtins", "cmath", "collections", "collections_abc", "contextlib", "copy", "copyreg",
     "dataclasses", "decimal", "enum", "fractions", "functools", "future", "heapq", "itertools", "math", "numbers",
     "operator", "re", "reprlib", "string", "struct", "textwrap", "types", "typing")
)  # fmt: skip
OUTSIDE_NAMES = frozenset(
    ("manual_seed", "manual_seed_all", "set_rng_state", "get_rng_state", "fork_rng", "initial_seed", "set_state",
     "get_state", "clone_state", "default_generator", "checkpoint", "checkpoint_sequential", "register_hook",
     "saved_tensors_hooks", "set_", "resize_", "resize_as_", "from_numpy", "from_dlpack", "frombuffer", "as_array",
     "_version", "data_ptr", "data =", "swap_tensors", "set_num_threads", "set_printoptions")
)  # fmt: skip
SETTERS = frozenset(("set", "unset", "override", "reload"))  # of `turnout.config`
COMPUTED = frozenset(("getattr", "setattr", "delattr", "vars", "globals", "locals", "dir", "__dict__", "__getattribute__"))
_FOREIGN = frozenset(("numpy", "scipy", "torch", "jax", "math", "builtins"))


class Reach(NamedTuple):
    """What one code object names, with those inside it."""

    code: CodeType
    globals: tuple[str, ...]
    modules: tuple[str, ...]
    names: frozenset[str]


def reach_of(code: CodeType) -> Reach:
    """The names of a code object."""
    found: dict[str, None] = {}
    modules: dict[str, None] = {}
    names = set(code.co_names)
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL:
            found[instruction.argval] = None
        elif instruction.opname == "IMPORT_NAME":
            modules[instruction.argval] = None
        elif instruction.opname in ("STORE_ATTR", "DELETE_ATTR") and instruction.argval == "data":
            names.add("data =")  # no operator: the tensor gets other memory
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reach_of(constant)
            found |= dict.fromkeys(inner.globals)
            modules |= dict.fromkeys(inner.modules)
            names |= inner.names
        elif isinstance(constant, str) and constant.isidentifier():
            names.add(constant)  # getattr(x, "scale")
    return Reach(code, tuple(found), tuple(modules), frozenset(names))


def is_outside(module: str) -> bool:
    """Whether functions of a module of Python may read or change what is outside of the program: `time`, `os.path`."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names and top.strip("_") not in _PURE


_LIBRARIES: dict[str, bool] = {}


def is_library(module: str) -> bool:
    """Whether a module's functions are taken as they are: those of Turnout, of Python, and of array libraries."""
    top = module.partition(".")[0]
    found = _LIBRARIES.get(top)
    if found is None:
        found = _LIBRARIES[top] = is_ours(top) or top in sys.stdlib_module_names or top in _FOREIGN
    return found
