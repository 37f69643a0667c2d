"""Autocast on the CPU against PyTorch's: membership of the lists, and dtype and values of every operator case."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from cases_in_both import OPEN, dtype_of, results  # noqa: E402

import turnout  # noqa: E402
from outcomes import as_array, flat  # noqa: E402
from turnout.registry import find_operator  # noqa: E402
from turnout_autocast.rules import ACCELERATOR, CPU  # noqa: E402
from turnout_conformance.cases import CASES  # noqa: E402

# A unit in the last place of the lower precisions, with room for another order of summation.
TOLERANCES = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 2e-5, "float64": 1e-9}


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
    dtypes = [*case.dtypes, *((lower,) if case.op in CPU and "float32" in case.dtypes else ())]
    casts = torch.autocast("cpu", getattr(torch, lower)), turnout.autocast("cpu", turnout.dtypes.dtype_named(lower))
    for dtype in dtypes:
        for (args, kwargs), found, expected in results(case, dtype, *casts):
            random = draws(find_operator(f"aten::{case.op}"), args, kwargs)
            for i, (e, f) in enumerate(zip(expected, found, strict=True)):
                if random or i in OPEN.get(case.op, ()):
                    continue
                limit = TOLERANCES.get(lower if case.op in CPU and dtype != "float64" else dtype, 1e-6)
                limit = max(limit, case.tolerance)
                close = numpy.allclose(as_array(f), values(e), rtol=limit, atol=limit, equal_nan=True)
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
    assert found.dtype.name == dtype_of(expected)


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
        assert f.dtype.name == dtype_of(e) == "float32"
        assert numpy.allclose(as_array(f), values(e), rtol=TOLERANCES[lower], atol=TOLERANCES[lower])
