"""`turnout.func.functional_call` and `stack_module_state`: which tensors a module holds, and which are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors.layout import near

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout import Tensor


def no_dict(given: object) -> str:
    return (
        f"functional_call: the parameters must be a dict of tensors, or a list or tuple of such dicts; got {type(given).__name__}"
    )


def no_tensor(name: str, given: object) -> str:
    return f"functional_call: {name!r} must be a tensor, got {type(given).__name__}"


def no_arguments(given: object) -> str:
    return f"functional_call: kwargs must be a dict of arguments, got {type(given).__name__}"


def given_twice(name: str) -> str:
    return f"functional_call: {name!r} is in two of the dicts"


def unknown(name: str, module: object, names: Sequence[str]) -> str:
    return f"functional_call: {_named(module)} holds no tensor {name!r}{near(name, names)}"


def missing(names: Sequence[str], module: object) -> str:
    listed = ", ".join(map(repr, names))
    return f"functional_call: with strict=True every tensor of {_named(module)} must be given; {listed} {_is(names)} missing"


def tied(names: Sequence[str]) -> str:
    listed = " and ".join(map(repr, names))
    return (
        f"functional_call: {listed} are one tensor of the module, and different tensors are given for them\n"
        "  to fix  give one of them, or pass tie_weights=False"
    )


def same_name(name: str, module: object) -> str:
    return f"{_named(module)} holds two tensors that would both be called {name!r}, because a key of a dict contains a dot"


def no_modules() -> str:
    return "stack_module_state: expected at least one module, got none"


def other_names(index: int, names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names))
    return f"stack_module_state: all modules must hold tensors of the same names; module {index} differs in {listed}"


def other_class(index: int, first: object, module: object) -> str:
    return (
        f"stack_module_state: all modules must be of one class; module 0 is of {type(first).__name__}, "
        f"module {index} of {type(module).__name__}"
    )


def other_tracking(name: str) -> str:
    return f"stack_module_state: {name!r} requires a gradient in some of the modules, and in others not"


def other_tensor(name: str, index: int, tensor: Tensor, first: Tensor) -> str:
    return (
        f"stack_module_state: {name!r} is {first.dtype.name} {list(first.shape)} in module 0, and {tensor.dtype.name} "
        f"{list(tensor.shape)} in module {index}"
    )


def _named(module: Any) -> str:
    return f"the {type(module).__name__}"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
