"""Kernels: registered functions, their origin, and how they are called.

The one idea: a kernel of any form is *bound* to an operator as a callable of the internal convention, `call(ks, *args)` with
all arguments by position in schema order. Stubs, redispatch and fallbacks know only that convention.
"""

from __future__ import annotations

from functools import wraps

from turnout.config.installed import replaceable
from turnout.state import StateChange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from turnout.operators import Operator
    from turnout.registry import Registrations

    Call = Callable[..., Any]

UNBOXED = "unboxed"  # the schema's arguments, keyword-only ones by keyword
BOXED = "boxed"  # (op, ks, args): args is the full tuple in schema order
INTERNAL = "internal"  # (ks, *args)
ARRAY = "array"  # positional schema arguments with tensors replaced by the backend's arrays
FORMS = (UNBOXED, BOXED, INTERNAL, ARRAY)


class Kernel:
    """One registered function.

    with_keyset     the key set (an int) is passed first
    tracked_only    it is skipped unless a tensor carries the marker bit
    allow_override  it may override another library's kernel at the same operator and key
    yields          it comes before the kernels of the backend's own library, and after those of all others
    may_decline     it may leave a call, by its arguments, to what is below it
    composes        of a kernel with `tracked_only`: for which arguments it runs the operator's composite kernel. With others, a
                    call goes on as if no tensor was tracked
    calls_operators whether it dispatches again; array kernels do not
    binder          makes the internal callable, (op, kernel, key) -> call
    specialize      of a fallback: makes each operator's own kernel, (op, runtime key) -> function, Kernel, FALLTHROUGH or None
    """

    __slots__ = (
        "allow_override", "binder", "calls_operators", "composes", "fn", "form", "label", "library", "may_decline", "specialize",
        "tracked_only", "with_keyset", "yields",
    )  # fmt: skip

    def __init__(
        self, fn: Any, form: str = UNBOXED, *, library: Registrations | None = None, with_keyset: bool = False,
        tracked_only: bool = False, allow_override: bool = False, calls_operators: bool = True,
        binder: Callable[[Operator, Kernel, str], Call] | None = None,
        specialize: Callable[[Operator, str], Any] | None = None, label: str = "", yields: bool = False,
        may_decline: bool = False, composes: Callable[[tuple[Any, ...]], bool] | None = None,
    ) -> None:  # fmt: skip
        self.fn = fn
        self.form = form
        self.library = library
        self.with_keyset = with_keyset
        self.tracked_only = tracked_only
        self.allow_override = allow_override
        self.yields = yields
        self.may_decline = may_decline
        self.composes = composes
        self.calls_operators = calls_operators and form != ARRAY
        self.binder = binder
        self.specialize = specialize
        self.label = label

    @property
    def is_fallthrough(self) -> bool:
        return self.fn is FALLTHROUGH

    @property
    def name(self) -> str:
        """The function's own name, for people."""
        if self.is_fallthrough:
            return "fallthrough"
        name = self.label or getattr(self.fn, "__qualname__", None) or getattr(self.fn, "__name__", repr(self.fn))
        return str(name).rpartition("<locals>.")[2]

    @property
    def source(self) -> str:
        """`file:line` of the function, else its module; a generated function may describe itself as `kernel_source`."""
        fn = self.fn
        described = getattr(fn, "kernel_source", None)
        if isinstance(described, str):
            return described
        while hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        fn = getattr(fn, "func", fn)
        code = getattr(fn, "__code__", None)
        if code is not None:
            return f"{code.co_filename}:{code.co_firstlineno}"
        return str(getattr(fn, "__module__", "") or type(fn).__module__)

    @property
    def origin(self) -> str:
        """`distribution version` of the group that registered it, else the group's name."""
        return self.library.origin if self.library is not None else "unknown"

    def __repr__(self) -> str:
        return f"<Kernel {self.name} from {self.origin}>"


class KernelTable:
    """Kernels of one group at one key, of which each is made when its operator is first named: of a thousand, programs use a few.

    rows  operator -> what its kernel is made of, by `make(operator, row)`
    made  operator -> its kernel, of the operators that were named
    """

    __slots__ = ("key", "library", "made", "make", "rows", "yields")

    def __init__(
        self, library: Registrations, key: str, rows: Mapping[str, Any], make: Callable[[str, Any], Kernel], yields: bool
    ) -> None:
        self.library = library
        self.key = key
        self.rows = rows
        self.make = make
        self.yields = yields
        self.made: dict[str, Kernel] = {}

    def kernel(self, name: str) -> Kernel:
        """The kernel of an operator."""
        if name not in self.made:
            self.made[name] = self.make(name, self.rows[name])
        return self.made[name]

    def add_to(self, op: Operator) -> None:
        """Give an operator its kernel."""
        op.kernels.setdefault(self.key, []).append(self.kernel(op.qualified_name))


class LazyFunction:
    """A function named "module:name", imported when it is first bound."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def __wrapped__(self) -> Call:
        from importlib import import_module

        module, _, name = self.path.partition(":")
        function: Call = getattr(import_module(module), name)
        return function

    @property
    def __name__(self) -> str:
        return self.path.partition(":")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)


class _Fallthrough:
    """The function of a kernel that passes the call on to the next key."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "FALLTHROUGH"


FALLTHROUGH = _Fallthrough()


def bind(kernel: Kernel, op: Operator, key: str, *, below: int | None = None) -> Call:
    """The kernel as a callable of the internal convention for one operator and key.

    `below` is given if the call has passed functionalities with `guards_below` (Autograd, ADInplaceOrView): the mask without
    their bits. A kernel that calls operators with the same tensors must run without them, or the call is recorded twice.
    """
    fn = kernel.fn.__wrapped__ if kernel.binder is None and isinstance(kernel.fn, LazyFunction) else kernel.fn
    if kernel.binder is not None:
        call = kernel.binder(op, kernel, key)
    elif kernel.form == INTERNAL:
        call = fn
    else:
        fn = _giving_list(fn) if [r.type.is_tensor_list for r in op.schema.returns] == [True] else fn
        call = _bind_boxed(fn, op) if kernel.form == BOXED else _bind_unboxed(fn, kernel.with_keyset, op)
    return call if below is None or not kernel.calls_operators else guarded(call, below)


def _giving_list(fn: Call) -> Call:
    """A kernel of an operator whose result is a list of tensors: it may return a tuple."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        return list(result) if result.__class__ is tuple else result

    return call


def _bind_boxed(fn: Call, op: Operator) -> Call:
    def call_boxed(ks: int, *args: Any) -> Any:
        return fn(op, ks, args)

    return call_boxed


def _bind_unboxed(fn: Call, with_keyset: bool, op: Operator) -> Call:
    names, split = [a.name for a in op.schema.kwarg_only], len(op.schema.positional)
    if not names:
        if with_keyset:
            return fn

        def call_positional(ks: int, *args: Any) -> Any:
            return fn(*args)

        return call_positional

    def call_with_keywords(ks: int, *args: Any) -> Any:
        keywords = dict(zip(names, args[split:], strict=True))
        return fn(*((ks, *args[:split]) if with_keyset else args[:split]), **keywords)

    return call_with_keywords


@replaceable
def guarded(call: Call, mask: int) -> Call:
    call, around = getattr(call, "shortcut", (call, lambda made: made))  # what calls no operators may come before the guard

    return around(StateChange(drops=~mask, excludes=~mask).around(call))  # type: ignore[no-any-return]
