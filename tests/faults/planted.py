"""Operators with one fault each: which check has to find it, and words that its message has to have."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

import turnout
from faults.correct import CORRECT, CUBE, like, of
from faults.model import COMPOSITE, Spec, given, values, whole
from turnout import library


@dataclass(frozen=True)
class Fault:
    """A planted fault.

    check  the name of the check that has to find it
    says   words that the message has to have: they name the fault
    """

    spec: Spec
    check: str
    says: str

    def __str__(self) -> str:
        return self.spec.name


PLANTED: dict[str, Fault] = {}

SCHEMA, FAKE, GRADIENTS, REGISTRATION = "test_schema", "test_faketensor", "test_gradients", "test_autograd_registration"
REPLAY, BATCHING, AUTOCAST, BACKENDS = "test_aot_dispatch_static", "test_batching", "test_autocast", "test_backends"
INPUTS, DETERMINISM, DEFAULTS, THREADS = "test_inputs", "test_determinism", "test_defaults", "test_threads"
FUNCTIONAL = "test_aot_dispatch_dynamic"
COMPLIANCE = "test_composite_compliance"


def plant(name: str, check: str, says: str, base: Spec, **changes: Any) -> None:
    """Add a fault: a correct operator with other parts."""
    assert name not in PLANTED
    PLANTED[name] = Fault(base.but(name=name, **changes), check, says)


ONE = Spec("one", "(Tensor x) -> Tensor", lambda x: of(x.numpy() * 2), lambda: given(values(2, 3)), fake=like)
TWO = Spec(
    "two",
    "(Tensor x, Tensor y) -> Tensor",
    lambda x, y: x + y,
    lambda: given(values(2, 3), values(2, 3, seed=3)),
    fake=lambda x, y: like(x),
)

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


plant("write_hidden_from_functionalize", FUNCTIONAL, "functionalised, the operator differs", ONE, kernel=writes_input)
plant(
    "takes_a_size_that_is_no_int_for_1", FUNCTIONAL, "a replay of its trace on other sizes differs", ONE,
    kernel=lambda x: x.sum(0) / (x.shape[0] if isinstance(x.shape[0], int) else 1), key=COMPOSITE, fake=None,
)  # fmt: skip
plant(
    "multiplies_by_the_size_of_the_trace", FUNCTIONAL, "a replay of its trace on other sizes differs", ONE,
    kernel=lambda x: x * getattr(x.shape[0], "hint", x.shape[0]), key=COMPOSITE, fake=None,
)  # fmt: skip
plant("writes_its_input", SCHEMA, "writes x", ONE, kernel=writes_input)
plant("writes_one_element", SCHEMA, "writes x", ONE, kernel=writes_one_element)
plant("writes_the_second_input", SCHEMA, "writes y", TWO, kernel=writes_second)
plant("rounds_its_input", SCHEMA, "writes x", ONE, kernel=writes_and_restores_too_much)


def writes_list(xs, weights):
    made = sum(x * w for x, w in zip(xs, weights, strict=True))
    xs[-1].zero_()
    return made


plant("writes_in_a_list", SCHEMA, "writes xs[1]", CORRECT["weighted"], kernel=writes_list, backward=None, setup=None)


def writes_outside(x, value):
    if x.storage is not None and x.storage.array.size > x.numel():
        x.storage.array[...] = value
    x.fill_(value)


plant("writes_beyond_its_input", SCHEMA, "outside of x", CORRECT["fill_"], kernel=writes_outside)
plant("declares_a_write_it_never_makes", SCHEMA, "no call wrote x", CORRECT["fill_"], kernel=lambda x, value: None)
plant("declares_two_writes_and_makes_one", SCHEMA, "no call wrote y", CORRECT["swap_"], kernel=lambda x, y: (x.copy_(y), None)[1])
plant("returns_its_input", SCHEMA, "the result is x", ONE, kernel=lambda x: x)
plant("returns_a_view_of_its_input", SCHEMA, "shares memory with x", ONE, kernel=lambda x: x.view(x.shape))
plant("returns_a_slice", SCHEMA, "shares memory with x", ONE, kernel=lambda x: x[:1], fake=lambda x: like(x[:1]))
plant("returns_its_input_only_if_contiguous", SCHEMA, "the result is x", ONE, kernel=lambda x: x.contiguous())
plant("returns_the_second_input", SCHEMA, "the result is y", TWO, kernel=lambda x, y: y)


def same_twice(x):
    made = x * 2
    return made, made


plant(
    "returns_one_result_twice",
    SCHEMA,
    "result 1 is result 0",
    ONE,
    schema="(Tensor x) -> (Tensor, Tensor)",
    kernel=same_twice,
    fake=lambda x: (like(x), like(x)),
)


def shared_results(x):
    made = x * 2
    return made, made.view(made.shape)


plant(
    "returns_two_views_of_one_memory",
    SCHEMA,
    "result 1 shares memory with result 0",
    ONE,
    kernel=shared_results,
    schema="(Tensor x) -> (Tensor, Tensor)",
    fake=lambda x: (like(x), like(x)),
)
plant(
    "list_with_one_tensor_twice",
    SCHEMA,
    "result[1] is result[0]",
    ONE,
    schema="(Tensor x) -> Tensor[]",
    kernel=lambda x: [x * 2] * 2,
    fake=lambda x: [like(x), like(x)],
)
plant(
    "declares_a_view_and_copies",
    SCHEMA,
    "no call returned memory of x",
    CORRECT["first_row"],
    key="CompositeExplicitAutograd",
    kernel=lambda x: x[0].clone(),
)
plant(
    "returns_a_copy_of_what_it_wrote", SCHEMA, "must return x itself", CORRECT["scale_"], kernel=lambda x, by: x.mul_(by).clone()
)
plant(
    "returns_the_wrong_written_argument",
    SCHEMA,
    "must return out itself",
    CORRECT["add_out"],
    kernel=lambda x, y, *, out: (out.copy_(x + y), x)[1],
)


def changes_shape(x):
    made = x * 2
    x.squeeze_().unsqueeze_(0)
    return made


plant("changes_the_shape_of_its_input", SCHEMA, "the shape of x", ONE, kernel=changes_shape)


def tracks_input(x):
    made = x * 2
    x.requires_grad_()
    return made


plant("marks_its_input_as_tracked", SCHEMA, "requires_grad of x", ONE, kernel=tracks_input)


def pops_list(xs, weights):
    made = sum(x * w for x, w in zip(xs, weights, strict=True))
    xs.pop()
    return made


plant(
    "takes_a_tensor_off_the_list", SCHEMA, "changed the list xs", CORRECT["weighted"], kernel=pops_list, backward=None, setup=None
)


# ---- what is kept


LATEST: dict[str, Any] = {}


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


plant("keeps_its_input", SCHEMA, "keeps x", ONE, kernel=keeps_input)
plant("keeps_its_result", SCHEMA, "keeps the result", ONE, kernel=keeps_result)
plant("returns_one_buffer_every_time", SCHEMA, "of an earlier call", ONE, kernel=returns_buffer)

# ---- what is returned

plant("returns_a_number_for_a_tensor", SCHEMA, "must return a Tensor", ONE, kernel=lambda x: 3.0, fake=None)
plant("returns_none_for_a_tensor", SCHEMA, "must return a Tensor", ONE, kernel=lambda x: None, fake=None)
plant(
    "returns_three_of_two",
    SCHEMA,
    "must return 2 values",
    ONE,
    schema="(Tensor x) -> (Tensor, Tensor)",
    kernel=lambda x: (x * 1, x * 2, x * 3),
    fake=None,
)
plant(
    "returns_a_float_for_an_int", SCHEMA, "must return an int", CORRECT["positives"], kernel=lambda x: float((x > 0).sum().item())
)
plant("returns_an_array", SCHEMA, "must return a Tensor", ONE, kernel=lambda x: x.numpy() * 2, fake=None)
plant(
    "returns_a_value_where_the_schema_says_nothing",
    SCHEMA,
    "must return nothing",
    CORRECT["fill_"],
    kernel=lambda x, value: x.fill_(value),
)
plant(
    "leaves_gradients_off",
    SCHEMA,
    "left the gradient mode",
    ONE,
    kernel=lambda x: (turnout.set_grad_enabled(False) and None) or x * 2,
)
plant(
    "changes_the_default_dtype",
    SCHEMA,
    "left the default dtype",
    ONE,
    kernel=lambda x: turnout.set_default_dtype(turnout.float64) or x * 2,
)

# ---- shapes without data

plant("fake_of_another_dtype", FAKE, "dtype", ONE, fake=lambda x: turnout.empty_like(x, dtype=turnout.float16))
plant("fake_of_float32_always", FAKE, "dtype", ONE, fake=lambda x: turnout.empty(x.shape, dtype=turnout.float32, device=x.device))
plant("fake_of_another_shape", FAKE, "shape", ONE, fake=lambda x: x.new_empty((*x.shape, 1)))
plant("fake_of_a_fixed_shape", FAKE, "shape", ONE, fake=lambda x: x.new_empty((2, 3)))
plant("fake_of_swapped_dims", FAKE, "shape", ONE, fake=lambda x: x.new_empty(tuple(reversed(x.shape))))
plant(
    "fake_of_other_strides",
    FAKE,
    "strides",
    ONE,
    fake=lambda x: turnout.empty_strided(
        x.shape, tuple(reversed(turnout.empty(tuple(reversed(x.shape)), device="meta").stride())), dtype=x.dtype, device=x.device
    ),
)
plant("fake_on_another_device", FAKE, "device", ONE, fake=lambda x: turnout.empty(x.shape, dtype=x.dtype, device="cpu"))
plant("no_fake_kernel", FAKE, "has no fake kernel", ONE, fake=None, checked=True)
plant("fake_reads_values", FAKE, "reads the values", ONE, fake=lambda x: x.new_empty((int(x.sum().item()),)))
plant("fake_returns_its_input", FAKE, "the result is x", ONE, fake=lambda x: x)
plant(
    "fake_of_fewer_results",
    FAKE,
    "1 result",
    ONE,
    schema="(Tensor x) -> Tensor[]",
    kernel=lambda x: [x * 1, x * 2],
    fake=lambda x: [like(x)],
)
plant(
    "fake_without_broadcasting",
    FAKE,
    "shape",
    CORRECT["add_scaled"],
    fake=lambda x, y, *, alpha=1.0: like(x),
    inputs=lambda: given(values(3), values(2, 3, seed=3)),
)
plant("fake_that_raises", FAKE, "raised", ONE, fake=lambda x: x.new_empty(x.shape[7]))
plant("fake_of_the_wrong_rank_for_0_dims", FAKE, "shape", ONE, fake=lambda x: x.new_empty(x.shape or (1,)))
plant(
    "fake_keeps_strides_that_the_kernel_does_not",
    FAKE,
    "strides",
    ONE,
    kernel=lambda x: (x * 2).contiguous(),
    fake=lambda x: turnout.empty_like(x),
)
plant(
    "fake_of_a_fixed_size",
    FAKE,
    "takes dim 0 of x for 2 always",
    ONE,
    fake=lambda x: x.new_empty((int(x.shape[0]), *x.shape[1:])),
)
plant(
    "fake_that_decides_about_a_size",
    FAKE,
    "takes dim 1 of x for 3 always",
    ONE,
    fake=lambda x: like(x) if x.ndim < 2 or x.shape[1] == 3 else x.new_empty(x.shape),
)
plant(
    "fake_wrong_for_symbols_only",
    FAKE,
    "for sizes that are symbols",
    ONE,
    fake=lambda x: x.new_empty(tuple(n if type(n) is int else n + 1 for n in x.shape)),
)
plant(
    "fake_of_other_strides_for_symbols_only",
    FAKE,
    "for sizes that are symbols",
    ONE,
    fake=lambda x: like(x) if all(type(n) is int for n in x.shape) else like(x.t().contiguous()).t(),
)
plant(
    "fake_that_takes_no_symbols",
    FAKE,
    "for sizes that are symbols: ",
    ONE,
    fake=lambda x: x.new_empty([{int: n}[type(n)] for n in x.shape]),
)


def found_of(**bounds):
    return lambda x: x.new_empty((library.get_ctx().new_dynamic_size(**bounds), x.ndim), dtype=turnout.int64)


FOUND = CORRECT["found"].but(inputs=lambda: given(values(6)))
plant("fake_with_a_bound_that_is_too_low", FAKE, "shape [u0, 1], and the kernel [", FOUND, fake=found_of(max=2))
plant("fake_with_a_bound_that_is_too_high", FAKE, "shape [u0, 1], and the kernel [", FOUND, fake=found_of(min=4))
plant(
    "fake_of_another_rank_whose_size_depends_on_data",
    FAKE,
    "shape",
    FOUND,
    fake=lambda x: x.new_empty((library.get_ctx().new_dynamic_size(),), dtype=turnout.int64),
)
plant(
    "fake_promotes_integers",
    FAKE,
    "dtype",
    ONE,
    inputs=lambda: given(whole(4)),
    fake=lambda x: turnout.empty(x.shape, dtype=turnout.float32 if x.dtype is turnout.int32 else x.dtype, device=x.device),
)

# ---- gradients


def half_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * 1.5 * x * x


def writes_grad(ctx, grad):
    (x,) = ctx.saved_tensors
    grad.mul_(3)
    return grad * x * x


def saved_copy(ctx, inputs, output):
    ctx.x = inputs[0].detach().clone()


def global_setup(ctx, inputs, output):
    LATEST["saved"] = inputs[0]


def late_backward(ctx, grad):
    return grad * 3 * LATEST["saved"] * LATEST["saved"]


plant(
    "gradient_of_half_the_size",
    GRADIENTS,
    "the gradient of output 0 with respect to input 0 is wrong",
    CUBE,
    backward=half_backward,
)
plant("gradient_of_the_wrong_sign", GRADIENTS, "is wrong", CUBE, backward=lambda ctx, grad: -3 * grad * ctx.saved_tensors[0] ** 2)
plant(
    "gradient_that_ignores_the_incoming_one",
    GRADIENTS,
    "is wrong",
    CUBE,
    backward=lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2,
)
plant("gradient_that_is_none", GRADIENTS, "is wrong", CUBE, backward=lambda ctx, grad: None)
plant("gradient_of_another_shape", GRADIENTS, "raised", CUBE, backward=lambda ctx, grad: grad.reshape((-1,))[:-1])
plant(
    "gradients_for_too_few_inputs", GRADIENTS, "raised", CORRECT["outer"], backward=lambda ctx, grad: grad @ ctx.saved_tensors[1]
)
plant(
    "gradients_in_the_wrong_order",
    GRADIENTS,
    "is wrong",
    TWO,
    kernel=lambda x, y: x + y * 2,
    backward=lambda ctx, grad: (grad * 2, grad),
)
plant("gradient_writes_the_incoming_one", GRADIENTS, "writes the incoming gradient", CUBE, backward=writes_grad)
plant("gradient_kept_in_a_global", GRADIENTS, "of the latest call", CUBE, backward=late_backward, setup=global_setup)
plant(
    "gradient_without_a_second_one",
    GRADIENTS,
    "second",
    CUBE,
    setup=saved_copy,
    backward=lambda ctx, grad: grad * 3 * ctx.x * ctx.x,
)
plant(
    "gradient_detached_by_numpy",
    GRADIENTS,
    "second",
    CUBE,
    backward=lambda ctx, grad: of(grad.detach().numpy() * 3 * ctx.saved_tensors[0].detach().numpy() ** 2),
)
plant(
    "gradient_wrong_where_one_input_is_tracked",
    GRADIENTS,
    "is wrong",
    TWO,
    backward=lambda ctx, grad: (grad if ctx.needs_input_grad[1] else grad * 2, grad),
)
plant("gradient_of_the_wrong_results", GRADIENTS, "is wrong", CORRECT["signs"], backward=lambda ctx, up, down: up + down)
plant(
    "gradient_without_the_scale",
    GRADIENTS,
    "is wrong",
    CORRECT["weighted"],
    backward=lambda ctx, grad: ([grad] * len(ctx.weights), None),
)
plant(
    "gradient_not_conjugated",
    GRADIENTS,
    "is wrong",
    CORRECT["conj_product"],
    backward=lambda ctx, grad: (grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]),
)
plant(
    "gradient_of_another_dtype",
    GRADIENTS,
    "raised",
    CUBE,
    backward=lambda ctx, grad: (grad * 3 * ctx.saved_tensors[0] ** 2).to(turnout.complex128),
)


# ---- registration of gradients


def detached_autograd(x):
    return x.detach() * 2


class _Doubled:
    """Makes the Function at first use."""

    @staticmethod
    def apply(x):
        class Doubled(turnout.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        return Doubled.apply(x)


plant(
    "autograd_kernel_without_gradient", REGISTRATION, "does not require a gradient", ONE, kernels={"Autograd": detached_autograd}
)
plant(
    "gradient_recorded_below_autograd",
    REGISTRATION,
    "below Autograd",
    ONE,
    key="CPU",
    kernel=lambda x: _Doubled.apply(turnout.tensor(x.tolist(), dtype=x.dtype, requires_grad=x.is_floating_point())),
)

plant(
    "refuses_tracked_arguments",
    REGISTRATION,
    "require a gradient",
    CORRECT["positives"],
    kernel=lambda x: int((x.numpy() > 0).sum()),
)

# ---- replays


TIMES = itertools.count(2)


def reads_first_value(x, slope=1.5):
    return x * slope if x.reshape((-1,))[0].item() > 0 else x * -slope


plant(
    "composite_branches_on_values",
    REPLAY,
    "a replay",
    CORRECT["soft"],
    kernel=reads_first_value,
    inputs=lambda: given(values(2, 3), 2.0),
)
plant(
    "composite_bakes_in_a_number",
    REPLAY,
    "a replay",
    CORRECT["soft"],
    kernel=lambda x, slope=1.5: x * float(x.detach().sum().item()),
)

# ---- batches

plant("batching_with_the_wrong_dim", BATCHING, "vmap", CORRECT["total"], vmap=lambda info, dims, x: (x.sum(-1), 0))
plant("batching_of_other_values", BATCHING, "vmap", CUBE, vmap=lambda info, dims, x: (x * x, dims[0]))
plant("batching_without_a_batch", BATCHING, "vmap", CUBE, vmap=lambda info, dims, x: ((x * x * x).select(dims[0], 0), None))
plant("batching_that_raises", BATCHING, "raised", CUBE, vmap=lambda info, dims, x: x * x * x)
plant(
    "batching_only_of_the_first",
    BATCHING,
    "vmap",
    CORRECT["outer"],
    vmap=lambda info, dims, x, y: (x.unsqueeze(2) * y.unsqueeze(1), 0),
)
plant("batching_of_another_dtype", BATCHING, "dtype", CUBE, vmap=lambda info, dims, x: ((x * x * x).to(turnout.float32), dims[0]))
plant("batching_at_front_only", BATCHING, "vmap", CUBE, vmap=lambda info, dims, x: (x * x * x, 0))

# ---- autocast


def own_cast(x, y):
    from turnout.state import exclude

    with exclude("AutocastCPU"):
        return turnout.ops.faults.autocast_scales(x.to(turnout.bfloat16), y.to(turnout.bfloat16)) * 2


def casts_nothing(x, y):
    from turnout.state import exclude

    with exclude("AutocastCPU"):
        return turnout.ops.faults.autocast_casts_one_input(x.to(turnout.bfloat16), y)


plant("autocast_scales", AUTOCAST, "autocast", CORRECT["product"], autocast=None, kernels={"AutocastCPU": own_cast})
plant("autocast_casts_one_input", AUTOCAST, "raised", CORRECT["product"], autocast=None, kernels={"AutocastCPU": casts_nothing})
plant(
    "autocast_kernel_refuses_the_low_precision",
    AUTOCAST,
    "raised",
    CORRECT["product"],
    kernel=lambda x, y: turnout.ops.faults.no_such_operator(x) if x.dtype is turnout.bfloat16 else x @ y,
)

# ---- kernels that disagree

plant("cpu_differs_from_the_default", BACKENDS, "CPU", CORRECT["twice_served"], kernels={"CPU": lambda x: x * 2 + 1.5})
plant(
    "cpu_gives_another_dtype",
    BACKENDS,
    "dtype",
    CORRECT["twice_served"],
    kernels={"CPU": lambda x: (x * 2 + 1).to(turnout.float32)},
    fake=None,
)
plant(
    "cpu_gives_another_shape",
    BACKENDS,
    "shape",
    CORRECT["twice_served"],
    kernels={"CPU": lambda x: (x * 2 + 1).unsqueeze(0)},
    fake=None,
)

# ---- inputs that nobody sampled


def flat_memory(x):
    array = x.numpy() if x.storage is None else np.asarray(x.storage.array).reshape(-1)[: x.numel()]
    return of(np.array(array).reshape(tuple(x.shape)) * 2)


plant("reads_memory_in_row_major_order", INPUTS, "layout", ONE, kernel=flat_memory)
plant("indexes_the_first_element", INPUTS, "0 dims", ONE, kernel=lambda x: x * 2 + 0 * x[0:1].sum() if x.ndim else 1 / 0)
plant("divides_by_the_size", INPUTS, "empty", ONE, kernel=lambda x: x * (2 * (x.numel() // x.numel())))
plant("computes_in_float32", INPUTS, "float64", ONE, kernel=lambda x: (x.to(turnout.float32) * 2).to(x.dtype), fake=like)
plant("refuses_gaps", INPUTS, "layout", ONE, kernel=lambda x: x * 2 if x.is_contiguous() else [][0])

# ---- determinism

plant(
    "draws_without_a_tag", DETERMINISM, "nondeterministic_seeded", ONE, kernel=lambda x: x + turnout.rand(x.shape, dtype=x.dtype)
)
plant("counts_its_calls", DETERMINISM, "two calls", ONE, kernel=lambda x: x * next(TIMES))
plant(
    "draws_from_another_source",
    DETERMINISM,
    "seed",
    CORRECT["noisy"],
    kernel=lambda x, scale=1.0: x + float(np.random.default_rng().random()) * scale,
    backward=None,
)


def cached_by_shape(x):
    return of(LATEST.setdefault(("shape", tuple(x.shape), x.dtype), x.numpy() * 2))


plant("caches_by_shape", DETERMINISM, "other values", ONE, kernel=cached_by_shape)

# ---- defaults


def rows_vmap(info, in_dims, x, eps=1e-3):
    x = x.movedim(in_dims[0], 0)
    return x / (x.abs().sum(-1, keepdim=True) + eps), 0


# A kernel whose function has another default than the schema is refused when it is registered. Rules get all arguments too.
plant("default_of_the_batching_rule_differs", DEFAULTS, "eps", CORRECT["normalised_rows"], vmap=rows_vmap)

# ---- threads


SCRATCH = np.zeros(64)


def through_scratch(x):
    a = x.numpy().reshape(-1)
    n = min(a.size, 64)
    SCRATCH[:n] = a[:n].real
    SCRATCH[:n] *= 2
    made = np.array(a * 2)
    made[:n] = SCRATCH[:n]
    return of(made.reshape(x.shape))


def through_a_global(x):
    LATEST["now"] = x.shape
    LATEST["values"] = x.numpy() * 2
    made = LATEST["values"]
    return of(made.copy())


plant("computes_in_one_scratch_memory", THREADS, "thread", ONE, kernel=through_scratch, inputs=lambda: given(values(3)))
plant("passes_values_through_a_global", THREADS, "thread", ONE, kernel=through_a_global)

# ---- composites


plant(
    "composite_reads_arrays",
    COMPLIANCE,
    "made outside of operators",
    CORRECT["soft"],
    kernel=lambda x, slope=1.5: of(x.detach().numpy() * slope),
)
plant(
    "composite_drops_the_gradient",
    COMPLIANCE,
    "does not require a gradient",
    CORRECT["soft"],
    kernel=lambda x, slope=1.5: (x.detach() * slope).sigmoid(),
)
plant("composite_writes_its_input", SCHEMA, "writes x", CORRECT["soft"], kernel=lambda x, slope=1.5: x.mul_(slope) * 1)
