"""Programs about custom operators in the forms that PyTorch's manual shows, each one source for both frameworks.

`torch` is either of them, and `your_namespace` is replaced by a namespace of the run. What a program is asked for is in `result`.
Three names stand for what is no part of `torch.library` and differs: `fake_mode()` makes tensors without data, `Mode` is a
dispatch mode, `below_autograd()` excludes its keys.
"""

SIN = """
import numpy as np

@torch.library.custom_op("your_namespace::sin", mutates_args=())
def sin(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.asarray(np.sin(x.numpy(force=True))))
"""

GRADIENT = """
def setup_context(ctx, inputs, output):
    (x,) = inputs
    ctx.save_for_backward(x)

def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * x.cos()
"""

DEFINED = """
torch.library.define("your_namespace::mul_add", "(Tensor x, Tensor y, float a=1.0, *, int n=2) -> Tensor")

@torch.library.impl("your_namespace::mul_add", "cpu")
def mul_add_cpu(x, y, a=1.0, *, n=2):
    return x * y * a + n

mul_add = torch.ops.your_namespace.mul_add
x, y = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 4.0])
"""

NONZERO = """
@torch.library.custom_op("your_namespace::nonzero", mutates_args=())
def nonzero(x: torch.Tensor) -> torch.Tensor:
    return torch.nonzero(x).contiguous()

@torch.library.register_fake("your_namespace::nonzero")
def nonzero_fake(x):
    nnz = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty((nnz, x.dim()), dtype=torch.long)
"""

CASTING = """
seen = []

@torch.library.custom_op("your_namespace::scaled", mutates_args=())
def scaled(x: torch.Tensor, index: torch.Tensor, by: float) -> torch.Tensor:
    seen.append((str(x.dtype).partition(".")[2], str(index.dtype).partition(".")[2]))
    return x * by
"""

PROGRAMS = {
    # ---- defining and calling
    "custom_op_as_a_decorator": SIN
    + """
x = torch.tensor([0.5, 1.0])
result = sin(x), torch.ops.your_namespace.sin(x), torch.ops.your_namespace.sin.default(x), sin(torch.tensor(0.5))
""",
    "custom_op_as_a_function_with_a_schema": """
twice = torch.library.custom_op("your_namespace::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
result = twice(torch.tensor([1.0, 2.0])), twice(torch.tensor([3]))
""",
    "arguments_of_every_kind": """
from typing import Optional, Sequence

@torch.library.custom_op("your_namespace::f", mutates_args=())
def f(x: torch.Tensor, ys: Sequence[torch.Tensor], w: Optional[torch.Tensor], n: int, a: float, flag: bool, name: str,
      sizes: Sequence[int], dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    total = x * n + a + (1 if flag else 0) + len(name) + sum(sizes)
    for y in ys:
        total = total + y
    return total if w is None else total * w

x = torch.tensor([1.0, 2.0])
result = f(x, [x, x], None, 2, 0.5, True, "abc", [1, 2]), f(x, [], x, n=1, a=0.0, flag=False, name="", sizes=())
""",
    "several_results": """
from typing import Tuple

@torch.library.custom_op("your_namespace::split", mutates_args=())
def split(x: torch.Tensor, at: int) -> Tuple[torch.Tensor, torch.Tensor]:
    return x[:at].clone(), x[at:].clone()

result = split(torch.tensor([1.0, 2.0, 3.0]), 1)
""",
    "a_list_of_results": """
from typing import List

@torch.library.custom_op("your_namespace::rows", mutates_args=())
def rows(x: torch.Tensor) -> List[torch.Tensor]:
    return [row.clone() for row in x]

result = rows(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
""",
    "define_and_impl": DEFINED
    + """
result = mul_add(x, y), mul_add(x, y, 3.0), mul_add(x, y, n=7), mul_add.default(x, y, a=0.0, n=1)
""",
    "define_with_the_tag_that_says_compliant": """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("twice(Tensor x) -> Tensor", tags=[torch.Tag.pt2_compliant_tag])
lib.impl("twice", lambda x: x * 2, "CPU")
twice = torch.ops.your_namespace.twice
result = twice(torch.tensor([2.0])), torch.Tag.pt2_compliant_tag in twice.default.tags
""",
    "overloads_of_one_name": """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("add(Tensor x, Tensor y) -> Tensor")
lib.define("add.number(Tensor x, float y) -> Tensor")
lib.impl("add", lambda x, y: x + y, "CPU")
lib.impl("add.number", lambda x, y: x - y, "CPU")
x = torch.tensor([1.0])
add = torch.ops.your_namespace.add
result = add(x, x), add(x, 2.0), add.default(x, x), add.number(x, 3.0), add.overloads()
""",
    "a_composite_without_rules": """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("norm(Tensor x, int[] dims) -> Tensor")
lib.impl("norm", lambda x, dims: (x * x).sum(dims).sqrt(), "CompositeImplicitAutograd")
norm = torch.ops.your_namespace.norm
x = torch.tensor([[3.0, 4.0], [6.0, 8.0]], requires_grad=True)
y = norm(x, [1])
y.sum().backward()
result = y, x.grad, norm(torch.empty(2, 3, device="meta"), [0]), torch.vmap(lambda row: norm(row, [0]))(x.detach())
""",
    "a_kernel_that_serves_all_devices": """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("twice(Tensor x) -> Tensor")
lib.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
twice = torch.ops.your_namespace.twice
result = twice(torch.tensor([1.0])), twice(torch.empty(3, device="meta"))
""",
    "a_factory": """
@torch.library.custom_op("your_namespace::make", mutates_args=(), device_types="cpu")
def make(n: int, device: Device) -> torch.Tensor:
    return torch.ones(n)

result = make(2, torch.device("cpu"))
""",
    "a_second_definition_replaces_the_first": SIN
    + """
again = torch.library.custom_op("your_namespace::sin", lambda x: x + 5, mutates_args=(), schema="(Tensor x) -> Tensor")
result = again(torch.tensor([1.0]))
""",
    "a_kernel_before_the_definition": """
torch.library.impl("your_namespace::f", "default", lambda x: x + 1)
torch.library.define("your_namespace::f", "(Tensor x) -> Tensor")
result = torch.ops.your_namespace.f(torch.tensor([1.0]))
""",
    "a_library_of_kernels_beside_that_of_definitions": """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("f(Tensor x, int n=2, *, int m=3) -> Tensor")
lib.impl("f", lambda x, n=2, *, m=3: x * n * m, "CPU")
kernels = torch.library.Library("your_namespace", "IMPL", "AutogradCPU")
kernels.impl("f", torch.library.fallthrough_kernel)
x, f = torch.tensor([1.0]), torch.ops.your_namespace.f
result = f(x), f(x, 5), f(x, m=7), f.default(x, 1, m=1)
""",
    "older_forms_take_the_library": """
lib = torch.library.Library("your_namespace", "DEF")

@torch.library.define(lib, "f(Tensor x) -> Tensor")
def composite(x):
    return x + 1

lib.define("g(Tensor x) -> Tensor")

@torch.library.impl(lib, "g", "CPU")
def kernel(x):
    return x + 2

x = torch.tensor([1.0])
result = torch.ops.your_namespace.f(x), torch.ops.your_namespace.g(x), composite(x), kernel(x)
""",
    "a_library_that_was_collected_is_gone": """
import gc

lib = torch.library.Library("your_namespace", "DEF")
lib.define("f(Tensor x) -> Tensor")
lib.impl("f", lambda x: x + 1, "CPU")
assert torch.ops.your_namespace.f(torch.tensor([1.0])).tolist() == [2.0]
del lib
gc.collect()
torch.library.Library("your_namespace", "DEF")
torch.ops.your_namespace.f(torch.tensor([1.0]))
""",
    "an_input_that_is_returned": """
same = torch.library.custom_op("your_namespace::same", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
same(torch.tensor([1.0]))
""",
    "a_view_that_is_returned": """
rest = torch.library.custom_op("your_namespace::rest", lambda x: x[1:], mutates_args=(), schema="(Tensor x) -> Tensor")
rest(torch.tensor([1.0, 2.0]))
""",
    "one_result_twice": """
twice = torch.library.custom_op("your_namespace::twice", lambda x: [x + 1] * 2, mutates_args=(),
                                schema="(Tensor x) -> (Tensor, Tensor)")
twice(torch.tensor([1.0]))
""",
    "schemas_print_as_there": SIN
    + """
from typing import Optional, Sequence

def f(x: torch.Tensor, ys: Sequence[Optional[torch.Tensor]], n: int = 3, *, a: float = 0.5, s: str = "x") -> None:
    pass

result = torch.library.infer_schema(f, mutates_args={"x"}), str(torch.ops.your_namespace.sin.default._schema)
""",
    # ---- kernels by device
    "register_kernel_adds_devices": """
@torch.library.custom_op("your_namespace::halve", mutates_args=(), device_types="cpu")
def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2

@torch.library.register_kernel("your_namespace::halve", "cuda")
def _(x):
    return x * 0.5

@halve.register_kernel("meta")
def _(x):
    return torch.empty_like(x)

result = halve(torch.tensor([3.0])), halve(torch.empty(2, 3, device="meta"))
""",
    "the_newest_kernel_of_a_device_counts": SIN
    + """
sin.register_kernel("cpu", lambda x: x * 2)
torch.library.register_kernel("your_namespace::sin", ["meta", "cpu"], lambda x: x * 3)
result = sin(torch.tensor([1.0]))
""",
    "a_device_without_a_kernel_is_an_error": """
here = torch.library.custom_op("your_namespace::here", lambda x: x * 2, mutates_args=(), device_types="meta",
                               schema="(Tensor x) -> Tensor")
here(torch.tensor([1.0]))
""",
    "impl_for_several_devices": """
torch.library.define("your_namespace::negative", "(Tensor x) -> Tensor")

@torch.library.impl("your_namespace::negative", ("cpu", "cuda"))
def _(x):
    return -x

result = torch.ops.your_namespace.negative(torch.tensor([1.0, -2.0]))
""",
    "the_kernel_for_a_device_is_switched_off": SIN
    + """
sin.register_kernel("cpu", lambda x: x * 0)
x = torch.tensor([1.0])
with sin.set_kernel_enabled("cpu", enabled=False):
    off = sin(x)
result = off, sin(x)
""",
    "another_gradient_for_one_device": """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("twice(Tensor x) -> Tensor")
lib.impl("twice", lambda x: x * 2, "CPU")

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with below_autograd():
            return torch.ops.your_namespace.twice(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 20

lib.impl("twice", Twice.apply, "AutogradCPU")
x = torch.tensor([1.0], requires_grad=True)
y = torch.ops.your_namespace.twice(x)
y.sum().backward()
result = y, x.grad
""",
    # ---- shapes without data
    "register_fake_serves_meta": SIN
    + """
@torch.library.register_fake("your_namespace::sin")
def _(x):
    return torch.empty_like(x)

result = sin(torch.empty(2, 3, device="meta")), sin(torch.empty(3, 2, dtype=torch.float64, device="meta").t())
""",
    "impl_abstract_is_its_former_name": """
torch.library.define("your_namespace::outer", "(Tensor x, Tensor y) -> Tensor")

@torch.library.impl_abstract("your_namespace::outer")
def _(x, y):
    return x.new_empty((x.shape[0], y.shape[0]))

result = torch.ops.your_namespace.outer(torch.empty(2, device="meta"), torch.empty(3, device="meta"))
""",
    "fake_tensors_have_the_device_of_the_program": SIN
    + """
@sin.register_fake
def _(x):
    return torch.empty_like(x)

with fake_mode():
    there = sin(torch.empty(4, 5, 6, dtype=torch.float16).permute(2, 0, 1))
    result = there, sin(there[1:])
""",
    "a_fake_kernel_names_a_device": SIN
    + """
@sin.register_fake
def _(x):
    return torch.empty_like(x, device="meta")

with fake_mode():
    result = str(sin(torch.empty(4)).device)
""",
    "a_size_that_depends_on_data_is_a_symbol": NONZERO
    + """
x = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
with fake_mode():
    fake = nonzero(torch.empty(2, 2))
    again = nonzero(torch.empty(2, 2, 2))
result = nonzero(x), fake, again
""",
    "bounds_of_a_symbol_decide": """
@torch.library.custom_op("your_namespace::some", mutates_args=())
def some(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]

@some.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(min=3, max=8))

with fake_mode():
    n = some(torch.empty(9)).shape[0]
    result = bool(n >= 2), bool(n < 9), bool(n == 1)
""",
    "a_symbol_that_nothing_decides_is_an_error": NONZERO
    + """
with fake_mode():
    result = bool(nonzero(torch.empty(20)).shape[0] == 7)
""",
    "sizes_that_are_symbols_pass_a_fake_kernel": NONZERO
    + """
@torch.library.custom_op("your_namespace::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x], 1)

@doubled.register_fake
def _(x):
    return x.new_empty((x.shape[0], 2 * x.shape[1]))

with fake_mode():
    result = doubled(nonzero(torch.empty(5)))
""",
    "a_missing_fake_kernel_is_an_error": SIN
    + """
with fake_mode():
    result = sin(torch.empty(3))
""",
    "a_missing_fake_kernel_is_an_error_on_meta": SIN
    + """
sin(torch.empty(2, device="meta"))
""",
    "get_ctx_on_meta_has_no_dynamic_size": NONZERO
    + """
result = nonzero(torch.empty(3, device="meta"))
""",
    "a_size_must_have_number_bounds": """
@torch.library.custom_op("your_namespace::some", mutates_args=())
def some(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]

@some.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(min=-1))

with fake_mode():
    result = some(torch.empty(3))
""",
    # ---- gradients
    "register_autograd": SIN
    + GRADIENT
    + """
torch.library.register_autograd("your_namespace::sin", backward, setup_context=setup_context)
x = torch.tensor([0.5, 1.0], requires_grad=True)
sin(x).sum().backward()
(first,) = torch.autograd.grad(sin(x).sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
with torch.no_grad():
    quiet = sin(x).requires_grad
result = x.grad, first, second, quiet
""",
    "the_gradient_has_an_operator_of_its_own": SIN
    + """
@torch.library.custom_op("your_namespace::sin_backward", mutates_args=())
def sin_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return grad * torch.from_numpy(np.cos(x.numpy(force=True)))

def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])

sin.register_autograd(lambda ctx, grad: sin_backward(grad, *ctx.saved_tensors), setup_context=setup_context)
x = torch.tensor([0.5, 1.0], requires_grad=True)
(g,) = torch.autograd.grad(sin(x).sum(), x)
result = g, g.requires_grad
""",
    "numbers_and_needs_input_grad_in_the_context": DEFINED
    + """
seen = []

def setup_context(ctx, inputs, keyword_only_inputs, output):
    x, y, a = inputs
    ctx.a = a
    seen.append(keyword_only_inputs["n"])
    ctx.save_for_backward(x, y)

def backward(ctx, grad):
    x, y = ctx.saved_tensors
    seen.append(tuple(ctx.needs_input_grad))
    return grad * y * ctx.a, None, None

torch.library.register_autograd("your_namespace::mul_add", backward, setup_context=setup_context)
x.requires_grad_()
(mul_add(x, y, 3.0, n=5) + mul_add(x, y, 3.0)).sum().backward()
result = x.grad, y.grad, seen
""",
    "gradients_of_several_results": """
from typing import Tuple

@torch.library.custom_op("your_namespace::sin_cos", mutates_args=())
def sin_cos(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    return x.sin(), x.cos()

def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*output)

def backward(ctx, of_sin, of_cos):
    sin, cos = ctx.saved_tensors
    return of_sin * cos - of_cos * sin

sin_cos.register_autograd(backward, setup_context=setup_context)
x = torch.tensor([0.5, 1.0], requires_grad=True)
a, b = sin_cos(x)
(a * 2 + b).sum().backward()
only_one = torch.autograd.grad(sin_cos(x)[1].sum(), x)
result = x.grad, only_one
""",
    "gradients_of_a_list": """
from typing import List

@torch.library.custom_op("your_namespace::total", mutates_args=())
def total(xs: List[torch.Tensor], scale: float) -> torch.Tensor:
    return sum(x.sum() for x in xs) * scale

def setup_context(ctx, inputs, output):
    xs, ctx.scale = inputs
    ctx.shapes = [x.shape for x in xs]

def backward(ctx, grad):
    return [(grad * ctx.scale).expand(shape) for shape in ctx.shapes], None

total.register_autograd(backward, setup_context=setup_context)
xs = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([[3.0]], requires_grad=True)]
total(xs, 2.0).backward()
result = [x.grad for x in xs]
""",
    "gradients_of_lists_of_results": """
from typing import List

seen = []

@torch.library.custom_op("your_namespace::scaled", mutates_args=())
def scaled(xs: List[torch.Tensor], w: float) -> List[torch.Tensor]:
    return [x * w for x in xs]

def backward(ctx, grads):
    seen.append(ctx.needs_input_grad)
    return [g * ctx.w for g in grads], None

scaled.register_autograd(backward, setup_context=lambda ctx, inputs, output: setattr(ctx, "w", inputs[1]))
x, y = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0])
a, b = scaled([x, y], 3.0)
(a + b).sum().backward()
result = a, b, x.grad, seen
""",
    "the_newest_gradient_rule_counts": DEFINED
    + """
torch.library.register_autograd("your_namespace::mul_add", lambda ctx, grad: (grad * 2, None, None))
torch.library.register_autograd("your_namespace::mul_add", lambda ctx, grad: (grad * 3, None, None))
x.requires_grad_()
mul_add(x, y).sum().backward()
result = x.grad
""",
    "a_wrong_number_of_gradients_is_an_error": DEFINED
    + """
torch.library.register_autograd("your_namespace::mul_add", lambda ctx, grad: grad)
mul_add(x.requires_grad_(), y).sum().backward()
""",
    "a_result_that_is_not_differentiable": """
from typing import Tuple

@torch.library.custom_op("your_namespace::largest", mutates_args=())
def largest(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    value, index = x.max(0)
    return value.clone(), index.clone()

def setup_context(ctx, inputs, output):
    ctx.size = inputs[0].shape[0]
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])

def backward(ctx, grad, of_index):
    made = torch.zeros(ctx.size)
    made[ctx.saved_tensors[0]] = grad
    return made

largest.register_autograd(backward, setup_context=setup_context)
x = torch.tensor([1.0, 5.0, 2.0], requires_grad=True)
value, index = largest(x)
value.backward()
result = value, index, index.requires_grad, x.grad
""",
    "without_a_rule_backward_is_an_error": SIN
    + """
y = sin(torch.tensor([0.5], requires_grad=True))
result = y.requires_grad
y.sum().backward()
""",
    "gradcheck_passes_the_operator": SIN
    + GRADIENT
    + """
sin.register_autograd(backward, setup_context=setup_context)
x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
result = torch.autograd.gradcheck(sin, (x,)), torch.autograd.gradgradcheck(sin, (x,))
""",
    # ---- batches
    "register_vmap": SIN
    + """
@sin.register_vmap
def _(info, in_dims, x):
    return sin(x), in_dims[0]

x = torch.tensor([[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]])
result = torch.vmap(sin)(x), torch.vmap(sin, in_dims=1, out_dims=1)(x), torch.vmap(torch.vmap(sin))(x)
""",
    "vmap_with_arguments_that_are_not_batched": """
@torch.library.custom_op("your_namespace::mv", mutates_args=())
def mv(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (a * x).sum(-1)

seen = []

@torch.library.register_vmap("your_namespace::mv")
def _(info, in_dims, a, x):
    seen.append((info.batch_size, info.randomness, in_dims))
    a = a if in_dims[0] is None else a.movedim(in_dims[0], 0)
    x = x if in_dims[1] is None else x.movedim(in_dims[1], 0).unsqueeze(1)
    return (a * x).sum(-1), 0

a, x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, -1.0], [0.5, 2.0], [2.0, 0.0]])
result = torch.vmap(mv, in_dims=(None, 0))(a, x), torch.vmap(mv, in_dims=(1, None))(a.unsqueeze(1), x[0]), seen
""",
    "vmap_of_several_results": """
from typing import Tuple

@torch.library.custom_op("your_namespace::ends", mutates_args=())
def ends(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    return x[0].clone(), x[-1].clone()

@ends.register_vmap
def _(info, in_dims, x):
    x = x.movedim(in_dims[0], 0)
    return (x[:, 0].clone(), x[:, -1].clone()), (0, 0)

result = torch.vmap(ends, in_dims=1)(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
""",
    "vmap_without_a_rule_calls_each_example": SIN
    + """
result = torch.vmap(sin)(torch.tensor([[0.5], [1.0]]))
""",
    "a_wrong_number_of_out_dims_is_an_error": SIN
    + """
sin.register_vmap(lambda info, in_dims, x: (sin(x), (0, 0)))
result = torch.vmap(sin)(torch.tensor([[0.5], [1.0]]))
""",
    # ---- autocast
    "register_autocast_casts_floating_arguments": CASTING
    + """
torch.library.register_autocast("your_namespace::scaled", "cpu", torch.bfloat16)
x, index = torch.tensor([1.0, 2.0]), torch.tensor([1, 0])
with torch.autocast("cpu", dtype=torch.bfloat16):
    inside = scaled(x, index, 2.0)
outside = scaled(x, index, 2.0)
result = inside, outside, seen
""",
    "autocast_leaves_float64_and_disabled_blocks_alone": CASTING
    + """
scaled.register_autocast("cpu", torch.float16)
index = torch.tensor([1, 0])
with torch.autocast("cpu", dtype=torch.bfloat16):
    wide = scaled(torch.tensor([1.0, 2.0], dtype=torch.float64), index, 2.0)
    with torch.autocast("cpu", enabled=False):
        off = scaled(torch.tensor([1.0]), index, 2.0)
result = wide, off, seen
""",
    "autocast_and_gradients": CASTING
    + """
scaled.register_autocast("cpu", torch.bfloat16)
scaled.register_autograd(lambda ctx, grad: (grad * ctx.by, None, None),
                         setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[2]))
x = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = scaled(x, torch.tensor([0]), 3.0)
y.sum().backward()
result = y, x.grad
""",
    "autocast_for_another_device_does_nothing": CASTING
    + """
scaled.register_autocast("cuda", torch.float16)
with torch.autocast("cpu", dtype=torch.bfloat16):
    result = scaled(torch.tensor([1.0]), torch.tensor([1]), 2.0), seen
""",
    # ---- writes
    "a_declared_write": """
@torch.library.custom_op("your_namespace::sin_", mutates_args={"x"})
def sin_(x: torch.Tensor) -> None:
    x.copy_(x.sin())

x = torch.tensor([0.5, 1.0])
before = x._version
given = sin_(x)
result = x, given, x._version > before
""",
    "an_output_buffer": """
@torch.library.custom_op("your_namespace::add_into", mutates_args={"out"})
def add_into(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    torch.add(x, y, out=out)

out = torch.zeros(4)
add_into(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), out[1:3])
result = out, str(torch.ops.your_namespace.add_into.default._schema)
""",
    "a_write_that_a_gradient_needs_is_an_error": """
@torch.library.custom_op("your_namespace::zero", mutates_args={"x"})
def zero(x: torch.Tensor) -> None:
    x.zero_()

w = torch.tensor([2.0], requires_grad=True)
x = torch.tensor([3.0])
y = w * x
zero(x)
y.sum().backward()
""",
    "every_argument_may_be_written": """
@torch.library.custom_op("your_namespace::swap", mutates_args="unknown")
def swap(x: torch.Tensor, y: torch.Tensor) -> None:
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)

x, y = torch.tensor([1.0]), torch.tensor([2.0])
swap(x, y)
result = x, y, str(torch.ops.your_namespace.swap.default._schema)
""",
    # ---- opcheck
    "opcheck_of_sample_inputs": """
samples = [(torch.tensor([0.5, 1.0, 2.0], requires_grad=True),), (torch.tensor([[0.5, 1.0]]),)]
result = [torch.library.opcheck(torch.ops.aten.sin.default, args) for args in samples]
""",
    "opcheck_of_a_complete_operator": SIN
    + GRADIENT
    + """
sin.register_autograd(backward, setup_context=setup_context)
sin.register_fake(lambda x: torch.empty_like(x))
result = torch.library.opcheck(sin, (torch.tensor([0.5, 1.0], requires_grad=True),))
""",
    "opcheck_of_a_size_that_depends_on_data": NONZERO
    + """
result = torch.library.opcheck(nonzero, (torch.tensor([[1.0, 0.0], [2.0, 3.0]]),))
""",
    "opcheck_finds_a_missing_fake_kernel": SIN
    + """
result = torch.library.opcheck(sin, (torch.tensor([0.5]),), test_utils="test_faketensor", raise_exception=False)
""",
    "opcheck_finds_a_wrong_fake_kernel": SIN
    + """
sin.register_fake(lambda x: x.new_empty(x.shape[0] + 1))
result = torch.library.opcheck(sin, (torch.tensor([0.5, 1.0]),), test_utils="test_faketensor", raise_exception=False)
""",
    "opcheck_finds_an_undeclared_write": """
@torch.library.custom_op("your_namespace::careless", mutates_args=())
def careless(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2

result = torch.library.opcheck(careless, (torch.tensor([0.5]),), test_utils="test_schema", raise_exception=False)
""",
    "opcheck_finds_an_input_that_is_returned": """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("same(Tensor x) -> Tensor")
lib.impl("same", lambda x: x, "CPU")
result = torch.library.opcheck(torch.ops.your_namespace.same.default, (torch.tensor([0.5]),), test_utils="test_schema",
                               raise_exception=False)
""",
    "opcheck_raises": """
@torch.library.custom_op("your_namespace::careless", mutates_args=())
def careless(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2

result = torch.library.opcheck(careless, (torch.tensor([0.5]),))
""",
    # ---- modes
    "a_rule_for_a_mode": SIN
    + """
seen = []

@sin.register_torch_dispatch(Mode)
def _(mode, func, types, args, kwargs):
    seen.append((isinstance(mode, Mode), len(args), kwargs))
    return func(*args, **kwargs) * 10

with Mode():
    result = sin(torch.tensor([0.5])), seen
""",
}

# The programs that are errors, in PyTorch and here, with words of both errors.
ERRORS = {
    "a_symbol_that_nothing_decides_is_an_error": (
        "data-dependent expression Eq(u0, 7)",
        "u0 == 7 cannot be decided without data",
    ),
    "a_missing_fake_kernel_is_an_error": ("no fake impl registered", "no fake kernel"),
    "get_ctx_on_meta_has_no_dynamic_size": ("data-dependent shape", "a size that depends on data"),
    "a_size_must_have_number_bounds": ("expected min to be greater than or equal to 0", "must be ints with 0 <= min"),
    "without_a_rule_backward_is_an_error": ("no autograd formula was registered", "no gradient is implemented"),
    "a_wrong_number_of_out_dims_is_an_error": ("Expected out_dims=(0, 0) to be compatible", "they are (0, 0)"),
    "a_write_that_a_gradient_needs_is_an_error": ("modified by an inplace operation", "was changed in place"),
    "a_library_that_was_collected_is_gone": ("has no attribute 'f'", "no operators in namespace"),
    "an_input_that_is_returned": ("may not alias any inputs", "the result is x"),
    "a_view_that_is_returned": ("may not alias any inputs", "the result shares memory with x"),
    "one_result_twice": ("or other returns", "result 1 is result 0"),
    "a_device_without_a_kernel_is_an_error": ("Could not run", "no kernel for CPU"),
    "a_missing_fake_kernel_is_an_error_on_meta": ("There was no fake impl registered", "no fake kernel"),
    "a_wrong_number_of_gradients_is_an_error": ("incorrect number of gradients", "returned 1 value for 3 inputs"),
    "opcheck_raises": ("Argument x is not defined as mutable", "the operator writes x"),
}

# differs from torch: transforms of operators from `custom_op` work, and a declared write is functionalised. PyTorch refuses both.
# Each result is a pair: through the operator, and without it.
ONLY_HERE = {
    "gradients_of_the_functional_form": SIN
    + GRADIENT
    + """
sin.register_autograd(backward, setup_context=setup_context)
x = torch.tensor([0.5, 1.0])
result = [(torch.func.grad(lambda x: f(x).sum())(x), torch.func.vjp(f, x)[1](torch.tensor([1.0, 2.0]))) for f in (sin, torch.sin)]
""",
    "vmap_of_a_gradient": SIN
    + GRADIENT
    + """
sin.register_autograd(backward, setup_context=setup_context)

@sin.register_vmap
def _(info, in_dims, x):
    return sin(x), in_dims[0]

x = torch.tensor([[0.5, 1.0], [2.0, 3.0]])
result = [torch.vmap(torch.func.grad(lambda x: f(x).sum()))(x) for f in (sin, torch.sin)]
""",
    "functionalize_makes_a_declared_write_a_copy": """
@torch.library.custom_op("your_namespace::scale_", mutates_args={"x"})
def scale_(x: torch.Tensor, by: float) -> None:
    x.mul_(by)

def f(x):
    y = x.clone()
    scale_(y[:1], 3.0)
    return y

result = [g(torch.tensor([1.0, 2.0])) for g in (torch.func.functionalize(f), f)]
""",
}

# differs from torch: a kernel's own `autograd.Function` records nothing below Autograd, and backward is an error that names the
# operator. In PyTorch it records in eager programs and not in compiled ones, which its `opcheck` reports.
BELOW_AUTOGRAD = """
lib = torch.library.Library("your_namespace", "DEF")
lib.define("cube(Tensor x) -> Tensor")

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        return grad

lib.impl("cube", Cube.apply, "CPU")
lib.impl("cube", lambda x: torch.empty_like(x), "Meta")
cube = torch.ops.your_namespace.cube.default
x = torch.tensor([0.5], requires_grad=True)
report = torch.library.opcheck(cube, (x,), test_utils="test_autograd_registration", raise_exception=False)
try:
    cube(x).sum().backward()
except RuntimeError:
    pass
result = report, x.grad
"""
