"""PyTorch's operator database: every sample gives what PyTorch gives, but for what `op_db/exceptions.toml` names."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from op_db import judging, known  # noqa: E402

DTYPES = ("float32", "int64")


@pytest.mark.parametrize(
    ("dtype", "info"),
    [pytest.param(d, i, id=f"{d}-{judging.label(i)}") for d in DTYPES for i in judging.infos(getattr(torch, d))],
)
def test_every_sample_gives_what_torch_gives(dtype, info, record_property):
    judge("forward", dtype, info, record_property)


@pytest.mark.parametrize("info", [i for i in judging.infos(torch.float32) if i.error_inputs_func], ids=judging.label)
def test_every_error_input_is_an_error_of_the_same_class_on_cpu_and_meta(info, record_property):
    judge("errors", "float32", info, record_property)


def judge(check, dtype, info, record_property):
    verdict = getattr(judging, check)(info, getattr(torch, dtype))
    record_property(f"op_db {check} {dtype}", "passes" if verdict is None else "differs")
    reason = known.reason(check, judging.label(info), dtype)
    if reason is None:
        assert verdict is None, verdict
    else:
        assert verdict is not None, f"passes now: take {judging.label(info)} {dtype} out of exceptions.toml"


@pytest.mark.parametrize("check", ["forward", "errors"])
def test_the_list_of_exceptions_names_only_what_exists(check):
    assert known.names(check) <= {judging.label(i) for i in judging.INFOS}
