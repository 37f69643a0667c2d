"""`custom_op`: definition, kernels by device, replacement, switching off, and what is refused."""

from __future__ import annotations

import pytest
from plain_objects import Box, Shelf, backends, box, refused, said, source, values  # noqa: F401

import turnout
from refusal_tables import rows
from turnout import library
from turnout.errors import (
    ConflictError,
    DeviceError,
    KernelSignatureError,
    NoKernelError,
    RegistrationError,
    SchemaError,
    StaleOperatorError,
)
from turnout.errors.library import KernelResultError, LibraryError
from turnout.library import Library, custom_op
from turnout.registry import REGISTRY


def double(x: Box) -> Box:
    return box(*[2 * v for v in values(x)])


def test_a_function_becomes_an_operator_for_all_devices():
    @custom_op("t::double", mutates_args=())
    def f(x: Box, n: int = 2, *, flag: bool = False) -> Box:
        return box(*[n * v for v in values(x)])

    assert values(f(box(1, 2))) == [2, 4]
    assert values(f(box(1, 2), n=3)) == [3, 6]
    assert values(turnout.ops.t.double(box(1, on="rack"), 5)) == [5]
    assert str(f.operator.schema) == "t::double(Tensor x, SymInt n=2, *, bool flag=False) -> Tensor"
    assert repr(f) == "<CustomOpDef(t::double)>"


def test_it_may_be_called_as_a_function_with_a_schema_and_for_one_device():
    f = custom_op("t::f", lambda x, n: double(x), mutates_args=(), device_types="shelf", schema="(Tensor x, int n) -> Tensor")
    assert values(f(box(1), 3)) == [2]
    assert refused(NoKernelError, f, box(1, on="rack"), 3).startswith(
        "t::f: no kernel for Rack\n  asked for by  x: Box [1] on rack"
    )


def test_each_device_has_its_kernel_and_the_newest_counts():
    f = custom_op("t::f", double, mutates_args=())

    @f.register_kernel("shelf")
    def _(x):
        return box(100)

    library.register_kernel(f, ["rack"], lambda x: box(7))
    assert (values(f(box(1))), values(f(box(1, on="rack")))) == ([100], [7])
    library.register_kernel("t::f", "shelf", lambda x: box(200))
    assert values(f(box(1))) == [200]


def test_a_kernel_on_arrays_serves_a_custom_operator():
    f = custom_op("t::f", lambda x: type(x)([-v for v in x.values]), mutates_args=(), schema="(Tensor x) -> Tensor", arrays=True)
    assert values(f(box(1, 2))) == [-1, -2]
    f.register_kernel("shelf", lambda x: type(x)([9]), arrays=True)
    assert values(f(box(1))) == [9]


def test_a_kernel_can_be_switched_off_for_a_while():
    f = custom_op("t::f", double, mutates_args=())
    f.register_kernel("shelf", lambda x: box(100))

    def fail():
        with f.set_kernel_enabled("shelf", False):
            assert values(f(box(1))) == [2]
            with f.set_kernel_enabled("shelf"):
                assert values(f(box(1))) == [100]
            f.register_kernel("shelf", lambda x: box(200))
            assert values(f(box(1))) == [2]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert values(f(box(1))) == [200]
    text = "t::f: set_kernel_enabled('rack') has no effect, no kernel is registered for it; there are shelf"
    with pytest.warns(UserWarning, match="has no effect") as caught, f.set_kernel_enabled("rack", False):
        assert values(f(box(1, on="rack"))) == [2]
    assert str(caught[0].message) == text


def test_unknown_writes_are_writes_of_every_tensor():
    f = custom_op("t::f", lambda x, y: None, mutates_args="unknown", schema="(Tensor(a!) x, Tensor(b!) y) -> ()")
    assert [a.name for a in f.operator.schema.mutated_arguments] == ["x", "y"]


def test_a_second_definition_replaces_the_first_and_all_it_registered():
    first = custom_op("t::f", double, mutates_args=())
    first.register_kernel("shelf", lambda x: box(100))
    handle = first.operator

    def other(x: Box, n: int) -> Box:
        return box(n)

    second = custom_op("t::f", other, mutates_args=())
    assert values(second(box(1), 5)) == [5]
    assert list(REGISTRY.find("t::f").kernels) == ["CompositeExplicitAutograd"]
    second.undo()
    refused(StaleOperatorError, handle, box(1))


def test_a_second_definition_that_is_refused_leaves_the_first():
    first = custom_op("t::f", double, mutates_args=())
    with Library("t", "FRAGMENT") as lib:
        lib.define("f.more(Tensor x, SymInt n) -> Tensor")
        lib.impl("f", double, "Rack")

        def other(x: Box, y: int) -> Box:
            return x

        def none() -> Box:
            return box(0)

        assert "two overloads tie" in refused(SchemaError, lambda: custom_op("t::f", other, mutates_args=()))
        assert "kernel does not fit" in refused(KernelSignatureError, lambda: custom_op("t::f", none, mutates_args=()))
        refused(DeviceError, lambda: custom_op("t::f", double, mutates_args=(), device_types="shel"))
        refused(ConflictError, lambda: custom_op("t::f", double, mutates_args=(), device_types="rack"))
        elsewhere = {"__name__": "another_package", "custom_op": custom_op, "double": double}
        text = refused(ConflictError, lambda: exec("custom_op('t::f', double, mutates_args=())", elsewhere))
        assert text == "t::f is a custom operator already\n  first   t\n  second  t\n  to fix  use a namespace of your own"
        assert values(first(box(1))) == [2]


def test_an_operator_that_is_no_custom_one_is_not_replaced():
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        assert refused(ConflictError, lambda: custom_op("t::f", double, mutates_args=())).startswith("t::f is defined already")


def test_kernels_of_other_libraries_conflict_with_a_custom_operators():
    f = custom_op("t::f", double, mutates_args=())
    with Library("t", "IMPL") as lib:
        lib.impl("f", double, "Shelf")
        refused(ConflictError, lambda: f.register_kernel("shelf", double))
        refused(ConflictError, lambda: f.register_kernel(["rack", "shelf"], double))
        refused(RegistrationError, lambda: lib.impl("f", double))


REFUSED = """
custom_op('f', double, mutates_args=())
    LibraryError: custom_op: an operator is named 'namespace::name', got 'f'
custom_op(3, double, mutates_args=())
    LibraryError: custom_op: an operator is given by its name, as an operator or as what custom_op returned, got int
custom_op('prim::f', double, mutates_args=())
    LibraryError: Library: no operator can be defined in namespace 'prim', it is reserved
      asked   custom_op
      to fix  use a name of your own
custom_op('t::g', double, mutates_args=(), schema='f(Tensor x) -> Tensor')
    LibraryError: custom_op: the schema is written without a name, as '(Tensor x) -> Tensor', got 'f(Tensor x) -> Tensor'
custom_op('t::g', double, mutates_args=(), schema='(Tensor(a!) x) -> ()')
    LibraryError: t::g: mutates_args and schema disagree
      mutates_args  nothing
      schema        x: t::g(Tensor(a!) x) -> ()
custom_op('t::g', double, mutates_args=['x'], schema='(Tensor x) -> Tensor')
    LibraryError: t::g: mutates_args and schema disagree
      mutates_args  x
      schema        nothing: t::g(Tensor x) -> Tensor
custom_op('t::g', mutates_args=())(3)
    CallError: custom_op: a kernel is a function, got int 3
custom_op('t::g', lambda x: x, mutates_args=())
    SchemaError: infer_schema: parameter x has no annotation...
f.register_kernel('shelf', 3)
    CallError: register_kernel: a kernel is a function, got int 3
f.register_fake(3)
    CallError: register_fake: a kernel is a function, got int 3
f.register_autograd(double, setup_context=3)
    CallError: register_autograd: a kernel is a function, got int 3
f.register_kernel('shelf', lambda: 0)
    KernelSignatureError: kernel does not fit...
f.register_fake(lambda: 0)
    KernelSignatureError: kernel does not fit...
"""


@pytest.mark.parametrize(("call", "says"), rows(REFUSED))
def test_what_custom_operators_refuse_changes_nothing(call, says):
    f = custom_op("t::f", double, mutates_args=())
    assert said(call, {**globals(), "f": f}, says) == says


def test_kernels_by_device_need_something_to_choose_by():
    def make(n: int) -> Box:
        return box(*range(n))

    text = (
        "t::f: kernels by device need a tensor or an argument 'Device device' to choose by\n"
        "  schema  t::f(SymInt n) -> Tensor\n"
        "  to fix  add the argument, or register one kernel for all devices (device_types=None)"
    )
    assert refused(LibraryError, lambda: custom_op("t::f", make, mutates_args=(), device_types="shelf")) == text
    f = custom_op("t::f", make, mutates_args=())
    assert values(f(2)) == [0, 1]
    assert refused(LibraryError, lambda: f.register_kernel("shelf", make)) == text


def test_a_factory_finds_its_kernel_by_the_device():
    def make(n: int, device: turnout.Device) -> Box:
        return box(*range(n), on=device.type)

    f = custom_op("t::f", make, mutates_args=(), device_types=["shelf", "rack"])
    assert f(2, "rack").device.type == "rack"


# ---- what kernels return


def returned(kernel, schema, *args, mutates=()):
    """The text of the error for what a kernel returns."""
    f = custom_op("t::r", kernel, mutates_args=mutates, schema=schema)
    return refused(KernelResultError, f, *args)


def aliased(kernel, found):
    return (
        f"t::r: a custom operator's kernel may not return an input or a view of one\n  found   {found}\n"
        f"  kernel  {source(kernel)}\n  to fix  return a copy, such as x.clone()"
    )


def test_a_kernel_may_not_return_an_input_or_a_view():
    def same(x):
        return x

    def alias(x):
        return Box(x.array, x.device)

    def element(xs):
        return xs[1]

    def inputs(xs):
        return list(xs)

    def twice(x):
        made = box(1)
        return made, made

    one = "(Tensor x) -> Tensor"
    x, y = box(1), box(2)
    assert returned(same, one, x) == aliased(same, "the result is x")
    assert returned(alias, one, x) == aliased(alias, "the result shares memory with x")
    assert returned(same, "(Tensor? x) -> Tensor", x) == aliased(same, "the result is x")
    assert returned(element, "(Tensor[] xs) -> Tensor", [x, y]) == aliased(element, "the result is xs[1]")
    assert returned(inputs, "(Tensor[] xs) -> Tensor[]", [x]) == aliased(inputs, "the result[0] is xs[0]")
    assert returned(twice, "(Tensor x) -> (Tensor, Tensor)", x) == aliased(twice, "result 1 is result 0")


def test_what_the_schema_shares_may_be_returned():
    def fill(x):
        x.array.values[:] = [9]
        return x

    def view(x):
        return Box(x.array, x.device)

    x = box(1)
    f = custom_op("t::r", fill, mutates_args=["x"], schema="(Tensor(a!) x) -> Tensor(a!)")
    assert f(x) is x
    g = custom_op("t::s", view, mutates_args=(), schema="(Tensor(a) x) -> Tensor(a)")
    assert g(x).array is x.array


def test_a_written_argument_is_returned_itself():
    def other(x):
        return box(1)

    assert returned(other, "(Tensor(a!) x) -> Tensor(a!)", box(1), mutates=["x"]) == (
        "t::r: its schema returns the written x, its kernel something else\n  schema  t::r(Tensor(a!) x) -> Tensor(a!)\n"
        f"  kernel  {source(other)}\n  to fix  return x itself"
    )


@pytest.mark.parametrize(
    ("result", "returns", "expected", "found"),
    [
        (3, "Tensor", "a Tensor as the result", "int"),
        ([3], "Tensor", "a Tensor as the result", "list of int"),
        (3, "Tensor[]", "a list of tensors as the result", "int"),
        ((), "(Tensor, int)", "2 values", "0 values"),
        (3, "(Tensor, int)", "2 values", "int"),
        ((3, 3), "(Tensor, int)", "a Tensor as result 0", "int"),
        (3, "()", "nothing", "int"),
    ],
)
def test_a_result_of_another_type_is_an_error(result, returns, expected, found):
    def kernel(x):
        return result

    assert returned(kernel, f"(Tensor x) -> {returns}", box(1)) == (
        f"t::r: its kernel must return {expected}, got {found}\n  schema  t::r(Tensor x) -> {returns}\n  kernel  {source(kernel)}"
    )


def test_a_backend_may_have_a_quick_test_of_results_and_what_it_does_not_pass_is_looked_at(monkeypatch):
    def fresh_result(self, result, inputs):
        return f"len({result}.array.values) > 1", {}

    monkeypatch.setattr(Shelf, "fresh_result", fresh_result)
    f = custom_op("t::r", lambda x: x, mutates_args=(), device_types="shelf", schema="(Tensor x) -> Tensor")
    assert values(f(box(1, 2))) == [1, 2]
    assert "the result is x" in refused(KernelResultError, f, box(1))


def test_none_stands_for_an_undefined_tensor():
    f = custom_op("t::r", lambda x: (None, 4), mutates_args=(), schema="(Tensor x) -> (Tensor, int)")
    assert f(box(1)) == (None, 4)
