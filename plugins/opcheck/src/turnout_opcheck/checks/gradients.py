"""Gradients against differences of values, for every choice of inputs that require one, and what the rule does besides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import turnout
from turnout import Tensor
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.checks.registration import OUTPUTS, need_differentiable, tracked
from turnout_opcheck.comparing import difference
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import content, run
from turnout_opcheck.report import NotTriedError, Problem, need
from turnout_opcheck.subject import EMPTY, GAPS, SCALARS, SHORT, Subject, Variant, fails_by_accident, fresh

PRECISE = (turnout.float64, turnout.complex128)
LARGE = 64  # elements up to which every one is checked, and not one random direction
MISSING = re.compile(r"no gradient (with respect to '\w+' )?is implemented")


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("functionality:Autograd", "turnout-autograd")
    names = need_differentiable(subject)
    if subject.schema.out_arguments:
        raise NotTriedError(OUTPUTS)
    args = _precise(subject)
    with turnout.enable_grad():
        if not _outputs(subject, tracked(subject, args)):
            raise NotTriedError("no result requires a gradient")
        names = [name for name in names if not _is_missing(_backward(subject, args, [name]))]
        if not names:
            raise NotTriedError("the operator has no gradient, which backward says")
        error = _backward(subject, args, names)
        if error is not None:
            yield _raised("backward", error)
            return
        yield from _side_effects(subject, args, names)
        yield from _values(subject, args, names)
        yield from _second(subject, args, names)
        for variant in _others(subject):
            yield from _values(subject, variant.args, names, f" for {variant.name}", all_only=True)


def _precise(subject: Subject) -> Args:
    """The given arguments in double precision, where the operator accepts that."""
    args = derived.mapped(subject.args, derived.in_double)
    try:
        with turnout.no_grad():
            run(subject.op, fresh(args))
    except Exception:  # noqa: BLE001 - the operator has no kernel for it
        return fresh(subject.args)
    return args


def _others(subject: Subject) -> list[Variant]:
    """Derived calls at which gradients are checked too: other layouts and sizes that do not change what is differentiated."""
    found = [v for v in subject.accepted() if v.name in (GAPS, SHORT, SCALARS, EMPTY)]
    made = []
    for variant in found:
        args = derived.mapped(variant.args, derived.in_double)
        try:
            with turnout.no_grad():
                run(subject.op, fresh(args))
        except Exception:  # noqa: BLE001 - not accepted in double precision
            continue
        made.append(Variant(variant.name, args))
    return made


def _outputs(subject: Subject, args: Args) -> list[Tensor]:
    """The results that require a gradient."""
    found = subject.seeded(lambda: run(subject.op, _spared(subject, args)))
    return [v for v in flat(found) if isinstance(v, Tensor) and v.requires_grad]


def _spared(subject: Subject, args: Args) -> Args:
    """The arguments with copies of those that are written."""
    targets = derived.written(subject.op, args)
    return derived.mapped(args, lambda t: t.clone() if id(t) in targets else t)


def _backward(subject: Subject, args: Args, names: list[str]) -> Exception | None:
    """What a backward pass raised with respect to some inputs; None where it ran."""
    given = tracked(subject, args, names)
    inputs = [t for _, t in derived.tensors(subject.op, given) if t.requires_grad]
    try:
        outputs = _outputs(subject, given)
        if outputs:
            turnout.autograd.grad(outputs, inputs, [turnout.ones_like(o) for o in outputs], allow_unused=True)
    except Exception as error:  # noqa: BLE001 - a rule may raise anything
        return error
    return None


def _is_missing(error: Exception | None) -> bool:
    """Whether an error says that nobody gave the operator a gradient, or that it has none."""
    return error is not None and MISSING.search(str(error)) is not None


def _raised(what: str, error: Exception) -> Problem:
    text = f"{what} raised {type(error).__name__}: {error}"
    return Problem(f"{what} raised", text, "return a gradient of the input's shape and dtype, or None, for each input")


# ---- values


def _mixes(names: list[str], all_only: bool) -> Iterator[tuple[str, ...]]:
    """Every choice of inputs that require a gradient; of many, all together and each alone."""
    yield tuple(names)
    if all_only or len(names) == 1:
        return
    sizes = range(1, len(names)) if len(names) <= 3 else (1,)
    for size in sizes:
        yield from combinations(names, size)


def _values(
    subject: Subject, args: Args, names: list[str], where: str = "", all_only: bool = False, apart: bool = False,
    symmetric: frozenset[str] = frozenset(),
) -> Iterator[Problem]:  # fmt: skip
    declared, precise = _results(subject, args)
    if not precise:
        return
    for mix in _mixes(names, all_only):
        function, inputs = _as_function(subject, args, mix, declared, symmetric)
        if any(t.dtype not in PRECISE for t in inputs):  # differences mean nothing in lower precision
            return
        large = sum(t.numel() for t in inputs) > LARGE
        try:
            turnout.autograd.gradcheck(function, inputs, fast_mode=large, nondet_tol=0.0)
        except Exception as error:  # noqa: BLE001 - a rule may raise anything
            text = str(error)
            if "numeric   nan" in text and "formula   nan" in text:
                return  # no derivative, and both say so
            if "gradcheck:" in text and "is wrong" in text:
                triangles = frozenset() if symmetric else _triangles(subject, args, mix)
                if triangles:
                    yield from _values(subject, args, names, where, all_only, apart, triangles)
                    return
                if not apart and _has_ties(inputs):
                    yield from _values(subject, derived.mapped(args, _moved_apart), names, where, all_only, True, symmetric)
                    return
                words = text.replace("gradcheck: ", "").replace("\n  ", "; ")
                yield Problem("wrong", f"{words}{where}{_of(mix, names)}", "make backward the derivative of the kernel")
            elif "differ between two backward passes" in text:
                yield Problem("differ", text, "compute backward from saved tensors and the incoming gradient alone")
            elif not _nothing_to_check(text):
                yield _raised(f"backward{where}{_of(mix, names)}", error)
            return


def _has_ties(inputs: list[Tensor]) -> bool:
    """Whether equal elements may make a point where the operator has no derivative, as that of a maximum has none."""
    return any(len(set(map(str, t.detach().reshape((-1,)).tolist()))) < t.numel() for t in inputs)


def _triangles(subject: Subject, args: Args, names: tuple[str, ...]) -> frozenset[str]:
    """The names of symmetric matrices of which the operator reads one triangle only.

    The gradient of such an operator is that of a symmetric matrix, in both triangles.
    """
    found = set()
    with turnout.no_grad():
        expected = subject.seeded(lambda: run(subject.op, fresh(args)))
        for name, tensor in derived.tensors(subject.op, args):
            if name not in names or tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
                continue
            if not turnout.equal(tensor, tensor.mH):
                continue
            for part in (turnout.tril, turnout.triu):
                one = derived.mapped(args, lambda t, p=part, kept=tensor: p(t) if t is kept else derived.copy(t))  # type: ignore[misc]
                try:
                    if not difference(subject.seeded(lambda a=one: run(subject.op, a)), expected):  # type: ignore[misc]
                        found.add(name)
                except Exception:  # noqa: BLE001 - it reads what is missing
                    continue
    return frozenset(found)


def _moved_apart(tensor: Tensor) -> Tensor:
    """A copy in which floating elements that are equal are not any more."""
    plain = derived.copy(tensor)
    if not (plain.is_floating_point() or plain.is_complex()):
        return plain
    steps = turnout.arange(plain.numel(), dtype=turnout.float64).reshape(tuple(plain.shape)).to(plain.dtype)
    return plain + steps * 0.0137


def _nothing_to_check(text: str) -> bool:
    return "elements of input" in text or "no input requires" in text or MISSING.search(text) is not None


def _of(mix: tuple[str, ...], names: list[str]) -> str:
    return "" if len(mix) == len(names) else f" where only {' and '.join(mix)} requires a gradient"


def _as_function(
    subject: Subject, args: Args, mix: tuple[str, ...], declared: set[int], symmetric: frozenset[str]
) -> tuple[Callable[..., Any], list[Tensor]]:
    """The operator as a function of the tensors of a choice, and these tensors as leaves.

    What is `symmetric` gets the symmetric part of its leaf. Results that are `declared` as not differentiable are left out.
    """
    wanted = {id(t) for n, t in derived.tensors(subject.op, args) if n in mix}
    order: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        if id(tensor) in wanted:
            order.append(id(tensor))
        return tensor

    derived.mapped(args, note)
    originals = {id(t): t for _, t in derived.tensors(subject.op, args)}
    leaves = [originals[key].detach().clone().requires_grad_() for key in order]
    rest = derived.mapped(args, lambda t: t if id(t) in wanted else derived.copy(t))
    halves = {id(t) for n, t in derived.tensors(subject.op, args) if n in symmetric}

    def function(*inputs: Tensor) -> list[Tensor]:
        at = {key: (x + x.mH) / 2 if key in halves else x for key, x in zip(order, inputs, strict=True)}
        values = derived.mapped(rest, lambda t: at.get(id(t), t))
        found = subject.seeded(lambda: run(subject.op, _spared(subject, values)))
        kept = [v for i, v in enumerate(flat(found)) if i not in declared]
        return [v for v in kept if isinstance(v, Tensor) and (v.is_floating_point() or v.is_complex())]

    return function, leaves


def _results(subject: Subject, args: Args) -> tuple[set[int], bool]:
    """The positions of results that a rule declares as not differentiable, and whether differences of the others mean something.

    What is declared requires no gradient where other results do. A composite has no rule.
    """
    with turnout.enable_grad():
        found = flat(subject.seeded(lambda: run(subject.op, _spared(subject, tracked(subject, args)))))
    needs = {i for i, v in enumerate(found) if isinstance(v, Tensor) and v.requires_grad}
    declared = set() if subject.is_composite or not needs else set(range(len(found))) - needs
    return declared, all(found[i].dtype in PRECISE for i in needs)


def _second(
    subject: Subject, args: Args, names: list[str], apart: bool = False, symmetric: frozenset[str] = frozenset()
) -> Iterator[Problem]:
    """The gradient of the gradient: right, or refused with an error."""
    declared, precise = _results(subject, args)
    function, inputs = _as_function(subject, args, tuple(names), declared, symmetric)
    if not precise or any(t.dtype not in PRECISE for t in inputs):
        return
    try:
        turnout.autograd.gradgradcheck(function, inputs, fast_mode=True)
    except Exception as error:  # noqa: BLE001 - a rule may raise anything
        if "gradcheck:" in str(error) and "is wrong" in str(error):
            triangles = frozenset() if symmetric else _triangles(subject, args, tuple(names))
            if triangles:
                yield from _second(subject, args, names, apart, triangles)
                return
            if not apart and _has_ties(inputs):
                yield from _second(subject, derived.mapped(args, _moved_apart), names, True, symmetric)
                return
            text = "the second derivative is wrong, and no error says that the gradient cannot be differentiated"
            yield Problem("second", text, "write backward in operators on saved tensors, or mark it once_differentiable")
        elif fails_by_accident(error):
            yield _raised("the second backward", error)


# ---- what the rule does besides


def _side_effects(subject: Subject, args: Args, names: list[str]) -> Iterator[Problem]:
    """The rule must not write the incoming gradient, and must use what its own call saved."""
    first = tracked(subject, args, names)
    second = tracked(subject, derived.mapped(args, derived.unlike), names)
    try:
        outputs = _outputs(subject, first)
        _outputs(subject, second)
    except Exception:  # noqa: BLE001 - other values may not be accepted
        return
    seeds = [turnout.full_like(o, 0.5) for o in outputs]
    before = [content(s) for s in seeds]
    inputs = [t for _, t in derived.tensors(subject.op, first) if t.requires_grad]
    late = turnout.autograd.grad(outputs, inputs, seeds, allow_unused=True)
    if any(content(s) != b for s, b in zip(seeds, before, strict=True)):
        yield Problem("seed", "backward writes the incoming gradient, which other rules get too", "work on a new tensor")
        return
    alone = turnout.autograd.grad(_outputs(subject, first), inputs, seeds, allow_unused=True)
    told = difference(list(late), list(alone))
    if told:
        text = f"backward of an earlier call uses values of the latest call: {told}"
        yield Problem("state", text, "save what backward needs with ctx.save_for_backward")
