"""Random programs of views, writes and functions, run step by step by PyTorch and here: they agree after every step.

Compared are which steps raise and the class of the error, and of every variable: values, dtype, shape, strides, what it is to
autograd, version, base, and `.grad`. What is not compared has a function here that says why; what the programs leave out from
the start has a comment where they are made. `PROGRAMS=20000` in the environment runs that many instead of 2,500.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402
from autograd_programs import Program, Step, places  # noqa: E402

torch.set_num_threads(1)  # the tensors are small: threads only wait for each other
COUNT = int(os.environ.get("PROGRAMS", "2500"))
AT_ONCE = 50


class Difference(AssertionError):
    """What PyTorch has, and what is here."""


class Side:
    """One library, and the variables of a program in it."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.scope: dict[str, Any] = {"t": library, "ends": []}
        self._versions: dict[str, int] = {}

    def run(self, code: Any) -> Exception | None:
        """What a step raises."""
        try:
            exec(code, self.scope)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other library has to raise the same
            return error
        return None

    @property
    def tensors(self) -> dict[str, Any]:
        return {name: value for name, value in self.scope.items() if isinstance(value, self.library.Tensor)}

    def facts(self, name: str, x: Any, names: dict[int, str]) -> dict[str, Any]:
        """What is compared of a tensor, but for its values; `names` are those of all by id."""
        base = x._base
        return {
            "dtype": str(x.dtype).rpartition(".")[2],
            "shape": tuple(x.shape),
            "strides": [s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1] if x.numel() else None,
            # How often it was written since it was made; what came before is how it was made.
            "version": x._version - self._versions.setdefault(name, x._version),
            "base": None if base is None else names.get(id(base), "something of its own"),
            "tracked": tracked(x),
        }


def tracked(x: Any) -> Any:
    """What a tensor is to autograd, which a view that cannot follow its base refuses to say."""
    try:
        return {"requires_grad": x.requires_grad, "is_leaf": x.is_leaf, "history": x.grad_fn is not None}
    except RuntimeError:
        return "refused"


# ---- one program


def run(seed: int) -> tuple[list[Step], str]:
    """The steps of a seed's program that were run, and the first difference; an empty text where there is none."""
    program = Program(seed)
    theirs, ours = Side(torch), Side(turnout)
    tolerance = 1e-3 if re.search("float32|int64", str(program)) else 1e-8
    done: list[Step] = []
    left_open = False
    try:
        with fresh():
            for step in [*program.leaves, *program.steps]:
                if any(name not in ours.scope for name in step.needs) or shares_places(step, theirs):
                    continue
                done.append(step)
                left_open = writes_what_it_reads(step, theirs)
                code = compile(step.code, f"<{seed}>", "exec")
                expected, found = theirs.run(code), ours.run(code)
                left_open |= is_own_bug(expected) or (found is None and is_limited(step, expected, ours))
                if (expected is None) != (found is None) or (found and not alike(expected, found)):
                    raise Difference(f"{expected!r} and not {found!r}")
                if found is not None and "backward(" in step.code:
                    forget_gradients(theirs, ours)
                leave_out(step, theirs, ours)
                # What makes something new leaves the rest as it was; that is looked at again with the next write.
                compare(theirs, ours, tolerance, (*step.makes, *step.needs) if step.makes else ())
            compare(theirs, ours, tolerance)
    except Difference as difference:
        return done, "" if left_open else str(difference)
    return done, ""


@contextmanager
def fresh() -> Iterator[None]:
    """Without warnings, and recording gradients again afterwards."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_grad_enabled(True)
        turnout.set_grad_enabled(True)


def alike(expected: Exception | None, found: Exception) -> bool:
    """Whether the errors have one builtin class."""
    if isinstance(expected, NotImplementedError):  # of a dtype: any class in PyTorch's kernels, here always one
        return isinstance(found, (NotImplementedError, TypeError))
    return isinstance(found, next(c for c in type(expected).__mro__ if c.__module__ == "builtins"))


def compare(theirs: Side, ours: Side, tolerance: float, only: tuple[str, ...] = ()) -> None:
    """Raise Difference where a variable, or one of some, is not the same on both sides."""
    expected, found = theirs.tensors, ours.tensors
    if expected.keys() != found.keys():
        raise Difference(f"other variables: {set(expected) ^ set(found)}")
    names = [{id(x): name for name, x in tensors.items()} for tensors in (expected, found)]
    for name in [name for name in only if name in expected] if only else expected:
        x, y = expected[name], found[name]
        one, other = theirs.facts(name, x, names[0]), ours.facts(name, y, names[1])
        if "something of its own" in (one["base"], other["base"]):  # a function may return a view of such
            other["base"] = one["base"]
        if one != other:
            raise Difference("; ".join([f"{name}: {k} {one[k]} and not {other[k]}" for k in one if one[k] != other[k]]))
        same_values(name, x, y, tolerance)
        if one["tracked"] != "refused" and x.is_leaf:
            if (x.grad is None) != (y.grad is None):
                raise Difference(f"{name}.grad: {x.grad} and not {y.grad}")
            if x.grad is not None:
                same_values(f"{name}.grad", x.grad, y.grad, tolerance)


def same_values(name: str, x: Any, y: Any, tolerance: float) -> None:
    one, other = x.detach().resolve_neg().numpy(force=True), y.detach().numpy()
    if one.shape != other.shape:
        raise Difference(f"{name}: shape {one.shape} and not {other.shape}")
    if np.array_equal(one, other):
        return
    sane = np.isfinite(one)  # infinities and NaN come from overflow and of nothing, where the order of computing decides
    one, other = one[sane], other[sane]
    if one.size and not np.allclose(other, one, rtol=tolerance, atol=tolerance * max(np.abs(one).max(), 1e-2)):
        raise Difference(f"{name}: {one.tolist()} and not {other.tolist()}")


# ---- what is not compared


def leave_out(step: Step, theirs: Side, ours: Side) -> None:
    """The program goes on without the variables that a step left different for a known reason."""
    makes = step.makes
    for name, x in theirs.tensors.items():
        made_other = name in makes and name in ours.tensors and any(f(x, ours.scope[name]) for f in MADE_OTHER)
        if made_other or is_integer(x) or gets_no_gradient(x):
            theirs.scope.pop(name)
            ours.scope.pop(name, None)


def is_integer(x: Any) -> bool:
    """# differs from torch: an integer into which a tracked number was written requires a gradient there."""
    return x.requires_grad and not (x.is_floating_point() or x.is_complex())


def gets_no_gradient(x: Any) -> bool:
    """A view that was made under no_grad of a tracked base.

    # differs from torch: here it requires no gradient; there it calls itself a leaf that requires one, and gets none.
    """
    try:
        return x._base is not None and x.requires_grad and x.grad_fn is None
    except RuntimeError:
        return False


def other_order(x: Any, y: Any) -> bool:
    """A function's result with another order of its elements in memory.

    # differs from torch: cumsum keeps the order of its operand, and where and lerp promise none.
    """
    if x.shape != y.shape or x._base is not None or y._base is not None:
        return False
    return any(n > 1 and a != b for n, a, b in zip(x.shape, x.stride(), y.stride(), strict=True))


def constant_zero(x: Any, y: Any) -> bool:
    """# differs from torch: the gradient of a view without elements is a constant there, and computed here."""
    return tracked(x) != tracked(y) and not x.requires_grad and y.requires_grad and not x.any()


MADE_OTHER: list[Callable[[Any, Any], bool]] = [other_order, constant_zero]


def is_own_bug(expected: Exception | None) -> bool:
    """What PyTorch asks to be told of."""
    return "please report" in str(expected)


def forget_gradients(theirs: Side, ours: Side) -> None:
    """After a backward that raised.

    # differs from torch: here every `.grad` is as it was before; there some gradients have arrived.
    """
    for x in (*theirs.tensors.values(), *ours.tensors.values()):
        x.grad = None


def is_limited(step: Step, expected: Exception | None, ours: Side) -> bool:
    """Whether gradients were refused by PyTorch alone, for a value that only the gradients of other tensors need.

    # differs from torch: here it is looked at when it is needed; so gradients of everything are refused.
    """
    if "modified by an inplace operation" not in str(expected):
        return False
    end = re.search(r"autograd\.grad\((.*?), \[", step.code)
    everything = f"({end[1]}).backward()" if end else re.sub(r"inputs=\[.*?\]", "", step.code)
    return isinstance(ours.run(everything), turnout.errors.AliasError)


def shares_places(step: Step, theirs: Side) -> bool:
    """Writes into memory that several elements share; such steps are not run.

    # differs from torch: an expanded tensor is never written here; PyTorch allows constants.
    """
    x = theirs.scope.get(step.writes)
    return x is not None and len(set(places(x))) < x.numel()


def writes_what_it_reads(step: Step, theirs: Side) -> bool:
    """Whether what is written and another operand share elements, but are not the same.

    # differs from torch: it is refused here where the order of writes would show, and done right where it would not. PyTorch
    # looks at contiguous operands only, refuses them, and leaves the rest to chance.
    """
    if step.writes not in theirs.scope:
        return False
    again = step.code.count(step.writes) > 1
    others = [theirs.scope[name] for name in step.needs if name != step.writes or again]
    written = elements(theirs.scope[step.writes])
    return any(written & elements(x) for x in others)


def elements(x: Any) -> set[int]:
    """The addresses of a tensor's elements, of both parts of complex ones."""
    size = x.element_size()
    return {x.data_ptr() + size * place + part for place in places(x) for part in ((0, size // 2) if x.is_complex() else (0,))}


# ----


@pytest.mark.parametrize("start", range(0, COUNT, AT_ONCE))
def test_programs_give_what_torch_gives_after_every_step(start: int) -> None:
    wrong = []
    for seed in range(start, min(start + AT_ONCE, COUNT)):
        done, difference = run(seed)
        if difference:
            wrong.append("\n".join([f"seed {seed}", *[step.code for step in done], f"# {difference}"]))
    assert not wrong, "\n\n".join(wrong)


def test_programs_go_on_for_long_and_are_refused_some_things() -> None:
    """So that they do not agree for want of doing anything: what is left open ends a program, a refusal leaves a step out."""
    programs = [run(seed)[0] for seed in range(100)]
    assert sum(len(steps) for steps in programs) > 2500
    assert sum(bool(step.writes) for steps in programs for step in steps) > 600
    assert sum("autograd.grad" in step.code for steps in programs for step in steps) > 500
    refused = 0
    for steps in programs:
        side = Side(turnout)
        with fresh():
            refused += sum(side.run(step.code) is not None for step in steps)
    assert 100 < refused < 500
