"""What holds for every array kernel, on whichever path its call takes. The setting `debug.kernels` checks it at each call.

All paths take their functions from a row, or from the kernel that a user registered: the general one, generated texts, what plans
keep, writes, and the compiled call path. So a rule is written once, as what stands around such a function, and applied at the
two places that make kernels of functions: of rows (`binding`), and of kernels of the user (`custom.bind_array_kernel`). What a
row's `program` says is left out meanwhile, because some paths run it without the function. Which path serves a call does not
change.

A row of an operator with a shape function is also held to its contract. Each call first writes into two outputs of its own, which
were filled with two different values: what differs then was not written.
"""

from __future__ import annotations

from _thread import _local  # threading itself would be another module to load
from cmath import isfinite
from functools import wraps
from typing import TYPE_CHECKING, Any

from turnout import config
from turnout.config.tuples import NamedTuple
from turnout.dtypes import COMPLEX, FLOAT
from turnout.operators.kernels import ARRAY, Kernel
from turnout_aten.declarations.tables import FINITE
from turnout_aten.errors import rows as errors
from turnout_aten.kernels.contract import NOT_ARRAYS, check_returned
from turnout_aten.kernels.rows import ALWAYS, KERNEL, SIMPLE
from turnout_aten.tensor import host_bytes
from turnout_aten.tensor.tensor import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.kernels.paths import Question
    from turnout_aten.kernels.structured import Structured

    Call = Callable[..., Any]


class Asking(_local):
    """What stands around functions in place of the check, while `explain` asks in this thread where they are called. An attribute
    is put back without an allocation, which a context variable is not."""

    question: Question | None = None


ASKED = Asking()


def around(
    op: Operator, backend: TensorBackend, s: Structured | None = None, allocates: str = "", *, programmed: bool = False
) -> Callable[[str, Call], Call] | None:
    """`around(word, function)`, which stands around the functions of an array kernel; None while nothing does.

    `s` is the operator's shape function, where it has one; `allocates` what the row says of the results that it makes, and
    `programmed` whether it has a program.
    """
    question = ASKED.question
    if question is not None:
        return question.around(s, programmed=programmed)
    if not config.get("debug.kernels"):
        return None

    def checking(word: str, fn: Call) -> Call:
        contract = None if s is None or not backend.has_values else _Contract(op, s, backend, allocates, fn, word)
        return _checked(op, backend, fn, contract)

    return checking


def keeps_program(op: Operator) -> bool:
    """Whether a program stays beside functions that have something around them. Random numbers are drawn by it, and `explain`
    does not ask for these."""
    return ASKED.question is not None and not op.schema.takes_tensors


def ruled_kernel(op: Operator, backend: TensorBackend, kernel: Kernel) -> Kernel:
    """The same for a kernel of the user on arrays."""
    stands = around(op, backend)
    if stands is None:
        return kernel
    return Kernel(stands(KERNEL, kernel.fn), ARRAY, library=kernel.library, label=kernel.name)


def _checked(op: Operator, backend: TensorBackend, fn: Call, contract: _Contract | None) -> Call:
    """A function that checks that it is given arrays of the backend, and gives finite numbers where the operator says so."""
    name, finite = op.qualified_name, FINITE in op.tags and backend.has_values

    @wraps(fn)
    def check(*args: Any, **keywords: Any) -> Any:
        given = list(_arrays((*args, *keywords.values())))
        for array in given:
            if backend.array_type is not None and array.__class__ is not backend.array_type:
                raise _fault(errors.foreign(name, backend.name, fn, array))
        outs = contract.outputs(args) if contract is not None else ()
        inputs = given[: len(given) - len(outs)]
        finite_before = finite and _are_finite(backend, [*inputs, *_floats((*args, *keywords.values()))])
        try:
            made = fn(*args, **keywords) if contract is None else contract.call(args, outs)
        except errors.RowError as error:
            raise _fault(error) from None
        if finite_before and made is not NotImplemented and not _are_finite(backend, outs or _arrays((made,))):
            raise _fault(errors.not_finite(name, backend.name, fn))
        return made

    return check


def _fault(error: errors.RowError) -> errors.KernelFault:
    """The error with the line of the program that made the call."""
    from turnout import user_frame

    line = user_frame()
    return errors.KernelFault(str(error) if line is None else f"{error}\n  called at  {line}")


def _arrays(values: Iterable[Any]) -> Iterator[Any]:
    """The arrays among values, also in lists."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _arrays(value)
        elif hasattr(value, "shape"):
            yield value


def _floats(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, (float, complex)) and not hasattr(value, "shape")]


def _are_finite(backend: TensorBackend, values: Iterable[Any]) -> bool:
    """Whether all floats in arrays and numbers are finite. Complex ones are not looked at."""
    for value in values:
        if not hasattr(value, "shape"):
            numbers: Sequence[Any] = (value,)
        else:
            dtype = backend.dtype_of(backend.as_array(value) if value.__class__ is not backend.array_type else value)
            if dtype.category == COMPLEX:
                return False
            numbers = host_bytes.decode(backend.to_host(value), dtype) if dtype.category == FLOAT else ()
        if not all(map(isfinite, numbers)):
            return False
    return True


class _Contract(NamedTuple):
    """What a function of a row must do for an operator with a shape function."""

    op: Operator
    s: Structured
    backend: TensorBackend
    allocates: str
    fn: Call
    word: str

    def outputs(self, args: Sequence[Any]) -> Sequence[Any]:
        """The outputs among the arguments of a call; none where the function makes its result."""
        return () if self.word == SIMPLE else args[self.s.given :]

    def call(self, args: Sequence[Any], outs: Sequence[Any]) -> Any:
        """What the function returns. Raises RowError for a result that is not what the shape function says, or is not written."""
        if not outs:
            return self._made(args, None)
        inputs, expected, seen = args[: len(args) - len(outs)], [self._facts(out) for out in outs], []
        if self.allocates and self.word == KERNEL and self.backend.array_type is not None:
            self._try_alone(inputs, expected[0])
        for value in (0, 1):
            aside = [self._like(out) for out in outs]
            for array in aside:
                self.backend.fill(array, value)
            self._write((*inputs, *aside), aside, expected)
            seen.append([bytes(self.backend.to_host(array)) for array in aside])
        if seen[0] != seen[1]:
            raise errors.not_written(self.op.qualified_name, self.backend.name, self.fn)
        return self._write(args, outs, expected)

    def _write(self, args: Sequence[Any], outs: Sequence[Any], expected: Sequence[Any]) -> Any:
        made = self.fn(*args)
        check_returned(self.op.qualified_name, self.backend, self.fn, made, outs)
        for out, before in zip(outs, expected, strict=True):
            self._expect(out, before)
        return made

    def _try_alone(self, inputs: Sequence[Any], expected: tuple[Any, str]) -> None:
        try:
            self._made(inputs, expected)
        except errors.RowError:
            raise
        except Exception:  # noqa: BLE001 - a call for which it raises is served with an output
            return

    def _made(self, inputs: Sequence[Any], expected: tuple[Any, str] | None) -> Any:
        """The result that the function makes. Where the row does not say ALWAYS, another dtype is converted later."""
        made = self.fn(*inputs)
        if made.__class__ in NOT_ARRAYS:
            raise errors.not_an_array(self.op.qualified_name, self.backend.name, self.fn, made)
        array = made if made.__class__ is self.backend.array_type else self.backend.as_array(made)
        found = self._facts(array)
        shape, dtype = expected or self._answer(inputs) or found
        keeps = self.allocates == ALWAYS and len({self.backend.dtype_of(value) for value in _arrays(inputs)}) == 1
        self._expect(array, (shape, dtype if keeps else found[1]))
        return made

    def _answer(self, inputs: Sequence[Any]) -> tuple[Any, str] | None:
        """What the shape function says, or None where it raises. Arguments that `simple` is not given have their defaults."""
        rest, args = iter(inputs), []
        for argument in self.s.inputs:
            left_out = self.word == SIMPLE and argument.has_default and argument.name not in self.s.tensors
            value = argument.default if left_out else next(rest)
            args.append(wrap(value, self.backend.current_device()) if hasattr(value, "shape") else value)
        try:
            out = self.s.answer(*args).outs[0]
        except Exception:  # noqa: BLE001 - it may read what the arrays do not say
            return None
        return tuple(out.shape), out.dtype.name

    def _like(self, out: Any) -> Any:
        backend = self.backend
        strides = None if backend.row_major is not None and backend.row_major(out) else backend.strides(out)
        return backend.empty(out.shape, backend.dtype_of(out), backend.current_device(), strides)

    def _expect(self, array: Any, wanted: tuple[Any, str]) -> None:
        found = self._facts(array)
        if found != wanted:
            raise errors.changed(self.op.qualified_name, self.backend.name, self.fn, wanted, found)

    def _facts(self, array: Any) -> tuple[Any, str]:
        return tuple(array.shape), self.backend.dtype_of(array).name
