"""What random programs do to the tape: hooks, gradients on the way, and which tensors require one."""

from __future__ import annotations

from collections.abc import Callable

from autograd_programs.draw import Var
from autograd_programs.steps import Steps, size


def _asks_in_vain(x: Var) -> bool:
    """Whether PyTorch may take hooks and `retain_grad` where it refuses the history itself; here they are refused as well."""
    return x.several or x.unrecorded


def _hook(s: Steps) -> None:
    d, x = s.draw, s.any()
    if s.hooks and d.chance(0.3):
        d.used.clear()
        name = d.choice(s.hooks)
        s.say(f"if '{name}' in globals(): {name}.remove()")
        return
    # differs from torch: second-order gradients through what a write into a view kept pass by the view's hooks.
    if _asks_in_vain(x) or (x.is_view and x.memory.saved):
        return
    name = f"h{len(s.hooks)}"
    change = d.choice(["g * 0.5", "g + 1", "g.sin()", "None", "-g"])
    # PyTorch calls the hook of one of several views with None when the gradient is of another.
    s.say(f"{name} = {x}.register_hook(lambda g: None if g is None else {change})", (name,))
    s.hooks.append(name)
    x.hooked = x.memory.hooked = True


def _retain(s: Steps) -> None:
    x = s.any()
    if not _asks_in_vain(x):
        s.say(f"{x}.retain_grad()")


def _backward(s: Steps) -> None:
    d, x = s.draw, s.any()
    keep = "retain_graph=True"
    options = [d.choice([keep, keep, "create_graph=True", "" if d.frees else keep])]
    if d.chance(0.3):
        others = [s.start()] + [s.any().name] * d.chance(0.2)
        options.append(f"inputs=[{', '.join(others)}]")
    given = ", ".join(filter(None, options))
    if d.chance(0.3) and x.dtype == "float64":
        s.say(f"{x}.backward(t.ones_like({x}){', ' * bool(given)}{given})")
    else:
        s.say(f"{size(x)}.backward({given})")


def _grad(s: Steps) -> None:
    d, x, y = s.draw, s.any(), s.any()
    if y.hooked:  # PyTorch gives its gradient without the hooks when others are asked for too
        return
    create, start = d.chance(0.5), s.start()
    options = f"create_graph={create}, retain_graph=True" + ", allow_unused=True, materialize_grads=True" * d.chance(0.7)
    names = (s.name(), s.name())
    # Clones: gradients may share memory with each other, and nobody says which.
    made = f"(g.contiguous().clone() for g in t.autograd.grad({size(x)}, [{start}, {y}], {options}))"
    s.say(f"{', '.join(names)} = {made}", names)
    for name, v in zip(names, (s.var(start), y), strict=True):
        s.declare(name, v.shape, v.dtype, create)


def _detach(s: Steps) -> None:
    x = s.any()
    # PyTorch refuses gradients that need what was detached in place since. Hooks on it go on to what it is then, and where its
    # views have a history that leads nowhere, those of parts have none.
    memory = x.memory
    if memory.saved or memory.hooked or memory.parts or (memory.leaf and s.draw.chance(0.8)):
        return
    s.say(f"{x}.detach_()")
    memory.cut = True


def _require(s: Steps) -> None:
    d, x = s.draw, s.any()
    if x.tracked and d.chance(0.7):
        return
    kind = d.choice([".requires_grad_()", ".requires_grad_(False)", ".requires_grad = True"])
    s.say(f"{x}{kind}")
    if x.dtype != "int64" and "False" not in kind and not x.tracked:
        x.tracked = x.memory.leaf = True
        s.starts.append(x.name)


def _clear(s: Steps) -> None:
    x = s.start()
    s.say(s.draw.choice([f"{x}.grad = None", f"if {x}.grad is not None: {x}.grad.zero_()"]))


def _take(s: Steps) -> None:
    start, name = s.start(), s.name()
    s.say(f"{name} = {start}.grad.{s.draw.choice(['clone()', 'add(2)'])}", (name,))
    s.declare(name, s.var(start).shape, s.var(start).dtype)


def _out(s: Steps) -> None:
    d = s.draw
    mode = d.choice(["no_grad", "no_grad", ""])
    x = s.target(mode)
    if x is None or x.dtype == "int64":
        return
    y = d.operand(x.shape, x.dtype, exact=True)
    call = d.choice([f"t.mul({y}, 1.25, out={x})", f"t.sin({y}, out={x})", f"t.add({y}, {x}, out={x})"])
    s.say(call, writes=x.name, mode=mode)


# How often, and what.
TAPE: list[tuple[int, Callable[[Steps], None]]] = [
    (3, _hook), (1, _retain), (3, _backward), (3, _grad), (1, _detach), (1, _require), (1, _clear), (1, _take), (2, _out),
]  # fmt: skip
