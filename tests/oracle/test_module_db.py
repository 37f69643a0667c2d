"""Modules of `turnout.nn` and PyTorch's: the same arguments, PyTorch's weights, and what comes out.

Every entry of PyTorch's `module_db`, and cases of our own for the classes that have none. A case is built for both libraries by
one function of the library. Each case: names and shapes of the state, results, gradients of inputs and parameters, and buffers
afterwards; the first of each entry also what a program does to a module besides: repr, copies, pickles, `to`, modes.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from op_db.bridge import array_of, find, here, mapped, tensors  # noqa: E402
from torch.nn.utils.rnn import PackedSequence  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

import turnout  # noqa: E402

# How far a number may be from PyTorch's, relative to the largest of its tensor (or 1).
TOLERANCES = {"float32": 2e-5, "float64": 1e-10, "bfloat16": 2e-2}

# An entry has up to 600 cases. So many are compared, evenly chosen.
MOST = {"float32": 16, "float64": 64, "bfloat16": 16}

# Entries whose results in bfloat16 may be farther from the exact ones, by how many times the tolerance. So far are PyTorch's own:
# at most 3.8 times, where Turnout's are at most 1.9 (TransformerDecoderLayer) and 3.0 times (Transformer). Layers that normalise
# their results enlarge each rounding before, so which of a case's gradients is far is chance, and differs in both libraries.
ROUGH: dict[str, float] = {"TransformerDecoderLayer": 2, "Transformer": 3.2}

# Entries without a class here, and why. At most four.
ABSENT: dict[str, str] = {}

# A module that draws random numbers in the forward pass: shapes are compared, not numbers.
DRAWN = {"FractionalMaxPool2d", "FractionalMaxPool3d"}

# Lists of parameters are printed with the device of each; PyTorch names classes of tensors that are not there.
PRINTED = {"ParameterDict", "ParameterList"}

# What PyTorch says of its own modules, and not of what a program does.
QUIET = [
    "ignore:reduction", "ignore:linear_cross_entropy", "ignore:enable_nested_tensor", "ignore:LSTM with projections",
]  # fmt: skip
pytestmark = [pytest.mark.filterwarnings(text) for text in QUIET]


@dataclass
class Case:
    """A module in both libraries, and what it is called with. `build` takes the library, and ours() maps values to it."""

    build: Callable[[Any, Callable[[Any], Any]], Any]
    args: tuple[Any, ...] | None = ()  # none: the module is not called
    kwargs: dict[str, Any] = field(default_factory=dict)
    training: bool = False


def ours(value: Any) -> Any:
    """A value of PyTorch as one of Turnout."""
    if isinstance(value, PackedSequence):
        return turnout.nn.utils.rnn.PackedSequence(*map(ours, value))
    if isinstance(value, torch.nn.Module):
        args, kwargs = value.made_from
        return getattr(turnout.nn, type(value).__name__)(*ours(args), **ours(kwargs))
    if type(value) in (tuple, list):
        return type(value)(map(ours, value))
    if isinstance(value, dict):
        return {k: ours(v) for k, v in value.items()}
    if callable(value) and not isinstance(value, (type, torch.Tensor)):
        return find(value) or here(value)
    return here(value)


def same(value: Any) -> Any:
    return value


def limit(dtype: str, expected: torch.Tensor) -> float:
    largest = expected.double().nan_to_num().abs().max().item() if expected.numel() else 0.0
    return TOLERANCES[dtype] * max(1.0, largest)


def near(found: Any, expected: Any, dtype: str, what: str, exact: Callable[[], Any] | None = None, times: float = 1.0) -> None:
    """The tensors of both values have the same dtypes and shapes, and numbers that are near.

    Where there are exact results, numbers may also be as near to those as PyTorch's are, which round to bfloat16 more often.
    """
    left, right = tensors(found), tensors(expected)
    assert len(left) == len(right), what
    for i, (got, want) in enumerate(zip(left, right, strict=True)):
        assert str(want.dtype).removeprefix("torch.") == got.dtype.name, what
        assert tuple(got.shape) == tuple(want.shape), what
        a, b = array_of(got), want.detach()
        if not b.is_floating_point():
            assert torch.equal(a, b), what
            continue
        far = times * limit(dtype, b)
        if exact is not None and not torch.allclose(a.double(), b.double(), 0, far, equal_nan=True):
            truth = tensors(exact())[i].detach()
            far = max(far, (b.double() - truth).abs().max().item())
            b = truth
        torch.testing.assert_close(a.double(), b.double(), rtol=0, atol=far, equal_nan=True, msg=lambda text: f"{what}\n{text}")


def loaded(theirs: Any, module: Any) -> None:
    """Numbers that no initialisation gives, in both modules."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.1 * torch.randn_like(parameter))
    module.load_state_dict({name: here(value) for name, value in theirs.state_dict().items()})


def text(theirs: Any) -> str:
    """What PyTorch prints of a module, where it does not name a class that is for its quantiser alone."""
    return repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear").replace("torch.", "turnout.")


def tracked(value: Any) -> list[Any]:
    return [t for t in tensors(value) if t.is_floating_point() and t.requires_grad]


def outcome(lib: Any, module: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Results, the state afterwards, and the gradients of a sum of the results with fixed random factors."""
    results = module(*args, **kwargs)
    made = {"results": results, "the state after the call": module.state_dict()}
    outputs = tracked(results)
    if not outputs:
        return made
    draw = torch.Generator().manual_seed(5)
    factors = [torch.randn(tuple(t.shape), generator=draw, dtype=torch.float64) for t in outputs]
    if lib is torch:
        torch.autograd.backward(outputs, [f.to(t.dtype) for f, t in zip(factors, outputs, strict=True)])
    else:
        turnout.autograd.backward(outputs, [here(f).to(t.dtype) for f, t in zip(factors, outputs, strict=True)])
    given = {f"input {i}": t for i, t in enumerate(tensors((args, kwargs))) if t.is_leaf}
    return made | {f"the gradient of {n}": t.grad for n, t in (dict(module.named_parameters()) | given).items()}


def compare(case: Case, dtype: str, drawn: bool, whole: bool, name: str = "") -> bool:
    """Whether PyTorch runs the case; if it does, Turnout gives the same."""
    theirs = case.build(torch, same).to(getattr(torch, dtype)).train(case.training)
    module = case.build(turnout, ours).to(getattr(turnout, dtype)).train(case.training)
    if whole and name not in PRINTED:
        assert repr(module) == text(theirs)
    args, kwargs = case.args, case.kwargs
    if args is None:
        loaded(theirs, module)
        near(module.state_dict(), theirs.state_dict(), dtype, "state_dict")
        return True
    own_args, own_kwargs = ours(args), ours(kwargs)
    try:
        if any(map(torch.nn.parameter.is_lazy, [*theirs.parameters(), *theirs.buffers()])):  # the first call makes them
            theirs(*args, **kwargs)
            module(*own_args, **own_kwargs)
        loaded(theirs, module)
        precise = copy.deepcopy(theirs).double()
        expected = outcome(torch, theirs, args, kwargs)
    except (RuntimeError, NotImplementedError) as error:
        if dtype == "bfloat16" and "not implemented" in str(error):
            return False  # PyTorch has no kernel for it
        raise
    if drawn:
        results = module(*own_args, **own_kwargs)
        assert [tuple(t.shape) for t in tensors(results)] == [tuple(t.shape) for t in tensors(expected["results"])]
        return True
    found = outcome(turnout, module, own_args, own_kwargs)

    @cache
    def exact() -> dict[str, Any]:
        return outcome(torch, precise, *mapped((args, kwargs), doubled))

    for part, value in expected.items():
        if value is None and name == "AdaptiveLogSoftmaxWithLoss" and found[part] is not None:
            assert not found[part].any(), part  # of a cluster without a target
            continue
        assert (found[part] is None) == (value is None), part
        truth = (lambda part=part: exact()[part]) if dtype == "bfloat16" else None
        near(found[part], value, dtype, part, truth, ROUGH.get(name, 1.0) if dtype == "bfloat16" else 1.0)
    if whole:
        program(case, module, theirs, own_args, own_kwargs, name)
    return True


def doubled(value: Any) -> Any:
    """A tensor in float64, for an exact result."""
    if isinstance(value, PackedSequence):
        return value._replace(data=doubled(value.data))
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.detach().double().requires_grad_(value.requires_grad)


def program(case: Case, module: Any, theirs: Any, args: Any, kwargs: Any, name: str) -> None:
    """What a program does with a module besides calling it."""
    assert name in PRINTED or repr(module) == text(theirs)
    state = module.state_dict()
    fresh = case.build(turnout, ours)
    keys = fresh.load_state_dict(state)
    assert (keys.missing_keys, keys.unexpected_keys) == ([], [])
    module.eval()
    theirs.eval()
    assert [m.training for m in module.modules()] == [m.training for m in theirs.modules()]
    expected = module(*args, **kwargs)
    for other in (fresh.eval(), copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert (type(other), repr(other)) == (type(module), repr(module))
        assert [n for n, _ in other.named_parameters()] == [n for n, _ in module.named_parameters()]
        for got, want in zip(tensors(other(*args, **kwargs)), tensors(expected), strict=True):
            assert torch.equal(array_of(got).nan_to_num(), array_of(want).nan_to_num())
    moved, their_moved = module.to(turnout.float64), theirs.to(torch.float64)
    assert moved is module
    assert {n: v.dtype.name for n, v in moved.state_dict().items()} == {
        n: str(v.dtype).removeprefix("torch.") for n, v in their_moved.state_dict().items()
    }
    assert {t.device.type for t in copy.deepcopy(module).to("meta").parameters()} <= {"meta"}
    assert not any(p.requires_grad for p in module.requires_grad_(False).parameters())
    module.train()
    assert all(m.training for m in module.modules())


def of_entry(info: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    """The cases of one entry, in train and eval mode where they differ."""
    layer = torch.nn.TransformerEncoderLayer

    def recorded(*args: Any, **kwargs: Any) -> Any:
        made = layer(*args, **kwargs)
        made.made_from = (args, kwargs)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn, "TransformerEncoderLayer", recorded)
        made = [
            (training, sample)
            for training in ((True, False) if info.train_and_eval_differ else (True,))
            for sample in info.module_inputs_func(
                info, device="cpu", dtype=getattr(torch, dtype), requires_grad=True, training=training
            )
        ]
    name = info.module_cls.__name__
    for training, sample in made:
        built, called = sample.constructor_input, sample.forward_input

        def build(lib: Any, to: Callable[[Any], Any], built: Any = built) -> Any:
            return getattr(lib.nn, name)(*to(built.args), **to(built.kwargs))

        yield Case(build, called.args, called.kwargs, training)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.module_cls.__name__)
def test_an_entry_gives_what_it_gives_in_pytorch(info: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = info.module_cls.__name__
    if name in ABSENT:
        assert not hasattr(turnout.nn, name)
        return
    torch.manual_seed(0)
    cases = list(of_entry(info, dtype, monkeypatch))
    chosen = cases[:: -(-len(cases) // MOST[dtype])]
    ran = sum(compare(case, dtype, name in DRAWN, case is cases[0] and dtype == "float32", name) for case in chosen)
    if not ran:
        pytest.skip(f"PyTorch has no kernels for {name} in {dtype} on the CPU")


def test_at_most_four_entries_are_absent() -> None:
    assert len(module_db) == 114
    assert len(ABSENT) <= 4


# ---- classes without an entry


DRAW = torch.Generator().manual_seed(0)  # one of its own, so that the numbers do not depend on what is imported first


def x(*shape: int) -> Any:
    return torch.randn(shape, generator=DRAW, requires_grad=True)


def indices(high: int, *shape: int) -> Any:
    return torch.randint(high, shape, generator=DRAW)


def parameter(t: Any, *shape: int) -> Any:
    return t.nn.Parameter(t.ones(shape))


def distance(a: Any, b: Any) -> Any:
    return (a - b).abs().sum(-1)


def encoder(t: Any, **options: Any) -> Any:
    return t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, **options)


def decoder(t: Any) -> Any:
    return t.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)


def case(make: Callable[[Any], Any], *args: Any, training: bool = True, called: bool = True) -> Any:
    """What makes the module from the library, the tensors it is called with if it is, and its mode."""
    return make, args if called else None, training


# fmt: off
CASES: dict[str, list[Any]] = {
    "AdaptiveLogSoftmaxWithLoss": [
        case(lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0), x(5, 8), indices(12, 5)),
        case(lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [2], head_bias=True), x(8), indices(12))],
    "AlphaDropout": [case(lambda t: t.nn.AlphaDropout(), x(3, 4), training=False),
        case(lambda t: t.nn.AlphaDropout(0.0), x(3, 4))],
    "ChannelShuffle": [case(lambda t: t.nn.ChannelShuffle(2), x(1, 4, 3, 3))],
    "CosineSimilarity": [case(lambda t: t.nn.CosineSimilarity(), x(3, 4), x(3, 4)),
        case(lambda t: t.nn.CosineSimilarity(0, 1e-6), x(3, 4), x(3, 4))],
    # With more channels than half the window, and in the gradient, PyTorch's windows are one channel too long.
    "CrossMapLRN2d": [case(lambda t: t.nn.CrossMapLRN2d(5, 0.1, 0.5, 2), x(2, 3, 3, 3).detach())],
    "Dropout": [case(lambda t: t.nn.Dropout(), x(3, 4), training=False),
        case(lambda t: t.nn.Dropout(1.0, inplace=False), x(3, 4))],
    "Dropout1d": [case(lambda t: t.nn.Dropout1d(), x(2, 3, 4), training=False), case(lambda t: t.nn.Dropout1d(0.0), x(2, 3, 4))],
    "Dropout2d": [case(lambda t: t.nn.Dropout2d(), x(2, 3, 4, 4), training=False),
        case(lambda t: t.nn.Dropout2d(0.0), x(2, 3, 4, 4))],
    "Dropout3d": [case(lambda t: t.nn.Dropout3d(), x(2, 3, 2, 2, 2), training=False),
        case(lambda t: t.nn.Dropout3d(0.0), x(1, 3, 2, 2, 2))],
    "EmbeddingBag": [case(lambda t: t.nn.EmbeddingBag(10, 3), indices(10, 2, 4)),
        case(lambda t: t.nn.EmbeddingBag(10, 3, mode="sum", padding_idx=2), indices(10, 6), torch.tensor([0, 2])),
        case(lambda t: t.nn.EmbeddingBag(10, 3, mode="max", include_last_offset=True), indices(10, 6), torch.tensor([0, 2, 6]))],
    "FeatureAlphaDropout": [case(lambda t: t.nn.FeatureAlphaDropout(), x(2, 3, 4), training=False),
        case(lambda t: t.nn.FeatureAlphaDropout(0.0), x(2, 3, 4))],
    "Flatten": [case(lambda t: t.nn.Flatten(), x(2, 3, 4)), case(lambda t: t.nn.Flatten(0, 1), x(2, 3, 4))],
    "Fold": [case(lambda t: t.nn.Fold((4, 5), (2, 2)), x(1, 12, 12)), case(lambda t: t.nn.Fold(4, 2, stride=2), x(8, 4))],
    "Hardsigmoid": [case(lambda t: t.nn.Hardsigmoid(), x(3, 4))],
    "Identity": [case(lambda t: t.nn.Identity(5, unused=0.1), x(3, 4))],
    "LazyBatchNorm1d": [case(lambda t: t.nn.LazyBatchNorm1d(), x(4, 3))],
    "LazyBatchNorm2d": [case(lambda t: t.nn.LazyBatchNorm2d(momentum=None), x(4, 3, 2, 2))],
    "LazyBatchNorm3d": [case(lambda t: t.nn.LazyBatchNorm3d(affine=False), x(2, 3, 2, 2, 2))],
    "LazyInstanceNorm1d": [case(lambda t: t.nn.LazyInstanceNorm1d(), x(4, 3, 5))],
    "LazyInstanceNorm2d": [case(lambda t: t.nn.LazyInstanceNorm2d(affine=True), x(4, 3, 2, 2))],
    "LazyInstanceNorm3d": [case(lambda t: t.nn.LazyInstanceNorm3d(track_running_stats=True), x(2, 3, 2, 2, 2))],
    "LazyLinear": [case(lambda t: t.nn.LazyLinear(3), x(2, 4)), case(lambda t: t.nn.LazyLinear(3, bias=False), x(2, 4))],
    "MaxUnpool1d": [case(lambda t: t.nn.MaxUnpool1d(2, stride=2), x(1, 1, 2), torch.tensor([[[1, 2]]]))],
    "MaxUnpool2d": [case(lambda t: t.nn.MaxUnpool2d(2), x(1, 1, 1, 2), torch.tensor([[[[1, 6]]]]))],
    "MaxUnpool3d": [case(lambda t: t.nn.MaxUnpool3d((1, 1, 2)), x(1, 1, 1, 1, 2), torch.tensor([[[[[1, 2]]]]]))],
    "Module": [case(lambda t: t.nn.Module(), called=False)],
    "ModuleDict": [case(lambda t: t.nn.ModuleDict({"a": t.nn.Linear(2, 3), "b": t.nn.ReLU()}), called=False)],
    "ModuleList": [case(lambda t: t.nn.ModuleList([t.nn.Linear(2, 3), t.nn.Linear(2, 3), t.nn.ReLU()]), called=False)],
    "PairwiseDistance": [case(lambda t: t.nn.PairwiseDistance(), x(3, 4), x(3, 4)),
        case(lambda t: t.nn.PairwiseDistance(1.0, 0.0, keepdim=True), x(3, 4), x(3, 4))],
    "ParameterDict": [case(lambda t: t.nn.ParameterDict({"a": parameter(t, 2), "b": parameter(t, 1, 3)}), called=False)],
    "ParameterList": [case(lambda t: t.nn.ParameterList([parameter(t, 2), parameter(t, 1, 3)]), called=False)],
    "PixelShuffle": [case(lambda t: t.nn.PixelShuffle(2), x(1, 8, 2, 3))],
    "PixelUnshuffle": [case(lambda t: t.nn.PixelUnshuffle(2), x(1, 2, 4, 6))],
    "RNNBase": [case(lambda t: t.nn.RNNBase("LSTM", 2, 3, num_layers=2, bidirectional=True, proj_size=2), called=False)],
    "RNNCellBase": [case(lambda t: t.nn.RNNCellBase(2, 3, True, 4), called=False),
        case(lambda t: t.nn.RNNCellBase(2, 3, False, 1), called=False)],
    "RReLU": [case(lambda t: t.nn.RReLU(), x(3, 4), training=False), case(lambda t: t.nn.RReLU(0.2, 0.2), x(3, 4))],
    "Sequential": [
        case(lambda t: t.nn.Sequential(t.nn.Linear(2, 3), t.nn.BatchNorm1d(3), t.nn.GELU("tanh"), t.nn.Linear(3, 2)), x(4, 2)),
        case(lambda t: t.nn.Sequential(t.nn.Sequential(t.nn.Flatten(), t.nn.Tanh()), t.nn.Softmax(-1)), x(4, 2, 2))],
    "TransformerDecoder": [case(lambda t: t.nn.TransformerDecoder(decoder(t), 2, t.nn.LayerNorm(4)), x(3, 2, 4), x(5, 2, 4))],
    "TransformerEncoder": [
        case(lambda t: t.nn.TransformerEncoder(encoder(t, norm_first=True), 2, t.nn.LayerNorm(4)), x(3, 2, 4))],
    "TripletMarginLoss": [case(lambda t: t.nn.TripletMarginLoss(), x(3, 4), x(3, 4), x(3, 4)),
        case(lambda t: t.nn.TripletMarginLoss(2.0, p=1.0, swap=True, reduction="none"), x(3, 4), x(3, 4), x(3, 4))],
    "TripletMarginWithDistanceLoss": [case(lambda t: t.nn.TripletMarginWithDistanceLoss(), x(3, 4), x(3, 4), x(3, 4)),
        case(lambda t: t.nn.TripletMarginWithDistanceLoss(distance_function=distance, swap=True), x(3, 4), x(3, 4), x(3, 4))],
    "Unflatten": [case(lambda t: t.nn.Unflatten(1, (2, 3)), x(2, 6))],
    "Unfold": [case(lambda t: t.nn.Unfold((2, 3), padding=1), x(1, 2, 4, 5))],
    "Upsample": [case(lambda t: t.nn.Upsample(scale_factor=2), x(1, 2, 3)),
        case(lambda t: t.nn.Upsample(size=(4, 5), mode="bicubic", align_corners=True), x(1, 2, 3, 3))],
    "UpsamplingBilinear2d": [case(lambda t: t.nn.UpsamplingBilinear2d(scale_factor=2), x(1, 2, 3, 3))],
    "UpsamplingNearest2d": [case(lambda t: t.nn.UpsamplingNearest2d((4, 5)), x(1, 2, 3, 3))],
}
# fmt: on

# What is tried elsewhere: the tensors that a module holds, by every case.
TENSORS = {"Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"}


# In float64, PyTorch's gradient of hardsigmoid is a sixth rounded to float32.
COARSE = [("Hardsigmoid", "float64")]


@pytest.mark.parametrize(("name", "dtype"), [pair for pair in product(CASES, TOLERANCES) if pair not in COARSE])
def test_a_class_without_an_entry_gives_what_it_gives_in_pytorch(name: str, dtype: str) -> None:
    torch.manual_seed(0)
    for i, (make, given, training) in enumerate(CASES[name]):

        def build(lib: Any, to: Any, make: Any = make) -> Any:
            return make(lib)

        args = None if given is None else tuple(converted(value, dtype) for value in given)
        compare(Case(build, args, {}, training), dtype, drawn=False, whole=i == 0 and dtype == "float32", name=name)


def converted(value: Any, dtype: str) -> Any:
    if not value.is_floating_point():
        return value
    return value.detach().to(getattr(torch, dtype)).requires_grad_(value.requires_grad)


def test_every_class_that_is_here_has_an_entry_or_a_case() -> None:
    entries = {info.module_cls.__name__ for info in module_db}
    classes = {name for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type) and hasattr(turnout.nn, name)}
    assert classes - entries - set(CASES) == TENSORS & classes


# ---- initial values

# Modules of sizes at which moments say which distribution it is.
DRAWN_AT_FIRST: list[Callable[[Any], Any]] = [
    lambda t: t.nn.Linear(300, 400), lambda t: t.nn.Bilinear(30, 40, 50), lambda t: t.nn.Conv1d(60, 80, 5, groups=2),
    lambda t: t.nn.Conv2d(30, 40, 5), lambda t: t.nn.Conv3d(20, 30, 3), lambda t: t.nn.ConvTranspose1d(60, 80, 5),
    lambda t: t.nn.ConvTranspose2d(40, 30, 5, groups=2), lambda t: t.nn.ConvTranspose3d(20, 30, 3),
    lambda t: t.nn.Embedding(200, 100), lambda t: t.nn.EmbeddingBag(200, 100),
    lambda t: t.nn.RNN(60, 50, 2, bidirectional=True), lambda t: t.nn.LSTM(60, 50, proj_size=20), lambda t: t.nn.GRU(60, 50),
    lambda t: t.nn.RNNCell(100, 80), lambda t: t.nn.LSTMCell(100, 80), lambda t: t.nn.GRUCell(100, 80),
    lambda t: t.nn.MultiheadAttention(120, 4, add_bias_kv=True), lambda t: t.nn.MultiheadAttention(120, 4, kdim=90, vdim=60),
    lambda t: t.nn.TransformerEncoderLayer(100, 4, 200), lambda t: t.nn.TransformerDecoderLayer(100, 4, 200),
    lambda t: t.nn.Transformer(64, 4, 1, 1, 128),
    lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(120, 300, [100], div_value=2.0, head_bias=True),
    lambda t: t.nn.LinearCrossEntropyLoss(120, 200, bias=True), lambda t: t.nn.PReLU(100), lambda t: t.nn.LayerNorm(100),
    lambda t: t.nn.GroupNorm(2, 100), lambda t: t.nn.RMSNorm(100), lambda t: t.nn.BatchNorm2d(100),
    lambda t: t.nn.InstanceNorm2d(100, affine=True, track_running_stats=True),
]  # fmt: skip


def moments(tensor: torch.Tensor) -> list[float]:
    """Mean, deviation and limits: of 10,000 elements, they are within 5% of those of the distribution."""
    flat = tensor.double().flatten()
    return [flat.mean().item(), flat.std(unbiased=False).item(), flat.min().item(), flat.max().item()]


@pytest.mark.parametrize("make", DRAWN_AT_FIRST)
def test_initial_values_are_drawn_from_the_same_distributions(make: Any) -> None:
    torch.manual_seed(0)
    turnout.manual_seed(0)
    theirs, module = make(torch), make(turnout)
    expected = dict(theirs.state_dict())
    assert list(module.state_dict()) == list(expected)
    for name, value in module.state_dict().items():
        found, wanted = moments(array_of(value)), moments(expected[name])
        deviation = max(wanted[1], 1e-12)
        few = value.numel() < 2000
        assert abs(found[0] - wanted[0]) <= deviation * (0.5 if few else 0.1), name
        assert abs(found[1] - wanted[1]) <= deviation * (0.35 if few else 0.05), name
        normal = wanted[3] > 1.85 * wanted[1]  # the limits of a uniform distribution are sharp
        for i in (2, 3):
            assert abs(found[i] - wanted[i]) <= deviation * (1.8 if normal else 0.5 if few else 0.05), name


INIT: dict[str, list[tuple[Any, ...]]] = {
    "uniform_": [(-2.0, 3.0)],
    "normal_": [(1.0, 2.0)],
    "trunc_normal_": [(), (1.0, 2.0, 0.0, 2.5)],
    "constant_": [(3.0,)],
    "ones_": [()],
    "zeros_": [()],
    "eye_": [()],
    "xavier_uniform_": [(), (2.0,)],
    "xavier_normal_": [(), (2.0,)],
    "kaiming_uniform_": [(), (1.0, "fan_out"), (0.0, "fan_in", "relu")],
    "kaiming_normal_": [(), (1.0, "fan_out"), (0.0, "fan_in", "tanh")],
    "orthogonal_": [(), (2.0,)],
    "sparse_": [(0.25,), (0.5, 2.0)],
}


@pytest.mark.parametrize("name", INIT)
def test_functions_of_init_draw_from_the_same_distributions(name: str) -> None:
    torch.manual_seed(0)
    turnout.manual_seed(0)
    for args in INIT[name]:
        wanted = moments(getattr(torch.nn.init, name)(torch.empty(200, 150), *args))
        found = moments(array_of(getattr(turnout.nn.init, name)(turnout.empty(200, 150), *args)))
        sharp = name in ("uniform_", "constant_", "ones_", "zeros_", "eye_", "xavier_uniform_", "kaiming_uniform_")
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            assert abs(a - b) <= (0.03 if i < 2 or sharp else 1.0) * max(wanted[1], 1e-12), (args, i)


def test_dirac_and_gains_are_those_of_pytorch() -> None:
    for shape, groups in (((4, 2, 3), 1), ((4, 2, 3), 2), ((3, 4, 2, 5), 1), ((4, 1, 3, 3, 3), 4)):
        assert torch.equal(
            array_of(turnout.nn.init.dirac_(turnout.empty(shape), groups)), torch.nn.init.dirac_(torch.empty(shape), groups)
        )
    for name in ("linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "selu"):
        assert turnout.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    for slope in (None, 0.3):
        assert turnout.nn.init.calculate_gain("leaky_relu", slope) == torch.nn.init.calculate_gain("leaky_relu", slope)
