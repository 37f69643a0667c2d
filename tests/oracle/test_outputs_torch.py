"""`out=` of every dtype: outputs for integers and bools are refused where PyTorch refuses them, and what both write is equal."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cases_in_both import OPEN, dtype_of, in_torch, to_torch, to_turnout  # noqa: E402
from op_db.bridge import mapped  # noqa: E402

import turnout  # noqa: E402
from outcomes import flat  # noqa: E402
from turnout.registry import find_operator  # noqa: E402
from turnout_aten.declarations.tables import standard  # noqa: E402
from turnout_aten.generation.packets import same_inputs  # noqa: E402
from turnout_conformance.cases import CASES, OperatorCase, calls  # noqa: E402

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "complex64")
# differs from torch: operator -> why.
DIFFERS = {
    "_fft_r2c": "PyTorch writes into outputs of any dtype", "_fft_c2r": "as _fft_r2c", "_fft_c2c": "as _fft_r2c",
    **{
        f"bitwise_{name}": "integers are converted, as by the other operators on bits"
        for name in ("not", *(f"{n}.Scalar_Tensor" for n in ("and", "or", "xor", "left_shift", "right_shift")))
    },
    "binary_cross_entropy": "PyTorch leaves intermediate values in the output",
}  # fmt: skip


def out_of(case: OperatorCase) -> Any:
    base = standard().find(case.op.replace(".", "__"))
    found = [o for o in standard().overloads(case.op.partition(".")[0]) if o.schema.kind == "out" and same_inputs(base, o)]
    written = found[0].schema.out_arguments if found else ()
    return found[0] if written and not any(a.type.is_tensor_list for a in written) else None


@pytest.mark.parametrize("case", [c for c in CASES if out_of(c) and c.op not in DIFFERS], ids=str)
def test_outputs_are_refused_where_torch_refuses_them(case: OperatorCase) -> None:
    row, (name, _, overload) = out_of(case), case.op.partition(".")
    packet, own = getattr(torch.ops.aten, name), row.qualified_name.partition(".")[2]
    ours, names = find_operator(row.qualified_name), [a.name for a in row.schema.out_arguments]
    if own not in packet.overloads() or "nondeterministic_seeded" in ours.tags or "empty" in name:
        return
    accepted = {a.name for a in row.schema.arguments}
    (args, kwargs), (own_args, own_kwargs) = [next(calls(case, case.dtypes[0], make)) for make in (to_torch, to_turnout)]
    args, kwargs = mapped((args, kwargs), in_torch)
    kwargs, own_kwargs = [{k: v for k, v in given.items() if k in accepted} for given in (kwargs, own_kwargs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = flat(getattr(packet, overload or "default")(*args, **kwargs))
        for i, dtype in [(i, d) for i in range(len(names)) for d in DTYPES if len(results) == len(names)]:
            dtypes = [dtype if k == i else dtype_of(r) for k, r in enumerate(results)]
            theirs = [torch.zeros(r.shape, dtype=getattr(torch, d)) for r, d in zip(results, dtypes, strict=True)]
            mine = [
                turnout.zeros(tuple(r.shape), dtype=turnout.dtypes.dtype_named(d)) for r, d in zip(results, dtypes, strict=True)
            ]
            errors: list[Exception | None] = [None, None]
            for k, (call, a, b, outs) in enumerate(
                [(getattr(packet, own), args, kwargs, theirs), (ours, own_args, own_kwargs, mine)]
            ):
                try:
                    call(*a, **b, **dict(zip(names, outs, strict=True)))
                except Exception as error:  # noqa: BLE001 - whether it raises is what is compared
                    errors[k] = error
            if errors[0] is None:
                assert errors[1] is None, (names[i], dtype)
                if i not in OPEN.get(case.op, ()):
                    found, expected = np.asarray(mine[i].tolist()), np.asarray(theirs[i].resolve_conj().tolist())
                    assert np.allclose(found, expected, rtol=1e-3, atol=1e-4, equal_nan=True), (names[i], dtype)
            elif not results[i].dtype.is_floating_point and not results[i].dtype.is_complex:
                assert errors[1] is not None, (names[i], dtype)
