"""Every formula of the generated kernels with calls that run it: what the tests of gradcheck itself are made of.

A formula is one operator's gradient with respect to one argument: a node class and a position among its edges.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import turnout
from turnout import autograd
from turnout.errors import TurnoutError
from turnout_conformance.cases import CASES, OperatorCase, values
from turnout_conformance.cases.differentiable import DIFFERENTIABLE, OWN, as_function, leaf, leaves, sample_calls
from turnout_conformance.comparing import find, form
from turnout_conformance.making import arguments

Call = Callable[..., Any]


class Formula(NamedTuple):
    """One gradient: the node's class, and which of its edges."""

    node: Any
    edge: int

    def __str__(self) -> str:
        return f"{self.node.op_name}[{self.edge}]"

    def source(self) -> ast.FunctionDef:
        """The class's `backward`."""
        return source_of(inspect.getattr_static(self.node, "backward"))

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
def source_of(function: Any) -> ast.FunctionDef:
    """The syntax of a function. It is shared: change a copy."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


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
        return find(op)(*args)

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
    found = find("_linalg_eigh")(symmetric(x))
    return found[0], found[1] * found[1]


LOW, HIGH = values(3, low=0.2, high=0.8), values(3, low=1.1, high=3.0, seed=3)

# Formulas that the operator cases do not run: of arguments beside one that has none, of samples where the value jumps, of what is
# drawn, of writes.
OWN_CALLS: list[tuple[Call, tuple[Any, ...]]] = [
    (lambda y: turnout.special.gammainc(turnout.tensor(LOW, dtype=turnout.float64), y), (HIGH,)),
    (lambda y: turnout.special.gammaincc(turnout.tensor(LOW, dtype=turnout.float64), y), (HIGH,)),
    (lambda y: turnout.special.zeta(turnout.tensor(HIGH, dtype=turnout.float64), y), (HIGH,)),
    (lambda y: turnout.xlogy(2.0, y), (HIGH,)),
    (lambda x: first(find("linalg_cholesky_ex")(symmetric(x))), (A,)),
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
    *((lambda x, y, op=op: find(f"{op}_.Tensor")(x.clone(), y), (LOW, HIGH)) for op in ("eq", "ne", "lt", "le", "gt", "ge")),
    *((lambda x, y, op=op: find(f"{op}_")(x.clone(), y), (LOW, HIGH)) for op in ("logical_and", "logical_or", "logical_xor")),
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
    (lambda w: find("binary_cross_entropy_with_logits")(X, Y, w), (HIGH,)),
    (
        lambda w: find("nll_loss_backward")(
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


# A complex tensor does not become real in place.
INPLACE = [c for c in DIFFERENTIABLE if form(find(c.op), "inplace") is not None and (c.op != "abs" or "float64" in c.dtypes)]


def on_a_copy(inplace: Call) -> Call:
    """An in-place operator as a function of its first argument."""
    return lambda x, *rest, **named: inplace(x.clone(), *rest, **named)


@dataclass(eq=False)
class Recorded:
    """A call as a function of its leaves, those, what it gives for them, and the arguments that hold them."""

    function: Call
    given: list[turnout.Tensor]
    result: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def ends(self) -> list[turnout.Tensor]:
        return leaves(self.result)

    @property
    def cost(self) -> tuple[bool, int]:
        """The calls that are checked soonest, and at last those of one element or none, in which less can show."""
        sizes = [sum(t.numel() for t in each) for each in (self.given, self.ends)]
        return min(sizes) < 2, sum(sizes)


def recorded(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Recorded]:
    """A call, if it has a gradient."""
    function, given = as_function(call, args, kwargs)
    found = Recorded(function, given, function(*given), args, kwargs)
    if given and found.ends:
        yield found


def recorded_calls(case: OperatorCase) -> Iterator[Recorded]:
    """The samples of a case that have gradients."""
    for args, kwargs in sample_calls(case):
        yield from recorded(find(case.op), args, kwargs)


def checked_calls() -> Iterator[Recorded]:
    """Every call whose gradients the suite compares with differences."""
    for case in DIFFERENTIABLE:
        inplace = on_a_copy(form(find(case.op), "inplace")) if case in INPLACE else None
        for call in recorded_calls(case):
            yield call
            if inplace is not None and call.result.shape == call.args[0].shape:
                yield from recorded(inplace, call.args, call.kwargs)
    for function, data in OWN_CALLS:
        yield from recorded(function, tuple(leaf(each, "float64") for each in data), {})


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


def gradients_of_ones(function: Call, given: list[turnout.Tensor], ends: list[turnout.Tensor] | None = None) -> None:
    """Ask every formula of a call."""
    ends = leaves(function(*given)) if ends is None else ends
    autograd.grad(ends, given, [turnout.ones_like(end) for end in ends], retain_graph=True, allow_unused=True)


@cache
def reached() -> dict[Formula, list[Recorded]]:
    """The checked calls that run each formula: see `reached_by`."""
    return reached_by(checked_calls())


def reached_by(calls: Iterable[Recorded]) -> dict[Formula, list[Recorded]]:
    """The first calls that run each formula in a first-order gradient, those that are checked soonest first."""
    everything = set(formulas())
    found: dict[Formula, list[Recorded]] = {}
    with Recorder() as recorder:
        for call in calls:
            recorder.asked.clear()
            gradients_of_ones(call.function, call.given, call.ends)
            for formula in recorder.asked & everything:
                found.setdefault(formula, []).append(call)
    return {formula: sorted(calls[:6], key=lambda call: call.cost) for formula, calls in found.items()}


def refusals() -> dict[Formula, str]:
    """The text of the error of every formula that says there is no gradient, one argument of a call at a time."""
    everything = {f for f in formulas() if f.refused}
    found: dict[Formula, str] = {}
    with Recorder() as recorder:
        for function, given in _refusing_calls():
            recorder.asked.clear()
            try:
                gradients_of_ones(function, given)
            except TurnoutError as error:
                for formula in recorder.asked & everything:
                    found.setdefault(formula, str(error))
    return found


def _refusing_calls() -> Iterator[tuple[Call, list[turnout.Tensor]]]:
    """Every sample of every case with one floating argument tracked at a time."""
    for case in (*CASES, *OWN):
        for sample in case.samples if "float64" in case.dtypes else ():
            for at in (*range(len(sample.args)), *sample.kwargs):
                args, kwargs = arguments(sample, "float64", leaf)
                function, given = as_function(
                    find(case.op),
                    [_detached(value, at == i) for i, value in enumerate(args)],
                    {name: _detached(value, at == name) for name, value in kwargs.items()},
                )
                if given:
                    yield function, given
    for function, data in OWN_REFUSED:
        yield function, [leaf(each, "float64") for each in data]


def _detached(value: Any, keep: bool) -> Any:
    return value.detach() if isinstance(value, turnout.Tensor) and not keep else value
