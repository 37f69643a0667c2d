"""What is returned, and shapes without data."""

from __future__ import annotations

import turnout
from faults.correct import CORRECT, like
from faults.model import COMPOSITE, given, values, whole
from faults.planted.fault import FAKE, FUNCTIONAL, ONE, SCHEMA, fault
from turnout import library

# ---- shapes without data


def found_of(**bounds):
    return lambda x: x.new_empty((library.get_ctx().new_dynamic_size(**bounds), x.ndim), dtype=turnout.int64)


FOUND = CORRECT["found"].but(inputs=lambda: given(values(6)))


# fmt: off
FAULTS = [
    # ---- what is returned
    fault("returns_a_number_for_a_tensor", SCHEMA, "must return a Tensor", ONE, kernel=lambda x: 3.0, fake=None),
    fault("returns_none_for_a_tensor", SCHEMA, "must return a Tensor", ONE, kernel=lambda x: None, fake=None),
    fault("returns_three_of_two", SCHEMA, "must return 2 values", ONE, schema="(Tensor x) -> (Tensor, Tensor)",
          kernel=lambda x: (x * 1, x * 2, x * 3), fake=None),
    fault("returns_a_float_for_an_int", SCHEMA, "must return an int", CORRECT["positives"],
          kernel=lambda x: float((x > 0).sum().item())),
    fault("returns_an_array", SCHEMA, "must return a Tensor", ONE, kernel=lambda x: x.numpy() * 2, fake=None),
    fault("returns_a_value_where_the_schema_says_nothing", SCHEMA, "must return nothing", CORRECT["fill_"],
          kernel=lambda x, value: x.fill_(value)),
    fault("leaves_gradients_off", SCHEMA, "left the gradient mode", ONE,
          kernel=lambda x: (turnout.set_grad_enabled(False) and None) or x * 2),
    fault("changes_the_default_dtype", SCHEMA, "left the default dtype", ONE,
          kernel=lambda x: turnout.set_default_dtype(turnout.float64) or x * 2),
    # ---- shapes without data
    fault("fake_of_another_dtype", FAKE, "dtype", ONE, fake=lambda x: turnout.empty_like(x, dtype=turnout.float16)),
    fault("fake_of_float32_always", FAKE, "dtype", ONE,
          fake=lambda x: turnout.empty(x.shape, dtype=turnout.float32, device=x.device)),
    fault("fake_of_another_shape", FAKE, "shape", ONE, fake=lambda x: x.new_empty((*x.shape, 1))),
    fault("fake_of_a_fixed_shape", FAKE, "shape", ONE, fake=lambda x: x.new_empty((2, 3))),
    fault("fake_of_swapped_dims", FAKE, "shape", ONE, fake=lambda x: x.new_empty(tuple(reversed(x.shape)))),
    fault("fake_of_other_strides", FAKE, "strides", ONE,
          fake=lambda x: turnout.empty_strided(
              x.shape, turnout.empty(x.shape[::-1], device="meta").stride()[::-1], dtype=x.dtype, device=x.device)),
    fault("fake_on_another_device", FAKE, "device", ONE, fake=lambda x: turnout.empty(x.shape, dtype=x.dtype, device="cpu")),
    fault("no_fake_kernel", FAKE, "has no fake kernel", ONE, fake=None, checked=True),
    fault("fake_reads_values", FAKE, "reads the values", ONE, fake=lambda x: x.new_empty((int(x.sum().item()),))),
    fault("fake_returns_its_input", FAKE, "the result is x", ONE, fake=lambda x: x),
    fault("fake_of_fewer_results", FAKE, "1 result", ONE, schema="(Tensor x) -> Tensor[]", kernel=lambda x: [x * 1, x * 2],
          fake=lambda x: [like(x)]),
    fault("fake_without_broadcasting", FAKE, "shape", CORRECT["add_scaled"], fake=lambda x, y, *, alpha=1.0: like(x),
          inputs=lambda: given(values(3), values(2, 3, seed=3))),
    fault("fake_that_raises", FAKE, "raised", ONE, fake=lambda x: x.new_empty(x.shape[7])),
    fault("fake_of_the_wrong_rank_for_0_dims", FAKE, "shape", ONE, fake=lambda x: x.new_empty(x.shape or (1,))),
    fault("fake_keeps_strides_that_the_kernel_does_not", FAKE, "strides", ONE, kernel=lambda x: (x * 2).contiguous(),
          fake=lambda x: turnout.empty_like(x)),
    fault("fake_of_a_fixed_size", FAKE, "takes dim 0 of x for 2 always", ONE,
          fake=lambda x: x.new_empty((int(x.shape[0]), *x.shape[1:]))),
    fault("fake_that_decides_about_a_size", FAKE, "takes dim 1 of x for 3 always", ONE,
          fake=lambda x: like(x) if x.ndim < 2 or x.shape[1] == 3 else x.new_empty(x.shape)),
    fault("fake_wrong_for_symbols_only", FAKE, "for sizes that are symbols", ONE,
          fake=lambda x: x.new_empty(tuple(n if type(n) is int else n + 1 for n in x.shape))),
    fault("fake_of_other_strides_for_symbols_only", FAKE, "for sizes that are symbols", ONE,
          fake=lambda x: like(x) if all(type(n) is int for n in x.shape) else like(x.t().contiguous()).t()),
    fault("fake_that_takes_no_symbols", FAKE, "for sizes that are symbols: ", ONE,
          fake=lambda x: x.new_empty([{int: n}[type(n)] for n in x.shape])),
    fault("fake_with_a_bound_that_is_too_low", FAKE, "shape [u0, 1], and the kernel [", FOUND, fake=found_of(max=2)),
    fault("fake_with_a_bound_that_is_too_high", FAKE, "shape [u0, 1], and the kernel [", FOUND, fake=found_of(min=4)),
    fault("fake_of_another_rank_whose_size_depends_on_data", FAKE, "shape", FOUND,
          fake=lambda x: x.new_empty((library.get_ctx().new_dynamic_size(),), dtype=turnout.int64)),
    fault("fake_promotes_integers", FAKE, "dtype", ONE, inputs=lambda: given(whole(4)),
          fake=lambda x: turnout.empty(x.shape, dtype=turnout.float32 if x.dtype is turnout.int32 else x.dtype, device=x.device)),
    # ---- what a trace makes of sizes
    fault("takes_a_size_that_is_no_int_for_1", FUNCTIONAL, "a replay of its trace on other sizes differs", ONE,
          kernel=lambda x: x.sum(0) / (x.shape[0] if isinstance(x.shape[0], int) else 1), key=COMPOSITE, fake=None),
    fault("multiplies_by_the_size_of_the_trace", FUNCTIONAL, "a replay of its trace on other sizes differs", ONE,
          kernel=lambda x: x * getattr(x.shape[0], "hint", x.shape[0]), key=COMPOSITE, fake=None),
]
# fmt: on
