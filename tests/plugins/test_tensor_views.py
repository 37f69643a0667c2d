"""Views on cpu: in-place ones, those of another dtype, memory formats, lists of outputs, functions of tensors one by one."""

from __future__ import annotations

import math

import pytest

import turnout
from outcomes import refused
from turnout.errors import AliasError, ArgumentError


def leaf() -> turnout.Tensor:
    return turnout.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=turnout.float64).requires_grad_()


# ---- a tensor that becomes another view of its memory


def test_a_leaf_that_requires_a_gradient_turns_only_without_recording() -> None:
    x = leaf()
    assert "t_: self is a leaf that requires a gradient" in refused(AliasError, x.t_)
    with turnout.no_grad():
        x.t_()
    assert x.shape == (3, 2)


def test_a_turn_is_a_write_to_saved_tensors() -> None:
    x = turnout.ones(2, 3)
    alias = x.detach()
    x.transpose_(0, 1)
    assert (x._version, alias._version) == (1, 1)
    assert alias.shape == (2, 3)


def test_detach_forgets_the_history_in_place() -> None:
    y = leaf() * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad


def test_in_place_views_under_vmap_turn_each_example() -> None:
    x = turnout.arange(12.0).reshape(2, 2, 3)
    assert turnout.vmap(lambda e: e.clone().t_())(x).tolist() == x.transpose(1, 2).tolist()


# ---- another dtype


def test_a_view_of_another_dtype_shares_memory_and_version() -> None:
    x = turnout.tensor([1.0, 2.0])
    bits = x.view(turnout.int32)
    assert bits.tolist() == [0x3F800000, 0x40000000]
    bits.zero_()
    assert x.tolist() == [0.0, 0.0]
    assert x._version == bits._version == 1
    assert bits[1:].is_alias_of(x)
    x[1] = 1.0
    assert bits[1:].tolist() == [0x3F800000]


def test_smaller_and_larger_elements_change_the_last_length() -> None:
    x = turnout.arange(6, dtype=turnout.int16).reshape(2, 3)
    assert x.view(turnout.uint8).shape == (2, 6)
    assert x.view(turnout.uint8)[:, 2:].view(turnout.int16).tolist() == [[1, 2], [4, 5]]
    assert turnout.tensor([1.0, 2.0, 3.0, 4.0]).view(turnout.complex64).tolist() == [1 + 2j, 3 + 4j]


# ---- memory formats


def test_parts_of_complex_numbers_share_their_memory_and_version() -> None:
    z = turnout.tensor([[1 + 2j, 3 - 1j], [0.5j, 4]], dtype=turnout.complex128)
    z.real.mul_(10)
    z.imag[0] = 7
    turnout.view_as_real(z)[1, 1, 1] = -2
    assert z.tolist() == [[10 + 7j, 30 + 7j], [0.5j, 40 - 2j]]
    assert z._version == 3
    assert (z.t().imag.stride(), z.imag.storage_offset()) == ((2, 4), 1)
    z.real = turnout.zeros(2, dtype=turnout.float64)
    z.imag = 1.0
    assert z.tolist() == [[1j, 1j], [1j, 1j]]
    x = turnout.ones(2)
    assert (x.real is x, x.conj() is x) == (True, True)


def test_complex_numbers_share_the_memory_of_their_parts() -> None:
    x = turnout.arange(8, dtype=turnout.float64).view((2, 2, 2))
    turnout.view_as_complex(x.transpose(0, 1)).mul_(1j)
    assert x.tolist() == [[[-1.0, 0.0], [-3.0, 2.0]], [[-5.0, 4.0], [-7.0, 6.0]]]


def test_gradients_follow_writes_into_parts_of_complex_numbers() -> None:
    def program(a: turnout.Tensor, b: turnout.Tensor) -> turnout.Tensor:
        z = turnout.complex(a, b).exp() * 1
        z.real.mul_(b)
        pairs = turnout.view_as_real(z)
        z.imag.add_(pairs[1:, 0].sum())
        z.mul_(1 - 2j)
        turnout.view_as_complex(pairs[:2]).exp_()
        return (pairs * a.unsqueeze(1)).sum() + (z * z).real.sum()

    a = turnout.tensor([0.5, -0.25, 1.0], dtype=turnout.float64).requires_grad_()
    b = turnout.tensor([0.75, 1.25, -0.5], dtype=turnout.float64).requires_grad_()
    assert turnout.autograd.gradcheck(program, (a, b))
    assert turnout.autograd.gradgradcheck(program, (a, b))


def test_parts_of_batched_complex_numbers_are_views_of_each_example() -> None:
    def function(z: turnout.Tensor) -> turnout.Tensor:
        made = z * 1
        made.real.zero_()
        return made

    z = turnout.tensor([1 + 2j, 3 - 1j])
    assert turnout.vmap(function)(z).tolist() == [2j, -1j]


def test_channels_last_is_kept_made_and_recognised() -> None:
    x = turnout.arange(24.0).reshape(1, 2, 3, 4)
    y = x.contiguous(memory_format=turnout.channels_last)
    assert y.stride() == (24, 1, 8, 2)
    assert y.is_contiguous(memory_format=turnout.channels_last)
    assert not y.is_contiguous()
    assert y.clone().stride() == y.to(turnout.int64).stride() == y.stride()
    assert y.contiguous(memory_format="channels_last") is y
    assert y.double(memory_format="contiguous_format").is_contiguous()
    assert y.tolist() == x.tolist()
    assert turnout.empty(2, 3, 4, 5, 6, memory_format=turnout.channels_last_3d).stride() == (360, 1, 90, 18, 3)
    assert turnout.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)


# ---- lists of outputs, tensors one by one


def test_an_out_list_gets_each_part() -> None:
    x = turnout.arange(6.0)
    outs = [turnout.empty(0), turnout.empty(2)]
    assert turnout.ops.aten.split_with_sizes_copy.out(x, [4, 2], out=outs) is None
    assert [o.tolist() for o in outs] == [[0, 1, 2, 3], [4, 5]]


def test_functions_of_tensors_take_them_one_by_one_or_as_a_list() -> None:
    a, b = turnout.arange(2), turnout.arange(3)
    for grids in (turnout.meshgrid(a, b, indexing="xy"), turnout.meshgrid([a, b], indexing="xy")):
        assert [g.tolist() for g in grids] == [[[0, 1]] * 3, [[0, 0], [1, 1], [2, 2]]]
    assert turnout.broadcast_shapes((2, 1), 3, ()) == (2, 3)
    assert [t.shape for t in turnout.broadcast_tensors(a.reshape(2, 1), b)] == [(2, 3), (2, 3)]
    assert turnout.atleast_2d(a).shape == (1, 2)
    assert [t.shape for t in turnout.atleast_3d(a, b)] == [(1, 2, 1), (1, 3, 1)]
    assert turnout.cartesian_prod(a, b).shape == (6, 2)
    assert turnout.block_diag(a, b).shape == (2, 5)
    assert [t.tolist() for t in turnout.unravel_index(turnout.tensor([5, 0]), (2, 3))] == [[1, 0], [2, 0]]
    narrow = turnout.unravel_index(turnout.tensor([100], dtype=turnout.uint8), (2, 300))
    assert [(t.dtype.name, t.tolist()) for t in narrow] == [("int64", [0]), ("int64", [100])]


@pytest.mark.parametrize("name", ["conj", "adjoint", "H", "mH"])
def test_a_conjugate_is_a_tensor_of_its_own(name) -> None:
    z = turnout.tensor([[1 + 2j]])
    made = getattr(z, name) if name in ("H", "mH") else getattr(z, name)()
    made.mul_(2)
    z.add_(1)
    assert (z.tolist(), made.tolist(), made.resolve_conj() is made) == ([[2 + 2j]], [[2 - 4j]], True)


@pytest.mark.parametrize("name", ["hsplit", "vsplit", "dsplit", "tensor_split"])
def test_one_int_is_a_number_of_parts_and_several_are_where_to_split(name) -> None:
    x = turnout.ones(3, 3, 3)
    dim = {"hsplit": 1, "dsplit": 2}.get(name, 0)

    def lengths(parts):
        return [part.shape[dim] for part in parts]

    assert lengths(getattr(x, name)(3)) == lengths(getattr(turnout, name)(x, 3)) == [1, 1, 1]
    assert lengths(getattr(x, name)([1])) == lengths(getattr(turnout, name)(x, (1,))) == [1, 2]
    if name != "tensor_split":
        assert lengths(getattr(x, name)(1, 2)) == [1, 1, 1]


def test_an_empty_list_of_tensors_is_named() -> None:
    for _ in range(2):
        with pytest.raises(ArgumentError) as caught:
            turnout.cat([])
    assert str(caught.value) == "aten::cat: argument 'tensors' needs at least one tensor, got an empty list"


# ---- facts


def test_questions_about_a_tensor_are_answered_with_plain_values() -> None:
    x = turnout.ones(2, 3)
    aten = turnout.ops.aten
    assert (aten.sym_size.int(x, -1), aten.sym_stride.int(x, 0), aten.sym_numel(x)) == (3, 3, 6)
    assert (aten.sym_storage_offset(x[1]), aten.sym_is_contiguous(x), aten.sym_is_contiguous(x.t())) == (3, True, False)
    assert turnout.is_floating_point(x)
    assert not turnout.is_complex(x)
    assert turnout.is_same_size(x, turnout.zeros(2, 3))
    assert not turnout.is_same_size(x, x.t())
    assert turnout.is_nonzero(turnout.tensor([2]))
    assert not turnout.is_nonzero(turnout.tensor(0.0))
    assert x.int().is_signed()
    assert not x.byte().is_signed()
    assert (x.itemsize, x.nbytes, x.ndimension()) == (4, 24, 2)
    assert refused(ArgumentError, bool, x) == "the truth value of a tensor with 6 elements is ambiguous; use .any() or .all()"


def test_numbers_and_the_new_axis_have_their_usual_names():
    assert (turnout.inf, turnout.pi, turnout.e) == (math.inf, math.pi, math.e)
    assert math.isnan(turnout.nan)
    assert turnout.zeros(3)[:, turnout.newaxis].shape == (3, 1)
