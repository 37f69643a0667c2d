"""A device that has no room left, over a stand-in that runs out: what the error says; and how memory is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pretended_cuda import pretended
from test_cuda_runtime import HAS_CUDA, cuda

import turnout
from outcomes import refused
from turnout.errors import OutOfMemoryError
from turnout_cuda.backend import CUDABackend

pytestmark = pytest.mark.skipif(HAS_CUDA, reason="there is a device of type cuda, which the stand-in would stand for")
MOST = 1 << 20
SMALLER = "to fix     use smaller tensors or a smaller dtype, or delete tensors that are no longer needed"
LIMIT = "cupy.get_default_memory_pool().set_limit, or CUPY_GPU_MEMORY_LIMIT, sets another limit"


@pytest.fixture
def full() -> Iterator[Any]:
    """Two devices of type cuda, of which each gives a mebibyte; three quarters of the first one are in use."""
    with pretended(CUDABackend) as made:
        made.cupy.cuda.pool.limit = MOST
        made.held = turnout.zeros(3 << 16, device="cuda")
        yield made


def facts(asked: str, used: str, kept: str, free: str = "1000 bytes", limit: bool = True) -> str:
    text = f"  memory     {asked} asked for; arrays use {used}, {kept} are kept for later ones, {free} of 1.0 GiB are free\n"
    return text + ("  limit      1.0 MiB, which CuPy's pool may take\n" if limit else "")


def test_the_error_says_what_was_asked_for_what_is_in_use_and_what_can_be_done(full: Any) -> None:
    x = full.held
    assert refused(OutOfMemoryError, lambda: x + 1.0) == (
        "aten::add.Scalar: cuda:0 has no room for 768.0 KiB (float32 [196608])\n"
        "  arguments  self: Tensor float32 [196608] on cuda:0, other: float 1.0\n"
        f"{facts('768.0 KiB', '768.0 KiB', '0 bytes')}  {SMALLER}; {LIMIT}"
    )
    assert refused(OutOfMemoryError, lambda: turnout.empty(1 << 20, device="cuda")).endswith(
        f"{facts('4.0 MiB', '768.0 KiB', '0 bytes')}  {SMALLER}; {LIMIT}"
    )
    other = turnout.ones(1 << 17, device="cuda:1")
    said = refused(OutOfMemoryError, lambda: other.exp().exp() + other)
    assert said.startswith("aten::exp: cuda:1 has no room for 512.0 KiB (float32 [131072])\n")
    assert "arrays use 1.0 MiB, 0 bytes are kept for later ones, 1001 bytes of 1.0 GiB are free" in said


def test_what_is_kept_for_later_arrays_can_be_given_back(full: Any) -> None:
    full.held = turnout.zeros(1 << 16, device="cuda")
    said = refused(OutOfMemoryError, lambda: turnout.zeros(1 << 18, device="cuda"))
    assert facts("1.0 MiB", "256.0 KiB", "768.0 KiB") in said
    assert said.endswith(f"{SMALLER}; turnout.cuda.empty_cache() gives back what is kept; {LIMIT}")


def test_kernels_that_need_room_say_so_too(full: Any) -> None:
    small = turnout.ones(200, 200, device="cuda").t()  # a product of it is made from a copy, or into one
    kept = [turnout.zeros(1 << 10, device="cuda") for _ in range(10)]
    with pytest.raises(MemoryError) as caught:
        [small.contiguous() for _ in range(2)], turnout.softmax(small.contiguous(), 0)
    assert isinstance(caught.value, OutOfMemoryError)
    assert kept


def test_a_call_that_found_no_room_leaves_things_as_they_were(full: Any) -> None:
    x = full.held
    before = cuda.memory_allocated()
    for _ in range(3):
        refused(OutOfMemoryError, lambda: x * 2.0)
    assert (cuda.memory_allocated(), cuda.current_device()) == (before, 0)
    full.cupy.cuda.pool.limit = 4 * MOST
    assert float((x + 1.0).sum()) == 3 << 16


def test_recorded_work_that_finds_no_room_says_so(full: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, recording = full.held, cuda.CUDAGraph()
    made = full.cupy.cuda.MemoryPool
    monkeypatch.setattr(full.cupy.cuda, "MemoryPool", lambda: limited(made()))
    with (
        pytest.raises(OutOfMemoryError, match=r"(?s)^aten::add.Scalar: cuda:0 has no room for 768.0 KiB.*768.0 KiB asked for"),
        cuda.graph(recording),
    ):
        x + 1.0
    assert not full.cupy.cuda.here.capturing


def limited(pool: Any) -> Any:
    pool.limit = 1 << 10
    return pool


def test_the_pool_is_asked_only_where_more_may_be_in_use_than_ever(full: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    pool, used = full.cupy.cuda.pool, type(full.cupy.cuda.pool).used_bytes
    monkeypatch.setattr(type(pool), "used_bytes", lambda self: asked.append(1) or used(self))
    x = turnout.ones(1 << 14, device="cuda")
    most = cuda.max_memory_allocated()
    x = None
    asked.clear()
    for _ in range(64):
        x = turnout.ones(1 << 10, device="cuda")
    assert x is not None
    assert len(asked) <= 5
    assert cuda.max_memory_allocated() == most
    y = [turnout.ones(1 << 10, device="cuda") for _ in range(20)]
    assert cuda.max_memory_allocated() == most + 5 * 4096
    assert len(y) == 20
