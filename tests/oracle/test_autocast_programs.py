"""Programs of autocast with vmap, gradients and nesting, run by PyTorch and by Turnout: dtypes and values."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

import turnout.func  # noqa: E402

import turnout  # noqa: E402


def outside(lib, w, x):
    with lib.autocast("cpu"):
        return lib.func.vmap(lib.func.grad(lambda r: (w @ r).sin().sum().float()))(x)


def inside(lib, w, x):
    def one(r):
        with lib.autocast("cpu"):
            return (w @ r).sin().sum().float()

    return lib.func.vmap(lib.func.grad(one))(x)


def off_inside(lib, w, x):
    def one(r):
        with lib.autocast("cpu", enabled=False):
            return (w @ r).sin().sum()

    with lib.autocast("cpu"):
        return lib.func.vmap(one)(x), x @ w


def value_and_backward(lib, w, x):
    with lib.autocast("cpu"):
        y = lib.func.vmap(lambda r: w @ r)(x)
        loss = lib.nn.functional.mse_loss(y, x)
    loss.backward()
    return y.detach(), loss.detach(), w.grad


def backward_inside(lib, w, x):
    with lib.autocast("cpu", dtype=lib.float16):
        y = lib.cat([x @ w, x])
        y.sum().backward()
    return y.detach(), w.grad


def second_derivative(lib, w, x):
    with lib.autocast("cpu"):
        y = ((x @ w) @ w).float().sum()
        (g,) = lib.autograd.grad(y, [w], create_graph=True)
        (h,) = lib.autograd.grad((g * g).sum(), [w])
    return g.detach(), h


def mixed_dtypes(lib, w, x):
    with lib.autocast("cpu"):
        low = x @ w
        return low, low + x, low.double() @ w.double(), lib.stack([low, x]), lib.prod(low), lib.softmax(low, 1)


def jacobian(lib, w, x):
    with lib.autocast("cpu"):
        return lib.func.jacrev(lambda r: (w @ r).tanh())(x[0])


def hessian(lib, w, x):
    with lib.autocast("cpu"):
        return lib.func.jacrev(lib.func.grad(lambda r: ((w @ r).float() ** 2).sum()))(x[0])


PROGRAMS = [
    outside, inside, off_inside, value_and_backward, backward_inside, second_derivative, mixed_dtypes, jacobian, hessian,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_gives_the_dtypes_and_values_of_torch(program):
    rng = numpy.random.default_rng(1)
    data = [rng.standard_normal((3, 3)).astype("float32"), rng.standard_normal((2, 3)).astype("float32")]
    results = []
    for lib in (torch, turnout):
        w, x = (lib.from_numpy(d.copy()) for d in data)
        found = program(lib, w.requires_grad_(), x)
        results.append([r.detach() for r in (found if isinstance(found, tuple) else (found,))])
    for expected, found in zip(*results, strict=True):
        assert found.dtype.name == str(expected.dtype).removeprefix("torch.")
        wide, own = expected.double().numpy(), found.double().numpy()
        assert own.shape == wide.shape
        # bfloat16 has 8 bits: a rounding on the way to a result is 0.4 % of its terms.
        assert numpy.allclose(own, wide, rtol=0.03, atol=0.05)
