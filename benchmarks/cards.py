"""Rows about device `cuda`, against PyTorch on the same card, and what the card and its libraries are.

Beside the rows of `kernels`, with arrays that are eight times as long, there are some in bfloat16 and with TF32, steps of
optimisers, small calls on 64 x 64, and the step that trains a small network, eager and recorded. A batch is some calls in a row and
a wait for the device, so a row of small calls takes the time of the host. Both libraries compute float32 with all digits but where
a row says TF32.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

import kernels
import small
from numeric import Skipped, network, step, torch_with_threads
from timing import Pair, Side

import turnout

TF32 = "tf32"


class CardRow(NamedTuple):
    """One statement, `calls` times in a row. `m` is the library, `F` its functions of neural networks.

    before  statements that prepare what it uses
    mode    "tf32" where float32 may be multiplied with 10 digits
    """

    name: str
    statement: str
    before: str = ""
    mode: str = ""
    calls: int = 8


# ---- what statements use

# Arrays that are eight times as long as those of `kernels`.
_LONGER = ("x", "y", "pos", "mat", "img", "seq", "q", "tokens", "ba", "bb", "picks", "grid", "target")
_TIMES, _SMALL, _LISTED = 8, 64, 50
_SMALL_CALLS = "globals().update(small_names(m, device))"


def lists(m: Any, x: Any, y: Any) -> dict[str, list[Any]]:
    """Parameters and gradients in lists, with what optimisers keep for them."""
    made: dict[str, list[Any]] = {
        "ps": [part.clone() for part in x.chunk(_LISTED)],
        "gs": [part * 0.01 for part in y.chunk(_LISTED)],
    }
    made |= {name: [m.zeros_like(p) for p in made["ps"]] for name in ("means", "squares")}
    return made | {"steps": [m.ones((), device=p.device) for p in made["ps"]]}


def recorded(m: Any, run: Callable[[], Any]) -> Any:
    """A graph of what a function does, after three calls that are not recorded."""
    stream = m.cuda.Stream()
    stream.wait_stream(m.cuda.current_stream())
    with m.cuda.stream(stream):
        for _ in range(3):
            run()
    m.cuda.current_stream().wait_stream(stream)
    graph = m.cuda.CUDAGraph()
    with m.cuda.graph(graph):
        run()
    return graph


def traced(m: Any, x: Any, y: Any, parameters: list[Any]) -> Any:
    """Turnout's step as a graph that is recorded at its second call; of another library, what `recorded` makes."""
    if m is not turnout:
        return recorded(m, lambda: step(m, x, y, parameters)).replay
    graph = turnout.trace(lambda x, y, *parameters: step(turnout, x, y, list(parameters)), replay="cuda_graph")(x, y, *parameters)
    return lambda: graph(x, y, *parameters)


def small_names(m: Any, device: Any) -> dict[str, Any]:
    """What small calls use, on 64 x 64: x, y, a, w and p, which requires a gradient, a row b and indices i."""
    made = {name: m.randn(_SMALL, _SMALL, device=device) for name in ("x", "y", "a", "w")}
    made |= {"b": m.randn(_SMALL, device=device), "i": m.arange(_SMALL - 1, -1, -1, device=device)}
    return made | {"p": m.randn(_SMALL, _SMALL, device=device).requires_grad_(), "ADD": m.ops.aten.add.Tensor}


def _small_rows() -> list[CardRow]:
    found = []
    for number, statement in enumerate(small.STATEMENTS[small.FIRST], 1):
        text = statement.replace("reshape(2, 2)", "reshape(-1)").replace("(4,)", f"({_SMALL},)")
        text = text.replace("zeros(4)", f"zeros({_SMALL}, {_SMALL}, device=device)")
        found.append(CardRow(f"small {number}: {text}", text, _SMALL_CALLS, calls=64))
    return found


# ruff: noqa: E501 - rows of a table
_ADAM = "lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False"
_SGD = "weight_decay=0.01, momentum=0.9, lr=1e-3, dampening=0.0, nesterov=False, maximize=False, is_first_step=False"
_LISTS, _NETWORK = "globals().update(lists(m, x, y))", "sx, sy, ps = network(m, device)"


def _bf16(names: str) -> str:
    return "; ".join(f"{name} = {name}.to(m.bfloat16)" for name in names.split())


def _backward(name: str, call: str, leaves: str, before: str = "", mode: str = "") -> CardRow:
    """The gradients alone."""
    made = kernels.backward(name, call, leaves)
    return CardRow(name, made.statement, f"{before}; {made.before}" if before else made.before, mode)


# fmt: off
ROWS = [
    CardRow("matmul 4096",          "big @ big"),
    CardRow("TF32 matmul 4096",     "big @ big", "", TF32),
    CardRow("bf16 matmul 4096",     "big @ big", _bf16("big")),
    CardRow("TF32 linear",          "F.linear(sq, wl, row)", "", TF32),
    CardRow("bf16 linear",          "F.linear(sq, wl, row)", _bf16("sq wl row")),
    CardRow("bf16 bmm",             "ba @ bb", _bf16("ba bb")),
    _backward("bf16 linear bw",     "F.linear(sq, wl, row)", "sq, wl, row", _bf16("sq wl row")),
    CardRow("TF32 conv2d 3x3",      "F.conv2d(img, w33, padding=1)", "", TF32),
    CardRow("bf16 conv2d 3x3",      "F.conv2d(img, w33, padding=1)", _bf16("img w33")),
    CardRow("bf16 conv2d depthwise", "F.conv2d(img, wdw, padding=1, groups=len(wdw))", _bf16("img wdw")),
    _backward("TF32 conv2d bw",     "F.conv2d(img, w33, padding=1)", "img, w33", "", TF32),
    _backward("bf16 conv2d bw",     "F.conv2d(img, w33, padding=1)", "img, w33", _bf16("img w33")),
    # The limit of direct convolutions is 268 million products.
    CardRow("conv1d 5M products",  "F.conv1d(z, w5, padding=2)", "z = seq[:1, :, :256].clone()"),
    CardRow("conv1d 168M products", "F.conv1d(z, w5, padding=2)", "z = seq[:4, :, :2048].clone()"),
    CardRow("conv1d 336M products", "F.conv1d(z, w5, padding=2)", "z = seq[:8, :, :2048].clone()"),
    CardRow("bf16 conv1d 168M products", "F.conv1d(z, w5, padding=2)", "z = seq[:4, :, :2048].clone(); " + _bf16("z w5")),
    CardRow("conv1d in 4 groups",   "F.conv1d(z, w, None, 2, 4, 2, 4)", "z = seq[:4, :, :2048].clone(); w = w5[:, :w5.shape[1] // 4].contiguous()"),
    _backward("conv1d bw 5M products", "F.conv1d(z, w5, padding=2)", "z, w5", "z = seq[:1, :, :256].clone()"),
    _backward("conv1d bw 168M products", "F.conv1d(z, w5, padding=2)", "z, w5", "z = seq[:4, :, :2048].clone()"),
    _backward("conv1d bw 336M products", "F.conv1d(z, w5, padding=2)", "z, w5", "z = seq[:8, :, :2048].clone()"),
    CardRow("conv2d 3x3 one image", "F.conv2d(z, w33, padding=1)", "z = img[:1, :, :16, :16].clone()"),
    CardRow("TF32 attention",       "F.scaled_dot_product_attention(q, q, q)", "", TF32),
    CardRow("bf16 attention",       "F.scaled_dot_product_attention(q, q, q)", _bf16("q")),
    CardRow("bf16 attention causal", "F.scaled_dot_product_attention(q, q, q, is_causal=True)", _bf16("q")),
    CardRow("bf16 attention fwd+bw", "m.autograd.grad(F.scaled_dot_product_attention(q, q, q).sum(), [q])", _bf16("q") + "; q.requires_grad_()"),
    CardRow("bf16 dropout",         "F.dropout(x, 0.5)", _bf16("x")),
    CardRow("dropout fwd+bw",       "m.autograd.grad(F.dropout(x, 0.5), [x], y)", "x = x.clone().requires_grad_()"),
    CardRow("bf16 randn",           "m.randn(len(x), device=device, dtype=m.bfloat16)"),
    CardRow("randint",              "m.randint(0, 1000, (len(x),), device=device)"),
    CardRow("bernoulli_",           "z.bernoulli_(0.5)", "z = x.clone()"),
    CardRow("normal_",              "z.normal_()", "z = x.clone()"),
    CardRow("index pairs",          "mat[picks, picks % mat.shape[1]]"),
    CardRow("index of a view",      "mat.t()[picks % mat.shape[1]]"),
    CardRow("_foreach_add_",        "m.ops.aten._foreach_add_.List(ps, gs)", _LISTS),
    CardRow("_foreach_mul_",        "m.ops.aten._foreach_mul_.Scalar(ps, 0.999)", _LISTS),
    CardRow("_foreach_lerp_",       "m.ops.aten._foreach_lerp_.Scalar(means, gs, 0.1)", _LISTS),
    CardRow("_foreach_addcdiv_",    "m.ops.aten._foreach_addcdiv_.Scalar(ps, gs, steps_like, -0.001)", _LISTS + "; steps_like = [m.ones_like(p) for p in ps]"),
    CardRow("_fused_adam_",         f"m.ops.aten._fused_adam_(ps, gs, means, squares, [], steps, {_ADAM})", _LISTS),
    CardRow("_fused_adamw_",        f"m.ops.aten._fused_adamw_(ps, gs, means, squares, [], steps, {_ADAM})", _LISTS),
    CardRow("_fused_sgd_",          f"m.ops.aten._fused_sgd_(ps, gs, means, {_SGD})", _LISTS),
    CardRow("step MLP 784-256-10",  "step(m, sx, sy, ps)", _NETWORK),
    CardRow("the same recorded",    "graph.replay()", _NETWORK + "; graph = recorded(m, lambda: step(m, sx, sy, ps))"),
    CardRow("the same traced",      "run()", _NETWORK + "; run = traced(m, sx, sy, ps)"),
    *_small_rows(),
]
# fmt: on
ALL = [*[CardRow(*row) for row in kernels.ROWS], *ROWS]


# ---- measuring


def libraries() -> tuple[Any, Any]:
    """Turnout and PyTorch. Raises Skipped where one of them has no device cuda."""
    torch = torch_with_threads(1)
    if not turnout.cuda.is_available():
        raise Skipped("there is no device cuda")
    if not torch.cuda.is_available():
        raise Skipped("this torch has no device cuda")
    return turnout, torch


@contextmanager
def precision(torch: Any, mode: str) -> Iterator[None]:
    """A block in which both libraries multiply float32 with all digits, or in TF32."""
    rough, switches = mode == TF32, (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [each.allow_tf32 for each in switches]
    with turnout.config.override({"plugin.cuda.matmul_precision": "high" if rough else "highest"}):
        for each in switches:
            each.allow_tf32 = rough
        try:
            yield
        finally:
            for each, value in zip(switches, before, strict=True):
                each.allow_tf32 = value


def uses(row: CardRow, name: str) -> bool:
    """Whether a row uses an array; small calls have tensors of their own."""
    return row.before != _SMALL_CALLS and kernels.uses(row, name)


def names(m: Any, row: CardRow, arrays: dict[str, Any]) -> dict[str, Any]:
    """What the statements of a row use, in one library."""
    made = {name: m.from_numpy(array).to("cuda") for name, array in arrays.items()}
    made |= {"m": m, "F": m.nn.functional, "device": m.device("cuda"), "wait": m.cuda.synchronize}
    made |= {each.__name__: each for each in (lists, network, recorded, small_names, step, traced)}
    exec(row.before, made)
    made.pop("__builtins__", None)
    return made


def pair(row: CardRow) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares both sides of a row. A row that fails on the card is skipped with its error, and the others go on."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        modules = libraries()
        used = {n: kernels.array(n, _TIMES if n in _LONGER else 1) for n in kernels.ARRAYS if uses(row, n)}
        statement = f"for _ in range({row.calls}): {row.statement}\nwait()"
        with ExitStack() as stack:
            stack.enter_context(precision(modules[1], row.mode))
            try:
                ours, theirs = (Side(statement, **names(m, row, used)) for m in modules)
                yield Pair(ours, theirs)
            except Exception as error:
                said = str(error).partition("\n")[0]
                raise Skipped(f"{type(error).__name__}: {said}") from error

    return prepare


# ---- the card

_COPIED, _SIDE, _BATCH = 1 << 28, 8192, 0.2  # floats, rows of a matrix, seconds of a batch


def _seconds(statement: str, **used: Any) -> float:
    """The least seconds of a statement of Turnout, of eight in a row."""
    side = Side(f"for _ in range(8): {statement}\nwait()", wait=turnout.cuda.synchronize, **used)
    number = side.number(_BATCH)
    return min(side.seconds(number) for _ in range(5)) / 8


def driver() -> str:
    """The version of the driver, as its own tool says it."""
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said.splitlines()[0].strip() if said else "unknown"


def versions(cupy: Any) -> dict[str, str]:
    """Those of the libraries that compute, on both sides."""
    found = {"cupy": str(cupy.__version__), "CUDA of cupy": _dotted(cupy.cuda.runtime.runtimeGetVersion())}
    found["CUDA of the driver"] = _dotted(cupy.cuda.runtime.driverGetVersion())
    try:
        import cudnn

        found["cudnn"] = f"{cudnn.backend_version()}, front end {cudnn.__version__}"
    except Exception:  # noqa: BLE001 - a front end without its library fails in any way
        found["cudnn"] = "no front end"
    try:
        torch = torch_with_threads(1)
    except Skipped:
        return found
    return found | {"CUDA of torch": str(torch.version.cuda), "cudnn of torch": str(torch.backends.cudnn.version())}


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def facts(*, quick: bool) -> dict[str, str]:
    """The card, its driver and libraries, and how fast Turnout copies and multiplies on it in this run."""
    if not turnout.cuda.is_available():
        return {"card": "there is no device cuda"}
    card = turnout.cuda.get_device_properties()
    backend: Any = turnout.device("cuda").backend
    found = {"card": f"{card.name}, {card.multi_processor_count} processors, {card.total_memory / 2**30:.0f} GiB"}
    found |= {"driver": driver(), **versions(backend.cupy)}
    size, side = (_COPIED >> 6, _SIDE >> 3) if quick else (_COPIED, _SIDE)
    x = turnout.ones(size, device="cuda")
    found["copy"] = f"{8 * size / _seconds('y.copy_(x)', x=x, y=turnout.empty_like(x)) / 1e9:.0f} GB/s"
    square = turnout.randn(side, side, device="cuda")
    for name, mode, matrix in (
        ("float32", "highest", square),
        ("TF32", "high", square),
        ("bfloat16", "highest", square.bfloat16()),
    ):
        with turnout.config.override({"plugin.cuda.matmul_precision": mode}):
            found[f"product {name}"] = f"{2 * side**3 / _seconds('x @ x', x=matrix) / 1e12:.1f} TFLOP/s"
    return found
