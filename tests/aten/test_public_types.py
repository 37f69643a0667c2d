"""What is a type in PyTorch is one here: for isinstance, in annotations, and in what infers a schema from these."""

from __future__ import annotations

import copy
import pickle
import sys
from types import FunctionType, ModuleType

import pytest

import turnout
from turnout import library

EXAMPLES = [
    ("device", turnout.device("cuda", 1)), ("dtype", turnout.float32), ("layout", turnout.strided),
    ("layout", turnout.ones(1).layout),
    ("memory_format", turnout.channels_last), ("Size", turnout.ones(2).shape), ("Tensor", turnout.ones(1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), EXAMPLES)
def test_a_public_type_has_instances_and_can_be_optional(name, value):
    kind = getattr(turnout, name)
    assert isinstance(value, kind)
    assert isinstance(None, kind | None)
    assert not isinstance("cpu", kind)
    assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("value", [turnout.device("meta"), turnout.strided, turnout.channels_last_3d, turnout.float16])
def test_their_values_are_the_same_object_after_a_copy_and_a_pickle(value):
    for made in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert made is value


def test_a_device_is_named_by_text_or_by_type_and_index_and_is_one_object():
    assert turnout.device("cuda:1") is turnout.device("cuda", 1) is turnout.device(turnout.device("cuda:1"))


def test_a_block_of_a_device_makes_it_the_default_one():
    meta = turnout.device("meta")
    with meta:
        assert turnout.ones(1).is_meta
        with turnout.device("cpu"), meta, meta:
            assert turnout.tensor([1.0]).is_meta
        assert turnout.ones(1).is_meta
    assert turnout.ones(1).device.type == "cpu"
    with pytest.raises(turnout.errors.DeviceError, match="nowhere"), turnout.device("nowhere"):
        turnout.ones(1)


def test_a_schema_is_inferred_from_an_annotation_with_a_device():
    def made(n: int, device: turnout.device, dtype: turnout.dtype | None = None) -> turnout.Tensor: ...

    assert library.infer_schema(made, mutates_args=()) == "(SymInt n, Device device, ScalarType? dtype=None) -> Tensor"


def test_names_of_formats_are_shown_as_constants_and_equal_their_texts():
    assert (repr(turnout.channels_last), repr(turnout.strided)) == ("turnout.channels_last", "turnout.strided")
    assert turnout.channels_last == "channels_last" == turnout.memory_format("channels_last")
    x = turnout.ones(1, 2, 3, 3).to(memory_format=turnout.channels_last)
    assert x.is_contiguous(memory_format="channels_last")
    assert turnout.linalg.LinAlgError is turnout.errors.LinAlgError


# ---- where they say that they are


def test_public_classes_and_functions_name_the_public_module_and_can_be_pickled():
    names = turnout.plugins.facade().names()
    rooms = {"turnout": turnout, **{f"turnout.{name}": getattr(turnout, name) for name in names}}
    rooms = {home: room for home, room in rooms.items() if isinstance(room, ModuleType)} | {"F": turnout.nn.functional}
    checked = 0
    for home, room in rooms.items():
        for name in set(dir(room)) & {*vars(room), *(names if room is turnout else ())}:
            value = getattr(room, name)
            if isinstance(value, (type, FunctionType)) and value.__qualname__ == name:
                assert value.__module__.partition(".")[0] == "turnout", (home, name)
                assert pickle.loads(pickle.dumps(value)) is value
                checked += 1
    assert checked > 200
    assert (turnout.vmap.__module__, turnout.autograd.Function.__module__) == ("turnout", "turnout.autograd")


def test_what_a_tensor_is_leads_to_the_functions_for_it():
    x = turnout.ones(2)
    assert sys.modules[type(x).__module__].sum(x).item() == 2.0
    assert (type(x.shape).__module__, type(turnout.Generator()).__module__) == ("turnout", "turnout")


@pytest.mark.parametrize(("older", "value"), [
    (b"cturnout_aten.tensor.size\nSize\n.", turnout.Size), (b"cturnout_aten.tensor.tensor\nTensor\n.", turnout.Tensor),
    (b"cturnout.devices\ndevice\n(S'cuda:1'\ntR.", turnout.device("cuda", 1)),
])  # fmt: skip
def test_pickles_that_name_other_modules_are_read(older, value):
    assert pickle.loads(older) is value
