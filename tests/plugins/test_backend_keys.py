"""A functionality with a key for each backend: how a tensor gets the key, and what keeps it."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import turnout
from outcomes import refused
from turnout.errors import AliasError, ArgumentError, CallError
from turnout.keys import KEYS
from turnout.registry import Registrations
from turnout_aten.tensor.backend_keys import with_key, without_key


class Own(turnout.Tensor):
    """A subclass that adds nothing."""


@pytest.fixture
def quantized():
    """int8 codes of numbers times 4, under keys that stand for the backend's own."""
    turnout.ones(1)
    with Registrations("quant") as library:
        library.functionality("Quantized", per_backend="Quantized", after="Dense", backend_key=True)
        library.impl("aten::add.Tensor", "QuantizedCPU", add)
        yield library


def add(x, y, alpha=1):
    return with_key(turnout.add(without_key(x, "Quantized"), without_key(y, "Quantized"), alpha=alpha), "Quantized")


def codes():
    return with_key(turnout.tensor([1, 2, 3], dtype=turnout.int8), "Quantized")


def keys_of(tensor):
    return [key for key in KEYS.names(tensor.keys) if key.endswith("CPU") and "Auto" not in key]


def test_the_key_stands_for_the_backends_own(quantized):
    assert keys_of(codes()) == ["QuantizedCPU"]
    assert keys_of(without_key(codes(), "Quantized")) == ["CPU"]
    assert keys_of(codes() + codes()) == ["QuantizedCPU"]
    assert without_key(codes() + codes(), "Quantized").tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    "make",
    [
        lambda q: q.view(3, 1), lambda q: q[1:],
        lambda q: q[0], lambda q: q.t(), lambda q: q.reshape(1, 3), lambda q: q.expand(2, 3),
        lambda q: q.unsqueeze(0), lambda q: q.detach(), lambda q: q.split(1)[0], lambda q: q.unbind()[1], lambda q: q.chunk(2)[1],
        lambda q: q.as_strided((2,), (1,), 1), lambda q: q.flatten(),
        lambda q: q.transpose(0, 0), lambda q: q.view(turnout.uint8),
        lambda q: q.clone(), lambda q: q[::2].contiguous(), copy.deepcopy,
        copy.copy, lambda q: pickle.loads(pickle.dumps(q)), lambda q: turnout.as_subclass(q, Own),
        lambda q: copy.copy(turnout.as_subclass(q, Own)), lambda q: pickle.loads(pickle.dumps(turnout.as_subclass(q, Own))),
        lambda q: with_key(q, "Quantized"), lambda q: q.view(3, 1).clone(),
    ],
)  # fmt: skip
def test_views_and_copies_keep_it(quantized, make):
    assert keys_of(make(codes())) == ["QuantizedCPU"]


def test_the_memory_is_shared_and_its_version_counted(quantized):
    plain = turnout.tensor([1, 2, 3], dtype=turnout.int8)
    q = with_key(plain, "Quantized")
    plain.add_(1)
    assert without_key(q[1:], "Quantized").tolist() == [3, 4]
    assert q._version == plain._version


def test_a_key_that_is_no_backend_key_is_added(quantized):
    quantized.functionality("Profiled", per_backend="Profiled", after="Autograd")
    quantized.fallthrough("ProfiledCPU")
    made = with_key(turnout.ones(2), "Profiled")
    assert keys_of(made) == ["ProfiledCPU", "CPU"]
    assert keys_of(made.view(2, 1)) == ["ProfiledCPU", "CPU"]
    assert keys_of(without_key(made, "Profiled")) == ["CPU"]


def test_plain_tensors_have_the_same_keys_as_ever(quantized):
    x = turnout.ones(2)
    assert x.view(2, 1).keys is x.keys
    assert x.clone().keys is x.keys


def test_a_functionality_without_such_keys_is_refused(quantized):
    assert refused(ArgumentError, lambda: with_key(turnout.ones(2), "Tracer")) == (
        "with_key: 'Tracer' is not a functionality with a key for each backend; there are: Quantized"
    )


def test_a_tensor_that_requires_a_gradient_is_refused(quantized):
    assert refused(AliasError, lambda: with_key(turnout.ones(2, requires_grad=True), "Quantized")) == (
        "with_key: the tensor requires a gradient, which the new one would not record; detach() it first"
    )


def test_explain_names_no_package_where_the_plugin_simply_has_no_kernel(quantized):
    text = str(turnout.explain("exp", codes()))
    assert "QuantizedCPU" in text
    assert "pip install" not in text


def test_bits_of_the_functionality_are_those_of_the_universe(quantized):
    assert codes().keys & KEYS.bit("Quantized")


def test_a_file_does_not_take_a_tensor_whose_key_it_could_not_give_back(quantized):
    assert refused(CallError, lambda: turnout.save({"codes": codes()}, io.BytesIO())) == (
        "save: obj['codes'] has the key Quantized, without which its elements mean something else; files hold no keys\n"
        "  to fix  save without_key(t, 'Quantized') of turnout_aten.tensor.backend_keys, or use pickle"
    )
