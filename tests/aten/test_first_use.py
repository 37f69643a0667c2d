"""Stubs, functions and methods are made when they are first used: what is made when, and that nobody can tell afterwards."""

# ruff: noqa: ISC004 - programs of several lines in tables

from __future__ import annotations

import os
import pickle
import traceback
from functools import cache

import pytest

import turnout
from outcomes import printed, refused
from turnout.errors import ConflictError
from turnout.keys import KEYS
from turnout.registry import REGISTRY, Registrations, Registry
from turnout_aten import operators
from turnout_aten.declarations import tables
from turnout_aten.functions import lookup
from turnout_aten.functions.lookup import LateMethod
from turnout_aten.functions.public_modules import HOMES, PUBLIC
from turnout_aten.generated import functions as generated_functions
from turnout_aten.generated.methods import NAMES, TensorMethods

# The texts that were compiled: `run_source` leaves each in linecache.
# The text of views is one for all operators, and compiled with the first table. Python 3.13 adds the program itself, "<string>".
COMPILED = "sorted(n for n in linecache.cache if n != '<string>' and n[0] == '<' and n[:5] != '<view' and 'wrapper' not in n)"

RACE = """
import threading
sys.setswitchinterval(1e-6)
from turnout.registry import REGISTRY
names = [n for n in dir(turnout.Tensor) if not n.startswith("_")][:60] + ["__add__", "__rtruediv__"]
start, wrong = threading.Barrier(8), []

def worker(n):
    start.wait()
    for i in range(len(names)):
        name = names[(i * 7 + n * 11) % len(names)]
        try:
            getattr(turnout.Tensor, name)
            getattr(turnout, name.strip("_"), None)
            packet = REGISTRY.packet("aten", name)
            assert packet is None or all(op.is_defined for op in packet)
            assert packet is None or len(list(packet)) == len(packet.overloads()) > 0
        except BaseException as error:
            wrong.append((name, error))

threads = [threading.Thread(target=worker, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong)
"""

# What is asked -> a program and what it prints in an interpreter that has imported turnout.
IMPORTED = {
    "import turnout loads no table and defines no operator": (
        "from turnout.registry import REGISTRY; print('turnout_aten' in sys.modules, len(REGISTRY._operators))", "False 0",
    ),
    "the first operation parses no metadata as mail": (
        "turnout.ones(2) + 1; print(turnout.__version__ == '', 'email.parser' in sys.modules)", "False False",
    ),
    "the first operation loads nothing that NumPy, plugins and it do not need": (
        "import numpy; before = {*sys.modules}; turnout.ones(2) + 1\n"
        "unneeded = {'json', 'ml_dtypes', 'pathlib', 'shlex', 'threading', 'traceback', 'urllib.parse', 'importlib_metadata'}\n"
        "unneeded |= {'copy', 'dataclasses', 'turnout_aten.tags', 'turnout_speed.endings', 'turnout_aten.composites.endings'}\n"
        "unneeded |= {f'turnout_aten.{name}' for name in ('tensor.indexing', 'tensor.interop', 'views.geometry')}\n"
        "print(sorted(unneeded & sys.modules.keys() - before))", "[]",
    ),
    "the first operation names few operators of a backend's tables": (
        "turnout.ones(2) + 1; from turnout.registry import REGISTRY\n"
        "print(len(REGISTRY._operators) < 50, sum(len(table.rows) for table in REGISTRY.tables) > 800)", "True True",
    ),
    "the first operation parses few schemas, though it checks all rows of a backend": (
        "turnout.ones(2) + 1; from turnout_aten.declarations.tables import standard\n"
        "print(sum(each._schema is not None for made in standard()._made.values() for each in made) < 10)", "True",
    ),
    "Tensor reads no docstrings": (
        "turnout.Tensor; print('turnout_aten.functions.docstrings' in sys.modules)", "False",
    ),
    "the namespace activates the standard operators": (
        "print(turnout.ops.aten.add.Tensor.schema.name)", "aten::add.Tensor",
    ),
    "the first use of all compiles one text": (f"turnout.exp; print({COMPILED})", "['<turnout.exp>']"),
    "all names are listed without making them": (
        "names, methods = dir(turnout), dir(turnout.Tensor)\n"
        f"print('exp' in names, 'nn' in names, 'exp' in methods, '__add__' in methods, {COMPILED})", "True True True True []",
    ),
    "a star import brings functions": (
        "from turnout import *; print(exp.__name__, tensor.__name__, Tensor.__name__)", "exp tensor Tensor",
    ),
    "a function is unpickled": (f"print(pickle.loads({pickle.dumps(turnout.add)!r}).__qualname__)", "add"),
    # It would take the registry's lock under the import lock, which another thread may hold the other way round.
    "no module uses a function or a stub while it is imported": (
        "import pkgutil, importlib, turnout_aten\n"
        "from turnout_aten.declarations import tables\nfrom turnout_aten.functions import compilation\n"
        "used = []\n"
        "tables.Overload.stub = property(lambda self: used.append(self) or print)\n"
        "compilation.make_function = lambda table, packet, home: used.append(packet.name) or print\n"
        "for found in pkgutil.walk_packages(turnout_aten.__path__, 'turnout_aten.'):\n"
        "    found.name.endswith('__main__') or importlib.import_module(found.name)\n"
        "print(used)", "[]",
    ),
    **{f"first uses by eight threads at once are right {n}": (RACE, "[]") for n in range(3)},
}  # fmt: skip

# The same where the operators are there, none was used, and PyYAML is not installed.
ACTIVE = {
    "only the packet that is used is defined": (  # the other operators have kernels that wait for them
        "turnout.ops.aten.exp.out; from turnout.registry import REGISTRY\n"
        f"print(*(name for name, op in REGISTRY._operators.items() if op.schema_text), {COMPILED})", "aten::exp aten::exp.out []",
    ),
    "nothing needs PyYAML": (
        "x = turnout.ones(2); (x + 1).sum(), turnout.nn.functional.linear(x, x), turnout.linalg.norm(x)\n"
        "print(sys.modules['yaml'])", "None",
    ),
    "a stub is compiled by the first call and is the same object from then on": (
        "from turnout_aten import operators; op = turnout.ops.aten.hypot.default\n"
        "print(op.call == op._first_call, op(turnout.tensor([3.0]), turnout.tensor([4.0])).tolist(), end=' ')\n"
        "print(op.call is op.stub is operators.hypot is vars(operators)['hypot'])", "True [5.0] True",
    ),
    "what is called rarely is made at its first call": (
        "x = turnout.ones(2); made = turnout.Tensor.__mul__.__globals__; before = made['op_mul__Scalar']; x * 2; x * 2\n"
        "print(before.__name__, made['op_mul__Scalar'] is turnout.ops.aten.mul.Scalar.call)", "first_call True",
    ),
    "every method can be made": (
        "from turnout_aten.generated.methods import NAMES, TensorMethods\n"
        "made = [getattr(turnout.Tensor, name) for name in NAMES]\n"
        "left = [n for n, v in vars(TensorMethods).items() if type(v).__name__ == 'LateMethod']\n"
        "first = [next(c for c in turnout.Tensor.__mro__ if n in vars(c)) for n in left]\n"
        "print(len(made), all(map(callable, made)), TensorMethods in first)", f"{len(NAMES)} True False",
    ),
    "a method that somebody replaced before it was made stays": (
        "from turnout_aten.generated.methods import TensorMethods\n"
        "turnout.Tensor.exp = lambda self: 'mine'; turnout.Tensor.expm1\n"
        "print(turnout.Tensor.exp(None), TensorMethods.exp.__qualname__)", "mine Tensor.exp",
    ),
    "a subclass made before its methods are made has them": (
        "class Mine(turnout.Tensor):\n    __slots__ = ()\n    def sub(self, other):\n        return super().sub(other)\n"
        "print(Mine.exp is turnout.exp is None, Mine.sub is turnout.Tensor.sub, Mine.__add__ is turnout.Tensor.__add__)",
        "False False True",
    ),
    "what was made works after the operators were undone and defined again": (
        "from turnout_aten import operators as aten; x, stub, function = turnout.ones(2), aten.exp, turnout.exp; stub(x)\n"
        "turnout.plugins.deactivate('aten', with_dependents=True); x = turnout.zeros(2); op = turnout.ops.aten.exp.default\n"
        "print(stub(x).tolist(), function(x).tolist(), x.exp().tolist(), op(x).tolist(), op.cache is stub.__globals__['CACHE'])",
        "[1.0, 1.0] [1.0, 1.0] [1.0, 1.0] [1.0, 1.0] True",
    ),
    "the docstring of an operator of Python is that of its method, used before": (
        "turnout.Tensor.neg; print(turnout.Tensor.__neg__.__doc__.splitlines()[0])", "neg(self) -> Tensor",
    ),
    "the docstring of an operator of Python is that of its method, used later": (
        "turnout.Tensor.__neg__; turnout.Tensor.neg; print(turnout.Tensor.__neg__.__doc__.splitlines()[0])",
        "neg(self) -> Tensor",
    ),
    **{
        f"the first use of {use} compiles one text": (f"{use}; print({COMPILED})", f"['{text}']") for use, text in (
            ("from turnout import exp", "<turnout.exp>"), ("turnout.linalg.det", "<turnout.linalg.det>"),
            ("turnout.Tensor.sum", "<turnout.Tensor.sum>"), ("turnout.Tensor.__add__", "<turnout.Tensor.__add__>"),
            ("turnout.Tensor.exp", "<turnout.Tensor.exp>"), ("from turnout_aten.operators import exp", "<stub of aten::exp>"),
        )
    },
}  # fmt: skip
FORKS = """
import linecache, os, pickle, sys, traceback, turnout
{first}
for program in {programs!r}:
    sys.stdout.flush()
    if not (child := os.fork()):
        try:
            exec(program, globals())
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print(end="\\0")
"""


TABLES = {"": IMPORTED, "sys.modules['yaml'] = None; turnout.plugins.activate('cpu'); turnout.Tensor": ACTIVE}


@cache
def answers(first: str) -> dict[str, str]:
    """What the programs of a table print, each in a fork of one interpreter, in which a statement ran first."""
    programs = [program for program, _ in TABLES[first].values()]
    return dict(zip(TABLES[first], printed(FORKS.format(first=first, programs=programs)).split("\0"), strict=False))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs run in forks")
@pytest.mark.parametrize(
    ("first", "name"), [pytest.param(first, name, id=name) for first, table in TABLES.items() for name in table]
)
def test_in_a_fresh_interpreter(first, name):
    assert answers(first)[name].strip() == TABLES[first][name][1]


def test_a_stub_has_its_operators_cache():
    op = turnout.ops.aten.exp.default
    overload = tables.standard().find("exp")
    assert overload.stub is op.stub
    assert overload.cache is op.cache is op.stub.__globals__["CACHE"]


def test_functions_and_methods_share_the_operators_cache():
    op = turnout.ops.aten.add.Tensor
    for made in (turnout.add, turnout.Tensor.add, turnout.Tensor.__add__):
        assert made.__globals__["K_add__Tensor"] is op.cache


def test_a_function_and_a_method_are_the_same_object_at_every_use():
    assert turnout.exp is turnout.exp
    assert "exp" in vars(turnout)
    assert turnout.exp is generated_functions.exp
    assert turnout.Tensor.exp is turnout.Tensor.exp
    assert not isinstance(vars(TensorMethods)["exp"], LateMethod)


def test_tracebacks_show_the_lines_of_stubs_and_functions():
    for call, line in (
        (lambda: turnout.exp(3), "return miss('aten::exp', (input,))"),
        (lambda: turnout.ops.aten.exp.default(3), "return miss('aten::exp', (self,))"),
        (lambda: turnout.ones(2).sum("a"), "return P_sum(self, *args, **kwargs)"),
    ):
        with turnout.config.override(traceback="full"), pytest.raises(turnout.errors.TurnoutError) as caught:
            call()
        assert line in [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_names_that_no_operator_has_are_attribute_errors():
    for name, near in (("expp", "; did you mean exp?"), ("_exp", ""), ("Ω", "")):
        assert refused(AttributeError, getattr, turnout, name) == f"module 'turnout' has no attribute {name!r}{near}"
    with pytest.raises(ImportError):
        from turnout import expp  # noqa: F401
    for name in ("expp", "add__", "add__Tensr", "__path__"):
        assert refused(AttributeError, getattr, operators, name) == f"no operator has the stub {name!r}"


def test_every_stub_is_found_by_its_name():
    table = tables.standard()
    for packet in table:
        overloads = {o.qualified_name: o.overload for o in REGISTRY.packets["aten"][packet]}
        assert sorted(overloads) == sorted(found.qualified_name for found in table.overloads(packet))
        for name, overload in overloads.items():
            assert table.find(f"{packet}__{overload}" if overload else packet) is table.named(name)
            assert table.knows(name)
    for name in ("aten::ad", "aten::dd", "aten::add.", "aten::add.default", "aten::add.Tensr", "add", "mine::add.Tensor", ""):
        assert not table.knows(name)


def test_every_name_in_the_lists_is_there_and_says_what_it_calls():
    for module, home in HOMES.items():
        for name in lookup.names(home):
            made = lookup.function(home, name)
            assert (made.__module__, made.__qualname__) == (PUBLIC[module], name)
            assert made.operator_name in made.__doc__


def test_the_methods_are_too_few_to_end_the_caching_of_look_ups():
    assert len(NAMES) < 1000  # CPython 3.13 gives a class 1,000 versions: see LateMethod


# ---- the registry's sources


class Fruits:
    """Defines two overloads of `peel`, and notes what it is asked for."""

    def __init__(self, library: Registrations) -> None:
        self.library = library
        self.defining: set[str] = set()
        self.asked: list[str] = []

    def names(self) -> list[str]:
        return ["peel"]

    def knows(self, qualified_name: str) -> bool:
        return qualified_name in ("fruit::peel", "fruit::peel.twice")

    def define(self, name: str) -> None:
        self.asked.append(name)
        if name == "peel":
            for schema in ("fruit::peel(int x) -> int", "fruit::peel.twice(int x, int y) -> int"):
                self.library.define(schema)
            self.library.impl("peel", "CompositeImplicitAutograd", lambda x: x - 1)


@pytest.fixture
def fruits():
    library = Registrations("fruit", registry=Registry(KEYS))
    source = Fruits(library)
    library.registry.add_source("fruit", source)
    return library.registry, source


def test_a_source_is_asked_once_for_each_name(fruits):
    registry, source = fruits
    assert source.asked == []
    assert registry.find("fruit::peel.twice").schema_text == "fruit::peel.twice(int x, int y) -> int"
    assert registry.packet("fruit", "peel").twice is registry.find("fruit::peel.twice")
    assert registry.packet("fruit", "stone") is None
    assert registry.packet("fruit", "stone") is None
    assert source.asked == ["peel", "stone"]


def test_kernels_that_come_before_their_operator_wait_for_it(fruits):
    registry, source = fruits
    other = Registrations("fruit", registry=registry, distribution="other")
    registry.backends["CPU"] = object()
    kernel = other.impl("peel", "CPU", print, form="array", waits=True)
    early = other.impl("peel.twice", "CPU", print, form="array", waits=True)
    assert source.asked == []
    assert registry.knows("fruit::peel.twice")
    assert not registry.knows("fruit::peel.thrice")
    assert registry.dangling() == []
    assert registry.find("fruit::peel").kernels["CPU"] == [kernel]
    assert registry.find("fruit::peel.twice").kernels["CPU"] == [early]
    other.undo()
    assert sorted(registry.operators) == ["fruit::peel", "fruit::peel.twice"]


def test_a_kernel_where_the_source_has_one_is_the_conflict_that_it_always_was(fruits):
    registry, _ = fruits
    other = Registrations("fruit", registry=registry)
    refused(ConflictError, other.impl, "peel", "CompositeImplicitAutograd", lambda x: x)
    refused(ConflictError, other.define, "peel(int x) -> int")
    refused(ConflictError, Registrations("aten").impl, "where", "CompositeImplicitAutograd", lambda condition: condition)


def test_a_handle_of_an_operator_that_is_not_defined_yet_finds_its_definition(fruits):
    registry, source = fruits
    other = Registrations("fruit", registry=registry)
    registry.backends["CPU"] = object()
    other.impl("peel", "CPU", print, form="array", waits=True)
    op = registry.get("fruit::peel", define=False)
    assert op.schema_text is None
    assert str(op.schema) == "fruit::peel(int x) -> int"
    assert source.asked == ["peel"]
    assert op.is_defined


def test_a_definition_that_fails_is_tried_again(fruits):
    registry, source = fruits
    registry.add_source("bad", source)
    good, source.define = source.define, lambda name: 1 / 0
    refused(ZeroDivisionError, registry.find, "bad::peel")
    source.define = good
    assert registry.find("fruit::peel").is_defined
    assert source.defining == set()
