"""Writes into a given tensor: the functional variant computes, and the result is copied.

That serves tensors of the result's shape and dtype that are not expanded and share no memory with another argument. The general
path serves all others, and whatever fails here, so that errors do not depend on the path. It takes what was computed, where the
tensor has another shape or dtype than that, so that no kernel runs twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.operators.calls import Line, Source
from turnout.operators.stubs import compile_function, python_name
from turnout.registry import find_operator
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.rows import ALWAYS, SAME
from turnout_aten.kernels.specs import INTO, KernelSpec, Wrapper, wrapper
from turnout_aten.kernels.structured import Structured

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.shapes.specs import Out

    Call = Callable[..., Any]

# Elements up to which a copy costs less than the general path. There, the kernel writes into the tensor itself where it can.
_MOST = 1 << 15


def copying(kernel: KernelSpec, below: Call | None, general: Call) -> Call:
    """The variant that writes one tensor, an input or the one output, as generated source: the copy of what `below` makes, then
    `general`, which is all if there is none. Its locals begin with an underscore, because an argument of the operator may have
    any other name."""
    if below is None:
        return general
    s, backend = kernel.shaped, kernel.backend
    outs, names = s.op.schema.out_arguments, [python_name(a.name) for a in s.inputs]
    target = python_name(outs[0].name) if outs else names[0]
    written = [*names, *(python_name(a.name) for a in outs)]
    given, all_given = ", ".join(names), ", ".join(written)
    conditions = [
        (f"_own.size <= {_MOST}", f"{target} has more than {_MOST} elements"),
        ("0 not in _own.strides", f"{target} is expanded"),
    ]
    if s.dtype_at is not None:  # the result's dtype is that of the output: another kernel than without it, except for these
        usual = f"_own.dtype is {names[0]}.array.dtype or _own.dtype.kind == 'i' and _own.dtype.itemsize == 8"
        conditions.append((f"({names[s.dtype_at]} is not None or {usual})", f"{target} may have another dtype than the result"))
    if s.lists:
        conditions.append((f"{target}.storage is None", f"{target} may share memory"))
    for other in [] if s.lists else [a for a in (s.inputs if outs else s.inputs[1:]) if a.type.is_tensor]:
        name = python_name(other.name)
        absent = f"{name} is None or " if other.type.canonical.endswith("?") else ""
        owners = [f"{each}.storage.of is None" for each in (name, target)]
        apart = " and ".join([f"{name}.storage is not {target}.storage", *owners])
        test = f"({absent}{name}.storage is None or {target}.storage is None or {apart})"
        conditions.append((test, f"{target} and {name} may share memory"))
    text = f"""\
def written(ks, {all_given}):
    _made = None
    try:
        _own = {target}.array
        if {" and ".join(test for test, _ in conditions)}:
            _made = BELOW(ks, {given})
            _array = _made.array
            if _array.dtype is _own.dtype and _array.shape == _own.shape:
                _own[...] = _array
                return {target}
    except Exception:
        _made = None
    return GENERAL(ks, {all_given}, made=_made)
"""
    source = Source(
        f"<{backend.name} writes of {s.op.qualified_name}>", "written",
        {"__name__": backend.wrapper_module, "BELOW": below, "GENERAL": general},
    )  # fmt: skip
    finish = Line(len(text.splitlines()), f"return GENERAL(ks, {all_given}, made=_made)", ["ks", "_made", *written])
    made = compile_function(text, source.function, source.file, source.variables)
    # In place, a kernel that makes its result needs no tensor around it, and may write many elements into the tensor itself.
    inputs = kernel.inputs if not outs and kernel.inputs is not None and kernel.inputs.allocates in (ALWAYS, SAME) else None
    large = kernel.pointwise and inputs is not None and inputs.allocates == ALWAYS
    return wrapper(made, Wrapper(
        INTO, kernel, kernel.making, general, inputs=inputs, large=backend.in_kernel_context(kernel.fn) if large else None,
        below=below, conditions=conditions, lines={"finish": finish},
    ), source)  # fmt: skip


def is_result(made: Any, spec: Out, backend: Any) -> bool:
    """Whether what the functional variant made is what the general path would compute for an output."""
    return made is not None and backend.dtype_of(made.array) is spec.dtype and made.shape == spec.shape


def same_inputs(s: Structured) -> Structured | None:
    """The functional variant with the same arguments as one that writes one tensor, if there is one."""
    wanted = [(a.name, a.type.canonical) for a in s.inputs]
    for served, *_ in STRUCTURED.values() if s.outs < 2 else ():
        if s.op.qualified_name in served:
            for name in [name for name, kind in served.items() if kind == "functional"]:
                op = find_operator(name)
                if [(a.name, a.type.canonical) for a in op.schema.arguments] == wanted:
                    return Structured(op, s.shape, s.precomputed)
    return None
