"""Versions, views, bases: what core records by itself, from the annotations of schemas, whatever plugin is active."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import handles
import pytest

import turnout
from outcomes import refused
from turnout.registry import Registrations
from turnout.state import DISPATCH, below_adinplaceorview, exclude
from turnout_aten.views import recording


@pytest.fixture(autouse=True)
def operators():
    """A backend of lists, and operators of every kind of annotation whose kernels do no bookkeeping."""
    with Registrations("keeptest") as library:
        handles.register(library)
        for schema, kernel in KERNELS.items():
            op = library.define(f"keeptest::{schema}")
            library.impl(op.qualified_name, "CompositeExplicitAutograd", kernel)
        yield turnout.ops.keeptest


def add_one(x):
    x.array[...] += 1
    return x


def fail_half_way(x):
    add_one(x)
    raise ValueError("half-way")


def write_two(x, y):
    add_one(x)
    if y is not None:
        add_one(y)


def view_of(x, start, length):
    offset = x.storage_offset() + start * x.stride()[0]
    root = x.shared_storage().array
    return x.new_alias(x.device.backend.strided(root, (length,), x.stride(), offset), offset)


KERNELS = {
    "add_one_(Tensor(a!) x) -> Tensor(a!)": add_one,
    "fail_(Tensor(a!) x) -> Tensor(a!)": fail_half_way,
    "write_two(Tensor(a!) x, Tensor(b!)? y) -> ()": write_two,
    "write_all(Tensor(a!)[] xs) -> ()": lambda xs: [add_one(x) for x in xs] and None,
    "part(Tensor(a) x, int start, int length) -> Tensor(a)": view_of,
    "halves(Tensor(a -> *) x) -> Tensor(a)[]": lambda x: [view_of(x, i, x.shape[0] // 2) for i in (0, x.shape[0] // 2)],
    "lies(Tensor(a) x) -> Tensor(a)": lambda x: handles.tensor(handles.values(x)),
    "self_(Tensor(a) x) -> Tensor(a)": lambda x: x,
    "copy(Tensor x) -> Tensor": lambda x: handles.tensor(handles.values(x)),
    "fail(Tensor(a) x) -> Tensor(a)": lambda x: [][0],
}


def numbers(count: int = 4):
    return handles.tensor([float(i) for i in range(count)])


# ---- versions


def test_an_operator_that_says_it_writes_raises_the_version_of_what_it_wrote(operators):
    x, y, z = numbers(), numbers(), numbers()
    assert operators.add_one_(x) is x
    assert (x._version, handles.values(x)) == (1, [1.0, 2.0, 3.0, 4.0])
    assert operators.write_two(x, y) is None
    operators.write_all([y, z])
    assert (x._version, y._version, z._version) == (2, 2, 1)


def test_an_optional_argument_that_is_not_given_is_not_counted(operators):
    x = numbers()
    operators.write_two(x, None)
    assert (x._version, handles.values(x)) == (1, [1.0, 2.0, 3.0, 4.0])


def test_a_view_keeps_the_version_its_base_had_when_it_was_first_aliased(operators):
    x = numbers()
    operators.add_one_(x)
    assert operators.part(x, 0, 2)._version == 1


def test_a_write_that_raises_half_way_is_not_counted_and_leaves_the_state_as_it_was(operators):
    x = numbers()
    state = DISPATCH.get()
    assert "half-way" in refused(ValueError, operators.fail_, x)
    assert x._version == 0
    assert handles.values(x) == [1.0, 2.0, 3.0, 4.0]
    assert DISPATCH.get() == state
    operators.add_one_(x)
    assert x._version == 1


# ---- views


def test_a_view_has_the_base_that_owns_the_memory_however_long_the_chain(operators):
    x = numbers()
    a = operators.part(x, 1, 3)
    b = operators.part(a, 1, 2)
    assert (x._base, a._base, b._base) == (None, x, x)
    assert handles.values(b) == [2.0, 3.0]
    assert x.is_alias_of(b)
    assert b.is_alias_of(a)
    assert b.storage_offset() == 2


def test_a_view_can_be_replayed_on_another_base_from_what_was_recorded(operators):
    x = numbers()
    b = operators.part(operators.part(x, 1, 3), 1, 2)
    replayed = handles.tensor([10.0, 20.0, 30.0, 40.0])
    for op, rest, index in b.view_of.chain:
        replayed = op(replayed, *rest)
        replayed = replayed if index is None else replayed[index]
    assert handles.values(replayed) == [30.0, 40.0]
    assert [op.qualified_name for op, _, _ in b.view_of.chain] == ["keeptest::part", "keeptest::part"]


def test_several_views_of_one_call_are_marked_as_such_and_so_are_views_of_them(operators):
    x = numbers()
    first, second = operators.halves(x)
    deeper = operators.part(second, 0, 1)
    assert (first._base, second._base, deeper._base) == (x, x, x)
    assert (first.view_of.multi, deeper.view_of.multi, operators.part(x, 0, 1).view_of.multi) == (True, True, False)
    assert [link[2] for link in deeper.view_of.chain] == [1, None]
    operators.add_one_(second)
    assert (first._version, handles.values(x)) == (1, [0.0, 1.0, 3.0, 4.0])


def test_what_shares_no_memory_or_is_the_argument_itself_is_no_view_whatever_the_schema_says(operators):
    x = numbers()
    made = operators.lies(x)
    assert (made._base, made.is_alias_of(x)) == (None, False)
    assert operators.self_(x) is x
    assert x._base is None
    assert operators.copy(x)._base is None


def test_detach_shares_memory_and_version_but_is_no_view(operators):
    x = numbers()
    y = x.detach()
    assert y is not x
    assert (y._base, y.is_alias_of(x)) == (None, True)
    operators.add_one_(y)
    assert (x._version, y._version, handles.values(x)) == (1, 1, [1.0, 2.0, 3.0, 4.0])
    assert operators.part(y, 0, 2)._base is y


def test_the_operators_of_core_itself_follow_the_same_rules():
    x = handles.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    row, column = x[1], x.t()[2]
    assert (row._base, column._base) == (x, x)
    column.fill_(7.0)
    row.copy_(handles.tensor([1.0, 2.0, 3.0]))
    assert handles.values(x) == [[0.0, 1.0, 7.0], [1.0, 2.0, 3.0]]
    assert (x._version, row._version) == (2, 2)
    assert x.view(6)._base is x
    assert x.reshape(3, 2)._base is x
    assert x.clone()._base is None


def test_a_view_that_raises_records_nothing(operators):
    x = numbers()
    state = DISPATCH.get()
    refused(IndexError, operators.fail, x)
    assert (x._base, list(x.live_views()), DISPATCH.get() == state) == (None, [], True)


def test_a_base_does_not_keep_its_views_alive_and_a_view_keeps_its_base(operators):
    x = numbers()
    view = operators.part(x, 0, 2)
    assert [v is view for v in x.live_views()] == [True]
    gone = weakref.ref(view)
    del view
    gc.collect()
    assert gone() is None
    assert list(x.live_views()) == []
    kept = operators.part(x, 0, 2)
    base = weakref.ref(x)
    del x
    gc.collect()
    assert kept._base is base()


def test_thousands_of_views_that_are_gone_leave_no_list_of_them_behind(operators):
    x = numbers()
    for _ in range(1000):
        operators.part(x, 0, 2)
    assert len(x.storage.views) < 100


def test_views_that_live_and_views_that_are_gone_leave_a_list_of_those_that_live(operators):
    x = numbers()
    kept = []
    for i in range(300):
        operators.part(x, 0, 2)
        kept.append(operators.part(x, 0, 2))
        if i % 3 == 0:
            del kept[0]
    assert {id(v) for v in x.live_views()} == {id(v) for v in kept}
    assert len(x.storage.views) < 2 * len(kept)


def test_a_live_view_is_rarely_looked_at_again_while_others_are_made(operators, monkeypatch):
    looked = []

    class Counted(weakref.ref):
        def __call__(self):
            looked.append(self)
            return super().__call__()

    monkeypatch.setattr(recording, "ref", Counted)
    monkeypatch.setattr(recording, "_recording", recording._recording.__wrapped__)  # a text that was made already has another
    x = numbers()
    kept = [operators.part(x, 0, 2) for _ in range(5000)]
    assert len(x.storage.views) == len(kept)
    assert 4000 < len(looked) < 4 * len(kept)


def test_threads_that_view_one_base_lose_no_view(operators):
    x = numbers()

    def several(_):
        kept = []
        for i in range(400):
            view = operators.part(x, 0, 2)
            if i % 2:
                kept.append(view)
        return kept

    with ThreadPoolExecutor(8) as pool:
        kept = [view for views in pool.map(several, range(8)) for view in views]
    assert {id(v) for v in x.live_views()} == {id(v) for v in kept}


# ---- whatever is active


def test_composite_operators_are_recorded_once_through_what_they_call(operators):
    with Registrations("composite") as library:
        library.define("keeptest::twice_(Tensor(a!) x) -> Tensor(a!)")
        library.impl("keeptest::twice_", "CompositeImplicitAutograd", lambda x: operators.add_one_(operators.add_one_(x)))
        explicit = library.define("keeptest::thrice_(Tensor(a!) x) -> Tensor(a!)")
        library.impl(
            explicit.qualified_name, "CompositeExplicitAutograd",
            lambda x: operators.add_one_(operators.add_one_(operators.add_one_(x))),
        )  # fmt: skip
        x, y = numbers(), numbers()
        turnout.ops.keeptest.twice_(x)
        turnout.ops.keeptest.thrice_(y)
        # An explicit composite is one kernel below ADInplaceOrView: one write, however many calls it makes.
        assert (handles.values(x)[0], handles.values(y)[0]) == (2.0, 3.0)
        assert y._version == 1


def test_below_adinplaceorview_nothing_is_recorded_and_it_is_back_after_an_error(operators):
    x = numbers()
    with below_adinplaceorview():
        operators.add_one_(x)
        view = operators.part(x, 0, 2)
    assert (x._version, view._base, view.is_alias_of(x)) == (0, None, True)
    with pytest.raises(ValueError, match="half-way"), below_adinplaceorview():
        operators.fail_(x)
    operators.add_one_(x)
    assert (x._version, operators.part(x, 0, 2)._base) == (1, x)


def test_it_is_done_with_autograd_excluded_and_under_a_users_own_kernel_there(operators):
    x = numbers()
    with exclude("Autograd"):
        operators.add_one_(operators.part(x, 0, 2))
    assert x._version == 1
    seen = []
    with Registrations("above") as library:

        def redispatch(ks, x):
            seen.append(x)
            return operators.add_one_.default.redispatch(ks & ~turnout.keys.KEYS.mask("Autograd"), x)

        library.impl("keeptest::add_one_", "AutogradCells", redispatch, with_keyset=True)
        operators.add_one_(x)
    assert (len(seen), x._version) == (1, 2)


def test_nothing_of_it_activates_a_plugin(operators):
    before = [r.name for r in turnout.plugins.all_plugins() if r.state == "active"]
    operators.add_one_(operators.part(numbers(), 0, 2))
    assert [r.name for r in turnout.plugins.all_plugins() if r.state == "active"] == before
