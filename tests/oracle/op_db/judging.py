"""Whether Turnout gives what PyTorch gives, for all samples of an OpInfo and a dtype.

A verdict is the first difference in words, or None. Tolerances are those of PyTorch's own tests: the defaults of
`torch.testing`, widened where the OpInfo widens them. Random operators are compared by shape and dtype here (their
distributions have tests of their own), uninitialised ones too.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any
from unittest import mock

import torch
from torch.testing._internal import common_utils, opinfo
from torch.testing._internal.common_device_type import precisionOverride, tol, toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db as INFOS

import turnout
from op_db.bridge import Missing, array_of, here, run, tensors
from op_db.invariants import INVARIANTS

torch.set_num_threads(1)  # the samples are small: threads only wait for each other
# A seed for devices that are not there is noted with the stack of the call, which takes a millisecond for each sample.
for _absent in (torch.cuda, torch.mtia, torch.xpu):
    _absent.manual_seed_all = lambda seed: None
# Samples look among their callers for a test of `unittest`, which none is: inside pytest, reading the lines of all took more
# than half of the time of a check.
for _module in (common_utils, opinfo.core):
    _module.extract_test_fn = lambda: None

UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_"}
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "nn.functional.rrelu", "normal",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "uniform",
}  # fmt: skip
# Random where a sample asks for dropout: its name, and its place among the arguments after the first.
DROPOUT = {
    "nn.functional.scaled_dot_product_attention": ("dropout_p", 3),
    "nn.functional.multi_head_attention_forward": ("dropout_p", 9),
}  # fmt: skip
ERROR_CLASSES = (TypeError, ValueError, IndexError, NotImplementedError, RuntimeError)


def infos(dtype: torch.dtype) -> list[Any]:
    """The OpInfos that support a dtype on PyTorch's cpu."""
    return [info for info in INFOS if info.supports_dtype(dtype, "cpu")]


def label(info: Any) -> str:
    """The name of an OpInfo and of its variant: "std", "std.unbiased"."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def samples(info: Any, dtype: torch.dtype, requires_grad: bool = False, most: int | None = None) -> list[Any]:
    """The OpInfo's samples, or so many of the first, the same in every run."""
    with _same_in_every_run():
        return list(islice(info.sample_inputs("cpu", dtype, requires_grad=requires_grad), most))


@contextlib.contextmanager
def _same_in_every_run() -> Iterator[None]:
    """Random numbers start from one seed, and what OpInfos leave uninitialised is 1 instead of what the memory held before."""
    empty = torch.empty
    torch.manual_seed(0)
    with warnings.catch_warnings(), mock.patch.object(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(1)):
        warnings.simplefilter("ignore")
        yield


def tolerance(info: Any, dtype: torch.dtype, least: float = 0.0) -> tuple[float, float]:
    """Relative and absolute, for results of this dtype."""
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    for decorator in getattr(info, "decorators", ()):
        for override in getattr(decorator, "decorators", ()):
            if isinstance(override, toleranceOverride) and dtype in override.d:
                widened: tol = override.d[dtype]
                rtol, atol = max(rtol, widened.rtol), max(atol, widened.atol)
            if isinstance(override, precisionOverride):
                atol = max(atol, override.d.get(dtype, 0.0))
    return max(rtol, least), max(atol, least)


def forward(info: Any, dtype: torch.dtype) -> str | None:
    """The first difference over all samples, Meta's shapes, dtypes and strides included."""
    for number, sample in enumerate(samples(info, dtype)):
        where = f"sample {number} {_brief(sample)}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = sample.transform(lambda t: _own(t) if isinstance(t, torch.Tensor) else t)
            try:
                expected = info.op(given.input, *given.args, **given.kwargs)
            except Exception:  # noqa: BLE001 - a sample that PyTorch itself refuses says nothing here
                continue
            try:
                found = run(info.op, sample)
            except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
                return f"{where}: {raised(error)}"
            if info.name == "argsort":  # equal elements may come in any order
                expected = sample.input.gather(_dim(sample), expected)
                difference = compare(info, dtype, expected, _in_order(sample, found))
            else:
                difference = compare(info, dtype, expected, found, is_random(info, sample))
            difference = difference or _meta(info, sample, found)
        if difference:
            return f"{where}: {difference}"
    return None


def is_random(info: Any, sample: Any) -> bool:
    """Whether the results are random numbers, which are not PyTorch's."""
    if info.name not in DROPOUT:
        return info.name in RANDOM
    name, place = DROPOUT[info.name]
    given = sample.kwargs.get(name, sample.args[place] if len(sample.args) > place else 0.0)
    return bool(given > 0.0 and sample.kwargs.get("training", True))


def _own(tensor: torch.Tensor) -> torch.Tensor:
    """The same view of a copy of the whole storage: as_strided sees beyond its argument."""
    if tensor.layout is not torch.strided:
        return tensor.detach().clone()
    plain = tensor.detach()
    copy = torch.empty(0, dtype=plain.dtype).set_(
        plain.untyped_storage().clone(), plain.storage_offset(), plain.shape, plain.stride()
    )
    return copy.conj() if plain.is_conj() else torch._neg_view(copy) if plain.is_neg() else copy


# Equal values may come in any order, so the second result, their indices, is compared by shape and dtype; the operator cases
# of the main suite have no equal values.
TIES = {"sort", "topk", "kthvalue", "median", "nanmedian", "mode"}


def _dim(sample: Any) -> int:
    return int(sample.kwargs.get("dim", sample.args[0] if sample.args else -1))


def _in_order(sample: Any, indices: Any) -> Any:
    """The elements that argsort found, which are equal whatever it does with ties."""
    return turnout.gather(here(sample.input), _dim(sample), indices)


def compare(info: Any, dtype: torch.dtype, expected: Any, found: Any, random: bool | None = None) -> str | None:
    """The first difference between two results; of random ones (by default those of the names above) not in their values."""
    random = info.name in RANDOM if random is None else random
    if isinstance(expected, torch.Tensor):
        return _compare_tensors(info, expected, found, random)
    if isinstance(expected, tuple | list):
        if not isinstance(found, tuple | list) or len(found) != len(expected):
            return f"expected {len(expected)} results, got {found!r}"
        if info.name in INVARIANTS:
            return _compare_invariants(info, dtype, expected, found)
        if info.name in TIES:
            expected, found = expected[:1], found[:1]
        pairs = zip(expected, found, strict=True)
        return next((d for e, f in pairs if (d := compare(info, dtype, e, f, random))), None)
    expected = here(expected)
    if type(expected) is not type(found):
        return f"expected {expected!r}, got {found!r}"
    if isinstance(expected, float | complex):
        return compare(info, dtype, torch.tensor(expected), turnout.tensor(found), random)
    return None if random or expected == found else f"expected {expected!r}, got {found!r}"


def _compare_invariants(info: Any, dtype: torch.dtype, expected: Any, found: Any) -> str | None:
    for e, f in zip(expected, found, strict=True):
        if (str(e.dtype).removeprefix("torch."), tuple(e.shape)) != (f.dtype.name, tuple(f.shape)):
            return f"expected {e.dtype} {tuple(e.shape)}, got {f.dtype} {tuple(f.shape)}"
    determined = INVARIANTS[info.name]
    pairs = zip(determined(*expected), determined(*map(array_of, found)), strict=True)
    return next((d for e, f in pairs if (d := _close(info, e, f))), None)


def _compare_tensors(info: Any, expected: torch.Tensor, found: Any, random: bool) -> str | None:
    if not isinstance(found, turnout.Tensor):
        return f"expected a tensor, got {type(found).__name__}"
    if str(expected.dtype).removeprefix("torch.") != found.dtype.name:
        return f"expected {expected.dtype}, got {found.dtype}"
    if tuple(expected.shape) != tuple(found.shape):
        return f"expected shape {tuple(expected.shape)}, got {tuple(found.shape)}"
    if random or info.name in UNINITIALISED:
        return None
    return _close(info, expected, array_of(found))


def _close(info: Any, expected: torch.Tensor, found: torch.Tensor) -> str | None:
    rtol, atol = tolerance(info, expected.dtype)
    plain = expected.detach().resolve_conj().resolve_neg().contiguous()
    if plain.dtype in (torch.float16, torch.bfloat16):
        # Where terms cancel, what is left is as exact as the largest of them.
        finite = plain[plain.isfinite()].abs()
        atol = max(atol, torch.finfo(plain.dtype).eps * float(finite.max() if finite.numel() else 0))
    return apart(found, plain, rtol, atol)


def apart(found: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float) -> str | None:
    """What differs, in words."""
    expected = expected.detach().resolve_conj().resolve_neg().contiguous()
    try:
        torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())
    return None


def _meta(info: Any, sample: Any, found: Any) -> str | None:
    """Shapes, dtypes and, for views and contiguous results, strides on Meta, where the operator has no data to look at."""
    try:
        made = run(info.op, sample, "meta")
    except turnout.errors.NoDataError:
        return None  # the shape of the result depends on values
    except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
        return f"on meta: {raised(error)}"
    for cpu, meta in zip(tensors(found), tensors(made), strict=True):
        if (cpu.dtype, cpu.shape) != (meta.dtype, meta.shape):
            return f"on meta: expected {cpu.dtype} {tuple(cpu.shape)}, got {meta.dtype} {tuple(meta.shape)}"
        if cpu.is_contiguous() and not meta.is_contiguous():
            return f"on meta: strides {meta.stride()} where cpu is contiguous"
        if cpu._base is not None and (meta.stride(), meta.storage_offset()) != (cpu.stride(), cpu.storage_offset()):
            return f"on meta: a view with strides {meta.stride()}, on cpu {cpu.stride()}"
    return None


def errors(info: Any, dtype: torch.dtype) -> str | None:
    """The first of the OpInfo's error inputs that gives no error or one of another class than PyTorch's, on cpu or on Meta."""
    del dtype  # each error input has its own
    if info.error_inputs_func is None:
        return None
    with _same_in_every_run():
        for number, wrong in enumerate(info.error_inputs("cpu")):
            if _accepted(info, wrong.sample_input):
                continue  # PyTorch itself takes it
            wanted = next((c for c in ERROR_CLASSES if issubclass(wrong.error_type, c)), Exception)
            for device in ("cpu", "meta"):
                problem = _refusal(info, wrong, wanted, device)
                if problem:
                    return f"error input {number} {_brief(wrong.sample_input)} on {device}: {problem}"
    return None


def _without_values(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _accepted(info: Any, sample: Any) -> bool:
    try:
        info.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:  # noqa: BLE001 - whether it raises is the question
        return False
    return True


def _refusal(info: Any, wrong: Any, wanted: type[Exception], device: str) -> str | None:
    try:
        run(info.op, wrong.sample_input, device)
    except Missing as error:
        return f"missing {error}"
    except turnout.errors.NoDataError:
        return None  # only the values are wrong, and Meta has none
    except Exception as error:  # noqa: BLE001 - its class is the question
        return None if isinstance(error, wanted) else f"expected {wanted.__name__}, it {raised(error)}"
    if device == "meta" and _accepted(info, wrong.sample_input.transform(_without_values)):
        return None  # only the values are wrong: PyTorch's meta takes it too
    return f"no error, PyTorch: {wrong.error_regex}"


def _brief(sample: Any) -> str:
    return " ".join(repr(sample.summary()).split())[:300]


def raised(error: Exception) -> str:
    """An error as a verdict."""
    return f"raises {type(error).__name__}: {' '.join(str(error).split())[:300]}"
