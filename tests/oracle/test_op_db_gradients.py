"""PyTorch's operator database: gradients of every sample are PyTorch's, but for what `op_db/exceptions.toml` names.

First order in float64 and complex128, second order in float64 wherever PyTorch has it.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from op_db import gradients, judging, known  # noqa: E402

REAL = [i for i in judging.infos(torch.float64) if i.supports_autograd]
COMPLEX = [i for i in judging.infos(torch.complex128) if i.supports_autograd]


@pytest.mark.parametrize("info", REAL, ids=judging.label)
def test_first_gradients_are_those_of_torch(info):
    judge("gradients", gradients.first(info, torch.float64), info, "float64")


@pytest.mark.parametrize("info", COMPLEX, ids=judging.label)
def test_first_gradients_of_complex_numbers_are_those_of_torch(info):
    judge("gradients", gradients.first(info, torch.complex128), info, "complex128")


@pytest.mark.parametrize("info", [i for i in REAL if i.supports_gradgrad], ids=judging.label)
def test_second_gradients_are_those_of_torch(info):
    judge("second", gradients.second(info, torch.float64), info, "float64")


def judge(check, verdict, info, dtype):
    reason = known.reason(check, judging.label(info), dtype)
    if reason is None:
        assert verdict is None, verdict
    else:
        assert verdict is not None, f"passes now: take {judging.label(info)} {dtype} out of exceptions.toml"


@pytest.mark.parametrize("check", ["gradients", "second"])
def test_the_list_of_exceptions_names_only_what_exists(check):
    assert known.names(check) <= {judging.label(i) for i in judging.INFOS}


def test_a_wrong_gradient_is_found(monkeypatch):
    info = next(i for i in REAL if i.name == "exp")
    from turnout_autograd.generated import pointwise

    right = pointwise.ExpBackward0.backward
    monkeypatch.setattr(pointwise.ExpBackward0, "backward", lambda node, grad, edges: right(node, grad, edges) * 2)
    assert "gradient 0: Tensor-likes are not close!" in gradients.first(info, torch.float64).replace("Scalars", "Tensor-likes")
