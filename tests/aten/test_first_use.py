"""Stubs, functions and methods are made when they are first used: what is made when, and that nobody can tell afterwards."""

from __future__ import annotations

import pickle
import subprocess
import sys
import traceback

import pytest

import turnout
from outcomes import refused
from turnout.errors import ConflictError
from turnout.keys import KEYS
from turnout.registry import REGISTRY, Registrations, Registry
from turnout_aten import operators
from turnout_aten.declarations import tables
from turnout_aten.functions import lookup
from turnout_aten.functions.lookup import LateMethod
from turnout_aten.functions.public_modules import HOMES
from turnout_aten.generated import functions as generated_functions
from turnout_aten.generated.methods import NAMES, TensorMethods


def run(program: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# The texts that were compiled: `run_source` leaves each in linecache.
# The text of views is one for all operators, and compiled with the first table. Python 3.13 adds the program itself, "<string>".
TEXTS = "set(sys.modules['linecache'].cache) - {'<string>'}"
COMPILED = f"sorted(name for name in {TEXTS} if name[0] == '<' and name[:5] != '<view' and 'wrapper' not in name)"


def test_import_turnout_loads_no_table_and_defines_no_operator():
    program = (
        "import sys, turnout; from turnout.registry import REGISTRY;"
        "print('turnout_aten' in sys.modules, len(REGISTRY._operators))"
    )
    assert run(program) == "False 0"


@pytest.mark.parametrize(
    ("use", "compiled"),
    [
        ("turnout.exp", "<turnout.exp>"), ("from turnout import exp", "<turnout.exp>"),
        ("turnout.linalg.det", "<turnout.linalg.det>"),
        ("turnout.Tensor.sum", "<turnout.Tensor.sum>"), ("turnout.Tensor.__add__", "<turnout.Tensor.__add__>"),
        ("turnout.Tensor.exp", "<stub of aten::exp>"), ("from turnout_aten.operators import exp", "<stub of aten::exp>"),
    ],
)  # fmt: skip
def test_the_first_use_compiles_one_text(use, compiled):
    program = f"import linecache, sys, turnout; {use}; print(*{COMPILED})"
    assert compiled in run(program).replace("> <", ">|<").split("|")
    assert len(run(program).replace("> <", ">|<").split("|")) <= 2  # a method that is the stub has a line beside it


def test_only_the_packet_that_is_used_is_defined():
    use = "turnout.ops.aten.exp.out; from turnout.registry import REGISTRY"
    defined = "(name for name, op in REGISTRY._operators.items() if op.schema_text)"  # the others have kernels that wait for them
    program = f"import linecache, sys, turnout; {use}; print(*{defined}, {COMPILED})"
    assert run(program) == "aten::exp aten::exp.out []"


def test_a_stub_is_compiled_by_the_first_call_and_is_the_same_object_from_then_on():
    program = """
import turnout
from turnout_aten import operators
op = turnout.ops.aten.hypot.default
print(op.call == op._first_call, op(turnout.tensor([3.0]), turnout.tensor([4.0])).tolist())
print(op.call is op.stub is operators.hypot is vars(operators)["hypot"])
"""
    assert run(program).split("\n") == ["True [5.0]", "True"]


def test_a_stub_has_its_operators_cache():
    op = turnout.ops.aten.exp.default
    overload = tables.standard().find("exp")
    assert overload.stub is op.stub
    assert overload.cache is op.cache is op.stub.__globals__["CACHE"]


def test_functions_and_methods_share_the_operators_cache():
    op = turnout.ops.aten.add.Tensor
    for made in (turnout.add, turnout.Tensor.add, turnout.Tensor.__add__):
        assert made.__globals__["K_add__Tensor"] is op.cache


def test_what_is_called_rarely_is_made_at_its_first_call():
    program = (
        "import turnout; x = turnout.ones(2); made = turnout.Tensor.__mul__.__globals__;"
        "before = made['op_mul__Scalar']; x * 2; x * 2;"
        "print(before.__name__, made['op_mul__Scalar'] is turnout.ops.aten.mul.Scalar.call)"
    )
    assert run(program) == "first_call True"


def test_a_function_and_a_method_are_the_same_object_at_every_use():
    assert turnout.exp is turnout.exp
    assert "exp" in vars(turnout)
    assert turnout.exp is generated_functions.exp
    assert turnout.Tensor.exp is turnout.Tensor.exp
    assert not isinstance(vars(TensorMethods)["exp"], LateMethod)


def test_tracebacks_show_the_lines_of_stubs_and_functions():
    for call, line in (
        (lambda: turnout.exp(3), "return miss('aten::exp', (input,))"),
        (lambda: turnout.ops.aten.exp(3), "return miss('aten::exp', (self,))"),
        (lambda: turnout.ones(2).sum("a"), "return P_sum(self, *args, **kwargs)"),
    ):
        with pytest.raises(turnout.errors.TurnoutError) as caught:
            call()
        assert line in "".join(traceback.format_exception(caught.value))


def test_all_names_are_listed_without_making_them():
    program = (
        "import linecache, sys, turnout; names = dir(turnout); print('exp' in names, 'nn' in names, "
        f"'exp' in dir(turnout.Tensor), '__add__' in dir(turnout.Tensor), {COMPILED})"
    )
    assert run(program) == "True True True True []"


def test_a_star_import_brings_functions():
    assert run("from turnout import *; print(exp.__name__, tensor.__name__, Tensor.__name__)") == "exp tensor Tensor"


def test_names_that_no_operator_has_are_attribute_errors():
    for name, near in (("expp", "; did you mean exp?"), ("_exp", ""), ("Ω", "")):
        assert refused(AttributeError, getattr, turnout, name) == f"module 'turnout' has no attribute {name!r}{near}"
    with pytest.raises(ImportError):
        from turnout import expp  # noqa: F401
    for name in ("expp", "add__", "add__Tensr", "__path__"):
        assert refused(AttributeError, getattr, operators, name) == f"no operator has the stub {name!r}"


def test_functions_methods_and_operators_pickle_by_their_public_names():
    for value, name in ((turnout.exp, b"exp"), (turnout.zeros, b"zeros"), (turnout.Tensor.add, b"Tensor.add")):
        stored = pickle.dumps(value)
        assert pickle.loads(stored) is value
        assert b"turnout_aten" not in stored
        assert name in stored
    op = turnout.ops.aten.exp.out
    assert pickle.loads(pickle.dumps(op)) is op
    stored = pickle.dumps(turnout.add)
    assert run(f"import pickle; print(pickle.loads({stored!r}).__qualname__)") == "add"


def test_every_stub_is_found_by_its_name():
    for packet, overloads in tables.standard().names().items():
        assert sorted(overloads) == sorted(o.overload for o in REGISTRY.packets["aten"][packet])
        for overload in overloads:
            found = tables.standard().find(f"{packet}__{overload}" if overload else packet)
            assert found.qualified_name == f"aten::{packet}.{overload}".removesuffix(".")


def test_every_name_in_the_lists_is_there_and_says_what_it_calls():
    for home in HOMES.values():
        for name in lookup.names(home):
            made = lookup.function(home, name)
            assert (made.__module__, made.__qualname__) == (home, name)
            assert made.operator_name in made.__doc__


def test_every_method_can_be_made():
    program = (
        "import turnout; from turnout_aten.generated.methods import NAMES, TensorMethods;"
        "made = [getattr(turnout.Tensor, name) for name in NAMES];"
        "left = [n for n, v in vars(TensorMethods).items() if type(v).__name__ == 'LateMethod'];"
        "first = [next(c for c in turnout.Tensor.__mro__ if n in vars(c)) for n in left];"
        "print(len(made), all(map(callable, made)), TensorMethods in first)"
    )
    assert run(program) == f"{len(NAMES)} True False"


def test_the_methods_are_too_few_to_end_the_caching_of_look_ups():
    assert len(NAMES) < 1000  # CPython 3.13 gives a class 1,000 versions: see LateMethod


def test_a_method_that_somebody_replaced_before_it_was_made_stays():
    program = (
        "import turnout; from turnout_aten.generated.methods import TensorMethods;"
        "turnout.Tensor.exp = lambda self: 'mine'; turnout.Tensor.expm1;"
        "print(turnout.Tensor.exp(None), TensorMethods.exp.__code__ is turnout.ops.aten.exp.default.call.__code__)"
    )
    assert run(program) == "mine True"


def test_a_subclass_made_before_its_methods_are_made_has_them():
    program = (
        "import turnout\n"
        "class Mine(turnout.Tensor):\n    __slots__ = ()\n    def sub(self, other):\n        return super().sub(other)\n"
        "print(Mine.exp is turnout.exp is None, Mine.sub is turnout.Tensor.sub, Mine.__add__ is turnout.Tensor.__add__)"
    )
    assert run(program) == "False False True"


def test_what_was_made_works_after_the_operators_were_undone_and_defined_again():
    program = (
        "import turnout; from turnout_aten import operators as aten;"
        "x, stub, function = turnout.ones(2), aten.exp, turnout.exp; stub(x);"
        "turnout.plugins.deactivate('aten', with_dependents=True);"
        "x = turnout.zeros(2); op = turnout.ops.aten.exp.default;"
        "print(stub(x).tolist(), function(x).tolist(), x.exp().tolist(), op(x).tolist(), op.cache is stub.__globals__['CACHE'])"
    )
    assert run(program) == "[1.0, 1.0] [1.0, 1.0] [1.0, 1.0] [1.0, 1.0] True"


def test_no_module_uses_a_function_or_a_stub_while_it_is_imported():
    """It would take the registry's lock under the import lock, which another thread may hold the other way round."""
    program = (
        "import pkgutil, importlib, turnout_aten\n"
        "from turnout_aten.declarations import tables\nfrom turnout_aten.functions import compilation\n"
        "used = []\n"
        "tables.Overload.stub = property(lambda self: used.append(self) or print)\n"
        "compilation.make_function = lambda table, packet, home: used.append(packet.name) or print\n"
        "for found in pkgutil.walk_packages(turnout_aten.__path__, 'turnout_aten.'):\n"
        "    found.name.endswith('__main__') or importlib.import_module(found.name)\n"
        "print(used)"
    )
    assert run(program) == "[]"


# ---- the registry's sources


class Fruits:
    """Defines two overloads of `peel`, and notes what it is asked for."""

    def __init__(self, library: Registrations) -> None:
        self.library = library
        self.defining: set[str] = set()
        self.asked: list[str] = []

    def names(self) -> dict[str, tuple[str, ...]]:
        return {"peel": ("", "twice")}

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


# ---- threads

RACE = """
import sys, threading
sys.setswitchinterval(1e-6)
import turnout
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


@pytest.mark.parametrize("process", range(3))
def test_first_uses_by_eight_threads_at_once_are_right(process):
    assert run(RACE) == "[]"
