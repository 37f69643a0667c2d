"""Every operator case against NumPy, for other strides and on a second device too: values, shapes, dtypes, and inputs left alone.

The in-place and out forms of the same calls must agree with the functional one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused
from random_programs.layouts import of_images
from turnout.errors import AliasError, DTypeError, ShapeError
from turnout.operators import Operator
from turnout.operators.values import flat
from turnout.registry import REGISTRY, Registrations
from turnout_arrays import ArrayBackend, kernels
from turnout_aten.declarations.tables import INPLACE_VIEW
from turnout_aten.kernels.tables import register_kernels
from turnout_conformance.cases import ABOUT_STRIDES, CASES, OperatorCase, Sample, close
from turnout_conformance.comparing import about, find, form, shown, tensors
from turnout_conformance.making import Make, arguments, of_each_kind, row_major, samples, spread
from turnout_cpu import decompositions, special


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
        register_kernels(library, backend, decompositions.kernels() | special.kernels() | kernels(np))
        yield


def test_a_composite_kernel_that_makes_a_tensor_on_the_default_device_is_found() -> None:
    with Registrations("careless") as library, turnout.config.override({"default_device": "forbidden"}):
        library.define("careless(Tensor self) -> Tensor")
        library.impl("careless", "CompositeImplicitAutograd", lambda x: x + turnout.zeros(1))
        with pytest.raises(AssertionError, match="a tensor was made on the default device"):
            turnout.ops.careless.careless(turnout.zeros(1, device="second"))


def reference(case: OperatorCase, sample: Sample, dtype: str) -> list[Any]:
    """What NumPy gives."""
    args, kwargs = arguments(sample, dtype, np.array)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flat(case.reference(np, *args, **kwargs))


def check(case: OperatorCase, found: list[Any], expected: list[Any]) -> None:
    for got, want in zip(found, expected, strict=True):
        got = got.numpy() if isinstance(got, turnout.Tensor) else got
        assert close(np, got, want, case.tolerance), f"{case.op}: got\n{got}\nexpected\n{want}"


def places(case: OperatorCase, dtype: str) -> Iterator[tuple[str, Callable[[str], Make]]]:
    """Where a call is made, and how its tensors are."""
    yield "cpu", row_major
    if dtype in of_each_kind(case, "cpu"):
        yield "second", row_major
        if case.op not in ABOUT_STRIDES:
            yield "cpu", spread


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator_agrees_with_numpy_for_any_strides_and_on_a_second_device(case: OperatorCase) -> None:
    for sample, dtype in samples(case, "cpu"):
        expected = reference(case, sample, dtype)
        for device, make in places(case, dtype):
            args, kwargs = arguments(sample, dtype, make(device))
            before = shown([*args, *kwargs.values()])
            with about(dtype, device, make.__name__):
                with turnout.config.override({"default_device": "cpu" if device == "cpu" else "forbidden"}):
                    found = flat(find(case.op)(*args, **kwargs))
                check(case, found, expected)
                assert {t.device.type for t in tensors(found)} == {device}
                assert before == shown([*args, *kwargs.values()]), "a functional operator changed its input"


# ---- the other forms: the same bits, whichever kernel serves each


def and_images(case: OperatorCase, small: Iterable[tuple[Sample, str]]) -> Iterator[tuple[Sample, str]]:
    """Small samples with their dtypes, and those of images, which compiled kernels take."""
    yield from small
    for sample in of_images(case) if "float32" in case.dtypes else ():
        args, kwargs = arguments(sample, "float32", row_major("cpu"))
        try:
            find(case.op)(*args, **kwargs)
        except ShapeError:  # an image beside a vector
            continue
        yield sample, "float32"


# A complex tensor does not become real in place.
INPLACE = [c for c in CASES if form(find(c.op), "inplace") is not None and (c.op != "abs" or "float64" in c.dtypes)]
TURNED = [c for c in INPLACE if INPLACE_VIEW in form(find(c.op), "inplace").tags]


@pytest.mark.parametrize("case", TURNED, ids=str)
def test_inplace_view_makes_self_what_the_view_is(case: OperatorCase) -> None:
    inplace = form(find(case.op), "inplace")
    for sample, dtype in samples(case, "cpu"):
        args, kwargs = arguments(sample, dtype, row_major("cpu"))
        target, version, alias = args[0], args[0]._version, args[0].detach()
        view = find(case.op)(*args, **kwargs)
        assert inplace(*args, **kwargs) is target
        assert (target.stride(), target.storage_offset()) == (view.stride(), view.storage_offset())
        assert target._version == version + 1
        check(case, [target], reference(case, sample, dtype))
        target.fill_(7)
        assert set(flat(alias.reshape(-1).tolist())) <= {7} or target.numel() < alias.numel()


EXACT = ("float_power_",)  # what is written must have the dtype of the result


@pytest.mark.parametrize("case", [c for c in INPLACE if c not in TURNED], ids=str)
def test_inplace_form_writes_the_same_result_into_self(case: OperatorCase) -> None:
    inplace, tried = form(find(case.op), "inplace"), set()
    for sample, dtype in and_images(case, samples(case, "cpu")):
        args, kwargs = arguments(sample, dtype, row_major("cpu"))
        functional = find(case.op)(*args, **kwargs)
        target = args[0]
        if not isinstance(target, turnout.Tensor) or functional.shape != target.shape:
            continue
        tried.add(dtype)
        version = target._version
        exact = inplace.name in EXACT and functional.dtype is not target.dtype
        if exact or functional.dtype.category > target.dtype.category:
            with pytest.raises(DTypeError):
                inplace(*args, **kwargs)
            continue
        assert inplace(*args, **kwargs) is target
        assert target._version == version + 1
        assert target.numpy().tobytes() == functional.to(target.dtype).contiguous().numpy().tobytes()
    assert tried == set(case.dtypes)


@pytest.mark.parametrize("case", [c for c in CASES if form(find(c.op), "out") is not None], ids=str)
def test_out_form_fills_what_it_is_given(case: OperatorCase) -> None:
    out = form(find(case.op), "out")
    names = [a.name for a in out.schema.out_arguments]
    for sample, dtype in and_images(case, samples(case, "cpu", of_each_kind(case, "cpu"))):
        args, kwargs = arguments(sample, dtype, row_major("cpu"))
        functional = flat(find(case.op)(*args, **kwargs))
        for targets in (
            [turnout.empty(0, dtype=f.dtype) for f in functional],
            [turnout.empty(f.shape, dtype=f.dtype) for f in functional],
            [turnout.zeros([2 * n for n in f.shape], dtype=f.dtype) for f in functional],
        ):
            given = [strided_half(t, f) for t, f in zip(targets, functional, strict=True)]
            returned = flat(out(*args, **kwargs, **dict(zip(names, given, strict=True))))
            assert all(r is g for r, g in zip(returned, given, strict=True))
            assert [t.contiguous().numpy().tobytes() for t in given] == [f.contiguous().numpy().tobytes() for f in functional]


@pytest.mark.parametrize("case", [c for c in CASES if form(find(c.op), "out") is not None], ids=str)
def test_an_output_that_is_part_of_a_larger_memory_does_not_grow_over_what_is_beside_it(case: OperatorCase) -> None:
    out = form(find(case.op), "out")
    names = [a.name for a in out.schema.out_arguments]
    sample, dtype = next(iter(samples(case, "cpu")))
    args, kwargs = arguments(sample, dtype, row_major("cpu"))
    functional = flat(find(case.op)(*args, **kwargs))
    for count in (0, 2):
        rooms = [turnout.zeros(9, dtype=f.dtype) for f in functional]
        parts = [room[1 : 1 + count].reshape(1, 1, 1, 1, 1, 1, count) for room in rooms]  # a shape that no result has
        said = refused(AliasError, lambda parts=parts: out(*args, **kwargs, **dict(zip(names, parts, strict=True))))
        assert "that is part of a larger memory cannot take the shape" in said
        assert not any(room.any() for room in rooms)


@pytest.mark.parametrize("make", [
    lambda out: turnout.arange(0, 4, out=out),
    lambda out: turnout.linspace(0, 4, 4, out=out),
    lambda out: turnout.logspace(0, 4, 4, out=out),
    lambda out: turnout.empty(4, out=out),
])  # fmt: skip
def test_a_factory_does_not_write_beside_its_output(make: Any) -> None:
    room = turnout.zeros(2, 3)
    assert refused(AliasError, lambda: make(room.narrow(1, 1, 2))).endswith(
        ": an output of shape [2, 2] that is part of a larger memory cannot take the shape [4]; "
        "pass one of that shape, or an empty tensor with memory of its own"
    )
    assert not room.any()


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
    args, kwargs = arguments(case.samples[0], "float32", row_major("cpu"))
    with pytest.raises(AssertionError):
        check(case, flat(find("log1p")(*args, **kwargs)), reference(case, case.samples[0], "float32"))


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
