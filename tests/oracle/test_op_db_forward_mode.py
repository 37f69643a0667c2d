"""PyTorch's operator database: forward mode passes gradcheck on every operator that has a gradient, in the first order and in the
second, forward over reverse and reverse over forward, but for what `op_db/exceptions.toml` names with the reason.

The judge are differences of Turnout's own values; PyTorch gives the calls, and says which results are differentiable.
"""

from __future__ import annotations

from functools import wraps

import numpy as np
import pytest

from turnout import func
from turnout.registry import REGISTRY

torch = pytest.importorskip("torch")

from op_db import forward_mode, judging, known, transforms  # noqa: E402
from op_db.transforms import sides, smallest  # noqa: E402

CASES = [
    (info, dtype)
    for dtype in (torch.float64, torch.complex128)
    for info in judging.infos(dtype) if info.supports_autograd and (info.name != "to_sparse" or dtype is torch.float64)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
@pytest.mark.parametrize(
    ("info", "dtype"), [pytest.param(*case, id=f"{judging.label(case[0])}-{str(case[1])[6:]}") for case in CASES]
)
def test_forward_mode_passes_gradcheck(info, dtype):
    ran, wrong = forward_mode.judge(info, dtype)
    known.confirm("forward_mode", judging.label(info), str(dtype)[6:], wrong)
    if not wrong:
        assert ran["tangents"] > 0
        assert ran["forward over reverse"] == ran["reverse over forward"] == info.supports_gradgrad


ALL = 1000  # samples


@pytest.mark.parametrize("name", ["to", "double", "cdouble"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_conversions_pass_on_all_samples_with_memory_formats_among_them(name, dtype):
    ran, wrong = forward_mode.judge(next(i for i in judging.INFOS if i.name == name), dtype, ALL, ALL)
    assert wrong == {}
    assert len(set(ran.values())) == 1
    assert min(ran.values()) >= 5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "least"), [("masked.log_softmax", 17), ("masked.logaddexp", 11)])
def test_tangents_beside_masked_elements_are_those_of_torch_with_their_nan(name, least):
    """A masked element is infinite there, so differences are NaN: gradcheck passes only on the samples without a mask."""
    info = next(i for i in judging.INFOS if i.name == name)
    nan = count = 0
    for sample in smallest(info, torch.float64, ALL):
        theirs, ours = sides(info, sample)
        expected = torch.func.jvp(lambda *given: theirs(*given), tuple(theirs.inputs), tuple(theirs.tangents))[1]  # noqa: B023
        found = func.jvp(lambda *given: ours(*given), tuple(ours.inputs), tuple(ours.tangents))[1]  # noqa: B023
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(other.numpy(), one.detach().numpy(), rtol=1e-9, atol=1e-12)
            nan += bool(one.isnan().any())
        count += 1
    assert count >= least
    assert nan > 0


def test_few_operators_are_left_out():
    for dtype, least in ((torch.float64, 525), (torch.complex128, 315)):
        names = [judging.label(info) for info, kind in CASES if kind is dtype]
        assert sum(known.reason("forward_mode", name, str(dtype)[6:]) is None for name in names) >= least


@pytest.fixture
def wrong_rule(monkeypatch):
    """`wrong_rule(change)` makes the rule of sinh give what `change` makes of the right tangent; returns the OpInfo."""
    from turnout_autograd.generated.tangents import pointwise

    right = pointwise.tangent_of_sinh

    def make(change):
        def tangent(tangents, result, self):
            found = right(tangents, result, self)
            return None if found is None else change(found)

        monkeypatch.setattr(pointwise, "tangent_of_sinh", wraps(right)(tangent))
        REGISTRY.changed()  # kernels bind their rules
        return next(i for i in judging.INFOS if i.name == "sinh")

    yield make
    monkeypatch.undo()
    REGISTRY.changed()


def test_a_wrong_tangent_is_found(wrong_rule):
    info = wrong_rule(lambda found: found * 2)
    assert "tangents" in forward_mode.judge(info, torch.float64)[1]
    assert transforms.judge(info, torch.float64, 1).keys() == {"jvp"}


def test_a_tangent_without_its_own_derivative_is_found(wrong_rule):
    info = wrong_rule(lambda found: found.detach())
    assert forward_mode.judge(info, torch.float64)[1].keys() == {"reverse over forward"}
