"""Draws what the demo found: the loss of each epoch, and which digits were taken for which."""

from __future__ import annotations

from pathlib import Path

from turnout_aten.files import replacing


def draw(path: Path, losses: list[float], confusion: list[list[int]]) -> None:
    """Write the picture in the format of the path's suffix. Raises ValueError for one that matplotlib cannot write."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    curve, matrix = figure.subplots(1, 2)
    curve.plot(range(1, len(losses) + 1), losses, marker="o", markersize=3)
    curve.set(xlabel="epoch", ylabel="training loss", yscale="log", title="Loss")
    curve.grid(alpha=0.3)
    matrix.imshow(confusion, cmap="Blues")
    ticks = range(len(confusion))
    matrix.set(xlabel="predicted", ylabel="true", xticks=ticks, yticks=ticks, title="Held-out digits")
    half = max(max(row) for row in confusion) / 2
    for true, row in enumerate(confusion):
        for predicted, count in enumerate(row):
            if count:
                color = "white" if count > half else "black"
                matrix.text(predicted, true, str(count), ha="center", va="center", color=color, fontsize=8)
    # A path without a suffix gets the format that is matplotlib's own choice.
    with replacing(path) as file:
        figure.savefig(file, dpi=120, format=path.suffix.removeprefix(".") or None)
