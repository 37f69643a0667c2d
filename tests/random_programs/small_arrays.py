"""Random calls on small arrays: dtype, shape, strides and every bit of each result, so that two runs can be compared.

`python -m random_programs.small_arrays FIRST COUNT` prints one JSON line for each call of each program. Every call is made twice,
for the first one may learn what the second one uses.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import warnings
from typing import Any

import numpy

import turnout

FLOATS = ["float32"] * 5 + ["float64"] * 3
OTHERS = ["int64", "int32", "uint8", "bool", "int8", "float16", "bfloat16", "complex64"]
LENGTHS = [1, 2, 3, 4, 5, 8, 16, 17]
NUMBERS = [2, 0, -1, 1.5, 0.1, -0.0, float("nan"), True, 300, 1 << 25, 1e300]
SPECIAL = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-40, -5.0]
CALLS = """
x + y; x - y; x * y; x / y; x > y; x == y; x <= y; x != num; x > num; x + num; x * num; num - x; x / num; x**y; x % y; x // y
m.maximum(x, y); m.minimum(y, x); m.fmod(x, y); x.logical_and(y); x & y; m.maximum(x, m.tensor(0.0))
x.exp(); x.log(); x.sqrt(); x.sin(); x.tanh(); -x; x.abs(); m.relu(x); x.floor(); x.ceil(); x.trunc(); x.isnan(); x.logical_not()
x.sum(); x.sum(d); m.sum(x, d, keep); x.sum(dims, keepdim=keep); x.mean(); x.mean(d); m.mean(x, d, keep); x.amax(d); x.square()
m.amax(x, dims, keep); m.amin(x, d, keep); x.max(); x.min(); F.softmax(x, d); F.log_softmax(x, d); F.layer_norm(x, x.shape[-1:])
x.clone().add_(y); x.clone().mul_(num); x.clone().sub_(y); x.clone().div_(y); x.clone().relu_(); x.clone().gt_(y)
x.clone().unsqueeze(0).add_(y); x.clone().add_(num); (lambda z: z.add_(z))(x.clone()); (lambda z: z.add_(z.t()))(x.clone())
m.cat([x, x], d); m.cat([x, y], d); m.stack([x, x, y]); m.where(x > 0, x, y); m.where(x > y, x, num); x[m.tensor([0])]
x.reshape(-1); x.clone(); x.to(m.float64); x @ y; F.linear(x, y); x.sum().item(); x @ x; x @ x.mT; x.mT @ x
m.addmm(y, x, x.t()); m.addmm(y, x, x.t(), alpha=2); m.bmm(x, x.mT); m.baddbmm(y, x, x.mT); F.linear(x, x); F.linear(x, x, y)
x.var(); x.std(d); m.var(x, dims, correction=0, keepdim=keep); x.norm(); x.norm(dim=d); x.prod(); x.prod(d, keep)
x.clamp(-1.0, 1.0); x.clone().clamp_(0, num); x.clamp(min=num); x.argmax(); x.argmax(d, keep); x.argmin(d); x.max(d)
x.min(d, keep); x.cumsum(d); x.sort(d); x.sort(d, descending=keep); x.sort(dim=d, stable=True); x.topk(1, d)
x.topk(2, d, keep); x.flip(d); x.tril(d); x.triu(num); (x > 0).any(); (x > 0).all(d); (x > 0).any(d, keep); x[x > 0]; x[i]
x[i, i]; x[:, i]; x[..., None, 0]; x[None, 1:]; x[..., i]; x.index_select(d, i); x.gather(d, (x > 0).long())
(lambda z: (z.__setitem__(i, num), z))(x.clone()); x.index_put((i,), y); (lambda z: (z.__setitem__(z > 0, num), z))(x.clone())
(lambda z: (z.__setitem__((0, ...), y), z))(x.clone()); x.clone().copy_(y)
(lambda z: (z.__setitem__(slice(1), x[:1]), z))(x.clone()); m.add(x, y, out=m.empty(0)); m.mul(x, y, out=m.empty_like(x))
m.sum(x, d, out=x.clone()); m.exp(x, out=x.clone()); x.item(); x.unbind(d); x.split(2, d); x.chunk(2, d); x + y.double()
x * (y > 0); x.masked_fill(x > 0, num)
m.zeros(3, 2); m.full((2,), num); m.ones((2, 3), dtype=x.dtype); m.arange(5)
m.arange(d, 9, 2); m.arange(3, d, -1); m.arange(num); m.zeros_like(x); m.rand(3, 5); m.randn(d, 3); m.randn((), dtype=x.dtype)
m.rand((2, 2), dtype=x.dtype); m.linspace(num, d, 7); m.linspace(0, num, 4, dtype=x.dtype); m.eye(3, dtype=x.dtype); m.eye(d, 2)
m.equal(x, y); m.equal(x, x); x.flatten(); x.reshape(2, -1); x.reshape(-1, 3); m.stack([x, x], d); m.stack((x, y), d); x.unbind(0)
F.nll_loss(x, m.arange(len(x)) % 2, reduction="sum"); F.cross_entropy(x, m.arange(len(x)) % 3); F.nll_loss(x, m.arange(len(x)))
(lambda z: m.autograd.grad(F.cross_entropy(z, m.arange(len(x)) % 3), z))(x.detach().requires_grad_()); x.masked_fill(y > 0, num)
F.silu(x); F.elu(x, num)
m.addcmul(x, x, x, value=num); x.sigmoid(); F.hardtanh(x, -1, num); F.softplus(x); m.addcdiv(x, y, x)
"""


def main(first: int, count: int) -> None:
    """Print the results of the programs `first` to `first + count - 1`."""
    warnings.simplefilter("ignore")
    statements = [s.strip() for s in CALLS.replace("\n", ";").split(";") if s.strip()]
    for seed in range(first, first + count):
        names = _names(random.Random(seed), numpy.random.default_rng(seed))
        for statement in random.Random(seed).sample(statements, 14):
            found = [_result(statement, names) for _ in range(2)]
            sys.stdout.write(json.dumps([seed, statement, str(names["x"].dtype), *map(repr, names["shown"]), found]) + "\n")


def _names(choose: random.Random, values: numpy.random.Generator) -> dict[str, Any]:
    """The tensors and numbers of one program."""
    dtype = getattr(turnout, choose.choice(FLOATS + OTHERS))
    shape = [choose.choice(LENGTHS) for _ in range(choose.randint(0, 4))]
    x = _tensor(choose, values, shape, dtype)
    other = list(shape)
    if shape and choose.random() < 0.4:
        other = [1 if choose.random() < 0.3 else length for length in shape[choose.randint(0, len(shape)) :]]
    y = _tensor(choose, values, other, dtype)
    if choose.random() < 0.2 and len(shape) >= 2:
        x = x.transpose(0, -1)
    n = len(shape)
    d, num = choose.randint(-n - 1, n), choose.choice(NUMBERS)
    dims = tuple(choose.randint(-n, max(n - 1, 0)) for _ in range(choose.randint(0, 3)))
    given = {
        "x": x,
        "y": y,
        "i": turnout.tensor([0, -1, 1][: choose.randint(1, 3)]),
        "d": d,
        "num": num,
        "dims": dims,
        "keep": choose.random() < 0.5,
    }
    return {**given, "m": turnout, "F": turnout.nn.functional, "shown": (shape, other, d, num, dims)}


def _tensor(choose: random.Random, values: numpy.random.Generator, shape: list[int], dtype: Any) -> turnout.Tensor:
    made = values.standard_normal(shape) * choose.choice([1, 1, 10, 1000])
    flat = numpy.asarray(made).reshape(-1)
    if choose.random() < 0.3:
        flat = numpy.array([choose.choice(SPECIAL) if choose.random() < 0.3 else v for v in flat])
    if not (dtype.is_floating_point or dtype.is_complex):
        flat = numpy.nan_to_num(flat, posinf=9, neginf=-9) * 3
    return turnout.tensor(flat.reshape(shape)).to(dtype)


def _result(statement: str, names: dict[str, Any]) -> Any:
    try:
        value = eval(statement, dict(names))
    except Exception as error:  # noqa: BLE001 - whatever it is, both runs must raise it
        return [type(error).__name__, str(error)]
    if not isinstance(value, turnout.Tensor):
        return repr(value)
    bits = hashlib.md5(numpy.ascontiguousarray(value.array).tobytes(), usedforsecurity=False).hexdigest()
    return [str(value.dtype), list(value.shape), list(value.stride()), bits, value._version, value.view_of is not None]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
