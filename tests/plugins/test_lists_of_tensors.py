"""Lists of tensors are tuples where public functions and methods give them, and lists where operators do."""

from __future__ import annotations

from typing import Any

import pytest

import turnout
from turnout import ops
from turnout.library import custom_op
from turnout.registry import Registrations
from turnout_aten.declarations.tables import standard
from turnout_conformance.cases import CASES, OperatorCase, calls


def row_of(case: OperatorCase) -> Any:
    return standard().find(case.op.replace(".", "__"))


def lists(case: OperatorCase) -> bool:
    return [r.type.is_tensor_list for r in row_of(case).schema.returns] == [True]


def made(data: Any, dtype: str) -> turnout.Tensor:
    return turnout.tensor(data, dtype=turnout.dtypes.dtype_named(dtype))


@pytest.mark.parametrize("case", [case for case in CASES if lists(case)], ids=str)
def test_operators_give_lists_and_public_functions_and_methods_tuples(case: OperatorCase) -> None:
    name, _, overload = case.op.partition(".")
    row = row_of(case)
    for args, kwargs in calls(case, case.dtypes[0], made):
        for twice in (0, 1):  # the second call may take a shorter way
            assert type(getattr(getattr(ops.aten, name), overload or "default")(*args, **kwargs)) is list, twice
            if row.module == "" and hasattr(turnout, name):
                assert type(getattr(turnout, name)(*args, **kwargs)) is tuple, twice
            if row.is_method and isinstance(args[0], turnout.Tensor):
                assert type(getattr(args[0], name)(*args[1:], **kwargs)) is tuple, twice
            traced = turnout.graphs.trace(lambda *a, name=name, kwargs=kwargs: getattr(ops.aten, name)(*a, **kwargs))
            if all(isinstance(a, turnout.Tensor) for a in args) and name not in ("nonzero_numpy", "where"):
                assert type(traced(*args)(*args)) is list


def test_other_forms_of_the_same_calls() -> None:
    x = turnout.arange(4.0)
    found = turnout.histogramdd(turnout.ones(2, 2), [2, 2])
    assert (type(found).__name__, type(found.bin_edges)) == ("histogramdd", tuple)
    assert type(turnout.where(x > 1)) is type(turnout.where(condition=x > 1)) is type(turnout.split(x, split_size=2)) is tuple
    assert turnout.split_copy(x, 2, out=[turnout.empty(0), turnout.empty(0)]) is None
    assert isinstance(turnout.where(x > 1, x, 0), turnout.Tensor)
    assert turnout.tensor([turnout.ones(1), turnout.ones(1)]).shape == (2, 1)
    assert turnout.vmap(lambda v: v.split(1), out_dims=[0, 0])(turnout.ones(3, 2))[0].shape == (3, 1)
    assert type(turnout.vmap(lambda v: v.unbind())(turnout.ones(3, 2))) is tuple
    graph = turnout.trace(lambda v: (v.split(2), [*v.split(2)]))(x)
    assert [type(each) for each in graph(x)] == [tuple, list]


@pytest.mark.filterwarnings("ignore:.* has no batching rule")
@pytest.mark.parametrize("kind", [list, tuple])
def test_kernels_may_return_either(kind: Any) -> None:
    x = turnout.ones(2)
    with Registrations("either") as library:
        plain = library.define("either::plain(Tensor x) -> Tensor[]")
        boxed = library.define("either::boxed(Tensor x, *, int n=2) -> Tensor[]")
        library.impl("plain", "CompositeExplicitAutograd", lambda x: kind([x + 1, x + 2]))
        library.impl("boxed", "CompositeExplicitAutograd", lambda op, ks, args: kind([args[0] + 1] * args[1]), form="boxed")
        for op in (plain, boxed):
            assert type(op(x)) is type(op.redispatch(x.keys, *((x,) if op is plain else (x, 2)))) is list
            assert type(turnout.vmap(op)(turnout.ones(3, 2))) is type(turnout.graphs.trace(op)(x)(x)) is list

    def pieces(x: turnout.Tensor) -> list[turnout.Tensor]:
        return kind([x + 1, x + 2])  # type: ignore[no-any-return]

    op = custom_op(f"either::{kind.__name__}_pieces", mutates_args=())(pieces)
    assert type(op(x)) is type(getattr(ops.either, f"{kind.__name__}_pieces")(x)) is list
    op.undo()
