"""What the programs are made of: the library with fresh tensors, and statements as expressions."""

from __future__ import annotations

import torch

import turnout


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

    def edge(self, tensor):
        return self.t.autograd.graph.get_gradient_edge(tensor)

    def function(self, forward, backward, setup=None, **members):
        made = {"forward": staticmethod(forward), "backward": staticmethod(backward), **members}
        if setup is not None:
            made["setup_context"] = staticmethod(setup)
        return type("Made", (self.t.autograd.Function,), made)


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
