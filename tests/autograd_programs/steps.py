"""The steps of a program while it is written: its variables, and how a step and what it needs are put down."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from autograd_programs.draw import Draw, Made, Shape, Var

# What is saved passes through hooks for one step.
PACKED = "autograd.graph.saved_tensors_hooks(lambda s: s.clone(), lambda s: s.clone())"
DTYPES = ["int64", "float32", "float64", "complex128"]


class Step(NamedTuple):
    """Python text, the variables that it makes, those that it needs, and the one that it writes."""

    code: str
    makes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    writes: str = ""


class Steps:
    """What has been written of a program.

    draw    the random choices, with the variables in scope
    done    the steps
    starts  the names of the leaves that gradients are taken of
    hooks   the names of handles
    recording  whether gradients are recorded at this point
    """

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.done: list[Step] = []
        self.starts: list[str] = []
        self.hooks: list[str] = []
        self.recording = True
        self._made = 0
        # Writes mostly spare what a gradient needs, in most programs.
        self._care = draw.choice([0.0, 0.9, 0.97, 1.0])

    def name(self) -> str:
        """A new name."""
        self._made += 1
        return f"x{self._made}"

    def var(self, name: str) -> Var:
        """The variable of that name."""
        return next(v for v in self.draw.scope if v.name == name)

    def declare(self, name: str, shape: Shape, dtype: str, tracked: bool = False) -> Var:
        """A variable that shares nothing."""
        made = Var(name, tuple(shape), dtype, tracked)
        self.draw.scope.append(made)
        return made

    def say(self, code: str, makes: tuple[str, ...] = (), writes: str = "", mode: str = "") -> None:
        """Put down a step that needs what was used to make it, in another mode of recording where one is given."""
        needs = tuple(dict.fromkeys(v.name for v in self.draw.used))
        if mode:
            context = PACKED if mode == PACKED else f"{mode}()"
            code = f"with t.{context}:\n    " + code.replace("\n", "\n    ")
        self.done.append(Step(code, makes, needs, writes))

    def assign(self, made: Made, x: Var, mode: str = "") -> Var:
        """Put down that a new variable is what a function of `x` gives."""
        name, used = self.name(), self.draw.used
        dtype = made.dtype or max((v.dtype for v in used), key=DTYPES.index)
        self.say(f"{name} = {made.text}", (name,), mode=mode)
        if ".contiguous()" in made.text or ".to(" in made.text:  # perhaps the same tensor
            result = replace(x, name=name, shape=made.shape, dtype=dtype)
            x.memory.twice = True
            self.draw.scope.append(result)
            return result
        return self.declare(name, made.shape, dtype, self.records(mode) and any(v.tracked for v in used))

    def records(self, mode: str) -> bool:
        """Whether gradients are recorded in a mode."""
        return self.recording if mode in ("", PACKED) else mode == "enable_grad"

    def mode(self, modes: tuple[str, ...], chance: float = 0.1) -> str:
        """Sometimes another mode for one step."""
        d = self.draw
        if d.smooth or not d.chance(chance + 0.05):
            return ""
        return d.choice(modes) if d.chance(chance / (chance + 0.05)) else PACKED

    def any(self) -> Var:
        """A variable, often one of the newest, and seldom one whose memory may not be written."""
        d = self.draw
        scope = [v for v in d.scope if not v.memory.leaf] if d.chance(0.8) else d.scope
        x = d.choice(scope[-6:] if d.chance(0.5) else scope)
        d.used.append(x)
        return x

    def start(self) -> str:
        """The name of a leaf that gradients are taken of."""
        name = self.draw.choice(self.starts)
        self.draw.used.append(self.var(name))
        return name

    def target(self, mode: str) -> Var | None:
        """What may be written in a mode, nearly always."""
        d = self.draw
        allowed = [v for v in d.scope if v.numel]
        if not d.chance(0.08):
            free = not self.records(mode)
            allowed = [v for v in allowed if free or not (v.memory.leaf or v.several or v.unrecorded)]
            allowed = [v for v in allowed if not (v.memory.saved and d.chance(self._care))]
        if not allowed:
            return None
        x = d.choice(allowed)
        d.used.append(x)
        return x

    def switch(self) -> None:
        """Gradients are recorded from here on, or not any more."""
        self.recording = not self.recording
        self.draw.used.clear()
        self.say(f"t.set_grad_enabled({self.recording})")


def size(x: Var) -> str:
    """A number made of a variable, to differentiate."""
    return squares(x.name) if x.dtype == "complex128" else f"({x} * {x}).sum()"


def squares(name: str) -> str:
    """The sum of the squares of absolute values."""
    return f"({name} * {name}.conj()).real.sum()"
