"""What the code of a function names: globals, modules that it imports, and attributes.

The names of attributes narrow the walk over objects. Where code asks for attributes by computed names, they do not.
"""

from __future__ import annotations

import dis
import sys
from contextlib import aclosing, closing
from types import CodeType

from turnout.config.tuples import NamedTuple
from turnout.plugins import is_ours

# Whether LOAD_ATTR is there for methods that are called, too: its lowest bit then tells which it is.
_TELLS_CALLS = sys.version_info >= (3, 12)
_GLOBAL = ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME")
# What changes or reads more than a signature can hold.
OUTSIDE_FUNCTIONS = frozenset(("print", "input", "open", "exec", "eval", "breakpoint", "__import__", "id", "globals"))
# The modules of Python whose functions depend on nothing but their arguments. All others may read or change what is outside.
_PURE = frozenset(
    ("abc", "array", "bisect", "builtins", "cmath", "collections", "collections_abc", "contextlib", "copy", "copyreg",
     "dataclasses", "enum", "fractions", "functools", "future", "heapq", "itertools", "math", "numbers",
     "operator", "re", "reprlib", "string", "struct", "textwrap", "types", "typing")
)  # fmt: skip
# What reads or changes the variables of functions; what counts writes, which kernels ask for, too; what else lies in a tensor's
# memory; and what tells which kernels run, or that a tensor is fake: the first call would see the recording. What else of Turnout
# has effects says so itself, by `turnout.plugins.effect`.
OUTSIDE_NAMES = frozenset(
    ("__globals__", "__closure__", "cell_contents", "__builtins__", "f_globals", "f_locals",
     "version", "_version", "bump_version", "shared_storage", "live_views", "fake_mode", "explain", "trace_dispatch")
)  # fmt: skip
# The fields of tensors that hold more than a signature does, and the key set, which fake tensors have of their own. Functions are
# called like some of them (`numpy.array`), so only code that takes such a field without a call names it.
FIELDS = frozenset(("array", "extra", "keys", "storage", "ver", "view_of"))
# Functions of other libraries for arrays and tensors that read or write files.
FILES = frozenset(
    ("load", "save", "load_file", "save_file", "fromfile", "tofile", "loadtxt", "savetxt", "genfromtxt", "memmap", "savez",
     "savez_compressed", "dump")
)  # fmt: skip
# What reads attributes that the code does not name.
COMPUTED = frozenset(
    ("getattr", "setattr", "delattr", "hasattr", "vars", "locals", "dir", "__dict__", "__getattribute__", "__match_args__",
     "attrgetter", "methodcaller", "copy", "deepcopy", "asdict", "astuple", "replace", "format", "format_map", "__reduce__",
     "__reduce_ex__", "__getstate__")
)  # fmt: skip
# What asks for the class, the text or the bits of a value: a size that is a symbol has others.
KINDS = frozenset(
    ("isinstance", "issubclass", "type", "__class__", "str", "repr", "ascii", "format", "format_map", "hex", "oct", "bin", "chr",
     "bit_length", "bit_count", "to_bytes", "as_integer_ratio")
)  # fmt: skip
# Methods that classes of Python call, which the code of the program does not name.
CALLED: dict[type, frozenset[str]] = {closing: frozenset(("close",)), aclosing: frozenset(("aclose",))}
_FOREIGN = frozenset(("numpy", "scipy", "torch", "jax", "math", "builtins"))


def formats(code: CodeType) -> bool:
    """Whether a code object, or one inside it, makes text of values by f-strings or `%`."""
    texts = any(isinstance(each, str) and "%" in each for each in code.co_consts)
    inside = any(formats(each) for each in code.co_consts if isinstance(each, CodeType))
    return texts or inside or any(each.opname.startswith("FORMAT_") for each in dis.get_instructions(code))


class Reach(NamedTuple):
    """What one code object names, with those inside it."""

    code: CodeType
    globals: tuple[str, ...]
    modules: tuple[tuple[int, str], ...]  # how many packages up, and the name from there
    names: frozenset[str]
    outside: tuple[str, ...]  # those that read or change what a signature does not see
    fields: frozenset[str]  # those of tensors' fields that it takes from something


def reach_of(code: CodeType) -> Reach:
    """The names of a code object."""
    found: dict[str, None] = {}
    modules: dict[tuple[int, str], None] = {}
    loaded: list[object] = [0, 0]
    names = set(code.co_names)
    fields: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL:
            found[instruction.argval] = None
        elif instruction.opname == "IMPORT_NAME":
            modules[loaded[-2] if isinstance(loaded[-2], int) else 0, instruction.argval] = None
        elif instruction.opname == "MATCH_CLASS":
            names.add("__match_args__")
        elif instruction.opname == "LOAD_ATTR" and not (_TELLS_CALLS and (instruction.arg or 0) & 1):
            fields.add(instruction.argval)
        if instruction.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):  # before an import: the level, and what is taken
            loaded.append(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reach_of(constant)
            found |= dict.fromkeys(inner.globals)
            modules |= dict.fromkeys(inner.modules)
            names |= inner.names
            fields |= inner.fields
        else:
            names |= _words(constant)  # getattr(x, "scale")
    outside = tuple(sorted(OUTSIDE_NAMES & names))
    return Reach(code, tuple(found), tuple(modules), frozenset(names), outside, FIELDS & fields)


class Code:
    """What is known of the code that a function can reach. It grows, and is never wrong: more names make a signature longer."""

    def __init__(self) -> None:
        self.reached: dict[int, Reach] = {}
        self.names: set[str] = {"forward"}
        self.computed = False
        self.asks_kinds = False

    def of(self, code: CodeType) -> Reach:
        """What a code object names."""
        found = self.reached.get(id(code))
        if found is None:
            found = self.reached[id(code)] = reach_of(code)
            self.names |= found.names
            named = found.names | set(found.globals)
            self.names |= {method for kind, methods in CALLED.items() if kind.__name__ in named for method in methods}
            self.computed = self.computed or bool(COMPUTED & named)
            self.asks_kinds = self.asks_kinds or bool(KINDS & named) or formats(code)
        return found


def _words(constant: object) -> set[str]:
    """The names in a constant: "scale", "inner.scale", or a tuple of such."""
    if isinstance(constant, (tuple, frozenset)):
        return set().union(*map(_words, constant))
    return {each for each in constant.split(".") if each.isidentifier()} if isinstance(constant, str) else set()


def is_outside(module: str) -> bool:
    """Whether functions of a module of Python may read or change what is outside of the program: `time`, `os.path`."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names and top.strip("_") not in _PURE


_LIBRARIES: dict[str, bool] = {}


def has_files(module: str) -> bool:
    """Whether functions of a module read or write files without saying so: those of array libraries."""
    return module.partition(".")[0] in _FOREIGN


def is_library(module: str) -> bool:
    """Whether a module's functions are taken as they are: those of Turnout, of Python, and of array libraries."""
    top = module.partition(".")[0]
    found = _LIBRARIES.get(top)
    if found is None:
        found = _LIBRARIES[top] = is_ours(top) or top in sys.stdlib_module_names or top in _FOREIGN
    return found
