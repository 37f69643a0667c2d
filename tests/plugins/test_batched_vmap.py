"""vmap: what it takes and returns, how it fails, which operators loop, and that nothing of it is left behind."""

# ruff: noqa: E501 - rows of tables

from __future__ import annotations

import asyncio
import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from turnout.func import grad, hessian, vmap

import turnout
from outcomes import in_threads, refused
from own_functions import Doubled
from turnout import func, state
from turnout.errors import AliasError, ShapeError, TurnoutError
from turnout_aten.nn.losses import REDUCTIONS
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_batched.errors import LoopWarning, VmapError


def matrix() -> turnout.Tensor:
    return turnout.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def vector() -> turnout.Tensor:
    return turnout.tensor([1.0, 2.0, 3.0])


def untouched() -> bool:
    return LEVELS.get() == () and (*GRAD.get(),) == (1, 1) and (*state.DISPATCH.get(),) == state.FRESH


# ---- arguments and results


def test_nested_arguments_and_results_keep_their_structure() -> None:
    Pair = namedtuple("Pair", "left right")

    def function(tree: Any, scale: float) -> Any:
        return Pair(tree["a"][0] * scale, [tree["b"], {"sum": tree["a"][0].sum()}])

    tree = {"a": (matrix(), 7), "b": vector()}
    made = vmap(function, ({"a": (0, None), "b": None}, None), Pair(1, [None, 0]))(tree, 2.0)
    assert type(made) is Pair
    assert made.left.tolist() == [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]
    assert made.right[0].tolist() == [1.0, 2.0, 3.0]
    assert made.right[1]["sum"].tolist() == [6.0, 15.0]


def test_keyword_arguments_are_passed_as_they_are() -> None:
    assert vmap(lambda x, *, by: x * by)(vector(), by=vector()).shape == (3, 3)


def test_an_unbatched_result_is_repeated_where_out_dims_says() -> None:
    assert vmap(lambda x: vector() * 2, out_dims=1)(matrix()).tolist() == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    assert vmap(lambda x: vector() * 2, out_dims=None)(matrix()).tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("size", [1, None])
def test_one_result_may_have_its_dim_in_a_tuple(size: int | None) -> None:
    assert vmap(lambda x: x * 2, out_dims=(1,), chunk_size=size)(matrix()).tolist() == (matrix() * 2).t().tolist()
    assert vmap(lambda x: vector() * 2, out_dims=(None,), chunk_size=size)(matrix()).tolist() == (vector() * 2).tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_chunks_give_what_all_at_once_gives(size: int) -> None:
    x = turnout.arange(15).reshape(5, 3)
    assert vmap(lambda r, c: (r * c, r.sum()), (0, None), (1, 0), chunk_size=size)(x, 2)[0].tolist() == (x * 2).t().tolist()


def test_an_example_looks_like_a_tensor_of_its_own() -> None:
    def function(x: turnout.Tensor) -> turnout.Tensor:
        assert isinstance(x, turnout.Tensor)
        assert (x.shape, x.ndim, x.numel(), x.size(0), len(x)) == ((3,), 1, 3, 3, 3)
        assert (x.dtype, x.device.type, x.stride(), x.is_contiguous()) == (turnout.float32, "cpu", (1,), True)
        assert [e.shape for e in x] == [()] * 3
        assert repr(x).startswith("<one of 2 examples: float32 [3] of vmap level ")
        return x

    assert vmap(function)(matrix()).tolist() == matrix().tolist()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: vmap(3), "vmap: argument 'func' must be callable, got int"),
        (lambda: vmap(turnout.sin, randomness="maybe"), "vmap: randomness must be 'error', 'same' or 'different', got 'maybe'"),
        (lambda: vmap(turnout.sin, chunk_size=0), "vmap: chunk_size must be an integer above 0, or None, got 0"),
        (lambda: vmap(turnout.sin)(), "vmap: the mapped function got no arguments, so nothing says how many examples there are"),
        (lambda: vmap(turnout.sin, None)(matrix()), "vmap: in_dims is None for every tensor, so nothing says how many examples there are"),
        (lambda: vmap(turnout.add, (0,))(matrix(), matrix()), "vmap: in_dims has 1 entries for 2 positional arguments"),
        (lambda: vmap(turnout.sin, ((0, 0),))(matrix()), "vmap: in_dims does not have the structure of the arguments"),
        (lambda: vmap(turnout.sin, ("0",))(matrix()), "vmap: in_dims of argument [0] must be an int or None, got '0'"),
        (lambda: vmap(turnout.sin, 2)(matrix()), "vmap: in_dims says 2 for argument [0], which has 2 dimension(s)"),
        (lambda: vmap(turnout.mul)(matrix(), 2.0), "vmap: in_dims says 0 for argument [1], which has type float and is not a tensor; use None for it"),
        (
            lambda: vmap(lambda t: t["a"][1])({"a": (matrix(), vector())}),
            "vmap: the mapped dims have different lengths: argument [0]['a'][0] has 2, argument [0]['a'][1] has 3",
        ),
        (lambda: vmap(lambda x: (x, 3))(matrix()), "vmap: the mapped function must return tensors where out_dims is not None; the result[1] is int"),
        (lambda: vmap(turnout.sin, out_dims=(0, 0))(matrix()), "vmap: out_dims does not have the structure of the result"),
        (lambda: vmap(turnout.sin, out_dims=2)(matrix()), "vmap: out_dims says 2 for the result, which has 2 dimension(s)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call: Any, text: str) -> None:
    assert refused(ValueError, call) == text
    assert untouched()


# ---- what a batch cannot do

NO_VALUE = (
    ": inside vmap a tensor stands for all examples and has no value of its own, so Python cannot read or branch on it\n"
    "  to fix  use turnout.where for a choice, or do this outside of vmap"
)
NO_MEMORY = ": a tensor inside vmap does not have an array of its own\n  to fix  return it from the mapped function, and convert the result"
IMPERATIVE = (
    " is not possible on a tensor inside vmap\n"
    "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x.tolist(), "tolist()" + NO_VALUE),
        (lambda x: x.numpy(), "numpy()" + NO_MEMORY),
        (lambda x: x.backward(), "backward()" + IMPERATIVE),
        (lambda x: x.retain_grad(), "retain_grad()" + IMPERATIVE),
        (lambda x: setattr(x, "grad", x), "setting .grad" + IMPERATIVE),
        (lambda x: x.nonzero(), "aten::nonzero: the shape of its result depends on values, which vmap cannot give for each example"),
        (lambda x: x[x > 2], "index: the shape of its result depends on values, which vmap cannot give for each example"),
        (lambda x: x.resize_(4), "aten::resize_: the memory of all examples would change its size, which vmap cannot give for each example"),
        (lambda x: x.resize_as_(x), "aten::resize_as_: the memory of all examples would change its size, which vmap cannot give for each example"),
    ],
)  # fmt: skip
def test_what_needs_one_value_is_refused(function: Any, text: str) -> None:
    assert refused(TurnoutError, vmap(function), matrix()) == text
    assert untouched()


def test_detach_in_place_is_detach() -> None:
    def constant_factor(x: turnout.Tensor) -> turnout.Tensor:
        y = x * 2
        assert y.detach_() is y
        assert not y.requires_grad
        return (y * x).sum()

    x = matrix().double()
    assert vmap(turnout.func.grad(constant_factor))(x).tolist() == (x * 2).tolist()
    assert turnout.func.grad(lambda m: vmap(constant_factor)(m).sum())(x).tolist() == (x * 2).tolist()
    assert refused(turnout.errors.AliasError, lambda: vmap(lambda row: row.detach_())(x.requires_grad_())).startswith(
        "detach_: a view cannot be detached in place"
    )
    assert untouched()


@pytest.mark.parametrize(
    "write",
    [
        lambda c, x: c.copy_(x), lambda c, x: c.add_(x), lambda c, x: c.index_add_(0, turnout.tensor([0, 1, 2]), x),
        lambda c, x: turnout.sin(x, out=c), lambda c, x: c.addcmul_(x, x),
    ],
)  # fmt: skip
def test_examples_cannot_be_written_into_what_they_share(write: Any) -> None:
    shared = turnout.zeros(3)
    text = "is not batched by this vmap, but the values to be written are"
    assert text in refused(VmapError, vmap(lambda x: write(shared, x)), matrix())
    assert shared.tolist() == [0.0, 0.0, 0.0]
    assert text in refused(VmapError, vmap(lambda x: vmap(lambda y: write(x, y))(turnout.stack([x, x]))), matrix())


def test_a_tensor_with_more_dims_than_an_example_is_not_broadcast_onto_the_batch() -> None:
    # The two rows of `matrix()` must not meet the two examples.
    assert vmap(lambda x: x + matrix())(matrix()).shape == (2, 2, 3)
    refused(ShapeError, vmap(lambda x: x.clone().add_(matrix())), matrix())


def test_masked_assignment_writes_where_each_example_says() -> None:
    def function(x: turnout.Tensor) -> turnout.Tensor:
        y = x.clone()
        y[y > 2] = 0
        return y

    assert vmap(function)(matrix()).tolist() == [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]


# ---- escaped tensors


def test_a_tensor_of_an_earlier_vmap_is_refused() -> None:
    kept: list[turnout.Tensor] = []
    vmap(lambda x: (kept.append(x), x)[1])(matrix())
    for use in (
        lambda: kept[0] * 2,
        lambda: vmap(lambda x: x + kept[0])(matrix()),
        lambda: vmap(lambda x: kept[0])(matrix()),
        lambda: turnout.cat([kept[0], vector()]),
        lambda: vmap(grad(lambda x: (x * kept[0]).sum()))(matrix()),
    ):
        assert refused(VmapError, use).endswith(
            "is used outside of it: after the mapped function returned, or in another thread\n"
            "  to fix  return it from the mapped function"
        )


# ---- errors and concurrency


@pytest.mark.parametrize(
    "run",
    [
        lambda f: grad(f)(vector()), lambda f: vmap(f)(matrix()), lambda f: vmap(grad(f))(matrix()),
        lambda f: grad(lambda m: vmap(f)(m).sum())(matrix()), lambda f: hessian(f)(vector()),
    ],
)  # fmt: skip
def test_an_exception_leaves_the_state_as_it_was(run: Any) -> None:
    def function(x: turnout.Tensor) -> turnout.Tensor:
        raise KeyError("from the function")

    assert refused(KeyError, run, function) == "'from the function'"
    assert untouched()
    assert run(lambda x: (x * x).sum()) is not None


def test_threads_and_tasks_do_not_see_each_other() -> None:
    def work() -> list[Any]:
        return vmap(hessian(lambda x: (x * x * x).sum()))(matrix()).tolist()

    expected = work()
    found = in_threads(*[work] * 4)

    async def mapped() -> None:
        for _ in range(3):
            found.append(work())
            await asyncio.sleep(0)

    async def silent() -> None:
        with turnout.no_grad():
            for _ in range(6):
                await asyncio.sleep(0)
                assert not turnout.is_grad_enabled()

    async def together() -> None:
        await asyncio.gather(mapped(), silent(), mapped())

    asyncio.run(together())
    assert len(found) == 10
    assert all(each == expected for each in found)
    assert untouched()


# ---- loops


def test_an_operator_without_a_rule_loops_with_one_warning_and_is_counted() -> None:
    with turnout.library.Library("batchedloop", "DEF") as library:
        library.define("twice(Tensor x, int times) -> Tensor")
        library.impl("twice", lambda x, times: x * times, "CompositeExplicitAutograd")
        twice = turnout.ops.batchedloop.twice
        with pytest.warns(UserWarning, match="batchedloop::twice has no batching rule") as caught:
            assert vmap(lambda x: twice(x, 3), 1)(matrix()).tolist() == (matrix() * 3).t().tolist()
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vmap(lambda x: twice(x, 3))(matrix())
        assert func.loop_counts()["batchedloop::twice"] == 2
        assert "no batching rule" in refused(TurnoutError, vmap(lambda x: twice(x, 3)), turnout.zeros(0, 3))


@pytest.mark.filterwarnings("ignore:batchedloop.*has no batching rule")
def test_a_loop_is_counted_once_for_each_call_and_differentiates() -> None:
    @turnout.library.custom_op("batchedloop::cube", mutates_args=())
    def cube(x: turnout.Tensor) -> turnout.Tensor:
        return turnout.from_numpy(x.detach().numpy() ** 3)

    cube.register_autograd(
        lambda ctx, g: 3 * g * ctx.saved_tensors[0] * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    m = matrix()
    count = lambda: func.loop_counts().get("batchedloop::cube", 0)  # noqa: E731

    def counted(call: Any) -> Any:
        before = count()
        return call().tolist(), count() - before

    assert counted(lambda: vmap(cube)(m)) == ((m**3).tolist(), 1)
    assert counted(lambda: vmap(cube, 1, 1)(m)) == ((m**3).tolist(), 1)
    assert counted(lambda: vmap(grad(lambda x: cube(x).sum()))(m)) == ((3 * m * m).tolist(), 1)
    assert counted(lambda: grad(lambda m: vmap(cube)(m).sum())(m)) == ((3 * m * m).tolist(), 1)
    # The loop over two outer examples calls the operator inside of the inner vmap: that loops for each.
    assert counted(lambda: vmap(vmap(cube))(turnout.stack([m, m]))) == ([(m**3).tolist()] * 2, 3)
    leaf = matrix().requires_grad_()
    vmap(cube)(leaf).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == (3 * m * m).tolist()
    shared = vector().requires_grad_()
    vmap(lambda x: cube(shared) * x)(m).sum().backward()
    assert shared.grad is not None
    assert shared.grad.tolist() == (3 * vector() * vector() * m.sum(0)).tolist()
    cube.undo()


# ---- what would need more memory


def test_an_output_of_another_shape_is_refused() -> None:
    text = "aten::add.Scalar_out: inside vmap 'out' must have the result's shape [3] already; it has [2]"
    assert refused(TurnoutError, vmap(lambda x: turnout.add(x, 1, out=x.new_empty((2,)))), matrix()) == text
    assert untouched()


# ---- autograd.Function


class Square(turnout.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: turnout.Tensor) -> turnout.Tensor:
        assert x.shape == (3,)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: turnout.Tensor) -> turnout.Tensor:
        (x,) = ctx.saved_tensors
        assert g.shape == x.shape == (3,)
        return 2 * x * g


def test_a_function_with_its_own_gradient_sees_one_example() -> None:
    m = matrix()
    assert vmap(Square.apply)(m).tolist() == (m * m).tolist()
    assert vmap(grad(lambda x: Square.apply(x).sum()))(m).tolist() == (2 * m).tolist()
    assert grad(lambda m: vmap(Square.apply)(m).sum())(m).tolist() == (2 * m).tolist()
    assert vmap(hessian(lambda x: Square.apply(x).sum()))(m)[0].tolist() == [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    leaf = matrix().requires_grad_()
    vmap(Square.apply)(leaf).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == (2 * m).tolist()


def test_a_function_whose_saved_tensor_was_changed_is_an_error() -> None:
    leaf = matrix().requires_grad_()
    x = leaf * 1
    y = vmap(Square.apply)(x)
    x.mul_(2)
    refused(AliasError, y.sum().backward)


def test_a_function_that_writes_into_its_input_is_refused() -> None:
    assert refused(TurnoutError, vmap(Doubled.apply), matrix()) == (
        "Doubled: mark_dirty is not possible inside vmap; return a new tensor from forward"
    )
    assert untouched()


FORMATS: dict[str, Callable[[turnout.Tensor, Any], turnout.Tensor]] = {
    "to": lambda x, f: x.to(memory_format=f),
    "to another dtype": lambda x, f: x.to(turnout.float64, memory_format=f),
    "double": lambda x, f: x.double(memory_format=f),
    "clone": lambda x, f: x.clone(memory_format=f),
    "contiguous": lambda x, f: x.contiguous(memory_format=f),
    "zeros_like": lambda x, f: turnout.zeros_like(x, memory_format=f),
    "full_like": lambda x, f: turnout.full_like(x, 2, memory_format=f),
}


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize(("memory_format", "ndim"), [("channels_last", 4), ("channels_last_3d", 5), ("contiguous_format", 3)])
def test_each_example_gets_a_memory_format(how: str, memory_format: str, ndim: int) -> None:
    call = FORMATS[how]
    x = turnout.arange(2.0 * 3**ndim).reshape(2, *(3,) * ndim)
    for dim in (0, 2):
        batch = x.movedim(0, dim)
        made = turnout.vmap(call, in_dims=(dim, None))(batch, memory_format)
        single = call(x[0], memory_format)
        assert made.dtype is single.dtype
        assert turnout.equal(made[1], call(x[1], memory_format))
        assert made[0].stride() == single.stride()


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (0, 3, 4, 5), (2, 1, 2, 3, 4, 5)])
def test_examples_with_other_dims_than_a_memory_format_needs_are_refused(how: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(turnout.errors.ArgumentError, match=r"channels_last needs 4 dimensions, got shape \[" + f"{shape[1]}, "):
        turnout.vmap(lambda x: FORMATS[how](x, "channels_last"))(turnout.ones(shape))


def test_a_write_to_an_example_counts_at_its_batch() -> None:
    seen = []

    def f(x: turnout.Tensor) -> turnout.Tensor:
        seen.append(x._version)
        x.mul_(2)
        seen.append(x._version)
        return x

    turnout.vmap(f)(turnout.ones(3, 2))
    assert seen == [0, 1]


# ---- operands that differ in rank

TRIANGLES = turnout.tensor([[[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [k, -1.0, 4.0]] for k in (0.5, 2.0, -1.0)])
COLUMNS = turnout.arange(9.0).reshape(3, 3, 1) - 4
PIVOTS = turnout.tensor([[1, 2, 3]] * 3, dtype=turnout.int32)


@pytest.mark.parametrize("solve", [
    lambda b: turnout.linalg.solve_triangular(TRIANGLES, b, upper=False),
    lambda b: turnout.cholesky_solve(b, TRIANGLES),
    lambda b: turnout.triangular_solve(b, TRIANGLES, upper=False)[0],
    lambda b: turnout.linalg.ldl_solve(TRIANGLES, PIVOTS, b),
    lambda b: turnout.linalg.pinv(TRIANGLES[0], atol=b, rtol=0 * b),
    lambda b: turnout.linalg.lstsq(TRIANGLES[0], b.expand(2, 3, 1))[2],
])  # fmt: skip
def test_solvers_broadcast_a_stack_of_matrices_with_each_example(solve: Callable[[turnout.Tensor], turnout.Tensor]) -> None:
    assert turnout.allclose(vmap(solve)(COLUMNS), turnout.stack([solve(b) for b in COLUMNS]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dims", [(0, 0, 0, 0), (None, None, 0, None), (0, None, None, 0)])
@pytest.mark.parametrize("form", ["rows", "one after the other", "alone"])
def test_ctc_loss_takes_the_lengths_of_each_example(form: str, dims: Any, reduction: str) -> None:
    scores = turnout.arange(4 * 6 * 2 * 5.0).reshape(4, 6, 2, 5).sin().log_softmax(-1)
    labels = turnout.arange(4 * 2 * 3).reshape(4, 2, 3) % 4 + 1
    ins, outs = turnout.tensor([[6, 5], [4, 6], [5, 5], [6, 4]]), turnout.tensor([[1, 3], [2, 2], [3, 1], [2, 2]])
    if form == "one after the other":
        labels = labels.reshape(4, 6)[:, :4]
    elif form == "alone":
        scores, labels, ins, outs = scores[:, :, 0], labels[:, 0], ins[:, 0], outs[:, 0]
    given = [v if d == 0 else v[0] for v, d in zip((scores, labels, ins, outs), dims, strict=True)]
    call = lambda *args: turnout.nn.functional.ctc_loss(*args, reduction=reduction)  # noqa: E731
    loop = [call(*[v if d is None else v[i] for v, d in zip(given, dims, strict=True)]) for i in range(4)]
    assert turnout.allclose(vmap(call, dims)(*given), turnout.stack(loop))


def test_results_that_are_no_tensors_are_returned_where_out_dims_is_none() -> None:
    for chunk_size in (None, 1):
        made = vmap(lambda x: (x * 2, {"rows": 3}, None), out_dims=(0, None, None), chunk_size=chunk_size)(matrix())
        assert made[0].tolist() == (matrix() * 2).tolist()
        assert made[1:] == ({"rows": 3}, None)


@pytest.mark.parametrize(("call", "shapes", "expected"), [
    (lambda x, w: turnout.nn.functional.conv2d(x, w), [(1, 2, 4, 4), (3, 2, 2, 2)], (1, 3, 3, 3)),
    (lambda x, w: turnout.nn.functional.conv_transpose1d(x, w, w.sum((0, 2))), [(1, 2, 4), (2, 2, 2)], (1, 2, 5)),
    (lambda x: turnout.searchsorted(x, 2.0), [(4,)], ()),
    (lambda x: turnout.nn.functional.max_pool2d(x, 2), [(1, 2, 4, 4)], (1, 2, 2, 2)),
    (lambda x, w: turnout.nn.functional.group_norm(x, 2, w), [(3, 4, 2), (4,)], (3, 4, 2)),
])  # fmt: skip
def test_no_examples_give_no_results_of_the_shape_of_one(call: Any, shapes: Any, expected: tuple[int, ...]) -> None:
    assert vmap(call)(*[turnout.zeros(0, *shape) for shape in shapes]).shape == (0, *expected)


def test_an_operator_without_a_rule_is_named_once_at_the_line_of_the_program():
    with turnout.library.Library("loops", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CPU")
        with pytest.warns(LoopWarning) as told:
            made = [vmap(turnout.ops.loops.twice)(turnout.ones(2, 3)) for _ in range(2)]
        assert [x.tolist() for x in made] == [[[2.0] * 3] * 2] * 2
    (warning,) = told
    assert warning.filename == __file__
    assert str(warning.message) == "loops::twice has no batching rule: it runs once per example (said once per operator)"
