"""Generated code in parts: what is loaded when, and that nobody can tell afterwards."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import turnout
from turnout.errors import ConflictError
from turnout.keys import KEYS
from turnout.registry import REGISTRY, Registrations, Registry
from turnout_aten.functions import parts
from turnout_aten.functions.parts import LateMethod, part_name
from turnout_aten import operators
from turnout_aten.generated.methods import TensorMethods


def run(program: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


PARTS_LOADED = "sorted(m[24:] for m in sys.modules if m.startswith('turnout.generated.parts.'))"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", "a"), ("add_", "a"), ("_softmax", "s"), ("__and__", "a"), ("linalg_det", "linalg"), ("linalg", "l"),
        ("_linalg_det", "linalg"), ("fft_fft", "fft"), ("special_erf", "special"), ("T", "t"), ("", ""), ("__", ""), ("2d", ""),
    ],
)  # fmt: skip
def test_a_part_is_chosen_by_name_alone(name, expected):
    assert part_name(name) == expected


def test_import_turnout_loads_no_part_and_defines_no_operator():
    program = (
        f"import sys, turnout; from turnout.registry import REGISTRY; print({PARTS_LOADED}, len(REGISTRY._operators))"
    )
    assert run(program) == "[] 0"


@pytest.mark.parametrize(
    "use",
    [
        "turnout.exp", "from turnout import exp", "turnout.Tensor.exp", "turnout.ops.aten.exp",
        "turnout.registry.find_operator('aten::exp.out')", "from turnout.generated.operators import exp",
    ],
)  # fmt: skip
def test_the_first_use_loads_one_part(use):
    assert run(f"import sys, turnout; {use}; print({PARTS_LOADED})") == "['e']"


def test_only_the_packet_that_is_used_is_defined():
    program = (
        "import turnout; from turnout.registry import REGISTRY; turnout.ops.aten.exp.out; print(*REGISTRY._operators)"
    )
    assert run(program) == "aten::exp aten::exp.out"


def test_a_function_and_a_method_are_the_same_object_at_every_use():
    assert turnout.exp is turnout.exp
    assert "exp" in vars(turnout)
    assert turnout.Tensor.exp is turnout.Tensor.exp
    assert not isinstance(vars(TensorMethods)["exp"], LateMethod)


def test_all_names_are_listed_without_their_parts():
    program = (
        "import sys, turnout; names = dir(turnout); print('exp' in names, 'nn' in names, 'exp' in dir(turnout.Tensor), "
        f"'__add__' in dir(turnout.Tensor), {PARTS_LOADED})"
    )
    assert run(program) == "True True True True []"


def test_a_star_import_brings_functions():
    assert run("from turnout import *; print(exp.__name__, tensor.__name__, Tensor.__name__)") == "exp tensor Tensor"


def test_names_that_no_operator_has_are_attribute_errors():
    for name in ("expp", "_exp", "Ω"):
        with pytest.raises(AttributeError) as caught:
            getattr(turnout, name)
        assert str(caught.value) == f"module 'turnout' has no attribute {name!r}"
    with pytest.raises(ImportError):
        from turnout import expp  # noqa: F401
    with pytest.raises(AttributeError) as caught:
        operators.expp
    assert str(caught.value) == "no operator has the stub 'expp'"


def test_functions_methods_and_operators_pickle_by_their_public_names():
    for value, name in ((turnout.exp, b"exp"), (turnout.zeros, b"zeros"), (turnout.Tensor.add, b"Tensor.add")):
        stored = pickle.dumps(value)
        assert pickle.loads(stored) is value
        assert b"generated" not in stored
        assert name in stored
    op = turnout.ops.aten.exp.out
    assert pickle.loads(pickle.dumps(op)) is op
    stored = pickle.dumps(turnout.add)
    assert run(f"import pickle; print(pickle.loads({stored!r}).__qualname__)") == "add"


def test_every_name_in_the_lists_is_there():
    for name, overloads in REGISTRY.packets["aten"].items():
        assert sorted(parts.OperatorSource(print).names()[name]) == sorted(overloads.overloads)
    for home in ("turnout", "turnout.generated.nn_functional", "turnout.linalg", "turnout.fft", "turnout.special"):
        assert all(callable(parts.function(home, name)) for name in parts.names(home))


def test_a_method_that_somebody_replaced_before_its_part_was_loaded_stays():
    program = (
        "import turnout; from turnout.generated.methods import TensorMethods;"
        "turnout.Tensor.exp = lambda self: 'mine'; turnout.Tensor.expm1;"
        "print(turnout.Tensor.exp(None), TensorMethods.exp is turnout.ops.aten.exp.default.call)"
    )
    assert run(program) == "mine True"


def test_a_subclass_made_before_its_methods_are_loaded_has_them():
    program = (
        "import turnout\n"
        "class Mine(turnout.Tensor):\n    __slots__ = ()\n    def sub(self, other):\n        return super().sub(other)\n"
        "print(Mine.exp is turnout.exp is None, Mine.sub is turnout.Tensor.sub, Mine.__add__ is turnout.Tensor.__add__)"
    )
    assert run(program) == "False False True"


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
    with pytest.raises(ConflictError):
        other.impl("peel", "CompositeImplicitAutograd", lambda x: x)
    with pytest.raises(ConflictError):
        other.define("peel(int x) -> int")
    with pytest.raises(ConflictError):
        Registrations("aten").impl("where", "CompositeImplicitAutograd", lambda condition: condition)


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
    with pytest.raises(ZeroDivisionError):
        registry.find("bad::peel")
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
            assert packet is None or len(list(packet)) == len(packet.overloads) > 0
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
