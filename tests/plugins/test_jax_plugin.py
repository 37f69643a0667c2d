"""The device `jax`: programs give what they give on `cpu`, JAX's own users notice nothing, and arrays go in and out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from random_programs import chains, indexing, writes
from random_programs.on_device import gradient_difference, judge
from random_programs.running import check
from turnout import host_fallback
from turnout.errors import NoDataError

NEEDS_DEVICE = "jax"


def on_jax(*data: Any, **options: Any) -> turnout.Tensor:
    return turnout.tensor(*data, device="jax", **options)


@pytest.mark.parametrize("kind", [chains, indexing, writes], ids=["chains", "indexing", "writes"])
def test_programs_give_what_cpu_gives_with_the_strides_of_cpu(kind: Any, seeds: Callable[..., range]) -> None:
    check({seed: kind.Program(seed).lines for seed in seeds(4, many=300)}, judge("jax", strides=kind is writes))


def test_gradients_of_programs_are_those_of_cpu(seeds: Callable[..., range]) -> None:
    assert [found for seed in seeds(4, many=300) if (found := gradient_difference(seed, "jax"))] == []


def test_numbers_have_64_bits_and_other_users_of_jax_have_what_they_had() -> None:
    import jax
    import jax.numpy as jnp

    def theirs() -> tuple[str, ...]:
        return str(jnp.arange(3).dtype), str(jnp.ones(2).dtype), str(jnp.asarray(1.5).dtype)

    before = theirs()
    x = turnout.arange(3, device="jax") + (1 << 40)
    wide = turnout.ones(3, dtype=turnout.float64, device="jax") * 1e300
    assert (x.dtype, str(x.array.value().dtype), x.tolist()[1]) == (turnout.int64, "int64", (1 << 40) + 1)
    assert (x.double() + 1).long().tolist()[1] == (1 << 40) + 2
    assert (wide.sum().item(), (wide + 1e-3).dtype) == (3e300, turnout.float64)
    assert theirs() == before
    assert not jax.config.jax_enable_x64


def test_random_numbers_are_those_of_cpu() -> None:
    draws: dict[str, Callable[[str], turnout.Tensor]] = {
        "rand": lambda device: turnout.rand(3, 5, device=device),
        "randint": lambda device: turnout.randint(0, 1 << 40, (7,), device=device),
        "dropout": lambda device: turnout.nn.functional.dropout(turnout.ones(9, device=device)),
        "float64": lambda device: turnout.rand(4, dtype=turnout.float64, device=device),
    }
    for name, draw in draws.items():
        found = []
        for device in ("cpu", "jax"):
            turnout.manual_seed(7)
            found.append(draw(device).tolist())
        assert found[0] == found[1], name


def test_arrays_of_jax_go_in_and_out_without_a_copy() -> None:
    import jax.numpy as jnp

    for array in (jnp.arange(3.0), jnp.ones((2, 2), jnp.bfloat16), jnp.arange(3) > 1):
        x = turnout.as_tensor(array)
        assert (x.device.type, x.dtype.name, x.array.value() is array) == ("jax", str(array.dtype), True)
    x = turnout.as_tensor(jnp.zeros(3))
    x[1] = 5  # gives the memory another value
    assert x.array.value().tolist() == [0.0, 5.0, 0.0]
    assert turnout.tensor(jnp.ones(2)).device.type == "cpu"


def step(w: Any, x: Any) -> Any:
    w = turnout.as_tensor(w).requires_grad_()
    hidden = turnout.nn.functional.gelu(turnout.as_tensor(x) @ w)
    hidden[:, 0].mul_(2)
    hidden.log_softmax(1)[:, 1].mean().backward()
    return (w.detach() - 0.1 * w.grad).array.value()


def test_a_step_of_training_runs_inside_jit() -> None:
    import jax
    import jax.numpy as jnp

    w, x = jnp.linspace(-1, 1, 12).reshape(4, 3), jnp.linspace(0, 2, 8).reshape(2, 4)
    assert jnp.allclose(jax.jit(step)(w, x), step(w, x), atol=1e-6)


def test_what_jit_reads_first_is_read_again_outside() -> None:
    import jax
    import jax.numpy as jnp

    unwritten, cut = turnout.empty(3, device="jax"), on_jax([1.0, 2.0, 3.0, 4.0])[1:]
    bits = on_jax([1.0, 2.0, 3.0]).view(turnout.int32)
    readers: dict[str, Callable[[Any], Any]] = {
        "unwritten": lambda x: x + unwritten,
        "cut": lambda x: x * cut,
        "bits": lambda x: x + bits,
        "tril": lambda x: x.expand(3, 3).tril(),
        "triu": lambda x: x.expand(3, 3).triu(),
    }
    for name, read in readers.items():
        inside = jax.jit(lambda x, read=read: read(turnout.as_tensor(x)).contiguous().array.value())(jnp.ones(3))
        assert inside.tolist() == read(on_jax([1.0, 1.0, 1.0])).tolist(), name


def test_what_needs_numbers_inside_jit_names_the_operator() -> None:
    import jax
    import jax.numpy as jnp

    traced = "the elements of a tensor on jax are not known while JAX traces the program (jax.jit, jax.grad)"
    with pytest.raises(NoDataError) as caught:
        jax.jit(lambda x: turnout.as_tensor(x).nonzero().array.value())(jnp.ones(3))
    assert str(caught.value) == (
        "aten::nonzero: no kernel for Jax, and the host fallback cannot read the elements\n"
        f"  why     {traced}\n"
        "  to fix  call it outside of the traced program, or give Jax a row; `turnout coverage` lists what runs on cpu"
    )
    with pytest.raises(NoDataError, match="are not known while JAX traces"):
        jax.jit(lambda x: turnout.as_tensor(x).sum().item())(jnp.ones(3))


def test_convolutions_vmap_and_autocast_are_those_of_cpu() -> None:
    turnout.manual_seed(0)
    image, line, kernel = turnout.randn(2, 4, 7, 6), turnout.randn(3, 4, 9), turnout.randn(4, 3, 3, 2)
    functions: dict[str, Callable[[Any], turnout.Tensor]] = {
        "conv2d": lambda to: turnout.conv2d(to(image), to(kernel[:, :2]), stride=(2, 1), padding=1, dilation=(1, 2), groups=2),
        "transposed": lambda to: turnout.conv_transpose2d(
            to(image), to(kernel), to(kernel[0, :, 0, 0].repeat(2)), (2, 3), 1, (1, 2), 2
        ),
        "conv1d": lambda to: turnout.conv1d(to(line), to(kernel[:, :1, :, 0].repeat(1, 4, 1)), padding=2),
        "max_pool2d": lambda to: turnout.nn.functional.max_pool2d(to(image), 3, 2, 1),
        "vmap": lambda to: turnout.vmap(turnout.func.grad(lambda x: (x.sin() @ x.t()).sum()))(to(image[0])),
        "sort": lambda to: to(image).sort(-1, descending=True)[1],
    }
    host_fallback.reset_calls()
    for name, function in functions.items():
        expected, found = function(lambda x: x), function(lambda x: x.to("jax"))
        turnout.testing.assert_close(found.cpu(), expected, msg=name)
    with turnout.autocast("jax"):
        assert (on_jax([[1.0]]) @ on_jax([[1.0]])).dtype is turnout.float16
    assert not host_fallback.report()


@pytest.mark.parametrize(
    ("left", "right", "keeps"),
    [
        ((2, 3, 4, 5), (2, 3, 5, 6), True), ((2, 2, 3, 4, 5), (2, 2, 3, 5, 1), True), ((0, 3, 4, 5), (0, 3, 5, 6), True),
        ((2, 3, 4, 0), (2, 3, 0, 6), True), ((2, 1, 4, 5), (1, 3, 5, 6), False), ((2, 3, 4, 5), (3, 5, 6), False),
        ((2, 3, 4, 5), (5,), False), ((3, 4, 5), (3, 5, 6), False),
    ],
)  # fmt: skip
def test_products_of_batches_keep_their_dims_and_are_those_of_cpu(left: Any, right: Any, keeps: bool) -> None:
    import jax

    def lowered(function: Any, *given: Any) -> str:
        run = jax.jit(lambda *given: function(*map(turnout.as_tensor, given)).array.value())
        return run.lower(*[each.to("jax").array.value() for each in given]).as_text()

    def gradients(a: Any, b: Any) -> list[Any]:
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        first = turnout.autograd.grad((a @ b).sin().sum(), [a, b], create_graph=True)
        return [*first, *turnout.autograd.grad(sum(each.pow(2).sum() for each in first), [a, b])]

    turnout.manual_seed(0)
    for dtype in (turnout.float64, turnout.bfloat16, turnout.int64, turnout.complex64):
        a, b = [(turnout.randn(shape) * 3).to(dtype) for shape in (left, right)]
        expected, found = a @ b, a.to("jax") @ b.to("jax")
        assert (found.dtype, found.stride()) == (dtype, expected.stride())
        close = 1e-1 if dtype is turnout.bfloat16 else 1e-4
        turnout.testing.assert_close(found.cpu(), expected, rtol=close, atol=close)
        if dtype is turnout.float64:
            for ours, theirs in zip(gradients(a.to("jax"), b.to("jax")), gradients(a, b), strict=True):
                turnout.testing.assert_close(ours.cpu(), theirs, rtol=1e-9, atol=1e-9)
    text = lowered(lambda a, b: a @ b, a, b)
    dims = ", ".join(map(str, range(len(left) - 2)))
    assert (f"batching_dims = [{dims}] x [{dims}]" in text and "reshape" not in text) == (keeps or len(left) == 3)
    assert text.count("stablehlo.dot_general") == 1


SEVERAL = """
import turnout
x = turnout.ones(3, device="jax:1")
y = (x * 2 + turnout.arange(3, device="jax:1")).sort()[0]
assert (x.device.index, y.device.index, turnout.zeros(2, device="jax").device.index) == (1, 1, 0)
assert y.array.value().devices() == {turnout.device("jax:1").backend.devices[1]}
assert y.to("jax:0").tolist() == y.tolist() == [2.0, 3.0, 4.0]
assert turnout.as_tensor(y.array.value()).device.index == 1
try:
    x + turnout.ones(3, device="jax:0")
except turnout.errors.DeviceError as error:
    print(str(error).splitlines()[0])
"""
CLEARED = """
import jax, turnout
turnout.ones(2, device="jax")
jax.monitoring.clear_event_listeners()
turnout.plugins.deactivate("jax")
turnout.plugins.activate("jax")
vars(jax.monitoring).pop("unregister_event_duration_listener", None)  # which JAX 0.8 does not have
turnout.plugins.deactivate("jax")
turnout.plugins.activate("jax")
print(turnout.ones(2, device="jax").sum().item())
"""
NEVER = "import sys, turnout; turnout.ones(2).sum(); turnout.explain('exp', turnout.ones(2)); print('jax' in sys.modules)"


def test_several_devices_have_an_index_and_other_programs_do_not_import_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    ran = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True) for text in (SEVERAL, NEVER)]
    assert [run.returncode for run in ran] == [0, 0], ran[0].stderr + ran[1].stderr
    assert ran[0].stdout.startswith("aten::add.Tensor: ")
    assert ran[1].stdout == "False\n"


def test_listeners_of_jax_are_taken_away_where_that_can_be() -> None:
    ran = subprocess.run([sys.executable, "-c", CLEARED], capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("2.0\n", 0), ran.stderr


def test_programs_are_forgotten_once_they_are_many() -> None:
    from turnout_jax.backend import MANY

    backend: Any = turnout.device("jax").backend
    x = on_jax([0.5] * 37)

    def compiled() -> int:
        before = backend.compiled
        (x * 2 + 1).exp()
        return int(backend.compiled - before)

    assert compiled() > 0
    backend.compiled = MANY - 1
    backend.empty_cache()
    assert compiled() == 0
    backend.compiled = MANY
    backend.empty_cache()
    assert backend.compiled == 0
    assert compiled() > 0
