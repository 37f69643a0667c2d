"""Autocast on the CPU against PyTorch's: membership of the lists, and dtype and values of every operator case."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from freedoms import OPEN  # noqa: E402

import turnout  # noqa: E402
from turnout.registry import find_operator  # noqa: E402
from turnout_autocast.rules import ACCELERATOR, CPU  # noqa: E402
from turnout_conformance.cases import CASES, calls  # noqa: E402

# A unit in the last place of the lower precisions, with room for another order of summation.
TOLERANCES = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 2e-5, "float64": 1e-9}


def to_torch(data, dtype):
    return torch.tensor(data, dtype=getattr(torch, dtype))


def to_turnout(data, dtype):
    return turnout.tensor(data, dtype=turnout.dtypes.dtype_named(dtype), device="cpu")


def flat(result):
    return [v for part in result for v in flat(part)] if isinstance(result, (list, tuple)) else [result]


def theirs_of(value):
    """An argument that is no tensor as PyTorch takes it."""
    if isinstance(value, turnout.dtypes.DType):
        return getattr(torch, value.name)
    return [theirs_of(v) for v in value] if isinstance(value, list) else value


def draws(op, args, kwargs):
    """Whether the results are random numbers, which are not PyTorch's."""
    if not any(tag.startswith("nondeterministic_seeded") for tag in op.tags):
        return False
    found = []
    for seed in (1, 2):
        turnout.manual_seed(seed)
        found.append(str([t.tolist() for t in flat(op(*args, **kwargs))]))
    return found[0] != found[1]


@pytest.mark.parametrize(("key", "rules"), [("AutocastCPU", CPU), ("AutocastCUDA", ACCELERATOR)])
def test_the_lists_have_the_operators_that_torch_lists(key, rules):
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    listed = {n.removeprefix("aten::") for n in names if torch._C._dispatch_has_kernel_for_dispatch_key(n, key)}
    assert set(rules) == listed


def values(tensor):
    wide = tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
    return wide.detach().resolve_conj().resolve_neg().numpy()


def own_values(tensor):
    return (tensor.float() if tensor.dtype in (turnout.bfloat16, turnout.float16) else tensor).detach().numpy()


# differs from torch: none is on its list; they are composites of other operators here, of which other ones are cast.
OF_OTHER_PIECES = {
    "bilinear", "rnn_tanh_cell", "lstm_cell", "gru_cell", "rnn_tanh.input", "lstm.input",
    "linalg_pinv", "linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float", "linalg_pinv.rcond_tensor",
}  # fmt: skip


def test_what_is_cast_otherwise_is_not_on_the_list():
    assert set(CPU) & OF_OTHER_PIECES == set()


@pytest.mark.parametrize("lower", ["bfloat16", "float16"])
@pytest.mark.parametrize("case", [c for c in CASES if c.op not in OF_OTHER_PIECES], ids=str)
def test_dtypes_and_values_under_autocast_are_those_of_torch(case, lower):
    name, _, overload = case.op.partition(".")
    theirs = getattr(getattr(torch.ops.aten, name), overload or "default")
    ours = find_operator(f"aten::{case.op}")
    dtypes = [*case.dtypes, *((lower,) if case.op in CPU and "float32" in case.dtypes else ())]
    for dtype in dtypes:
        pairs = zip(calls(case, dtype, to_torch), calls(case, dtype, to_turnout), strict=True)
        for (args, kwargs), (own_args, own_kwargs) in pairs:
            with warnings.catch_warnings(), torch.autocast("cpu", getattr(torch, lower)):
                warnings.simplefilter("ignore")
                expected = flat(theirs(*theirs_of(list(args)), **{k: theirs_of(v) for k, v in kwargs.items()}))
            with turnout.autocast("cpu", turnout.dtypes.dtype_named(lower)):
                found = flat(ours(*own_args, **own_kwargs))
            assert len(found) == len(expected)
            random = draws(ours, own_args, own_kwargs)
            for i, (e, f) in enumerate(zip(expected, found, strict=True)):
                assert f.dtype.name == str(e.dtype).removeprefix("torch."), (dtype, args)
                if random or i in OPEN.get(case.op, ()):
                    continue
                limit = TOLERANCES.get(lower if case.op in CPU and dtype != "float64" else dtype, 1e-6)
                limit = max(limit, case.tolerance)
                close = numpy.allclose(own_values(f), values(e), rtol=limit, atol=limit, equal_nan=True)
                assert close, (dtype, args, f.tolist(), e.tolist())


PAIRS = [
    ("float32", "bfloat16"),
    ("bfloat16", "bfloat16"),
    ("float64", "float64"),
    ("float64", "bfloat16"),
    ("int32", "bfloat16"),
]


@pytest.mark.parametrize("dtypes", PAIRS, ids=lambda pair: "-".join(pair))
@pytest.mark.parametrize("op", ["cat", "stack"])
def test_mixed_dtypes_are_promoted_as_by_torch(op, dtypes):
    with torch.autocast("cpu"):
        expected = getattr(torch, op)([torch.ones(2, dtype=getattr(torch, d)) for d in dtypes])
    with turnout.autocast("cpu"):
        found = getattr(turnout, op)([turnout.ones(2, dtype=getattr(turnout, d)) for d in dtypes])
    assert found.dtype.name == str(expected.dtype).removeprefix("torch.")


@pytest.mark.parametrize("lower", ["bfloat16", "float16"])
def test_a_step_of_training_has_the_gradients_of_torch_in_dtype_and_value(lower):
    rng = numpy.random.default_rng(0)
    data = [rng.standard_normal(shape).astype("float32") for shape in [(5, 4), (3, 4), (3,), (2, 3)]]
    labels = rng.integers(0, 2, 5)

    def gradients(lib, autocast, tensor):
        x, w1, b1, w2 = [tensor(d) for d in data]
        weights = [w1.requires_grad_(), b1.requires_grad_(), w2.requires_grad_()]
        with autocast("cpu", getattr(lib, lower)):
            hidden = lib.nn.functional.linear(x, w1, b1).relu()
            loss = lib.nn.functional.cross_entropy(hidden @ w2.t(), tensor(labels))
        loss.backward()
        return [loss, *(w.grad for w in weights)]

    theirs = gradients(torch, torch.autocast, torch.from_numpy)
    ours = gradients(turnout, turnout.autocast, turnout.from_numpy)
    for e, f in zip(theirs, ours, strict=True):
        assert f.dtype.name == str(e.dtype).removeprefix("torch.") == "float32"
        assert numpy.allclose(own_values(f), values(e), rtol=TOLERANCES[lower], atol=TOLERANCES[lower])
