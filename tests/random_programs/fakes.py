"""Programs for fake tensors: lines that call the library `t`, with factories, views, writes and operators on several devices.

`symbolic` programs have operators whose results have sizes that depend on values, and use these sizes. `static` ones do not.
"""

from __future__ import annotations

from random import Random

FACTORIES = (
    "t.zeros(2, 3, device=D)", "t.ones(3, 4, 2, device=D)", "t.arange(6, device=D)", "t.full((4,), 2.5, device=D)",
    "t.eye(3, device=D)", "t.empty(2, 3, 4, device=D).transpose(0, 2)", "t.zeros(3, dtype=t.int64, device=D)",
    "t.tensor([[1, 2], [3, 4]], device=D)", "t.rand(2, 3, device=D)", "t.tensor(2.0, device=D)", "t.zeros(0, 3, device=D)",
    "t.linspace(0, 1, 5, device=D)", "t.tensor(3)", "t.zeros(2, 1, 3, device=D).expand(2, 4, 3)",
    "t.ones(2, 3, dtype=t.float64, device=D)", "t.ones(4, 3, dtype=t.bool, device=D)",
)  # fmt: skip
UNARY = (
    "A + 1", "A * 2.5", "A.sum()", "A.sum(0)", "A.mean(-1)", "A.t()", "A.reshape(-1)", "A.unsqueeze(0)", "A.squeeze()", "A[0]",
    "A[1:]", "A[..., ::2]", "A.transpose(0, 1)", "A.contiguous()", "A.clone()", "A.to(t.float64)", "A.to(D)", "A.exp()",
    "A > 0", "A.amax(0)", "A.cumsum(0)", "A.flip(0)", "A.repeat(2, 1, 1)", "A.softmax(-1)", "A.permute(1, 0)", "A.view(-1)",
    "A.sort(-1)[0]", "A.diagonal()", "A.var(0)", "A.flatten()", "A.expand(2, 3)", "A.narrow(0, 0, 1)", "A.unfold(0, 2, 1)",
    "t.zeros_like(A)", "A.new_ones(2, 2)", "-A", "t.rand_like(A)", "A.tril()", "A.roll(1, 0)", "A.argmax(0)", "A.long()",
    "A.float()", "A.add_(1)", "A.mul_(2)", "A.zero_()",
)  # fmt: skip
BINARY = (
    "A + B", "A * B", "A @ B", "t.cat([A, B])", "t.stack([A, B])", "t.where(A > 0, A, B)", "A.copy_(B)", "A.add_(B)",
    "t.maximum(A, B)", "A.expand_as(B)", "A == B", "A / B", "t.outer(A, B)", "A[B.long()]", "A.index_select(0, B.long())",
    "A.to(B)", "A.masked_fill(B > 0, 1)",
)  # fmt: skip
DYNAMIC = (
    "A.nonzero()", "A[A > 0]", "A.masked_select(A > 1)", "t.unique(A)", "A.repeat_interleave(N, 0)",
    "t.bincount((A > 0).reshape(-1).long())", "t.unique_consecutive(A)",
)  # fmt: skip
SIZED = (
    "t.zeros(A.shape[0], 3)", "t.arange(A.shape[0])", "A.view(A.shape[0], -1)", "A.expand(2, *A.shape)",
    "B.new_ones(A.numel())", "A.reshape(-1, 2)", "t.cat([A, A])", "A[1:]", "A[:2]", "A[-1]", "A[::2]",
    "A.unsqueeze(1) + A.unsqueeze(0)", "A * A.shape[0]", "t.nn.functional.pad(A, (1, 2))", "A.float() @ t.ones(A.shape[-1], 2)",
    "A.sum(0)", "A.view(-1)", "A.repeat(2, 2)", "A.t()", "t.zeros(A.shape[0] * 2 + 1)", "t.ones(A.shape[0] // 2, 2)",
    "A.float().mean()", "A.cumsum(0)", "A.sort(0)[0]",
)  # fmt: skip
DEVICES = ("'cpu'", "'cpu'", "'cpu'", "'cuda'", "'meta'")


def static_program(seed: int, devices: tuple[str, ...] = DEVICES) -> list[str]:
    """Lines without sizes that depend on values."""
    random = Random(seed)
    lines: list[str] = []
    for i in range(random.randint(5, 14)):
        kinds = FACTORIES if i < 2 or random.random() < 0.2 else random.choice([UNARY, UNARY, BINARY])
        text = random.choice(kinds).replace("D", random.choice(devices))
        lines.append(f"x{i} = {filled(text, i, random)}")
    return lines


def symbolic_program(seed: int) -> list[str]:
    """Lines with sizes that depend on values; the values are those of `data`, a list of tensors."""
    random = Random(seed)
    lines = [f"x{i} = data[{i}]" for i in range(3)]
    for i in range(3, random.randint(6, 14)):
        text = random.choice(random.choice([DYNAMIC, SIZED, SIZED, UNARY, BINARY]))
        text = text.replace("D", "'cpu'").replace("N", "t.tensor([1, 2, 0])")
        lines.append(f"x{i} = {filled(text, i, random)}")
    return lines


def filled(text: str, known: int, random: Random) -> str:
    """The text with names of known tensors for A and B."""
    for letter in "AB":
        name = f"x{random.randrange(known) if random.random() < 0.5 else known - 1}" if known else ""
        text = "".join(name if c == letter and not _inside_word(text, j) else c for j, c in enumerate(text))
    return text


def _inside_word(text: str, at: int) -> bool:
    return (at and (text[at - 1].isalnum() or text[at - 1] == "_")) or (at + 1 < len(text) and text[at + 1].isalnum())
