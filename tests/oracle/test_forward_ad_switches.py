"""Forward mode switched off and on, and inside inference mode, next to PyTorch: which tangents are there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

Program = Callable[["Library"], Any]


class Library:
    """One library by the names that the programs use."""

    def __init__(self, module: Any) -> None:
        self.forward_ad = forward_ad = module.autograd.forward_ad
        self.func = module.func
        self.inference_mode = module.inference_mode
        self.no_grad, self.enable_grad = module.no_grad, module.enable_grad
        ours = module is turnout
        self.enabled = forward_ad.is_fwd_grad_enabled if ours else torch._C._is_fwd_grad_enabled
        self.switched: Callable[[bool], AbstractContextManager[Any]]
        self.switched = forward_ad.set_fwd_grad_enabled if ours else forward_ad._set_fwd_grad_enabled
        self.ones = module.ones

    def dual(self) -> Any:
        return self.forward_ad.make_dual(self.ones(2), self.ones(2))

    def tangent(self, tensor: Any) -> Any:
        found = self.forward_ad.unpack_dual(tensor).tangent
        return None if found is None else found.tolist()

    def jvp(self, function: Callable[[Any], Any]) -> Any:
        return [t.tolist() for t in self.func.jvp(function, (self.ones(2),), (self.ones(2),))]


def made_inside(block: Callable[[Library], AbstractContextManager[Any]]) -> Program:
    """A dual tensor that is made inside of a block: its tangent there, and after it."""

    def program(at: Library) -> Any:
        with at.forward_ad.dual_level():
            with block(at):
                made = at.dual()
                inside = at.tangent(made), at.tangent(made * 2)
            return inside, at.tangent(made), at.tangent(made * 2)

    return program


def used_inside(block: Callable[[Library], AbstractContextManager[Any]], use: Callable[[Any], Any]) -> Program:
    """A dual tensor that is used inside of a block: the tangents of both there, and after it."""

    def program(at: Library) -> Any:
        with at.forward_ad.dual_level():
            made = at.dual()
            with block(at):
                found = use(made)
                inside = at.tangent(made), at.tangent(found)
            return inside, at.tangent(made), at.tangent(found), at.tangent(found * 2)

    return program


def level_inside(block: Callable[[Library], AbstractContextManager[Any]]) -> Program:
    def program(at: Library) -> Any:
        with block(at), at.forward_ad.dual_level():
            made = at.dual()
            return at.tangent(made), at.tangent(made * 2)

    return program


def transforms_inside(block: Callable[[Library], AbstractContextManager[Any]]) -> Program:
    def program(at: Library) -> Any:
        with block(at):
            return (
                at.jvp(lambda x: x * x),
                at.func.jacfwd(lambda x: x * x)(at.ones(2)).tolist(),
                at.func.hessian(lambda x: (x * x).sum())(at.ones(2)).tolist(),
            )

    return program


def inside_of_jvp(block: Callable[[Library], AbstractContextManager[Any]]) -> Program:
    def program(at: Library) -> Any:
        def function(x: Any) -> Any:
            with block(at):
                made = x * 2
            return made * at.ones(2) if made.is_inference() else made * x

        return at.jvp(function)

    return program


def jvp_inside_of_jvp(block: Callable[[Library], AbstractContextManager[Any]]) -> Program:
    def program(at: Library) -> Any:
        def function(x: Any) -> Any:
            with block(at):
                return at.func.jvp(lambda y: y * y * x, (x,), (at.ones(2),))[1]

        return at.jvp(function)

    return program


def enabled_inside(*blocks: Callable[[Library], AbstractContextManager[Any]]) -> Program:
    def program(at: Library) -> Any:
        if not blocks:
            return at.enabled()
        with blocks[0](at):
            return enabled_inside(*blocks[1:])(at)

    return program


def linearized(at: Library) -> Any:
    with at.switched(False):
        return at.func.linearize(lambda x: x * x, at.ones(2))[1](at.ones(2)).tolist()


def dual_of_a_dual(at: Library) -> Any:
    with at.forward_ad.dual_level():
        made = at.dual()
        with at.switched(False):
            again = at.forward_ad.make_dual(made, at.ones(2) * 5)
        return at.tangent(made), at.tangent(again)


def dual_of_an_inference_tensor(at: Library) -> Any:
    with at.inference_mode():
        x = at.ones(2)
    with at.forward_ad.dual_level():
        made = at.forward_ad.make_dual(x, at.ones(2))
        return at.tangent(made), at.tangent(made * 2), made.is_inference()


def backward_where_it_is_off(at: Library) -> Any:
    with at.forward_ad.dual_level():
        x = at.ones(2).requires_grad_()
        made = at.forward_ad.make_dual(x, at.ones(2))
        with at.switched(False):
            (made * made).sum().backward()
        return x.grad.tolist(), at.tangent(x.grad)


BLOCKS: dict[str, Callable[[Library], AbstractContextManager[Any]]] = {
    "off": lambda at: at.switched(False),
    "on": lambda at: at.switched(True),
    "inference": lambda at: at.inference_mode(),
    "no inference": lambda at: at.inference_mode(False),
    "no_grad": lambda at: at.no_grad(),
}
USES: dict[str, Callable[[Any], Any]] = {
    "a product": lambda x: x * 2,
    "a view": lambda x: x[0],
    "a write": lambda x: x.mul_(3),
    "detach": lambda x: x.detach(),
}
PROGRAMS: dict[str, Program] = {
    "linearize, off": linearized,
    "a dual of a dual": dual_of_a_dual,
    "a dual of an inference tensor": dual_of_an_inference_tensor,
    "backward, off": backward_where_it_is_off,
}
for _name, _block in BLOCKS.items():
    PROGRAMS |= {
        f"made, {_name}": made_inside(_block),
        f"a level, {_name}": level_inside(_block),
        f"transforms, {_name}": transforms_inside(_block),
        f"in jvp, {_name}": inside_of_jvp(_block),
        f"jvp in jvp, {_name}": jvp_inside_of_jvp(_block),
        f"enabled, {_name}": enabled_inside(_block),
        **{f"{_what}, {_name}": used_inside(_block, _use) for _what, _use in USES.items()},
        **{f"enabled, {_outer}, {_name}": enabled_inside(_around, _block) for _outer, _around in BLOCKS.items()},
    }

DIFFERENCES = {
    "a view, off": "a view that is made there has no tangent",
    "enabled, off, no inference": "inference_mode(False) ends inference mode and nothing else",
    "linearize, off": "PyTorch gives zeros",
}


def found_by(name: str, module: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return PROGRAMS[name](Library(module))
        except Exception:  # noqa: BLE001 - whether it raises is the question
            return "refused"


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents_are_there_where_those_of_torch_are(name: str) -> None:
    expected, found = found_by(name, torch), found_by(name, turnout)
    assert (found != expected) == (name in DIFFERENCES), (expected, found)


def test_tangents_are_passed_on_in_inference_mode_where_they_are_switched_on() -> None:
    def passed_on(at: Library) -> Any:
        with at.forward_ad.dual_level():
            made = at.dual()
            with at.inference_mode(), at.switched(True):
                return at.enabled(), at.tangent(made), at.tangent(made * 2)

    assert passed_on(Library(torch)) == (True, [1, 1], None)
    assert passed_on(Library(turnout)) == (True, [1, 1], [2, 2])
