"""`turnout.nn.utils` and PyTorch's: packed sequences, parametrizations, norms of weights and gradients, fused batch norms."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from op_db.bridge import here, tensors  # noqa: E402
from test_module_db import loaded, near  # noqa: E402

import turnout  # noqa: E402

LENGTHS = [2, 5, 3, 5]


def packings(t: Any, to: Callable[[Any], Any]) -> list[Any]:
    """What the functions for sequences give, in one library."""
    rnn = t.nn.utils.rnn
    torch.manual_seed(1)
    sequences = [to(torch.randn(n, 3)) for n in LENGTHS]
    padded = rnn.pad_sequence(sequences)
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    ordered = rnn.pack_padded_sequence(padded, to(torch.tensor([5, 4, 4, 1])))
    return [
        padded,
        rnn.pad_sequence(sequences, batch_first=True, padding_value=-1.0, padding_side="left"),
        [packed.data, packed.batch_sizes],
        [ordered.data, ordered.batch_sizes],
        rnn.pad_packed_sequence(packed, batch_first=True, padding_value=2.0, total_length=7),
        rnn.pad_packed_sequence(ordered),
        rnn.unpack_sequence(packed),
        rnn.unpad_sequence(padded.clone(), to(torch.tensor(LENGTHS))),
        rnn.invert_permutation(to(torch.tensor([2, 0, 3, 1]))),
        packed.double().data,
    ]


def test_sequences_are_packed_and_padded_as_in_pytorch() -> None:
    for i, (found, expected) in enumerate(zip(packings(turnout, here), packings(torch, lambda v: v), strict=True)):
        near(found, expected, "float32", str(i))


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"bidirectional": True, "num_layers": 2}, {"bias": False}], ids=str
)
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM", "LSTM with a projection"])
def test_packed_sequences_of_any_order_run_through_recurrent_layers(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    given = options | ({"proj_size": 2} if "projection" in name else {})
    theirs, module = (getattr(t.nn, name.split()[0])(3, 4, **given) for t in (torch, turnout))
    loaded(theirs, module)
    values = [torch.randn(n, 3, requires_grad=True) for n in LENGTHS]
    count = theirs.num_layers * (2 if theirs.bidirectional else 1)
    states = [
        torch.randn(count, len(LENGTHS), n) for n in ([2, 4] if "projection" in name else [4, 4] if name == "LSTM" else [4])
    ]
    results = []
    for t, layer, to in ((torch, theirs, lambda v: v), (turnout, module, here)):
        sequences = [to(v) for v in values]
        state = tuple(to(s) for s in states)
        out, end = layer(t.nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False), state if len(state) > 1 else state[0])
        (out.data.sum() + sum((e * e).sum() for e in tensors([end]))).backward()
        results.append([out.data, end, [s.grad for s in sequences], [p.grad for p in layer.parameters()]])
    near(results[1], results[0], "float32", name)


PARAMETRIZATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "weight norm": (lambda t: t.nn.Linear(3, 4), lambda p: p.weight_norm),
    "weight norm along dim 1": (lambda t: t.nn.Conv1d(2, 3, 3), lambda p: lambda m: p.weight_norm(m, dim=1)),
    "weight norm of all": (lambda t: t.nn.Linear(3, 4), lambda p: lambda m: p.weight_norm(m, dim=None)),
    "spectral norm": (lambda t: t.nn.Conv2d(2, 3, 3), lambda p: lambda m: p.spectral_norm(m, n_power_iterations=2)),
    "spectral norm of a transposed convolution": (lambda t: t.nn.ConvTranspose2d(2, 3, 3), lambda p: p.spectral_norm),
    "spectral norm of a bias": (lambda t: t.nn.Linear(3, 4), lambda p: lambda m: p.spectral_norm(m, "bias")),
    "orthogonal, square": (lambda t: t.nn.Linear(3, 3), lambda p: p.orthogonal),
    "orthogonal, wide": (lambda t: t.nn.Linear(5, 3), lambda p: p.orthogonal),
    "orthogonal, tall": (lambda t: t.nn.Linear(3, 5), lambda p: p.orthogonal),
    "orthogonal by cayley": (lambda t: t.nn.Linear(3, 5), lambda p: lambda m: p.orthogonal(m, orthogonal_map="cayley")),
    "orthogonal by exponentials": (lambda t: t.nn.Linear(5, 3), lambda p: lambda m: p.orthogonal(m, orthogonal_map="matrix_exp")),
    "orthogonal without a base": (lambda t: t.nn.Linear(3, 5), lambda p: lambda m: p.orthogonal(m, use_trivialization=False)),
}


@pytest.mark.parametrize("name", PARAMETRIZATIONS)
def test_parametrized_modules_have_pytorchs_state_and_give_its_numbers(name: str) -> None:
    torch.manual_seed(0)
    make, wrap = PARAMETRIZATIONS[name]
    theirs, module = (wrap(t.nn.utils.parametrizations)(make(t).double()) for t in (torch, turnout))
    # The numbers of a trivialisation are relative to a base that is drawn.
    module.load_state_dict({key: here(value) for key, value in theirs.state_dict().items()})
    shape = (2, theirs.in_features) if hasattr(theirs, "in_features") else (2, theirs.in_channels, *[5] * len(theirs.kernel_size))
    x = torch.randn(shape).double()
    for mode in (True, False):
        results = []
        for layer, to in ((theirs.train(mode), lambda v: v), (module.train(mode), here)):
            layer.zero_grad()
            out = layer(to(x))
            (out * out).sum().backward()
            results.append([out, [p.grad for p in layer.parameters()], list(layer.state_dict().values())])
        near(results[1], results[0], "float64", name)
    parametrize = turnout.nn.utils.parametrize
    tensor = "bias" if "bias" in name else "weight"
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert (type(other), list(other.state_dict())) == (type(module), list(theirs.state_dict()))
        assert turnout.equal(getattr(other, tensor), getattr(module, tensor))
    value = getattr(module, tensor).detach().clone()
    assert parametrize.remove_parametrizations(module, tensor) is module
    torch.nn.utils.parametrize.remove_parametrizations(theirs, tensor)
    assert sorted(module.state_dict()) == sorted(theirs.state_dict())
    assert turnout.equal(getattr(module, tensor), value)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize(
    "make", [lambda t: t.nn.Linear(3, 4), lambda t: t.nn.ConvTranspose1d(2, 3, 3)], ids=["linear", "transposed"]
)
def test_norms_by_hooks_have_pytorchs_names_and_numbers(name: str, make: Any) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(torch.nn.utils, name)(make(torch).double())
    module = getattr(turnout.nn.utils, name)(make(turnout).double())
    module.load_state_dict({key: here(value) for key, value in theirs.state_dict().items()})
    x = torch.randn((2, 3) if isinstance(theirs, torch.nn.Linear) else (2, 2, 5)).double()
    for layer, to in ((theirs, lambda v: v), (module, here)):
        (layer(to(x)) ** 2).sum().backward()
    near([p.grad for p in module.parameters()], [p.grad for p in theirs.parameters()], "float64", "gradients")
    near(module.state_dict(), dict(theirs.state_dict()), "float64", "state")
    near(module.eval()(here(x)), theirs.eval()(x), "float64", "results")
    before = module(here(x))
    getattr(turnout.nn.utils, f"remove_{name}")(module)
    getattr(torch.nn.utils, f"remove_{name}")(theirs)
    assert sorted(module.state_dict()) == sorted(theirs.state_dict())
    assert turnout.allclose(module(here(x)), before)


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
def test_gradients_are_clipped_as_in_pytorch(norm_type: float, foreach: bool | None) -> None:
    torch.manual_seed(0)
    values = [torch.randn(3, 4), torch.randn(5), torch.randn(2, 2).double()]
    for limit in (0.5, 100.0):
        results = []
        for t, to in ((torch, lambda v: v.clone()), (turnout, here)):
            parameters = [t.nn.Parameter(to(torch.zeros_like(v))) for v in values]
            for parameter, value in zip(parameters, values, strict=True):
                parameter.grad = to(value)
            norm = t.nn.utils.clip_grad_norm_(parameters, limit, norm_type, foreach=foreach)
            grads = [p.grad for p in parameters]
            t.nn.utils.clip_grad_value_(parameters, 0.1, foreach=foreach)
            results.append([norm.reshape(1).to(t.float32), [g.to(t.float32) for g in grads]])
        near(results[1], results[0], "float32", str(norm_type))


def test_fused_batch_norms_are_pytorchs() -> None:
    torch.manual_seed(0)
    for layer, norm, shape, transpose in (
        (lambda t: t.nn.Conv2d(2, 4, 3, bias=False), lambda t: t.nn.BatchNorm2d(4), (1, 2, 5, 5), False),
        (lambda t: t.nn.ConvTranspose1d(2, 4, 3), lambda t: t.nn.BatchNorm1d(4, affine=False), (1, 2, 5), True),
        (lambda t: t.nn.Linear(3, 4), lambda t: t.nn.BatchNorm1d(4), (2, 3), None),
    ):
        theirs, own = [layer(torch), norm(torch)], [layer(turnout), norm(turnout)]
        theirs[1](torch.randn(3, 4, *shape[2:]))  # statistics
        for a, b in zip(theirs, own, strict=True):
            loaded(a.eval(), b.eval())
        x = torch.randn(shape)
        fused = [
            t.nn.utils.fuse_linear_bn_eval(*pair) if transpose is None else t.nn.utils.fuse_conv_bn_eval(*pair, transpose)
            for t, pair in ((torch, theirs), (turnout, own))
        ]
        near(fused[1](here(x)), fused[0](x), "float32", "fused")
        near(fused[1].state_dict(), dict(fused[0].state_dict()), "float32", "weights")
