"""A sweep of parameters: a network for each learning rate, trained all at once by `vmap`, and one by one on the workers.

    turnout-sweep
    turnout-sweep --rates 32 --steps 500 --workers 4

Both ways take the same steps, so they find the same losses. `vmap` suits many small networks: each operator runs once for all of
them. Futures suit few large ones, for each is trained in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

from distributed import as_completed

import turnout
from turnout import Tensor
from turnout_dask_programs.clusters import bar, workers

EXAMPLES, FEATURES, HIDDEN = 256, 8, 16


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--rates", type=int, default=8, help="how many learning rates are tried")
    made.add_argument("--steps", type=int, default=60, help="steps of each training")
    made.add_argument("--workers", type=int, default=2, help="how many processes train networks")
    made.add_argument("--memory", default="600MB", help="how much memory each of them may have")
    made.add_argument("--json", action="store_true", help="print what was found as JSON")
    return made


Parameters = tuple[Tensor, Tensor]


def data() -> tuple[Tensor, Tensor]:
    """Points, and a curved function of them."""
    generator = turnout.Generator("cpu").manual_seed(0)
    x = turnout.randn(EXAMPLES, FEATURES, generator=generator, device="cpu")
    return x, (x[:, 0] * x[:, 1]).sin() + x[:, 2].abs()


def initial() -> Parameters:
    """The weights with which each training begins."""
    generator = turnout.Generator("cpu").manual_seed(1)
    first = turnout.randn(FEATURES, HIDDEN, generator=generator, device="cpu") / FEATURES**0.5
    return first, turnout.randn(HIDDEN, generator=generator, device="cpu") / HIDDEN**0.5


def loss(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
    """The mean squared error of a network with one hidden layer."""
    first, second = parameters
    return (((x @ first).tanh() @ second - y) ** 2).mean()


def step(parameters: Parameters, rate: Tensor, x: Tensor, y: Tensor) -> Parameters:
    """One step of gradient descent."""
    grads = turnout.func.grad(loss)(parameters, x, y)
    first, second = (parameter - rate * grad for parameter, grad in zip(parameters, grads, strict=True))
    return first, second


def train(rate: float, steps: int) -> float:
    """The loss after a training. It runs on a worker."""
    x, y = data()
    parameters, factor = initial(), turnout.tensor(rate, device="cpu")
    for _ in range(steps):
        parameters = step(parameters, factor, x, y)
    return float(loss(parameters, x, y))


def by_vmap(rates: Sequence[float], steps: int) -> list[float]:
    """The losses of all trainings, which are one training of a batch of networks."""
    x, y = data()
    batch = turnout.tensor(rates, device="cpu")
    many = turnout.vmap(step, in_dims=((0, 0), 0, None, None))
    parameters = tuple([parameter.expand(len(rates), *parameter.shape) for parameter in initial()])
    with bar() as shown:
        for _ in shown.track(range(steps), description="by vmap: steps"):
            parameters = many(parameters, batch, x, y)
    found: list[float] = turnout.vmap(loss, in_dims=((0, 0), None, None))(parameters, x, y).tolist()
    return found


def by_futures(client: Any, rates: Sequence[float], steps: int) -> list[float]:
    """The losses of all trainings, which the workers of a cluster share among them."""
    futures = client.map(train, rates, [steps] * len(rates), pure=False)
    with bar() as shown:
        for _ in shown.track(as_completed(futures), total=len(futures), description="by futures: trainings"):
            pass
    found: list[float] = client.gather(futures)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both ways and print the losses."""
    options = parser().parse_args(arguments)
    rates = [0.4 * (i + 1) / options.rates for i in range(options.rates)]
    with workers(options.workers, options.memory) as client:
        start = time.perf_counter()
        together = by_vmap(rates, options.steps)
        middle = time.perf_counter()
        apart = by_futures(client, rates, options.steps)
        seconds = {"vmap": middle - start, "futures": time.perf_counter() - middle}
    if options.json:
        print(json.dumps({"rates": rates, "vmap": together, "futures": apart, "seconds": seconds}))
        return
    print("rate   loss by vmap  loss by futures")
    for rate, one, other in zip(rates, together, apart, strict=True):
        print(f"{rate:.3f}  {one:12.5f}  {other:15.5f}")
    print(", ".join(f"{name} {took:.1f} s" for name, took in seconds.items()))


if __name__ == "__main__":
    main()
