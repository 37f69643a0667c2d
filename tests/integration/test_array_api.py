"""`turnout.array_api` against array-api-strict, which is the Python array API standard in code: names, signatures, results.

The cases of `array_api_cases` are expressions, evaluated with both namespaces. Results must agree in dtype, shape and values;
the default dtype is float64 here, as it is there.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest
from array_api_cases import ARRAYS, CASES

import turnout
from outcomes import refused
from turnout.errors import ArgumentError, CallError, DTypeError
from turnout_aten.tensor.interop import ARRAY_API_VERSIONS

VERSION = "2025.12"
array_api_strict.set_array_api_strict_flags(api_version=VERSION)

# What array-api-strict has beside the standard, or for later versions of it.
NOT_IN_THE_STANDARD = {
    "ArrayAPIStrictFlags", "Device", "__version__", "get_array_api_strict_flags",
    "reset_array_api_strict_flags", "set_array_api_strict_flags",
}  # fmt: skip

STRICT = {"": array_api_strict, "linalg": array_api_strict.linalg, "fft": array_api_strict.fft}


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    before = turnout.get_default_dtype()
    turnout.set_default_dtype(turnout.float64)
    yield
    turnout.set_default_dtype(before)


def evaluated(namespace: Any, expression: str) -> Any:
    code = compile(expression, expression, "eval")
    arrays = {name: namespace.asarray(ARRAYS[name].copy()) for name in code.co_names if name in ARRAYS}
    return eval(code, {"xp": namespace, "turnout_namespace": turnout.array_api, **arrays})


def same(ours: Any, theirs: Any, where: str, device: str) -> None:
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, tuple)
        assert isinstance(theirs, tuple)
        assert len(ours) == len(theirs), where
        assert getattr(ours, "_fields", None) == getattr(theirs, "_fields", None)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, where, device)
    elif isinstance(theirs, type(array_api_strict.asarray(1))):
        assert isinstance(ours, turnout.Tensor), where
        assert ours.device.type == device, where
        wanted = np.asarray(theirs)
        assert ours.dtype.name == wanted.dtype.name, where
        assert ours.shape == wanted.shape, where
        tolerance = 1e-5 if wanted.dtype in (np.float32, np.complex64) else 1e-12
        if not where.startswith("xp.empty"):
            np.testing.assert_allclose(ours.cpu().numpy(), wanted, rtol=tolerance, atol=tolerance, err_msg=where)
    elif hasattr(theirs, "bits"):
        names = [name for name in ("bits", "eps", "max", "min", "smallest_normal") if hasattr(theirs, name)]
        assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]
        assert ours.dtype.name == str(theirs.dtype).removeprefix("array_api_strict.")
    elif isinstance(ours, turnout.DType):
        assert ours.name == str(theirs).removeprefix("array_api_strict."), where
    else:
        assert ours == theirs
        assert type(ours) is type(theirs)


@pytest.fixture(params=["cpu", "opencl"])
def device(request: pytest.FixtureRequest, need_device: Callable[[str], None]) -> Iterator[str]:
    """The type of the default device, which new arrays are on."""
    need_device(request.param)
    with turnout.config.override({"default_device": request.param}):
        yield request.param


@pytest.mark.parametrize("expression", CASES)
def test_a_function_gives_what_the_standard_says(expression: str, device: str) -> None:
    with np.errstate(all="ignore"):
        theirs = evaluated(array_api_strict, expression)
    same(evaluated(turnout.array_api, expression), theirs, expression, device)


def functions(part: str) -> list[str]:
    return sorted(name for name in STRICT[part].__all__ if name not in NOT_IN_THE_STANDARD)


def test_every_name_of_the_standard_is_there_and_no_other() -> None:
    xp = turnout.array_api
    assert set(functions("")) - set(xp.__all__) == set()
    assert set(xp.__all__) - set(functions("")) == {"__array_api_version__", "__array_namespace_info__"} - set(functions(""))
    assert sorted(xp.linalg.__all__) == sorted([*functions("linalg"), "eig", "eigvals"])  # which that list lacks
    assert sorted(xp.fft.__all__) == functions("fft")
    assert all(hasattr(xp, name) for name in xp.__all__)
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, np.inf, None)
    assert np.isnan(xp.nan)


def test_every_function_of_the_namespace_has_a_case() -> None:
    called = {
        ast.unparse(node.func).removeprefix("xp.")
        for case in CASES
        for node in ast.walk(ast.parse(case))
        if isinstance(node, ast.Call)
    }
    wanted = set()
    for part, module in STRICT.items():
        for name in functions(part):
            if inspect.isfunction(getattr(module, name)):
                wanted.add(f"{part}.{name}".lstrip("."))
    assert wanted - called == {"__array_namespace_info__"} & wanted


@pytest.mark.parametrize("part", STRICT)
def test_every_function_has_the_parameters_of_the_standard(part: str) -> None:
    ours_in = getattr(turnout.array_api, part) if part else turnout.array_api
    for name in functions(part):
        theirs = getattr(STRICT[part], name)
        if not inspect.isfunction(theirs):
            continue
        ours = getattr(ours_in, name)
        assert ours.__name__ == name
        assert ours.__doc__, name
        found, wanted = [
            [(p.name, p.kind, undefined_as_none(p.default)) for p in inspect.signature(f).parameters.values()]
            for f in (ours, theirs)
        ]
        assert found == wanted, name


def undefined_as_none(default: Any) -> Any:
    """array-api-strict marks what was not given by an object of its own, where the standard has None."""
    return None if type(default).__name__ == "Undef" else default


# ---- the array object


def test_a_tensor_leads_to_the_namespace_of_the_versions_it_follows() -> None:
    x = turnout.ones(2)
    assert x.__array_namespace__() is turnout.array_api
    assert ARRAY_API_VERSIONS[-1] == turnout.array_api.__array_api_version__
    for version in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is turnout.array_api
    assert refused(ValueError, x.__array_namespace__, api_version="2026.12") == (
        "__array_namespace__: api_version must be None or one of 2021.12, 2022.12, 2023.12, 2024.12, 2025.12, got '2026.12'"
    )


def test_a_tensor_has_what_an_array_object_must_have() -> None:
    strict = type(array_api_strict.asarray(1))
    public = [name for name in dir(strict) if not name.startswith("_") or (name.startswith("__") and name.endswith("__"))]
    # x @= y is x = x @ y without a method of its own.
    beside_the_standard = {"__array__", "__buffer__", "__annotations__", "__weakref__", "__imatmul__"}
    assert [name for name in public if not hasattr(turnout.Tensor, name) and name not in beside_the_standard] == []
    x = turnout.array_api.asarray([[1.5, 2.0]])
    assert (x.ndim, x.shape, x.dtype, x.T.shape, x.mT.shape) == (2, (1, 2), turnout.float64, (2, 1), (2, 1))
    assert x.to_device("meta").device == turnout.device("meta")
    assert x.to_device(x.device) is x
    assert "abcd"[turnout.array_api.asarray(2)] == "c"
    assert complex(turnout.array_api.asarray(1.5)) == 1.5 + 0j
    assert x.__dlpack_device__() == (1, 0)
    assert refused(ValueError, x.to_device, "cpu", stream=3) == "to_device: streams are not supported, got 3; pass None"


def test_what_the_namespace_can_do_is_said_by_its_info() -> None:
    info, theirs = turnout.array_api.__array_namespace_info__(), array_api_strict.__array_namespace_info__()
    assert info.capabilities() == theirs.capabilities()
    assert info.default_device() is turnout.device("cpu")
    turnout.empty(1, device="meta")
    assert info.devices()[0] is info.default_device()
    assert turnout.device("meta") in info.devices()
    assert len(set(info.devices())) == len(info.devices())
    named = {kind: dtype.name for kind, dtype in info.default_dtypes().items()}
    assert named == {kind: str(dtype).partition(".")[2] for kind, dtype in theirs.default_dtypes().items()}
    for kind in (None, "bool", "integral", "signed integer", "unsigned integer", "numeric", ("bool", "real floating")):
        assert sorted(info.dtypes(kind=kind)) == sorted(theirs.dtypes(kind=kind)), kind
    assert info.dtypes(device="cpu")["float32"] is turnout.float32


# ---- memory


def test_asarray_shares_memory_unless_it_must_or_may_not() -> None:
    xp = turnout.array_api
    source = np.arange(3.0)
    assert np.shares_memory(xp.asarray(source).numpy(), source)
    assert np.shares_memory(xp.asarray(source, copy=False).numpy(), source)
    assert not np.shares_memory(xp.asarray(source, copy=True).numpy(), source)
    x = xp.asarray(source)
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    assert xp.from_dlpack(source, copy=True).tolist() == [0.0, 1.0, 2.0]
    assert np.shares_memory(xp.from_dlpack(source, copy=False).numpy(), source)
    assert not np.shares_memory(xp.from_dlpack(source, copy=True).numpy(), source)
    assert xp.from_dlpack(source, device="meta").device == turnout.device("meta")


def test_reshape_and_astype_copy_when_asked() -> None:
    xp = turnout.array_api
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert np.shares_memory(xp.reshape(x, (4,)).numpy(), x.numpy())
    assert not np.shares_memory(xp.reshape(x, (4,), copy=True).numpy(), x.numpy())
    assert xp.astype(x, xp.float64, copy=False) is x
    assert not np.shares_memory(xp.astype(x, xp.float64).numpy(), x.numpy())
    assert not np.shares_memory(xp.clip(x).numpy(), x.numpy())
    assert xp.astype(x, xp.float32, device="meta").device == turnout.device("meta")


def test_isin_inverts_and_steps_may_be_huge() -> None:  # array-api-strict does neither
    xp = turnout.array_api
    assert xp.isin(xp.asarray([1, 2]), 2, invert=True).tolist() == [True, False]
    assert [xp.sum(xp.eye(3, k=k)).item() for k in (2**63, -(2**63) - 1)] == [0.0, 0.0]
    assert [turnout.dtypes.dtype_named(name).kind for name in ("bool", "int8", "uint16", "bfloat16", "complex64")] == [*"biufc"]


# ---- gradients and the default dtype


def test_gradients_go_through_the_namespace() -> None:
    x = turnout.array_api.asarray([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
    xp = x.__array_namespace__()
    xp.sum(xp.multiply(xp.matrix_transpose(x), 3) + xp.asarray(x, dtype=xp.float32, copy=True)).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_the_default_dtype_is_turnouts() -> None:
    turnout.set_default_dtype(turnout.float32)
    xp = turnout.array_api
    made = [xp.asarray(1.5), xp.linspace(0, 1, 3), xp.arange(1.0), xp.full(1, 2j), xp.eye(2, k=1), xp.add(xp.ones(1), 1.5)]
    assert [x.dtype.name for x in made] == ["float32", "float32", "float32", "complex64", "float32", "float32"]


# ---- refusals


REFUSALS = {
    "xp.add(1, 2)": (CallError, "add: at least one operand must be an array"),
    "xp.add(f, 'x')": (CallError, "add: operands must be arrays or Python numbers, got str"),
    "xp.add(i8, 300)": (ArgumentError, "300 does not fit in int8, the dtype of the other operand"),
    "xp.add(u64, i)": (
        DTypeError, "uint64 and int64 have no common dtype in the array API standard; convert one with astype",
    ),
    "xp.astype(z, xp.float32)": (
        DTypeError, "astype: cannot convert complex64 to float32; take real, imag or abs first",
    ),
    "xp.asarray([1], copy=False)": (ArgumentError, "asarray: data of type list needs a copy here, which copy=False forbids"),
    "xp.asarray(f, dtype=xp.int8, copy=False)": (
        ArgumentError, "asarray: another dtype or device needs a copy, which copy=False forbids",
    ),
    "xp.asarray(2**70)": (OverflowError, "asarray: 1180591620717411303424 does not fit in int64, the default integer dtype"),
    "xp.clip(i, 0.5)": (
        DTypeError, "clip: the result has the dtype of x, int64, but a bound needs float64; convert one",
    ),
    "xp.concat([])": (CallError, "concat: needs at least one array"),
    "xp.cumulative_sum(f)": (
        ArgumentError, "cumulative_sum: an array of 2 dimensions has no one axis to run along; give axis",
    ),
    "xp.finfo(xp.int8)": (
        DTypeError, "finfo: needs a floating-point or complex dtype, got turnout.int8; use iinfo for integers",
    ),
    "xp.iinfo(f)": (DTypeError, "iinfo: needs an integer dtype, got turnout.float32; use finfo for floating-point dtypes"),
    "xp.isdtype(xp.int8, 'word')": (
        ArgumentError,
        ("isdtype: kind must be one of bool, signed integer, unsigned integer, integral, real floating, complex floating, "
        "numeric, got 'word'"),
    ),
    "xp.isdtype(xp.int8, 3)": (CallError, "isdtype: kind must be a dtype, a string or a tuple of them, got 3"),
    "xp.isdtype('float64', 'real floating')": (CallError, "isdtype: takes a dtype of Turnout, got 'float64'"),
    "xp.expand_dims(f, (0, -4))": (ArgumentError, "expand_dims: a dimension occurs twice in [0, -4]"),
    "xp.broadcast_shapes((4,), (3,))": (
        ArgumentError, "broadcast_shapes: shapes [4] and [3] do not broadcast: 4 against 3 at dim 0",
    ),
    "xp.meshgrid(s, q)": (ArgumentError, "meshgrid: the arrays must have one dtype, got float32 and float64"),
    "xp.result_type(1)": (CallError, "result_type: needs at least one array or dtype"),
    "xp.result_type('x')": (CallError, "result_type: takes arrays, dtypes and Python numbers, got str"),
    "xp.squeeze(f, 0)": (ArgumentError, "squeeze: axis 0 has length 2; only axes of length 1 can be removed"),
    "xp.sum(f, axis=(0, -2))": (ArgumentError, "sum: a dimension occurs twice in [0, -2]"),
    "xp.searchsorted(j, j, side='up')": (ArgumentError, "searchsorted: side must be 'left' or 'right', got 'up'"),
    "xp.take(f, k)": (ArgumentError, "take: axis is needed for an array of 2 dimensions"),
    "xp.vecdot(f, q)": (
        RuntimeError, "vecdot: axis -1 must have the same length in both, got shapes [2, 3] and [4]",
    ),
    "xp.vecdot(f, s, axis=-2)": (IndexError, "vecdot: both arrays need axis -2, got shapes [2, 3] and [3]"),
    "xp.nonzero(f0)": (RuntimeError, "nonzero: needs an array with at least one dimension, got a 0-dim array"),
    "xp.linalg.outer(f, s)": (RuntimeError, "outer: needs two vectors, got shapes [2, 3] and [3]"),
    # The texts of these are the operators' own.
    "xp.expand_dims(f, 4)": (IndexError, ""),
    "xp.reshape(f, (7,))": (RuntimeError, ""),
    "xp.reshape(xp.matrix_transpose(f), (6,), copy=False)": (ValueError, ""),
    "xp.sum(f, axis=2)": (IndexError, ""),
    "xp.broadcast_to(s, (2, 2))": (RuntimeError, ""),
    "xp.max(none)": (RuntimeError, ""),
    "xp.linalg.qr(m, mode='r')": (ArgumentError, "qr: mode must be 'reduced' or 'complete', got 'r'"),
}  # fmt: skip


@pytest.mark.parametrize("expression", REFUSALS)
def test_what_the_standard_forbids_or_leaves_open_and_what_operators_cannot_do_is_refused(expression: str) -> None:
    expected, text = REFUSALS[expression]
    assert not text or refused(expected, evaluated, turnout.array_api, expression) == text


def test_the_namespace_is_loaded_when_it_is_first_used() -> None:
    use = "turnout.array_api.asarray(1); print('scipy' in sys.modules)"
    program = f"import sys, turnout; print('turnout.array_api' in sys.modules); {use}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\nFalse\n"
