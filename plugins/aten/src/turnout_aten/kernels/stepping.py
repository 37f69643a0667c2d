"""The steps of a row as a function: what a plan calls in place of the kernel, for few elements.

A kernel asks at each call what it is given: the dtype, the dims, whether there is an output. A plan holds for calls that agree in
all that, so its function only calls the array module, each time with the same dims, and writes the last step into the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import float32, float64
from turnout.operators.stubs import compile_function, python_name
from turnout_aten.kernels.plans import array_maker
from turnout_aten.kernels.rows import COUNT, FREEDOM, Steps
from turnout_aten.shapes.extents import degrees_of_freedom, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.kernels.specs import KernelSpec
    from turnout_aten.kernels.structured import Structured
    from turnout_aten.shapes.specs import Result

    Call = Callable[..., Any]

# Elements from which on a call costs what the array module computes.
MOST = 1 << 10
# Arguments that say how to reduce. The dtype of the output says what `dtype` does.
_OF_REDUCTIONS = ("dim", "keepdim", "correction", "dtype")


def by_elements(function: Any) -> bool:
    """Whether a function of the array module goes element by element. A product of matrices has a `signature`."""
    return hasattr(function, "nin") and getattr(function, "signature", None) is None


def reduces(step: tuple[Any, ...]) -> bool:
    """Whether a step has one operand for a function of two."""
    return len(step) == 2 and getattr(step[0], "nin", 0) == 2


def preparing(kernel: KernelSpec) -> Callable[[Result, Sequence[Any]], Call | None] | None:
    """What makes the function that a plan calls in place of the kernel: of its steps, or by what its row `prepares`."""
    s, backend, prepares = kernel.shaped, kernel.backend, kernel.prepares
    if prepares is None or array_maker(backend, s.op) is None:
        return stepping(steps_of(kernel), s, backend)
    array_type = backend.array_type

    def prepared(result: Result, args: Sequence[Any]) -> Call | None:
        if result.casts or any([out.strides is not None for out in result.outs]):  # noqa: C419
            return None
        if any([value.__class__ is complex for value in args]):  # noqa: C419 - each of its parts may be a zero of either sign
            return None
        given = s.kernel_arguments(backend, args, result)
        arrays = [each for value in given for each in (value if value.__class__ is list else (value,))]
        if any([hasattr(each, "strides") and each.__class__ is not array_type for each in arrays]):  # noqa: C419
            return None
        try:
            made = prepares(result.outs, *given)
        except Exception:  # noqa: BLE001 - the kernel says what is wrong
            return None
        return None if made is NotImplemented else made

    return prepared


def stepping(program: Steps, s: Structured, backend: TensorBackend) -> Callable[[Result, Sequence[Any]], Call | None] | None:
    """What makes the function of a plan, of the shape function's answer and the arguments. None without steps.

    It serves row-major tensors of one shape and dtype, float32 or float64, like the output's, and the usual values of arguments
    that no step names. It is None for any other call as well.
    """
    steps, limit = program
    named = {operand for _, *given in steps for operand in given if operand.__class__ is str}
    others = [a for a in s.inputs if a.name in s.plain and a.name not in named and a.name not in _OF_REDUCTIONS]
    functions = all(by_elements(function) for function, *_ in steps)
    if not steps or s.precomputed or s.lists or backend.new_array is None or backend.row_major is None or not functions:
        return None
    if not named <= set(s.names) or not all(a.has_default for a in others):
        return None
    row_major, most = backend.row_major, min(limit or MOST, MOST)
    made: list[Call] = []

    def prepared(result: Result, args: Sequence[Any]) -> Call | None:
        given = dict(zip(s.names, args, strict=True))
        out = result.outs[0]
        if result.casts or result.precomputed or len(result.outs) != 1 or out.strides is not None:
            return None
        if any(given[name] is not None for name in s.tensors if name not in named):
            return None
        if any(given[a.name].__class__ is not a.default.__class__ or given[a.name] != a.default for a in others):
            return None
        if any(given[name].__class__ not in (int, float) for name in named if name in s.plain):
            return None
        tensors = [given[name] for name in s.tensors if name in named]
        if any(tensor is None or tensor.dtype is not out.dtype for tensor in tensors) or out.dtype not in (float32, float64):
            return None
        arrays = [tensor.array for tensor in tensors]
        shape, size = arrays[0].shape, arrays[0].size
        if not shape or not 0 < size <= most:
            return None
        if any(a.shape != shape or a.__class__ is not backend.array_type or not row_major(a) for a in arrays):
            return None
        dim, correction = given.get("dim"), given.get("correction")
        axis = dim if dim is None or isinstance(dim, int) else tuple(dim) or None
        count = 1
        for d in listed(axis, len(shape)):
            count *= shape[d]
        freedom = degrees_of_freedom(count, correction)
        if freedom <= 0 and any(FREEDOM in given for _, *given in steps):
            return None
        if not made:  # once for all plans of the kernel
            made.append(_compiled(s, backend, steps))
        # As arrays: an array module takes twice as long for a Python number.
        numbers = [backend.empty((), out.dtype, tensors[0].device) for _ in range(2)]
        for number, value in zip(numbers, (count, freedom), strict=True):
            backend.fill(number, value)
        return made[0](axis, bool(given.get("keepdim", False)), *numbers)

    return prepared


def steps_of(kernel: KernelSpec) -> Steps:
    """The steps of a kernel. One that is a function of the array module is one step."""
    if isinstance(kernel.program, Steps):
        return kernel.program
    s, function = kernel.shaped, next((case.run for case in kernel.making if case.brief), kernel.fn)
    operands = [name for i, name in enumerate(s.names) if name in s.tensors or (i == 1 and name == "other")]
    if getattr(function, "nin", None) != len(operands) or getattr(function, "nout", None) != 1:
        return Steps(())
    return Steps(((function, *operands),), kernel.few)


def _compiled(s: Structured, backend: TensorBackend, steps: tuple[tuple[Any, ...], ...]) -> Call:
    """`make(axis, keepdim, count, freedom)`, which returns the function of a plan."""
    names = {name: python_name(name) for name in s.names}
    lines, variables = _lines(steps, names, "_out", ("_axis", "_keepdim", "_count", "_freedom"))
    given = ", ".join([*(python_name(a.name) for a in s.inputs), "_out"])
    text = ["def make(_axis, _keepdim, _count, _freedom):", f"    def stepped({given}):", *("        " + line for line in lines)]
    text += ["        return _out", "    return stepped"]
    variables["__name__"] = backend.wrapper_module
    return compile_function("\n".join(text) + "\n", "make", f"<{backend.name} steps of {s.op.qualified_name}>", variables)


def _lines(
    steps: tuple[tuple[Any, ...], ...],
    names: dict[str, str],
    out: str,
    reducing: Sequence[str],
    *,
    own: str = "",
    result: str = "",
) -> tuple[list[str], dict[str, Any]]:
    """The source of steps, of which the last one writes into `out`, and what it reads.

    `reducing` is source, too: the axis, whether to keep it, the count of elements behind each result, that less the correction.
    `own` says which steps make an array instead of writing into `out`: the "last" one, or "all". `result` is the name that the
    last step sets, if not `out`: it stays as it is if a step raises.
    """
    last = len(steps) - 1
    whole: list[bool] = []  # whether a step has all elements
    for step in steps:
        all_elements = [value.__class__ is str or (value.__class__ is int and whole[value]) for value in step[1:]]
        whole.append(any(all_elements) and not reduces(step))
    kept = [False] * len(steps)  # whether what is reduced meets whole arrays again, and has to keep its dims
    for i in range(last, -1, -1):
        for value in steps[i][1:]:
            if value.__class__ is int and not whole[value] and (whole[i] or kept[i]):
                kept[value] = True
    lines: list[str] = []
    made: list[str] = []
    variables: dict[str, Any] = {}
    axis, keepdim, count, freedom = reducing
    for i, step in enumerate(steps):
        # A step before the last writes where the last one does, if nothing else is there that is read again: no argument either.
        users = [j for j in range(i + 1, len(steps)) if any(v.__class__ is int and v == i for v in steps[j][1:])]
        into = i == last or (users == [i + 1] and not whole[i] and not kept[i])
        operands = []
        for value in step[1:]:
            if value is COUNT or value is FREEDOM:
                operands.append(count if value is COUNT else freedom)
            elif value.__class__ is int:
                operands.append(made[value])
            else:
                operands.append(names[value] if value.__class__ is str else repr(value))
        made.append(result if result and i == last else out if into else f"_{i}")
        into = into and not (own == "all" or (own == "last" and i == last))
        function = variables[f"STEP_{i}"] = step[0].reduce if reduces(step) else step[0]
        assert callable(function)
        if reduces(step):
            operands += [axis, "None", out if into else "None", "True" if kept[i] else keepdim]
        elif into:  # as the last argument: an array module takes 40 ns for the keyword
            operands.append(out)
        lines.append(f"{made[i]} = STEP_{i}({', '.join(operands)})")
    return lines, variables


def steps_at_once(kernel: KernelSpec, arrays: dict[str, str], *, out: str) -> tuple[str, list[str], dict[str, Any]] | None:
    """The steps of a kernel that makes its result, as source: when they serve a call, the lines that set `out`, and what they
    read.

    They need no plan: an array module says by itself that it has no such dim. None for a program that is no steps, and for
    one with arguments that change what it computes. `arrays` are the names of the tensors' arrays, by argument.
    """
    s, backend = kernel.shaped, kernel.backend
    steps, limit = kernel.program if isinstance(kernel.program, Steps) else Steps(())
    named = {operand for _, *given in steps for operand in given if operand.__class__ is str}
    numbers = [a.name for a in s.inputs if a.name in named and a.name in s.plain]
    over_dims = "dim" in s.names
    plain = all(by_elements(function) for function, *_ in steps) and not any(FREEDOM in given for _, *given in steps)
    reduced = [i for i, step in enumerate(steps) if reduces(step)]
    if not steps or not plain or s.precomputed or backend.new_array is None or backend.row_major is None:
        return None
    if not named <= {*arrays, *numbers} or reduced not in ([], [0]):
        return None
    first = arrays[s.tensors[0]]
    tests = [f"{first}.size <= {min(limit or MOST, MOST)}", f"{first}.dtype.char in 'fd'"]
    for argument in s.inputs:
        name = python_name(argument.name)
        if argument.name == "dim":
            tests.append(f"({name}.__class__ is int or {name})")
        elif argument.name in numbers:
            tests.append(f"({name}.__class__ is float or {name}.__class__ is int)")
        elif argument.name in s.plain and argument.name != "keepdim":
            tests.append(f"{name} is {argument.default!r}")
            if not argument.has_default or argument.default.__class__ not in (bool, type(None)):
                return None
    variables: dict[str, Any] = {"NEW": backend.new_array, "ROW_MAJOR": backend.row_major}
    given = {**arrays, **{name: python_name(name) for name in numbers}}
    if not reduced:
        lines, found = _lines(steps, given, "_made", ("",) * 4, own="last", result=out)
    elif over_dims:
        tests.append(f"{first}.size and {first}.shape and ROW_MAJOR({first})")
        keepdim = "keepdim" if "keepdim" in s.names else "False"
        reducing = ("dim", keepdim, f"{first}.size // _made.size", "")
        lines, found = _lines(steps, given, "_made", reducing, own="all", result=out)
    else:  # into an array: a number would have to become one
        tests.append(f"{first}.size and ROW_MAJOR({first})")
        lines, found = _lines(steps, given, "_made", ("None", "False", f"{first}.size", ""), result=out)
        lines = [f"_made = NEW((), {first}.dtype)", *lines]
    return " and ".join(tests), lines, variables | found
