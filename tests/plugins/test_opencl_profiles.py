"""Times of OpenCL devices: which kernels are recorded, for which operators and nodes, and what stays when a profile is over."""

from __future__ import annotations

import threading

import pytest

import turnout
from outcomes import refused
from turnout.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("opencl")


@pytest.fixture
def x() -> turnout.Tensor:
    return turnout.rand(64, 64, device="opencl")


def takes_times() -> bool:
    import pyopencl as cl

    place = turnout.empty(1, device="opencl").array.place
    return bool(place.queue.properties & cl.command_queue_properties.PROFILING_ENABLE)


def test_each_kernel_has_its_operators_and_the_times_of_the_device(x: turnout.Tensor) -> None:
    with turnout.opencl.profile() as found:
        y = turnout.softmax(x.exp(), 0)
    kernels = found.kernels
    assert [each.operators for each in kernels] == [("aten::exp",), ("aten::softmax.int", "aten::_softmax")]
    for each in kernels:
        assert (each.device, each.stream, each.dtype) == ("opencl:0", 0, "float32")
        assert each.queued <= each.submit <= each.start < each.end
        assert each.ns == each.end - each.start
    assert kernels[0].end <= kernels[1].start
    rows = {row.name: row for row in found.by_operator()}
    assert rows["aten::exp"].own_ns == rows["aten::exp"].total_ns == kernels[0].ns
    assert rows["aten::_softmax"].own_ns == rows["aten::softmax.int"].total_ns == kernels[1].ns
    assert rows["aten::softmax.int"].own_ns == 0
    assert [row.total_ns for row in found.by_kernel()] == sorted((each.ns for each in kernels), reverse=True)
    assert {row.name for row in found.by_kernel()} == {f"{each.kernel} float32" for each in kernels}
    assert found.device_ns(found.log.calls[0]) == kernels[0].ns
    assert y.shape == (64, 64)


def test_copies_and_fills_are_recorded_outside_of_operators_too() -> None:
    with turnout.opencl.profile() as found:
        x = turnout.tensor([1.0, 2.0], device="opencl")
        x.zero_()
        assert x.tolist() == [0.0, 0.0]
    assert [(each.kernel, each.operators) for each in found.kernels] == [
        ("copy to the device", ()), ("fill", ("aten::zero_",)), ("copy to the host", ()),
    ]  # fmt: skip
    lines = str(found).splitlines()
    assert lines[0].startswith("3 kernels, fills and copies took ")
    assert lines[1].split() == ["operator", "kernels", "own", "ms", "total", "ms", "share"]
    assert lines[-1].startswith("(no operator)")
    assert sum(float(line.split()[-2]) for line in lines[2:]) == pytest.approx(100, abs=0.2)


def test_queues_take_times_only_while_a_profile_runs(x: turnout.Tensor) -> None:
    assert not takes_times()
    with turnout.opencl.profile() as outer:
        x.exp()
        assert takes_times()
        with turnout.opencl.profile() as inner:
            x.sin()
        x.cos()
        assert takes_times()
    assert not takes_times()
    assert [row.name for row in inner.by_operator()] == ["aten::sin"]
    assert {row.name for row in outer.by_operator()} == {"aten::exp", "aten::sin", "aten::cos"}


def test_a_profile_ends_however_its_block_ends_and_is_entered_once(x: turnout.Tensor) -> None:
    profile = turnout.opencl.profile()
    with pytest.raises(ZeroDivisionError), profile as found:
        1 // (x.exp().numel() - x.numel())
    x.sin()
    assert [row.name for row in found.by_operator()] == ["aten::exp"]
    assert not takes_times()
    with pytest.raises(RuntimeError) as raised, profile:
        pass
    assert str(raised.value) == "a profile can be entered once; make a new one with turnout.opencl.profile()"
    x.sin()
    assert len(found.kernels) == 1


def test_work_keeps_its_order_when_a_profile_begins_and_ends() -> None:
    x = turnout.zeros(1 << 20, device="opencl")
    for i in range(20):
        x.add_(1.0).mul_(2.0).sub_(x, alpha=0.5)
        with turnout.opencl.profile():
            x.add_(1.0).mul_(3.0)
            y = turnout.ones(1 << (10 + i % 4), device="opencl").add_(x[0])
        x.mul_(0.25).add_(y[3], alpha=0.0)
    expected = 0.0
    for _ in range(20):
        expected = ((expected + 1) * 2 * 0.5 + 1) * 3 * 0.25
    assert turnout.allclose(x.cpu(), turnout.full((1 << 20,), expected))


def test_a_profile_sees_its_own_thread_alone(x: turnout.Tensor) -> None:
    with turnout.opencl.profile() as found:
        thread = threading.Thread(target=lambda: [x.exp() for _ in range(10)])
        thread.start()
        x.sin()
        thread.join()
    assert [row.name for row in found.by_operator()] == ["aten::sin"]


def test_kernels_of_streams_are_recorded_with_their_stream(x: turnout.Tensor) -> None:
    s = turnout.opencl.Stream()
    with turnout.opencl.profile() as found, turnout.opencl.stream(s):
        x.exp().sum()
    assert {f"<stream {each.stream} of {each.device}>" for each in found.kernels} == {repr(s)}
    assert {row.name for row in found.by_operator()} == {"aten::exp", "aten::sum"}


def test_the_nodes_of_a_graph_have_the_times_of_all_its_replays(x: turnout.Tensor) -> None:
    graph = turnout.trace(lambda x: (x @ x).exp().view(-1).sum(0))(x)
    with turnout.opencl.profile() as found:
        x.sin()
        graph(x)
        graph(x)
        x.cos()
    nodes = found.by_node(graph)
    assert [node for node, _ in nodes] == graph.nodes
    ns = {node.op.qualified_name: each for node, each in nodes}
    rows = {row.name: row for row in found.by_operator()}
    assert ns["aten::matmul"] == rows["aten::matmul"].total_ns > 0
    assert ns["aten::exp"] == rows["aten::exp"].total_ns > 0
    assert ns["aten::view"] == 0
    said = refused(ArgumentError, lambda: found.by_node(turnout.trace(lambda x: x.tanh())(x)))
    assert said == "by_node: no call of the graph 'graph' is among the 10 calls of this profile"


def test_a_profile_without_kernels_is_empty() -> None:
    with turnout.opencl.profile() as found:
        turnout.ones(2).exp()
    assert found.kernels == found.by_kernel() == found.by_operator() == []
    assert str(found) == ("0 kernels, fills and copies took 0.000 ms on the device\noperator  kernels  own ms  total ms  share")
