"""The check of a custom kernel's result: it has the types of the schema, and shares no memory with the inputs.

All layers above rely on it. Otherwise a gradient could be recorded for a tensor that is its own input, and a write could be
missed. Generated code checks the common case with a few comparisons; `verify` checks the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from keyword import iskeyword
from typing import Any

from turnout.errors import library as texts
from turnout.errors.library import KernelResultError
from turnout.operators import Operator
from turnout.operators.kernels import Kernel
from turnout.operators.stubs import compile_function
from turnout.operators.values import is_tensor
from turnout.registry import REGISTRY
from turnout.schema import Argument, Return, Type

Named = tuple[str, Any, frozenset[str]]  # its name for messages, the tensor, the alias sets of its annotation


def checked(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    """The binder of custom operators' kernels: it checks the result."""
    arguments = op.schema.arguments
    names = [f"a{i}" for i in range(len(arguments))]
    everything = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    lines = [f"def checked({', '.join(['ks', *names])}):", f"    result = kernel({call_arguments(op, names)})"]
    quick, more = _quick_test(op, key, names)
    if quick:
        lines += [f"    if {quick}:", "        return result"]
    lines.append(f"    return verify(result, {everything})")
    namespace = {**more, "kernel": kernel.fn, "verify": partial(verify, op, kernel), "__name__": __name__}
    return compile_function("\n".join(lines) + "\n", "checked", f"<kernel of {op.qualified_name} at {key}>", namespace)


def call_arguments(op: Operator, values: list[str]) -> str:
    """The source of an argument list, from expressions in schema order."""
    return ", ".join(
        v if not a.kwarg_only else f"**{{{a.name!r}: {v}}}" if iskeyword(a.name) else f"{a.name}={v}"
        for a, v in zip(op.schema.arguments, values, strict=True)
    )


def _quick_test(op: Operator, key: str, names: list[str]) -> tuple[str, dict[str, Any]]:
    """An expression that is true only for a good result, and its globals; "" if only `verify` can decide."""
    returns = op.schema.returns
    if not returns:
        return "result is None", {}
    if len(returns) > 1 or str(returns[0].type) != "Tensor" or returns[0].annotation is not None:
        return "", {}
    given: list[tuple[str, bool]] = []
    for argument, name in zip(op.schema.arguments, names, strict=True):
        if argument.type.is_tensor:
            given.append((name, argument.type.is_optional))
        elif argument.type.is_tensor_like:
            return "", {}
    backend = REGISTRY.backends.get(key)
    return ("", {}) if backend is None else backend.fresh_result("result", given)


def verify(op: Operator, kernel: Kernel, result: Any, args: tuple[Any, ...]) -> Any:
    """The result, if its types and its shared memory are as the schema says. Raises KernelResultError."""
    returns = op.schema.returns
    if not returns:
        if result is not None:
            raise KernelResultError(texts.wrong_result(op, kernel, "nothing", _shown(result)))
        return None
    values = (result,) if len(returns) == 1 else result
    if not isinstance(values, (tuple, list)) or len(values) != len(returns):
        found = f"{len(values)} values" if isinstance(values, (tuple, list)) else _shown(values)
        raise KernelResultError(texts.wrong_result(op, kernel, f"{len(returns)} values", found))
    outputs: list[Named] = []
    for i, (declared, value) in enumerate(zip(returns, values, strict=True)):
        name = "the result" if len(returns) == 1 else f"result {i}"
        if declared.type.is_tensor_like:
            _check_type(op, kernel, declared.type, name, value)
            outputs += _tensors(declared, name, value)
    inputs = [each for a, value in zip(op.schema.arguments, args, strict=True) for each in _tensors(a, a.name, value)]
    for i, output in enumerate(outputs):
        _check_written(op, kernel, output, inputs)
        for other in (*inputs, *outputs[:i]):
            if not output[2] & other[2] and _share(output[1], other[1]):
                how = "is" if output[1] is other[1] else "shares memory with"
                raise KernelResultError(texts.aliased(op, kernel, f"{output[0]} {how} {other[0]}"))
    if len(returns) > 1:
        return tuple(values)
    return list(result) if result.__class__ is tuple else result


def _check_written(op: Operator, kernel: Kernel, output: Named, inputs: list[Named]) -> None:
    """Raise KernelResultError unless a written argument is returned as the same tensor."""
    written = {a.name for a in op.schema.mutated_arguments}
    names = [name for name, _, sets in inputs if sets & output[2] and name in written]
    if names and not any(output[1] is tensor for name, tensor, _ in inputs if name in names):
        raise KernelResultError(texts.not_returned(op, kernel, " or ".join(names)))


def _check_type(op: Operator, kernel: Kernel, kind: Type, name: str, value: Any) -> None:
    """Raise KernelResultError unless a returned value is a tensor or a list of them. None is an undefined tensor."""
    is_list = isinstance(value, (list, tuple))
    if is_list != kind.is_list or not all(v is None or is_tensor(v) for v in (value if is_list else (value,))):
        expected = f"{'a Tensor' if kind.is_tensor else 'a list of tensors'} as {name}"
        raise KernelResultError(texts.wrong_result(op, kernel, expected, _shown(value)))


def _tensors(declared: Argument | Return, name: str, value: Any) -> list[Named]:
    """The tensors of an argument or a return."""
    sets = declared.annotation.sets if declared.annotation is not None else frozenset()
    if is_tensor(value):
        return [(name, value, sets)]
    elements = enumerate(value) if isinstance(value, (list, tuple)) else ()
    return [(f"{name}[{i}]", element, sets) for i, element in elements if is_tensor(element)]


def _share(a: Any, b: Any) -> bool:
    """Whether two tensors are the same, or report that they share memory."""
    shares = getattr(a, "shares_memory_with", None)
    return a is b or (shares is not None and bool(shares(b)))


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {', '.join(sorted({type(v).__name__ for v in value})) or 'nothing'}"
    return "None" if value is None else f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
