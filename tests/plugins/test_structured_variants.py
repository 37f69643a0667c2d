"""The variants that one array kernel serves: what is written where, what is resized, refused and copied back."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import turnout
from outcomes import refused
from turnout.errors import AliasError, DTypeError
from turnout.registry import REGISTRY, Registrations
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.declarations import load_yaml
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.binding import shape_function
from turnout_aten.shapes.specs import Out

tensor = turnout.tensor


X = [0.5, 1.5, 0.25]


# ---- one shape function, one kernel


def test_every_structured_group_has_one_shape_function_and_nothing_else_has_one():
    assert all(callable(shape_function(group)) for group in STRUCTURED)
    served = [variant for variants, *_ in STRUCTURED.values() for variant in variants]
    assert len(served) == len(set(served))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_all_variants_of_a_structured_group_are_served_by_one_kernel_of_a_backend(device):
    key = turnout.zeros(1, device=device).device.backend.name
    found = {}
    for group, (variants, *_) in STRUCTURED.items():
        kernels = [REGISTRY.find(variant).kernels for variant in variants]
        assert not any(alias.startswith("Composite") for table in kernels for alias in table), group
        # Without those of packages over it.
        own = [[kernel for kernel in table.get(key, ()) if not kernel.yields] for table in kernels]
        assert {len(each) for each in own} == {1}, group
        found[group] = {kernel.fn for [kernel] in own}
    assert {group for group, functions in found.items() if len(functions) != 1} == set()


# ---- what they compute


def test_out_of_another_shape_is_resized_with_a_warning_and_an_empty_one_without():
    out = turnout.zeros(2)
    with pytest.warns(UserWarning, match="resized") as caught:
        made = turnout.add(tensor(X), 1, out=out)
    assert made is out
    assert out.tolist() == [1.5, 2.5, 1.25]
    [warning] = caught
    assert warning.filename == __file__
    assert str(warning.message) == (
        "aten::add.Scalar_out: an output with 2 elements of shape [2] was resized to [3]; pass an empty tensor or one of the "
        "right shape"
    )
    empty = turnout.zeros(0)
    turnout.exp(tensor([[0.0], [0.0]]), out=empty)
    assert empty.tolist() == [[1.0], [1.0]]


def test_a_dtype_that_cannot_hold_the_result_is_refused_and_a_wider_one_converts():
    x = tensor(X)
    ints = tensor([1, 2, 3])
    text = "the result has dtype float32, which cannot be written into int64"
    assert refused(DTypeError, turnout.add, x, x, out=ints) == f"aten::add.out: {text}"
    assert refused(DTypeError, ints.add_, x) == f"aten::add_.Tensor: {text}"
    assert refused(DTypeError, ints.div_, 2) == f"aten::div_.Scalar: {text}"
    assert ints.tolist() == [1, 2, 3]
    wide = turnout.zeros(3, dtype=turnout.float64)
    assert turnout.add(x, x, out=wide).dtype is turnout.float64
    assert wide.tolist() == [1.0, 3.0, 0.5]
    assert x.add_(ints).dtype is turnout.float32
    for name in ("add", "sub", "subtract", "mul", "multiply", "floor_divide", "fmod", "remainder"):
        call = getattr(turnout, name)
        assert call(ints, 2, out=wide).tolist() == call(ints, 2).tolist()
    assert turnout.nansum(ints, 0, out=wide[0]).item() == 6


EXPANDED = "cannot write into an expanded tensor: several of its elements are one memory location; clone() it first"
OVERLAP = "the output and an input share part of their memory; clone() one of them first"


def test_expanded_outputs_and_those_that_overlap_an_input_in_part_are_refused():
    x = tensor(X)
    assert refused(AliasError, turnout.ones(1).expand(3).add_, x) == f"aten::add_.Tensor: {EXPANDED}"
    assert refused(AliasError, turnout.exp, x, out=turnout.ones(1).expand(3)) == f"aten::exp.out: {EXPANDED}"
    memory = tensor([1.0, 2.0, 3.0, 4.0])
    assert refused(AliasError, turnout.add, memory[:3], x, out=memory[1:]) == f"aten::add.out: {OVERLAP}"
    assert refused(AliasError, memory[1:].mul_, memory[:3]) == f"aten::mul_.Tensor: {OVERLAP}"
    assert memory.tolist() == [1.0, 2.0, 3.0, 4.0]


LARGE = 5000  # beyond the size up to which in-place calls compute aside


def test_large_tensors_in_place_follow_the_same_rules_as_small_ones():
    x = turnout.arange(LARGE, dtype=turnout.float32)
    array = x.array
    assert x.sub_(turnout.ones(LARGE), alpha=2).tolist() == [i - 2.0 for i in range(LARGE)]
    assert x.add_(x, alpha=0.5)[4].item() == 3.0
    assert x.array is array
    assert x._version == 2
    with np.errstate(all="raise"):
        assert x.div_(turnout.zeros(LARGE))[0].item() == float("-inf")
    refused(DTypeError, x.add_, turnout.ones(LARGE), alpha=1j)
    assert x[0].item() == float("-inf")
    assert x._version == 3


def test_large_tensors_that_overlap_or_repeat_elements_are_refused_in_place():
    memory = turnout.zeros(LARGE + 1)
    assert refused(AliasError, memory[:-1].add_, memory[1:]) == f"aten::add_.Tensor: {OVERLAP}"
    assert "clone() it first" in refused(AliasError, turnout.zeros(1).expand(LARGE).mul_, turnout.ones(LARGE))
    turned = turnout.zeros(70, 90).t()
    assert turned.add_(turnout.ones(90, 70)).sum().item() == 6300.0


# ---- a third party's own file

YAML = """
- func: soft(Tensor self, float at) -> Tensor
  variants: function
  structured_delegate: soft.out

- func: soft_(Tensor(a!) self, float at) -> Tensor(a!)
  structured_delegate: soft.out

- func: soft.out(Tensor self, float at, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: soft_numpy
    GPU: soft_numpy
    Meta: soft_shape

- func: total(Tensor self) -> Tensor
  dispatch:
    CPU: total_on_host
    GPU: total_on_gpu

- func: twice(Tensor self) -> Tensor
  dispatch:
    CompositeImplicitAutograd: twice
"""


def soft_numpy(self, at, out):
    np.multiply(np.sign(self), np.maximum(np.abs(self) - at, 0), out)


def soft_shape(self, at):
    return Out(self.shape, self.dtype)


@pytest.fixture
def third_party(tmp_path, monkeypatch):
    """The file of somebody else, with kernels for a device that is not installed."""
    (tmp_path / "ops.yaml").write_text(YAML)
    module = types.ModuleType("third_party_kernels")
    module.soft_numpy, module.soft_shape = soft_numpy, soft_shape
    module.total_on_host = lambda self: self.sum()
    module.total_on_gpu = lambda self: turnout.zeros_like(self)
    module.twice = lambda self: self + self
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with Registrations("thirdparty", distribution="third-party", version="2.0") as library:
        load_yaml(tmp_path / "ops.yaml", module=module, library=library)
        yield turnout.ops.thirdparty


def test_dispatch_names_are_functions_of_the_third_partys_module_for_each_backend(third_party):
    x = tensor([-2.0, 0.5, 3.0])
    assert third_party.soft(x, 1.0).tolist() == [-1.0, 0.0, 2.0]
    assert third_party.total(x).item() == 1.5
    assert third_party.twice(x).tolist() == [-4.0, 1.0, 6.0]
    assert third_party.soft(turnout.ones(2, 3, device="meta"), 1.0).shape == (2, 3)


def test_a_third_partys_structured_operator_has_all_variants_from_one_kernel(third_party):
    x, out = tensor([-2.0, 0.5, 3.0]), turnout.zeros(6)[::2]
    assert third_party.soft.out(x, 1.0, out=out) is out
    assert out.tolist() == [-1.0, 0.0, 2.0]
    with pytest.warns(UserWarning, match="resized"):
        third_party.soft.out(x, 1.0, out=turnout.zeros(2))
    assert third_party.soft_(x, 1.0) is x
    assert (x.tolist(), x._version) == ([-1.0, 0.0, 2.0], 1)


def test_a_third_partys_kernels_for_a_backend_that_is_not_there_wait_for_it(third_party):
    total = third_party.total.default
    assert "GPU" in total.kernels
    assert "GPU" not in total.table()
    with Registrations("gpu", distribution="elsewhere") as library:

        class Gpu(TensorBackend):
            name = "GPU"
            device_type = "gpu"

        library.backend(Gpu())
        assert total.table()["GPU"].reason == "kernel"
    assert "GPU" not in total.table()
