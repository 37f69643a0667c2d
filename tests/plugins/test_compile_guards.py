"""What a compiled function can reach on hidden paths: after each is changed, a call gives what the function gives."""

from __future__ import annotations

import builtins
import cmath
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from decimal import Decimal, getcontext
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy import random as drawn

import turnout
from turnout import compiler
from turnout_tracer.compiling.capture import ABOUT_SHAPES
from turnout_tracer.compiling.dynamic import ABOUT_MEMORY
from turnout_tracer.compiling.guards import shared
from turnout_tracer.compiling.reach import FIELDS
from turnout_tracer.compiling.signatures import HISTORY

BOX = [2.0]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Programs may run eagerly here, and say so; the box is as it was."""
    BOX[:] = [2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", compiler.CompileWarning)
        yield


def vector() -> turnout.Tensor:
    return turnout.tensor([1.0, 2.0, 3.0])


def read() -> float:
    return BOX[0]


class Plain:
    """An object with one attribute, and with what Python calls by itself."""

    __match_args__ = ("scale",)

    def __init__(self, scale: float = 2.0) -> None:
        self.scale = scale

    def get(self) -> float:
        return self.scale


class Made:
    def __init__(self) -> None:
        self.scale = read()


class Inherits(Made):
    pass


class Closes:
    scale = 1.0

    def close(self) -> None:
        self.scale = read()


def closed(close: Any = contextlib.closing) -> float:
    with close(Closes()) as made:
        pass
    return float(made.scale)


class Constructed:
    scale: float

    def __new__(cls) -> Any:
        made = object.__new__(cls)
        made.scale = read()
        return made


class Private:
    __slots__ = ("__scale",)

    def __init__(self) -> None:
        self.put(2.0)

    def put(self, scale: float) -> None:
        self.__scale = scale

    def get(self) -> float:
        return self.__scale


class Whole(int):
    scale = 2.0

    def get(self) -> float:
        return read()


class Text(str):
    __slots__ = ()

    def get(self) -> float:
        return read()


class Named(collections.namedtuple("Named", "x")):
    def get(self) -> float:
        return read()


class Colour(enum.Enum):
    RED = 1
    LIST = [2.0]

    def get(self) -> float:
        return read()


class Meta(type):
    @property
    def scale(cls) -> float:
        return read()


class OfMeta(metaclass=Meta):
    pass


class Layer(turnout.nn.Linear):  # type: ignore[misc]
    def reset_parameters(self) -> None:  # the library calls it
        with turnout.no_grad():
            self.weight.fill_(read())


@dataclasses.dataclass
class Settings:
    rate: float = 2.0
    other: float = 1.0


class Shown:
    def __repr__(self) -> str:
        return f"{read()}"


def attribute(holder: Any, name: str = "scale") -> Callable[[], None]:
    """A change of an attribute."""
    return lambda: setattr(holder, name, 3.0)


def box() -> None:
    BOX[0] = 3.0


def of_call(read_it: Callable[[], Any]) -> Callable[[Any], Any]:
    """A function of a tensor that multiplies it by what is read."""
    return lambda x: x * read_it()


def in_module(text: str, **names: Any) -> tuple[Any, dict[str, Any]]:
    """`f` of a program with these globals, and the globals."""
    scope = {"turnout": turnout, "__name__": "user.program", "__package__": "user", **names}
    exec("def f(x):\n" + "".join(f"    {line}\n" for line in text.splitlines()), scope)
    return scope["f"], scope


Change = tuple[Callable[[Any], Any], Callable[[], None]]


def of_function_attribute() -> Change:
    def function(x: Any) -> Any:
        return x * function.scale  # type: ignore[attr-defined]

    function.scale = 2.0  # type: ignore[attr-defined]
    return function, attribute(function)


def of_partial_attribute() -> Change:
    held: Any = functools.partial(read)
    held.scale = 2.0
    return of_call(lambda: held.scale), attribute(held)


def of_globals() -> Change:
    function, scope = in_module("return x * globals()['SCALE']", SCALE=2.0)
    return function, lambda: scope.update(SCALE=3.0)


def of_globals_of_a_function() -> Change:
    function, scope = in_module("return x * f.__globals__['SCALE']", SCALE=2.0)
    return function, lambda: scope.update(SCALE=3.0)


def of_attrgetter() -> Change:
    held, get = Plain(), operator.attrgetter("scale")
    return of_call(lambda: get(held)), attribute(held)


def of_dotted_attrgetter() -> Change:
    inner = Plain()
    held, get = types.SimpleNamespace(inner=inner), operator.attrgetter("inner.scale")
    return of_call(lambda: get(held)), attribute(inner)


def of_attrgetter_in_the_code() -> Change:
    held = Plain(Plain())  # type: ignore[arg-type]
    return of_call(lambda: operator.attrgetter("scale.scale")(held)), attribute(held.scale)


def of_methodcaller() -> Change:
    held, get = Plain(), operator.methodcaller("get")
    return of_call(lambda: get(held)), attribute(held)


def of_match() -> Change:
    held: Any = Plain()

    def function(x: Any) -> Any:
        match held:
            case Plain(scale=2.0):
                return x * 2
            case _:
                return x * 3

    return function, attribute(held)


def of_match_by_position() -> Change:
    held: Any = Plain()

    def function(x: Any) -> Any:
        match held:
            case Plain(2.0):
                return x * 2
            case _:
                return x * 3

    return function, attribute(held)


def of_astuple() -> Change:
    held = Settings()
    return of_call(lambda: sum(dataclasses.astuple(held))), attribute(held, "rate")


def of_deepcopy() -> Change:
    held = Plain()
    return of_call(lambda: max(vars(copy.deepcopy(held)).values())), attribute(held)


def of_whole_attribute() -> Change:
    held = Whole(2)
    return of_call(lambda: held.scale), attribute(held)


def of_private_slot() -> Change:
    held = Private()
    return of_call(held.get), lambda: held.put(3.0)


def of_cached_call() -> Change:
    get = functools.lru_cache(read)

    def change() -> None:
        box()
        get.cache_clear()

    return of_call(get), change


def of_length_of_a_list() -> Change:
    held = [1]
    return of_call(held.__len__), lambda: held.append(1)


def of_weak_reference() -> Change:
    held = Plain()
    kept, get = [held], weakref.ref(held)
    return lambda x: x * get().scale * len(kept), attribute(held)  # type: ignore[union-attr]


def of_weak_method() -> Change:
    held = Plain()
    kept, get = [held], weakref.WeakMethod(held.get)
    return lambda x: x * get()() * len(kept), attribute(held)  # type: ignore[misc]


def of_decimal_context() -> Change:
    def change() -> None:
        getcontext().prec = 3

    return of_call(lambda: float(Decimal(1) / Decimal(3))), change


def of_getattr_of_a_module() -> Change:
    module: Any = types.ModuleType("user")
    module.__getattr__ = lambda name: read()
    return of_call(lambda: module.SCALE), box


def of_computed_name_in_a_module() -> Change:
    module: Any = types.ModuleType("user")
    module.SCALE, start = 2.0, "SC"
    return of_call(lambda: getattr(module, start + "ALE")), attribute(module, "SCALE")


def of_computed_method() -> Change:
    start = "ge"
    held = Made()
    held.get = read  # type: ignore[attr-defined]
    return of_call(lambda: getattr(held, start + "t")()), box


def of_imported_package() -> Change:
    function, _ = in_module("import user.inner\nreturn x * user.SCALE")
    return function, attribute(sys.modules["user"], "SCALE")


def of_relative_import() -> Change:
    function, _ = in_module("from .inner import SCALE\nreturn x * SCALE")
    return function, attribute(sys.modules["user.inner"], "SCALE")


def of_relative_import_of_a_module() -> Change:
    function, _ = in_module("from . import inner\nreturn x * inner.SCALE")
    return function, attribute(sys.modules["user.inner"], "SCALE")


def of_attribute_of_a_compiled_function() -> Change:
    inner: Any = turnout.compile(lambda x: x, engine="eager")
    inner.scale = 2.0
    return of_call(lambda: inner.scale), attribute(inner, "scale")


def of_new_attribute_of_a_compiled_function() -> Change:
    inner: Any = turnout.compile(lambda x: x, engine="eager")
    inner.rate = 2.0
    return of_call(lambda: inner.rate if hasattr(inner, "rate") else 1.0), lambda: delattr(inner, "rate")


CHANGES: list[Callable[[], Change]] = [
    of_function_attribute, of_partial_attribute, of_globals, of_globals_of_a_function, of_attrgetter, of_dotted_attrgetter,
    of_attrgetter_in_the_code, of_methodcaller, of_match, of_match_by_position, of_astuple, of_deepcopy, of_whole_attribute,
    of_private_slot, of_cached_call, of_length_of_a_list, of_weak_reference, of_weak_method, of_decimal_context,
    of_getattr_of_a_module, of_computed_name_in_a_module, of_computed_method, of_imported_package, of_relative_import,
    of_relative_import_of_a_module,
    lambda: (of_call(lambda: Made().scale), box),
    lambda: (of_call(lambda: Inherits().scale), box),
    lambda: (of_call(lambda: closed()), box),
    of_attribute_of_a_compiled_function, of_new_attribute_of_a_compiled_function,
    lambda: (of_call(lambda: Constructed().scale), box),
    lambda: ((lambda made: of_call(lambda: type(made)().scale))(Made()), box),
    lambda: (of_call(Whole(2).get), box),
    lambda: (of_call(Text("a").get), box),
    lambda: (of_call(Named(2).get), box),
    lambda: (of_call(Colour.RED.get), box),
    lambda: (of_call(lambda: Colour.RED.get()), box),
    lambda: (of_call(lambda: OfMeta.scale), box),
    lambda: (of_call(lambda: Layer(3, 1).weight.detach()), box),
    lambda: (of_call(lambda: float(f"{Shown()}")), box),
]  # fmt: skip


@pytest.mark.parametrize("make", CHANGES)
def test_what_is_read_on_a_hidden_path_is_in_the_signature(make: Callable[[], Change], monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = types.ModuleType("user")
    inner: Any = types.ModuleType("user.inner")
    package.inner, package.SCALE, inner.SCALE, package.__path__ = inner, 2.0, 2.0, []
    monkeypatch.setitem(sys.modules, "user", package)
    monkeypatch.setitem(sys.modules, "user.inner", inner)
    function, change = make()
    precision = getcontext().prec
    compiled = turnout.compile(function)
    before = [compiled(vector()).tolist() for _ in range(2)]
    try:
        change()
        found, expected = compiled(vector()).tolist(), function(vector()).tolist()
    finally:
        getcontext().prec = precision
    assert found == expected
    assert before[0] == before[1] != expected


def counts(x: Any) -> Any:
    counts.calls += 1  # type: ignore[attr-defined]
    return x * counts.calls  # type: ignore[attr-defined]


NEXT = itertools.count(1).__next__
TOTAL = functools.lru_cache(lambda: turnout.zeros(3))


def test_what_changes_at_each_call_changes_at_each_compiled_call() -> None:
    counts.calls = 0  # type: ignore[attr-defined]
    for function in (counts, lambda x: x * NEXT(), lambda x: TOTAL().add_(x).clone()):
        compiled = turnout.compile(function)
        assert [compiled(vector()).tolist()[0] for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
    compiled = turnout.compile(lambda x: x * float(drawn.rand()))
    assert len({compiled(vector()).tolist()[0] for _ in range(4)}) == 4


def says(x: Any, say: Any = print) -> Any:
    say("said")
    return x


def test_a_side_effect_under_another_name_happens_in_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    for function in (says, lambda x: builtins.print("said") or x):  # noqa: T201
        compiled = turnout.compile(function)
        for _ in range(3):
            compiled(vector())
        assert capsys.readouterr().out == "said\n" * 3


def test_files_are_read_at_each_call(tmp_path: Path) -> None:
    array, tensor = str(tmp_path / "a.npy"), str(tmp_path / "a.pt")
    for function, save in (
        (lambda x: x * turnout.tensor(np.load(array)), lambda n: np.save(array, np.full(3, n))),
        (lambda x: x * turnout.load(tensor), lambda n: turnout.save(turnout.full((3,), n), tensor)),
    ):
        compiled = turnout.compile(function)
        for number in (1.0, 1.0, 2.0, 3.0):
            save(number)
            assert compiled(vector()).tolist() == (vector() * number).tolist()


def test_arguments_that_look_alike_are_kept_apart() -> None:
    pairs: list[tuple[Callable[[Any, Any], Any], Any, Any]] = [
        (lambda x, f: x * f(4.0), math.sqrt, cmath.sqrt),
        (lambda x, s: x * (1 if isinstance(s, slice) else 2), slice(1, 2, 3), (slice, 1, 2, 3)),
        (lambda x, k: x * (1 if isinstance(k, Text) else 2), "a", Text("a")),
        (lambda x, t: x * (2 if t._base is None else 3), vector(), turnout.arange(6.0)[:3]),
        (lambda x, n: x * math.copysign(1.0, n), 0.0, -0.0),
        (lambda x, n: x * n, True, 1.0),
    ]
    for function, one, other in pairs:
        compiled = turnout.compile(function)
        for argument in (one, other) * 2:
            found, expected = compiled(vector(), argument), function(vector(), argument)
            assert (found.tolist(), found.dtype) == (expected.tolist(), expected.dtype), (one, other)


def test_a_result_over_an_array_of_the_program_shares_its_memory() -> None:
    for make in (turnout.as_tensor, turnout.asarray):
        array = np.ones(3, np.float32)
        compiled = turnout.compile(lambda x: (make(array), x + 1))  # noqa: B023
        for _ in range(3):
            compiled(vector())[0].add_(1)
        assert array.tolist() == [4.0, 4.0, 4.0]
        assert "a tensor shares memory with a NumPy array of the program" in compiler.explain(compiled)


def test_one_list_in_two_places_of_the_result_stays_one() -> None:
    def twice(x: Any) -> Any:
        made = [x]
        return made, made

    compiled = turnout.compile(twice)
    for _ in range(3):
        first, second = compiled(vector())
        assert first is second
    assert "the result holds one list in several places" in compiler.explain(compiled)


class Scaled:
    def __init__(self, scale: Any) -> None:
        self.scale = scale


class Crooked(tuple[Any, ...]):
    """A tuple that shows less than it holds."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return tuple.__getitem__(self, 0)

    def __len__(self) -> int:
        return 1


Pair = collections.namedtuple("Pair", "first second")
look, getter = getattr, operator.attrgetter
UNDER_OTHER_NAMES: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (lambda x, o: x * look(o, "scale"), [(Scaled(n),) for n in (2, 2, 2, 3)]),
    (lambda x, o: x * getter("scale")(o), [(Scaled(n),) for n in (2, 2, 2, 3)]),
    (lambda x, read: x * read("scale"), [(functools.partial(getattr, Scaled(n)),) for n in (2, 2, 2, 3)]),
    (lambda x, p: x * sum(p), [(Crooked((2, n)),) for n in (2, 2, 2, 3)]),
    (lambda x, p: x * sum(p), [(Crooked(range(n)),) for n in (2, 2, 2, 3)]),
    (lambda x, p: x * p.first, [(Pair(n, 1),) for n in (2, 2, 2, 3)]),
    (lambda x, d: x * d.maxlen, [(collections.deque([1], n),) for n in (2, 2, 2, 3)]),
    (lambda x, a, b: x * (1 if a is b else 2), [(a, a) for a in [np.ones(2)] * 3] + [(np.ones(2), np.ones(2))]),
    (lambda x, v: x * v._base.shape[0], [(turnout.ones(n)[:1],) for n in (2, 2, 2, 3)]),
    (lambda x, a: x * a.strides[0], [(a,) for a in [np.ones((2, 2))] * 3 + [np.asfortranarray(np.ones((2, 2)))]]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "calls"), UNDER_OTHER_NAMES)
def test_what_is_read_under_another_name_or_past_methods_of_a_class_is_in_the_signature(function: Any, calls: Any) -> None:
    compiled = turnout.compile(function, engine="eager")
    x = turnout.ones(3)
    assert [compiled(x, *call).tolist() for call in calls] == [function(x, *call).tolist() for call in calls]
    assert sum(each.calls for each in compiler.signatures(compiled)) == 2


class Fancy(dict[str, Any]):
    """Attributes that are not kept in a plain dict."""


def test_attributes_in_a_dict_of_another_class_are_said_to_be_seen_by_no_signature() -> None:
    compiled, x = turnout.compile(lambda x, o: x * o.scale, engine="eager"), turnout.ones(3)
    for scale in (2, 2, 2, 3):
        held = Scaled(scale)
        held.__dict__ = Fancy(held.__dict__)
        assert compiled(x, held).tolist() == [scale] * 3
    assert "arguments[1].__dict__ is a Fancy, whose state cannot be compared between calls" in compiler.explain(compiled)


HISTORIES: list[Callable[[Any], Any]] = [
    lambda x: x * len(x.grad_fn.name()), lambda x: x * (2 if x.retains_grad else 3), lambda x: x + x.output_nr,
]  # fmt: skip


@pytest.mark.parametrize("function", HISTORIES)
def test_how_an_input_was_computed_is_read_at_each_call(function: Any) -> None:
    compiled = turnout.compile(function, engine="eager")
    for make in [lambda w: w * 2, lambda w: w * 2, lambda w: w * 2, lambda w: w.exp(), lambda w: w.unbind()[1].expand(3)]:
        ours, theirs = (make(vector().requires_grad_()) for _ in range(2))
        for each in (ours, theirs):
            if "exp" in type(each.grad_fn).__name__.lower() or "exp" in each.grad_fn.name().lower():
                each.retain_grad()
        assert compiled(ours).tolist() == function(theirs).tolist()
    assert (
        "the function names what tells how a tensor was computed, and arguments[0] was computed by operators that were recorded"
    ) in compiler.explain(compiled)


def laid_out(random: Random) -> turnout.Tensor:
    """A tensor of few elements, dense or not, of which some have the shape of others."""
    shape = random.choice([(2, 2), (1, 2), (0, 2), (2, 1, 2), ()])
    return random.choice(
        [
            turnout.ones(shape), turnout.ones(shape[::-1]).permute([*range(len(shape))][::-1]),
            turnout.ones([*shape, 2])[..., 0], turnout.ones(shape[1:]).expand(shape),
        ]
    )  # fmt: skip


def test_other_strides_are_another_signature() -> None:
    function: Any = operator.methodcaller("stride")
    random = Random(1)
    given = [laid_out(random).detach() for _ in range(300)]
    compiled = turnout.compile(lambda x: (x * 2, *function(x)), engine="eager", strict=True)
    for x in given:
        made, *strides = compiled(x)
        assert (tuple(strides), made.shape) == (x.stride(), x.shape)
    facts = {(x.shape, x.stride()) for x in given}
    assert len(compiler.signatures(compiled)) == len(facts)
    assert sum(each.calls for each in compiler.signatures(compiled)) == len(given) - len(facts)


def test_tensors_over_one_memory_are_found_in_groups() -> None:
    ways: list[Callable[[Any], Any]] = [
        lambda x: x.view(-1), lambda x: x.detach(), lambda x: x.data, lambda x: x.view(turnout.int32), lambda x: x.clone(),
        lambda x: x,
    ]  # fmt: skip
    random = Random(2)
    for _ in range(500):
        tensors: list[Any] = []
        for _ in range(random.randrange(7)):
            tensors.append(random.choice(ways)(random.choice([*tensors, turnout.ones(4)])))
        memories = [None if each.storage is None else each.storage.memory for each in tensors]
        together = [[i for i, other in enumerate(memories) if other is each] for each in dict.fromkeys(memories) if each]
        assert shared(tensors) == [group for group in together if len(group) > 1]


def test_inputs_over_one_memory_may_begin_anywhere_in_it() -> None:
    def writes(x: Any, y: Any) -> Any:
        y.mul_(10)
        return x + 1

    compiled = turnout.compile(writes, engine="eager")
    for start in (0, 2):
        for _ in range(3):
            ours, theirs = turnout.arange(8.0), turnout.arange(8.0)
            found = compiled(ours[start : start + 4], ours[start + 1 : start + 3])
            assert turnout.equal(found, writes(theirs[start : start + 4], theirs[start + 1 : start + 3]))
            assert turnout.equal(ours, theirs)


def test_a_function_that_asks_for_the_class_or_text_of_a_size_has_a_graph_for_each() -> None:
    names = {"w3": 3.0, "w4": 4.0}
    for function in (
        lambda x: x * (x.shape[0] if isinstance(x.shape[0], int) else 1),
        lambda x: x * names.get(f"w{x.shape[0]}", 1.0),
        lambda x: x * names.get("w%s" % x.shape[0], 1.0),  # noqa: UP031 - as programs do
        lambda x: x * names.get("w" + str(x.shape[0]), 1.0),
    ):
        compiled = turnout.compile(function, engine="eager", dynamic=True)
        for n in (3, 3, 4, 4, 5):
            assert turnout.equal(compiled(turnout.ones(n, 2)), function(turnout.ones(n, 2)))
        why = "for this size alone: it asks for the class or the text of a value, of which a symbol has others"
        assert compiler.signatures(compiled)[0].notes == (why,)


# ---- what a tensor tells


def tensors_of_one_kind() -> Iterator[turnout.Tensor]:
    """Tensors of one kind, of two sizes, in all the ways in which they may lie in memory and have come about."""
    for rows in (9, 10):
        table = turnout.zeros(rows, 4, dtype=turnout.float64)
        yield from (table[0:4], table[0:5], table[3:7], table[3:7].t(), table[3:7].clone(), table[3:7].detach())
    part, whole = table[0:2], table
    yield from (turnout.zeros_like(whole), turnout.zeros_like(whole).add_(0), whole)
    for mode in (turnout.enable_grad, turnout.inference_mode):
        with mode():
            leaves = [turnout.zeros(n, 4, dtype=turnout.float64, requires_grad=mode is turnout.enable_grad) for n in (4, 5)]
            computed = [leaf * 1 for leaf in leaves]
        yield from (*leaves, *computed)
    assert part._base is whole


def told() -> Iterator[str]:
    """Expressions of `x`: all that a tensor tells without an argument, and what the operators about shapes say."""
    # The hash is the address, as that of `id`, and dicts of tensors ask for it.
    for name in sorted({*dir(turnout.Tensor)} - {"__hash__"}):
        if not name.endswith("_") or name.endswith("__"):
            yield from (f"x.{name}", f"x.{name}()")
    for name in sorted(ABOUT_SHAPES):
        packet = getattr(turnout.ops.aten, name)
        yield from (f"turnout.ops.aten.{name}.{each}(x{rest})" for each in packet.overloads() for rest in ("", ", 0", ", x"))


def facts_of(text: str) -> list[Any]:
    """What an expression gives for those tensors, some of which may not have it."""
    code, found = compile(text, "<fact>", "eval"), []
    for x in tensors_of_one_kind():
        with contextlib.suppress(Exception):
            found.append(eval(code, {"turnout": turnout, "x": x}))
    return found


def answer(function: Callable[[Any], Any], x: Any) -> str:
    """What a function gives, or that it raises: not every field is set, and not every tensor can be exported."""
    try:
        return str(function(x).tolist())
    except Exception as error:  # noqa: BLE001 - its class is compared
        return type(error).__name__


def is_plain(value: Any) -> bool:
    return all(map(is_plain, value)) if type(value) is tuple else isinstance(value, (bool, int, float, str))


@pytest.mark.filterwarnings("ignore:grad. only leaves")
@turnout.no_grad()
def test_what_a_tensor_tells_is_that_of_the_tensor_of_the_call() -> None:
    asked = []
    for text in told():
        values = facts_of(text)
        computes = text.endswith(")") and any(isinstance(value, turnout.Tensor) for value in values)
        if values and not computes and not any(map(callable, values)):
            plain = all(map(is_plain, values))
            fact = text if plain else f"{text} is None"
            if plain and not all(isinstance(value, (bool, int, float)) for value in values):
                fact = f"numbers[{text}]"
            names: dict[str, Any] = {"turnout": turnout, "numbers": dict(zip(values, range(99), strict=False)) if plain else {}}
            exec(f"def function(x):\n    return x + ({fact})", names)  # a fact that is returned is compared with that of the fake
            for dynamic in (False, True):
                compiled = turnout.compile(names["function"], engine="eager", dynamic=dynamic)
                for number, x in enumerate(tensors_of_one_kind()):
                    assert answer(compiled, x) == answer(names["function"], x), (fact, dynamic, number)
            asked.append(text)
    assert len(asked) > 90
    assert {"x.storage_offset()", "x.is_inference()", "x.view_of", "turnout.ops.aten.sym_storage_offset.default(x)"} <= {*asked}


def test_the_names_by_which_a_function_asks_for_a_tensors_memory_or_history_are_those_of_tensors_and_operators() -> None:
    of_operators = {name for name in ABOUT_SHAPES if name in ABOUT_MEMORY}
    assert of_operators == {"sym_storage_offset"}
    assert {*dir(turnout.Tensor)} >= (ABOUT_MEMORY - of_operators) | FIELDS | HISTORY | {"_base"}
    left = {"device", "gmask", "node", "offset", "__weakref__"}  # a signature tells of these
    assert {*turnout.Tensor.__slots__} - left == FIELDS


ALIASES: list[tuple[Any, Callable[[Any], Any]]] = [
    (turnout.Tensor.storage_offset, lambda found: found),
    (turnout.ops.aten.sym_storage_offset, lambda found: found),
    (turnout.ops.aten.sym_storage_offset.default, lambda found: found),
    (vars(turnout.Tensor)["_base"].fget, lambda found: 0 if found is None else found.numel()),
    (turnout.Tensor.version, lambda found: found % 2),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("asks", "number"), ALIASES)
def test_what_a_tensor_tells_may_be_asked_for_under_another_name(asks: Any, number: Any, dynamic: bool) -> None:
    held = {"asks": asks}
    function = lambda x: x + number(held["asks"](x))  # noqa: E731
    compiled = turnout.compile(function, engine="eager", dynamic=dynamic)
    for rows in (9, 10):
        table = turnout.zeros(rows, 4)
        for x in (table[0:4], table[0:5], table[3:7], turnout.zeros(4, 4), turnout.zeros(4, 4).add_(0)):
            assert turnout.equal(compiled(x), function(x))


class Memory:
    """An object of the program with a field that has the name of one of tensors."""

    def __init__(self) -> None:
        self.storage = [1.0, 2.0]


def test_fields_of_tensors_are_refused_but_where_objects_of_the_program_have_them_too() -> None:
    memory = Memory()
    of_the_program = turnout.compile(lambda x: x * memory.storage[1], engine="eager", strict=True)
    assert of_the_program(turnout.ones(2)).tolist() == [2.0, 2.0]
    memory.storage = [1.0, 3.0]
    assert of_the_program(turnout.ones(2)).tolist() == [3.0, 3.0]
    for of_tensors in (lambda x: x + (x.storage is None), lambda x: x + (lambda: x.storage is None)()):
        with pytest.raises(compiler.CompileError, match="storage"):
            turnout.compile(of_tensors, engine="eager", strict=True)(turnout.ones(2))
