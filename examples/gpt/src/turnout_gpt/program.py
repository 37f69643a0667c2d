"""`turnout-gpt`: trains a GPT on the pages of Python's help, or goes on with one from a file, and samples a text."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from math import cos, pi
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.progress import Progress

import turnout
from turnout import Tensor, nn
from turnout_gpt.model import GPT, Sizes, sample
from turnout_gpt.text import Text


def rate(step: int, steps: int) -> float:
    """The part of the learning rate at a step: it rises over a twentieth of them, and falls along a cosine to a tenth."""
    rise = max(1, steps // 20)
    if step < rise:
        return (step + 1) / rise
    return 0.55 + 0.45 * cos(pi * (step - rise) / max(1, steps - rise))


def gradients(model: GPT, tokens: Tensor, targets: Tensor) -> Tensor:
    """The loss of a batch. Its gradients are in `.grad` of the parameters."""
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    loss.backward()
    return loss.detach()


def train(model: GPT, text: Text, given: Namespace, progress: Progress) -> tuple[list[float], list[float]]:
    """The loss of each step, and its seconds."""
    step = turnout.compile(gradients, engine=given.compile) if given.compile else gradients
    decayed = [p for p in model.parameters() if p.ndim > 1]  # not biases and scales
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimiser = turnout.optim.AdamW(groups, lr=given.rate, betas=(0.9, 0.95))
    schedule = turnout.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate(step, given.steps))
    task = progress.add_task("training", total=given.steps)
    losses, seconds = [], []
    for _ in range(given.steps):
        start = perf_counter()
        loss = step(model, *text.batch(given.batch, given.context))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        losses.append(loss.item())
        seconds.append(perf_counter() - start)
        progress.update(task, advance=1, description=f"loss {losses[-1]:.3f}")
    return losses, seconds


def draw(values: Sequence[float], what: str, file: str, scale: str = "linear") -> None:
    """A value of each step, as a chart."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(values)
    axes.set(xlabel="step", ylabel=what, yscale=scale)
    figure.savefig(file)


def arguments() -> ArgumentParser:
    """What the command takes."""
    parser = ArgumentParser(prog="turnout-gpt", description="Train a small GPT on the pages of Python's help, and sample a text.")
    for name, usual, words in (
        ("--steps", 500, "steps of training; 0 samples alone"),
        ("--batch", 16, "pieces of text in a step"),
        ("--context", 64, "characters in a piece"),
        ("--layers", 4, "layers of the model"),
        ("--heads", 4, "heads of attention"),
        ("--width", 128, "the length of a character's vector"),
        ("--characters", 300, "characters to sample"),
        ("--seed", 0, "the seed of everything random"),
    ):
        parser.add_argument(name, type=int, default=usual, help=f"{words} (default: {usual})")
    parser.add_argument("--rate", type=float, default=2e-3, help="the learning rate at its highest")
    parser.add_argument("--dropout", type=float, default=0.0, help="the probability of dropout")
    parser.add_argument("--device", default="cpu", help="where to train")
    parser.add_argument("--topic", default="", help="one page, such as lambda; by default, all of them")
    parser.add_argument("--prompt", default="The ", help="what the sampled text begins with")
    parser.add_argument("--load", metavar="FILE", help="begin with the weights of a safetensors file")
    parser.add_argument("--save", metavar="FILE", help="write the weights into a safetensors file")
    parser.add_argument("--plot", metavar="FILE", help="draw the losses into a file")
    parser.add_argument("--compile", metavar="ENGINE", help="compute the gradients by an engine of turnout.compile")
    parser.add_argument("--times", metavar="FILE", help="draw the time that each step took into a file")
    return parser


def main(args: Sequence[str] | None = None) -> None:
    """The command."""
    given = arguments().parse_args(args)
    console = Console()
    turnout.manual_seed(given.seed)
    text = Text(given.topic, given.device)
    model = GPT(Sizes(len(text.characters), given.context, given.layers, given.heads, given.width, given.dropout))
    if given.load:
        model.load_state_dict(nn.load_safetensors(given.load))
    model.to(given.device)
    console.print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(text.tokens):,} characters")
    with Progress(console=Console(stderr=True)) as progress:
        losses, seconds = train(model, text, given, progress)
    if losses:
        each, first = 1000 * median(seconds), 1000 * seconds[0]
        console.print(
            f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} at last; {each:.1f} ms for a step, {first:.0f} for the first"
        )
    if given.save:
        nn.save_safetensors(model.state_dict(), given.save)
    if given.plot:
        draw(losses, "loss (nats for each character)", given.plot)
    if given.times:
        draw([1000 * each for each in seconds], "milliseconds", given.times, "log")
    console.print(given.prompt + text.decode(sample(model, text.encode(given.prompt), given.characters)), markup=False)
