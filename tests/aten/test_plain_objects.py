"""Objects of other packages, with keys but no memory: what is recorded for tensors passes them by."""

from __future__ import annotations

import turnout
from turnout.devices import Backend
from turnout.registry import Registrations


class Box:
    """A value on the device boxes."""

    def __init__(self, value, keys):
        self.value = value
        self.keys = keys


class Boxes(Backend):
    name = "Boxes"
    device_type = "boxes"


def fill(box, value):
    box.value = value
    return box


def test_writes_and_views_of_objects_that_are_not_tensors_run_beside_an_active_operator_set():
    with Registrations("boxtest") as library:
        backend = Boxes()
        library.backend(backend)
        library.define("boxtest::fill_(Tensor(a!) self, int value) -> Tensor(a!)")
        library.define("boxtest::same(Tensor(a) self) -> Tensor(a)")
        library.define("boxtest::swap(Tensor(a!) x, Tensor(b!) y) -> ()")
        library.impl("boxtest::fill_", "Boxes", fill)
        library.impl("boxtest::same", "Boxes", lambda box: box)
        library.impl("boxtest::swap", "Boxes", lambda x, y: None)
        ops = turnout.ops.boxtest
        box = Box(1, backend.keys)
        assert turnout.ones(2).sum().item() == 2  # the operator set is active
        assert ops.fill_(box, 3).value == ops.same(box).value == 3
        assert ops.swap(box, box) is None
        with turnout.inference_mode():
            assert ops.fill_(box, 4).value == ops.same(box).value == 4
