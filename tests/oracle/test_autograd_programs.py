"""Random programs of views, writes and functions, run step by step by PyTorch and here: they agree after every step.

Compared are which steps raise and the class of the error, and of every variable: values, dtype, shape, strides, what it is to
autograd, version, base, and `.grad`. `PROGRAMS=20000` in the environment runs that many instead of 2,500.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402
from autograd_programs import Program, Step, places  # noqa: E402

COUNT = int(os.environ.get("PROGRAMS", "2500"))
AT_ONCE = 50


class Side:
    """One library and the variables of a program in it."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.scope: dict[str, Any] = {"t": library, "ends": []}
        self.versions: dict[str, int] = {}

    def run(self, code: Any) -> Exception | None:
        try:
            exec(code, self.scope)
        except Exception as error:
            return error
        return None

    def version(self, name: str, x: Any) -> int:
        """How often a variable was written since it was made: what came before is how it was made."""
        return x._version - self.versions.setdefault(name, x._version)

    @property
    def tensors(self) -> dict[str, Any]:
        kind = self.library.Tensor
        return {name: value for name, value in self.scope.items() if isinstance(value, kind)}


def facts(x: Any, name: str, side: Side, names: dict[int, str]) -> dict[str, Any]:
    """What is compared of a tensor, but for its values. Asking a view that cannot follow its base is an error."""
    found: dict[str, Any] = {"dtype": str(x.dtype).rpartition(".")[2], "shape": tuple(x.shape), "version": side.version(name, x)}
    found["strides"] = [s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1] if x.numel() else None
    base = x._base
    found["base"] = None if base is None else names.get(id(base), "temporary")
    try:
        found["tracked"] = x.requires_grad, x.is_leaf, x.grad_fn is None
    except RuntimeError:
        found["tracked"] = "refused"
    return found


def values(x: Any) -> Any:
    x = x.detach()
    return x.numpy() if isinstance(x, turnout.Tensor) else x.resolve_conj().resolve_neg().numpy()


def is_odd(x: Any) -> bool:
    """What PyTorch calls a leaf that requires a gradient, though none arrives, or an integer that requires one.

    # differs from torch: a view made under no_grad of a tracked base requires no gradient here, and integers never do.
    """
    try:
        if x.requires_grad and not (x.is_floating_point() or x.is_complex()):
            return True
        return x._base is not None and x.requires_grad and x.grad_fn is None
    except RuntimeError:
        return False


def is_limited(step: Step, expected: Exception | None, ours: Side) -> bool:
    """Whether a gradient was refused by PyTorch alone, for a value that only the gradients of other tensors need.

    # differs from torch: here it is looked at when it is needed; so gradients of everything are refused.
    """
    if "modified by an inplace operation" not in str(expected):
        return False
    end = re.search(r"autograd\.grad\((.*?), \[", step.code)
    everything = f"({end[1]}).backward()" if end else re.sub(r"inputs=\[.*?\]", "", step.code)
    return isinstance(ours.run(everything), turnout.errors.AliasError)


def elements(x: Any) -> set[int]:
    """The addresses of a tensor's elements."""
    return {x.data_ptr() + x.element_size() * place for place in places(x)}


def other_order(x: Any, y: Any) -> bool:
    """Whether a function gave a result with another order of its elements in memory.

    # differs from torch: cumsum keeps the order of its operand, and where and lerp promise none.
    """
    if not isinstance(x, torch.Tensor) or not isinstance(y, turnout.Tensor) or x.shape != y.shape:
        return False
    made = x._base is None and y._base is None
    return made and any(n > 1 and a != b for n, a, b in zip(x.shape, x.stride(), y.stride(), strict=True))


def constant_zero(x: Any, y: Any) -> bool:
    """Whether a gradient of nothing is a constant there, and computed here: that of a view without elements."""
    if not isinstance(x, torch.Tensor) or not isinstance(y, turnout.Tensor):
        return False
    return not x.requires_grad and y.requires_grad and not x.any()


def forget_gradients(theirs: Side, ours: Side) -> None:
    """After a backward that raised.

    # differs from torch: here every `.grad` is as it was before; there some gradients have arrived.
    """
    for x in (*theirs.tensors.values(), *ours.tensors.values()):
        x.grad = None


def writes_what_it_reads(step: Step, scope: dict[str, Any]) -> bool:
    """Whether what is written and another operand share elements, but are not the same.

    # differs from torch: it is refused here where the order of writes would show, and done right where it would not. PyTorch
    # looks at contiguous operands only, refuses them, and leaves the rest to chance.
    """
    x = scope.get(step.writes)
    return x is not None and any(elements(x) & elements(scope[name]) for name in step.needs if name in scope and (name != step.writes or step.code.count(name) > 1))


def cannot_compare(step: Step, scope: dict[str, Any]) -> bool:
    """Writes into memory that several elements share.

    # differs from torch: never allowed here; PyTorch allows it for constants.
    """
    x = scope.get(step.writes)
    return x is not None and len(elements(x)) < x.numel()


class Difference(Exception):
    pass


def compare(theirs: Side, ours: Side, tolerance: float, only: tuple[str, ...] = ()) -> None:
    """Raise Difference where a variable, or one of some, is not the same on both sides."""
    sides = theirs.tensors, ours.tensors
    if sides[0].keys() != sides[1].keys():
        raise Difference(f"other variables: {set(sides[0]) ^ set(sides[1])}")
    names = [{id(x): name for name, x in tensors.items()} for tensors in sides]
    for name in [name for name in only if name in sides[0]] if only else sides[0]:
        x, y = sides[0][name], sides[1][name]
        expected, found = facts(x, name, theirs, names[0]), facts(y, name, ours, names[1])
        if expected != found:
            if "temporary" in (expected["base"], found["base"]):
                found["base"] = expected["base"]  # which functions give a view of something of their own is nobody's business
            parts = [f"{k} {expected[k]} and not {found[k]}" for k in expected if expected[k] != found[k]]
            if parts:
                raise Difference(f"{name}: {'; '.join(parts)}")
        same_values(name, x, y, tolerance)
        if x.is_leaf if expected["tracked"] != "refused" else False:
            if (x.grad is None) != (y.grad is None):
                raise Difference(f"{name}.grad: {x.grad} and not {y.grad}")
            if x.grad is not None:
                same_values(f"{name}.grad", x.grad, y.grad, tolerance)


def same_values(name: str, x: Any, y: Any, tolerance: float) -> None:
    one, other = values(x), values(y)
    if not np.isfinite(one).all():  # infinities and NaN come from overflow, where the order of computing decides
        one, other = np.nan_to_num(one * 0, nan=1.0), np.nan_to_num(other * 0, nan=1.0)
    if one.shape != other.shape:
        raise Difference(f"{name}: shape {one.shape} and not {other.shape}")
    if one.size and not np.array_equal(one, other):
        if not np.allclose(other, one, rtol=tolerance, atol=tolerance * max(np.abs(one).max(), 1e-2)):
            raise Difference(f"{name}: {one.tolist()} and not {other.tolist()}")


def run(seed: int) -> tuple[Program, list[Step], str]:
    """The program of a seed, the steps that were run, and the first difference, or an empty text."""
    program = Program(seed)
    theirs, ours = Side(torch), Side(turnout)
    tolerance = 1e-3 if "float32" in str(program) or "int64" in str(program) else 1e-8
    done: list[Step] = []
    left_open = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for step in [*program.leaves, *program.steps]:
                if any(name not in ours.scope for name in step.needs):
                    continue
                if cannot_compare(step, theirs.scope):
                    continue
                done.append(step)
                left_open = writes_what_it_reads(step, theirs.scope)
                code = compile(step.code, f"<{seed}>", "exec")
                expected, found = theirs.run(code), ours.run(code)
                left_open |= "please report" in str(expected)  # what PyTorch calls a bug of its own
                left_open |= found is None and is_limited(step, expected, ours)
                if (expected is None) != (found is None) or (found and not alike(expected, found)):
                    raise Difference(f"{expected!r} and not {found!r}")
                if found is not None and "backward(" in step.code:
                    forget_gradients(theirs, ours)
                for name in [name for name, x in theirs.tensors.items() if is_odd(x)]:
                    theirs.scope.pop(name), ours.scope.pop(name)
                for name in step.makes:
                    x, y = theirs.scope.get(name), ours.scope.get(name)
                    if other_order(x, y) or constant_zero(x, y):
                        theirs.scope.pop(name), ours.scope.pop(name)
                # What makes something new leaves the rest as it was; that is looked at again with the next write.
                compare(theirs, ours, tolerance, (*step.makes, *step.needs) if step.makes else ())
            compare(theirs, ours, tolerance)
    except Difference as difference:
        return program, done, "" if left_open else str(difference)
    finally:
        torch.set_grad_enabled(True)
        turnout.set_grad_enabled(True)
    return program, done, ""


def alike(expected: Exception, found: Exception) -> bool:
    if isinstance(expected, NotImplementedError):  # of a dtype: another class in each of PyTorch's kernels, here always one
        return isinstance(found, (NotImplementedError, TypeError))
    return isinstance(found, next(c for c in type(expected).__mro__ if c.__module__ == "builtins"))


@pytest.mark.parametrize("start", range(0, COUNT, AT_ONCE))
def test_programs_give_what_torch_gives_after_every_step(start: int) -> None:
    wrong = {}
    for seed in range(start, min(start + AT_ONCE, COUNT)):
        _, done, difference = run(seed)
        if difference:
            wrong[seed] = "\n".join([*[step.code for step in done], f"# {difference}"])
    assert not wrong, "\n\n".join(f"seed {seed}\n{text}" for seed, text in wrong.items())
