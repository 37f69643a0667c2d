"""Negative log-likelihood and its gradient: one launch each, where NumPy's functions take five to ten.

With `_log_softmax` and its gradient, `cross_entropy` takes two launches forward and two backward. A class that is out of range
is left out of the loss, its gradient is nan, and the error is raised where the host waits next (`turnout_cuda.faults`).
"""

from __future__ import annotations

from typing import Any

from turnout_aten.errors.arguments import no_class
from turnout_aten.shapes.losses import MEAN, NONE
from turnout_cuda.floats import Kernels, computed, kind
from turnout_cuda.programs import PACKED, Programs, name_of

Table = dict[str, Any]
_BLOCKS = 256  # of which each adds up some rows: more of them than the last one has threads would take longer


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    made = _Likelihood(xp, programs)
    return {"nll_loss_forward.output": made.forward, "nll_loss_backward.grad_input": made.backward}


class _Likelihood(Kernels):
    def given(self, self_: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any, tuple[int, ...]] | None:
        """(classes of the rows, weights of classes, what kernels take beside); None for what has no kernel."""
        if not self_.size or kind(self_) is None or (weight is not None and kind(self_, weight) is None):
            return None
        scale, has_weight = self.arrays.parameter(weight, name_of(self_), self.xp.empty(0, self_.dtype))
        call = self.xp.faults.call("nll_loss", no_class)
        return self.arrays.packed(target, "int64"), scale, (*call, self_.shape[-1], int(ignore_index), has_weight)

    def forward(
        self, self_: Any, target: Any, weight: Any, reduction: int, ignore_index: int, output: Any, total_weight: Any
    ) -> Any:
        found = self.given(self_, target, weight, ignore_index)
        if found is None:
            return NotImplemented
        classes, scale, ints = found
        y, total = (self.arrays.target(each, self_.dtype) for each in (output, total_weight))
        blocks = min(-(-target.size // 256), _BLOCKS)
        sums = self.xp.empty(2 * blocks, computed(name_of(self_)))
        count = (self.xp.zeros if blocks > 1 else self.xp.empty)(1, "int32")
        args = (self.arrays.packed(self_), classes, scale, y, total, sums, count, target.size, *ints, reduction)
        self.programs.start("likelihood", name_of(self_), (blocks,), (256,), args)
        self.arrays.deliver(y, output)
        return self.arrays.deliver(total, total_weight)

    def backward(
        self, grad_output: Any, self_: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any,
        out: Any,
    ) -> Any:  # fmt: skip
        found = self.given(self_, target, weight, ignore_index)
        if found is None or kind(self_, grad_output, total_weight) is None:
            return NotImplemented
        classes, scale, ints = found
        made = self.arrays.target(out, self_.dtype)
        given = (self.arrays.packed(grad_output), classes, scale, total_weight, made, made.size)
        step = int(reduction == NONE and self_.ndim == 2)
        args = (*given, *ints[:2], step, *ints[2:], int(reduction == MEAN))
        packed = self_.shape[-1] % PACKED[name_of(self_)] == 0
        self.programs.over_elements("likelihood_backward", name_of(self_), made.size, args, packed=packed)
        return self.arrays.deliver(made, out)
