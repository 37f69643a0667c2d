"""Every operator case on every array backend against NumPy: values, shapes, dtypes, and that inputs are left alone.

The in-place, out and strided forms of the same calls must agree with the functional one on contiguous tensors.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.dtypes import dtype_named
from turnout.errors import AliasError, DTypeError
from turnout.operators import Operator
from turnout.registry import REGISTRY, Registrations
from turnout_arrays import ArrayBackend, kernels
from turnout_aten.kernels.tables import register_kernels
from turnout_aten.views.recording import INPLACE_VIEW
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import ABOUT_STRIDES, CASES, OperatorCase
from turnout_cpu import lapack, special

DEVICES = ("cpu", "second")
GRID = [pytest.param(case, dtype, id=f"{case.op}-{dtype}") for case in CASES for dtype in case.dtypes]


class Second(ArrayBackend):
    """NumPy behind another device name: composite kernels must stay on it."""

    name = "SECOND"
    device_type = "second"


class Forbidden(ArrayBackend):
    """The default device while `Second` is tested: a kernel that makes a tensor without saying where fails."""

    name = "FORBIDDEN"
    device_type = "forbidden"

    def empty(self, *args: Any) -> Any:
        raise AssertionError("a tensor was made on the default device")

    from_host = adopt = random_bits = empty


@pytest.fixture(scope="module", autouse=True)
def second_device() -> Iterator[None]:
    with Registrations("second") as library:
        backend = Second(np)
        library.backend(backend)
        library.backend(Forbidden(np))
        register_kernels(library, backend, lapack.kernels() | special.kernels() | kernels(np))
        yield


def test_a_composite_kernel_that_makes_a_tensor_on_the_default_device_is_found() -> None:
    with Registrations("careless") as library, turnout.config.override({"default_device": "forbidden"}):
        library.define("careless(Tensor self) -> Tensor")
        library.impl("careless", "CompositeImplicitAutograd", lambda x: x + turnout.zeros(1))
        with pytest.raises(AssertionError, match="a tensor was made on the default device"):
            turnout.ops.careless.careless(turnout.zeros(1, device="second"))


def array(data: Any, dtype: str) -> np.ndarray:
    return np.array(data, dtype)


def tensor(data: Any, dtype: str, device: str = "cpu") -> turnout.Tensor:
    return turnout.tensor(data, dtype=dtype_named(dtype), device=device)


def spread(data: Any, dtype: str) -> turnout.Tensor:
    """The same values with other strides: every second element of twice as much memory, the dims reversed."""
    plain = np.array(data, dtype)
    room = np.zeros([2 * n for n in reversed(plain.shape)], dtype)
    view = room[(..., *(slice(None, None, 2) for _ in plain.shape))].T
    view[...] = plain
    return turnout.from_numpy(view)


def find(name: str) -> Operator:
    return REGISTRY.find(f"aten::{name}")


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def call(op: Operator, args: Any, kwargs: Any) -> list[Any]:
    return flat(op(*args, **kwargs))


def check(case: OperatorCase, found: list[Any], expected: Any) -> None:
    expected = flat(expected)
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        got = got.numpy() if isinstance(got, turnout.Tensor) else got
        assert operator_cases.close(np, got, want, case.tolerance), f"{case.op}: got\n{got}\nexpected\n{want}"


def samples(case: OperatorCase, dtype: str, make: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(args, kwargs, what the reference says) of each call."""
    built = operator_cases.calls(case, dtype, make)
    for (args, kwargs), (plain, named) in zip(built, operator_cases.calls(case, dtype, array), strict=True):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = case.reference(np, *plain, **named)
        yield args, kwargs, expected


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("case", "dtype"), GRID)
def test_operator_agrees_with_numpy(case: OperatorCase, dtype: str, device: str) -> None:
    for args, kwargs, expected in samples(case, dtype, lambda d, t: tensor(d, t, device)):
        before = [t.tolist() for t in flat([*args, *kwargs.values()]) if isinstance(t, turnout.Tensor)]
        with turnout.config.override({"default_device": "cpu" if device == "cpu" else "forbidden"}):
            found = call(find(case.op), args, kwargs)
        check(case, found, expected)
        assert {t.device.type for t in found if isinstance(t, turnout.Tensor)} == {device}
        after = [t.tolist() for t in flat([*args, *kwargs.values()]) if isinstance(t, turnout.Tensor)]
        assert str(before) == str(after), "a functional operator changed its input"


@pytest.mark.parametrize(("case", "dtype"), [p for p in GRID if p.values[0].op not in ABOUT_STRIDES])
def test_strides_of_inputs_do_not_change_results(case: OperatorCase, dtype: str) -> None:
    op = find(case.op)
    for args, kwargs, expected in samples(case, dtype, spread):
        check(case, call(op, args, kwargs), expected)


@functools.cache
def variant(op: Operator, kind: str) -> Operator | None:
    """The in-place or out form of a functional operator: same arguments, other kind."""
    names = {a.name for a in op.schema.arguments}
    for other in REGISTRY.operators.values():
        if other.is_defined and other.namespace == "aten" and other.schema.kind == kind:
            if other.name.rstrip("_") != op.name and not (kind == "out" and other.name == op.name):
                continue
            if any("[" in a.type.canonical for a in other.schema.out_arguments):
                continue  # lists of outputs: tests/plugins/test_tensor_views
            outs = {a.name for a in other.schema.out_arguments}
            kept = [a for a in other.schema.arguments if a.name not in outs]
            types = [(a.name, a.type.canonical) for a in kept]
            if {n for n, _ in types} == names and types == [(a.name, a.type.canonical) for a in op.schema.arguments]:
                return other
    return None


def with_form(kind: str) -> list[Any]:
    """The rows of the grid whose operator has a form of this kind; a complex tensor does not become real in place."""
    rows = [p for p in GRID if variant(find(p.values[0].op), kind) is not None]
    return [p for p in rows if kind == "out" or (p.values[0].op, p.values[1][:7]) != ("abs", "complex")]


WRITTEN = [p for p in with_form("inplace") if INPLACE_VIEW not in variant(find(p.values[0].op), "inplace").tags]
TURNED = [p for p in with_form("inplace") if INPLACE_VIEW in variant(find(p.values[0].op), "inplace").tags]


@pytest.mark.parametrize(("case", "dtype"), TURNED)
def test_inplace_view_makes_self_what_the_view_is(case: OperatorCase, dtype: str) -> None:
    op = find(case.op)
    inplace = variant(op, "inplace")
    for args, kwargs, expected in samples(case, dtype, tensor):
        target, version, alias = args[0], args[0]._version, args[0].detach()
        view = op(*args, **kwargs)
        assert inplace(*args, **kwargs) is target
        assert (target.stride(), target.storage_offset()) == (view.stride(), view.storage_offset())
        assert target._version == version + 1
        check(case, [target], expected)
        target.fill_(7)
        assert set(flat(alias.reshape(-1).tolist())) <= {7} or target.numel() < alias.numel()


@pytest.mark.parametrize(("case", "dtype"), WRITTEN)
def test_inplace_form_writes_the_same_result_into_self(case: OperatorCase, dtype: str) -> None:
    op = find(case.op)
    inplace = variant(op, "inplace")
    tried = 0
    for args, kwargs, expected in samples(case, dtype, tensor):
        functional = op(*args, **kwargs)
        target = args[0]
        if not isinstance(target, turnout.Tensor) or functional.shape != target.shape:
            continue
        version = target._version
        if functional.dtype.category > target.dtype.category:
            with pytest.raises(DTypeError):
                inplace(*args, **kwargs)
            tried += 1
            continue
        assert inplace(*args, **kwargs) is target
        assert target._version == version + 1
        expected = np.asarray(functional.numpy()).astype(target.numpy().dtype)
        assert operator_cases.close(np, target.numpy(), expected, case.tolerance)
        tried += 1
    assert tried


@pytest.mark.parametrize(("case", "dtype"), with_form("out"))
def test_out_form_fills_what_it_is_given(case: OperatorCase, dtype: str) -> None:
    op = find(case.op)
    out = variant(op, "out")
    names = [a.name for a in out.schema.out_arguments]
    for args, kwargs, expected in samples(case, dtype, tensor):
        functional = call(op, args, kwargs)
        for targets in (
            [turnout.empty(0, dtype=f.dtype) for f in functional],
            [turnout.empty(f.shape, dtype=f.dtype) for f in functional],
            [turnout.zeros([2 * n for n in f.shape], dtype=f.dtype) for f in functional],
        ):
            given = [strided_half(t, f) for t, f in zip(targets, functional, strict=True)]
            returned = flat(out(*args, **kwargs, **dict(zip(names, given, strict=True))))
            assert all(r is g for r, g in zip(returned, given, strict=True))
            check(case, given, expected)


def strided_half(target: turnout.Tensor, like: turnout.Tensor) -> turnout.Tensor:
    """A view of every second element when the target is twice as large in each dim."""
    if target.shape == like.shape or target.shape == (0,):
        return target
    for dim in range(target.ndim):
        target = target[(slice(None),) * dim + (slice(None, None, 2),)]
    return target


def test_an_output_that_is_also_an_input_is_written_through() -> None:
    x = turnout.tensor([[1.0, 2.0], [3.0, 4.0]])
    turnout.ops.aten.mm.out(x, x, out=x)
    assert x.tolist() == [[7.0, 10.0], [15.0, 22.0]]
    y = turnout.arange(4.0)
    with pytest.raises(AliasError):
        turnout.ops.aten.add.out(y[:3], y[:3], out=y[1:])


def test_the_suite_notices_a_wrong_kernel() -> None:
    case = next(c for c in CASES if c.op == "exp")
    args, kwargs, expected = next(samples(case, "float32", tensor))
    with pytest.raises(AssertionError):
        check(case, call(find("log1p"), args, kwargs), expected)


def test_every_functional_operator_with_a_kernel_has_a_case() -> None:
    named = {case.op for case in CASES}
    missing = set()
    for op in REGISTRY.operators.values():
        if op.namespace != "aten" or not op.is_defined or op.schema.kind != "functional":
            continue
        takes_tensors = any(a.type.canonical.startswith("Tensor") for a in op.schema.arguments)
        name = op.qualified_name.removeprefix("aten::")
        random = any(t.startswith("nondeterministic") for t in op.tags)
        on_lists = name.startswith(("_foreach_", "_fused_"))  # made of operators that have cases: tests/aten/test_foreach.py
        if takes_tensors and name not in named and not random and not on_lists and not is_alias(op):
            missing.add(name)
    assert missing - WITHOUT_CASES == set()
    assert {f"aten::{name}" for name in WITHOUT_CASES} <= REGISTRY.operators.keys()


def is_alias(op: Operator) -> bool:
    """Whether it is another operator under a second name."""
    module = "turnout_aten.composites.aliases:"
    return any(getattr(k.fn, "path", "").startswith(module) for k in op.kernels.get("CompositeImplicitAutograd", ()))


# Spellings of an operator that has a case, results that are not values, and backwards that the gradient suite calls.
WITHOUT_CASES = {
    "_local_scalar_dense", "is_complex", "is_floating_point", "is_nonzero", "is_same_size", "is_signed", "item", "sym_numel",
    "sym_is_contiguous", "sym_storage_offset", "sym_size.int", "sym_stride.int",
    "_log_softmax_backward_data", "_softmax_backward_data", "_to_copy", "_unsafe_view",
    "_assert_async", "_assert_async.msg", "_assert_tensor_metadata", "_functional_assert_async.msg", "allclose",
    "_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size",
    "argsort.stable", "ctc_loss.Tensor", "empty_like", "equal", "new_empty",
    "new_empty_strided", "to.device", "to.dtype", "to.dtype_layout",
    "to.other", "where", "zero",
}  # fmt: skip
