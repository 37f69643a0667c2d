"""The tangent of an operator that has a gradient and no rule: the pullback of its pullback.

g(u) = pull(u) is linear in u, and its gradient with respect to u along v is the tangent along v. The operator runs once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT
from turnout.operators.values import tensors_in
from turnout_aten.declarations.tables import SEEDED
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.transforms.linearized import Linearized, Pushed

if TYPE_CHECKING:
    from turnout.operators import Operator


def transposed(op: Operator) -> Callable[..., Any]:
    """The rule of an operator, made of its gradient."""
    slots = [(i, a.type.is_tensor_list) for i, a in enumerate(op.schema.arguments) if a.type.is_tensor_like]

    def push(tangents: Any, result: Any, *values: Any) -> Any:
        if SEEDED in op.tags:
            raise errors.GradientError(errors.forward.no_rule(op.qualified_name))
        places: list[tuple[int, int | None]] = []
        primals, given = [], []
        for (i, is_list), tangent in zip(slots, tangents, strict=True):
            for j, each in enumerate(tangent) if is_list else ((None, tangent),):
                if each is not None:
                    places.append((i, j))
                    given.append(each)
                    primals.append(values[i] if j is None else values[i][j])

        def function(*entered: Tensor) -> Any:
            changed = [list(v) if isinstance(v, (list, tuple)) else v for v in values]
            for (i, j), tensor in zip(places, entered, strict=True):
                if j is None:
                    changed[i] = tensor
                else:
                    changed[i][j] = tensor
            made = op.call_boxed(tuple(changed))
            return tuple(tensors_in(made if isinstance(made, (tuple, list)) else (made,)))

        run = Linearized(op.qualified_name, function, primals, False, ())
        found = Pushed(run)(given)
        floating = [o.dtype.category >= FLOAT for o in run.outputs]
        made = tuple([t if floating[i] and run.depends(i) else None for i, t in enumerate(found)])
        return made[0] if len(made) == 1 else made

    return push
