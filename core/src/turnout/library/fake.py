"""Fake kernels, which compute shapes for tensors without data, and `get_ctx`, from which they get sizes that depend on data.

A fake kernel serves Fake and the keys of backends without data. Only fake tensors can have sizes that depend on data: the
service of Fake makes them in `new_dynamic_size(op, min, max)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from turnout.errors import NoKernelError, RegistrationError
from turnout.errors import library as texts
from turnout.errors.library import LibraryError
from turnout.guards import during
from turnout.operators import Operator
from turnout.operators.kernels import INTERNAL, UNBOXED, Kernel, bind
from turnout.registry import REGISTRY

_RUNNING: ContextVar[FakeContext | None] = ContextVar("turnout.library.fake", default=None)


def fake_keys() -> tuple[str, ...]:
    """The keys that fake kernels serve."""
    return (*REGISTRY.keys.dataless_backends, "Fake")


@dataclass(frozen=True, slots=True)
class FakeContext:
    """The context of a running fake kernel."""

    op: Operator
    key: str

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size that depends on data and lies between `min` and `max`.

        Raises NoKernelError for tensors of a backend without data, LibraryError for bounds that no size can have.
        """
        if type(min) is not int or not (max is None or type(max) is int) or min < 0 or (max is not None and max < min):
            raise LibraryError(texts.BAD_BOUNDS.format(min, max))
        service = REGISTRY.services.get("Fake")
        if self.key != "Fake" or service is None:
            raise NoKernelError(texts.NO_DYNAMIC_SIZES.format(op=self.op.qualified_name, key=self.key.lower()))
        return service.new_dynamic_size(self.op, min, max)


def get_ctx() -> FakeContext:
    """The context of the running fake kernel. Raises RegistrationError outside of one.

    Example:
        >>> fake = lambda x: x.new_empty(turnout.library.get_ctx().new_dynamic_size())
        >>> fake = turnout.library.register_fake("docs::nonzero", fake)
    """
    running = _RUNNING.get()
    if running is None:
        # differs from torch: `library.get_ctx` raises outside of a fake kernel; PyTorch returns None, whose use then fails.
        raise RegistrationError(texts.NO_CONTEXT)
    return running


def in_context(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    """The binder of fake kernels, which run with a context."""
    call = bind(Kernel(kernel.fn, UNBOXED), op, key)
    service = REGISTRY.services.get("Fake")
    if key == "Fake" and service is not None:
        call = service.in_mode(op, call, checks_result=True)
    context = FakeContext(op, key)

    def call_fake(ks: int, *args: Any) -> Any:
        return during(_RUNNING, context, call, ks, *args)

    return call_fake


def missing(op: Operator) -> Kernel:
    """The kernel where no fake one is registered: it returns what the schema says is written, or nothing, and else raises."""
    schema = op.schema
    written = {a.annotation: i for i, a in enumerate(schema.arguments) if a.annotation and a.is_write and a.annotation.before}
    returned = [-1 if r.annotation is None else written.get(r.annotation, -1) for r in schema.returns]

    def no_fake_kernel(ks: int, *args: Any) -> Any:
        if -1 in returned:
            raise NoKernelError(texts.no_fake(op))
        values = tuple([args[i] for i in returned])
        return values[0] if len(values) == 1 else values or None

    return Kernel(no_fake_kernel, INTERNAL, label="no fake kernel" if -1 in returned else "nothing to compute")
