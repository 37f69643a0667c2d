"""PyTorch's operator database: every sample passes every check, but for what `op_db/exceptions.toml` names.

Values, dtypes and shapes are PyTorch's, and so are Meta's answers, the classes of errors, first gradients, second gradients
where PyTorch has them, what the tangent rules say, and what the functional transforms give for the smallest samples. What PyTorch
cannot do (forward mode, a batching rule) says nothing.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from op_db import core, gradients, judging, known, tangents  # noqa: E402
from op_db.checks import CHECKS  # noqa: E402

CASES = [
    pytest.param(name, dtype, info, id=f"{name}-{dtype}-{judging.label(info)}")
    for name, check in CHECKS.items() for dtype in check.dtypes for info in check.infos(dtype)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
@pytest.mark.parametrize(("check", "dtype", "info"), CASES)
def test_every_sample_passes_every_check_but_for_those_that_are_listed(check, dtype, info, record_property):
    verdict = CHECKS[check].verdict(info, getattr(torch, dtype))
    record_property(f"op_db {check} {dtype}", "differs" if verdict else "passes")
    known.confirm(check, judging.label(info), dtype, verdict)


@pytest.mark.parametrize("check", known.checks())
def test_the_list_of_exceptions_names_only_what_exists(check):
    assert known.names(check) <= set(core.operators() if check == "core" else map(judging.label, judging.INFOS))


def info_named(name):
    return next(info for info in judging.INFOS if judging.label(info) == name)


def test_a_wrong_gradient_is_found(monkeypatch):
    from turnout_autograd.generated import pointwise

    right = pointwise.ExpBackward0.backward
    monkeypatch.setattr(pointwise.ExpBackward0, "backward", lambda node, grad, edges: right(node, grad, edges) * 2)
    found = gradients.first(info_named("exp"), torch.float64)
    assert "gradient 0: Tensor-likes are not close!" in found.replace("Scalars", "Tensor-likes")


@pytest.mark.parametrize("name", ["mul", "linalg.det", "cumprod", "nn.functional.layer_norm"])
def test_a_wrong_rule_of_tangents_is_found(name, monkeypatch):
    info = info_named(name)
    assert tangents.verdict(info, torch.float64) is None
    for operator in {call.name for call in tangents.calls(info, torch.float64)}:
        right = tangents.operators()[operator].rule.compute
        monkeypatch.setattr(tangents.operators()[operator].rule, "compute", lambda *args, right=right: doubled(right(*args)))
    assert "tangent 0: " in tangents.verdict(info, torch.float64)


def doubled(found):
    if isinstance(found, tuple | list):
        return [doubled(each) for each in found]
    return None if found is None else found * 2
