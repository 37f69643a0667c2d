"""`opcheck`, and the table of its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import turnout
from turnout.errors import ArgumentError, CallError
from turnout.errors.library import BAD_OP
from turnout.library import CustomOpDef
from turnout.operators import Operator, Packet
from turnout.operators.tracebacks import shortening
from turnout.registry import REGISTRY
from turnout_opcheck.checks import (
    autocast,
    backends,
    batching,
    composites,
    fakes,
    gradients,
    inputs,
    registration,
    repeats,
    replays,
    schema,
    symbolic,
    threads,
)  # fmt: skip
from turnout_opcheck.derived import tensors
from turnout_opcheck.observing import modes, put_back, run
from turnout_opcheck.report import Failure, NotTriedError, OpCheckError, Problem, Report
from turnout_opcheck.shrinking import shown, smallest
from turnout_opcheck.subject import Subject, fresh

Check = Callable[[Subject], Iterator[Problem]]

# The names of PyTorch's checks, where it has one, and the others after them.
CHECKS: dict[str, Check] = {
    "test_schema": schema.check,
    "test_autograd_registration": registration.check,
    "test_faketensor": fakes.check,
    "test_aot_dispatch_static": replays.check,
    "test_aot_dispatch_dynamic": symbolic.check,
    "test_inputs": inputs.check,
    "test_determinism": repeats.check_determinism,
    "test_defaults": repeats.check_defaults,
    "test_gradients": gradients.check,
    "test_batching": batching.check,
    "test_autocast": autocast.check,
    "test_backends": backends.check,
    "test_composite_compliance": composites.check,
    "test_threads": threads.check,
}
DEFAULT = tuple(CHECKS)


@shortening
def opcheck(
    op: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None, *, test_utils: str | Iterable[str] = DEFAULT,
    raise_exception: bool = True,
) -> Report:  # fmt: skip
    """Check that an operator does what its schema, its rules and its kernels say, for the arguments of one call.

    Other arguments are derived from the given ones: other layouts, sizes, dtypes and values, and gradients required of every
    choice of inputs. The given tensors are not changed.

    Returns the report, a dict from each check to "SUCCESS" or to what failed, with the smallest arguments that show it and what
    to do; "not tried" where a plugin is missing. Printing it shows what was tried, and which check had nothing to try. Raises
    OpCheckError if a check failed, and what the operator raises when it does not accept the given arguments.

    Arguments:
        op: an operator such as `turnout.ops.mylib.f`, what `custom_op` returned, or a name "mylib::f"
        args: its positional arguments
        kwargs: its keyword arguments
        test_utils: the checks to make, one name or several; by default all
        raise_exception: whether a failure raises; else it is in the report

    Example:
        >>> turnout.library.opcheck("aten::sin", (turnout.tensor([1.0, 2.0]),))["test_schema"]
        'SUCCESS'
    """
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    for name in names:
        if name not in CHECKS:
            raise ArgumentError(f"opcheck: there is no check {name!r}; the checks are {', '.join(CHECKS)}")
    operator = _operator(op, args, kwargs or {})
    subject = Subject(operator, operator.bind(tuple(args), dict(kwargs or {})))
    for name, tensor in tensors(operator, subject.args):
        if not tensor.device.backend.has_values:
            raise CallError(f"opcheck: {name} is a {tensor.device.type} tensor without data; give arguments with data")
    report = Report(operator.qualified_name)
    state, generator = modes(), _random_state()
    try:
        with turnout.no_grad():
            run(operator, fresh(subject.args))
        put_back(state)
        report.tried = [v.name for v in subject.accepted()]
        report.refused = [v.name for v in subject.variants() if v.error is not None]
        put_back(state)
        for name in names:
            _make(name, subject, report)
            put_back(state)
    finally:
        put_back(state)
        _restore_random(generator)
    if report.found and raise_exception:
        raise OpCheckError(report)
    return report


def _make(name: str, subject: Subject, report: Report) -> None:
    """Make one check, and shrink the arguments of what it finds."""
    check = CHECKS[name]
    try:
        problem = next(iter(check(subject)), None)
    except NotTriedError as reason:
        report.not_tried(name, reason)
        return
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything
        text = f"the operator raised {type(error).__name__} for arguments that it accepted before: {error}"
        report.failed(Failure(name, Problem("unexpected", text, "give the same answer to the same call"), shown(subject)))
        return
    if problem is None:
        report.passed(name)
        return
    subject, problem = smallest(check, subject, problem)
    report.failed(Failure(name, problem, shown(subject)))


def _operator(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Operator:
    """The operator that a call means."""
    if isinstance(op, CustomOpDef):
        return op.operator
    if isinstance(op, str):
        return REGISTRY.find(op)
    if isinstance(op, Packet):
        return op.choose(*args, **kwargs)
    if isinstance(op, Operator):
        return op
    raise CallError(BAD_OP.format("opcheck", op))


def _random_state() -> tuple[Any, Any]:
    from turnout_aten.tensor.random import default_generator

    generator = default_generator()
    return generator, generator.get_state()


def _restore_random(state: tuple[Any, Any]) -> None:
    state[0].set_state(state[1])
