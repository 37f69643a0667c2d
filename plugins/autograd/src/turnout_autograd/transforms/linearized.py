"""A function run once inside of a level: its results, its pullback, and its derivatives along tangents.

The three steps are in `levels`: the inputs enter a level, the function runs inside of it, results leave it. Derivatives along a
tangent are the pullback of the pullback: g(u) = pull(u) is linear in u, and its gradient with respect to u along v is the
tangent. So there is one table of formulas, and in-place operators, views and vmap come with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.dtypes import FLOAT
from turnout.registry import find_operator
from turnout_aten import trees
from turnout_aten.tensor.levels import LEVELS, batched_at, lower, peel, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.transforms.arguments import check_floating
from turnout_autograd.transforms.levels import Level, enter, leave, pull
from turnout_autograd.transforms.results import call, check_returned

if TYPE_CHECKING:
    from turnout_autograd.transforms.arguments import Function

_zeros_like = find_operator("aten::zeros_like").stub


class Linearized:
    """A function run once inside of a level: what it returned, and its pullback.

    inside    the results as tensors of the level, raised from their lowered form: lowering them again records nothing
    outputs   the results as the outside sees them
    """

    def __init__(
        self, name: str, function: Function, primals: Sequence[Any], has_aux: bool, vmaps: tuple[Any, ...] | None = None
    ) -> None:
        """`vmaps`: see `Level`."""
        plugins.service("Autograd")  # the function may be older than a change of the configuration
        self.name = name
        leaves, self.inputs = trees.flatten(tuple(primals))
        self.level = Level(vmaps)
        entered = [enter(self.level, check_floating(name, "an argument", leaf)) for leaf in leaves]
        self.primals = leaves

        def run() -> Any:
            outputs, self.structure, aux = call(name, function, trees.unflatten(self.inputs, entered), has_aux)
            self.inside = [self._arranged(t) for t in outputs]
            return aux

        aux = self.level.run(run)
        self.outputs = [leave(self.level, t) for t in self.inside]
        self.aux = self._left(aux) if has_aux else None

    def _left(self, aux: Any) -> Any:
        return trees.map_leaves(lambda v: leave(self.level, v) if isinstance(v, Tensor) else v, aux)

    def _arranged(self, tensor: Tensor) -> Tensor:
        vmaps = batched_at(tensor, self.level.vmaps)
        return raise_(lower(tensor, vmaps), vmaps)

    @property
    def result(self) -> Any:
        """What the function returned."""
        return trees.unflatten(self.structure, self.outputs)

    def depends(self, index: int) -> bool:
        """Whether a result was computed from the inputs."""
        return bool(peel(self.inside[index])[0].gmask & self.level.bit)

    def pull(self, cotangents: Sequence[Tensor | None], retain: bool = True) -> list[Tensor]:
        """The gradients of the inputs, zeros where none arrives; None for a result that does not matter."""
        found = self.reached(cotangents, retain)
        return [_zeros_like(p) if g is None else g for g, p in zip(found, self.primals, strict=True)]

    def reached(self, cotangents: Sequence[Tensor | None], retain: bool = True) -> list[Tensor | None]:
        """The gradients of the inputs, None where none arrives."""
        if any(vmap not in LEVELS.get() for vmap in self.level.vmaps):
            raise errors.GradientError(errors.transforms.pulled_outside(self.name))
        return pull(self.level, self.inside, cotangents, retain)


def check_outputs(run: Linearized) -> None:
    """That there is something to pull back from, and nothing that cotangents cannot belong to."""
    check_returned(run.name, run.outputs)
    for output in run.outputs:
        check_floating(run.name, "a result", output)


class Pushed:
    """The linear function of tangents of a run: the pullback of its pullback."""

    def __init__(self, run: Linearized) -> None:
        self._run = run
        self._at = [i for i, t in enumerate(run.outputs) if t.dtype.category >= FLOAT]
        seeds = [_zeros_like(run.outputs[i].detach()) for i in self._at]

        def pullback(*cotangents: Tensor) -> Any:
            given = iter(cotangents)
            return tuple(run.pull([next(given) if i in self._at else None for i in range(len(run.outputs))]))

        self._pulled = Linearized(run.name, pullback, seeds, False, run.level.vmaps) if seeds else None

    def __call__(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """A tangent for each result; zeros for those that are not floating-point."""
        found = iter(self._pulled.pull(tangents) if self._pulled is not None else ())
        return [next(found) if i in self._at else _zeros_like(t) for i, t in enumerate(self._run.outputs)]
