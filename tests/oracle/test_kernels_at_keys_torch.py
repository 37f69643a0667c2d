"""Random programs of definitions, kernels and their ends: every call passes the kernels that it passes in PyTorch."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")

from random_programs import kernels_at_keys as programs  # noqa: E402

KEY = torch._C.DispatchKey
BELOW = (
    torch._C._after_autograd_keyset, torch._C._after_ADInplaceOrView_keyset,
    torch._C._dispatch_keyset_full_after(KEY.BackendSelect),
)  # fmt: skip


def excluding(name):
    if name == "Autograd":
        return torch._C._AutoDispatchBelowAutograd()
    return torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(getattr(KEY, name))) if name else nullcontext()


THEIRS = programs.Way(
    torch,
    {"c": torch.ones(2), "t": torch.ones(2, requires_grad=True), "m": torch.ones(2, device="meta")},
    lambda keys, names: keys & BELOW[len(names) - 1],
    excluding,
)


@pytest.mark.filterwarnings("ignore")
def test_every_call_passes_the_kernels_that_it_passes_in_torch(seeds):
    for seed in seeds(100, many=5000):
        ours, theirs = (
            [(call, programs.run(op, given, passed)) for _, call, passed, op, given in programs.calls(way, steps, f"drawn{seed}")]
            for way, steps in ((way, programs.drawn(seed)) for way in (programs.OURS, THEIRS))
        )
        assert ours == theirs, programs.drawn(seed)
