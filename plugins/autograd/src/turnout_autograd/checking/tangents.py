"""Derivatives along tangents against differences of the function's values, and against each other."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import turnout
from turnout import plugins
from turnout_autograd.checking.samples import GradcheckError, flat, floating_outputs, near, random_like
from turnout_autograd.transforms.jacobians import basis
from turnout_autograd.transforms.vector_products import jvp, linearize

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor
    from turnout_autograd.checking.differences import Check


class TangentCheck:
    """The derivatives of a checked function along tangents of each of its inputs."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.kept = [o.requires_grad or check.constants for o in floating_outputs(check.func, check.args)]
        self.inputs = [x.detach().clone() for x in check.inputs]  # those of the check are written for the differences
        self.push = linearize(self.function, *self.inputs)[1]
        self.zeros = [turnout.zeros_like(x).detach() for x in self.inputs]

    def run(self, undefined: bool, batched: bool, fast: bool) -> None:
        """Raise GradcheckError at the first difference."""
        self.compare(fast)
        if undefined:
            self.compare_alone()
        if batched:
            self.compare_batched()

    def function(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs that are compared. The inputs require gradients, as those of the check do: a function may ask for some."""
        given = dict(zip(self.check.checked, [x.requires_grad_() for x in inputs], strict=True))
        found = floating_outputs(self.check.func, [given.get(i, a) for i, a in enumerate(self.check.args)])
        return tuple(o for o, wanted in zip(found, self.kept, strict=True) if wanted)

    def alone(self, k: int, tangent: Tensor) -> Any:
        """The derivatives where only input `k` has a tangent."""

        def of_one(x: Tensor) -> tuple[Tensor, ...]:
            return self.function(*[x if i == k else other.clone() for i, other in enumerate(self.inputs)])

        return jvp(of_one, (self.inputs[k].clone(),), (tangent,))[1]

    def beside_zeros(self, k: int, tangent: Tensor) -> Any:
        """The derivatives where the other inputs have tangents of zeros."""
        return self.push(*[tangent if i == k else zeros for i, zeros in enumerate(self.zeros)])

    def compare(self, fast: bool) -> None:
        """The derivatives along each element of each input, or along a random direction of it."""
        random = Random(0)
        for k, i in enumerate(self.check.checked):
            x = self.check.args[i].detach()
            for row, tangent in enumerate([random_like(x, random).detach()] if fast else basis(x)):
                numeric = self.check.differences(x, tangent * self.check.eps)
                at = "a random direction" if fast else f"element {row}"
                for j, (found, quotients) in enumerate(zip(self.beside_zeros(k, tangent), numeric, strict=True)):
                    self._compare(f"{at} of input {i}", j, flat(found, found), quotients)

    def _compare(self, at: str, j: int, found: list[float], numeric: list[float]) -> None:
        for column, (x, y) in enumerate(zip(found, numeric, strict=True)):
            if not abs(x - y) <= self.check.atol + self.check.rtol * abs(y):
                raise GradcheckError(
                    f"gradcheck: the derivative of output {j} along a tangent is wrong\n"
                    f"  at        {at}, element {column} of the output\n  numeric   {y:.9g}\n  formula   {x:.9g}"
                )

    def compare_alone(self) -> None:
        """With a tangent of one of several inputs, the derivatives must be those beside zeros for the others."""
        random = Random(2)
        for k, i in enumerate(self.check.checked if len(self.inputs) > 1 else []):
            tangent = random_like(self.inputs[k], random).detach()
            for j, (alone, beside) in enumerate(zip(self.alone(k, tangent), self.beside_zeros(k, tangent), strict=True)):
                if not near(flat(alone, beside), flat(beside, beside)):
                    raise GradcheckError(f"gradcheck: output {j} gets another derivative when only input {i} has a tangent")

    def compare_batched(self) -> None:
        """The derivatives along two tangents, inside vmap, must be those along each."""
        random = Random(1)
        for k, i in enumerate(self.check.checked):
            tangents = [random_like(self.inputs[k], random).detach() for _ in range(2)]
            mapped = plugins.service("Batched").vmap(lambda tangent, k=k: self.beside_zeros(k, tangent))
            together = mapped(turnout.stack(tangents))
            for row, tangent in enumerate(tangents):
                for j, (alone, each) in enumerate(zip(self.beside_zeros(k, tangent), together, strict=True)):
                    if not near(flat(alone, alone), flat(each[row], alone)):
                        raise GradcheckError(
                            f"gradcheck: output {j} gets another derivative along a tangent of input {i} inside vmap than outside"
                        )
