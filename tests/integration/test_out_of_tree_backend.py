"""A backend installed with pip from outside, NumPy behind the device `twin`: core knows nothing of it, and all of core works."""

from __future__ import annotations

from itertools import permutations

import pytest
from installed import Environment

PRELUDE = """
import turnout
from turnout.errors import TurnoutError

def error_of(call):
    try:
        return f"no error: {call()!r}"
    except TurnoutError as error:
        return f"{type(error).__name__}: {error}"
"""


def answer(environment: Environment, code: str, **options):
    """What `code` leaves in `found`; a warning that it raises is an error."""
    return environment.answer(f"{PRELUDE}\n{code}", flags=("-W", "error"), **options)


def test_the_kit_proves_it(working):
    chosen = "(gives_what_cpu_gives and row-major) or gradients_are_those or test_backend_device or test_backend_plugin"
    assert "turnout: kernels of twin ran for" in working.kit("-p", "one_of_each_kind", "--turnout-backend=twin", "-k", chosen)


TWO = (
    "DeviceError: aten::{op}: tensors on two devices: {places}\n"
    "  to fix  move one with .to(device); only {mix} on cpu mix with another device"
)


MIXED = {
    "x + y": ("add.Tensor", "self on cpu, other on twin"),
    "y + x": ("add.Tensor", "self on twin, other on cpu"),
    "x.mul_(y)": ("mul_.Tensor", "self on cpu, other on twin"),
    "turnout.cat([x, y])": ("cat", "tensors[0] on cpu, tensors[1] on twin"),
    "x[turnout.tensor([0, 1], device='twin')]": ("index.Tensor", "self on cpu, indices[0] on twin"),
    "x + turnout.tensor(2.0, device='twin')": ("add.Tensor", "self on cpu, other on twin"),
    "turnout.add(y, y, out=x)": ("add.out", "self on twin, out on cpu"),
    "turnout.tensor(2.0).add_(turnout.tensor(1.0, device='twin'))": ("add_.Tensor", "other on twin, self on cpu"),
}


def test_a_call_with_tensors_of_two_devices_is_an_error_that_names_both(working):
    code = f"""
x, y = turnout.ones(2), turnout.ones(2, device="twin")
found = {{call: error_of(lambda: eval(call)) for call in {list(MIXED)}}}
"""
    expected = {}
    for call, (op, places) in MIXED.items():
        mix = "indices and 0-dim tensors" if op == "index.Tensor" else "0-dim tensors"
        expected[call] = TWO.format(op=op, places=places, mix=mix)
    assert answer(working, code) == expected


def test_numbers_0_dim_tensors_and_indices_of_the_cpu_mix_with_it(working):
    code = """
y = turnout.ones(2, device="twin")
two = turnout.tensor(2.0, requires_grad=True)
made = [y + 2, y * two.detach(), two.detach() - y, turnout.where(y > 0, y, two.detach())]
(y * two).sum().backward()
y[0] = two.detach()
found = [[str(t.device), t.tolist()] for t in [*made, y, two.grad, y[turnout.tensor([1, 1])], y[turnout.tensor([True, False])]]]
"""
    assert answer(working, code) == [
        ["twin", [3.0, 3.0]],
        ["twin", [2.0, 2.0]],
        ["twin", [1.0, 1.0]],
        ["twin", [1.0, 1.0]],
        ["twin", [2.0, 1.0]],
        ["cpu", 2.0],
        ["twin", [1.0, 1.0]],
        ["twin", [2.0]],
    ]


def test_views_writes_and_versions_work_on_it(working):
    code = """
x = turnout.zeros(2, 3, device="twin")
x[0, 1:] += 5
x.t()[2].mul_(2)
found = [x.tolist(), x._version, x.t()._base is x]
"""
    assert answer(working, code) == [[[0.0, 5.0, 10.0], [0.0, 0.0, 0.0]], 3, True]


def test_random_numbers_do_not_depend_on_the_backend(working):
    code = """
def draw(device):
    turnout.manual_seed(3)
    return turnout.randn(3, 4, device=device).tolist()
found = draw("twin") == draw("cpu")
"""
    assert answer(working, code) is True


def test_tensors_of_a_deactivated_backend_say_so_and_work_again_when_it_is_back(working):
    code = """
from turnout import plugins
x = turnout.ones(2, device="twin")
keys = x.keys
plugins.deactivate("numpy_twin")
gone = error_of(lambda: x.exp())
y = turnout.ones(2, device="twin")
found = [gone.splitlines()[:2], (x + y).tolist(), x.keys == keys == y.keys, (x + y).sum().item()]
"""
    gone, *rest = answer(working, code)
    assert gone == [
        "NoKernelError: aten::exp: no kernel for Twin",
        "  asked for by  self: a tensor on twin, whose backend is not active",
    ]
    assert rest == [[2.0, 2.0], True, 4.0]


# ---- beside cpu and opencl in one process: configuration enables and disables each

DEVICES = ("cpu", "opencl", "twin")
PLUGINS = {"cpu": "cpu", "opencl": "opencl", "twin": "numpy_twin"}


@pytest.fixture
def beside_opencl(working, need_device):
    need_device("opencl")
    return working


def test_copies_and_gradients_go_each_way_mixing_names_both_and_all_compute_the_same_step(beside_opencl):
    done = beside_opencl.run(f"""
import turnout

def step(device):
    weight = turnout.randn(4, 4, device=device, generator=turnout.Generator(device).manual_seed(1)).requires_grad_()
    turnout.tanh(weight @ weight).sum().backward()
    return weight.grad.cpu()

assert step("twin").tolist() == step("cpu").tolist()
assert turnout.allclose(step("opencl"), step("cpu"), rtol=1e-5)
for source, target in {list(permutations(DEVICES, 2))}:
    x = turnout.arange(6.0, device=source).reshape(2, 3).t()
    moved = x.to(target)
    assert (moved.device.type, moved.tolist()) == (target, x.tolist())
    assert turnout.zeros(3, 2, device=target).copy_(x).tolist() == x.tolist()
    leaf = turnout.tensor([1.0, 2.0], device=source).requires_grad_()
    (leaf.to(target) * 3.0).sum().backward()
    assert (leaf.grad.device, leaf.grad.tolist()) == (leaf.device, [3.0, 3.0])
    try:
        x + moved
    except turnout.errors.DeviceError as error:
        assert f"self on {{x.device}}, other on {{moved.device}}" in str(error), error
    else:
        raise AssertionError((source, target))
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("disabled", DEVICES)
def test_a_file_disables_one_and_the_others_compute(beside_opencl, disabled, tmp_path):
    (tmp_path / "turnout.toml").write_text(f'[plugins]\ndisable = ["{PLUGINS[disabled]}"]\n')
    done = beside_opencl.run(
        f"""
import turnout
for device in {DEVICES}:
    try:
        found = turnout.arange(3.0, device=device).exp().sum().item()
    except turnout.errors.DisabledError as error:
        assert device == {disabled!r} and "turnout.toml:2" in str(error), error
    else:
        assert device != {disabled!r} and abs(found - 11.107337) < 1e-5, (device, found)
""",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_the_host_fallback_says_that_the_host_is_disabled(beside_opencl):
    done = beside_opencl.run("""
import turnout
turnout.config.set(plugins__disable=["cpu"])
x = turnout.ones(2, device="opencl")
try:
    turnout.host_fallback.host("cpu")(turnout.ops.aten.exp.default, 0, (x,))
except turnout.errors.DisabledError as error:
    print(error)
""")
    assert done.stdout.startswith("device 'cpu': the plugin cpu is disabled\n"), done.stderr
