"""Steps of optimisers: one kernel for all tensors of a list, which reads and writes each element once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout_cuda.lists import Table, Tables
from turnout_cuda.programs import Programs

Arrays = Sequence[Any]


def kernels(xp: Any, programs: Programs) -> dict[str, Any]:
    """The rows of this module."""
    steps = _Steps(xp, programs)
    table: dict[str, Any] = {}
    for name, row in (
        ("_fused_adam_", steps.adam(decoupled=False)), ("_fused_adamw_", steps.adam(decoupled=True)),
        ("_fused_sgd_", steps.sgd), ("_fused_adagrad_", steps.adagrad),
    ):  # fmt: skip
        table[name] = table[f"{name}.tensor_lr"] = row
    return table


class _Steps:
    def __init__(self, xp: Any, programs: Programs) -> None:
        self.xp = xp
        self.programs = programs
        self.tables = Tables(xp)

    def table(self, lists: Sequence[Arrays], counts: Arrays | None, grad_scale: Any) -> tuple[str, Table] | None:
        """The dtype and the table of lists of parameters, gradients and states; None if a kernel does not serve them."""
        columns = self.tables.columns(lists)
        steps = () if counts is None or columns is None else self.tables.counts(counts, columns[0])
        if columns is None or steps is None:
            return None
        written = [place for place in range(len(lists)) if place != 1 or grad_scale is not None]
        made = self.tables.of(columns, written, steps)
        return None if made is None else (columns[0].dtype, made)

    def start(
        self, name: str, given: tuple[str, Table], rate: Any, grad_scale: Any, found_inf: Any, ints: Sequence[int],
        numbers: Sequence[float],
    ) -> None:  # fmt: skip
        """Start a kernel; rate, scale and `found_inf` may be arrays, and the rate may be a number."""
        dtype, table = given
        on_device = hasattr(rate, "dtype")
        rates = rate.astype("float64").reshape(1) if on_device else table.doubles
        scale, found = (table.floats if a is None else a.astype("float32").reshape(1) for a in (grad_scale, found_inf))
        flags = (int(on_device), int(grad_scale is not None), int(found_inf is not None))
        args = (table.rows, table.blocks, rates, scale, found, *flags, *ints, 0.0 if on_device else float(rate))
        self.programs.start(name, dtype, (table.grid,), (256,), (*args, *map(float, numbers)))

    # ---- rows

    def adam(self, *, decoupled: bool) -> Any:
        """Adam, or AdamW."""

        def kernel(
            self_: Arrays, grads: Arrays, exp_avgs: Arrays, exp_avg_sqs: Arrays, max_exp_avg_sqs: Arrays, state_steps: Arrays,
            lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool, grad_scale: Any,
            found_inf: Any,
        ) -> Any:  # fmt: skip
            lists = [self_, grads, exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
            table = self.table(lists, state_steps, grad_scale)
            if table is None:
                return NotImplemented
            ints = (int(amsgrad), int(maximize), int(decoupled))
            numbers = (beta1, beta2, weight_decay, eps)
            self.start("adam_step", table, lr, grad_scale, found_inf, ints, numbers)
            return None

        return kernel

    def sgd(
        self, self_: Arrays, grads: Arrays, momentum_buffer_list: Arrays, weight_decay: float, momentum: float, lr: Any,
        dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any, found_inf: Any,
    ) -> Any:  # fmt: skip
        table = self.table([self_, grads, *([momentum_buffer_list] if momentum else [])], None, grad_scale)
        if table is None:
            return NotImplemented
        ints = (int(nesterov), int(maximize), int(is_first_step))
        numbers = (momentum, dampening, weight_decay)
        self.start("sgd_step", table, lr, grad_scale, found_inf, ints, numbers)
        return None

    def adagrad(
        self, self_: Arrays, grads: Arrays, state_sums: Arrays, state_steps: Arrays, lr: Any, lr_decay: float,
        weight_decay: float, eps: float, maximize: bool, grad_scale: Any, found_inf: Any,
    ) -> Any:  # fmt: skip
        table = self.table([self_, grads, state_sums], state_steps, grad_scale)
        if table is None:
            return NotImplemented
        numbers = (lr_decay, weight_decay, eps)
        self.start("adagrad_step", table, lr, grad_scale, found_inf, (int(maximize),), numbers)
        return None
