"""Programs of definitions, kernels and their ends, at every key that a call with tensors or without can pass.

A library is `turnout` or `torch`, which have the same names. A `Way` says what each spells in its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import turnout
from turnout import state

# Each operator's signature, and the arguments of its calls; c, t and m are tensors: on cpu, tracked, and on meta.
OPERATORS = {
    "f": ("(Tensor x)", "c", "t", "m"), "g": ("(Tensor? x, *, Device? device=None)", "None, device='cpu'", "c", "m"),
    "h": ("(Tensor[] xs)", "[]", "[c]", "[c, t]"), "k": ("(Tensor?[] xs)", "[None]", "[None, t]", "[m]"), "n": ("(int n)", "3"),
}  # fmt: skip
IMPLICIT = "CompositeImplicitAutograd"
EXCLUDES_IMPLICIT = ("CompositeExplicitAutograd", "Meta")
# A kernel at one of these may go on below it: without these functionalities.
PASSING = {
    "Autograd": ("Autograd",), "AutogradCPU": ("Autograd",), "AutogradMeta": ("Autograd",),
    "ADInplaceOrView": ("Autograd", "ADInplaceOrView"), "BackendSelect": ("Autograd", "ADInplaceOrView", "BackendSelect"),
}  # fmt: skip
KEYS = (*PASSING, "BackendSelect", "CPU", *EXCLUDES_IMPLICIT, IMPLICIT)


class Step(NamedTuple):
    """What a group does, and what is excluded in the calls that follow."""

    what: str  # "define", "impl" or "undo"
    group: int
    operator: str
    key: str
    how: str  # a kernel "ends", "passes" or "falls through"
    excluded: str


class Way(NamedTuple):
    """What a library spells in its own way."""

    library: Any
    tensors: dict[str, Any]
    below: Callable[[Any, tuple[str, ...]], Any]  # a key set without these functionalities
    excluding: Callable[[str], AbstractContextManager[Any]]


OURS = Way(
    turnout,
    {"c": turnout.ones(2), "t": turnout.ones(2, requires_grad=True), "m": turnout.ones(2, device="meta")},
    lambda keys, names: keys.remove(names),
    lambda name: state.exclude((name, "AutogradOther") if name == "Autograd" else name) if name else nullcontext(),
)


def drawn(seed: int) -> list[Step]:
    """A program in which no step is refused."""
    draw = random.Random(seed)
    defined: dict[str, int] = {}
    kernels: dict[tuple[str, str], int] = {}
    steps = []
    for _ in range(draw.randint(3, 16)):
        what, group = draw.choice(("define", "impl", "impl", "impl", "undo")), draw.randrange(3)
        name, key, how = draw.choice([*OPERATORS]), draw.choice(KEYS), draw.choice(("ends", "passes", "falls through"))
        there = {each for operator, each in kernels if operator == name}
        if what == "undo":
            defined = {operator: by for operator, by in defined.items() if by != group}
            kernels = {slot: by for slot, by in kernels.items() if by != group}
        elif what == "define" or name not in defined:
            if name in defined:
                continue
            what, defined[name] = "define", group
        else:
            excluded = EXCLUDES_IMPLICIT if key == IMPLICIT else (IMPLICIT,) if key in EXCLUDES_IMPLICIT else ()
            if key in there or not there.isdisjoint(excluded):
                continue
            how = "ends" if key not in PASSING and (how == "passes" or key.startswith("Composite")) else how
            kernels[name, key] = group
        steps.append(Step(what, group, name, key, how, draw.choice(("", "", "Autograd", "BackendSelect"))))
    return steps


def calls(way: Way, steps: list[Step], namespace: str) -> Iterator[tuple[int, str, list[str], Any, Any]]:
    """Each call after each step: the step, the call, the list to which kernels add their key, the operator, the arguments."""
    groups: dict[int, Any] = {}
    defined: dict[str, int] = {}
    passed: list[str] = []
    made = way.library.ones(())

    def operator(name: str) -> Any:
        return getattr(getattr(way.library.ops, namespace), name).default

    def kernel(name: str, key: str, how: str) -> Any:
        def run(keys: Any, *args: Any, **kwargs: Any) -> Any:
            passed.append(key)
            return made if how == "ends" else operator(name).redispatch(way.below(keys, PASSING[key]), *args, **kwargs)

        return run

    try:
        for number, (what, by, name, key, how, excluded) in enumerate(steps):
            if what == "undo":
                if by in groups:
                    groups.pop(by)._destroy()
                defined = {each: group for each, group in defined.items() if group != by}
                continue
            group = groups[by] = groups.get(by) or way.library.library.Library(namespace, "FRAGMENT")
            if what == "define":
                group.define(f"{name}{OPERATORS[name][0]} -> Tensor")
                defined[name] = by
            elif how == "falls through":
                group.impl(name, way.library.library.fallthrough_kernel, key)
            else:
                group.impl(name, kernel(name, key, how), key, with_keyset=True)
            with way.excluding(excluded):
                for each in defined:
                    for source in OPERATORS[each][1:]:
                        given = eval(f"given({source})", {"given": lambda *args, **kwargs: (args, kwargs), **way.tensors})
                        yield number, f"{each}({source})", passed, operator(each), given
    finally:
        for group in groups.values():
            group._destroy()


def run(operator: Any, given: Any, passed: list[str]) -> list[str]:
    """The keys of the kernels that a call passes, and whether it is an error."""
    passed.clear()
    try:
        operator(*given[0], **given[1])
    except (NotImplementedError, RuntimeError, ValueError):
        return [*passed, "an error"]
    return list(passed)
