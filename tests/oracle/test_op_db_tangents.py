"""PyTorch's operator database: tangent rules say what PyTorch's forward mode says, but for what `op_db/exceptions.toml` names."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from op_db import judging, known, tangents  # noqa: E402

CASES = [
    pytest.param(info, dtype, id=f"{judging.label(info)}-{str(dtype)[6:]}")
    for dtype in (torch.float64, torch.complex128) for info in judging.infos(dtype) if info.supports_autograd
]  # fmt: skip


@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_tangents_are_those_of_torch(info, dtype):
    verdict = tangents.verdict(info, dtype)
    reason = known.reason("tangents", judging.label(info), str(dtype)[6:])
    if reason is None:
        assert verdict is None, verdict
    else:
        assert verdict is not None, f"passes now: take {judging.label(info)} {dtype} out of exceptions.toml"


def test_the_list_of_exceptions_names_only_what_exists():
    assert known.names("tangents") <= {judging.label(i) for i in judging.INFOS}


@pytest.mark.parametrize("name", ["mul", "linalg.det", "cumprod", "nn.functional.layer_norm"])
def test_a_wrong_rule_is_found(name, monkeypatch):
    info = next(i for i in judging.infos(torch.float64) if judging.label(i) == name)
    assert tangents.verdict(info, torch.float64) is None
    for operator in {call.name for call in tangents.calls(info, torch.float64)}:
        right = tangents.operators()[operator].rule.compute
        monkeypatch.setattr(tangents.operators()[operator].rule, "compute", lambda *args, right=right: doubled(right(*args)))
    assert "tangent 0: " in tangents.verdict(info, torch.float64)


def doubled(found):
    if isinstance(found, tuple | list):
        return [None if t is None else t * 2 for t in found]
    return None if found is None else found * 2
