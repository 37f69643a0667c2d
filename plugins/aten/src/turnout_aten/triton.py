"""`triton_op` and `wrap_triton`: operators whose kernels are written in Triton. A trace shows their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

from turnout.errors import PluginError
from turnout.library import CustomOpDef, custom_op
from turnout.operators import Operator
from turnout.operators.kernels import Kernel


def triton_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Any:
    """As `turnout.library.custom_op`, for a function that launches Triton kernels through `wrap_triton`.

    A trace records the operators that the function calls, in place of the operator. Raises PluginError where Triton is not
    installed.

    Arguments:
        name: "namespace::name"
        fn: the function; without it the result is a decorator
        mutates_args: the arguments that the function writes
        schema: "(Tensor x) -> Tensor", by default inferred from the annotations

    Example:
        >>> @turnout.library.triton_op("mylib::add", mutates_args=())  # doctest: +SKIP
        ... def add(x: turnout.Tensor, y: turnout.Tensor) -> turnout.Tensor:
        ...     made = turnout.empty_like(x)
        ...     turnout.library.wrap_triton(add_kernel)[grid](x, y, made)
        ...     return made
    """
    _require("triton_op")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        made: CustomOpDef = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made.impl_all(name, ["Tracer"], function, binder=_in_parts)
        return made

    return make if fn is None else make(fn)


def _in_parts(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    """The binder at Tracer: the function runs there, so that what it calls is recorded."""

    def call_parts(ks: int, *args: Any) -> Any:
        given, keywords = op.schema.by_keyword(args)
        return kernel.fn(*given, **keywords)

    return call_parts


def wrap_triton(kernel: Callable[..., Any], /) -> Callable[..., Any]:
    """The Triton kernel, to be launched as `wrap_triton(kernel)[grid](...)`. Raises PluginError where Triton is not installed.

    Arguments:
        kernel: what `triton.jit` returned

    Example:
        >>> turnout.library.wrap_triton(add_kernel)[(16,)](x, y, made)  # doctest: +SKIP
    """
    _require("wrap_triton")
    return kernel


def _require(api: str) -> None:
    if find_spec("triton") is None:
        raise PluginError(f"{api}: Triton is not installed\n  to fix  `pip install triton`, or write the kernel for custom_op")
