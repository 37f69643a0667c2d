"""PyTorch's operator database: the functional transforms of every operator give what `torch.func` gives.

`vjp`, `jvp`, `jacrev`, `jacfwd`, second derivatives and `vmap(grad)` on the smallest samples, in float64 and complex128, but for
what `op_db/exceptions.toml` names. What PyTorch cannot do (forward mode, a batching rule) says nothing.
"""

from __future__ import annotations

from functools import wraps

import pytest

from turnout.registry import REGISTRY

torch = pytest.importorskip("torch")

from op_db import judging, known, transforms  # noqa: E402

CASES = [
    pytest.param(info, dtype, id=f"{judging.label(info)}-{str(dtype)[6:]}")
    for dtype in (torch.float64, torch.complex128)
    for info in judging.infos(dtype)
    if info.supports_autograd and info.name not in judging.RANDOM
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_transforms_give_what_those_of_torch_give(info, dtype):
    verdict = transforms.judge(info, dtype, 2)
    reason = known.reason("transforms", judging.label(info), str(dtype)[6:])
    if reason is None:
        assert verdict == {}
    else:
        assert verdict != {}, f"passes now: take {judging.label(info)} {dtype} out of exceptions.toml"


def test_the_list_of_exceptions_names_only_what_exists():
    assert known.names("transforms") <= {judging.label(i) for i in judging.INFOS}


def test_a_wrong_tangent_is_found(monkeypatch):
    from turnout_autograd.generated.tangents import pointwise

    info = next(i for i in judging.INFOS if i.name == "sinh")
    right = pointwise.tangent_of_sinh
    monkeypatch.setattr(pointwise, "tangent_of_sinh", wraps(right)(lambda *args: right(*args) * 2))
    REGISTRY.changed()  # kernels bind their rules
    try:
        assert transforms.judge(info, torch.float64, 1).keys() == {"jvp"}
    finally:
        monkeypatch.undo()
        REGISTRY.changed()
