"""The drawing of one call: its arguments, the keys from the highest to the lowest, and the kernels that run.

Everything in it comes from `turnout.explain`, which makes the plan that the call itself would make. Colours come from the style
sheet of the site, so that the drawing follows its light and dark modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import turnout
from turnout.explanation.explanation import Explanation, Step

WIDTH, MARGIN, LINE = 480, 14, 20
LABEL_WIDTH, ROW, BOX = 140, 66, 44
KERNEL_LEFT = MARGIN + LABEL_WIDTH + 44
ARROW_HEAD = (
    '<defs><marker id="call-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L10 5L0 10z" class="arrow-head"/></marker></defs>'
)


def fragment() -> str:
    """The drawing of a product of tensors that require a gradient, as a figure of HTML."""
    weight = turnout.ones(3, requires_grad=True)
    return f'<div class="call">\n{svg(turnout.explain("aten::mul.Tensor", weight, weight))}\n</div>\n'


def svg(explanation: Explanation) -> str:
    """The drawing, as the text of an SVG."""
    steps = {step.key: step for hop in explanation.hops for step in hop.steps}
    keys = explanation.hops[0].keys
    top = MARGIN + LINE * (2 + len(explanation.arguments)) + 24
    height = top + 34 + ROW * len(keys)
    rows = {key: top + 34 + ROW * i for i, key in enumerate(keys)}
    title = f"{explanation.operator}: from the arguments to the kernels that run"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        ARROW_HEAD,
        *_call(explanation, top),
        _text(MARGIN, top + 18, "keys, highest first", "muted"),
        _text(KERNEL_LEFT, top + 18, "what serves the operator there", "muted"),
    ]
    for key, y in rows.items():
        lines += _row(key, y, steps.get(key))
    lines += _arrows([rows[step.key] for step in explanation.path if step.key in rows], top)
    return "\n".join([*lines, "</svg>"])


def _call(explanation: Explanation, bottom: int) -> Iterator[str]:
    yield f'<rect x="1" y="1" width="{WIDTH - 2}" height="{bottom - 14}" rx="6" class="box"/>'
    yield _text(MARGIN, MARGIN + 12, explanation.schema, "code strong")
    for i, argument in enumerate(explanation.arguments):
        yield _text(MARGIN, MARGIN + 12 + LINE * (i + 1), f"{argument.name} = {argument.value}", "code")
    added = ", ".join(explanation.state.added) or "nothing"
    removed = ", ".join(name.partition(" ")[0] for name in explanation.state.removed) or "nothing"
    y = MARGIN + 12 + LINE * (len(explanation.arguments) + 1)
    yield _text(MARGIN, y, f"the thread's state adds {added} and removes {removed}", "muted")


def _row(key: str, y: int, step: Step | None) -> Iterator[str]:
    yield f'<rect x="{MARGIN}" y="{y}" width="{LABEL_WIDTH}" height="{BOX}" rx="6" class="key"/>'
    yield _text(MARGIN + 12, y + 27, key, "code")
    if step is None:
        return
    if step.kernel and step.verdict == "chosen":
        width = WIDTH - KERNEL_LEFT - 1
        yield f'<rect x="{KERNEL_LEFT}" y="{y}" width="{width}" height="{BOX}" rx="6" class="kernel"/>'
        yield _text(KERNEL_LEFT + 12, y + 19, step.kernel, "code strong")
        at = "" if step.at == key else f" at {step.at}"
        yield _text(KERNEL_LEFT + 12, y + 36, f"{step.distribution}: {step.reason}{at}", "muted")
    else:
        yield _text(KERNEL_LEFT + 12, y + 27, step.verdict, "muted")


def _arrows(chosen: list[int], top: int) -> Iterator[str]:
    """From the call to the first kernel, and from each kernel to the one that it redispatches to."""
    start, x = top - 13, LABEL_WIDTH + MARGIN + 20
    for i, y in enumerate(chosen):
        target = y + BOX // 2
        if i == 0:
            yield _arrow(f"M{x} {start}V{target}H{KERNEL_LEFT - 3}")
        else:
            yield _arrow(f"M{KERNEL_LEFT} {start}H{x}V{target}H{KERNEL_LEFT - 3}")
            yield _text(KERNEL_LEFT + 12, start + 29, "redispatches to the keys below", "muted")
        start = target + 8


def _arrow(path: str) -> str:
    return f'<path d="{path}" class="arrow" marker-end="url(#call-arrow)"/>'


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text x="{x}" y="{y}" class="{style}">{escape(text)}</text>'
