"""Wrappers: they turn a backend's plain function on arrays into a callable of the internal convention on tensors.

One array kernel of a structured operator serves its functional, in-place and out variants. Each variant has a *general path*:
ask the shape function, allocate or check the outputs, call the kernel. Two generated paths come before that of the functional
variant. The *planned path* takes what the shape function answered for a call with the same shapes and dtypes. The *fast path*, if
the row allows it, comes first of all: the dtypes are the same and the kernel allocates. If one of them raises, the general path
runs, so that errors do not depend on the path.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from turnout import config
from turnout.devices import Device
from turnout.dtypes import COMPLEX, FLOAT, float16
from turnout.errors import AliasError, DTypeError, KernelWarning, ShapeError
from turnout.operators.stubs import compile_function, python_name
from turnout.plugins import replaceable
from turnout_aten.dtypes import can_cast
from turnout_aten.errors import tensors as texts
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.contract import as_result_array, check_returned, in_debug
from turnout_aten.kernels.planning import kept_answers, planned, planned_write, silencing
from turnout_aten.shapes.specs import Out, Result, as_result
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrap, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout.operators import Operator
    from turnout.schema import Argument
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]
    ShapeFunction = Callable[..., Any]

ALWAYS = "always"  # inputs of one dtype give that dtype, for every dtype that the kernel accepts
SAME = "same"  # the result is used only if it has the inputs' dtype; otherwise the general path converts
BOOL = "bool"  # inputs of one dtype give bool (comparisons)

# In the steps of a row: the number of elements that are reduced to one, and that less the argument `correction`, or 1.
COUNT: Any = object()
FREEDOM: Any = object()


class Row:
    """An array kernel with options.

    allocates  ALWAYS, SAME or BOOL: opts in to the fast path, in which the kernel allocates the result. If it raises
               NotImplementedError, the call takes the general path
    pointwise  an output may be the same array as an input
    simple     the kernel as a function of the required arguments only. The fast path calls it when the other arguments have
               their defaults: it saves a Python frame (`numpy.add` for `add` with alpha=1: 50 ns of 560)
    limit      `simple` serves arrays of up to this many elements (0: any); for larger ones `fn` may use several threads
    limit_of_halves  the same for two-byte elements (0: as `limit`)
    bools      False: a bool in place of a number takes the general path, because the shape function may refuse it
    refuses    dtypes (as NumPy kinds) that take the general path, because the shape function refuses them but the kernel does not
    ranks      the ndim of each tensor, None for any; a call with other ranks takes the general path
    halves     False: a number beside float16 takes the general path, in which the kernel does not round the number first
    few        the kernel for calls whose first tensor and first output have up to `limit_of_few` elements, in place of `fn`
    quiet      the array library warns of nothing that the kernel does, or only from frames that `wrapper_module` and its filter
               cover: the kernel moves elements, or calls ufuncs by itself. The planned path calls it outside `kernel_context`
    warns      common numbers lead to ones of which the array library warns (exp of 100). The fast path switches warnings off,
               which costs 250 ns; NumPy takes 1,800 to find out that a warning is ignored
    steps      what the kernel computes, bit by bit, for row-major tensors of one float dtype, as (function of the array module,
               operand, ...). An operand is the name of an argument, the number of an earlier step, a float, COUNT or FREEDOM. A
               function of two operands that has one reduces over `dim`. A compiled call path runs them; `fn` serves all other
               calls
    limit_of_steps  they serve up to this many elements (0: any)
    moves      in a word, what a kernel does that only moves, finds or orders elements: "join" for `cat`, "pick" and "put" by a
               list of indices, "select" and "gather" by one, "flip", "lower" and "upper" for triangles, "add up" for running
               sums, "find largest" for `argmax`, "largest" for `max` along a dim, "sort", "order first" for `topk`, "any", "all",
               "class loss" and "class slope" for `nll_loss` and its gradient,
               and without a tensor "uniform" and "normal" random numbers of the device's generator (`composites.endings`).
               A compiled call path does that for few elements of row-major arrays; `fn` serves all other calls
    over       makes the kernel, from one that may get any call, for a row over another one: compiled kernels that look at their
               arguments themselves need no frame that asks whether they serve a call
    """

    __slots__ = (
        "allocates", "bools", "few", "fn", "halves", "limit", "limit_of_few", "limit_of_halves", "limit_of_steps", "moves",
        "over", "pointwise", "quiet", "ranks", "refuses", "simple", "steps",
        "warns",
    )  # fmt: skip

    def __init__(
        self, fn: Call, allocates: str = "", *, pointwise: bool = False, simple: Call | None = None, limit: int = 0,
        bools: bool = True, refuses: str = "", ranks: tuple[int | None, ...] = (), halves: bool = True,
        quiet: bool = False, few: Call | None = None, limit_of_few: int = 0,
        steps: tuple[tuple[Any, ...], ...] = (), limit_of_steps: int = 0, limit_of_halves: int = 0,
        over: Callable[[Call], Call] | None = None, moves: str = "", warns: bool = False,
    ) -> None:  # fmt: skip
        self.limit = limit
        self.limit_of_halves = limit_of_halves or limit
        self.fn = fn
        self.allocates = allocates
        self.pointwise = pointwise
        self.simple = simple
        self.bools = bools
        self.refuses = refuses
        self.ranks = ranks
        self.halves = halves
        self.quiet = quiet
        self.few = few
        self.limit_of_few = limit_of_few
        self.steps = steps
        self.limit_of_steps = limit_of_steps
        self.over = over
        self.moves = moves
        self.warns = warns

    def function_for(self, *arrays: str, kernel: str = "kernel", few: str = "few") -> str:
        """The function that serves arrays of these names, as source: `kernel`, or `few` where they are small."""
        if self.few is None:
            return kernel
        return f"({few} if {' and '.join(f'{array}.size <= {self.limit_of_few}' for array in arrays)} else {kernel})"


class Structured:
    """The facts that the wrapper of one variant needs about its operator.

    op          the variant
    shape       the group's shape function, called with the functional arguments
    precomputed argument name -> the names that replace it for the kernel; "" -> additional names
    """

    __slots__ = (
        "dtype_at",
        "inputs",
        "lists",
        "names",
        "op",
        "outs",
        "plain",
        "plannable",
        "precomputed",
        "required",
        "shape",
        "tensors",
    )

    def __init__(self, op: Operator, shape: ShapeFunction, precomputed: Mapping[str, tuple[str, ...]]) -> None:
        self.op = op
        self.shape = shape
        self.precomputed = precomputed
        schema = op.schema
        outs = {a.name for a in schema.out_arguments}
        self.names = [a.name for a in schema.arguments if a.name not in outs]
        self.outs = len(outs)
        self.tensors = [a.name for a in schema.arguments if a.name not in outs and a.type.is_tensor]
        self.inputs = [a for a in schema.arguments if a.name not in outs]
        self.plain = [a.name for a in self.inputs if not a.type.is_tensor_like]
        self.required = [a.name for a in self.inputs if a.type.is_tensor_like and not a.type.canonical.endswith("?")]
        self.lists = any(a.type.is_tensor_list for a in self.inputs)
        # A generator's state, or a tensor that the kernel does not get, is no part of a key.
        self.plannable = bool(self.required) and not any(
            a.type.canonical.startswith("Generator") or (a.type.is_tensor_like and a.name in precomputed) for a in self.inputs
        )
        self.dtype_at = self.names.index("dtype") if getattr(shape, "dtype_of_out", False) and "dtype" in self.names else None

    def answer(self, *args: Any) -> Result:
        """What the shape function says of these arguments."""
        return as_result(self.shape(*args))

    def inputs_for(self, target: Tensor, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with the dtype of the tensor that is written where this decides."""
        at = self.dtype_at
        return args if at is None or args[at] is not None else (*args[:at], target.dtype, *args[at + 1 :])

    def kernel_arguments(self, backend: TensorBackend, args: Sequence[Any], result: Result) -> list[Any]:
        """The kernel's positional arguments before the outputs: arrays, converted if the shape function says so."""
        casts = result.casts
        if not casts and not result.precomputed:
            return [
                value.array if value.__class__ is Tensor else value if value.__class__ in _AS_IS else to_array(backend, value)
                for value in args
            ]
        values: list[Any] = []
        for name, value in zip(self.names, args, strict=False):
            if name in self.precomputed:
                values += [result.precomputed[n] for n in self.precomputed[name]]
                continue
            if name in result.precomputed:
                value = result.precomputed[name]
            values.append(to_array(backend, value, casts.get(name)))
        values += [result.precomputed[n] for n in self.precomputed.get("", ())]
        return values


_AS_IS = frozenset({type(None), bool, float, int})


def to_array(backend: TensorBackend, value: Any, dtype: Any = None) -> Any:
    """An argument as the kernel receives it: tensors become arrays of this backend, converted to `dtype`; also inside lists."""
    if isinstance(value, Tensor):
        array = value.array
        if dtype is not None and backend.dtype_of(array) is not dtype:
            converted = backend.empty(array.shape, dtype, value.device)
            backend.copy(converted, array)
            return converted
        return array
    if isinstance(value, (list, tuple)) and any([isinstance(v, Tensor) for v in value]):  # noqa: C419 - no generator's frames
        return [v.array if v.__class__ is Tensor and dtype is None else to_array(backend, v, dtype) for v in value]
    return value


def first_device(args: Sequence[Any]) -> Device:
    """The device of the first tensor of a call, looking into lists."""
    for value in args:
        if isinstance(value, Tensor):
            return value.device
        if isinstance(value, (list, tuple)):
            for element in value:
                if isinstance(element, Tensor):
                    return element.device
    raise AssertionError("a backend's structured kernel was called without a tensor")


# ---- structured operators


def functional(s: Structured, backend: TensorBackend, row: Row) -> Call:
    """The wrapper of the functional variant."""
    fn, debug = _row_function(s, backend, row)
    empty = backend.empty

    def compute(args: tuple[Any, ...], answer: Call) -> Any:
        try:
            result = answer(*args)
            device = args[0].device if args[0].__class__ is Tensor else first_device(args)
            arrays = [empty(out.shape, out.dtype, device, out.strides) for out in result.outs]
            with backend.kernel_context():
                made = fn(*s.kernel_arguments(backend, args, result), *arrays)
            if made is not None:
                check_returned(s.op.qualified_name, backend, fn, made, arrays)
        except Exception as error:
            retell(s.op, error, args)
            raise
        if len(arrays) == 1:
            return wrap(arrays[0], device)
        return tuple([wrap(array, device) for array in arrays])

    def general(ks: int, *args: Any) -> Any:
        return compute(args, s.answer)

    if debug or backend.array_type is None:
        return general
    if backend.new_array is not None and s.plannable:
        general = planned(s, backend, row, general, compute)
    if row.allocates and not s.precomputed and s.tensors:
        return fast_functional(s, backend, row, general)
    return general


def _few(backend: TensorBackend, row: Row, debug: bool) -> tuple[Call | None, int]:
    """The row's kernel for few elements, in its context, and its limit. None where each kernel is checked."""
    return (None if debug or row.few is None else backend.in_kernel_context(row.few)), row.limit_of_few


def _row_function(s: Structured, backend: TensorBackend, row: Row) -> tuple[Call, bool]:
    """The row's function, and whether it is one that checks itself: the setting `debug.kernels`."""
    if not config.get("debug.kernels"):
        return row.fn, False
    allocates = row.allocates if s.tensors and not s.precomputed and backend.array_type is not None else ""
    count = s.outs or len(s.op.schema.returns)
    return in_debug(s.op.qualified_name, backend, row.fn, count, allocates), True


@replaceable
def fast_functional(s: Structured, backend: TensorBackend, row: Row, general: Call) -> Call:
    """The functional variant as generated source: the fast path, then `general`."""
    arguments = [python_name(n) for n in s.names]
    optional = [a.name for a in s.op.schema.arguments if a.type.canonical.endswith("?")]
    tensors = [python_name(n) for n in s.tensors if n not in optional]
    first = f"{tensors[0]}_a"
    others = [a for a in s.op.schema.arguments if a.name in s.names and a.name not in s.tensors]
    applies = [f"{t}_a.dtype is {first}.dtype" for t in tensors[1:]]
    applies += [f"{python_name(n)} is None" for n in s.tensors if n in optional]
    # A number in place of a tensor (mul.Scalar) may raise the dtype's category: int64 times 2.5.
    numbers = _numbers(others)
    applies += [] if row.bools else [f"{n}.__class__ is not bool" for n in numbers]
    applies += [f"{first}.dtype is not HALF"] if numbers and not row.halves else []
    applies += _admitted(row, tensors)
    unsure = row.allocates == SAME or (numbers and row.allocates != BOOL)
    made = "\n".join("    " + line for line in wrapping_lines(keys="KEYS", device=f"{tensors[0]}.device"))
    silent = row.warns and backend.silence is not None
    source = f"""\
def wrapped({", ".join(["ks", *arguments])}):
    {"; ".join(f"{t}_a = {t}.array" for t in tensors)}
    array = failure = None
    {f"if {' and '.join(applies)}:" if applies else "if True:"}
        {"before = SILENCED(QUIET)" if silent else ""}
        try:
            array = {_kernel_call(row, arguments, tensors, others)}
        except Exception as raised:
            failure = raised.with_traceback(None)  # its frame would keep it alive in a cycle
        {"finally: SPOKEN(before)" if silent else ""}
    if array.__class__ is not ARRAY:
        if failure is not None:
            return after(failure, general, ks, {", ".join(arguments)})
        if array is None:
            return general(ks, {", ".join(arguments)})
        array = as_array(array)
    {f"if array.dtype is not {first}.dtype: return general(ks, {', '.join(arguments)})" if unsure else ""}
{made}
    return t
"""
    namespace = {
        "__name__": backend.wrapper_module, "kernel": row.fn, "few": row.few, "general": general, "ARRAY": backend.array_type,
        "as_array": as_result_array(s.op.qualified_name, backend, row.fn), "simple": row.simple, "Tensor": Tensor,
        "KEYS": backend.keys, "CLOCK": CLOCK, "after": _after_failure(s.op, backend), "HALF": _half(backend, row),
        **_defaults(others), **silencing(backend),
    }  # fmt: skip
    return compile_function(source, "wrapped", f"<{backend.name} wrapper of {s.op.qualified_name}>", namespace)


def _half(backend: TensorBackend, row: Row) -> Any:
    """The backend's own object for float16, for rows that ask for it."""
    return None if row.halves else backend.empty((), float16, backend.current_device()).dtype


def _after_failure(op: Operator, backend: TensorBackend) -> Call:
    """Called when the kernel of a fast path raised: the general path runs and raises the usual error.

    If the general path succeeds, the kernel refused arguments that the shape function accepts, and a KernelWarning names the
    kernel. There are three exceptions: warnings of the array library that were turned into errors, because the general path runs
    with these off; NotImplementedError, by which a kernel asks for its output argument; and OverflowError, by which it refuses a
    number outside the dtype, which the shape function wraps or refuses.
    """

    def run_general(error: Exception, general: Call, ks: int, *args: Any) -> Any:
        result = general(ks, *args)
        if not isinstance(error, (Warning, FloatingPointError, NotImplementedError, OverflowError)):
            import warnings

            warnings.warn(texts.fast_kernel_failed(op.qualified_name, backend.device_type, error), KernelWarning, stacklevel=3)
        return result

    return run_general


def _admitted(row: Row, tensors: list[str]) -> list[str]:
    """The conditions from `refuses` and `ranks`."""
    kinds = [f"{tensors[0]}_a.dtype.kind not in {row.refuses!r}"] if row.refuses else []
    return kinds + [f"{t}_a.ndim == {n}" for t, n in zip(tensors, row.ranks, strict=False) if n is not None]


def _numbers(others: list[Argument]) -> list[str]:
    """The arguments that are tensors in another overload."""
    return [python_name(a.name) for a in others if a.type.canonical == "Scalar" and not a.has_default]


def _defaults(others: list[Argument]) -> dict[str, Any]:
    """The globals that `_kernel_call` compares with."""
    return {f"DEFAULT_{python_name(a.name)}": a.default for a in others if a.has_default}


def _kernel_call(row: Row, arguments: list[str], tensors: list[str], others: list[Argument]) -> str:
    """The expression that calls the row's kernel, or `simple` where the defaulted arguments have their defaults."""
    given = {a: f"{a}_a" if a in tensors else a for a in arguments}
    kernel = f"{row.function_for(given[tensors[0]])}({', '.join(given.values())})"
    if row.simple is None:
        return kernel
    defaulted = {python_name(a.name): a for a in others if a.has_default}
    # `is` saves 15 ns over `==`. An equal value that is another object takes the row's kernel, which gives the same result.
    when = [f"{name} is DEFAULT_{name}" for name in defaulted]
    if row.limit:
        array, few = given[tensors[0]], row.limit_of_halves
        halves = f" and ({array}.size <= {few} or {array}.dtype.itemsize != 2)" if few < row.limit else ""
        when.append(f"{array}.size <= {row.limit}{halves}")
    simple = f"simple({', '.join(value for name, value in given.items() if name not in defaulted)})"
    return f"{simple} if {' and '.join(when)} else {kernel}" if when else simple


@replaceable
def inplace(s: Structured, backend: TensorBackend, row: Row) -> Call:
    """The wrapper of the in-place variant: writes into self's array if the kernel can, else copies the result into it."""
    fn, debug = _row_function(s, backend, row)
    answer = s.answer if debug else kept_answers(s, backend)
    quietly = backend.in_kernel_context(fn)
    few, limit = _few(backend, row, debug)

    def general(ks: int, *args: Any) -> Any:
        target: Tensor = args[0]
        try:
            args = s.inputs_for(target, args)
            result = answer(*args)
            out = result.outs[0]
            if out.shape != target.shape:
                raise ShapeError(
                    f"{s.op.qualified_name}: self of shape {list(target.shape)} cannot hold the result of shape {list(out.shape)}"
                )
            check_result_dtype(s.op, out, target)
            if out.dtype.category == FLOAT and target.dtype.category == COMPLEX:
                raise DTypeError(
                    f"{s.op.qualified_name}: the result is real, but self is complex and cannot become real in place; "
                    "call the variant that returns a new tensor"
                )
            check_writable(s.op, backend, target, args[1:])
            array = target.array
            direct = row.pointwise and backend.dtype_of(array) is out.dtype and result.casts.get("self") in (None, out.dtype)
            written = array if direct and not debug else backend.empty(out.shape, out.dtype, target.device)
            given = s.kernel_arguments(backend, args, result)
            kernel = few if few is not None and given[0].size <= limit and written.size <= limit else quietly
            made = kernel(*given, written)
            if made is not None:
                check_returned(s.op.qualified_name, backend, fn, made, (written,))
            if written is not array:
                backend.copy(array, written)
        except Exception as error:
            retell(s.op, error, args)
            raise
        return target

    if debug:
        return general
    kernel = planned_write(s, backend, row, general, into=s.names[0])
    if row.allocates in (ALWAYS, SAME) and not s.precomputed and backend.array_type is not None:
        return fast_inplace(s, backend, row, kernel)
    return kernel


# Up to this many elements, an in-place call computes into a new array and copies. The kernel may raise after it has written (if
# floating-point warnings are errors), and the general path must then find self unchanged.
_ASIDE = 4096


@replaceable
def fast_inplace(s: Structured, backend: TensorBackend, row: Row, general: Call) -> Call:
    """The in-place variant with two fast paths: for small tensors, and for large ones with equal shapes and dtypes."""
    arguments = [python_name(n) for n in s.names]
    optional = [a.name for a in s.op.schema.arguments if a.type.canonical.endswith("?")]
    tensors = [python_name(n) for n in s.tensors if n not in optional]
    others = [a for a in s.op.schema.arguments if a.name in s.names and a.name not in s.tensors]
    first, rest = tensors[0], tensors[1:]
    # If elements of an aliased self share memory with each other or with another argument, the general path must refuse the call.
    apart = "".join(f" and {t}.storage is not {first}.storage" for t in rest)
    applies = [f"({first}.storage is None or {first}_a.flags.c_contiguous{apart})"]
    applies += [f"{t}_a.dtype is {first}_a.dtype" for t in rest]
    applies += [f"{python_name(n)} is None" for n in s.tensors if n in optional]
    applies += [] if row.bools else [f"{n}.__class__ is not bool" for n in _numbers(others)]
    applies += [f"{first}_a.dtype is not HALF"] if _numbers(others) and not row.halves else []
    applies += _admitted(row, tensors)
    source = f"""\
def wrapped({", ".join(["ks", *arguments])}):
    {"; ".join(f"{t}_a = {t}.array" for t in tensors)}
    array = failure = None
    if {" and ".join(applies)}:
        if {first}_a.size <= {_ASIDE}:
            try:
                array = {_kernel_call(row, arguments, tensors, others)}
            except Exception as raised:
                failure = raised.with_traceback(None)  # its frame would keep it alive in a cycle
{_large_inplace(row, arguments, tensors, others) if row.pointwise and row.allocates == ALWAYS else ""}
    if array is None or array.dtype is not {first}_a.dtype or array.shape != {first}_a.shape:
        if failure is not None:
            return after(failure, general, ks, {", ".join(arguments)})
        return general(ks, {", ".join(arguments)})
    try:
        {first}_a[...] = array
    except Exception as raised:  # the memory of self is read-only
        return after(raised, general, ks, {", ".join(arguments)})
    return {first}
"""
    namespace = {
        "__name__": backend.wrapper_module, "kernel": row.fn, "few": row.few, "general": general, "simple": row.simple,
        "context": backend.kernel_context, "after": _after_failure(s.op, backend), "HALF": _half(backend, row),
        **_defaults(others),
    }  # fmt: skip
    return compile_function(source, "wrapped", f"<{backend.name} wrapper of {s.op.qualified_name}>", namespace)


def _large_inplace(row: Row, arguments: list[str], tensors: list[str], others: list[Argument]) -> str:
    """The branch in which the kernel writes into self: with equal operands and warnings off, it cannot raise."""
    first, rest = tensors[0], tensors[1:]
    alike = [f"{first}_a.dtype.kind == 'f'", f"{first}_a.flags.c_contiguous"]
    alike += [f"{t}_a.shape == {first}_a.shape" for t in rest]
    alike += [f"{python_name(a.name)}.__class__ in (float, int)" for a in others if a.type.canonical == "Scalar"]
    given = ", ".join([f"{a}_a" if a in tensors else a for a in arguments])
    return f"""\
        elif {" and ".join(alike)}:
            try:
                with context():
                    kernel({given}, {first}_a)
            except Exception as raised:  # the memory of self is read-only
                return after(raised, general, ks, {", ".join(arguments)})
            return {first}"""


@replaceable
def out(s: Structured, backend: TensorBackend, row: Row) -> Call:
    """The wrapper of the out variant. Outputs of the wrong shape are resized with a warning; the kernel writes them directly, or
    through a proxy."""
    fn, debug = _row_function(s, backend, row)
    answer = s.answer if debug else kept_answers(s, backend)
    quietly = backend.in_kernel_context(fn)
    few, limit = _few(backend, row, debug)
    count = s.outs

    def wrapped(ks: int, *args: Any) -> Any:
        inputs, targets = args[: len(args) - count], args[len(args) - count :]
        try:
            inputs = s.inputs_for(targets[0], inputs)
            result = answer(*inputs)
            for spec, target in zip(result.outs, targets, strict=True):
                check_result_dtype(s.op, spec, target)
                check_writable(s.op, backend, target, ())
                if row.pointwise and target.shape != spec.shape and any(target is value for value in inputs):
                    raise ShapeError(
                        f"{s.op.qualified_name}: an output of shape {list(target.shape)} that is an input too cannot hold the "
                        f"result of shape {list(spec.shape)}"
                    )
            # Before outputs are resized, for one of them may be an input.
            arguments = s.kernel_arguments(backend, inputs, result)
            written = []
            for spec, target in zip(result.outs, targets, strict=True):
                resize_output(s.op, backend, target, spec.shape, spec.strides)
                check_writable(s.op, backend, target, inputs)
                direct = backend.dtype_of(target.array) is spec.dtype and target.is_contiguous() and spec.strides is None
                direct = direct and ((row.pointwise and not debug) or not any(shares(target, value) for value in inputs))
                written.append(target.array if direct else backend.empty(spec.shape, spec.dtype, target.device, spec.strides))
            kernel = few if few is not None and arguments[0].size <= limit and written[0].size <= limit else quietly
            made = kernel(*arguments, *written)
            if made is not None:
                check_returned(s.op.qualified_name, backend, fn, made, written)
            for array, target in zip(written, targets, strict=True):
                if array is not target.array:
                    backend.copy(target.array, array)
        except Exception as error:
            retell(s.op, error, args)
            raise
        return targets[0] if count == 1 else targets

    return wrapped if debug or count != 1 else planned_write(s, backend, row, wrapped, into=s.op.schema.out_arguments[0].name)


def shares(target: Tensor, value: Any) -> bool:
    """Whether an argument may share memory with an output, judged by storage."""
    if isinstance(value, (list, tuple)):
        return any(shares(target, v) for v in value)
    return isinstance(value, Tensor) and value.is_alias_of(target)


def check_result_dtype(op: Operator, out: Out, target: Tensor) -> None:
    """Raise DTypeError when the result's category is above the output's, or the output must have another dtype."""
    if not (target.dtype in out.exact if out.exact else can_cast(out.dtype, target.dtype)):
        raise DTypeError(
            f"{op.qualified_name}: the result has dtype {out.dtype.name}, which cannot be written into {target.dtype.name}"
        )


def check_expanded(name: str, backend: TensorBackend, target: Tensor) -> None:
    """Raise AliasError if elements of an output overlap each other."""
    array = target.array
    strides = backend.strides(array)
    if 0 in strides and any(length > 1 and not stride for length, stride in zip(array.shape, strides, strict=True)):
        raise AliasError(
            f"{name}: cannot write into an expanded tensor: several of its elements are one memory location; clone() it first"
        )


def check_writable(op: Operator, backend: TensorBackend, target: Tensor, inputs: Sequence[Any]) -> None:
    """Raise AliasError if elements of an output overlap each other, or if it overlaps part of an input."""
    check_expanded(op.qualified_name, backend, target)
    if target.storage is None or not inputs:
        return
    array = target.array
    for value in inputs:
        for element in value if isinstance(value, (list, tuple)) else (value,):
            aliased = isinstance(element, Tensor) and element is not target and element.is_alias_of(target)
            if aliased and backend.partly_overlap(array, element.array):
                raise AliasError(
                    f"{op.qualified_name}: the output and an input share part of their memory; clone() one of them first"
                )


def resize_output(
    op: Operator, backend: TensorBackend, target: Tensor, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> None:
    """Resize an output to the result's shape, laid out with its strides. Warns if it had elements of another shape."""
    if target.shape == shape:
        return
    if target.numel():
        import warnings

        warnings.warn(
            f"{op.qualified_name}: an output with {target.numel()} elements of shape {list(target.shape)} was resized to "
            f"{list(shape)}; pass an empty tensor or one of the right shape",
            UserWarning,
            stacklevel=2,
        )
    target.resize_(shape)
    if strides is not None:
        target.as_strided_(shape, strides)


# ---- other array kernels


@replaceable
def plain(
    op: Operator, backend: TensorBackend, fn: Call, *, below: Call | None = None, limit: int = 0, quiet: bool = False
) -> Call:
    """The wrapper of a kernel without a shape function: it passes arrays for tensors and returns tensors for arrays.

    In-place and out variants write into the given arrays. The call returns the mutated tensors, whatever `fn` returns. Where it
    returns NotImplemented, `below` is called; at once, if the first argument is a tensor, or a size, of up to `limit` elements.
    `quiet` is that of its row.
    """
    schema = op.schema
    mutated = [i for i, a in enumerate(schema.arguments) if a.is_write]
    quietly = fn if quiet and below is not None else backend.in_kernel_context(fn)
    array_type = backend.array_type
    lead = schema.arguments[0].type.canonical == "Tensor" if schema.arguments else False

    def wrapped(ks: int, *args: Any) -> Any:
        if limit and below is not None:
            first = args[0]
            if (first.array.size if first.__class__ is Tensor else prod(first)) <= limit:
                return below(ks, *args)
        try:
            for i in mutated:
                if isinstance(args[i], Tensor):
                    check_writable(op, backend, args[i], ())
            given = [v.array if v.__class__ is Tensor else to_array(backend, v) for v in args]
            made = quietly(*given)
        except Exception as error:
            retell(op, error, args)
            raise
        if made is NotImplemented and below is not None:
            return below(ks, *args)
        if mutated:
            if made is not None:
                check_returned(op.qualified_name, backend, fn, made, [given[i] for i in mutated])
            targets = tuple(args[i] for i in mutated)
            return targets[0] if len(schema.returns) == 1 else targets if schema.returns else None
        if lead and made.__class__ is array_type:  # the usual call: 1 us of 3 less
            return wrap(made, args[0].device)
        return wrap_result(backend, made, args)

    return wrapped


@replaceable
def plain_row(op: Operator, backend: TensorBackend, row: Row, below: Call | None = None) -> Call:
    """`plain` of a row: the kernel may be run again after an error, because it has no effect but its result."""
    return plain(op, backend, row.fn, below=below, limit=row.limit, quiet=row.quiet)


def wrap_result(backend: TensorBackend, made: Any, args: Sequence[Any]) -> Any:
    """A kernel's result with arrays as tensors on the call's device; numbers stay numbers."""
    if isinstance(made, (tuple, list)):
        return type(made)(wrap_result(backend, m, args) for m in made)
    if hasattr(made, "shape"):
        array = made if backend.array_type is None or made.__class__ is backend.array_type else backend.as_array(made)
        return wrap(array, call_device(backend, args))
    return made


def call_device(backend: TensorBackend, args: Sequence[Any]) -> Device:
    """The device of the first tensor, else the first Device among the arguments, else the backend's current device."""
    for value in args:
        for element in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(element, Tensor):
                return element.device
    for value in args:
        if isinstance(value, Device):
            return backend.resolve_device(value)
    return backend.current_device()
