"""A third party's yaml at run time: names become functions of its module, all or nothing; kernels can wait."""

from __future__ import annotations

from types import ModuleType

import pytest

from outcomes import refused
from turnout.errors import KernelSignatureError
from turnout.registry import REGISTRY, Registrations
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.declarations import load_yaml
from turnout_aten.errors.declarations import DeclarationError

YAML = """
- func: twice(int x) -> int
- func: shift(Tensor self, int by=1) -> Tensor
  device_check: NoCheck
  dispatch:
    CPU: kernels.shift_cpu
    Zeta: kernels.shift_zeta
- func: stretch_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CompositeExplicitAutograd: stretch_
  autogen: stretch, stretch.out
"""


class Zeta(TensorBackend):
    name = "Zeta"
    device_type = "zeta"


@pytest.fixture
def module():
    made = ModuleType("thirdparty_kernels")
    made.twice = lambda x: 2 * x
    made.stretch_ = lambda self: self
    made.kernels = ModuleType("kernels")
    made.kernels.shift_cpu = lambda self, by: ("cpu", self, by)
    made.kernels.shift_zeta = lambda self, by: ("zeta", self, by)
    return made


@pytest.fixture
def library():
    with Registrations("third") as made:
        yield made


def written(tmp_path, text=YAML):
    path = tmp_path / "ops.yaml"
    path.write_text(text)
    return path


def test_operators_are_defined_and_kernels_resolved(tmp_path, module, library):
    functions = load_yaml(written(tmp_path), module=module, library=library)
    assert [f.qualified_name for f in functions] == [
        "third::twice", "third::shift", "third::stretch_", "third::stretch.out", "third::stretch",
    ]  # fmt: skip
    assert REGISTRY.find("third::twice")(4) == 8
    shift = REGISTRY.find("third::shift")
    assert not shift.device_check
    assert REGISTRY.find("third::stretch.out").tags == ("generated",)
    library.undo()
    assert "third::shift" not in REGISTRY.operators
    assert not REGISTRY.packets.get("third")


def test_a_kernel_waits_for_its_backend(tmp_path, module, library):
    load_yaml(written(tmp_path), module=module, library=library)
    shift = REGISTRY.find("third::shift")
    assert "Zeta" in shift.kernels
    assert "Zeta" not in shift.table()
    with Registrations("zeta-plugin") as plugin:
        plugin.backend(Zeta())
        assert shift.kernel("Zeta")("x") == ("zeta", "x", 1)
        assert shift.table()["Zeta"].reason == "kernel"
    assert "Zeta" in shift.kernels
    assert "Zeta" not in shift.table()


def test_all_wrong_names_are_reported_together_and_nothing_stays(tmp_path, module, library):
    del module.twice
    module.kernels.shift_zeta = 3
    with pytest.raises(DeclarationError) as caught:
        load_yaml(written(tmp_path), module=module, library=library)
    path = tmp_path / "ops.yaml"
    assert str(caught.value) == (
        "2 problems\n"
        f"  {path}:2: twice: dispatch: CompositeImplicitAutograd: thirdparty_kernels has no function 'twice'\n"
        f"  {path}:3: shift: dispatch: Zeta: thirdparty_kernels.kernels.shift_zeta is not a function: 3"
    )
    assert not [name for name in REGISTRY.operators if name.startswith("third::")]
    assert library.provided() == set()


def test_a_kernel_that_does_not_fit_leaves_nothing_behind(tmp_path, module, library):
    module.kernels.shift_cpu = lambda self: self
    refused(KernelSignatureError, load_yaml, written(tmp_path), module=module, library=library)
    assert not [name for name in REGISTRY.operators if name.startswith("third::")]
    assert library.provided() == set()


def test_what_the_library_had_before_stays_after_a_failure(tmp_path, module, library):
    library.define("kept(int x) -> int")
    del module.twice
    refused(DeclarationError, load_yaml, written(tmp_path), module=module, library=library)
    assert library.provided() == {"namespace:third"}


def test_a_structured_operator_needs_a_shape_function(tmp_path, module, library):
    text = """
- func: f(Tensor self) -> Tensor
  structured_delegate: f.out
- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: twice
"""
    assert refused(DeclarationError, load_yaml, written(tmp_path, text), module=module, library=library) == (
        f"{tmp_path / 'ops.yaml'}:4: f.out: structured: the shape function is missing; name it as `dispatch: Meta: f`, "
        "or pass it in shapes="
    )


def test_a_structured_kernel_serves_every_variant(tmp_path, module, library):
    text = """
- func: f(Tensor self) -> Tensor
  structured_delegate: f.out
- func: f_(Tensor(a!) self) -> Tensor(a!)
  structured_delegate: f.out
- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    Meta: shape
    Zeta: twice
"""
    module.shape = lambda self: None
    load_yaml(written(tmp_path, text), module=module, library=library)
    for name in ("third::f", "third::f_", "third::f.out"):
        kernels = REGISTRY.find(name).kernels
        assert set(kernels) == {"Meta", "Zeta"}
        assert kernels["Zeta"][0].fn is module.twice
