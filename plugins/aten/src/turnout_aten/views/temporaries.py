"""Composite kernels whose result is a view of a temporary: outside the kernel the result is not a view.

`matmul` may end with a reshape of its result. No one else holds the base, so the view record would only forbid writes and
detaching. It is dropped when the kernel returns, unless the memory belongs to an argument.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.operators.stubs import compile_function, python_name
from turnout.plugins import replaceable
from turnout_aten.composites.endings import ending_lines
from turnout_aten.errors.failures import retell_composite
from turnout_aten.kernels.facts import facts_of
from turnout_aten.kernels.standing import does
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel

    Call = Callable[..., Any]


@replaceable
def bind_composite(op: Operator, kernel: Kernel, key: str) -> Call:
    """The binder of composite kernels: passes the schema's arguments, keyword-only ones by keyword."""
    fn = kernel.fn.__wrapped__
    keywords, split = [a.name for a in op.schema.kwarg_only], len(op.schema.positional)
    names = [python_name(a.name) for a in op.schema.arguments]
    given = [*names[:split], *(f"{keyword}={name}" for keyword, name in zip(keywords, names[split:], strict=True))]
    everything = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    first = names[0] if names else "None"
    ends, operators = ending_lines(facts_of(fn).endings, names)
    usual = f"_result = FN({', '.join(given)})"
    body = "\n".join("        " + line for line in ([*ends, "else:", "    " + usual] if ends else [usual]))
    source = CALL.format(names=", ".join(["ks", *names]), body=body, first=first, everything=everything)
    namespace = {
        "__name__": __name__, "FN": fn, "SETTLE_ALL": _settle_all, "SETTLE": _settle, "TENSOR": Tensor, "SEQUENCES": _SEQUENCES,
        "RETELL": partial(retell_composite, op), **operators,
    }  # fmt: skip
    made = compile_function(source, "call_composite", f"<call of composite {op.qualified_name}>", namespace)
    around = facts_of(fn).shortcut
    return does(op.qualified_name, made if around is None else _with_shortcut(made, around))


def _with_shortcut(call: Call, around: Callable[[Call], Call]) -> Call:
    """The call behind its shortcut. Where a guard comes between, it stands behind the shortcut, too."""
    made: Any = around(call)
    made.shortcut = call, around
    return made


# Written out for each operator: a tuple of arguments at each call would cost 60 ns, a dict of the keyword-only ones 400.
# Its own names begin with an underscore, because an argument may have any other.
CALL = """\
def call_composite({names}):
    try:
{body}
    except Exception as _error:
        RETELL(_error, {everything})
        raise
    if _result.__class__ is TENSOR:
        _view = _result.view_of
        if _view is not None and _view.base is not {first}:
            SETTLE(_result, {everything})
    elif _result.__class__ in SEQUENCES:
        SETTLE_ALL(_result, {everything})
    return _result
"""
_SEQUENCES = frozenset({tuple, list})
_PLAIN = frozenset({int, bool, float, str, type(None)})


def _settle_all(results: Any, args: tuple[Any, ...]) -> None:
    for result in results:
        if isinstance(result, Tensor) and result.view_of is not None and not (args and result.view_of.base is args[0]):
            _settle(result, args)


def _settle(result: Tensor, args: tuple[Any, ...]) -> None:
    """Drop the view record of a result whose memory belongs to no argument. The caller has asked for the first one."""
    for arg in args:
        if arg.__class__ in _PLAIN:
            continue
        for given in arg if isinstance(arg, (list, tuple)) else (arg,):
            if given is result or (isinstance(given, Tensor) and given.is_alias_of(result)):
                return
    result.view_of = None
