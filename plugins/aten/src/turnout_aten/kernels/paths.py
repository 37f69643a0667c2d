"""Which path serves a call of an array kernel, in words, for `explain`.

Nothing here decides. The wrapper is made once more, by those who make it for calls, around functions that do not compute but say
where they were called (`rules.ASKED`). It is called with the arguments, and stops there. The wrappers that lead to the function
are on the stack, each with its description; those of the compiled call path have no frames. What plans keep is found out before,
in a call whose function writes nothing, into tensors of its own.
"""

from __future__ import annotations

import linecache
import sys
import warnings
from contextlib import suppress
from itertools import compress
from operator import is_not
from types import FunctionType
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import ARRAY as ARRAY_FORM
from turnout.operators.stubs import python_name
from turnout_aten.kernels.binding import Over, entry_below
from turnout_aten.kernels.rows import FEW, KERNEL, SIMPLE, leaves_of, only_few
from turnout_aten.kernels.rules import ASKED
from turnout_aten.kernels.specs import CUSTOM, INTO, MAKES, PLANNED, SHAPELESS
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.kernels.specs import Wrapper
    from turnout_aten.kernels.structured import Structured

    Call = Callable[..., Any]

# The words of docs/how-dispatch-works.md, as are those of a row's functions; a test compares them.
ARRAY, KEPT, SILENT = "array kernel", "kept plan", "few elements without its function"
WORDS = {MAKES: ARRAY, SHAPELESS: ARRAY, CUSTOM: ARRAY, PLANNED: KEPT}  # a write is the functional call, and a copy
BELOW, RAISES = "the kernel below, which calls operators", "general; it raises"
# The modules of the general paths.
GENERAL = frozenset(f"turnout_aten.kernels.{name}" for name in ("functional", "inplace", "outputs", "custom"))


def left(fn: Call, args: Sequence[Any]) -> str:
    """Which rows leave a call to those below them, and why, in words."""
    told = ""
    for leaves in leaves_of(fn):
        reason = leaves.reason(args)
        if reason is None:
            break
        told += f"; {leaves.package} leaves it: {reason}"
    return told


class Reached(BaseException):
    """A function that was asked for its path was called. The text is the path."""


class Question:
    """What stands around the functions of a wrapper that is asked.

    frame     the frame of the one who asks
    learning  whether the call is the one before, by which plans are kept
    silent    what may serve few elements without calling a function, or ""
    results   the outputs that a function was given in that call
    """

    def __init__(self, frame: FrameType) -> None:
        self.frame: FrameType | None = frame
        self.learning, self.silent = True, ""
        self.results: Sequence[Any] = ()

    def around(self, s: Structured | None, *, programmed: bool) -> Callable[[str, Call], Call]:
        """What stands around the functions of a kernel: they say where they are called."""
        self.silent = f"; {SILENT}" if programmed else ""

        def around(word: str, fn: Call) -> Call:
            def said(*args: Any, **_: Any) -> Any:
                outs = args[s.given :] if s is not None else ()
                if not self.learning:
                    raise Reached(self.path(sys._getframe(1), word, args, outs) + left(fn, args))
                if not outs:
                    raise NotImplementedError  # go on where there is an output
                self.results = outs

            return said

        return around

    def below(self, call: Call, *, is_array_kernel: bool) -> Call:
        """What a row over another kernel leaves a call to."""
        if is_array_kernel:
            return call

        def said(*_: Any) -> Any:
            raise Reached(BELOW)

        return said

    def path(self, frame: FrameType | None, word: str, args: Sequence[Any], outs: Sequence[Any]) -> str:
        """The path to a function, from the frame that called it. Only a plan gives outputs that are no arguments."""
        role = "" if word == KERNEL else f", {word}"
        while frame is not None and frame is not self.frame:
            spec, code = frame.f_globals.get("DESCRIBED", (None, None))
            if frame.f_code is code and spec.form in WORDS:
                return f"text: {WORDS[spec.form]}{role}{self.silent}"
            if frame.f_globals.get("__name__") in GENERAL:
                return "general"
            frame = frame.f_back
        planned = any(out is not args[0] for out in outs)
        return f"compiled: {KEPT if planned else ARRAY}{role}{self.silent}"


def path_of(op: Operator, kernel: Kernel, backend: TensorBackend, ks: int, args: Sequence[Any]) -> str:
    """The path of a call: "compiled", "text" or "general", and what serves it there. "" if it cannot be told without the call."""
    written = op.schema.mutated_places
    if kernel.binder is None or any(type(args[i]) is not Tensor for i in written):
        return ""
    sources, question = linecache.cache.copy(), Question(sys._getframe())
    before, ASKED.question = ASKED.question, question
    try:
        call = kernel.binder(op, kernel, backend.name)
        if type(call) is not FunctionType and not op.schema.takes_tensors:  # numbers of a generator, which a call would draw
            return f"compiled: {ARRAY}{question.silent}"
        path = _asked(question, call, backend, ks, list(args), written)
        return path + _computed_by(op, kernel, backend.name, path)
    finally:
        ASKED.question = before
        question.frame = None  # it holds the question: a cycle
        _put_back(sources)


def _asked(question: Question, call: Call, backend: TensorBackend, ks: int, args: list[Any], written: tuple[int, ...]) -> str:
    aside = {id(args[i]): _like(backend, args[i]) for i in written}
    with suppress(Exception, Reached), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(ks, *[aside.get(id(value), value) for value in args])
    if any(aside[id(args[i])].array.shape != args[i].array.shape for i in written):
        return "general; the output is resized"
    question.learning = False
    try:
        call(ks, *args)
    except Reached as reached:
        path = str(reached)
        why = "" if ARRAY in path else _why_not(call, args)
        return path + (why or ("" if path == "general" else _again(question, backend, [args[i] for i in written])))
    except Exception as error:  # noqa: BLE001 - the call would raise it
        return f"{RAISES} {type(error).__name__}"
    return "without its function"


def _computed_by(op: Operator, kernel: Kernel, key: str, path: str) -> str:
    """Whose row computes, where rows of several packages serve a call as one."""
    rows = [kernel]
    while isinstance(rows[-1].binder, Over) and (entry := entry_below(op, rows[-1], key)) and entry.kernel.form == ARRAY_FORM:
        rows.append(entry.kernel)
    if len(rows) == 1 or RAISES in path or path == BELOW:
        return ""
    rows = [each for each in rows if each.fn is not only_few and f"; {each.origin} leaves it" not in path]
    if path.partition(";")[0].endswith((f", {SIMPLE}", f", {FEW}")):  # only the last one is asked for few elements
        rows = rows[-1:]
    names = [each.origin.partition(" ")[0] for each in rows]
    return f"; computed by {', which may leave the call to '.join(names)}" if names else ""


def _again(question: Question, backend: TensorBackend, targets: list[Tensor]) -> str:
    """Whether a write computes again, on the general path: what the functional call gave does not fit."""
    for made, target in zip(question.results, targets, strict=False):
        if backend.dtype_of(made) is not target.dtype:
            return "; then general: the result has another dtype"
    return ""


def _why_not(call: Call | None, args: list[Any]) -> str:
    """Why a wrapper leaves a call to what stands below it: the first of its conditions that does not hold."""
    variables = getattr(call, "__globals__", {})
    spec: Wrapper | None = variables.get("DESCRIBED", (None,))[0]
    if spec is None:
        return ""
    names = [python_name(a.name) for a in spec.kernel.op.schema.arguments]
    given = dict(zip(names, args, strict=False))
    given |= {f"{name}_a": value.array for name, value in given.items() if isinstance(value, Tensor)}
    if spec.form == INTO:
        given["_own"] = next(v.array for a, v in zip(spec.kernel.op.schema.arguments, args, strict=True) if a.is_write)
    for source, otherwise in spec.conditions:
        with suppress(AttributeError, NameError):  # a number in place of a tensor, or an array of another backend
            if not eval(source, variables, given):
                return f"; {otherwise}"
    return _why_not(spec.below, args)  # the functional variant has the same arguments before an output


def _like(backend: TensorBackend, tensor: Tensor) -> Tensor:
    """A tensor of the same shape, strides and dtype with memory of its own."""
    array = tensor.array
    strides = backend.strides(array)
    dense = None if 0 in strides or (backend.row_major is not None and backend.row_major(array)) else strides
    return wrap(backend.empty(array.shape, backend.dtype_of(array), tensor.device, dense), tensor.device)


def _put_back(sources: dict[str, Any]) -> None:
    """Debuggers show the texts that calls run. Other threads compile theirs meanwhile."""
    now = linecache.cache.copy()
    for file in compress(now, map(is_not, now.values(), map(sources.get, now))):  # few of the thousands that a process has
        if file[:1] != "<":
            continue
        if file in sources:
            linecache.cache[file] = sources[file]
        else:
            linecache.cache.pop(file, None)
