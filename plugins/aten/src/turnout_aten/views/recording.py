"""The key ADInplaceOrView: it records views and counts writes, even when nothing differentiates.

One fallback is specialised per operator from its schema. Functional operators fall through, views get a `View` record, and
operators that mutate raise the version of each written tensor. So a custom operator needs only the annotations of its schema.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from turnout.config.lock import new_lock
from turnout.errors import AliasError
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel
from turnout.operators.stubs import compile_function, python_name
from turnout.plugins import replaceable
from turnout.state import BELOW_ADINPLACEORVIEW
from turnout_aten.declarations.tables import INPLACE_VIEW, RESIZES, SHARES_STORAGE
from turnout_aten.errors import tensors as texts
from turnout_aten.tensor.levels import CLOCK, GRAD
from turnout_aten.tensor.storage import View, view_record
from turnout_aten.tensor.tensor import Tensor
from turnout_aten.views.kernels import view_lines, viewing_lines, way_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator

AS_STRIDED = "aten::as_strided"
_PRUNE_AT = 32  # dead entries are removed from a base's list of views from this length on
_PRUNING = new_lock()


def bookkeeping(op: Operator) -> Any:
    """The specialised kernel of one operator at ADInplaceOrView."""
    schema = op.schema
    mutated = schema.mutated_places
    if RESIZES in op.tags:
        return Kernel(_counting_resizes(op), INTERNAL, label=f"count writes of {op.qualified_name}")
    if INPLACE_VIEW in op.tags and op.schema.kind == "inplace":
        return Kernel(_recording_turn(op), INTERNAL, label=f"record in-place view by {op.qualified_name}")
    if mutated:
        first = mutated == (0,) and str(schema.arguments[0].type) == "Tensor"
        counting = counting_writes_of_self(op) if first else counting_writes(op, mutated)
        return Kernel(counting, INTERNAL, label=f"count writes of {op.qualified_name}")
    if schema.is_view and SHARES_STORAGE not in op.tags:
        return Kernel(recording_view(op), INTERNAL, label=f"record view by {op.qualified_name}")
    return FALLTHROUGH


@replaceable
def counting_writes_of_self(op: Operator) -> Callable[..., Any]:
    """`counting_writes` for an operator that writes only its first argument, the usual case: saves 310 ns of 1,460."""
    return _counting_writes_of_one(op, 0)


def _counting_writes_of_one(op: Operator, at: int) -> Callable[..., Any]:
    """The same for the argument at a place."""
    names = [python_name(a.name) for a in op.schema.arguments]
    source = _COUNT_WRITE.format(given=", ".join(["ks", *names]), self=names[at])
    namespace = {
        "__name__": __name__, "BELOW_ADINPLACEORVIEW": BELOW_ADINPLACEORVIEW, "CACHE": op.cache, "RESOLVE": op.resolve,
        "CHECK_RECORDED": partial(_check_recorded, op),
    }  # fmt: skip
    made: Any = compile_function(source, "count_write", f"<writes of {op.qualified_name}>", namespace)
    made.records = op
    return made


# Written out for each operator: a tuple of arguments at each call would cost 80 ns of 1,500. Its own names begin with an
# underscore, because an argument may have any other.
_COUNT_WRITE = """\
def count_write({given}):
    ks &= BELOW_ADINPLACEORVIEW
    _call = CACHE.get(ks) or RESOLVE(ks)
    try:
        _view = {self}.view_of
    except AttributeError:  # not a tensor of this package: nothing is recorded for it
        return _call({given})
    if _view is not None:
        CHECK_RECORDED(_view)
    _result = _call({given})
    _storage = {self}.storage
    if _storage is None:
        {self}.ver += 1
    elif _storage.ver is None:
        _storage.count()
    else:
        _storage.ver += 1
    return _result
"""


def _counting_resizes(op: Operator) -> Callable[..., Any]:
    """Count a call as a write only if it changes the shape or strides."""
    cache = op.cache

    def count_resize(ks: int, self: Tensor, *args: Any) -> Any:
        before = self.shape, self.stride()
        ks &= BELOW_ADINPLACEORVIEW
        call = cache.get(ks) or op.resolve(ks)
        if self.view_of is not None:
            _check_recorded(op, self.view_of)
        result = call(ks, self, *args)
        if (self.shape, self.stride()) != before:
            self.bump_version()
        return result

    return count_resize


@replaceable
def counting_writes(op: Operator, mutated: tuple[int, ...]) -> Callable[..., Any]:
    if len(mutated) == 1 and str(op.schema.arguments[mutated[0]].type) == "Tensor":
        return _counting_writes_of_one(op, mutated[0])
    cache = op.cache

    def count_writes(ks: int, *args: Any) -> Any:
        ks &= BELOW_ADINPLACEORVIEW
        call = cache.get(ks) or op.resolve(ks)
        for i in mutated:
            if isinstance(args[i], Tensor) and args[i].view_of is not None:
                _check_recorded(op, args[i].view_of)
        result = call(ks, *args)
        for i in mutated:
            written = args[i]
            for tensor in written if isinstance(written, (list, tuple)) else (written,):
                if tensor.__class__ is Tensor and tensor.storage is None:  # without a frame for each tensor of a list
                    tensor.ver += 1
                elif isinstance(tensor, Tensor):
                    tensor.bump_version()
        return result

    return count_writes


def _check_recorded(op: Operator, view: View) -> None:
    """Raise AliasError for a write into an unrecorded view of a tracked base: the base's gradient would miss the write."""
    if view.no_grad and view.base.gmask & GRAD.get()[0]:
        raise AliasError(texts.no_grad_view_written(op.qualified_name))


@replaceable
def recording_view(op: Operator) -> Callable[..., Any]:
    at = next(i for i, a in enumerate(op.schema.arguments) if a.annotation is not None)
    cache = op.cache
    if not at:
        several = str(op.schema.returns[0].type) != "Tensor"
        count = len(op.schema.arguments) - 1
        text = _recording_several(count) if several else _recording(count, op.qualified_name == AS_STRIDED)
        return text(op, cache, op.resolve)

    def record_view(ks: int, *args: Any) -> Any:
        ks &= BELOW_ADINPLACEORVIEW
        call = cache.get(ks) or op.resolve(ks)
        return _recorded(call(ks, *args), args[at], op, args[:at] + args[at + 1 :])

    return record_view


@cache
def _recording(count: int, reaches_all: bool) -> Callable[..., Any]:
    """(operator, its cache, its `resolve`) -> the kernel of a view of the first argument, for an operator with `count` others.

    Where the kernel below shows what it remembers of its geometry, the view of a tensor is made here, in one frame: saves 500 ns
    of 2,100. Anything else is called, and its results get their records. A view of an operator that may reach all of the memory
    is recorded as one of the base.
    """
    given, everything = argument_names(count)
    lines = [
        "def recording(op, cache, resolve):",
        f"    def record_first({given}):",
        "        ks &= BELOW_ADINPLACEORVIEW",
        "        try:",
        "            call = cache[ks]",
        "        except KeyError:",
        "            call = None",  # not here: an error below would be shown with this one as its context
        "        if call is None:",
        "            call = resolve(ks)",
        f"        args = {everything}",
        "        found = None",
        f"        if self.__class__ is Tensor{' and self.view_of is None' if reaches_all else ''}:",
        "            try:",
        "                remembered = call.in_one_frame",
        "            except AttributeError:",
        "                remembered = None",
        "            if remembered is not None:",
        *("                " + line for line in viewing_lines()),
        "        if found is None:",
        f"            t = call({given})",
        "            if self.__class__ is not Tensor or t.__class__ is not Tensor or t is self:",
        "                return recorded(t, self, op, args)",
        "            storage = t.storage",
        f"            if storage is None or storage is not self.storage{' or self.view_of is not None' if reaches_all else ''}:",
        "                return recorded(t, self, op, args)",
        *("            " + line for line in record_lines()),
        "            t.view_of = view",
        "        else:",
        *("            " + line for line in record_lines()),
        *("            " + line for line in view_lines("view")),
        *("        " + line for line in LISTED),
        "        return t",
        "    record_first.records = op",
        "    return record_first",
    ]
    return compile_function("\n".join(lines) + "\n", "recording", f"<recorded view, {count} arguments>", recording_names())


@cache
def _recording_several(count: int) -> Callable[..., Any]:
    """`_recording` for an operator with a list of views: all of them in one frame."""
    given, everything = argument_names(count)
    lines = [
        "def recording(op, cache, resolve):",
        f"    def record_each({given}):",
        "        ks &= BELOW_ADINPLACEORVIEW",
        "        call = cache.get(ks) or resolve(ks)",
        f"        args = {everything}",
        "        remembered = None",
        "        if self.__class__ is Tensor:",
        "            try:",
        "                remembered = call.in_one_frame",
        "            except AttributeError:",
        "                pass",
        "        if remembered is None or self.device.backend.view_array is None:",
        f"            return recorded(call({given}), self, op, args)",
        "        device = self.device",
        "        backend = device.backend",
        "        whole = self.array",
        "        storage = self.storage",
        "        if storage is None: storage = self.shared_storage()",
        "        enabled = GRAD()[0]",
        "        made = []",
        "        try:",
        "            found = remembered[whole.shape, whole.strides, whole.itemsize, self.offset, args]",
        "            if found is not None:",
        "                for i, each in enumerate(found):",
        *("                    " + line for line in way_lines("whole", "each")),
        *("                    " + line for line in record_lines("((op, args, i),)", several=True)),
        *("                    " + line for line in view_lines("view")),
        *("                    " + line for line in LISTED),
        "                    made.append(t)",
        "        except Exception:",
        "            found = None",  # not here: an error below would be shown with this one as its context
        f"        return recorded(call({given}), self, op, args) if found is None else made",
        "    return record_each",
    ]
    return compile_function("\n".join(lines) + "\n", "recording", f"<recorded views, {count} arguments>", recording_names())


def argument_names(count: int) -> tuple[str, str]:
    """The source of a kernel's arguments, and that of a tuple of those behind the tensor. A call by `*args` costs 30 ns more."""
    names = [f"a{i}" for i in range(count)]
    return ", ".join(["ks", "self", *names]), f"({', '.join(names)}{',' if count == 1 else ''})"


def record_lines(links: str = "((op, args, None),)", several: bool = False) -> list[str]:
    """The source that makes `view`, the record of a view of `self` by `op` and `args` or other links, as `attach` makes it.

    With `several`, the view is one of several of a call, whose source has asked whether gradients are `enabled`.
    """
    enabled = "enabled" if several else "GRAD()[0]"
    first = {"base": "self", "chain": links, "multi": f"{several}", "no_grad": f"not {enabled}", "maker": "''"}
    later = {
        "base": "old.base", "chain": f"old.chain + {links}", "multi": "True" if several else "old.multi",
        "no_grad": f"old.no_grad or not {enabled}", "maker": "old.maker",
    }  # fmt: skip
    return [
        "old = self.view_of",
        "view = View()",
        "view.seen = storage.version() if storage.ver is None else storage.ver",
        "if old is None:",
        *(f"    view.{name} = {value}" for name, value in first.items()),
        "else:",
        *(f"    view.{name} = {value}" for name, value in later.items()),
    ]


# The source that adds `t` to the views of its memory.
LISTED = ["views = storage.views", f"if len(views) >= {_PRUNE_AT}: prune(views)", "views.append(ref(t))"]


def _recorded(result: Any, viewed: Any, op: Operator, rest: tuple[Any, ...]) -> Any:
    """The results of a view operator, with their records."""
    if not isinstance(viewed, Tensor):
        return result
    if isinstance(result, Tensor):
        attach(result, viewed, op, rest, None)
    else:
        storage, old = viewed.storage, viewed.view_of
        base, chain = (viewed, ()) if old is None else (old.base, old.chain)
        no_grad = not GRAD.get()[0] or (old is not None and old.no_grad)
        maker = "" if old is None else old.maker
        seen = 0 if storage is None else storage.version() if storage.ver is None else storage.ver
        for i, each in enumerate(result):
            if each.__class__ is not Tensor or each is viewed or storage is None or each.storage is not storage:
                attach(each, viewed, op, rest, i)
                continue
            view = each.view_of = View()  # without the frame of `attach`
            view.base, view.chain, view.seen, view.multi = base, (*chain, (op, rest, i)), seen, True
            view.no_grad, view.maker = no_grad, maker
            if len(storage.views) >= _PRUNE_AT:
                _prune_alone(storage.views)
            storage.views.append(ref(each))
    return result


def _recording_turn(op: Operator) -> Callable[..., Any]:
    """Record an in-place view. A view gets one more link; existing views of a base that changed refer to its earlier form."""
    cache = op.cache
    from turnout_aten.declarations.signatures import functional_of

    functional = functional_of(op)
    assert functional is not None
    as_strided = op.registry.find(AS_STRIDED)

    def record_turn(ks: int, self: Tensor, *args: Any) -> Any:
        shape, strides, offset = self.shape, self.stride(), self.storage_offset()
        ks &= BELOW_ADINPLACEORVIEW
        call = cache.get(ks) or op.resolve(ks)
        result = call(ks, self, *args)
        self.bump_version()
        old = self.view_of
        if old is not None:
            chain = (*old.chain, (functional, args, None))
            self.view_of = view_record(old.base, chain, old.seen, old.multi, old.no_grad, old.maker)
        else:
            before = (shape, strides, None if offset == self.storage_offset() else offset)
            for view in self.live_views():
                record = view.view_of
                assert record is not None
                record.chain = ((as_strided, before, None), *record.chain)
        return result

    return record_turn


def attach(made: Tensor, viewed: Tensor, op: Operator, rest: tuple[Any, ...], index: int | None) -> None:
    """Make `made` a view of `viewed`'s base, unless the kernel returned memory that is not shared with it."""
    storage = made.storage
    if made is viewed or storage is None or (storage is not viewed.storage and not made.is_alias_of(viewed)):
        return
    old = viewed.view_of
    link = (op, rest, index)
    multi = index is not None
    no_grad = not GRAD.get()[0]
    chain: tuple[Any, ...]
    if old is None:
        base, chain = viewed, (link,)
    elif op.qualified_name == AS_STRIDED and storage is old.base.storage and not old.multi:
        # The base is the whole memory: as_strided may reach elements outside `viewed`.
        base, chain = old.base, ((op, (*rest[:2], made.offset), index),)
        no_grad = no_grad or old.no_grad
    else:
        base, chain = old.base, (*old.chain, link)
        multi = multi or old.multi
        no_grad = no_grad or old.no_grad
    seen = storage.version() if storage.ver is None else storage.ver
    made.view_of = view_record(base, chain, seen, multi, no_grad, "" if old is None else old.maker)
    if len(storage.views) >= _PRUNE_AT:
        _prune_alone(storage.views)
    storage.views.append(ref(made))


def _prune_alone(views: list[ref[Tensor]]) -> None:
    with _PRUNING:
        _prune(views)


def _prune(views: list[ref[Tensor]]) -> None:
    """Remove dead views from the end; at a length that is a power of two all, so that each live one is rarely read again.

    Other threads may append meanwhile.
    """
    end = start = len(views)
    while start and views[start - 1]() is None:
        start -= 1
    del views[start:end]
    count = len(views)
    if count >= _PRUNE_AT and count & (count - 1) == 0:
        views[:count] = [r for r in views[:count] if r() is not None]


def recording_names() -> dict[str, Any]:
    """What the generated texts use."""
    return {
        "__name__": __name__, "BELOW_ADINPLACEORVIEW": BELOW_ADINPLACEORVIEW, "recorded": _recorded, "prune": _prune_alone,
        "View": View, "ref": ref, "GRAD": GRAD.get, "Tensor": Tensor, "CLOCK": CLOCK,
    }  # fmt: skip
