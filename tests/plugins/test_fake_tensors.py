"""Fake tensors: devices that are not there, conversion of real tensors, mixing, values, gradients, threads."""

from __future__ import annotations

import tracemalloc

import pytest

import turnout
from outcomes import in_threads, refused
from turnout import library
from turnout.errors import CallError, DataDependentSizeError, DeviceError, NoDataError, NoKernelError, ShapeError

HUGE = 10**6


@pytest.fixture
def mode():
    with turnout.FakeMode() as mode:
        yield mode


# ---- making them


@pytest.mark.parametrize(
    ("device", "expected"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:3", "cuda:3"), ("opencl", "opencl:0"), ("meta", "meta")]
)
def test_factories_make_tensors_on_devices_that_need_not_be_there(mode, device, expected):
    x = turnout.ones(2, 3, device=device)
    assert (str(x.device), x.shape, x.stride(), x.fake_mode) == (expected, (2, 3), (3, 1), mode)
    assert str((x + 1).sum().device) == expected


def test_a_fake_device_equals_the_real_one(mode):
    x = turnout.ones(2)
    assert x.device == turnout.device("cpu")
    assert turnout.device("cpu") == x.device
    assert len({x.device, turnout.device("cpu")}) == 1
    assert x.device is turnout.zeros(1).device
    assert x.device != turnout.device("cuda")


def test_a_device_that_nobody_provides_is_an_error(mode):
    refused(DeviceError, turnout.ones, 2, device="nowhere")


def test_no_memory_is_taken_for_a_trillion_elements(mode):
    tracemalloc.start()
    x = turnout.ones(HUGE, HUGE, requires_grad=True)
    (x @ x).relu().sum().backward()
    y = turnout.tensor([[0]]).expand(HUGE, HUGE).clone().sort()[0].to("cuda")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (x.grad.shape, y.shape) == ((HUGE, HUGE), (HUGE, HUGE))
    assert peak < 10_000_000


def test_data_gives_fake_tensors_inside_the_mode_and_real_ones_outside():
    with turnout.FakeMode() as mode:
        assert turnout.tensor([1, 2]).fake_mode is turnout.as_tensor([1.0]).fake_mode is mode
    assert turnout.tensor([1, 2]).fake_mode is None


def test_the_text_says_that_a_tensor_is_fake(mode):
    x = turnout.ones(2, 3, device="cuda", requires_grad=True)
    assert repr(x) == "FakeTensor(..., device='cuda:0', size=(2, 3), requires_grad=True)"
    assert repr(turnout.zeros(0, dtype=turnout.int64)) == "FakeTensor(..., size=(0,), dtype=turnout.int64)"
    assert f"{turnout.tensor(1.0)}" == "FakeTensor(..., size=())"


def test_random_numbers_do_not_advance_a_generator():
    own = turnout.Generator().manual_seed(3)
    turnout.manual_seed(0)
    expected = turnout.rand(3).tolist()
    turnout.manual_seed(0)
    before = own.get_state()
    with turnout.FakeMode():
        x = turnout.rand(4) + turnout.randn(4, generator=own) + turnout.randint(0, 3, (4,))
        turnout.nn.functional.dropout(x)
        x.normal_().uniform_()
        turnout.randperm(5)
    assert own.get_state() == before
    assert turnout.rand(3).tolist() == expected


# ---- of real tensors


def test_from_tensor_keeps_what_a_tensor_is():
    real = turnout.zeros(3, 4, dtype=turnout.float64).t().requires_grad_()
    mode = turnout.FakeMode()
    fake = mode.from_tensor(real)
    assert (fake.shape, fake.stride(), fake.dtype, fake.device) == (real.shape, real.stride(), real.dtype, real.device)
    assert fake.requires_grad
    assert fake.is_leaf
    assert mode.from_tensor(real) is fake
    assert mode.from_tensor(fake) is fake
    assert turnout.FakeMode().from_tensor(real) is not fake


def test_views_and_aliases_stay_related():
    base = turnout.zeros(4, 5)
    row, column, detached = base[1], base[:, 2], base.detach()
    mode = turnout.FakeMode()
    fakes = [mode.from_tensor(x) for x in (row, column, detached, base)]
    assert [f.storage_offset() for f in fakes] == [5, 2, 0, 0]
    assert all(f.is_alias_of(fakes[3]) for f in fakes)
    assert fakes[0]._base is fakes[3]
    before = fakes[1]._version
    fakes[0].add_(1)
    assert fakes[1]._version == before + 1
    bits = base.view(turnout.int32)
    assert mode.from_tensor(bits).is_alias_of(fakes[3])
    assert mode.from_tensor(base.detach().view(turnout.int32)[1:]).is_alias_of(fakes[3])


def test_a_tracked_view_is_recorded():
    base = turnout.zeros(4, requires_grad=True)
    view = base[1:]
    mode = turnout.FakeMode()
    mode.from_tensor(view).sum().backward()
    assert mode.from_tensor(base).grad.shape == (4,)
    assert base.grad is None


def test_a_converted_tensor_is_forgotten_when_it_dies():
    mode = turnout.FakeMode()
    mode.from_tensor(turnout.zeros(3))
    assert mode._converted._made == {}


def test_an_inference_tensor_stays_one():
    with turnout.inference_mode():
        x = turnout.zeros(3)
    assert turnout.FakeMode().from_tensor(x).is_inference()


def test_an_example_inside_vmap_is_refused():
    mode = turnout.FakeMode()
    assert refused(CallError, lambda: turnout.vmap(mode.from_tensor)(turnout.zeros(2, 3))) == (
        "from_tensor: the tensor is an example inside vmap, which is not a separate tensor; convert the whole batch outside"
    )


# ---- mixing


def test_a_real_tensor_beside_a_fake_one_is_an_error_that_says_what_to_do():
    x = turnout.zeros(3)
    text = (
        "aten::add.Tensor: 'other' is a real tensor, and the call is for fake tensors\n"
        "  argument  Tensor float32 [3] on cpu\n"
        "  to fix    fake = mode.from_tensor(tensor), or FakeMode(allow_non_fake_inputs=True), which does it for each argument"
    )
    with turnout.FakeMode():
        assert refused(CallError, lambda: turnout.ones(3) + x) == text
        assert "'self' is a real tensor" in refused(CallError, x.sum)


def test_real_tensors_are_converted_where_that_is_allowed():
    x = turnout.zeros(3)
    with turnout.FakeMode(allow_non_fake_inputs=True) as mode:
        assert (turnout.ones(2, 3) + x).fake_mode is mode
        assert x.sum().fake_mode is mode


def test_fake_tensors_of_two_modes_do_not_mix():
    x, y = (turnout.FakeMode().from_tensor(turnout.zeros(3)) for _ in range(2))
    assert refused(CallError, lambda: x + y) == (
        "aten::add.Tensor: 'other' belongs to another FakeMode than the call\n"
        "  to fix  make all fake tensors of a program with one FakeMode"
    )
    assert refused(CallError, lambda: turnout.FakeMode().from_tensor(x)) == (
        "from_tensor: the tensor belongs to another FakeMode; make all fake tensors of a program with one FakeMode"
    )


def test_devices_mix_as_those_of_real_tensors_do(mode):
    x, y = turnout.ones(3, device="cuda"), turnout.ones(3)
    assert str((x + turnout.tensor(2.0)).device) == "cuda:0"
    for call in (lambda: x + y, lambda: x + turnout.tensor(2.0, device="cuda:1"), lambda: turnout.cat([y, x])):
        refused(DeviceError, call)
    assert str(y.to("cuda").device) == "cuda:0"
    assert y.to("cpu") is y
    assert str(x.cpu().device) == "cpu"
    assert y.copy_(x) is y


# ---- values


@pytest.mark.parametrize(
    ("read", "asked"),
    [
        (lambda x: x.item(), "the number of a float32 tensor"), (bool, "the number of a float32 tensor"),
        (lambda x: bool(x > 0), "the number of a bool tensor"), (lambda x: x.tolist(), "its elements"),
        (lambda x: x.numpy(), "numpy"),
    ],
)  # fmt: skip
def test_reading_a_value_is_an_error(mode, read, asked):
    assert refused(NoDataError, lambda: read(turnout.tensor(1.0))) == (
        f"a fake tensor has no values: {asked} cannot be read\n  to fix  call this on real tensors, or compute it with operators"
    )


def test_the_number_in_an_integer_tensor_is_a_symbol(mode):
    number = turnout.tensor(3).item()
    assert isinstance(number, turnout.SymInt)
    assert refused(DataDependentSizeError, turnout.zeros, number) == (
        "u0 < 0 cannot be decided without data\n"
        "  u0      any integer, from item()\n"
        "  to fix  if it always holds, say so: turnout.check(...) of u0 < 0, in terms of the program's sizes"
    )
    turnout.check(number >= 0)
    assert repr(tuple(turnout.zeros(number, 2).shape)) == "(u0, 2)"


# ---- with the other functionalities


def test_transforms_and_traces_work():
    with turnout.FakeMode() as mode:
        assert turnout.vmap(lambda a, b: a @ b, in_dims=(0, None))(turnout.ones(5, 2, 3), turnout.ones(3, 4)).shape == (5, 2, 4)
        graph = turnout.trace(lambda a: (a * 2).sum())(turnout.ones(3))
        assert graph(turnout.ones(7)).fake_mode is mode
    assert graph(turnout.tensor([1.0, 2.0])).item() == 6.0


def test_autocast_applies(mode):
    for device, dtype in (("cpu", turnout.bfloat16), ("cuda", turnout.float16)):
        with turnout.autocast(device, dtype=dtype):
            x = turnout.ones(2, 2, device=device)
            assert (x @ x).dtype is dtype


# ---- modes


def test_tensors_keep_their_mode_outside_of_the_block_and_in_other_threads():
    with turnout.FakeMode() as mode:
        x = turnout.ones(2)
    (found,) = in_threads(lambda: [x + 1, turnout.ones(2)])
    assert [t.fake_mode for t in (*found, x * 2, x.to("cuda"), turnout.zeros_like(x))] == [mode, None, mode, mode, mode]


def test_the_innermost_mode_makes_the_tensors_and_an_exception_leaves_it():
    with turnout.FakeMode() as outer:
        inner = turnout.FakeMode()
        with inner:
            assert turnout.ones(1).fake_mode is inner
        with pytest.raises(ZeroDivisionError), inner:
            raise ZeroDivisionError
        assert turnout.ones(1).fake_mode is outer
        with outer, outer:
            assert turnout.ones(1).fake_mode is outer
    assert turnout.ones(1).fake_mode is None


def test_threads_share_a_mode():
    mode = turnout.FakeMode()

    def work() -> None:
        for n in range(30):
            with mode:
                x = turnout.ones(3, n + 1, device=f"cuda:{n % 3}").nonzero()
                assert (x.shape[1], x.fake_mode, x.shape[0].bounds[1]) == (2, mode, 3 * (n + 1))

    in_threads(*[work] * 4)
    assert len({str(s) for s in mode.sizes.known}) == 120


# ---- custom operators


@pytest.fixture
def chosen():
    @library.custom_op("fakes::chosen", mutates_args=())
    def chosen(x: turnout.Tensor, n: int) -> turnout.Tensor:
        return x.nonzero()[:n]

    yield chosen
    chosen.undo()


def test_a_fake_kernel_runs_in_the_mode_and_asks_for_sizes(chosen):
    seen = []

    @chosen.register_fake
    def _(x, n):
        seen.append((x.fake_mode, turnout.ones(1).fake_mode))
        return x.new_empty((library.get_ctx().new_dynamic_size(min=1, max=9), 1))

    mode = turnout.FakeMode()
    made = chosen(mode.from_tensor(turnout.ones(3)), 2)
    assert (repr(tuple(made.shape)), made.shape[0].bounds, seen) == ("(u0, 1)", (1, 9), [(mode, mode)])
    with pytest.raises(DataDependentSizeError) as caught:
        assert made.shape[0] == 3
    assert str(caught.value) == (
        "u0 == 3 cannot be decided without data\n"
        "  u0      1 to 9, from a result of fakes::chosen\n"
        "  to fix  if it always holds, say so: turnout.check(...) of u0 == 3, in terms of the program's sizes"
    )


def test_a_fake_kernel_asks_for_sizes_while_it_runs(chosen):
    kept = []
    chosen.register_fake(lambda x, n: (kept.append(library.get_ctx()), x.new_empty(n, 1))[1])
    chosen(turnout.FakeMode().from_tensor(turnout.ones(3)), 2)
    assert refused(CallError, kept[0].new_dynamic_size) == "new_dynamic_size: only a fake kernel can call it, while it runs"


def test_a_fake_kernel_must_return_fake_tensors(chosen):
    real = turnout.ones(3)
    chosen.register_fake(lambda x, n: real)
    assert refused(CallError, lambda: chosen(turnout.FakeMode().from_tensor(real), 2)) == (
        "fakes::chosen: its fake kernel returned a real tensor\n"
        "  to fix  make the result with a factory of an argument, such as x.new_empty(size)"
    )


def test_an_operator_of_a_library_without_a_fake_kernel_says_so(mode):
    with library.Library("fakes2", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.clone(), "CPU")
        assert "fakes2::f: no fake kernel" in refused(NoKernelError, lambda: turnout.ops.fakes2.f(turnout.ones(2)))
        lib.define("g(Tensor x) -> Tensor")
        lib.impl("g", lambda x: x * 2, "CompositeImplicitAutograd")
        assert turnout.ops.fakes2.g(turnout.ones(2)).shape == (2,)


# ---- sizes beside other values


def test_covariances_and_tolerances_that_sizes_decide_fix_no_size():
    mode = turnout.FakeMode(dynamic=True)
    x, tall = mode.from_tensor(turnout.randn(3, 5)), mode.from_tensor(turnout.randn(6, 4))
    with mode:
        assert str(turnout.cov(x).shape) == str(turnout.corrcoef(x).shape) == "turnout.Size([s0, s0])"
        assert mode.guards == []
        assert str(turnout.linalg.pinv(tall).shape) == "turnout.Size([s3, s2])"
        assert str(turnout.linalg.lstsq(tall, tall).solution.shape) == "turnout.Size([s3, s3])"
    assert mode.guards == ["s3 < s2"]


@pytest.mark.parametrize("function", [turnout.unique, turnout.unique_consecutive])
@pytest.mark.parametrize(("shape", "dim"), [((3, 0), 0), ((0, 0), 0), ((0, 3), 1)])
def test_slices_without_elements_are_refused_with_and_without_data(function, shape, dim):
    x = turnout.zeros(shape)
    for given in (x, turnout.FakeMode().from_tensor(x)):
        assert refused(ShapeError, function, given, dim=dim) == "unique: slices of an empty array cannot be compared"


def test_a_list_of_the_numbers_of_a_fake_tensor_has_symbols(mode):
    x = turnout.ones(7)
    assert str(turnout.tensor([[1, 3], [2, 4]]).tolist()) == "[[u0, u1], [u2, u3]]"
    assert [p.ndim for p in x.tensor_split(turnout.tensor([1, 3]))] == [1, 1, 1]


def test_no_repetitions_have_no_elements_whatever_size_is_given():
    repeats = turnout.zeros(0, dtype=turnout.int64)
    for given in (repeats, turnout.FakeMode().from_tensor(repeats)):
        assert turnout.repeat_interleave(given, output_size=3).shape == (0,)
