"""Random programs of views, writes, functions and what is done to the tape; a seed always gives one program.

A program is a list of steps, each a line or two of Python that any library can run which names things as PyTorch does. What
the generator believes of the variables (shapes, who shares memory, who requires a gradient) makes most steps possible; those
that are not must be refused by everyone alike, and the program goes on without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from autograd_programs import functions, views, writes
from autograd_programs.draw import Draw, Made, Memory, Shape, Var

STEPS = 20


class Step(NamedTuple):
    """Python text, the variables that it makes, those that it needs, and the one that it writes."""

    code: str
    makes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    writes: str = ""


class Program:
    """The program of a seed; `str()` gives its text.

    leaves  the first steps, which make one leaf each
    starts  the names of those leaves that gradients are taken of
    steps   what follows
    ends    the names of what gradients are taken from at the end

    A `smooth` program is a function of its leaves: nothing stops, changes or takes gradients on the way.
    """

    def __init__(self, seed: int, smooth: bool = False, steps: int = STEPS) -> None:
        self.seed = seed
        self._d = Draw(seed, smooth)
        self._made = 0
        self._recording = True
        self._hooks: list[str] = []
        # Writes mostly spare what a gradient needs, in most programs.
        self._care = self._d.choice([0.0, 0.9, 0.97, 1.0])
        self.starts: list[str] = []
        self.leaves = self._leaves()
        self.steps: list[Step] = []
        self._first()
        while len(self.steps) < steps:
            self._add()
        self.ends = self._ends()
        if not smooth:
            self._finish()

    def __str__(self) -> str:
        return "\n".join(["import torch as t", "ends = []", *[step.code for step in [*self.leaves, *self.steps]]])

    # ---- the parts of a program

    def _leaves(self) -> list[Step]:
        d = self._d
        kinds = [("float64", True), ("float64", True), ("float64", False)]
        if not self._d.smooth:
            kinds += [("float32", d.chance(0.7))] * d.chance(0.15) + [("complex128", d.chance(0.7))] * d.chance(0.15)
            kinds += [("int64", False)] * d.chance(0.2)
        made = []
        for name, (dtype, tracked) in zip("abcdef", kinds, strict=False):
            shape = d.choice([(3, 3), (2, 3), (4,), (3,), (2, 1, 3), (2, 2, 2), (3, 2)])
            self.declare(name, shape, dtype, tracked).memory.leaf = tracked
            text = f"t.tensor({self._values(shape, dtype)}, dtype=t.{dtype})"
            made.append(Step(f"{name} = {text}{'.requires_grad_()' * tracked}", (name,)))
            if tracked:
                self.starts.append(name)
        return made

    def _values(self, shape: Shape, dtype: str) -> Any:
        d = self._d
        if shape:
            return [self._values(shape[1:], dtype) for _ in range(shape[0])]
        if dtype == "int64":
            return d.randint(-3, 3)
        real = round(d.uniform(-1, 1), 3)
        return complex(real, round(d.uniform(-1, 1), 3)) if dtype == "complex128" else real

    def _first(self) -> None:
        """Something to write into: copies of the leaves."""
        for x in list(self._d.scope):
            if x.tracked or self._d.chance(0.5):
                made = self._d.choice([f"{x}.clone()", f"{x} + 0"] + [f"{x} * 1"] * (not self._d.frees))
                self._assign(Made(made, x.shape), x)

    def _add(self) -> None:
        d = self._d
        kinds: list[Callable[[], None]] = [self._view, self._write, self._function, self._several, self._turn]
        weights = [28, 28, 18, 4, 3]
        if not self._d.smooth:
            kinds += [self._switch, *TAPE_METHODS(self)]
            weights += [3 if self._recording else 20, *[weight for _, weight in TAPE]]
        d.used.clear()
        d.choices(kinds, weights)[0]()

    def _ends(self) -> list[str]:
        d = self._d
        ends = [v.name for v in d.scope if v.dtype != "int64" and (v.tracked or d.chance(0.1))]
        return d.sample(ends, min(len(ends), 5))

    def _finish(self) -> None:
        """Gradients of the ends, then of all of them together, twice."""
        if not self._recording:
            self._switch()
        for x in map(self._var, self.ends):
            name, grads = self.name(), tuple(self.name() for _ in self.starts)
            text = f"{name} = {size(x)}\n{self._gradients(grads, name, 'retain_graph=True')}\nends.append({name})"
            self.steps.append(Step(text, (name, *grads), (x.name,)))
        first, second = (tuple(self.name() for _ in self.starts) for _ in range(2))
        self.steps.append(Step(self._gradients(first, "sum(ends)", "create_graph=True"), first))
        of_first = " + ".join(f"({g} * {g}.conj()).real.sum()" for g in first)
        self.steps.append(Step(self._gradients(second, of_first, "retain_graph=True"), second, first))
        self.steps.append(Step("sum(ends).backward()"))

    def _gradients(self, names: tuple[str, ...], end: str, options: str) -> str:
        starts = ", ".join(self.starts)
        return (
            f"{', '.join(names)}, = (g.contiguous() for g in t.autograd.grad({end}, [{starts}], {options}, allow_unused=True, "
            "materialize_grads=True))"
        )

    # ---- steps

    def name(self) -> str:
        self._made += 1
        return f"x{self._made}"

    def declare(self, name: str, shape: Shape, dtype: str, tracked: bool) -> Var:
        made = Var(name, tuple(shape), dtype, tracked)
        self._d.scope.append(made)
        return made

    def say(self, code: str, makes: tuple[str, ...] = (), writes: str = "", mode: str = "") -> None:
        """Append a step that needs what was used to make it."""
        needs = tuple(dict.fromkeys(v.name for v in self._d.used))
        if mode:
            code = f"with t.{mode}():\n    " + code.replace("\n", "\n    ")
        self.steps.append(Step(code, makes, needs, writes))

    def _mode(self, x: Var, is_view: bool = False) -> str:
        """Sometimes another mode for one step; seldom where it makes a view that nobody may use."""
        d = self._d
        if self._d.smooth or not d.chance(0.03 if is_view and x.tracked else 0.1):
            return ""
        return d.choice(["no_grad", "no_grad", "enable_grad"] + ["inference_mode"] * (not is_view and x.memory.leaf))

    def _records(self, mode: str) -> bool:
        return self._recording if not mode else mode == "enable_grad"

    def _assign(self, made: Made, x: Var, mode: str = "") -> Var:
        """A step that makes a variable which shares nothing."""
        name = self.name()
        self._d.used.append(x)
        used = self._d.used
        dtype = made.dtype or max((v.dtype for v in used), key=ORDER.index)
        result = Var(name, made.shape, dtype, self._records(mode) and any(v.tracked for v in used))
        if ".contiguous()" in made.text or ".to(" in made.text:  # perhaps the same tensor
            result = replace(x, name=name, shape=made.shape, dtype=dtype)
            x.memory.twice = True
        self.say(f"{name} = {made.text}", (name,), mode=mode)
        self._d.scope.append(result)
        return result

    def _any(self) -> Var:
        """A variable, often one of the newest, and seldom one whose memory may not be written."""
        d = self._d
        scope = [v for v in d.scope if not v.memory.leaf] if d.chance(0.8) else d.scope
        x = d.choice(scope[-6:] if d.chance(0.5) else scope)
        d.used.append(x)
        return x

    def _view(self) -> None:
        d = self._d
        x = self._any()
        kind = d.choice(sorted(views.VIEWS))
        if (kind == "detach" and self._d.smooth) or (kind == "view_as" and self._d.smooth):
            return
        made = views.VIEWS[kind](d, x)
        if made is None:
            return
        mode = self._mode(x, True)
        name = self.name()
        self.say(f"{name} = {made.text}", (name,), mode=mode)
        tracked = x.tracked and kind != "detach"
        hidden = x.unrecorded or not self._records(mode)
        d.scope.append(Var(name, made.shape, x.dtype, tracked, kind != "detach", x.several, hidden, memory=x.memory))

    def _several(self) -> None:
        d = self._d
        x = self._any()
        found = views.SEVERAL[d.choice(sorted(views.SEVERAL))](d, x)
        if found is None:
            return
        text, shapes = found
        if d.chance(0.4):
            i = d.randrange(len(shapes))
            text, shapes = f"{text}[{i}]", [shapes[i]]
            names: tuple[str, ...] = (self.name(),)
            self.say(f"{names[0]} = {text}", names)
        else:
            names = tuple(self.name() for _ in shapes)
            self.say(f"{', '.join(names)}, = {text}", names)
        for name, shape in zip(names, shapes, strict=True):
            d.scope.append(Var(name, shape, x.dtype, x.tracked, True, True, x.unrecorded, memory=x.memory))

    def _target(self, mode: str) -> Var | None:
        """What may be written, nearly always."""
        d = self._d
        allowed = [v for v in d.scope if v.numel]
        if not d.chance(0.08):
            unrecorded = not self._records(mode)
            allowed = [
                v
                for v in allowed
                if (unrecorded or not (v.memory.leaf or v.several or v.unrecorded)) and not (self._kept(v))
            ]
        if not allowed:
            return None
        x = d.choice(allowed)
        d.used.append(x)
        return x

    def _kept(self, v: Var) -> bool:
        return v.memory.saved and self._d.chance(self._care)

    def _write(self) -> None:
        d = self._d
        mode = "" if self._d.smooth or not d.chance(0.1) else d.choice(["no_grad", "inference_mode", "enable_grad"])
        x = self._target(mode)
        if x is None:
            return
        kind = d.choice(sorted(writes.LINEAR) * 2 + sorted(writes.SAVING))
        if x.dtype != "float64" and kind in writes.REAL:
            return
        if x.memory.hooked and kind == "masked_scatter_":  # a function and a copy here, through which hooks see a gradient
            return
        saves = kind in writes.SAVING
        text = (writes.SAVING if saves else writes.LINEAR)[kind](d, x)
        if text is None:
            return
        self.say(text, writes=x.name, mode=mode)
        if not self._records(mode):
            return
        if any(v.tracked for v in d.used) and x.dtype != "int64":
            for v in d.scope:
                v.tracked = v.tracked or v.memory is x.memory
        for v in d.used:
            v.memory.saved |= saves

    def _function(self) -> None:
        d = self._d
        x = self._any()
        kind = d.choice(sorted(functions.LINEAR) * 2 + sorted(functions.SAVING))
        if (x.dtype in ("int64", "complex128") and kind in functions.REAL) or (kind == "convert" and self._d.smooth):
            return
        saves = kind in functions.SAVING
        made = (functions.SAVING if saves else functions.LINEAR)[kind](d, x)
        if made is None:
            return
        mode = self._mode(x)
        result = self._assign(made, x, "" if mode == "inference_mode" else mode)
        for v in [*d.used, result] if result.tracked else ():
            v.memory.saved |= saves

    def _turn(self) -> None:
        d = self._d
        x = self._target("")
        # What is tracked keeps its shape where nothing is recorded: gradients of what was computed before would have the old one.
        if x is None or x.memory.twice:
            return
        if (self._recording or not x.tracked) and (not x.several or d.chance(0.2)):
            text, shape = d.choice(writes.turns(d, x))
            self.say(text, writes=x.name)
            x.shape = shape

    def _switch(self) -> None:
        self._recording = not self._recording
        self._d.used.clear()
        self.say(f"t.set_grad_enabled({self._recording})")

    # ---- what is done to the tape

    def _hook(self) -> None:
        x = self._any()
        if self._hooks and self._d.chance(0.3):
            name = self._d.choice(self._hooks)
            self.steps.append(Step(f"{name}.remove()", (), (name,)))
            return
        if x.several or x.unrecorded:  # PyTorch takes hooks and retain_grad even where asking for the history is refused
            return
        if x.is_view and x.memory.saved:  # second-order gradients through what a write kept pass by hooks on its view here
            return
        name = f"h{len(self._hooks)}"
        change = self._d.choice(["g * 0.5", "g + 1", "g.sin()", "None", "-g"])
        # PyTorch calls the hook of one of several views with None when the gradient is of another.
        self.say(f"{name} = {x}.register_hook(lambda g: None if g is None else {change})", (name,))
        self._hooks.append(name)
        x.hooked = x.memory.hooked = True

    def _retain(self) -> None:
        x = self._any()
        if not x.several and not x.unrecorded:
            self.say(f"{x}.retain_grad()")

    def _backward(self) -> None:
        d = self._d
        x = self._any()
        options = [d.choice(["retain_graph=True", "retain_graph=True", "create_graph=True", "" if d.frees else "retain_graph=True"])]
        if d.chance(0.3):
            others = [self._start()] + [self._any().name] * d.chance(0.2)
            options.append(f"inputs=[{', '.join(others)}]")
        if d.chance(0.3) and x.dtype == "float64":
            self.say(f"{x}.backward({', '.join([f't.ones_like({x})', *filter(None, options)])})")
        else:
            self.say(f"{size(x)}.backward({', '.join(filter(None, options))})")

    def _grad(self) -> None:
        d = self._d
        x, y = self._any(), self._any()
        create, start = d.chance(0.5), self._start()
        if y.hooked:  # PyTorch gives its gradient without the hooks when others are asked for too
            return
        names = (self.name(), self.name())
        options = f"create_graph={create}, retain_graph=True"
        options += d.choice(["", ", allow_unused=True, materialize_grads=True", ", allow_unused=True, materialize_grads=True"])
        self.say(f"{', '.join(names)} = (g.contiguous().clone() for g in t.autograd.grad({size(x)}, [{start}, {y}], {options}))", names)
        for name, v in zip(names, (self._var(start), y), strict=True):
            d.scope.append(Var(name, v.shape, v.dtype, create))

    def _start(self) -> str:
        name = self._d.choice(self.starts)
        self._d.used.append(self._var(name))
        return name

    def _var(self, name: str) -> Var:
        return next(v for v in self._d.scope if v.name == name)

    def _detach_(self) -> None:
        x = self._any()
        # What is kept for gradients must not be detached.
        if not x.memory.saved and not (x.memory.leaf and self._d.chance(0.8)):
            self.say(f"{x}.detach_()")

    def _require(self) -> None:
        d = self._d
        x = self._any()
        if x.tracked and d.chance(0.7):
            return
        kind = d.choice([".requires_grad_()", ".requires_grad_(False)", ".requires_grad = True"])
        self.say(f"{x}{kind}")
        if x.dtype != "int64" and "False" not in kind and not x.tracked:
            x.tracked = x.memory.leaf = True
            self.starts.append(x.name)

    def _clear(self) -> None:
        x = self._start()
        self.say(self._d.choice([f"{x}.grad = None", f"if {x}.grad is not None: {x}.grad.zero_()"]))

    def _take_grad(self) -> None:
        start = self._start()
        name = self.name()
        self.say(f"{name} = {start}.grad.{self._d.choice(['clone()', 'detach()', 'add(2)'])}", (name,))
        self._d.scope.append(Var(name, self._var(start).shape, self._var(start).dtype))

    def _out(self) -> None:
        d = self._d
        mode = d.choice(["no_grad", "no_grad", ""])
        x = self._target(mode)
        if x is None or x.dtype == "int64":
            return
        y = d.operand(x.shape, x.dtype, exact=True)
        call = d.choice([f"t.mul({y}, 1.25, out={x})", f"t.sin({y}, out={x})", f"t.add({y}, {x}, out={x})"])
        self.say(call, writes=x.name, mode=mode)


TAPE = [
    ("_hook", 3), ("_retain", 1), ("_backward", 3), ("_grad", 3), ("_detach_", 1), ("_require", 1), ("_clear", 1),
    ("_take_grad", 1), ("_out", 2),
]  # fmt: skip
ORDER = ["int64", "float32", "float64", "complex128"]


def TAPE_METHODS(program: Program) -> list[Callable[[], None]]:
    return [getattr(program, name) for name, _ in TAPE]


def places(x: Any) -> list[int]:
    """Where the elements of a tensor lie, in elements from its first one. Nothing is promised of writes into places that repeat."""
    found = [0]
    for length, stride in zip(x.shape, x.stride(), strict=True):
        found = [at + i * stride for at in found for i in range(length)]
    return found


def size(x: Var) -> str:
    """A number made of a variable, to differentiate."""
    return f"({x} * {x}.conj()).real.sum()" if x.dtype == "complex128" else f"({x} * {x}).sum()"
