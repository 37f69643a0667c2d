"""Every formula of the generated kernels with calls that run it: what the tests of gradcheck itself are made of.

A formula is one operator's gradient with respect to one argument: a node class and a position among its edges.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import turnout
from turnout import autograd
from turnout.errors import TurnoutError
from turnout.registry import REGISTRY
from turnout_conformance.cases import CASES, OperatorCase, values
from turnout_conformance.cases.differentiable import DIFFERENTIABLE, OWN, as_function, is_recorded, leaf, sample_calls
from turnout_conformance.cases.model import calls

Call = Callable[..., Any]


class Formula(NamedTuple):
    """One gradient: the node's class, and which of its edges."""

    node: Any
    edge: int

    def __str__(self) -> str:
        return f"{self.node.op_name}[{self.edge}]"

    def source(self) -> ast.FunctionDef:
        """The class's `backward`."""
        text = textwrap.dedent(inspect.getsource(inspect.getattr_static(self.node, "backward")))
        tree = ast.parse(text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        return tree

    def branch(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """The statements for this edge."""
        for statement in function.body:
            if isinstance(statement, ast.If) and f"edges[{self.edge}]" in ast.unparse(statement.test):
                return statement.body
        return function.body

    @property
    def refused(self) -> bool:
        """Whether the formula says that there is no gradient."""
        return any("refuse(node" in ast.unparse(s) for s in self.branch(self.source()))


@cache
def formulas() -> list[Formula]:
    """All of them."""
    turnout.ones(1).requires_grad_()
    from turnout_autograd import generated
    from turnout_autograd.engine.nodes import Node

    found = []
    for family in pkgutil.iter_modules(generated.__path__):
        module = importlib.import_module(f"{generated.__name__}.{family.name}")
        for made in vars(module).values():
            if isinstance(made, type) and issubclass(made, Node) and made.__module__ == module.__name__:
                used = {
                    node.slice.value
                    for node in ast.walk(Formula(made, 0).source())
                    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "edges"
                    and isinstance(node.slice, ast.Constant)
                }  # fmt: skip
                found += [Formula(made, edge) for edge in sorted(used or {0})]
    return found


# ---- calls

A = values(2, 2)


def seeded(op: str) -> Call:
    """A random operator that draws the same numbers at every call."""

    def call(*args: Any) -> Any:
        turnout.manual_seed(7)
        return REGISTRY.find(f"aten::{op}")(*args)

    return call


def written(op: str, *rest: Any) -> Call:
    """An in-place operator as a function."""
    return lambda x: seeded(op)(x.clone(), *rest)


def symmetric(x: turnout.Tensor) -> turnout.Tensor:
    return x @ x.t() + turnout.eye(2, dtype=turnout.float64)


def first(found: Any) -> Any:
    return found[0]


def eigenvectors(x: turnout.Tensor) -> Any:
    """Their signs are open."""
    found = REGISTRY.find("aten::_linalg_eigh")(symmetric(x))
    return found[0], found[1] * found[1]


LOW, HIGH = values(3, low=0.2, high=0.8), values(3, low=1.1, high=3.0, seed=3)

# Formulas that the operator cases do not run: of arguments beside one that has none, of samples where the value jumps, of what is
# drawn, of writes.
OWN_CALLS: list[tuple[Call, tuple[Any, ...]]] = [
    (lambda y: turnout.special.gammainc(turnout.tensor(LOW, dtype=turnout.float64), y), (HIGH,)),
    (lambda y: turnout.special.gammaincc(turnout.tensor(LOW, dtype=turnout.float64), y), (HIGH,)),
    (lambda y: turnout.special.zeta(turnout.tensor(HIGH, dtype=turnout.float64), y), (HIGH,)),
    (lambda y: turnout.xlogy(2.0, y), (HIGH,)),
    (lambda x: first(REGISTRY.find("aten::linalg_cholesky_ex")(symmetric(x))), (A,)),
    (eigenvectors, (A,)),
    (lambda x: first(turnout.mode(x)), (A,)),
    (lambda w: turnout.bincount(turnout.tensor([1, 0, 1]), w), (LOW,)),
    (lambda x: turnout.nan_to_num(x, 0.0, 1.0, 2.0), (A,)),
    (lambda x, y: turnout.nextafter(x, y), (LOW, HIGH)),
    (lambda x: first(seeded("native_dropout")(x, 0.5, True)), (A,)),
    (lambda x: seeded("bernoulli")(x), (LOW,)),
    (lambda x: seeded("bernoulli.p")(x, 0.5), (LOW,)),
    (lambda x, p: seeded("bernoulli_.Tensor")(x.clone(), p), (LOW, LOW)),
    (lambda x: seeded("poisson")(x), (HIGH,)),
    (lambda x: seeded("normal_functional")(x), (LOW,)),
    *((written(f"{op}_.Scalar", 1.0), (LOW,)) for op in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(
        (lambda x, y, op=op: REGISTRY.find(f"aten::{op}_.Tensor")(x.clone(), y), (LOW, HIGH))
        for op in ("eq", "ne", "lt", "le", "gt", "ge")
    ),
    *(
        (lambda x, y, op=op: REGISTRY.find(f"aten::{op}_")(x.clone(), y), (LOW, HIGH))
        for op in ("logical_and", "logical_or", "logical_xor")
    ),
    (written("logical_not_"), (LOW,)),
    (written("bernoulli_.float", 0.5), (LOW,)),
    (written("random_"), (LOW,)),
    (written("random_.from", 2, 9), (LOW,)),
    (written("random_.to", 9), (LOW,)),
    *((written(f"{op}_"), (LOW,)) for op in ("cauchy", "exponential", "log_normal", "normal", "uniform")),
    (written("geometric_", 0.5), (LOW,)),
]


X, Y = turnout.tensor(values(2, 3), dtype=turnout.float64), turnout.tensor(values(2, 3, low=0.1), dtype=turnout.float64)
# The same for formulas that say there is no gradient.
OWN_REFUSED: list[tuple[Call, tuple[Any, ...]]] = [
    (lambda w: REGISTRY.find("aten::binary_cross_entropy_with_logits")(X, Y, w), (HIGH,)),
    (
        lambda w: REGISTRY.find("aten::nll_loss_backward")(
            turnout.ones(2, dtype=turnout.float64),
            X,
            turnout.tensor([2, 0]),
            w,
            0,
            -100,
            turnout.zeros((), dtype=turnout.float64),
        ),
        (HIGH,),
    ),
]


def checked_calls() -> Iterator[tuple[Call, list[turnout.Tensor]]]:
    """Every call whose gradients the suite compares with differences, as a function of its leaves, and those."""
    for case in DIFFERENTIABLE:
        op, inplace = REGISTRY.find(f"aten::{case.op}"), inplace_of(case)
        for args, kwargs in sample_calls(case):
            function, given = as_function(op, args, kwargs)
            if not given or not is_recorded(function(*given)):
                continue
            yield function, given
            if case in INPLACE and function(*given).shape == args[0].shape:

                def on_a_copy(x: Any, *rest: Any, inplace: Any = inplace, **named: Any) -> Any:
                    return inplace(x.clone(), *rest, **named)

                yield as_function(on_a_copy, args, kwargs)
    for function, data in OWN_CALLS:
        yield function, [leaf(each, "float64") for each in data]


def inplace_of(case: OperatorCase) -> Any:
    """The in-place variant with the same arguments, or None."""
    name, _, _overload = case.op.partition(".")
    functional = REGISTRY.find(f"aten::{case.op}").schema
    for candidate in REGISTRY.packets["aten"].get(f"{name}_", ()):
        theirs = [(a.name, str(a.type)) for a in candidate.schema.arguments]
        if theirs == [(a.name, str(a.type)) for a in functional.arguments]:
            return candidate
    return None


# A complex tensor does not become real in place.
INPLACE = [c for c in DIFFERENTIABLE if inplace_of(c) is not None and (c.op != "abs" or "float64" in c.dtypes)]


# ---- which call runs which formula


class Recorder:
    """While entered, `backward` of every generated node tells which formulas it is asked for."""

    def __init__(self) -> None:
        self.asked: set[Formula] = set()

    def __enter__(self) -> Recorder:
        self._before = {each.node: inspect.getattr_static(each.node, "backward") for each in formulas()}
        for node, right in self._before.items():
            node.backward = self._telling(node, right)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for node, right in self._before.items():
            node.backward = right

    def _telling(self, made: Any, right: Any) -> Any:
        def backward(node: Any, grad: Any, edges: Any) -> Any:
            self.asked |= {Formula(made, i) for i, edge in enumerate(edges) if edge is not None}
            return right(node, grad, edges)

        return backward


def floating(found: Any) -> list[turnout.Tensor]:
    """The recorded results of a call."""
    each = found if isinstance(found, (list, tuple)) else [found]
    return [t for t in each if isinstance(t, turnout.Tensor) and t.requires_grad]


@cache
def reached() -> dict[Formula, list[tuple[Call, list[turnout.Tensor]]]]:
    """The calls that run each formula in a first-order gradient, in their order."""
    everything = set(formulas())
    found: dict[Formula, list[tuple[Call, list[turnout.Tensor]]]] = {}
    with Recorder() as recorder:
        for function, given in checked_calls():
            recorder.asked.clear()
            ends = floating(function(*given))
            if not ends:
                continue
            autograd.grad(ends, given, [turnout.ones_like(end) for end in ends], allow_unused=True)
            for formula in recorder.asked & everything:
                found.setdefault(formula, []).append((function, given))
    return found


def refusals() -> dict[Formula, str]:
    """The text of the error of every formula that says there is no gradient, one argument of a call at a time."""
    everything = {f for f in formulas() if f.refused}
    found: dict[Formula, str] = {}
    with Recorder() as recorder:
        for function, given in _refusing_calls():
            recorder.asked.clear()
            try:
                ends = floating(function(*given)) if given else []
                autograd.grad(ends, given, [turnout.ones_like(end) for end in ends], allow_unused=True)
            except TurnoutError as error:
                for formula in recorder.asked & everything:
                    found.setdefault(formula, str(error))
    return found


def _refusing_calls() -> Iterator[tuple[Call, list[turnout.Tensor]]]:
    """Every sample of every case with one floating argument tracked at a time."""
    for case in (*CASES, *OWN):
        for number, sample in enumerate(case.samples if "float64" in case.dtypes else ()):
            for at in (*range(len(sample.args)), *sample.kwargs):
                args, kwargs = next(islice(calls(case, "float64", leaf), number, None))
                yield as_function(
                    REGISTRY.find(f"aten::{case.op}"),
                    tuple(_detached(value, at == i) for i, value in enumerate(args)),
                    {name: _detached(value, at == name) for name, value in kwargs.items()},
                )
    for function, data in OWN_REFUSED:
        yield function, [leaf(each, "float64") for each in data]


def _detached(value: Any, keep: bool) -> Any:
    return value.detach() if isinstance(value, turnout.Tensor) and not keep else value
