"""Small programs on the rules of gradients, run by PyTorch and here: both answer the same, or both refuse.

A program is a function of the library, `t`, and of fresh tensors: `x` is a float64 leaf [3], `w` another, `p` a plain tensor,
`m` a leaf [2, 2], `i` whole numbers. What it returns is compared as nested lists; `REFUSED` stands for an exception.
"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

REFUSED = "refused"


class Given:
    """A library and its fresh tensors."""

    def __init__(self, library):
        self.t = library
        self.x = self.leaf([1.0, 2.0, 3.0])
        self.w = self.leaf([0.5, -1.0, 2.0])
        self.m = self.leaf([[1.0, 2.0], [3.0, 4.0]])
        self.p = library.tensor([4.0, 5.0, 6.0], dtype=library.float64)
        self.i = library.tensor([1, 2, 3])

    def leaf(self, data):
        return self.t.tensor(data, dtype=self.t.float64, requires_grad=True)

    def ones(self, *shape, **kwargs):
        return self.t.ones(*shape, **{"dtype": self.t.float64, **kwargs})

    def grad(self, *args, **kwargs):
        return self.t.autograd.grad(*args, **kwargs)

    def backward(self, *args, **kwargs):
        return self.t.autograd.backward(*args, **kwargs)

    def function(self, forward, backward, setup=None, **members):
        made = {"forward": staticmethod(forward), "backward": staticmethod(backward), **members}
        if setup is not None:
            made["setup_context"] = staticmethod(setup)
        return type("Made", (self.t.autograd.Function,), made)


def outcome(program, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program(Given(library)))
        except Exception as error:  # noqa: BLE001 - what kind is not the question here
            return REFUSED, type(error).__name__, str(error).splitlines()[0]
        finally:
            library.set_grad_enabled(True)


def plain(value):
    if isinstance(value, (torch.Tensor, turnout.Tensor)):
        return plain(value.detach().tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return round(value, 9) if isinstance(value, float) else value


def twice(y):
    y.backward()
    y.backward()


def also(value, *_):
    return value


def within(mode, program):
    with mode:
        return program()


def infer(given, program):
    return within(given.t.inference_mode(), program)


def refuses(call):
    try:
        call()
    except Exception:  # noqa: BLE001 - any refusal
        return True
    return False


def swallow(mode):
    try:
        with mode:
            raise KeyError
    except KeyError:
        pass


def generator(library):
    yield library.is_grad_enabled()
    yield library.is_grad_enabled()


def echo(library):
    got = "start"
    while got != "stop":
        got = yield [got, library.is_grad_enabled()]
    return "done"


def catching(library):
    try:
        yield 1
    except KeyError:
        yield ["caught", library.is_grad_enabled()]


def sends(made):
    return [next(made), made.send("a"), made.send("b")]


def throws(made):
    next(made)
    return made.throw(KeyError())


def ends(made, library):
    next(made)
    try:
        made.send("stop")
    except StopIteration as error:
        return [error.value, library.is_grad_enabled()]


# fmt: off
BACKWARD = {
    "twice": lambda g: twice((g.x * g.x).sum()),
    "twice, nothing saved": lambda g: also(g.x, twice(g.x.sum())).grad,
    "twice, retained": lambda g: also(g.x, (y := (g.x * g.x).sum()).backward(retain_graph=True), y.backward()).grad,
    "twice through a part": lambda g: (h := g.x * g.x, h.sum().backward(), (h * 2).sum().backward()),
    "grad then backward": lambda g: (y := (g.x.exp()).sum(), g.grad(y, g.x), y.backward()),
    "not a scalar": lambda g: (g.x * 2).backward(),
    "one element of one dim": lambda g: also(g.x, g.x[:1].backward()).grad,
    "complex": lambda g: (g.x * 1j).sum().backward(),
    "whole numbers": lambda g: g.i.sum().backward(),
    "not tracked": lambda g: g.p.sum().backward(),
    "detached": lambda g: g.x.sum().detach().backward(),
    "no_grad result": lambda g: (lambda: g.t.no_grad()(lambda: g.x.sum())())().backward(),
    "one of two not tracked": lambda g: g.backward((g.x.sum(), g.p.sum())),
    "nothing": lambda g: g.backward(()),
    "seed of a wrong shape": lambda g: (g.x * 2).backward(g.ones(2)),
    "seed that would broadcast": lambda g: (g.x * 2).backward(g.ones(1)),
    "seed of a wrong rank": lambda g: (g.x * 2).backward(g.ones(1, 3)),
    "seed of another float": lambda g: also(g.x, (g.x * 2).backward(g.t.ones(3))).grad,
    "seed of whole numbers": lambda g: also(g.x, (g.x * 2).backward(g.i)).grad,
    "seed of bool": lambda g: also(g.x, (g.x * 2).backward(g.i > 1)).grad,
    "seed complex": lambda g: (g.x * 2).backward(g.ones(3) * 1j),
    "seed of complex real": lambda g: also(g.x, (g.x * 1j).backward(g.ones(3))).grad,
    "seed on another device": lambda g: (g.x * 2).backward(g.ones(3, device="meta")),
    "seed is a number": lambda g: (g.x * 2).sum().backward(1.0),
    "seed is a list": lambda g: (g.x * 2).backward([1.0, 1.0, 1.0]),
    "seed None in a list": lambda g: g.backward([g.x.sum(), (g.w * 2).sum()], [None, None]),
    "seed None for several elements": lambda g: g.backward([g.x * 2], [None]),
    "too few seeds": lambda g: g.backward([g.x.sum(), g.w.sum()], [g.ones(())]),
    "too many seeds": lambda g: g.backward([g.x.sum()], [g.ones(()), g.ones(())]),
    "an output that is no tensor": lambda g: g.backward([3.0]),
    "inputs empty": lambda g: g.backward([g.x.sum()], inputs=[]),
    "inputs not tracked": lambda g: g.backward([g.x.sum()], inputs=[g.p]),
    "inputs unused": lambda g: also([g.x.grad, g.w.grad], g.backward([g.x.sum()], inputs=[g.x, g.w])),
    "inputs not a leaf": lambda g: (h := g.x * 2, g.backward([h.sum()], inputs=[h]))[0].grad,
    "inputs one tensor": lambda g: also([g.x.grad], (g.x * g.w).sum().backward(inputs=g.x)),
    "inputs twice the same": lambda g: also(g.x, g.backward([(g.x * 2).sum()], inputs=[g.x, g.x])).grad,
    "inputs twice the same, grad": lambda g: g.grad((g.x * 2).sum(), [g.x, g.x]),
    "the same output twice": lambda g: (y := (g.x * g.x).sum(), g.backward([y, y]), g.x.grad)[2],
    "an output and what it came from": lambda g: (h := g.x * g.x, g.backward([h.sum(), h], [None, g.ones(3)]), g.x.grad)[2],
    "an input that is an output": lambda g: g.grad(g.x, g.x, g.ones(3)),
    "an input that is an output not a leaf": lambda g: (h := g.x * 2, g.grad(h, h, g.ones(3)))[1],
    "both an output and its input": lambda g: (h := g.x * 2, g.grad([h, h * 3], [h], [g.ones(3), g.ones(3)]))[1],
    "grad unused": lambda g: g.grad(g.x.sum(), g.w),
    "grad unused allowed": lambda g: g.grad(g.x.sum(), [g.w, g.x], allow_unused=True),
    "grad unused zeros": lambda g: g.grad(g.x.sum(), [g.w], materialize_grads=True),
    "grad unused allow False zeros": lambda g: g.grad(g.x.sum(), [g.w], allow_unused=False, materialize_grads=True),
    "grad unused allow True zeros": lambda g: g.grad(g.x.sum(), [g.w], allow_unused=True, materialize_grads=True),
    "grad untracked input": lambda g: g.grad(g.x.sum(), g.p, allow_unused=True),
    "grad no inputs": lambda g: g.grad(g.x.sum(), []),
    "grad no outputs": lambda g: g.grad([], [g.x]),
    "grad an input that is no tensor": lambda g: g.grad(g.x.sum(), [3.0]),
    "grad of a view of the input": lambda g: g.grad(g.x.sum(), g.x[:2]),
    "grad with a dict": lambda g: list(g.grad(g.x.sum(), {"x": g.x}).items()),
    "grad of several sums": lambda g: g.grad([g.x.sum(), (g.x * g.w).sum()], [g.x, g.w]),
    "grad batched": lambda g: g.grad(g.x * g.x, g.x, g.t.eye(3, dtype=g.t.float64), is_grads_batched=True),
    "grad batched wrong": lambda g: g.grad(g.x * g.x, g.x, g.t.eye(2, dtype=g.t.float64), is_grads_batched=True),
    "grad then grad of a constant": lambda g: g.grad(g.grad((g.x * g.x).sum(), g.x)[0].sum(), g.x),
    "grad of a linear one's gradient": lambda g: g.grad(g.grad((g.x * 2).sum(), g.x, create_graph=True)[0].sum(), g.x),
    "create_graph retains": lambda g: (y := (g.x * g.x).sum(), y.backward(create_graph=True), y.backward(), g.x.grad)[3],
    "create_graph, retain False": lambda g: (y := (g.x**3).sum(), g.grad(y, g.x, create_graph=True, retain_graph=False), y.backward()),
    "create_graph under no_grad": lambda g: g.t.no_grad()(lambda y: g.grad(y, g.x, create_graph=True)[0].requires_grad)((g.x**3).sum()),
    "backward under no_grad": lambda g: g.t.no_grad()(lambda y: also(y.backward(), g.x.grad))((g.x**3).sum()),
    "grad is float": lambda g: also([g.x.grad.dtype is g.t.float64, g.x.grad.requires_grad], (g.x * g.x).sum().backward()),
    "set grad of a wrong shape": lambda g: setattr(g.x, "grad", g.ones(2)),
    "set grad of a wrong dtype": lambda g: setattr(g.x, "grad", g.t.ones(3)),
    "set grad of a wrong device": lambda g: setattr(g.x, "grad", g.ones(3, device="meta")),
    "set grad itself": lambda g: setattr(g.x, "grad", g.x),
    "set grad a number": lambda g: setattr(g.x, "grad", 3.0),
    "set grad a list": lambda g: setattr(g.x, "grad", [1.0]),
    "set grad None": lambda g: also(g.x.grad, setattr(g.x, "grad", None)),
    "set grad then add": lambda g: also(g.x, setattr(g.x, "grad", g.ones(3)), (g.x * 2).sum().backward()).grad,
    "set grad untracked": lambda g: also(g.p, setattr(g.p, "grad", g.ones(3))).grad,
    "set grad whole": lambda g: setattr(g.i, "grad", g.ones(3)),
    "delete grad": lambda g: (g.x.sum().backward(), delattr(g.x, "grad"), g.x.grad),
    "grad of a non-leaf": lambda g: (h := g.x * 2, h.sum().backward(), h.grad)[2],
}

SAVED = {
    "input changed": lambda g: (h := g.x * 1, y := (h * h).sum(), h.mul_(2), y.backward()),
    "input changed unneeded": lambda g: (h := g.x * 1, y := (h * 3).sum(), h.mul_(2), y.backward(), g.x.grad)[4],
    "output changed": lambda g: (h := g.x.exp(), h.add_(1), h.sum().backward()),
    "output changed unneeded": lambda g: (h := g.x.sin(), h.add_(1), h.sum().backward(), g.x.grad)[3],
    "changed under no_grad": lambda g: (h := g.x.exp(), g.t.no_grad()(lambda: h.add_(1))(), h.sum().backward()),
    "leaf changed": lambda g: (y := (g.x * g.x).sum(), g.t.no_grad()(lambda: g.x.add_(1))(), y.backward()),
    "changed through detach": lambda g: (h := g.x.exp(), h.detach().add_(1), h.sum().backward()),
    "changed through a view": lambda g: (h := g.x.exp(), h[:1].add_(1), h.sum().backward()),
    "changed through data": lambda g: (h := g.x.exp(), setattr(h, "data", g.ones(3)), h.sum().backward(), 1)[3],
    "plain operand changed": lambda g: (y := (g.x * g.p).sum(), g.p.add_(1), y.backward()),
    "an index changed": lambda g: (k := g.i - 1, y := g.x[k].sum(), k.zero_(), y.backward()),
    "changed after backward": lambda g: (h := g.x * 1, y := (h * h).sum(), y.backward(), h.mul_(2), g.x.grad)[4],
    "changed between two": lambda g: (h := g.x * 1, y := (h * h).sum(), y.backward(retain_graph=True), h.mul_(2), y.backward()),
}

LEAVES = {
    "write a leaf": lambda g: g.x.add_(1),
    "write a leaf under no_grad": lambda g: g.t.no_grad()(lambda: g.x.add_(1))(),
    "write a view of a leaf": lambda g: g.x[:1].add_(1),
    "write a view of a leaf under no_grad": lambda g: g.t.no_grad()(lambda: g.x[:1].add_(1))(),
    "write a view made under no_grad": lambda g: g.t.no_grad()(lambda: g.x[:1])().add_(1),
    "write a detached leaf": lambda g: also(g.x, g.x.detach().add_(1)),
    "write tracked into plain": lambda g: also(g.p.requires_grad, g.p.mul_(g.x)),
    "write tracked into plain, result": lambda g: g.p.mul_(g.x).requires_grad,
    "write tracked into whole": lambda g: g.i.mul_(g.x),
    "requires_grad_ whole": lambda g: g.i.requires_grad_(),
    "requires_grad_ bool": lambda g: (g.i > 1).requires_grad_(),
    "requires_grad_ False whole": lambda g: g.i.requires_grad_(False),
    "requires_grad_ complex": lambda g: (g.p * 1j).requires_grad_().requires_grad,
    "requires_grad_ non-leaf": lambda g: (g.x * 2).requires_grad_().requires_grad,
    "requires_grad_ False non-leaf": lambda g: (g.x * 2).requires_grad_(False),
    "requires_grad_ False leaf": lambda g: g.x.requires_grad_(False).requires_grad,
    "requires_grad set": lambda g: also(g.p, setattr(g.p, "requires_grad", True)).requires_grad,
    "requires_grad set False non-leaf": lambda g: setattr(g.x * 2, "requires_grad", False),
    "requires_grad set whole": lambda g: setattr(g.i, "requires_grad", True),
    "requires_grad_ a view": lambda g: (v := g.p[:2].requires_grad_(), v.requires_grad, g.p.requires_grad)[1:],
    "requires_grad_ a view, backward": lambda g: (v := g.p[:2].requires_grad_(), (v * 2).sum().backward(), v.grad)[2],
    "requires_grad_ the base of a view": lambda g: (v := g.p[:2], g.p.requires_grad_(), v.requires_grad)[2],
    "requires_grad in a factory, whole": lambda g: g.t.ones(3, dtype=g.t.int64, requires_grad=True),
    "requires_grad in tensor, whole": lambda g: g.t.tensor([1, 2], requires_grad=True),
    "detach_ leaf": lambda g: g.x.detach_().requires_grad,
    "detach_ non-leaf": lambda g: (h := (g.x * 2).detach_(), h.requires_grad, h.is_leaf)[1:],
    "detach_ a view": lambda g: (g.x * 1)[:2].detach_(),
    "detach_ an untracked view": lambda g: g.p[:2].detach_().requires_grad,
    "detach is a leaf": lambda g: ((g.x * 2).detach().is_leaf, (g.x * 2).is_leaf, g.i.is_leaf, g.x.is_leaf),
    "detach shares versions": lambda g: (h := g.x * 1, h.detach().add_(1), h._version)[2],
    "retain_grad leaf": lambda g: (g.x.retain_grad(), g.x.retains_grad)[1],
    "retain_grad non-leaf": lambda g: (h := g.x * 2, h.retains_grad, h.retain_grad(), h.retains_grad)[1::2],
    "retain_grad untracked": lambda g: g.p.retain_grad(),
    "retain_grad twice": lambda g: (h := g.x * 2, h.retain_grad(), h.retain_grad(), h.sum().backward(), h.grad)[4],
    "retain_grad of a view": lambda g: (h := g.x[:2], h.retain_grad(), h.sum().backward(), h.grad)[3],
    "retain_grad accumulates": lambda g: (h := g.x * 2, h.retain_grad(), h.sum().backward(), h.sum().backward(), h.grad)[4],
    "output_nr": lambda g: ((g.x * 2).output_nr, g.x.unbind(0)[2].output_nr, g.x.output_nr),
    "one of several views": lambda g: (g.x * 1).unbind(0)[0].add_(1),
    "one of several plain views": lambda g: g.p.unbind(0)[0].add_(g.x[0]),
    "resize_ tracked": lambda g: (g.x * 1).resize_(5),
    "out tracked": lambda g: g.t.add(g.x, g.x, out=g.ones(3)),
    "out itself tracked": lambda g: g.t.add(g.p, g.p, out=g.x),
    "item": lambda g: g.x.sum().item(),
    "numpy": lambda g: g.x.numpy(),
    "numpy detached": lambda g: list(g.x.detach().numpy()),
    "float": lambda g: float(g.x.sum()),
    "deepcopy non-leaf": lambda g: __import__("copy").deepcopy(g.x * 2),
    "deepcopy leaf": lambda g: __import__("copy").deepcopy(g.x).requires_grad,
}

MODES = {
    "is_grad_enabled": lambda g: [g.t.is_grad_enabled(), g.t.no_grad()(g.t.is_grad_enabled)(), g.t.enable_grad()(g.t.is_grad_enabled)()],
    "nested": lambda g: g.t.no_grad()(lambda: [g.t.is_grad_enabled(), g.t.enable_grad()(g.t.is_grad_enabled)(), g.t.is_grad_enabled()])(),
    "result under no_grad": lambda g: within(g.t.no_grad(), lambda: [(g.x * 2).requires_grad, g.x.requires_grad, (g.x * 2).is_leaf]),
    "leaf made under no_grad": lambda g: within(g.t.no_grad(), lambda: g.ones(3, requires_grad=True)).requires_grad,
    "requires_grad_ under no_grad": lambda g: within(g.t.no_grad(), lambda: g.p.requires_grad_().requires_grad),
    "view under no_grad": lambda g: within(g.t.no_grad(), lambda: (g.x * 1)[:2].requires_grad),
    "set_grad_enabled call": lambda g: (g.t.set_grad_enabled(False), g.t.is_grad_enabled(), g.t.set_grad_enabled(True), g.t.is_grad_enabled())[1::2],
    "set_grad_enabled with": lambda g: [within(g.t.set_grad_enabled(False), g.t.is_grad_enabled), g.t.is_grad_enabled()],
    "set_grad_enabled decorator": lambda g: [g.t.set_grad_enabled(False)(g.t.is_grad_enabled)(), g.t.is_grad_enabled()],
    "set_grad_enabled late with": lambda g: (c := g.t.set_grad_enabled(False), g.t.set_grad_enabled(True), within(c, g.t.is_grad_enabled), g.t.is_grad_enabled())[2:],
    "set_grad_enabled twice": lambda g: (c := g.t.set_grad_enabled(False), within(c, g.t.is_grad_enabled), within(c, g.t.is_grad_enabled), g.t.is_grad_enabled())[1:],
    "no_grad reused": lambda g: (c := g.t.no_grad(), within(c, g.t.is_grad_enabled), within(c, g.t.is_grad_enabled), g.t.is_grad_enabled())[1:],
    "decorator without brackets": lambda g: [g.t.no_grad(g.t.is_grad_enabled)(), g.t.is_grad_enabled()],
    "enable decorator without brackets": lambda g: within(g.t.no_grad(), lambda: g.t.enable_grad(g.t.is_grad_enabled)()),
    "inference decorator without brackets": lambda g: [g.t.inference_mode(g.t.is_grad_enabled)(), g.t.is_grad_enabled()],
    "decorated generator": lambda g: (made := g.t.no_grad()(generator)(g.t), [next(made), g.t.is_grad_enabled(), next(made), g.t.is_grad_enabled()])[1],
    "decorated generator by enable": lambda g: within(g.t.no_grad(), lambda: list(g.t.enable_grad()(generator)(g.t))),
    "decorated generator sends": lambda g: sends(g.t.no_grad()(echo)(g.t)),
    "decorated generator throws": lambda g: throws(g.t.no_grad()(catching)(g.t)),
    "decorated generator ends": lambda g: ends(g.t.no_grad()(echo)(g.t), g.t),
    "mode left by an exception": lambda g: (swallow(g.t.no_grad()), g.t.is_grad_enabled())[1],
    "inference mode left by an exception": lambda g: (swallow(g.t.inference_mode()), g.t.is_grad_enabled(), g.t.is_inference_mode_enabled())[1:],
    "set_grad_enabled left by an exception": lambda g: (swallow(g.t.set_grad_enabled(False)), g.t.is_grad_enabled())[1],
    # ---- inference mode
    "inference: enabled": lambda g: within(g.t.inference_mode(), lambda: [g.t.is_grad_enabled(), g.t.is_inference_mode_enabled()]),
    "inference: False": lambda g: within(g.t.inference_mode(False), lambda: [g.t.is_grad_enabled(), g.t.is_inference_mode_enabled()]),
    "inference: False inside": lambda g: within(g.t.inference_mode(), lambda: within(g.t.inference_mode(False), lambda: [g.t.is_grad_enabled(), g.t.is_inference_mode_enabled(), g.ones(2).is_inference()])),
    "inference: False under no_grad": lambda g: within(g.t.no_grad(), lambda: within(g.t.inference_mode(False), g.t.is_grad_enabled)),
    "inference: enable_grad inside": lambda g: within(g.t.inference_mode(), lambda: within(g.t.enable_grad(), lambda: [g.t.is_grad_enabled(), (g.x * 2).requires_grad, (g.x * 2).is_inference()])),
    "inference: made": lambda g: [(y := infer(g, lambda: g.x * 2)).is_inference(), y.requires_grad, y.is_leaf, g.x.is_inference()],
    "inference: factory": lambda g: infer(g, lambda: g.ones(3)).is_inference(),
    "inference: factory requires_grad": lambda g: infer(g, lambda: g.ones(3, requires_grad=True)).requires_grad,
    "inference: tensor()": lambda g: infer(g, lambda: g.t.tensor([1.0])).is_inference(),
    "inference: several": lambda g: [r.is_inference() for r in infer(g, lambda: g.x.max(0))],
    "inference: list": lambda g: [r.is_inference() for r in infer(g, lambda: (g.x * 1).unbind(0))],
    "inference: view of a normal": lambda g: [(v := infer(g, lambda: g.x[:2])).is_inference(), v.requires_grad],
    "inference: view of an inference": lambda g: infer(g, lambda: (g.x * 1)[:2]).is_inference(),
    "inference: view later": lambda g: infer(g, lambda: g.x * 1)[:2].is_inference(),
    "inference: detach of a normal": lambda g: infer(g, lambda: g.x.detach()).is_inference(),
    "inference: detach later": lambda g: infer(g, lambda: g.x * 2).detach().is_inference(),
    "inference: clone later": lambda g: infer(g, lambda: g.x * 2).clone().is_inference(),
    "inference: result later": lambda g: (infer(g, lambda: g.x * 2) + 1).is_inference(),
    "inference: in-place normal inside": lambda g: infer(g, lambda: g.p.add_(1)).is_inference(),
    "inference: in-place normal inside version": lambda g: (infer(g, lambda: g.p.add_(1)), g.p._version)[1],
    "inference: in-place leaf inside": lambda g: infer(g, lambda: g.x.add_(1)),
    "inference: in-place leaf inside saved": lambda g: (y := (g.x * g.x).sum(), infer(g, lambda: g.x.add_(1)), y.backward()),
    "inference: in-place inside": lambda g: infer(g, lambda: (g.x * 2).add_(1)),
    "inference: in-place later": lambda g: infer(g, lambda: g.x * 2).add_(1),
    "inference: in-place later under no_grad": lambda g: within(g.t.no_grad(), lambda: infer(g, lambda: g.x * 2).add_(1)),
    "inference: in-place later inside again": lambda g: (y := infer(g, lambda: g.x * 2), infer(g, lambda: y.add_(1)))[1],
    "inference: in-place view later": lambda g: infer(g, lambda: g.x * 2)[:2].add_(1),
    "inference: in-place tracked": lambda g: infer(g, lambda: g.p * 2).mul_(g.x),
    "inference: copy into normal": lambda g: (y := g.ones(3), y.copy_(infer(g, lambda: g.x * 2)))[1],
    "inference: copy tracked": lambda g: ((g.x * 1).copy_(infer(g, lambda: g.x * 2)).sum().backward(), g.x.grad)[1],
    "inference: saved": lambda g: g.x * infer(g, lambda: g.p * 2),
    "inference: saved other way": lambda g: infer(g, lambda: g.p * 2) * g.x,
    "inference: not saved": lambda g: ((g.x + infer(g, lambda: g.p * 2)).sum().backward(), g.x.grad)[1],
    "inference: not saved by matmul": lambda g: g.x @ infer(g, lambda: g.p * 2),
    "inference: saved after clone": lambda g: ((g.x * infer(g, lambda: g.p * 2).clone()).sum().backward(), g.x.grad)[1],
    "inference: saved under no_grad": lambda g: within(g.t.no_grad(), lambda: g.x * infer(g, lambda: g.p * 2)),
    "inference: untracked use": lambda g: g.p * infer(g, lambda: g.p * 2),
    "inference: requires_grad_ later": lambda g: infer(g, lambda: g.p * 2).requires_grad_(),
    "inference: requires_grad_ inside": lambda g: infer(g, lambda: (g.p * 2).requires_grad_()).requires_grad,
    "inference: requires_grad set later": lambda g: setattr(infer(g, lambda: g.p * 2), "requires_grad", True),
    "inference: _version": lambda g: infer(g, lambda: g.x * 2)._version,
    "inference: backward of one": lambda g: infer(g, lambda: (g.x * 2).sum()).backward(),
    "inference: seed": lambda g: ((g.x + 1).backward(infer(g, lambda: g.ones(3))), g.x.grad)[1],
    "inference: seed that is saved": lambda g: g.grad(g.x.exp(), g.x, infer(g, lambda: g.ones(3)), create_graph=True),
    "inference: backward inside": lambda g: (y := (g.x * 2).sum(), infer(g, lambda: y.backward()), g.x.grad.is_inference())[2],
    "inference: grad inside": lambda g: (y := (g.x * 2).sum(), infer(g, lambda: g.grad(y, g.x)))[1],
    "inference: index saved": lambda g: g.x[infer(g, lambda: g.i - 1)],
    "inference: out": lambda g: infer(g, lambda: g.t.add(g.p, g.p, out=g.ones(3))).is_inference(),
    "inference: out later": lambda g: g.t.add(g.p, g.p, out=infer(g, lambda: g.ones(3))),
    "inference: detach_ later": lambda g: infer(g, lambda: g.p * 2).detach_(),
    "inference: view of normal, then in-place": lambda g: infer(g, lambda: g.p[:2]).add_(1),
    "inference: view of a tracked normal, then in-place": lambda g: infer(g, lambda: (g.x * 1)[:2]).add_(1),
    "inference: view of normal, then tracked in-place": lambda g: infer(g, lambda: g.p[:2]).mul_(g.x[:2]),
    "inference: view made normal written inside": lambda g: (v := g.p[:2], infer(g, lambda: v.add_(1)), g.p)[2],
    "inference: deepcopy": lambda g: __import__("copy").deepcopy(infer(g, lambda: g.p * 2)).is_inference(),
    "inference: set item later": lambda g: infer(g, lambda: g.p * 2).__setitem__(0, 1.0),
    "inference: t_ later": lambda g: infer(g, lambda: g.m * 2).t_(),
    "inference: function saves": lambda g: g.function(lambda c, x, y: (c.save_for_backward(y), x * 1)[1], lambda c, d: (d, None)).apply(g.x, infer(g, lambda: g.p * 2)),
    "inference: function inside": lambda g: infer(g, lambda: g.function(lambda c, x: x * 2, lambda c, d: d * 2).apply(g.x)).requires_grad,
}

HOOKS = {
    "order on a tensor": lambda g: (o := [], h := g.x * 2, h.register_hook(lambda d: o.append(1)), h.register_hook(lambda d: o.append(2)), h.sum().backward(), o)[5],
    "replaced in turn": lambda g: (h := g.x * 2, h.register_hook(lambda d: d + 1), h.register_hook(lambda d: d * 10), h.sum().backward(), g.x.grad)[4],
    "removed": lambda g: (h := g.x * 2, k := h.register_hook(lambda d: d + 1), k.remove(), h.sum().backward(), g.x.grad)[4],
    "removes itself": lambda g: (o := [], h := g.x * 2, k := [], k.append(h.register_hook(lambda d: (o.append(1), k[0].remove())[0])), (y := h.sum()).backward(retain_graph=True), y.backward(), o)[6],
    "removes the next": lambda g: (o := [], h := g.x * 2, k := [], h.register_hook(lambda d: k[0].remove()), k.append(h.register_hook(lambda d: o.append(2))), h.sum().backward(), o)[6],
    "adds another": lambda g: (o := [], h := g.x * 2, h.register_hook(lambda d: also(None, h.register_hook(lambda d: o.append(2)))), h.sum().backward(), o)[4],
    "on a leaf": lambda g: (g.x.register_hook(lambda d: d * 3), g.x.sum().backward(), g.x.grad)[2],
    "on a leaf, grad": lambda g: (g.x.register_hook(lambda d: d * 3), g.grad(g.x.sum(), g.x))[1],
    "on a non-leaf, grad": lambda g: (h := g.x * 2, h.register_hook(lambda d: d * 3), g.grad(h.sum(), [h, g.x]))[2],
    "on a leaf, inputs": lambda g: (g.x.register_hook(lambda d: d * 3), g.x.sum().backward(inputs=[g.x]), g.x.grad)[2],
    "on an untracked": lambda g: g.p.register_hook(print),
    "of another shape": lambda g: (h := g.x * 2, h.register_hook(lambda d: g.ones(2)), h.sum().backward()),
    "of another shape on a leaf": lambda g: (g.x.register_hook(lambda d: g.ones(2)), g.x.sum().backward()),
    "of a broadcastable shape": lambda g: (h := g.x * 2, h.register_hook(lambda d: g.ones(1)), h.sum().backward()),
    "of another dtype": lambda g: (h := g.x * 2, h.register_hook(lambda d: g.t.ones(3)), h.sum().backward(), g.x.grad),
    "on another device": lambda g: (h := g.x * 2, h.register_hook(lambda d: g.ones(3, device="meta")), h.sum().backward()),
    "returns a number": lambda g: (h := g.x * 2, h.register_hook(lambda d: 3.0), h.sum().backward()),
    "raises": lambda g: (h := g.x * 2, h.register_hook(lambda d: 1 / 0), h.sum().backward()),
    "raises, grads": lambda g: (h := g.x * 2, h.register_hook(lambda d: 1 / 0), refuses((h.sum() + g.w.sum()).backward), g.x.grad)[3],
    "changes the gradient in place": lambda g: (h := g.x * 2, h.register_hook(lambda d: also(None, d.mul_(5))), (h * 1).sum().backward(), g.x.grad)[3],
    "several outputs": lambda g: (o := [], u := g.x.unbind(0), u[1].register_hook(lambda d: o.append(plain(d))), (u[0] + 2 * u[1]).backward(), o)[4],
    "unused output": lambda g: (o := [], u := g.x.unbind(0), u[1].register_hook(lambda d: o.append(plain(d))), u[0].backward(), o)[4],
    "retain and hook before": lambda g: (h := g.x * 2, h.register_hook(lambda d: d * 3), h.retain_grad(), h.sum().backward(), h.grad)[4],
    "retain and hook after": lambda g: (h := g.x * 2, h.retain_grad(), h.register_hook(lambda d: d * 3), h.sum().backward(), h.grad)[4],
    "retain twice and hooks": lambda g: (h := g.x * 2, h.retain_grad(), h.retain_grad(), h.register_hook(lambda d: d * 3), h.sum().backward(), h.grad)[5],
    "tensor hook then node prehook": lambda g: (o := [], h := g.x * 2, h.grad_fn.register_prehook(lambda d: o.append("pre")), h.register_hook(lambda d: o.append("tensor")), h.register_hook(lambda d: o.append("tensor")), h.sum().backward(), o)[6],
    "retain and prehook": lambda g: (h := g.x * 2, h.retain_grad(), h.grad_fn.register_prehook(lambda d: (d[0] * 3,)), h.sum().backward(), [h.grad, g.x.grad])[4],
    "prehook replaces": lambda g: (h := g.x * 2, h.grad_fn.register_prehook(lambda d: (d[0] * 3,)), h.sum().backward(), g.x.grad)[3],
    "prehooks in turn": lambda g: (h := g.x * 2, h.grad_fn.register_prehook(lambda d: (d[0] + 1,)), h.grad_fn.register_prehook(lambda d: (d[0] * 10,)), h.sum().backward(), g.x.grad)[4],
    "prehook returns too many": lambda g: (h := g.x * 2, h.grad_fn.register_prehook(lambda d: (d[0], d[0])), h.sum().backward()),
    "prehook returns a tensor": lambda g: (h := g.x * 2, h.grad_fn.register_prehook(lambda d: d[0] * 3), h.sum().backward(), g.x.grad)[3],
    "prehook returns None inside": lambda g: (h := g.x * 2, h.grad_fn.register_prehook(lambda d: (None,)), h.sum().backward(), g.x.grad)[3],
    "prehook returns a number": lambda g: (h := g.x * 2, h.grad_fn.register_prehook(lambda d: (3,)), h.sum().backward()),
    "prehook sees": lambda g: (o := [], h := g.x * 2, h.grad_fn.register_prehook(lambda d: o.append([type(d) is tuple, plain(d)])), h.sum().backward(), o)[4],
    "post hook sees": lambda g: (o := [], h := g.x * g.w, h.grad_fn.register_hook(lambda i, d: o.append([type(i) is tuple, type(d) is tuple, plain(i), plain(d)])), h.sum().backward(), o)[4],
    "post hook replaces": lambda g: (h := g.x * g.w, h.grad_fn.register_hook(lambda i, d: (i[0] * 3, None)), h.sum().backward(), [g.x.grad, g.w.grad])[3],
    "post hook too many": lambda g: (h := g.x * g.w, h.grad_fn.register_hook(lambda i, d: (i[0], i[1], i[1])), h.sum().backward()),
    "post hook too few": lambda g: (h := g.x * g.w, h.grad_fn.register_hook(lambda i, d: (i[0],)), h.sum().backward()),
    "post hook a number": lambda g: (h := g.x * g.w, h.grad_fn.register_hook(lambda i, d: (3, 3)), h.sum().backward()),
    "post hook of another shape": lambda g: (h := g.x * g.w, h.grad_fn.register_hook(lambda i, d: (g.ones(2), i[1])), h.sum().backward()),
    "post accumulate": lambda g: (g.x.register_post_accumulate_grad_hook(lambda t: also(None, t.grad.mul_(2))), g.x.sum().backward(), g.x.grad)[2],
    "post accumulate returns a tensor": lambda g: (g.x.register_post_accumulate_grad_hook(lambda t: t.grad), g.x.sum().backward()),
    "post accumulate non-leaf": lambda g: (g.x * 2).register_post_accumulate_grad_hook(print),
    "post accumulate untracked": lambda g: g.p.register_post_accumulate_grad_hook(print),
    "post accumulate order": lambda g: (o := [], g.x.register_post_accumulate_grad_hook(lambda t: o.append(1)), g.x.register_post_accumulate_grad_hook(lambda t: o.append(2)), g.x.register_hook(lambda d: o.append(0)), g.x.sum().backward(), o)[5],
    "post accumulate frees": lambda g: (g.x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None)), g.x.sum().backward(), g.x.grad)[2],
    "post accumulate not by grad": lambda g: (o := [], g.x.register_post_accumulate_grad_hook(lambda t: o.append(1)), g.grad(g.x.sum(), g.x), o)[3],
    "post accumulate by inputs": lambda g: (o := [], g.x.register_post_accumulate_grad_hook(lambda t: o.append(1)), g.x.sum().backward(inputs=[g.x]), o)[3],
    "post accumulate with once two uses": lambda g: (o := [], g.x.register_post_accumulate_grad_hook(lambda t: o.append(plain(t.grad))), (g.x + g.x * 2).sum().backward(), o)[3],
    "on a tensor, then written": lambda g: (o := [], h := g.x * 1, h.register_hook(lambda d: o.append(plain(d))), h.mul_(3), h.sum().backward(), o)[5],
    "on a tensor after a write": lambda g: (o := [], h := g.x * 1, h.mul_(3), h.register_hook(lambda d: o.append(plain(d))), h.sum().backward(), o)[5],
    "on a view": lambda g: (o := [], h := (g.x * 1)[:2], h.register_hook(lambda d: o.append(plain(d))), h.sum().backward(), o)[4],
    "on a base, its view written": lambda g: (o := [], h := g.x * 1, h.register_hook(lambda d: o.append(plain(d))), h[:1].mul_(3), h.sum().backward(), o)[5],
    "on a view, its base written": lambda g: (o := [], h := g.x * 1, v := h[:2], v.register_hook(lambda d: o.append(plain(d))), h.mul_(3), v.sum().backward(), o)[6],
    "backward inside a hook": lambda g: (h := g.x * 2, h.register_hook(lambda d: also(None, (g.w * 3).sum().backward())), h.sum().backward(), [g.x.grad, g.w.grad])[3],
    "backward of the same leaf inside a hook": lambda g: (h := g.x * 2, h.register_hook(lambda d: also(None, (g.x * 3).sum().backward())), h.sum().backward(), g.x.grad)[3],
    "grad inside a hook": lambda g: (h := g.x * 2, h.register_hook(lambda d: within(g.t.enable_grad(), lambda: g.grad((g.w * 3).sum(), g.w)[0])), h.sum().backward(), g.x.grad)[3],
    "recording inside a hook": lambda g: (o := [], h := g.x * 2, h.register_hook(lambda d: o.append([g.t.is_grad_enabled(), d.requires_grad])), h.sum().backward(retain_graph=True), h.sum().backward(create_graph=True), o)[5],
    "hooks at inputs, node of a wanted one": lambda g: (o := [], h := g.x * 2, h.grad_fn.register_hook(lambda i, d: o.append(1)), g.grad(h.sum(), h), o)[4],
    "prehook of a wanted one": lambda g: (o := [], h := g.x * 2, h.grad_fn.register_prehook(lambda d: (d[0] * 3,)), g.grad(h.sum(), h))[3],
    "node names": lambda g: [(g.x * 2).grad_fn.next_functions[0][1], len((g.x * g.w).grad_fn.next_functions), g.x.grad_fn is None],
    "node metadata": lambda g: (h := g.x * 2, h.grad_fn.metadata.update(a=1), h.grad_fn.metadata["a"])[2],
}

# Functions are written `f(forward, backward[, setup])`; ctx is `c`, gradients `d`.
FUNCTIONS = {
    "old form": lambda g: (y := g.function(lambda c, x: x * 2, lambda c, d: d * 2).apply(g.x), y.sum().backward(), g.x.grad)[2],
    "new form": lambda g: (y := g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None).apply(g.x), y.sum().backward(), g.x.grad)[2],
    "no backward": lambda g: type("F", (g.t.autograd.Function,), {"forward": staticmethod(lambda c, x: x * 2)}).apply(g.x).sum().backward(),
    "no backward untracked": lambda g: type("F", (g.t.autograd.Function,), {"forward": staticmethod(lambda c, x: x * 2)}).apply(g.p),
    "no forward": lambda g: type("F", (g.t.autograd.Function,), {"backward": staticmethod(lambda c, d: d)}).apply(g.x),
    "vjp instead of backward": lambda g: (type("F", (g.t.autograd.Function,), {"forward": staticmethod(lambda c, x: x * 2), "vjp": staticmethod(lambda c, d: d * 2)}).apply(g.x).sum().backward(), g.x.grad)[1],
    "both vjp and backward": lambda g: type("F", (g.t.autograd.Function,), {"forward": staticmethod(lambda c, x: x * 2), "vjp": staticmethod(lambda c, d: d * 2), "backward": staticmethod(lambda c, d: d * 2)}).apply(g.x).sum().backward(),
    "made an instance": lambda g: g.function(lambda c, x: x * 2, lambda c, d: d * 2)()(g.x),
    "not static": lambda g: type("F", (g.t.autograd.Function,), {"forward": lambda c, x: x * 2, "backward": lambda c, d: d * 2}).apply(g.x).sum().backward(),
    "keyword arguments": lambda g: g.function(lambda c, x, s=2: x * s, lambda c, d: d * 2).apply(g.x, s=3),
    "too few grads": lambda g: g.function(lambda c, x, w: x * w, lambda c, d: d).apply(g.x, g.w).sum().backward(),
    "too many grads": lambda g: g.function(lambda c, x: x * 2, lambda c, d: (d, d)).apply(g.x).sum().backward(),
    "too many None": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: (d, None, None)).apply(g.x).sum().backward(), g.x.grad)[1],
    "a grad for a number": lambda g: g.function(lambda c, x, k: x * k, lambda c, d: (d, d)).apply(g.x, 2).sum().backward(),
    "a grad for an untracked tensor": lambda g: (g.function(lambda c, x, k: x * k, lambda c, d: (d, d)).apply(g.x, g.p).sum().backward(), g.x.grad, g.p.grad)[1:],
    "None for a tracked one": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: None).apply(g.x).sum().backward(), g.x.grad)[1],
    "a number": lambda g: g.function(lambda c, x: x * 2, lambda c, d: 3.0).apply(g.x).sum().backward(),
    "a wrong shape": lambda g: g.function(lambda c, x: x * 2, lambda c, d: d[:2]).apply(g.x).sum().backward(),
    "a wrong rank": lambda g: g.function(lambda c, x: x * 2, lambda c, d: d.unsqueeze(0).expand(2, 3)).apply(g.x).sum().backward(),
    "an expandable shape": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: d[:1]).apply(g.x).sum().backward(), g.x.grad)[1],
    "a reducible shape": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: d.expand(2, 3)).apply(g.x).sum().backward(), g.x.grad)[1],
    "0-dim for three": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: d.sum()).apply(g.x).sum().backward(), g.x.grad)[1],
    "another float": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: d.to(g.t.float32)).apply(g.x).sum().backward(), g.x.grad, g.x.grad.dtype is g.t.float64)[1:],
    "complex for real": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: d * 1j).apply(g.x).sum().backward(), g.x.grad)[1],
    "whole numbers": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: d.to(g.t.int64)).apply(g.x).sum().backward(), g.x.grad)[1],
    "another device": lambda g: g.function(lambda c, x: x * 2, lambda c, d: d.to("meta")).apply(g.x).sum().backward(),
    "backward raises": lambda g: g.function(lambda c, x: x * 2, lambda c, d: 1 / 0).apply(g.x).sum().backward(),
    "forward raises": lambda g: (refuses(lambda: g.function(lambda c, x: 1 / 0, lambda c, d: d).apply(g.x)), g.t.is_grad_enabled())[1],
    "forward returns a number": lambda g: g.function(lambda c, x: 3.0, lambda c, d: d).apply(g.x),
    "forward returns None": lambda g: g.function(lambda c, x: None, lambda c, d: d).apply(g.x) is None,
    "forward returns a tensor and None": lambda g: g.function(lambda c, x: (x * 2, None), lambda c, d, e: d).apply(g.x)[1] is None,
    "forward returns a tensor and a number": lambda g: g.function(lambda c, x: (x * 2, 3), lambda c, d, e: d).apply(g.x)[1],
    "forward returns a list": lambda g: type(g.function(lambda c, x: [x * 2, x * 3], lambda c, d, e: d).apply(g.x)).__name__,
    "forward returns a nested list": lambda g: g.function(lambda c, x: ([x * 2], x * 3), lambda c, *d: d[-1]).apply(g.x)[1].requires_grad,
    "forward returns a dict": lambda g: g.function(lambda c, x: {"a": x * 2}, lambda c, d: d).apply(g.x)["a"].requires_grad,
    "a list of tensors given": lambda g: g.function(lambda c, l: l[0] * 2, lambda c, d: None).apply([g.x, g.w]).requires_grad,
    "whole output": lambda g: g.function(lambda c, x: (x * 2).to(g.t.int64), lambda c, d: d).apply(g.x).requires_grad,
    "no tensors": lambda g: g.function(lambda c, k: g.ones(3) * k, lambda c, d: d).apply(3).requires_grad,
    "grad mode in forward": lambda g: g.function(lambda c, x: x * float(g.t.is_grad_enabled()), lambda c, d: d).apply(g.x),
    "grad mode in backward": lambda g: (o := [], g.function(lambda c, x: x * 2, lambda c, d: also(d, o.append(g.t.is_grad_enabled()))).apply(g.x).sum().backward(), o)[2],
    "grad mode in a recorded backward": lambda g: (o := [], g.function(lambda c, x: x * 2, lambda c, d: also(d, o.append(g.t.is_grad_enabled()))).apply(g.x).sum().backward(create_graph=True), o)[2],
    "needs_input_grad": lambda g: (o := [], g.function(lambda c, *a: also(a[0] * 2, o.append(c.needs_input_grad)), lambda c, d: (d, None, None, None)).apply(g.x, g.p, 3, g.i), o)[2],
    "needs_input_grad in backward": lambda g: (o := [], g.function(lambda c, x, w: x * w, lambda c, d: also((d, d), o.append(c.needs_input_grad))).apply(g.x, g.p).sum().backward(), o)[2],
    "needs_input_grad by grad": lambda g: (o := [], y := g.function(lambda c, x, w: x * w, lambda c, d: also((d, d), o.append(c.needs_input_grad))).apply(g.x, g.w), g.grad(y.sum(), g.x), o)[3],
    "needs_input_grad under no_grad": lambda g: (o := [], within(g.t.no_grad(), lambda: g.function(lambda c, x: also(x * 2, o.append(c.needs_input_grad)), lambda c, d: d).apply(g.x)), o)[2],
    "save input": lambda g: (g.function(lambda c, x: (c.save_for_backward(x), x * x)[1], lambda c, d: d * 2 * c.saved_tensors[0]).apply(g.x).sum().backward(), g.x.grad)[1],
    "save a number": lambda g: g.function(lambda c, x: (c.save_for_backward(3), x * x)[1], lambda c, d: d).apply(g.x).sum().backward(),
    "save a list": lambda g: g.function(lambda c, x: (c.save_for_backward([x]), x * x)[1], lambda c, d: d).apply(g.x).sum().backward(),
    "save None": lambda g: (o := [], g.function(lambda c, x: (c.save_for_backward(None, x), x * x)[1], lambda c, d: also(d, o.append(c.saved_tensors[0] is None))).apply(g.x).sum().backward(), o)[2],
    "save twice": lambda g: (o := [], g.function(lambda c, x: (c.save_for_backward(x), c.save_for_backward(x, x), x * x)[2], lambda c, d: also(d, o.append(len(c.saved_tensors)))).apply(g.x).sum().backward(), o)[2],
    "save nothing": lambda g: (o := [], g.function(lambda c, x: x * x, lambda c, d: also(d, o.append(len(c.saved_tensors)))).apply(g.x).sum().backward(), o)[2],
    "save an intermediate": lambda g: (g.function(lambda c, x: (h := x.exp(), c.save_for_backward(h), h * 1)[2], lambda c, d: d * c.saved_tensors[0]).apply(g.x * 0).sum().backward(), g.x.grad)[1],
    "saved read twice": lambda g: (y := g.function(lambda c, x: (c.save_for_backward(x), x * x)[1], lambda c, d: d * 2 * c.saved_tensors[0]).apply(g.x).sum(), y.backward(), y.backward()),
    "saved read twice, retained": lambda g: (y := g.function(lambda c, x: (c.save_for_backward(x), x * x)[1], lambda c, d: d * 2 * c.saved_tensors[0]).apply(g.x).sum(), y.backward(retain_graph=True), y.backward(), g.x.grad)[3],
    "twice, nothing saved": lambda g: (y := g.function(lambda c, x: x * 2, lambda c, d: d * 2).apply(g.x).sum(), y.backward(), y.backward(), g.x.grad)[3],
    "saved input changed": lambda g: (h := g.x * 1, y := g.function(lambda c, x: (c.save_for_backward(x), x * x)[1], lambda c, d: d * 2 * c.saved_tensors[0]).apply(h), h.add_(1), y.sum().backward()),
    "saved output changed": lambda g: (y := g.function(lambda c, x: (o := x.exp(), c.save_for_backward(o), o)[2], lambda c, d: d * c.saved_tensors[0]).apply(g.x), y.add_(1), y.sum().backward()),
    "saved input changed in forward": lambda g: g.function(lambda c, x: (c.save_for_backward(x), c.mark_dirty(x), x.mul_(2))[2], lambda c, d: d * c.saved_tensors[0]).apply(g.x * 1).sum().backward(),
    "an attribute": lambda g: (g.function(lambda c, x: (setattr(c, "k", 3), x * 3)[1], lambda c, d: d * c.k).apply(g.x).sum().backward(), g.x.grad)[1],
    "dirty": lambda g: (h := g.x * 1, g.function(lambda c, x: (c.mark_dirty(x), x.mul_(2))[1], lambda c, d: d * 2).apply(h), h.sum().backward(), g.x.grad)[3],
    "dirty leaf": lambda g: g.function(lambda c, x: (c.mark_dirty(x), x.mul_(2))[1], lambda c, d: d * 2).apply(g.x),
    "dirty view": lambda g: (b := g.x * 1, v := b[:2], g.function(lambda c, x: (c.mark_dirty(x), x.mul_(2))[1], lambda c, d: d * 2).apply(v), b.sum().backward(), g.x.grad)[4],
    "dirty view of a leaf": lambda g: g.function(lambda c, x: (c.mark_dirty(x), x.mul_(2))[1], lambda c, d: d * 2).apply(g.x[:2]),
    "dirty untracked": lambda g: (g.function(lambda c, x, w: (c.mark_dirty(x), x.mul_(w))[1], lambda c, d: (d, d)).apply(g.p, g.w), g.p.requires_grad)[1],
    "dirty not returned": lambda g: g.function(lambda c, x: (c.mark_dirty(x), x.mul_(2), x * 1)[2], lambda c, d: d * 2).apply(g.x * 1),
    "dirty not an input": lambda g: g.function(lambda c, x: (h := x * 1, c.mark_dirty(h), h)[2], lambda c, d: d * 2).apply(g.x * 1).requires_grad,
    "dirty a number": lambda g: g.function(lambda c, x: (c.mark_dirty(3), x * 1)[1], lambda c, d: d * 2).apply(g.x * 1),
    "dirty and another view output": lambda g: g.function(lambda c, x: (c.mark_dirty(x), (x.mul_(2), x[:1]))[1], lambda c, d, e: d * 2).apply(g.x * 1)[0].requires_grad,
    "written without mark": lambda g: (h := g.x * 1, g.function(lambda c, x: x.mul_(2), lambda c, d: d * 2).apply(h).sum().backward(), g.x.grad)[2],
    "non-differentiable": lambda g: (y := g.function(lambda c, x: (a := x * 2, b := x * 3, c.mark_non_differentiable(b), (a, b))[3], lambda c, d, e: d).apply(g.x), [t.requires_grad for t in y])[1],
    "non-differentiable gets zeros": lambda g: (o := [], g.function(lambda c, x: (a := x * 2, b := x * 3, c.mark_non_differentiable(b), (a, b))[3], lambda c, d, e: also(d, o.append(plain(e)))).apply(g.x)[0].sum().backward(), o)[2],
    "non-differentiable a number": lambda g: g.function(lambda c, x: (c.mark_non_differentiable(3), x * 2)[1], lambda c, d: d).apply(g.x),
    "non-differentiable not an output": lambda g: g.function(lambda c, x: (c.mark_non_differentiable(x * 5), x * 2)[1], lambda c, d: d).apply(g.x).requires_grad,
    "non-differentiable input returned": lambda g: g.function(lambda c, x: (c.mark_non_differentiable(x), x)[1], lambda c, d: d).apply(g.x * 1).requires_grad,
    "materialize": lambda g: (o := [], g.function(lambda c, x: (x * 2, x * 3), lambda c, d, e: also(d, o.append(plain(e)))).apply(g.x)[0].sum().backward(), o)[2],
    "not materialize": lambda g: (o := [], g.function(lambda c, x: (c.set_materialize_grads(False), x * 2, x * 3)[1:], lambda c, d, e: also(d, o.append(e is None))).apply(g.x)[0].sum().backward(), o)[2],
    "materialize a number": lambda g: g.function(lambda c, x: (c.set_materialize_grads(3), x * 2)[1], lambda c, d: d).apply(g.x),
    "once": lambda g: (g.function(lambda c, x: x * 2, g.t.autograd.function.once_differentiable(lambda c, d: d * 2)).apply(g.x).sum().backward(), g.x.grad)[1],
    "once, twice": lambda g: g.grad(g.grad(g.function(lambda c, x: (c.save_for_backward(x), x**2)[1], g.t.autograd.function.once_differentiable(lambda c, d: d * 2 * c.saved_tensors[0])).apply(g.x).sum(), g.x, create_graph=True)[0].sum(), g.x),
    "once, create_graph unused": lambda g: g.grad(g.function(lambda c, x: x**2, g.t.autograd.function.once_differentiable(lambda c, d: d * 2)).apply(g.x).sum(), g.x, create_graph=True)[0].requires_grad,
    "input returned": lambda g: (y := g.function(lambda c, x: x, lambda c, d: d * 7).apply(g.x), [y is g.x, y.is_leaf], y.sum().backward(), g.x.grad)[1::2],
    "input returned untracked": lambda g: (y := g.function(lambda c, x, w: x, lambda c, d: (d * 7, d * 5)).apply(g.p, g.w), y is g.p, y.requires_grad, g.p.requires_grad)[1:],
    "input returned twice": lambda g: [t.requires_grad for t in g.function(lambda c, x: (x, x), lambda c, d, e: d + e).apply(g.x)],
    "output returned twice": lambda g: (y := g.function(lambda c, x: (h := x * 2, (h, h))[1], lambda c, d, e: d * 2 + e * 3).apply(g.x), (y[0] + y[1]).sum().backward(), g.x.grad)[2],
    "view returned": lambda g: (y := g.function(lambda c, x: x[:2], lambda c, d: g.t.cat([d, d[:1]])).apply(g.x), y.sum().backward(), g.x.grad)[2],
    "view returned, written": lambda g: g.function(lambda c, x: x[:2], lambda c, d: g.t.cat([d, d[:1]])).apply(g.x * 1).mul_(2),
    "input returned, written": lambda g: (h := g.x * 1, y := g.function(lambda c, x: x, lambda c, d: d * 7).apply(h), y.mul_(2), y.sum().backward(), g.x.grad)[4],
    "two views returned, written": lambda g: g.function(lambda c, x: (x[:2], x[1:]), lambda c, d, e: g.t.cat([d, e[:1]])).apply(g.x * 1)[0].mul_(2),
    "result written": lambda g: (y := g.function(lambda c, x: x * 2, lambda c, d: d * 2).apply(g.x), y.mul_(3), y.sum().backward(), g.x.grad)[3],
    "result of several written": lambda g: (y := g.function(lambda c, x: (x * 2, x * 3), lambda c, d, e: d * 2 + e * 3).apply(g.x)[0], y.mul_(3), y.sum().backward(), g.x.grad)[3],
    "double backward": lambda g: g.grad(g.grad(g.function(lambda c, x: (c.save_for_backward(x), x**3)[1], lambda c, d: d * 3 * c.saved_tensors[0] ** 2).apply(g.x).sum(), g.x, create_graph=True)[0].sum(), g.x),
    "double backward through an output": lambda g: g.grad(g.grad(g.function(lambda c, x: (o := x.exp(), c.save_for_backward(o), o)[2], lambda c, d: d * c.saved_tensors[0]).apply(g.x).sum(), g.x, create_graph=True)[0].sum(), g.x),
    "backward inside a backward": lambda g: (g.function(lambda c, x: x * 2, lambda c, d: also(d * 2, within(g.t.enable_grad(), lambda: (g.w * 3).sum().backward()))).apply(g.x).sum().backward(), [g.x.grad, g.w.grad])[1],
    "grad inside a backward": lambda g: (g.function(lambda c, x: (c.save_for_backward(x), x**2)[1], lambda c, d: within(g.t.enable_grad(), lambda: (h := c.saved_tensors[0].detach().requires_grad_(), g.grad((h**2).sum(), h)[0] * d)[1])).apply(g.x).sum().backward(), g.x.grad)[1],
    "checkpoint": lambda g: (g.function(lambda c, x: (c.save_for_backward(x), x.exp() * 2)[1], lambda c, d: within(g.t.enable_grad(), lambda: (h := c.saved_tensors[0].detach().requires_grad_(), (h.exp() * 2).backward(d), h.grad)[2])).apply(g.x * 0).sum().backward(), g.x.grad)[1],
    "jvp not written": lambda g: g.t.func.jvp(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None).apply, (g.x.detach(),), (g.ones(3),)),
    "vmap without a rule": lambda g: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None).apply)(g.m),
    "vmap generated": lambda g: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None, generate_vmap_rule=True).apply)(g.m),
    "vmap generated, old form": lambda g: g.t.vmap(g.function(lambda c, x: x * 2, lambda c, d: d * 2, generate_vmap_rule=True).apply)(g.m),
    "vmap written": lambda g: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None, vmap=staticmethod(lambda info, dims, x: (x * 5, dims[0]))).apply)(g.m),
    "vmap written and generated": lambda g: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None, generate_vmap_rule=True, vmap=staticmethod(lambda info, dims, x: (x * 5, dims[0]))).apply)(g.m),
    "vmap written, info": lambda g: (o := [], g.t.vmap(g.function(lambda x, k: x * k, lambda c, d: (d * 2, None), lambda c, i, o: None, vmap=staticmethod(lambda info, dims, x, k: (o.append([info.batch_size, list(dims), info.randomness]), (x * 5, dims[0]))[1])).apply, (0, None))(g.m, 3), o)[2],
    "vmap written without dims": lambda g: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None, vmap=staticmethod(lambda info, dims, x: x * 5)).apply)(g.m),
    "vmap written, wrong dims": lambda g: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None, vmap=staticmethod(lambda info, dims, x: (x * 5, (0, 0)))).apply)(g.m),
    "vmap written, None dims": lambda g: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 2, lambda c, i, o: None, vmap=staticmethod(lambda info, dims, x: (g.ones(2), None))).apply)(g.m),
    "func.grad": lambda g: g.t.func.grad(lambda x: g.function(lambda x: x * 2, lambda c, d: d * 7, lambda c, i, o: None).apply(x).sum())(g.p),
    "func.grad, old form": lambda g: g.t.func.grad(lambda x: g.function(lambda c, x: x * 2, lambda c, d: d * 7).apply(x).sum())(g.p),
    "func.grad of a saved output": lambda g: g.t.func.grad(lambda x: g.function(lambda x: x.exp(), lambda c, d: d * c.saved_tensors[0], lambda c, i, o: c.save_for_backward(o)).apply(x).sum())(g.p),
    "vmap of func.grad": lambda g: g.t.vmap(g.t.func.grad(lambda x: g.function(lambda x: x * 2, lambda c, d: d * 7, lambda c, i, o: None, generate_vmap_rule=True).apply(x).sum()))(g.m.detach()),
    "func.grad of vmap": lambda g: g.t.func.grad(lambda x: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 7, lambda c, i, o: None, generate_vmap_rule=True).apply)(x).sum())(g.m.detach()),
    "func.grad of vmap written": lambda g: g.t.func.grad(lambda x: g.t.vmap(g.function(lambda x: x * 2, lambda c, d: d * 7, lambda c, i, o: None, vmap=staticmethod(lambda info, dims, x: (x * 5, dims[0]))).apply)(x).sum())(g.m.detach()),
    "setup_context without ctx use": lambda g: (g.function(lambda x, k: x * k, lambda c, d: (d * c.k, None), lambda c, i, o: setattr(c, "k", i[1])).apply(g.x, 4).sum().backward(), g.x.grad)[1],
    "setup_context marks dirty": lambda g: (h := g.x * 1, g.function(lambda x: x.mul_(3), lambda c, d: d * 3, lambda c, i, o: c.mark_dirty(i[0])).apply(h), h.sum().backward(), g.x.grad)[3],
    "ctx is the node": lambda g: (o := [], y := g.function(lambda c, x: also(x * 2, o.append(c)), lambda c, d: d).apply(g.x), y.grad_fn is o[0])[2],
    "saved_tensors of the node": lambda g: g.function(lambda c, x: (c.save_for_backward(x), x * 2)[1], lambda c, d: d).apply(g.x).grad_fn.saved_tensors[0],
    "node's name": lambda g: g.function(lambda c, x: x * 2, lambda c, d: d).apply(g.x).grad_fn.name(),
    "hooks of the node": lambda g: (y := g.function(lambda c, x: x * 2, lambda c, d: d * 2).apply(g.x), y.grad_fn.register_hook(lambda i, o: (i[0] * 5,)), y.sum().backward(), g.x.grad)[3],
}
# fmt: on

TABLES = {"backward": BACKWARD, "saved": SAVED, "leaves": LEAVES, "modes": MODES, "hooks": HOOKS, "functions": FUNCTIONS}
PROGRAMS = [pytest.param(p, id=f"{table}: {name}") for table, rows in TABLES.items() for name, p in rows.items()]


# differs from torch: what it answers there, and why not here.
DIFFERS = {
    "backward: too many seeds": "PyTorch drops those that are too many",
    "saved: changed through data": ".data cannot be set",
    "leaves: write a view made under no_grad": "a view made under no_grad requires no gradient, so the write is a plain one",
    "leaves: requires_grad_ the base of a view": "a view that nothing recorded does not become a leaf of its own",
    "leaves: retain_grad accumulates": "a product with a number saves no tensor, so nothing is freed",
    "modes: inference: view of a normal": "a view that nothing recorded requires no gradient",
    "modes: inference: backward inside": ".grad is a normal tensor, so that the next backward can add to it",
    "hooks: unused output": "a hook is not called where no gradient arrives",
    "functions: output returned twice": "PyTorch gives the second one's gradient for both",
    "functions: jvp not written": "backward gives it",
    "functions: vmap without a rule": "forward and backward see one example",
    "functions: vmap generated, old form": "both forms can be transformed",
    "functions: func.grad, old form": "both forms can be transformed",
    "functions: ctx is the node": "the node has slots, ctx takes any attribute",
}


def agree(theirs, ours):
    """Whether both refused, or gave the same."""
    refused = [isinstance(each, tuple) and each[0] == REFUSED for each in (theirs, ours)]
    return refused[0] == refused[1] and (refused[0] or theirs == ours)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_answer_is_that_of_torch(program, request):
    theirs, ours = outcome(program, torch), outcome(program, turnout)
    differs = request.node.callspec.id in DIFFERS
    assert agree(theirs, ours) is not differs, f"torch {theirs}\nhere  {ours}"


def test_what_differs_is_a_program():
    assert set(DIFFERS) <= {param.id for param in PROGRAMS}
