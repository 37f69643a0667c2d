"""`turnout.func.functional_call`, `module_state`, `stack_module_state`: objects that hold tensors, called with other ones."""

from __future__ import annotations

import dataclasses
from collections import namedtuple

import pytest
from turnout.func import functional_call, module_state, stack_module_state

import turnout
from outcomes import refused
from refusal_tables import rows, said
from turnout.errors import ArgumentError

Pair = namedtuple("Pair", "w b")


def tensor(*values, grad=False):
    return turnout.tensor(values[0] if len(values) == 1 else values, requires_grad=grad)


class Slotted:
    __slots__ = ("__weakref__", "empty", "scale")

    def __init__(self):
        self.scale = tensor(2.0)


@dataclasses.dataclass(frozen=True)
class Frozen:
    shift: turnout.Tensor


class Everything:
    """Tensors in all places where they may be."""

    def __init__(self):
        self.plain = tensor(1.0, grad=True)
        self.listed = [tensor(2.0, grad=True), {"deep": tensor(3.0)}]
        self.pairs = (Pair(tensor(4.0, grad=True), tensor(5.0)), (tensor(6.0),))
        self.slotted = Slotted()
        self.frozen = Frozen(tensor(7.0))
        self.name = "no tensor"
        self.function = turnout.exp
        self.itself = self

    def tensors(self):
        (w, b), (c,) = self.pairs
        return [self.plain, self.listed[0], self.listed[1]["deep"], w, b, c, self.slotted.scale, self.frozen.shift]

    def __call__(self, *args, **kwargs):
        return [t.item() for t in self.tensors()]

    def doubled(self):
        return [2 * t.item() for t in self.tensors()]


NAMES = ["plain", "listed.0", "listed.1.deep", "pairs.0.0", "pairs.0.1", "pairs.1.0", "slotted.scale", "frozen.shift"]


class Line:
    def __init__(self, slope=2.0, height=1.0):
        self.slope, self.height = tensor(slope, grad=True), tensor(height, grad=True)

    def __call__(self, x, *, times=1.0):
        return (self.slope * x + self.height) * times


def test_tensors_are_found_in_attributes_lists_tuples_dicts_slots_and_objects():
    parameters, buffers = module_state(Everything())
    assert {**parameters, **buffers}.keys() == set(NAMES)
    assert list(parameters) == ["plain", "listed.0", "pairs.0.0"]


def test_every_place_can_be_given_and_has_its_own_tensor_again_afterwards():
    module = Everything()
    before, pairs = module.tensors(), module.pairs
    given = {name: tensor(10.0 * i) for i, name in enumerate(NAMES)}
    assert functional_call(module, given) == [10.0 * i for i in range(8)]
    assert all(a is b for a, b in zip(module.tensors(), before, strict=True))
    assert module.pairs is pairs
    assert type(module.pairs[0]) is Pair
    assert functional_call(module.doubled, given) == [20.0 * i for i in range(8)]
    assert functional_call(module, {"pairs.0.1": tensor(0.0)}) == [1.0, 2.0, 3.0, 4.0, 0.0, 6.0, 2.0, 7.0]


def test_arguments_are_a_tuple_or_one_value_and_may_have_names():
    x = tensor(10.0)
    for args in (x, (x,)):
        assert functional_call(Line(), {"slope": tensor(3.0)}, args, {"times": 2.0}).item() == 62.0
    assert functional_call(Line(), ({"slope": tensor(3.0)}, {"height": tensor(0.0)}), x).item() == 30.0


def test_gradients_reach_the_given_tensors_and_not_those_of_the_module():
    module, slope = Line(), tensor(3.0, grad=True)
    functional_call(module, {"slope": slope}, tensor(10.0)).backward()
    assert slope.grad.item() == 10.0
    assert module.slope.grad is None
    assert module.height.grad.item() == 1.0


def test_gradients_of_a_function_of_the_parameters():
    module = Line()
    loss = lambda parameters, x: functional_call(module, parameters, x).square()  # noqa: E731
    found = turnout.func.grad(loss)(module_state(module)[0], tensor(10.0))
    assert {name: t.item() for name, t in found.items()} == {"slope": 420.0, "height": 42.0}
    each = turnout.vmap(turnout.func.grad(loss), in_dims=(None, 0))(module_state(module)[0], tensor(10.0, 0.0))
    assert each["slope"].tolist() == [420.0, 0.0]


def test_the_module_has_its_tensors_again_when_the_call_raises():
    class Failing(Line):
        def __call__(self, x):
            raise ValueError(self.slope.item())

    module = Failing()
    slope = module.slope
    assert "3.0" in refused(ValueError, lambda: functional_call(module, {"slope": tensor(3.0)}, tensor(1.0)))
    assert module.slope is slope


def test_a_tensor_that_is_held_twice_is_replaced_everywhere():
    class Tied:
        def __init__(self):
            self.one = self.other = tensor(1.0)

        def __call__(self):
            return self.one.item(), self.other.item()

    module, given = Tied(), tensor(5.0)
    assert list(module_state(module)[1]) == ["one"]
    assert functional_call(module, {"one": given}) == functional_call(module, {"other": given}) == (5.0, 5.0)
    assert functional_call(module, {"one": given, "other": given}) == (5.0, 5.0)
    assert functional_call(module, {"other": given}, tie_weights=False) == (1.0, 5.0)
    assert refused(ArgumentError, lambda: functional_call(module, {"one": given, "other": tensor(6.0)})) == (
        "functional_call: 'one' and 'other' are one tensor of the module, and different tensors are given for them\n"
        "  to fix  give one of them, or pass tie_weights=False"
    )
    assert functional_call(module, {"one": given}, strict=True) == (5.0, 5.0)


def test_what_the_call_assigns_is_put_into_the_dict():
    class Counting:
        def __init__(self):
            self.count, self.other = tensor(0.0), (tensor(1.0),)

        def __call__(self):
            self.count = self.count + 1
            self.other = None

    module, given = Counting(), {"count": tensor(5.0), "other.0": tensor(2.0)}
    functional_call(module, given)
    assert given["count"].item() == 6.0
    assert given["other.0"].item() == 2.0
    assert module.count.item() == 0.0
    assert module.other[0].item() == 1.0


def test_modules_are_stacked_for_vmap():
    models = [Line(2.0, 1.0), Line(3.0, 0.0)]
    parameters, buffers = stack_module_state(models)
    assert buffers == {}
    assert {name: t.tolist() for name, t in parameters.items()} == {"slope": [2.0, 3.0], "height": [1.0, 0.0]}
    assert all(t.is_leaf and t.requires_grad for t in parameters.values())
    call = turnout.vmap(lambda own, x: functional_call(models[0], own, x), in_dims=(0, None))
    call(parameters, tensor(10.0)).sum().backward()
    assert parameters["slope"].grad.tolist() == [10.0, 10.0]


def test_trees_without_a_module_are_stacked_by_map_leaves():
    trees = [{"w": [tensor(1.0, 2.0)], "b": tensor(1.0)}, {"w": [tensor(3.0, 4.0)], "b": tensor(2.0)}]
    stacked = turnout.trees.map_leaves(lambda *leaves: turnout.stack(leaves), *trees)
    assert stacked["w"][0].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    found = turnout.vmap(lambda tree, x: (tree["w"][0] * x).sum() + tree["b"], in_dims=(0, None))(stacked, tensor(1.0, 1.0))
    assert found.tolist() == [4.0, 9.0]
    assert refused(ArgumentError, turnout.trees.map_leaves, lambda a, b: a, [1], [1, 2]) == (
        "trees.map_leaves: tree 1 does not have the structure of tree 0"
    )


class Other(Line):
    pass


def dotted():
    module = Line()
    module.slope = {"a.b": tensor(1.0), "a": {"b": tensor(2.0)}}
    return module


def frozen_line():
    module = Line()
    module.slope = module.slope.detach()
    return module


def longer():
    module = Line()
    module.slope = tensor(1.0, 2.0, grad=True)
    return module


def wider():
    module = Line()
    module.more = tensor(1.0)
    return module


REFUSED = """
functional_call([tensor(1.0)], {})
    CallError: functional_call: argument 'module' must be callable, got list
functional_call(Line(), tensor(1.0))
    CallError: functional_call: the parameters must be a dict of tensors, or a list or tuple of such dicts; got Tensor
functional_call(Line(), {'slope': 1.0})
    CallError: functional_call: 'slope' must be a tensor, got float
functional_call(Line(), {'slop': tensor(1.0)})
    CallError: functional_call: the Line holds no tensor 'slop'; did you mean slope?
functional_call(Line(), [{'slope': tensor(1.0)}, {'slope': tensor(1.0)}])
    CallError: functional_call: 'slope' is in two of the dicts
functional_call(Line(), {}, kwargs=[1])
    CallError: functional_call: kwargs must be a dict of arguments, got list
functional_call(Line(), {'slope': tensor(1.0)}, strict=True)
    ArgumentError: functional_call: with strict=True every tensor of the Line must be given; 'height' is missing
functional_call(Line(), {}, strict=True)
    ArgumentError: functional_call: with strict=True every tensor of the Line must be given; 'slope', 'height' are missing
module_state(dotted())
    CallError: the Line holds two tensors that would both be called 'slope.a.b', because a key of a dict contains a dot
stack_module_state([])
    ArgumentError: stack_module_state: expected at least one module, got none
stack_module_state([Line(), Other()])
    ArgumentError: stack_module_state: all modules must be of one class; module 0 is of Line, module 1 of Other
stack_module_state([Line(), wider()])
    ArgumentError: stack_module_state: all modules must hold tensors of the same names; module 1 differs in 'more'
stack_module_state([Line(), frozen_line()])
    ArgumentError: stack_module_state: 'slope' requires a gradient in some of the modules, and in others not
stack_module_state([Line(), longer()])
    ArgumentError: stack_module_state: 'slope' is float32 [] in module 0, and float32 [2] in module 1
"""


@pytest.mark.parametrize(("call", "says"), rows(REFUSED))
def test_wrong_arguments_are_named(call, says):
    assert said(call, globals()) == says
