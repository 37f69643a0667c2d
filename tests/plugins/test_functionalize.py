"""`turnout.func.functionalize`: what a function without writes computes, traces, returns and refuses."""

from __future__ import annotations

import itertools
import subprocess
import sys
from functools import partial

import pytest
from turnout.func import functionalize

import turnout
from collector import collect_new, collector_off, new_objects
from outcomes import in_threads, refused
from turnout import Tensor, library
from turnout.errors import AliasError, DTypeError, ShapeError
from turnout.state import DISPATCH
from turnout_functionalize.errors import FunctionalizeError
from turnout_functionalize.regions import REGION
from turnout_functionalize.transform import REMOVE
from turnout_functionalize.values import FunctionalTensor

kinds = pytest.mark.parametrize("remove", REMOVE)


def graph_of(function, *inputs, remove="mutations"):
    return turnout.trace(functionalize(function, remove=remove))(*inputs)


def names(graph):
    return [node.op.qualified_name.removeprefix("aten::") for node in graph.nodes]


def square():
    return turnout.arange(9.0).reshape(3, 3) + 1


# ---- traces


def written_views(x):
    y = x.clone()
    y[0].mul_(2)
    y.t()[1].add_(1)
    return y


def test_a_trace_has_functional_operators_and_views_made_anew():
    assert names(graph_of(written_views, square())) == [
        "clone", "select.int", "mul.Scalar", "select_scatter", "t", "select.int", "add.Scalar", "t", "select_scatter", "t",
    ]  # fmt: skip


def test_a_trace_without_views_has_copies():
    assert names(graph_of(written_views, square(), remove="mutations_and_views")) == [
        "clone", "select_copy.int", "mul.Scalar", "select_scatter", "t_copy", "select_copy.int", "add.Scalar", "t_copy",
        "select_scatter", "t_copy",
    ]  # fmt: skip


@kinds
def test_a_written_argument_is_copied_back_once_at_the_end(remove):
    def function(x):
        x.mul_(2)
        x[0].add_(1)

    graph = graph_of(function, square(), remove=remove)
    assert names(graph).count("copy_") == 1
    assert names(graph)[-1] == "copy_"
    x = square()
    graph(x)
    expected = square()
    function(expected)
    assert x.tolist() == expected.tolist()


def test_a_step_of_training_has_one_write():
    def step(weight, x):
        loss = (x @ weight).square().sum()
        loss.backward()
        with turnout.no_grad():
            weight.sub_(weight.grad, alpha=0.1)
        weight.grad = None
        return loss

    ours, theirs = (turnout.ones(3, 1, requires_grad=True) for _ in range(2))
    expected = step(theirs, square())
    found = functionalize(step)(ours, square())
    assert found.tolist() == expected.tolist()
    assert ours.tolist() == theirs.tolist()
    assert ours.requires_grad
    assert ours.is_leaf
    assert ours.grad is None
    graph = graph_of(step, turnout.ones(3, 1, requires_grad=True), square())
    assert [name for name in names(graph) if name.endswith("_")] == ["copy_"]


def test_two_steps_in_one_function_write_into_the_same_leaf():
    def steps(weight):
        for _ in range(2):
            (weight * weight).sum().backward()
            with turnout.no_grad():
                weight.sub_(weight.grad)
                weight.grad = None
        return weight.requires_grad, weight.is_leaf

    ours, theirs = (turnout.ones(3, requires_grad=True) for _ in range(2))
    assert functionalize(steps)(ours) == steps(theirs) == (True, True)
    assert ours.tolist() == theirs.tolist()


def test_random_operators_draw_what_they_draw_in_place():
    def function():
        return turnout.empty(3).normal_(), turnout.zeros(3).uniform_(), turnout.zeros(3).bernoulli_(0.5)

    turnout.manual_seed(3)
    expected = [each.tolist() for each in function()]
    turnout.manual_seed(3)
    assert [each.tolist() for each in functionalize(function)()] == expected
    assert not [name for name in names(graph_of(function)) if name.endswith("_")]


# ---- aliases


@kinds
def test_arguments_over_one_memory_see_each_others_writes(remove):
    def function(x, row, again):
        row.zero_()
        x[1].mul_(2)
        return x + again

    def called(make):
        x = square()
        return make(function)(x, x[0], x.detach()).tolist(), x.tolist()

    assert called(lambda f: functionalize(f, remove=remove)) == called(lambda f: f)


@kinds
def test_a_captured_tensor_is_written_and_read_as_it_stands(remove):
    def called(make):
        captured = square()
        row = captured[1]

        def function(x):
            captured.add_(x)
            row.mul_(captured[0])
            return captured * 1, row + 1

        found = [each.tolist() for each in make(function)(turnout.ones(3, 3))]
        return found, captured.tolist(), row.tolist(), captured._version > 0

    assert called(lambda f: functionalize(f, remove=remove)) == called(lambda f: f)


def test_an_argument_that_is_returned_is_the_argument():
    x = square()
    assert functionalize(lambda x: x)(x) is x
    assert functionalize(lambda x: x.mul_(2))(x) is x
    assert functionalize(lambda x: [x.contiguous()])(x)[0] is x


def test_results_share_memory_as_those_of_the_function_do():
    def function(x):
        x.mul_(2)
        y = x.clone()
        y.add_(1)
        return x[0], y, y[1]

    x = square()
    first, y, row = functionalize(function)(x)
    assert first.is_alias_of(x)
    assert y.is_alias_of(row)
    first.zero_()
    y.zero_()
    assert x[0].tolist() == [0.0] * 3
    assert row.tolist() == [0.0] * 3


def test_results_without_views_share_memory_with_nothing():
    x = square()
    y = functionalize(lambda x: x.mul_(2)[0], remove="mutations_and_views")(x)
    assert not y.is_alias_of(x)
    assert y.tolist() == x[0].tolist()


def test_tensors_inside_say_what_shares_memory_and_how_often_it_was_written():
    def function(x):
        assert isinstance(x, FunctionalTensor)
        y = x[0]
        assert y.is_alias_of(x)
        assert not y.clone().is_alias_of(x)
        before = x.version()
        y.mul_(2)
        assert x.version() == y.version() == before + 1
        turned = x.t()
        assert (turned.stride(), turned.is_contiguous()) == ((1, 3), False)
        assert (x[1].stride(), x[1].storage_offset()) == ((1,), 3)
        return turned

    for remove in REMOVE:
        functionalize(function, remove=remove)(square())


def test_an_in_place_view_of_an_argument_turns_it():
    x = turnout.zeros(2, 3)
    view = functionalize(lambda x: x.t_().add_(1))(x)
    assert view is x
    assert x.shape == (3, 2)
    assert x.tolist() == [[1.0] * 2] * 3


def test_tensors_that_are_kept_are_ordinary_ones_afterwards():
    kept = []

    def function(x):
        y = x.clone()
        kept.extend([y, y[0], x])
        y.mul_(2)
        return y

    y = functionalize(function)(square())
    assert [type(each) for each in kept] == [Tensor] * 3
    assert kept[0].tolist() == y.tolist()
    assert kept[1].tolist() == y[0].tolist()
    kept[1].zero_()
    assert y[0].tolist() == [0.0] * 3


def test_gradients_that_backward_leaves_are_ordinary_tensors():
    weight = turnout.ones(3, requires_grad=True)

    def function(x):
        (x.clone().mul_(weight)).sum().backward()

    functionalize(function)(turnout.full((3,), 2.0))
    assert type(weight.grad) is Tensor
    assert weight.grad.tolist() == [2.0] * 3
    function(turnout.full((3,), 2.0))
    assert weight.grad.tolist() == [4.0] * 3


# ---- custom operators


def test_a_custom_operator_that_writes_runs_on_a_clone():
    with library.Library("functionalize_tests", "DEF") as lib:
        lib.define("double_(Tensor(a!) x, Tensor y) -> Tensor")
        lib.impl("double_", lambda x, y: (x.mul_(2), y + 1)[1], "CompositeExplicitAutograd")
        double = turnout.ops.functionalize_tests.double_

        def function(x):
            y = x.clone()
            made = double(y[0], y[1])
            return y, made

        expected = [each.tolist() for each in function(square())]
        for remove in REMOVE:
            assert [each.tolist() for each in functionalize(function, remove=remove)(square())] == expected
        assert names(graph_of(function, square()))[:4] == ["clone", "select.int", "select.int", "clone"]


def test_a_custom_view_is_written_by_the_positions_that_it_picks():
    with library.Library("functionalize_tests", "DEF") as lib:
        lib.define("corner(Tensor(a) x) -> Tensor(a)")
        lib.impl("corner", lambda x: x[:2, 1:].t(), "CompositeExplicitAutograd")
        corner = turnout.ops.functionalize_tests.corner

        def function(x):
            y = x.clone()
            corner(y)[0].mul_(10)
            return y

        for remove in REMOVE:
            assert functionalize(function, remove=remove)(square()).tolist() == function(square()).tolist()


VIEWS = {
    "expand": lambda x: x.expand(2, *x.shape), "select": lambda x: x[-1], "slice": lambda x: x[..., 1:], "T": lambda x: x.mT,
    "unfold": lambda x: x.unfold(0, 2, 1), "as_strided": lambda x: x.as_strided((2, 2), (1, 1)),
    "other dtype": lambda x: x.view(turnout.int32 if x.dtype.is_floating_point else turnout.float32),
}  # fmt: skip


@pytest.mark.parametrize("first", VIEWS)
@kinds
def test_a_write_through_any_chain_of_views_is_that_of_the_program_or_is_refused_as_it_is(first, remove):
    compared = 0
    for chain in itertools.product([first], VIEWS, VIEWS):

        def function(x, chain=chain):
            base = view = x.clone()
            for each in chain:
                view = VIEWS[each](view)
            view[(0,) * view.ndim].fill_(3)
            return base.view(turnout.int32) * 1, view * 1

        try:
            expected = [each.tolist() for each in function(square())]
        except (turnout.TurnoutError, IndexError) as error:
            refused(type(error), lambda function=function: functionalize(function, remove=remove)(square()))
        else:
            compared += 1
            assert [each.tolist() for each in functionalize(function, remove=remove)(square())] == expected, chain
    assert compared > 20


def test_a_custom_view_that_does_not_take_positions_is_refused_when_it_is_written():
    with library.Library("functionalize_tests", "DEF") as lib:
        lib.define("floats(Tensor(a) x) -> Tensor(a)")

        def floats(x):
            assert x.is_floating_point()
            return x[0]

        lib.impl("floats", floats, "CompositeExplicitAutograd")
        view = turnout.ops.functionalize_tests.floats
        assert functionalize(lambda x: view(x) * 2)(square()).tolist() == [2.0, 4.0, 6.0]
        assert refused(FunctionalizeError, lambda: functionalize(lambda x: view(x).mul_(2))(square())) == (
            "a write into the result of functionalize_tests::floats: cannot be functionalised: calling the operator on the "
            "positions of the elements did not give the positions in the view\n"
            "  to fix  register a kernel that accepts int64 tensors, or write before the view is made"
        )


def test_a_result_that_may_share_memory_with_several_arguments_is_refused():
    with library.Library("functionalize_tests", "DEF") as lib:
        lib.define("either(Tensor(a) x, Tensor(b) y) -> Tensor(a|b)")
        lib.impl("either", lambda x, y: x, "CompositeExplicitAutograd")
        assert refused(FunctionalizeError, lambda: functionalize(turnout.ops.functionalize_tests.either)(square(), square())) == (
            "functionalize_tests::either: cannot be functionalised: its schema lets a result share memory with several "
            "arguments, or with an unknown one\n  to fix  declare which argument each result is a view of, or return a copy"
        )


# ---- errors


def test_resizing_is_refused():
    assert refused(FunctionalizeError, lambda: functionalize(lambda x: x.resize_(2))(square())) == (
        "aten::resize_: cannot be functionalised: it changes how much memory a tensor has, which other tensors may share\n"
        "  to fix  make a tensor of the new shape, such as with new_empty() or reshape()"
    )


@pytest.mark.filterwarnings("ignore:aten..add.out. an output with:UserWarning")
def test_outputs_are_resized_but_not_views():
    assert refused(FunctionalizeError, lambda: functionalize(lambda x: turnout.add(x, x, out=turnout.zeros(9)[:]))(square())) == (
        "aten::add.out: out has shape [9], the result [3, 3]; a view of another tensor, or an output from outside that was "
        "written before, is not resized in a function that is functionalised\n  to fix  give an out of shape [3, 3]"
    )
    refused(AliasError, lambda: functionalize(lambda x: turnout.add(x, x, out=turnout.zeros(2, 2)[0]))(square()))
    assert functionalize(lambda x: turnout.add(x, x, out=turnout.zeros(0)))(square()).tolist() == (square() * 2).tolist()
    out = turnout.zeros(0)
    assert functionalize(lambda x, out: turnout.add(x, x, out=out))(square(), out) is out
    assert out.tolist() == (square() * 2).tolist()


def test_an_output_of_a_dtype_that_the_plain_call_does_not_convert_to_is_refused():
    def select(x, out):  # how many elements there are tells no meta tensor
        return turnout.masked_select(x, x > 1, out=out)

    for call in (select, functionalize(select)):
        assert refused(DTypeError, call, square().long(), turnout.zeros(2)) == (
            "aten::masked_select.out: the result has dtype int64, which cannot be written into float32"
        )
        assert call(square(), turnout.zeros(0, dtype=turnout.float64)).dtype is turnout.float64


def test_versions_outside_are_those_of_the_writes():
    ours, theirs = square(), square()

    def function(x):
        x.mul_(2)
        x[0].add_(1)
        return x._version

    assert functionalize(function)(ours) == function(theirs)
    assert ours._version == theirs._version == 2


def test_an_operator_in_place_whose_functional_form_gives_another_shape_is_refused():
    with library.Library("functionalize_tests", "DEF") as lib:
        lib.define("grow(Tensor x) -> Tensor")
        lib.define("grow_(Tensor(a!) x) -> Tensor(a!)")
        lib.impl("grow", lambda x: turnout.cat([x, x]), "CompositeImplicitAutograd")
        assert refused(FunctionalizeError, functionalize(turnout.ops.functionalize_tests.grow_), square()) == (
            "functionalize_tests::grow_: the result of shape [6, 3] does not fit in a tensor of shape [3, 3]"
        )


@pytest.mark.parametrize("step", [lambda x: x.add_(1).as_strided((2,), (1,), 2), lambda x: x.as_strided((2,), (1,), 2).add_(1)])
def test_memory_of_which_only_a_part_is_known_is_refused(step):
    assert refused(FunctionalizeError, functionalize(lambda: step(turnout.empty_strided((2, 2), (4, 1))))) == (
        "aten::as_strided: cannot be functionalised: the tensor covers only a part of its memory, so the elements outside it are "
        "not known\n  to fix  pass the tensor that covers the whole memory"
    )


def test_a_captured_tensor_is_not_turned_when_it_was_written():
    captured = square()
    assert refused(FunctionalizeError, lambda: functionalize(lambda: captured.mul_(2).t_())()) == (
        "aten::t_: cannot be functionalised: the tensor is from outside, and was viewed or written before\n"
        "  to fix  make it an argument of the function"
    )
    other = turnout.zeros(2, 3)
    functionalize(lambda: other.t_())()
    assert other.shape == (3, 2)


@pytest.mark.parametrize("what", ["numpy", "__array__", "__dlpack__"])
def test_memory_is_not_given_out(what):
    shown = {"numpy": "numpy()", "__array__": "numpy.asarray()", "__dlpack__": "__dlpack__()"}[what]
    assert refused(FunctionalizeError, lambda: functionalize(lambda x: getattr(x, what)())(square())) == (
        f"{shown}: a tensor inside functionalize has no memory of its own; return it, or take its clone() from the function"
    )


def test_wrong_arguments_are_refused():
    assert refused(FunctionalizeError, functionalize, turnout.sin, remove="views") == (
        "functionalize: remove must be one of mutations, mutations_and_views, got 'views'"
    )
    assert refused(FunctionalizeError, functionalize, 3) == "functionalize: argument 'func' must be callable, got int"


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: x.add_(turnout.ones(2, 3, 3)), ShapeError),
        (lambda x: x[:1].expand(3, 3).mul_(2), AliasError),
        (lambda x: x.t().view(9), ShapeError),
        (lambda x: turnout.add(x[:2], x[:2], out=x[1:]), AliasError),
        (lambda x: x.requires_grad_().mul_(2), AliasError),
        (lambda x: x.long().requires_grad_(), TypeError),
    ],
)
def test_what_the_function_is_refused_is_refused(function, kind):
    for remove in REMOVE:
        with pytest.raises(kind) as plain:
            function(square())
        with pytest.raises(kind) as info:
            functionalize(function, remove=remove)(square())
        assert type(info.value) is type(plain.value)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.requires_grad_().mul_(2),
        lambda x: x.requires_grad_()[0].mul_(2),
        lambda x: turnout.ones(3, requires_grad=True).mul_(x[0]),
    ],
)
def test_a_write_into_a_leaf_is_refused_in_the_same_words(write):
    for remove in REMOVE:
        said = refused(turnout.TurnoutError, functionalize(write, remove=remove), square())
        assert said == refused(turnout.TurnoutError, write, square())


def test_an_output_that_is_a_leaf_is_refused():
    assert refused(AliasError, functionalize(lambda x: turnout.mul(x, 2, out=x.requires_grad_())), square()) == (
        "aten::mul.Scalar_out: out is a leaf that requires a gradient; it cannot be changed in place\n"
        "  to fix  write under turnout.no_grad(), or into a clone()"
    )


def test_a_value_that_a_gradient_needs_is_kept_when_it_is_written():
    x = square().requires_grad_()

    def function(x):
        y = x * 1
        z = y * y
        with turnout.no_grad():
            y.mul_(2)
        return z.sum()

    refused(RuntimeError, lambda: function(x).backward())
    # The values that gradients need are kept: nothing writes into them.
    functionalize(function)(x).backward()
    assert turnout.allclose(x.grad, 2 * x.detach())


def test_an_error_leaves_the_arguments_and_the_state_as_they_were():
    x = square()
    before = DISPATCH.get()

    def function(x):
        x.mul_(2)
        raise KeyError("x")

    for _ in range(2):
        refused(KeyError, lambda: functionalize(function)(x))
        assert x.tolist() == square().tolist()
        assert (DISPATCH.get(), REGION.get()) == (before, None)
    assert functionalize(lambda x: x.mul_(2))(x).tolist() == (square() * 2).tolist()


# ---- lifetimes and threads


def test_nothing_of_it_is_left_when_it_ends():
    with collector_off():
        functionalize(written_views)(square())
        collect_new()
        assert not [each for each in new_objects() if type(each) is FunctionalTensor]


def test_threads_run_their_own():
    shared = turnout.ones(50)

    def work(factor):
        function = functionalize(lambda x: (x.clone().mul_(factor)[:25].add_(shared[0])).sum())
        return [function(shared).item() == 25 * (factor + 1) for _ in range(20)]

    assert in_threads(*[partial(work, float(i)) for i in range(4)]) == [[True] * 20] * 4


def test_a_tensor_of_a_running_function_works_in_another_thread():
    def function(x):
        (total,) = in_threads(lambda: x.mul_(2).sum())
        return total, x * 1

    total, x = functionalize(function)(square())
    assert total.item() == 90
    assert x.tolist() == (square() * 2).tolist()


def test_the_kit_for_functionalities_passes(tmp_path):
    context = "Functionalize=turnout_functionalize.transform:functionalized_calls"
    options = ["--turnout-key=Functionalize", f"--turnout-key-context={context}", "-k", "Functionalize-mul or Functionalize-sele"]
    left_out = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "zarr")]  # which take seconds to import
    command = [sys.executable, "-m", "pytest", "-q", *left_out, "--pyargs", "turnout_conformance.test_functionality", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "kernels of Functionalize ran for" in done.stdout
