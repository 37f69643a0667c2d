"""The same programs against `torch.library` and `turnout.library`: porting one means changing one import."""

from __future__ import annotations

import gc
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import library_forms  # noqa: E402

import turnout  # noqa: E402

RUN = iter(range(10**6))


@pytest.fixture(scope="module", autouse=True)
def _collections_are_quick():
    """Each program ends with a collection, which leaves out what was there before, such as all of torch."""
    gc.freeze()
    yield
    gc.unfreeze()


@dataclass
class Raised:
    """An error: its builtin kinds, and itself."""

    kinds: set[type[Exception]]
    error: Exception


def answers(program):
    """What a program returns, or the builtin kinds of the error it raises, from both. `ns` is a namespace of its own."""
    found = []
    for framework in (torch, turnout):
        ns = f"oracle{next(RUN)}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch warns where a kernel replaces another
                found.append(plain(program(framework, framework.library, ns)))
        except Exception as error:  # noqa: BLE001 - which one is what is compared
            kinds = {RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError, AssertionError}
            found.append(Raised({kind for kind in kinds if isinstance(error, kind)}, error))
        gc.collect()
    return found


def plain(value):
    """Tensors as lists, everything else as it is."""
    if isinstance(value, (torch.Tensor, turnout.Tensor)):
        return value.detach().tolist()
    if isinstance(value, (tuple, list)):
        return type(value)(plain(v) for v in value)
    return value


def same(theirs, ours):
    """Assert that the answers are equal, or that code that catches torch's error catches ours."""
    if isinstance(theirs, Raised):
        assert isinstance(ours, Raised), (theirs.error, ours)
        assert not theirs.kinds or theirs.kinds & ours.kinds, (
            f"no code that catches torch's error would catch this one: {theirs} {ours}"
        )
    else:
        assert ours == close(theirs)


def close(value):
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-6)
    if isinstance(value, (tuple, list)):
        return type(value)(close(v) for v in value)
    return value


# ---- programs in the forms of the manual: one source, of which only the import is changed

IMPORTS = {
    torch: """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode

below_autograd = torch._C._AutoDispatchBelowAutograd
Device = torch.device

def fake_mode():
    return FakeTensorMode(shape_env=ShapeEnv())

class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
""",
    turnout: """
import turnout as torch
from turnout import Device, FakeMode as fake_mode

def below_autograd():
    return torch.state.exclude("Autograd")

class Mode(torch.DispatchMode):
    def dispatch(self, op, ks, args):
        return op.redispatch(ks, *args)
""",
}


def ran(source):
    """A program that runs a source with the import of a framework."""

    def program(framework, library, ns):
        names = {"__name__": "program"}
        exec(IMPORTS[framework] + source.replace("your_namespace", ns), names)
        return described(names["result"], ns)

    return program


def described(value, ns):
    """Tensors with dtype, shape and values; without data with strides and device; reports of opcheck as what failed."""
    if isinstance(value, (torch.Tensor, turnout.Tensor)):
        facts = (str(value.dtype).partition(".")[2], *[str(length) for length in value.shape])
        if has_data(value):
            return (*facts, value.detach().tolist())
        return (*facts, tuple(str(step) for step in value.stride()), str(value.device))
    if isinstance(value, dict) and value and all(str(key).startswith("test_") for key in value):
        return {name: verdict == "SUCCESS" for name, verdict in value.items() if name in OPCHECKS}
    if isinstance(value, (tuple, list)):
        return type(value)(described(v, ns) for v in value)
    return value.replace(ns, "your_namespace") if isinstance(value, str) else value


OPCHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def has_data(tensor):
    if isinstance(tensor, turnout.Tensor):
        return tensor.device.backend.has_values
    return not tensor.is_meta and not isinstance(tensor, torch._subclasses.FakeTensor)


@pytest.mark.parametrize("name", library_forms.PROGRAMS)
def test_a_source_gives_the_same_with_either_import(name):
    theirs, ours = answers(ran(library_forms.PROGRAMS[name]))
    assert isinstance(theirs, Raised) == (name in library_forms.ERRORS), theirs
    same(theirs, ours)
    if isinstance(theirs, Raised):
        assert [words in str(each.error) for words, each in zip(library_forms.ERRORS[name], (theirs, ours), strict=True)] == [
            True
        ] * 2


@pytest.mark.parametrize("name", library_forms.ONLY_HERE)
def test_what_torch_refuses_gives_what_the_operators_give(name):
    theirs, ours = answers(ran(library_forms.ONLY_HERE[name]))
    assert isinstance(theirs, Raised), "PyTorch does it now: the program belongs to PROGRAMS"
    through, without = ours
    assert through == close(without)


def test_a_gradient_that_a_kernel_records_is_not_used():
    theirs, ours = answers(ran(library_forms.BELOW_AUTOGRAD))
    assert theirs == ({"test_autograd_registration": False}, ("float32", "1", [1.0]))
    assert ours == ({"test_autograd_registration": True}, None)


def test_the_program_that_the_guide_ports_gives_the_same_with_either_import():
    page = Path(__file__).parents[2] / "docs" / "custom-operators.md"
    shown = page.read_text("utf-8").partition("## Port an operator")[2].partition("```python\n")[2].partition("```")[0]
    imported = "import turnout as torch\n"
    assert shown.count(imported) == 1
    source = shown.replace(imported, "").replace("ported::", "your_namespace::").replace("ported.", "your_namespace.")
    same(*answers(ran(source + "result = x.grad, torch.library.opcheck(sin, (x,))")))


# What is refused by both, and what kind of error it is in torch.
REFUSED = {
    "kind": lambda f, library, ns: library.Library(ns, "def"),
    "reserved": lambda f, library, ns: library.Library("prim", "DEF"),
    "aten": lambda f, library, ns: library.Library("aten", "DEF"),
    "key": lambda f, library, ns: library.Library(ns, "IMPL", "Foo"),
    "key with DEF": lambda f, library, ns: library.Library(ns, "DEF", "CPU"),
    "two": lambda f, library, ns: [library.Library(ns, "DEF"), library.Library(ns, "DEF")],
    "twice": lambda f, library, ns: [
        library.define(f"{ns}::f", "(Tensor x) -> Tensor"), library.define(f"{ns}::f", "(Tensor x) -> Tensor")
    ],
    "define in IMPL": lambda f, library, ns: library.Library(ns, "IMPL").define("f(Tensor x) -> Tensor"),
    "other namespace": lambda f, library, ns: library.Library(ns, "FRAGMENT").define("other::f(Tensor x) -> Tensor"),
    "other namespace's kernel": lambda f, library, ns: library.Library(ns, "IMPL").impl("other::f", lambda x: x, "CPU"),
    "no schema": lambda f, library, ns: library.Library(ns, "FRAGMENT").define("f"),
    "alias analysis": lambda f, library, ns: library.Library(ns, "FRAGMENT").define("f(Tensor x) -> Tensor", "PURE"),
    "other key": lambda f, library, ns: library.Library(ns, "IMPL", "CPU").impl("f", lambda x: x, "CUDA"),
    "not callable": lambda f, library, ns: library.Library(ns, "IMPL").impl("f", 3, "CPU"),
    "not a name": lambda f, library, ns: library.Library(ns, "IMPL").impl(3, lambda x: x, "CPU"),
    "fallback": lambda f, library, ns: library.Library(ns, "IMPL").fallback(lambda op, *args: None, "CPU"),
    "no namespace": lambda f, library, ns: library.define("f", "(Tensor x) -> Tensor"),
    "name of another type": lambda f, library, ns: library.define(3, "(Tensor x) -> Tensor"),
    "schema with a name": lambda f, library, ns: library.define(f"{ns}::f", "f(Tensor x) -> Tensor"),
    "unknown device": lambda f, library, ns: library.impl(f"{ns}::f", "foo", lambda x: x),
    "rule for nothing": lambda f, library, ns: library.register_autograd(f"{ns}::f", lambda ctx, grad: grad),
    "rule for 3": lambda f, library, ns: library.register_autograd(3, lambda ctx, grad: grad),
    "mutates_args": lambda f, library, ns: library.custom_op(
        f"{ns}::f", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()"
    ),
    "rule for a writing operator": lambda f, library, ns: library.custom_op(
        f"{ns}::f", lambda x: None, mutates_args=["x"], schema="(Tensor(a!) x) -> ()"
    ).register_autograd(lambda ctx, grad: grad),
    "no annotation": lambda f, library, ns: library.custom_op(f"{ns}::f", lambda x: x, mutates_args=()),
    "no name for custom_op": lambda f, library, ns: library.custom_op(
        "f", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor"
    ),
    "no device argument": lambda f, library, ns: library.custom_op(
        f"{ns}::f", lambda n: f.ones(n), mutates_args=(), schema="(int n) -> Tensor", device_types="cpu"
    ),
    "meta beside composite": lambda f, library, ns: [
        lib := library.Library(ns, "DEF"), lib.define("f(Tensor x) -> Tensor"),
        lib.impl("f", lambda x: x), lib.impl("f", lambda x: x, "Meta"),
    ],
}  # fmt: skip


# differs from torch: a word that is no key and a text that is no schema are ValueErrors, there RuntimeErrors
VALUES = ("key", "no schema")


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused_with_an_error_of_its_kind(name):
    theirs, ours = answers(REFUSED[name])
    assert isinstance(theirs, Raised)
    assert isinstance(ours, Raised)
    # An assertion stands for a user's mistake there; ours are errors of registration.
    assert theirs.kinds & ours.kinds or theirs.kinds == {AssertionError} or name in VALUES, (theirs, ours)
