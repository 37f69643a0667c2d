"""The OpenCL kernel of `myops::swish`: it is the one that runs, and it gives what the CPU's gives."""

from __future__ import annotations

import threading

import pytest

import turnout
from turnout import config, plugins
from turnout.errors import DTypeError


@pytest.fixture(autouse=True)
def driver():
    """Skip the tests where no OpenCL device is found."""
    devices = pytest.importorskip("turnout_opencl.devices", reason="pyopencl is not installed")
    if not devices.found_devices():
        pytest.skip("there is no OpenCL device")


def swish(*args):
    return turnout.ops.myops.swish(*args)


def there(values, dtype=turnout.float32):
    return turnout.tensor(values, dtype=dtype, device="opencl")


def test_it_is_the_kernel_that_runs_on_opencl():
    text = str(turnout.explain("myops::swish", there([1.0])))
    [line] = [line for line in text.splitlines() if line.startswith("-> OpenCL")]
    assert "swish [kernel] (turnout-myops-opencl 0.1.0, " in line
    turnout.host_fallback.reset_calls()
    assert swish(there([1.0])).device.type == "opencl"
    assert turnout.host_fallback.calls() == {}


@pytest.mark.parametrize("dtype", [turnout.float16, turnout.bfloat16, turnout.float32, turnout.float64])
@pytest.mark.parametrize("beta", [1.0, -2.0, 0.0])
def test_it_gives_what_the_cpu_gives(dtype, beta):
    values = [-1000.0, -3.0, -0.5, 0.0, 0.5, 3.0, 1000.0]
    made = swish(there(values, dtype), beta)
    expected = swish(turnout.tensor(values, dtype=dtype), beta)
    assert made.dtype is dtype
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype.name, 1e-5)
    assert made.tolist() == pytest.approx(expected.tolist(), rel=tolerance, abs=1e-6)


def test_views_empty_tensors_and_numbers_are_taken():
    x = there([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    for view in (x.t(), x[1], x[:, 1:], x[:0], x[0, 0]):
        made, expected = swish(view), swish(view.to("cpu"))
        assert made.shape == expected.shape
        assert made.flatten().tolist() == pytest.approx(expected.flatten().tolist())


def test_its_gradient_and_its_batching_rule_are_those_of_the_first_package():
    x = there([0.5, -1.0]).requires_grad_()
    swish(x, 2.0).sum().backward()
    plain = turnout.tensor([0.5, -1.0], requires_grad=True)
    swish(plain, 2.0).sum().backward()
    assert x.grad.tolist() == pytest.approx(plain.grad.tolist())
    batch = there([[1.0, 2.0], [3.0, 4.0]])
    assert turnout.vmap(swish)(batch).tolist() == swish(batch).tolist()


def test_it_does_what_the_operator_says():
    turnout.library.opcheck("myops::swish", (there([[0.5, -1.5, 2.0], [1.0, -0.25, 3.0]]).requires_grad_(), 1.5))


def test_integers_are_refused():
    with pytest.raises(DTypeError) as caught:
        swish(there([1], turnout.int32))
    assert str(caught.value) == "swish: opencl computes in floating-point types that the device has, got int32"


def test_threads_that_call_it_at_once_get_their_own_results():
    found = {}

    def work(beta):
        x = there([1.0, 2.0])
        found[beta] = [swish(x, beta).tolist() for _ in range(20)]

    threads = [threading.Thread(target=work, args=(float(beta),)) for beta in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for beta, results in found.items():
        assert results == [results[0]] * 20
        assert results[0] == pytest.approx(swish(turnout.tensor([1.0, 2.0]), beta).tolist())


def test_without_it_the_operator_runs_on_the_cpu_and_comes_back():
    x = there([1.0])
    expected = swish(x).tolist()
    config.set({"plugins.disable": ["myops_opencl"]})
    try:
        turnout.host_fallback.reset_calls()
        assert swish(x).tolist() == pytest.approx(expected)
        assert list(turnout.host_fallback.calls()) == [("myops::swish", "opencl", "cpu")]
    finally:
        config.unset()
    turnout.host_fallback.reset_calls()
    plugins.activate("myops_opencl")
    assert swish(x).tolist() == expected
    assert turnout.host_fallback.calls() == {}


def test_where_opencl_is_switched_off_the_operator_works_on_the_cpu_without_a_word():
    config.set({"plugins.disable": ["opencl"]})
    try:
        plugins.deactivate("myops", with_dependents=True)
        assert swish(turnout.tensor([0.0])).tolist() == [0.0]
    finally:
        config.unset()
