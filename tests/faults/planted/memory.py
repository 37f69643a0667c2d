"""What the schema says of memory, and what is kept between calls."""

from __future__ import annotations

import numpy as np

import turnout
from faults.correct import CORRECT, like, of
from faults.planted.fault import FUNCTIONAL, LATEST, ONE, SCHEMA, TWO, fault

# ---- what the schema says of memory


def writes_input(x):
    x.add_(1)
    return x * 2


def writes_one_element(x):
    x.numpy()[..., -1] = 0
    return of(x.numpy() * 2)


def writes_second(x, y):
    made = x + y
    y.mul_(0)
    return made


def writes_and_restores_too_much(x):
    x.numpy()[...] = np.round(x.numpy(), 6)
    return of(x.numpy())


def writes_list(xs, weights):
    made = sum(x * w for x, w in zip(xs, weights, strict=True))
    xs[-1].zero_()
    return made


def writes_outside(x, value):
    if x.storage is not None and x.storage.array.size > x.numel():
        x.storage.array[...] = value
    x.fill_(value)


def same_twice(x):
    made = x * 2
    return made, made


def shared_results(x):
    made = x * 2
    return made, made.view(made.shape)


def changes_shape(x):
    made = x * 2
    x.squeeze_().unsqueeze_(0)
    return made


def tracks_input(x):
    made = x * 2
    x.requires_grad_()
    return made


def pops_list(xs, weights):
    made = sum(x * w for x, w in zip(xs, weights, strict=True))
    xs.pop()
    return made


# ---- what is kept


def keeps_input(x):
    LATEST["input"] = x
    return x * 2


def keeps_result(x):
    LATEST["result"] = made = x * 2
    return made


def returns_buffer(x):
    buffer = LATEST.get("buffer")
    if buffer is None or buffer.shape != x.shape or buffer.dtype is not x.dtype:
        buffer = LATEST["buffer"] = turnout.empty(x.shape, dtype=x.dtype)
    buffer.copy_(x * 2)
    return buffer.view(buffer.shape)


# fmt: off
FAULTS = [
    # ---- what the schema says of memory
    fault("write_hidden_from_functionalize", FUNCTIONAL, "functionalised, the operator differs", ONE, kernel=writes_input),
    fault("writes_its_input", SCHEMA, "writes x", ONE, kernel=writes_input),
    fault("writes_one_element", SCHEMA, "writes x", ONE, kernel=writes_one_element),
    fault("writes_the_second_input", SCHEMA, "writes y", TWO, kernel=writes_second),
    fault("rounds_its_input", SCHEMA, "writes x", ONE, kernel=writes_and_restores_too_much),
    fault("writes_in_a_list", SCHEMA, "writes xs[1]", CORRECT["weighted"], kernel=writes_list, backward=None, setup=None),
    fault("writes_beyond_its_input", SCHEMA, "outside of x", CORRECT["fill_"], kernel=writes_outside),
    fault("declares_a_write_it_never_makes", SCHEMA, "no call wrote x", CORRECT["fill_"], kernel=lambda x, value: None),
    fault("declares_two_writes_and_makes_one", SCHEMA, "no call wrote y", CORRECT["swap_"],
          kernel=lambda x, y: (x.copy_(y), None)[1]),
    fault("returns_its_input", SCHEMA, "the result is x", ONE, kernel=lambda x: x),
    fault("returns_a_view_of_its_input", SCHEMA, "shares memory with x", ONE, kernel=lambda x: x.view(x.shape)),
    fault("returns_a_slice", SCHEMA, "shares memory with x", ONE, kernel=lambda x: x[:1], fake=lambda x: like(x[:1])),
    fault("returns_its_input_only_if_contiguous", SCHEMA, "the result is x", ONE, kernel=lambda x: x.contiguous()),
    fault("returns_the_second_input", SCHEMA, "the result is y", TWO, kernel=lambda x, y: y),
    fault("returns_one_result_twice", SCHEMA, "result 1 is result 0", ONE, schema="(Tensor x) -> (Tensor, Tensor)",
          kernel=same_twice, fake=lambda x: (like(x), like(x))),
    fault("returns_two_views_of_one_memory", SCHEMA, "result 1 shares memory with result 0", ONE, kernel=shared_results,
          schema="(Tensor x) -> (Tensor, Tensor)", fake=lambda x: (like(x), like(x))),
    fault("list_with_one_tensor_twice", SCHEMA, "result[1] is result[0]", ONE, schema="(Tensor x) -> Tensor[]",
          kernel=lambda x: [x * 2] * 2, fake=lambda x: [like(x), like(x)]),
    fault("declares_a_view_and_copies", SCHEMA, "no call returned memory of x", CORRECT["first_row"],
          key="CompositeExplicitAutograd", kernel=lambda x: x[0].clone()),
    fault("returns_a_copy_of_what_it_wrote", SCHEMA, "must return x itself", CORRECT["scale_"],
          kernel=lambda x, by: x.mul_(by).clone()),
    fault("returns_the_wrong_written_argument", SCHEMA, "must return out itself", CORRECT["add_out"],
          kernel=lambda x, y, *, out: (out.copy_(x + y), x)[1]),
    fault("changes_the_shape_of_its_input", SCHEMA, "the shape of x", ONE, kernel=changes_shape),
    fault("marks_its_input_as_tracked", SCHEMA, "requires_grad of x", ONE, kernel=tracks_input),
    fault("takes_a_tensor_off_the_list", SCHEMA, "changed the list xs", CORRECT["weighted"], kernel=pops_list, backward=None,
          setup=None),
    # ---- what is kept
    fault("keeps_its_input", SCHEMA, "keeps x", ONE, kernel=keeps_input),
    fault("keeps_its_result", SCHEMA, "keeps the result", ONE, kernel=keeps_result),
    fault("returns_one_buffer_every_time", SCHEMA, "of an earlier call", ONE, kernel=returns_buffer),
]
# fmt: on
