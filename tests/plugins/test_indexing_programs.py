"""Random programs that read and write `x[index]`, against what the same index selects in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import turnout
from outcomes import refused
from random_programs.indexing import Array, Program, Read, Selection, Shape, Write, WrongIndexError, row_major, select
from random_programs.running import check, run, says
from turnout.errors import TurnoutError


class Plain(NamedTuple):
    """A tensor in plain Python: a memory that views share, and the places of the elements in it."""

    memory: list[int]
    places: list[int]
    shape: Shape

    @property
    def values(self) -> list[int]:
        return [self.memory[place] for place in self.places]


def judge_program(program: Program) -> str:
    """What differs between Turnout and the reference; "" if nothing does."""
    scope: dict[str, Any] = {"t": turnout}
    plain: dict[str, Plain] = {}
    for name, shape in program.roots.items():
        count = math.prod(shape)
        plain[name] = Plain(list(range(count)), list(range(count)), shape)
    for line in program.first:
        exec(line, scope)
    for step in program.steps:
        found, expected = run(str(step), scope), None
        if isinstance(found, NameError):
            return ""  # a step that made this name was left out
        try:
            follow(step, plain)
        except WrongIndexError as error:
            expected = error
        if (found is None) != (expected is None) or not isinstance(found, TurnoutError | None):
            return f"{step}\n  {says(found)}, expected {says(expected)}"
        for name, tensor in plain.items():
            ours = scope[name]
            if ours.shape != tensor.shape or ours.reshape(-1).tolist() != tensor.values:
                return f"after {step}\n  {name}: {ours}, expected {tensor.values} in shape {list(tensor.shape)}"
            for other, another in plain.items():
                if tensor.places and ours.shares_memory_with(scope[other]) != (tensor.memory is another.memory):
                    return f"after {step}\n  only one of the two says that {name} and {other} share memory"
    return ""


def follow(step: Read | Write, plain: dict[str, Plain]) -> None:
    """Do a step in plain Python. Raises WrongIndexError, and changes nothing then."""
    if isinstance(step, Read):
        source = plain.get(step.source)
        if source is not None:
            chosen = select(source.shape, step.index.items)
            plain[step.name] = picked(source, chosen)
        return
    target = plain.get(step.target)
    if target is None:
        return
    if step.sign == "=" and step.index.text == "False":
        return
    chosen = select(target.shape, step.index.items)
    places = [target.places[place] for place in chosen.places]
    shape = step.shape
    while step.sign == "=" and shape and shape[0] == 1:
        shape = shape[1:]
    values = expanded(step.numbers, shape, chosen.shape)
    if step.sign != "=":
        before = [target.memory[place] for place in places]
        values = [CALCULATES[step.sign](a, b) for a, b in zip(before, values, strict=True)]
    for place, value in zip(places, values, strict=True):
        target.memory[place] = value


CALCULATES = {"+=": int.__add__, "-=": int.__sub__, "*=": int.__mul__}


def picked(source: Plain, chosen: Selection) -> Plain:
    places = [source.places[place] for place in chosen.places]
    if chosen.is_view:
        return Plain(source.memory, places, chosen.shape)
    return Plain([source.memory[place] for place in places], list(range(len(places))), chosen.shape)


def expanded(numbers: list[int], shape: Shape, wanted: Shape) -> list[int]:
    """Numbers of a shape, repeated to another one. Raises WrongIndexError if the shape does not expand to it."""
    lead = len(wanted) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, wanted[lead:], strict=True)):
        raise WrongIndexError("the value does not fit")
    strides = [0 if n == 1 else math.prod(shape[d + 1 :]) for d, n in enumerate(shape)]
    return [numbers[sum(i * s for i, s in zip(at[lead:], strides, strict=True))] for at in row_major(wanted)]


def test_indexing_selects_what_plain_python_selects(seeds: Callable[..., range]) -> None:
    for seed in seeds(300, many=10_000):
        program = Program(seed, simple=True)
        check({seed: program.lines}, lambda lines, program=program: judge_lines(program, lines))


def judge_lines(program: Program, lines: Any) -> str:
    """The verdict on the steps of a program that are among the lines."""
    kept = Program.__new__(Program)
    kept.__dict__.update(program.__dict__, steps=[step for step in program.steps if str(step) in lines])
    return judge_program(kept)


@pytest.mark.parametrize(
    ("items", "places"),
    [
        ((1,), [4, 5, 6, 7]),
        ((slice(None, None, 2), 3), [3, 11]),
        ((Array([0, 2], (2,)), Array([1, 3], (2,))), [1, 11]),
        ((Array([True, False, True], (3,), True), -1), [3, 11]),
        ((Ellipsis, None, 0), [0, 4, 8]),
        ((False,), []),
    ],
)
def test_the_reference_selects_these_places(items: tuple[Any, ...], places: list[int]) -> None:
    assert select((3, 4), items).places == places


def test_a_wrong_result_is_found_and_made_short() -> None:
    program = Program(0, simple=True)
    broken = "x = t.arange(12).reshape([3, 4])"
    lines = [broken, "r0 = x[0]", "x[1:] = 7", "r1 = x[::2]"]

    def wrong(kept: Any) -> str:
        return "differs" if broken in kept and "x[1:] = 7" in kept else ""

    assert refused(AssertionError, lambda: check({5: lines}, wrong)) == (
        f"seed 5: differs\n\n{broken}\nx[1:] = 7\n\n--seed 5 --programs 1 runs it again"
    )
    assert program.lines == Program(0, simple=True).lines


def test_a_slice_backwards_is_a_copy_through_all_layers() -> None:
    x = turnout.arange(6.0).reshape(2, 3).requires_grad_()
    (x[:, ::-1] * turnout.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[3.0, 2.0, 1.0]] * 2
    y = x.detach().clone()
    y[::-1, turnout.tensor([0, 2])] = turnout.tensor([[1.0], [2.0]])
    assert y.tolist() == [[2.0, 1.0, 2.0], [1.0, 4.0, 1.0]]
    assert turnout.vmap(lambda row: row[::-2])(x.detach()).tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert turnout.trace(lambda t: t[..., ::-1])(y)(y).tolist() == y.flip(-1).tolist()
    mode = turnout.FakeMode()
    fake = mode.from_tensor(y, dynamic=(0,))
    with mode:
        assert fake[::-1].shape == fake.shape
        text = "a slice with step -2 needs a length and bounds that are known; where one is a symbol, only x[::-1] can be read"
        assert refused(turnout.errors.ShapeError, lambda: fake[::-2]) == text


def put_in(x: turnout.Tensor, mask: turnout.Tensor) -> turnout.Tensor:
    x = x.clone()
    x[mask] = turnout.tensor([7.0, 8.0, 9.0, 10.0], device=x.device)
    return x


MASKED: list[Callable[[turnout.Tensor, turnout.Tensor], turnout.Tensor]] = [
    lambda x, m: x[m],
    lambda x, m: x[m, 1],
    lambda x, m: x[:, m],
    lambda x, m: x[turnout.outer(m, m).to(m.dtype)],
    put_in,
    lambda x, m: turnout.ops.aten.index.Tensor(x, [None, m]),
    lambda x, m: turnout.ops.aten._unsafe_index.Tensor(x, [m]),
    lambda x, m: x.clone().index_put_((m,), turnout.tensor([[5.0] * 4, [6.0] * 4], device=x.device)),
    lambda x, m: x.index_put((m, m), turnout.tensor([5.0, 6.0], device=x.device), accumulate=True),
    lambda x, m: x.index_put((m,), turnout.tensor(5, device=x.device)),
    lambda x, m: turnout.func.grad(lambda y: (y[m] * y[m]).sum())(x),
    lambda x, m: turnout.vmap(lambda y: y[m])(x),
    lambda x, m: turnout.vmap(lambda y, n: y.index_put((n,), turnout.tensor(5.0, device=x.device)))(
        x, turnout.outer(m, m).to(m.dtype)
    ),
]


@pytest.mark.parametrize("call", MASKED)
@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_a_uint8_tensor_is_a_mask_wherever_a_bool_one_is(call: Any, device: str, request: pytest.FixtureRequest) -> None:
    if device == "opencl":
        request.getfixturevalue("need_device")("opencl")
    x, mask = turnout.arange(16.0).reshape(4, 4).to(device), turnout.tensor([0, 1, 0, 3], dtype=turnout.uint8).to(device)
    assert call(x, mask).tolist() == call(x, mask != 0).tolist()


@pytest.mark.parametrize(
    ("listed", "tupled"),
    [
        ([[0, 1], [1, 0]], ([0, 1], [1, 0])),
        ([[1, 0]], ([1, 0],)),
        ([None, [1]], (None, [1])),
        ([slice(1), 0], (slice(1), 0)),
        ([..., 0], (..., 0)),
        ([[[0, 1]], 0], ([[0, 1]], 0)),
    ],
)
def test_a_list_of_more_than_numbers_is_read_as_a_tuple_with_a_warning(listed: Any, tupled: Any) -> None:
    x = turnout.arange(12.0).reshape(2, 2, 3)
    with pytest.warns(UserWarning, match="is read as a tuple") as caught:
        found = x[listed]
    assert found.tolist() == x[tupled].tolist()
    assert str(caught[0].message) == (
        "x[[...]] with lists, slices, None or tensors in the list is read as a tuple, an index for each dim\n"
        "  to fix  write x[i, j] for a tuple, x[turnout.tensor(index)] for one index"
    )
    assert caught[0].filename == __file__
    assert x[[1, 0]].tolist() == x[turnout.tensor([1, 0])].tolist()
    assert x[[[0]] * 32].shape == (32, 1, 2, 3)
