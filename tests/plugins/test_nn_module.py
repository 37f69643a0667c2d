"""`turnout.nn.Module`: members, states, hooks, copies, and how other packages call modules."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pickle
import sys
import tomllib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnout
import turnout_nn
from outcomes import refused
from refusal_tables import rows, said
from turnout import nn
from turnout.errors import ArgumentError, CallError, ShapeError
from turnout_nn.errors import StateError

SOURCE = Path(turnout_nn.__file__).parent
PUBLIC = tomllib.loads((SOURCE / "plugin.toml").read_text("utf-8"))["provides"]["members"]["nn"]


class Net(nn.Module):
    """A module with each kind of member."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(turnout.tensor([2.0, 3.0]))
        self.steps = nn.Buffer(turnout.tensor(0))
        self.scratch = nn.Buffer(turnout.zeros(1), persistent=False)
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.register_parameter("shift", None)
        self.register_buffer("mask", None)
        self.tied = self.layers[0]
        self.plain = turnout.ones(2)

    def forward(self, x: turnout.Tensor) -> Any:
        return self.layers(x) * self.scale


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


# ---- depth

# Methods of `Module` that go through the modules inside -> the arguments, and the frames that a level of nesting takes.
THROUGH = {
    "__call__": ((turnout.ones(1, 1),), 2), "__repr__": ((), 1), "apply": ((id,), 1), "bfloat16": ((), 1), "buffers": ((), 0),
    "children": ((), 0), "cpu": ((), 1), "double": ((), 1), "eval": ((), 1), "float": ((), 1), "half": ((), 1),
    "load_state_dict": (({},), 1), "modules": ((), 0), "named_buffers": ((), 0), "named_children": ((), 0),
    "named_modules": ((), 0), "named_parameters": ((), 0), "parameters": ((), 0), "requires_grad_": ((), 0),
    "state_dict": ((), 1), "to": ((turnout.float32,), 1), "to_empty": ((), 1), "train": ((), 1), "type": ((turnout.float32,), 1),
    "zero_grad": ((), 0),
}  # fmt: skip
BY_NAME = {"load_state_dict": {"strict": False}, "to_empty": {"device": "cpu"}}
OF_ONE_MODULE = {
    "add_module", "cuda", "extra_repr", "forward", "get_buffer", "get_extra_state", "get_parameter", "get_submodule",
    "register_module", "register_parameter", "set_extra_state", "set_submodule",
}  # fmt: skip


def nested(levels: int, cls: type[nn.Module] = nn.Sequential) -> nn.Module:
    made: nn.Module = nn.Linear(1, 1)
    for _ in range(levels):
        made = cls(made)
    return made


def depth(method: str, levels: int) -> int:
    """The largest number of frames while a method of nested modules runs, and what it returns is read to its end."""
    module, most = nested(levels), 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal most
        count = 0
        while event == "call" and frame is not None:
            count, frame = count + 1, frame.f_back
        most = max(most, count)

    sys.setprofile(profile)
    try:
        found = getattr(module, method)(*THROUGH[method][0], **BY_NAME.get(method, {}))
        if isinstance(found, Iterator):
            deque(found, 0)
    finally:
        sys.setprofile(None)
    return most


@pytest.mark.parametrize("method", THROUGH)
def test_a_level_of_nested_modules_takes_no_more_frames_than_it_has_to(method):
    depth(method, 1)  # the first call of an operator takes more
    assert round((depth(method, 60) - depth(method, 20)) / 40) == THROUGH[method][1]


def test_every_method_of_modules_is_in_the_table_of_frames_or_is_of_one_module():
    public = {name for name in vars(nn.Module) if name[0] != "_" and callable(getattr(nn.Module, name))}
    public = {name for name in public if not name.startswith("register_") or not name.endswith(("_hook", "_buffer"))}
    assert public == (THROUGH.keys() - {"__call__", "__repr__"}) | OF_ONE_MODULE


def test_modules_inside_that_override_a_method_are_asked_at_every_depth():
    asked: list[str] = []

    class Own(nn.Sequential):
        def train(self, mode=True):
            asked.append("train")
            return super().train(mode)

        def apply(self, fn):
            asked.append("apply")
            return super().apply(fn)

        def state_dict(self, *args, **kwargs):
            asked.append("state_dict")
            return super().state_dict(*args, **kwargs)

        def named_modules(self, memo=None, prefix="", remove_duplicate=True):
            asked.append("named_modules")
            yield from super().named_modules(memo, prefix, remove_duplicate)

    own = nn.Sequential(nn.Sequential(Own(nn.Sequential(Own(nn.Linear(1, 1))))))
    plain = nested(5)
    for method in ("train", "apply", "state_dict", "named_modules"):
        asked.clear()
        found, expected = (getattr(each, method)(*THROUGH[method][0]) for each in (own, plain))
        if method == "state_dict":
            assert (list(found), found._metadata) == (list(expected), expected._metadata)
        elif method == "named_modules":
            assert names(found) == names(expected)
        assert asked == [method] * 2
    for named in (own.named_parameters(), own.named_buffers(), own.modules()):
        asked.clear()
        list(named)
        assert asked == ["named_modules"] * 2
    frozen = plain[0][0]
    frozen.train = lambda mode=True: asked.append("of the object")
    assert plain.eval()[0].training is False
    assert (asked[-1], frozen.training, frozen[0].training) == ("of the object", True, True)


# ---- members


def test_hooks_of_all_modules_come_before_their_own_and_cost_nothing_once_they_are_removed():
    told: list[Any] = []

    def note(word):
        return lambda module, *_: told.append((word, type(module).__name__))

    def member(word):
        return lambda module, name, value: told.append((word, name, value is None))

    of = turnout.nn.modules.module
    handles = [
        of.register_module_forward_pre_hook(note("before")),
        of.register_module_forward_hook(note("after")),
        of.register_module_full_backward_pre_hook(note("grads of outputs")),
        of.register_module_full_backward_hook(note("grads of inputs")),
        of.register_module_parameter_registration_hook(member("parameter")),
        of.register_module_buffer_registration_hook(member("buffer")),
        of.register_module_module_registration_hook(member("module")),
    ]
    net = nn.Sequential(nn.Linear(2, 2, bias=False))
    net[0].register_forward_hook(note("own"))
    net.register_buffer("held", turnout.ones(1))
    net.held = turnout.zeros(1)
    net.register_parameter("none", None)
    made = [("parameter", "weight", False), ("module", "0", False), ("buffer", "held", False), ("buffer", "held", False)]
    x = turnout.ones(3, 2, requires_grad=True)
    net(x).sum().backward()
    layers = ("Sequential", "Linear")
    there = [*(("before", name) for name in layers), ("after", "Linear"), ("own", "Linear"), ("after", "Sequential")]
    back = [("grads of outputs", "Sequential"), ("grads of outputs", "Linear")]
    assert told == [*made, *there, *back, ("grads of inputs", "Linear"), ("grads of inputs", "Sequential")]
    for handle in handles:
        handle.remove()
    assert nn.Module._module_hooks is None
    told.clear()
    net(x)
    assert told == [("own", "Linear")]


def test_members_are_registered_by_assignment_and_found_in_order():
    net = Net()
    assert names(net.named_parameters()) == ["scale", "layers.0.weight", "layers.0.bias"]
    assert names(net.named_parameters(remove_duplicate=False))[3:] == ["tied.weight", "tied.bias"]
    assert names(net.named_parameters(prefix="net", recurse=False)) == ["net.scale"]
    assert names(net.named_buffers()) == ["steps", "scratch"]
    assert names(net.named_children()) == ["layers", "tied"]
    assert names(net.named_modules()) == ["", "layers", "layers.0", "layers.1"]
    assert list(net.state_dict()) == ["scale", "steps", "layers.0.weight", "layers.0.bias", "tied.weight", "tied.bias"]
    assert (list(net._parameters), list(net._buffers), list(net._modules)) == (
        ["scale", "shift"], ["steps", "scratch", "mask"], ["layers", "tied"],
    )  # fmt: skip
    assert net._parameters["scale"] is net.scale is net.__dict__["scale"]
    assert isinstance(net.scale, nn.Parameter)
    assert not isinstance(net.plain, nn.Parameter)
    assert type(net.scale) is turnout.Tensor  # which the compiled call path takes
    assert issubclass(nn.Parameter, turnout.Tensor)


def test_a_name_is_of_one_kind_and_assignment_changes_the_kind():
    net = nn.Module()
    net.a = turnout.ones(1)
    for value, found in ((nn.Parameter(net.a), "p"), (nn.Buffer(net.a), "b"), (nn.Identity(), "m"), (nn.Parameter(net.a), "p")):
        net.a = value
        kinds = {"p": net._parameters, "b": net._buffers, "m": net._modules}
        assert {kind for kind, members in kinds.items() if "a" in members} == {found}
    net.a = None
    assert net._parameters == {"a": None}
    del net.a
    assert net._parameters == {}
    assert not hasattr(net, "a")
    net._modules["b"] = nn.Identity()
    del net._modules["b"]
    assert list(net.children()) == []


class Early(nn.Module):
    def __init__(self) -> None:
        self.inner = nn.Identity()


REFUSED = """
Early()
    MemberError: Early: 'inner' cannot be assigned before Module.__init__ has run
      to fix  call super().__init__() first in __init__
setattr(Net(), 'scale', 1.0)
    CallError: Net: 'scale' is a parameter, so it can be set to a parameter or None; got float
setattr(Net(), 'scale', turnout.ones(1))
    CallError: Net: 'scale' is a parameter, so it can be set to a parameter or None; got Tensor
setattr(Net(), 'steps', 1)
    CallError: Net: 'steps' is a buffer, so it can be set to a buffer or None; got int
setattr(Net(), 'layers', [])
    CallError: Net: 'layers' is a module, so it can be set to a module or None; got list
Net().register_parameter('p', turnout.ones(1))
    CallError: register_parameter: expected a parameter or None, got Tensor
Net().register_buffer('b', 1)
    CallError: register_buffer: expected a tensor or None, got int
Net().add_module('m', 1)
    CallError: add_module: expected a module or None, got int
Net().add_module('a.b', None)
    MemberNameError: add_module: a name must be a str without dots and not empty, got 'a.b'
Net().add_module(3, None)
    CallError: add_module: a name must be a str without dots and not empty, got 3
Net().register_buffer('forward', None)
    MemberNameError: register_buffer: Net has an attribute 'forward' already
nn.Parameter([1.0])
    CallError: Parameter: data must be a tensor, got list
nn.Buffer(1.0)
    CallError: Buffer: data must be a tensor, got float
nn.Module()(1)
    NotImplementedError: Module has no forward(); a module defines one to be called
Net().wieght
    AttributeError: 'Net' object has no attribute 'wieght'
Net().get_parameter('layers.0.wieght')
    MemberError: get_parameter: 'layers.0.wieght': Linear has no 'wieght'; did you mean weight?
Net().get_submodule('scale')
    MemberError: get_submodule: 'scale' is a Tensor, not a module
Net().get_submodule('scale.x')
    MemberError: get_submodule: 'scale.x' is a Tensor, not a module
Net().get_buffer('scale')
    MemberError: get_buffer: 'scale' is a Tensor, not a buffer
Net().get_parameter('shift')
    MemberError: get_parameter: 'shift' is None, not a parameter
Net().train(1)
    DataError: train: mode must be True or False, got 1
Net().to(turnout.int64)
    CallError: to: a module's dtype must be floating-point or complex, got turnout.int64
nn.Sequential(nn.Identity()) * 0
    ArgumentError: Sequential: the modules can be repeated once or more, got 0
nn.Sequential(nn.Identity())[1]
    DimError: Sequential: index 1 is out of range for 1 members
nn.ModuleList().extend(1)
    CallError: ModuleList.extend: expected an iterable, got int
nn.ModuleDict([1])
    ArgumentError: expected pairs of a name and a value, got 1
nn.Net
    PublicNameError: module 'turnout.nn' has no attribute 'Net'
nn.Linaer
    PublicNameError: module 'turnout.nn' has no attribute 'Linaer'; did you mean Linear?
nn.Hardtanh(2, 1)
    ArgumentError: Hardtanh: max_val must be above min_val; got 2 and 1
nn.Dropout(2)
    ArgumentError: Dropout: p must be from 0 to 1, got 2
nn.Softmax2d()(turnout.ones(2))
    ShapeError: Softmax2d: expected an input of 3 or 4 dimensions, got [2]
nn.BatchNorm1d(2)(turnout.ones(2))
    ShapeError: BatchNorm1d: expected an input of 2 or 3 dimensions, got [2]
nn.InstanceNorm1d(3, affine=True)(turnout.ones(2, 2))
    ArgumentError: InstanceNorm1d: expected 3 channels, got [2, 2]
nn.Conv1d(4, 6, 1, groups=4)
    ArgumentError: Conv1d: groups must be positive and divide the channels; got 4 groups of 4 and 6
nn.Conv1d(1, 1, 1, padding='full')
    ArgumentError: Conv1d: padding must be numbers, 'same' or 'valid'; got 'full'
nn.Conv1d(1, 1, 1, 2, padding='same')
    ArgumentError: Conv1d: padding 'same' needs a stride of 1, got (2,)
nn.ConvTranspose1d(1, 1, 1, padding_mode='reflect')
    ArgumentError: ConvTranspose1d: padding_mode must be one of 'zeros'; got 'reflect'
nn.ConvTranspose1d(1, 1, 2, 2)(turnout.ones(1, 1, 3), [9])
    ShapeError: ConvTranspose1d: output_size must be from [6] to [7] for this input, got [9]
nn.ConvTranspose1d(1, 1, 2)(turnout.ones(1, 1, 3), [])
    ShapeError: ConvTranspose1d: output_size must have 1 to 3 numbers, got []
nn.Bilinear(0, 1, 1)
    ArgumentError: Bilinear: in1_features must be an integer above 0, got 0
nn.FractionalMaxPool2d(2)
    ArgumentError: FractionalMaxPool2d: give one of output_size and output_ratio
nn.FractionalMaxPool2d(2, output_ratio=2.0)
    ArgumentError: FractionalMaxPool2d: output_ratio must be between 0 and 1, got (2.0, 2.0)
nn.utils.parameters_to_vector(nn.LazyLinear(2).parameters())
    ShapeError: a parameter of a lazy module has no shape before the module's first call
      to fix  call the module once, or load a state into it
nn.utils.vector_to_parameters(turnout.ones(2), nn.LazyLinear(2).parameters())
    ShapeError: a parameter of a lazy module has no shape before the module's first call
      to fix  call the module once, or load a state into it
nn.LazyLinear(2).weight.shape
    ShapeError: a parameter of a lazy module has no shape before the module's first call
      to fix  call the module once, or load a state into it
"""


@pytest.mark.parametrize(("call", "says"), rows(REFUSED))
def test_what_cannot_be_is_an_error_that_says_so(call, says):
    assert said(call, globals()) == says


def test_a_parameter_with_a_history_is_refused():
    made = (turnout.ones(2, requires_grad=True) * 2).as_subclass(nn.Parameter)
    assert refused(CallError, nn.Module().register_parameter, "p", made) == (
        "register_parameter: 'p' has a history, so it is not a leaf that can be trained\n"
        "  to fix  register a leaf, and compute from it in forward()"
    )


# ---- changes of a module


def test_a_module_is_converted_in_place_and_its_parameters_stay_the_same_objects():
    net = Net()
    net(turnout.ones(1, 2)).sum().backward()
    before = list(net.parameters())
    assert net.double() is net
    assert all(a is b for a, b in zip(before, net.parameters(), strict=True))
    found = {tensor.dtype for tensor in [*net.parameters(), net.scale.grad, net.layers[0].weight.grad, net.scratch]}
    assert found == {turnout.float64}
    assert net.steps.dtype is turnout.int64
    assert net.scale.tolist() == [2.0, 3.0]
    assert net(turnout.ones(1, 2, dtype=turnout.float64)).dtype is turnout.float64
    assert all(isinstance(p, nn.Parameter) and p.is_leaf and p.requires_grad for p in net.parameters())
    net.to("meta", turnout.float16, True)
    assert {str(p.device) for p in net.parameters()} == {"meta"}
    net.to_empty(device="cpu")
    assert {str(p.device) for p in [*net.parameters(), *net.buffers()]} == {"cpu"}
    assert net.to(turnout.ones(1)).scale.dtype is turnout.float32


def test_modes_gradients_and_functions_reach_all_modules():
    net, seen = Net(), []
    net.eval()
    assert [module.training for module in net.modules()] == [False] * 4
    net.train()
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "ReLU", "Sequential", "Linear", "Net"]
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(turnout.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0, 0.0]
    net.zero_grad()
    assert net.scale.grad is None


def test_modules_are_replaced_by_name():
    net = Net()
    net.set_submodule("layers.1", nn.Tanh())
    assert isinstance(net.get_submodule("layers.1"), nn.Tanh)
    assert isinstance(net.get_submodule(""), Net)
    assert "'layers.7': Sequential has no '7'" in refused(AttributeError, net.set_submodule, "layers.7", nn.Tanh(), True)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["deepcopy", "pickle"])
def test_a_copy_has_parameters_of_its_own_that_are_tied_as_they_were(again):
    net = Net().eval()
    made = again(net)
    assert all(isinstance(p, nn.Parameter) for p in made.parameters())
    assert isinstance(made.steps, nn.Buffer)
    assert made.tied is made.layers[0]
    assert not made.training
    assert names(made.named_parameters()) == names(net.named_parameters())
    made.scale.data.zero_()
    assert net.scale.tolist() == [2.0, 3.0]
    assert list(made.state_dict()) == list(net.state_dict())
    assert isinstance(again(nn.Parameter(turnout.ones(1))), nn.Parameter)


# ---- states


def test_a_state_is_loaded_and_says_what_does_not_fit():
    net, other = Net(), Net()
    assert str(net.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    assert net.layers[0].weight.equal(other.layers[0].weight)
    state = other.state_dict()
    state["layers.0.bais"] = state.pop("layers.0.bias")
    state["scale"], state["steps"] = turnout.ones(3), 1
    text = (
        "load_state_dict: the state does not fit Net\n"
        "  missing    layers.0.bias\n"
        "  not known  layers.0.bais\n"
        "  wrong      scale has shape [3], and the module's has [2]\n"
        "  wrong      steps must be a tensor, got int"
    )
    assert refused(StateError, net.load_state_dict, state) == text
    assert issubclass(StateError, RuntimeError)
    del state["scale"], state["steps"]
    found = net.load_state_dict(state, strict=False)
    assert (sorted(found.missing_keys), found.unexpected_keys) == (["layers.0.bias", "scale", "steps"], ["layers.0.bais"])
    assert refused(CallError, net.load_state_dict, 3) == "load_state_dict: expected a dict of tensors, got int"


def test_a_state_is_saved_and_loaded_as_it_is(tmp_path):
    net, other = Net(), Net()
    net.steps.fill_(7)
    turnout.save(net.state_dict(), tmp_path / "net")
    assert repr(other.load_state_dict(turnout.load(tmp_path / "net"))) == "<All keys matched successfully>"
    assert {name: tensor.tolist() for name, tensor in other.state_dict().items()} == {
        name: tensor.tolist() for name, tensor in net.state_dict().items()
    }
    assert copy.deepcopy(net.state_dict())._metadata == net.state_dict()._metadata
    assert repr(net.load_state_dict({}, strict=False)).startswith("Loaded(missing_keys=['scale', ")


def test_an_assigned_state_keeps_its_tensors_and_dtypes():
    net = nn.Linear(2, 1)
    state = {"weight": turnout.ones(1, 2, dtype=turnout.float64), "bias": turnout.zeros(1, dtype=turnout.float64)}
    net.load_state_dict(state, assign=True)
    assert net.weight.dtype is turnout.float64
    assert isinstance(net.weight, nn.Parameter)
    assert net.weight.requires_grad
    assert net.weight.shares_memory_with(state["weight"])


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def get_extra_state(self) -> Any:
        return self.count

    def set_extra_state(self, state: Any) -> None:
        self.count = state


def test_a_state_has_more_than_tensors_where_a_class_says_so_and_hooks_see_it():
    net, seen = Counting(), []
    net.count = 3
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append("save"))
    net.register_state_dict_post_hook(lambda module, state, prefix, metadata: seen.append(dict(state)))
    net.register_load_state_dict_pre_hook(lambda module, state, *rest: state.update(_extra_state=4))
    net.register_load_state_dict_post_hook(lambda module, keys: seen.append(keys))
    state = net.state_dict()
    assert seen == ["save", {"_extra_state": 3}]
    net.load_state_dict(state)
    assert net.count == 4
    assert seen[2] == ([], [])


def test_a_state_of_batch_normalisation_without_its_count_is_loaded():
    net = nn.BatchNorm1d(2)
    state = {name: value for name, value in net.state_dict().items() if name != "num_batches_tracked"}
    net.load_state_dict(state)
    assert net.num_batches_tracked.item() == 0


# ---- hooks


def test_hooks_run_around_forward_in_order_and_may_change_what_passes():
    net, seen = nn.Identity(), []
    net.register_forward_pre_hook(lambda module, args: seen.append("before") or (args[0] + 1,))
    net.register_forward_pre_hook(lambda module, args, kwargs: seen.append("first"), prepend=True, with_kwargs=True)
    net.register_forward_hook(lambda module, args, output: seen.append("after") or output * 10)
    handle = net.register_forward_hook(lambda module, args, kwargs, output: seen.append(output.item()), with_kwargs=True)
    assert net(turnout.tensor(1.0)).item() == 20.0
    assert seen == ["first", "before", "after", 20.0]
    handle.remove()
    handle.remove()
    with net.register_forward_pre_hook(lambda module, args: turnout.tensor(0.0)):
        assert net(turnout.tensor(5.0)).item() == 0.0
    assert net(turnout.tensor(1.0)).item() == 20.0
    assert seen[4:] == ["first", "before", "after"] * 2


def test_a_hook_that_is_always_called_sees_a_failure():
    net, seen = nn.Linear(2, 2), []
    net.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    refused(ShapeError, net, turnout.ones(3))
    assert seen == [None]
    net.register_forward_pre_hook(lambda module, args: args[0].reshape(7))
    refused(ShapeError, net, turnout.ones(2))
    assert seen == [None, None]
    net.register_forward_hook(lambda module, args, output: {}["x"], always_call=True)
    with pytest.warns(UserWarning, match=r"^a forward hook with always_call=True raised KeyError\('x'\) after another error$"):
        refused(ShapeError, net, turnout.ones(2))


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_a_backward_hook_returns_as_many_gradients_as_there_were(register):
    net = nn.Linear(2, 1)
    getattr(net, register)(lambda module, *given: (given[0][0], given[0][0]))
    name = register.removeprefix("register_")
    assert refused(ArgumentError, net(turnout.ones(1, 2, requires_grad=True)).sum().backward).splitlines()[-1] == (
        f"a {name} of Linear must return 1 gradients, as many as it was given, or None; it returned 2"
    )


def test_backward_hooks_see_and_change_gradients():
    net, seen = nn.Linear(2, 1, bias=False), []
    net.register_full_backward_pre_hook(lambda module, outputs: seen.append(outputs[0].tolist()))
    double = lambda given: None if given is None else (given * 2,)  # noqa: E731
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append(outputs[0].tolist()) or double(inputs[0]))
    x = turnout.ones(1, 2, requires_grad=True)
    (net(x) * 3).sum().backward()
    assert seen == [[[3.0]], [[3.0]]]
    assert turnout.allclose(x.grad, net.weight.detach() * 6)
    net(turnout.ones(1, 2)).sum().backward()  # no argument requires a gradient
    assert seen[2:] == [[[1.0]], [[1.0]]]


# ---- containers, lazy modules


def test_containers_are_lists_and_dicts_of_modules():
    a, b, c = nn.Identity(), nn.Tanh(), nn.ReLU()
    line = nn.Sequential(a, b)
    line.append(c)
    assert [line[0], line[-1], *line[1:]] == [a, c, b, c]
    del line[0]
    assert list(line._modules) == ["0", "1"]
    line.insert(0, a)
    assert [*line] == [a, b, c]
    assert line.pop(1) is b
    assert [*(line + nn.Sequential(b))] == [a, c, b]
    line[0] = b
    assert [*line] == [b, c]
    assert len(nn.ModuleList([a]) + [b]) == 2
    table = nn.ModuleDict({"x": a})
    table["y"] = b
    assert (list(table.items()), "y" in table, table.pop("x")) == ([("x", a), ("y", b)], True, a)
    table.clear()
    assert len(table) == 0
    numbers = nn.ParameterList([turnout.ones(1), "word"])
    numbers.append(turnout.zeros(1))
    assert (len(numbers), numbers[1], numbers[-1].item(), len(list(numbers.parameters()))) == (3, "word", 0.0, 2)
    named = nn.ParameterDict({"w": turnout.ones(1)}) | nn.ParameterDict({"v": turnout.zeros(1)})
    assert (list(named), named.setdefault("w", None).item(), named.pop("v").item(), named.get("v")) == (
        ["w", "v"],
        1.0,
        0.0,
        None,
    )
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    assert repr(numbers).splitlines()[1:3] == [
        "  (0): Parameter containing: [turnout.float32 of size 1 on cpu]", "  (1): Object of type: str",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lazy", "shape", "plain"),
    [
        (lambda: nn.LazyLinear(3), (2, 4), lambda: nn.Linear(4, 3)),
        (lambda: nn.LazyConv2d(4, 2, groups=2), (1, 2, 5, 5), lambda: nn.Conv2d(2, 4, 2, groups=2)),
        (lambda: nn.LazyConvTranspose1d(3, 2), (1, 2, 5), lambda: nn.ConvTranspose1d(2, 3, 2)),
        (lambda: nn.LazyBatchNorm1d(), (3, 2), lambda: nn.BatchNorm1d(2)),
        (lambda: nn.LazyInstanceNorm2d(), (3, 4, 4), lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True)),
    ],
    ids=["linear", "convolution", "transposed", "batch", "instance"],
)  # fmt: skip
def test_a_lazy_module_becomes_a_plain_one_at_its_first_call_or_when_it_is_loaded(lazy, shape, plain):
    called, loaded, expected = lazy(), pickle.loads(pickle.dumps(copy.deepcopy(lazy()))), plain()
    parameters = list(called.parameters())
    assert called.has_uninitialized_params()
    called(turnout.ones(shape))
    loaded.load_state_dict(expected.state_dict())
    for made in (called, loaded):
        assert type(made) is type(expected)
        assert repr(made) == repr(expected)
        assert [p.shape for p in made.parameters()] == [p.shape for p in expected.parameters()]
        assert all(isinstance(p, nn.Parameter) and type(p) is turnout.Tensor for p in made.parameters())
    assert all(a is b for a, b in zip(parameters, called.parameters(), strict=True))  # as an optimiser has them


# ---- other packages


def test_modules_are_batched_differentiated_traced_and_computed_again():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = turnout.randn(4, 2)
    loss = lambda own, row: turnout.func.functional_call(net, own, row).sum()  # noqa: E731
    each = turnout.vmap(turnout.func.grad(loss), in_dims=(None, 0))(dict(net.named_parameters()), x)
    net(x).sum().backward()
    assert turnout.allclose(each["0.weight"].sum(0), net[0].weight.grad, atol=1e-6)
    assert turnout.allclose(turnout.trace(net)(x)(x), net(x))
    once = net[0].weight.grad.clone()
    net.zero_grad()
    turnout.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()
    assert turnout.allclose(net[0].weight.grad, once)


# ---- the whole of it


def test_the_manifest_lists_the_public_classes_of_each_file():
    listed = {module: set(names) for module, names in PUBLIC["names"].items()}
    for module, found in listed.items():
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"}
        assert found >= defined, module
        assert [name for name in found if not hasattr(nn, name)] == []
    files = {"turnout_nn.modules." + path.stem for path in (SOURCE / "modules").glob("[a-z]*.py")}
    assert files - listed.keys() == {"turnout_nn.modules.module"}  # functions, which are public there


@pytest.mark.parametrize("name", ["ELU", "Conv1d", "MaxPool2d", "Flatten", "ConstantPad1d"])
def test_a_class_made_from_fields_is_like_one_that_is_written_out(name):
    made = getattr(nn, name)
    assert made.__module__ == "turnout.nn"
    assert "self" not in inspect.signature(made).parameters
    derived = type("Mine", (made,), {"__init__": lambda self: super(derived, self).__init__(*ARGUMENTS.get(name, ()))})
    assert repr(derived()).startswith("Mine(")
    assert isinstance(pickle.loads(pickle.dumps(made(*ARGUMENTS.get(name, ())))), made)


ARGUMENTS = {"Conv1d": (1, 1, 1), "MaxPool2d": (2,), "ConstantPad1d": (1, 2.0)}
