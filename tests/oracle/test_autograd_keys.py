"""Which of several kernels a call reaches first, for every set of keys they may stand at, by PyTorch and here."""

from __future__ import annotations

from itertools import combinations, product

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

turnout.ones(1, requires_grad=True)

KEYS = ("CPU", "Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradMeta")
SETS = [
    keys
    for count in range(1, len(KEYS) + 1)
    for keys in combinations(KEYS, count)
    if "CompositeImplicitAutograd" not in keys or not {"CompositeExplicitAutograd", "Meta"} & set(keys)
]


def first_reached(library, name, keys):
    """The key whose kernel runs first, or None where the call is an error, per device and need of a gradient."""
    reached = {}
    with_kernels = library.library.Library(name, "DEF")
    with_kernels.define("probe(Tensor x) -> Tensor")
    for key in keys:

        def kernel(x, key=key):
            ran.append(key)
            return library.empty_like(x)

        with_kernels.impl("probe", kernel, key)
    op = getattr(library.ops, name).probe
    for device, tracked in product(("cpu", "meta"), (False, True)):
        ran = []
        try:
            op(library.ones(2, device=device, requires_grad=tracked))
        except NotImplementedError:
            pass
        reached[device, tracked] = ran[0] if ran else None
    (with_kernels._destroy if library is torch else with_kernels.undo)()
    return reached


@pytest.mark.parametrize("number", range(len(SETS)), ids=lambda n: "+".join(SETS[n]))
@pytest.mark.filterwarnings("ignore")
def test_the_first_kernel_is_torchs(number):
    theirs = first_reached(torch, f"probe{number}", SETS[number])
    ours = first_reached(turnout, f"probe{number}", tuple(reversed(SETS[number])))
    assert ours == theirs
