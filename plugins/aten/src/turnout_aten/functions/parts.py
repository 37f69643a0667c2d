"""Where generated code is: one module for each first letter of operators' names, loaded when something of it is first used.

So the cost of `import turnout` does not grow with the number of operators: public functions are found by module
`__getattr__`, methods by descriptors that replace themselves, operators by the registry, which asks `OperatorSource`.
A part takes no lock while it is loaded, for it may be loaded under the registry's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType
    from typing import Any

# Operators of these python_modules begin with the module's name, and have a part of their own.
PREFIXES = ("fft", "linalg", "special")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PARTS = (*LETTERS, *PREFIXES)


def part_name(name: str) -> str:
    """The part of an operator, of its function and of its method, by the name: "a" for `add_`, "linalg" for `linalg_det`.

    "" for a name that no operator has.
    """
    plain = name.lstrip("_")
    head, underscore, _ = plain.partition("_")
    if underscore and head in PREFIXES:
        return head
    first = plain[:1].lower()
    return first if first and first in LETTERS else ""


def part(name: str) -> ModuleType | None:
    """The module with what is generated for the operators named like `name`."""
    found = part_name(name)
    return load(found) if found else None


def load(part: str) -> ModuleType:
    """A part by its own name."""
    return __import__(f"turnout_aten.generated.parts.{part}", fromlist=("OPERATORS",))


def stub(identifier: str) -> Any:
    """The stub of a standard operator, `add__Tensor`. Raises AttributeError for a name that none has."""
    module = None if identifier.startswith("__") and identifier.endswith("__") else part(identifier)
    found = getattr(module, "op_" + identifier, None)
    if found is None:
        raise AttributeError(f"no operator has the stub {identifier!r}")
    return found


def function(home: str, name: str) -> Any:
    """The public function of that name in a public module, or None."""
    prefix = home.rpartition(".")[2]
    module = load(prefix) if prefix in PREFIXES else part(name)
    return None if module is None else module.FUNCTIONS.get(home, {}).get(name)


def names(home: str) -> tuple[str, ...]:
    """The names of the public functions of a public module."""
    from turnout_aten.generated.names import FUNCTIONS

    return FUNCTIONS.get(home, ())


def functions_of(module: dict[str, Any], home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a generated module, given its globals, with the functions of a public module."""

    def find(name: str) -> Any:
        if name == "__all__":
            return list(names(home))
        found = None if name.startswith("__") else function(home, name)
        if found is None:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        module[name] = found
        return found

    def directory() -> list[str]:
        return list(names(home))

    return find, directory


class LateMethod:
    """Stands for a method until it is first looked up: then all methods of its part take their places in the class.

    All at once, because CPython 3.13 stops caching look-ups in a class that was changed a thousand times.
    """

    __slots__ = ("_name", "_part")

    def __init__(self, name: str, part: str = "") -> None:
        self._name = name
        self._part = part

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        module = load(self._part or part_name(self._name))
        methods = vars(module.methods)
        from turnout_aten.generated.methods import TensorMethods

        for name, function in methods.items():
            if isinstance(vars(TensorMethods).get(name), LateMethod):
                setattr(TensorMethods, name, function)
        return methods[self._name].__get__(instance, owner)


def methods_class(module: str, names: Iterable[str], special: Mapping[str, str]) -> type:
    """The class with a method for each name; `special` says in which part a method of Python's operators is."""
    members: dict[str, Any] = {name: LateMethod(name) for name in names}
    members.update({name: LateMethod(name, part) for name, part in special.items()})
    members.update(__slots__=(), __module__=module, __hash__=object.__hash__)
    members["__doc__"] = "What `Tensor` inherits: one method for each operator with a method variant."
    return type("TensorMethods", (), members)


def publish(operators: Mapping[str, Any], functions: Mapping[str, Mapping[str, Any]], methods: type) -> None:
    """Give what a part holds its public names: those of tracebacks and pickles."""
    for rows in operators.values():
        for row in rows:
            row[1].__qualname__ = row[0][: row[0].index("(")]
    for home, by_name in functions.items():
        for function in by_name.values():
            function.__module__ = home
            function.__qualname__ = function.__name__
            first = (function.__doc__ or "").partition(",")[0].partition(" ")[0]
            if "::" in first:
                function.operator_name = first.partition(".")[0]
    for name, function in vars(methods).items():
        if isinstance(function, type(publish)) and function.__qualname__.startswith("methods."):
            function.__module__ = "turnout"
            function.__qualname__ = f"Tensor.{function.__name__}"
            function.operator_name = f"aten::{name}"
