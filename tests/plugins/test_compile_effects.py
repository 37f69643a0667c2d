"""What public functions do beside the operators that they call: each is seen by `turnout.compile`, or stands in a table here."""

from __future__ import annotations

import dis
import inspect
import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

import pytest

import turnout
from turnout.config.effects import told_of_effects
from turnout.plugins import is_ours
from turnout_aten.generated import methods
from turnout_tracer.compiling.reach import OUTSIDE_NAMES, is_outside

# Modules whose functions call operators, and nothing else that lasts.
OPERATORS = frozenset(
    ("array_api", "array_api.fft", "array_api.linalg", "autograd.functional", "func", "masked", "nn.functional", "nn.init",
     "nn.utils", "nn.utils.parametrizations", "nn.utils.rnn", "signal.windows")
)  # fmt: skip
# Classes of which the signature compares what objects hold.
COMPARED = (
    turnout.nn.Module, turnout.optim.Optimizer, turnout.optim.lr_scheduler.LRScheduler, turnout.utils.data.Dataset,
    turnout.utils.data.Sampler, turnout.utils.data.DataLoader, turnout.Tensor, BaseException, tuple,
)  # fmt: skip
# Everything else that is public and does not say what it does beside operators, by module. Nothing of it lasts, or the signature
# has it, or docs/compile.md names it: which plugins, operators and kernels there are, and what the settings of a library are.
QUIET = """
    : DType Device DispatchKeySet DispatchMode FakeMode PythonDispatcher Size SymBool SymInt Tag as_subclass as_tensor
        asarray atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors can_cast cartesian_prod cdist
        chain_matmul check compile einsum finfo histogramdd iinfo is_tensor layout lu memory_format meshgrid nonzero norm
        numel pca_lowrank promote_types result_type split_copy split_with_sizes_copy svd_lowrank tensor tensordot trace
        typename unbind_copy unique unique_consecutive unravel_index unsafe_split unsafe_split_with_sizes user_frame
    amp: GradScaler autocast cached_cast clear_autocast_cache custom_bwd custom_fwd get_autocast_dtype
        is_autocast_cache_enabled is_autocast_enabled promote_type
    autograd: Function FunctionCtx backward enable_grad grad gradcheck gradgradcheck inference_mode is_grad_enabled
        is_inference is_inference_mode_enabled no_grad set_grad_enabled
    autograd.forward_ad: dual_level is_fwd_grad_enabled make_dual set_fwd_grad_enabled unpack_dual
    autograd.function: once_differentiable
    autograd.graph: disable_saved_tensors_hooks draw get_gradient_edge
    compiler: compile
    config: choices current_store describe get key_disabled origin problem
    cuda: default_stream device device_count get_device_capability get_device_name get_device_properties is_available
        is_bf16_supported graph
    devices: Backend active_device_types default_device forget_default_device named register_device_type
        unregister_device_type
    dtypes: dtype_named get_default_dtype set_default_dtype
    errors: near printed report
    explanation: Explanation
    graphs: Node Ref is_tracing
    guards: Block Guard during restore
    host_fallback: carried host on_host
    keys: BackendRow Functionality KeySpace Universe
    library: CustomOpDef FakeContext Library custom_op define fallthrough_kernel get_ctx get_kernel impl impl_abstract
        infer_schema opcheck register_autocast register_autograd register_kernel register_torch_dispatch register_vmap
        triton_op wrap_triton
    nn.utils.parametrize: cached is_parametrized register_parametrization remove_parametrizations
        transfer_parametrizations_and_params type_before_parametrizations
    opencl: default_stream device_count get_device_name
    operators: Next Operator Packet shorten tensors_in
    optim.swa_utils: get_ema_avg_fn get_ema_multi_avg_fn get_swa_avg_fn get_swa_multi_avg_fn update_bn
    plugins: PluginRecord Registrations all_plugins catalog check_device current_manager default_device_type effect
        enabled_keys engines facade install_command is_ours new_lock remedy_for replaceable replacements require_device
        require_functionality require_namespace service
    registry: Registry
    schema: Type check_kernel_signature check_no_tie choose decided_by_types
    state: StateChange below_adinplaceorview current exclude hide_fresh in_effect include included is_fresh lifted
        only_backends questions settle unsettle
    table: Entry Plan Step compute compute_entry
    testing: assert_close
    trees: Structure flatten map_leaves paths spread unflatten
    utils.checkpoint: noop_context_fn set_checkpoint_early_stop
    utils.data: default_collate default_convert random_split
    export: from_torch
"""
# Methods in Python of classes that hold what a signature does not: those that do not say what they do.
QUIET_METHODS = {
    turnout.Tensor: """
        H T as_subclass backward bfloat16 bool byte cdouble cfloat char count_apart cpu cuda detach_ dim double dtype
        element_size fake_mode float get_device grad grad_fn half history_owner imag int is_alias_of is_complex
        is_contiguous is_cpu is_cuda is_floating_point is_inference is_leaf is_meta is_pinned is_signed is_sparse itemsize
        layout live_views long mH mT nbytes ndim ndimension nelement new_alias new_tensor nonzero norm numel output_nr
        pin_memory real requires_grad requires_grad_ retains_grad set_gmask shape shared_storage shares_memory_with short
        shown_like size storage_offset stride to to_device type unique unique_consecutive with_history_owner
    """,
    turnout.Generator: "keys reserve",  # random operators reserve; the program has the words in their calls
    turnout.autograd.Node: "backward name next_functions plain release",
    turnout.autograd.Handle: "remove",  # of a hook that was registered in the call, or of a tensor that has one
    turnout.graphs.Graph: "code from_data to",
}
if find_spec("pyopencl"):
    QUIET_METHODS |= {turnout.opencl.Stream: "device", turnout.opencl.Event: ""}


def hooked(*args: Any) -> None: ...


def in_a_block(x: Any) -> None:
    with turnout.autograd.detect_anomaly():
        pass


# What says so elsewhere than in its own lines, by a program of a tensor that records, and what it is called then.
SAID_ELSEWHERE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "save": ("a file", lambda x: turnout.save({}, io.BytesIO()) or turnout.save({}, "saved")),
    "load": ("a file", lambda x: turnout.load("saved")),
    "graphs.load": ("a file", lambda x: turnout.graphs.load("saved")),
    "graphs.trace": ("turnout.trace()", lambda x: turnout.graphs.trace(turnout.exp)(x)),
    "export.load": ("a file", lambda x: turnout.export.load("saved")),
    "nn.save_safetensors": ("a file", lambda x: turnout.nn.save_safetensors({}, "saved")),
    "seed": ("seed()", lambda x: turnout.seed()),
    "autograd.detect_anomaly": ("detect_anomaly()", in_a_block),
    "autograd.set_detect_anomaly": ("detect_anomaly()", lambda x: turnout.autograd.set_detect_anomaly(False)),
    "autograd.graph.register_multi_grad_hook": (
        "register_hook()", lambda x: turnout.autograd.graph.register_multi_grad_hook([x], hooked)
    ),
    "utils.checkpoint.checkpoint_sequential": (
        "checkpoint()", lambda x: turnout.utils.checkpoint.checkpoint_sequential([turnout.exp, turnout.sin], 2, x)
    ),
    "dask.chunks": ("turnout.dask.array_of()", lambda x: turnout.dask.chunks(turnout.ones(2, device="dask"))),
    "dask.persist": ("turnout.dask.array_of()", lambda x: turnout.dask.persist(turnout.ones(2, device="dask"))),
    "dask.rechunk": ("turnout.dask.array_of()", lambda x: turnout.dask.rechunk(turnout.ones(2, device="dask"), 1)),
    "dask.visualize": ("turnout.dask.array_of()", lambda x: turnout.dask.visualize(turnout.ones(2))),
    "Tensor.register_hook": ("register_hook()", lambda x: x.register_hook(hooked)),
    "Tensor.register_post_accumulate_grad_hook": (
        "register_post_accumulate_grad_hook()", lambda x: x.register_post_accumulate_grad_hook(hooked)
    ),
    "Tensor.retain_grad": ("retain_grad()", lambda x: (x * 2).retain_grad()),
    "Tensor.data": ("data =", lambda x: setattr(x, "data", turnout.ones(3))),
    "Generator.seed": ("Generator.manual_seed()", lambda x: turnout.Generator().seed()),
    "Generator.clone_state": ("Generator.get_state()", lambda x: turnout.Generator().clone_state()),
    "Graph.save": ("a file", lambda x: turnout.trace(turnout.exp)(turnout.ones(2)).save("saved")),
    "Graph.load": ("a file", lambda x: turnout.graphs.Graph.load("saved")),
    "Stream.record_event": ("Event.record()", lambda x: turnout.opencl.Stream.record_event(turnout.opencl.Stream())),
    "Stream.wait_event": ("Event.wait()", lambda x: turnout.opencl.Stream().wait_event(turnout.opencl.Event())),
    "Stream.wait_stream": ("Event.record()", lambda x: turnout.opencl.Stream().wait_stream(turnout.opencl.Stream())),
}  # fmt: skip
# What values are read by, which has a way of its own.
READS = frozenset(("Tensor.item", "Tensor.numpy", "Tensor.tolist"))
_OPENCL = ("opencl", "Stream.", "Event.")


def got(place: ModuleType, name: str) -> Any:
    try:
        return getattr(place, name)
    except turnout.TurnoutError:  # of a device that is not there
        return None


def public(place: ModuleType, path: str, seen: set[str]) -> Iterator[tuple[str, str, Any]]:
    """Module, name and value of all public names, those of modules inside."""
    for name in dir(place):
        value = None if name[0] == "_" else got(place, name)
        if isinstance(value, ModuleType):
            if is_ours(value.__name__) and value.__name__ not in seen:
                seen.add(value.__name__)
                yield from public(value, f"{path}.{name}".lstrip("."), seen)
        elif callable(value):
            yield path, name, value


def codes(value: Any) -> Iterator[FunctionType]:
    """A function, and those that it wraps."""
    while isinstance(value, FunctionType):
        yield value
        value = getattr(value, "__wrapped__", None)


def says_so(value: Any) -> bool:
    """Whether a function, or one that it stands for, says what it does beside operators."""
    return any({"effect", "reads"} & set(each.__code__.co_names) for each in codes(value))


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class that are written in Python."""
    for name, member in inspect.getmembers_static(kind):
        found = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if name[0] != "_" and (isinstance(found, FunctionType) or type(member).__name__ in ("Late", "LateProperty")):
            yield name, found


def table(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    module = ""
    for word in text.split():
        if word.endswith(":"):
            module = word[:-1]
        else:
            found.setdefault(module, set()).add(word)
    return found


def is_operator(value: Any) -> bool:
    return type(value).__name__ == "Call"


def placed(path: str, name: str, value: Any, quiet: dict[str, set[str]]) -> bool:
    """Whether it is known what a public name does beside the operators that it calls."""
    full = f"{path}.{name}".lstrip(".")
    if is_operator(value) or path in OPERATORS or name in OUTSIDE_NAMES or full in SAID_ELSEWHERE or says_so(value):
        return True
    if isinstance(value, type) and (value in QUIET_METHODS or issubclass(value, COMPARED)):
        return True
    if isinstance(value, type) and any(says_so(found) for _, found in members(value)):
        return True
    return not isinstance(value, (FunctionType, type)) or name in quiet.get(path, ())


def test_each_public_function_says_what_it_does_beside_operators_or_does_nothing() -> None:
    quiet, met = table(QUIET), {}
    for path, name, value in public(turnout, "", set()):
        met.setdefault(id(value), []).append((path, name, value))
    unplaced = [names[0][:2] for names in met.values() if not any(placed(*each, quiet) for each in names)]
    assert unplaced == []
    assert len(met) > 1300


def test_each_method_of_what_a_signature_does_not_hold_says_so_too() -> None:
    for kind, quiet in QUIET_METHODS.items():
        left = {
            name
            for name, found in members(kind)
            if not (kind is turnout.Tensor and name in methods.NAMES)  # an operator's, a function since it was used
            if not says_so(found) and name not in OUTSIDE_NAMES and f"{kind.__name__}.{name}" not in {*SAID_ELSEWHERE, *READS}
        }
        assert left <= set(quiet.split()), kind
        assert [name for name in quiet.split() if name not in dict(members(kind))] == []


def test_functions_that_call_operators_keep_nothing() -> None:
    kept = []
    for path, name, value in public(turnout, "", set()):
        for each in codes(value) if path in OPERATORS and not says_so(value) else ():
            held = [each.__globals__.get(found) for found in each.__code__.co_names]
            kept += [(path, name) for found in held if isinstance(found, (ContextVar, Counter))]
            kept += [(path, name) for found in held if isinstance(found, ModuleType) and is_outside(found.__name__)]
            kept += [(path, name) for line in dis.get_instructions(each.__code__) if line.opname == "STORE_GLOBAL"]
    # One runs below a grad mode that it sets, the other reads the signature of a class.
    assert set(kept) == {("func", "jvp"), ("nn.utils", "skip_init")}


@pytest.mark.parametrize("name", SAID_ELSEWHERE)
def test_what_others_do_for_it_is_said(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith(_OPENCL):
        pytest.importorskip("pyopencl")
    monkeypatch.chdir(tmp_path)
    what, program = SAID_ELSEWHERE[name]
    told: list[str] = []
    state = turnout.get_rng_state()
    try:
        told_of_effects(lambda what, *kind: told.append(what), lambda: program(turnout.ones(3, requires_grad=True)))
    except (turnout.TurnoutError, OSError):
        pass  # of a file that is not there, or a tensor on another device: it was said before
    finally:
        turnout.autograd.set_detect_anomaly(False)
        turnout.set_rng_state(state)
    assert what in told


# ---- compiled


def loads(x: Any) -> Any:
    return x * turnout.nn.load_safetensors("weights")["w"]


def retains(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    return y


def hooks(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_prehook(CALLED.append)
    return y


def detects(x: Any) -> Any:
    turnout.autograd.set_detect_anomaly(True)
    return x * 2


def counts(x: Any) -> Any:
    turnout.autograd.graph.increment_version(x)
    return x * 2


def resizes(x: Any) -> Any:
    return (x * 2).resize_(2)


def takes_a_shape(x: Any) -> Any:
    return (x * 2).resize_as_(x[:2])


def stored(x: Any) -> Any:
    return x * 2, x.storage is None


def versions(x: Any) -> Any:
    return x * 2, x.version()


def explains(x: Any) -> Any:
    return x * 2, turnout.explain("exp", x).chosen.key


CALLED: list[Any] = []


def weights(x: Any, y: Any, count: int) -> Any:
    turnout.nn.save_safetensors({"w": turnout.full((3,), count + 1.0)}, "weights")
    return y.tolist()


def gradient(x: Any, y: Any, count: int) -> Any:
    CALLED.clear()
    y.sum().backward()
    return y.grad if y.retains_grad else None, len(CALLED)


def mode(x: Any, y: Any, count: int) -> Any:
    on = turnout.autograd.is_anomaly_enabled()
    turnout.autograd.set_detect_anomaly(False)
    return on


@pytest.mark.parametrize(
    ("function", "after", "why"),
    [
        (loads, weights, "the call uses load_safetensors(), which"),
        (retains, gradient, "the call uses retain_grad(), which"),
        (hooks, gradient, "the call uses Node.register_prehook(), which"),
        (detects, mode, "the call uses detect_anomaly(), which"),
        (counts, lambda x, y, count: x._version, "the call uses increment_version(), which"),
        (resizes, lambda x, y, count: y.tolist(), "the call uses aten::resize_, which"),
        (takes_a_shape, lambda x, y, count: y.tolist(), "the call uses aten::resize_as_, which"),
        (versions, lambda x, y, count: y[1], "the function names version, which"),
        (stored, lambda x, y, count: y[1], "the function names storage, which"),
        (explains, lambda x, y, count: y[1], "the function names explain, which"),
    ],
)
@pytest.mark.filterwarnings("ignore:grad. only leaves")
def test_what_a_call_does_beside_operators_happens_in_each_call(
    function: Any, after: Any, why: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    turnout.nn.save_safetensors({"w": turnout.ones(3)}, "weights")
    tracked = after is gradient

    def thrice(each: Any) -> list[str]:
        made = []
        for count in range(3):
            x = turnout.ones(3, requires_grad=tracked)
            made.append(str(after(x, each(x), count)))
        turnout.nn.save_safetensors({"w": turnout.ones(3)}, "weights")
        return made

    with pytest.warns(turnout.compiler.CompileWarning) as caught:
        found = thrice(turnout.compile(function))
    assert found == thrice(function)
    [warning] = caught
    assert str(warning.message).startswith(
        f"compile: {function.__name__} runs eagerly: {why} reads or changes what a signature does not see"
    )
    with pytest.raises(turnout.compiler.CompileError, match="strict=True was given"):
        turnout.compile(function, strict=True)(turnout.ones(3, requires_grad=tracked))


def test_no_compiled_function_is_left_alone_for_a_word_of_its_own() -> None:
    """What says so when it is called is not looked for by its name."""

    class Model:
        data, seed, load, manual_seed = None, 1, 2, 3

    def named(x: Any, model: Any) -> Any:
        model.data = x * model.seed * model.load * model.manual_seed
        return model.data

    compiled = turnout.compile(named, strict=True)
    model = Model()
    model.data = turnout.ones(2)
    assert [compiled(turnout.ones(2), model).tolist() for _ in range(3)] == [[6.0, 6.0]] * 3


def test_memory_that_a_lazy_layer_gets_when_it_is_first_used_is_no_fault() -> None:
    model = turnout.nn.Sequential(turnout.nn.LazyLinear(3), turnout.nn.ReLU())
    compiled: Any = turnout.compile(model, engine="eager", strict=True)
    x = turnout.ones(2, 4)
    assert [turnout.equal(compiled(x), model(x)) for _ in range(4)] == [True] * 4
    assert sum(signature.calls for signature in turnout.compiler.signatures(compiled)) == 2


def test_memory_that_each_call_gives_a_tensor_is_said() -> None:
    def adopts(x: Any) -> Any:
        x.data = turnout.full((3,), 2.0)
        return x * 2

    def values(call: Any) -> list[Any]:
        x = turnout.zeros(3)
        return [call(x).tolist(), x.tolist()]

    compiled = turnout.compile(adopts)
    with pytest.warns(turnout.compiler.CompileWarning, match="^compile: adopts runs eagerly: the call uses data =, which reads"):
        found = [values(compiled) for _ in range(3)]
    assert found == [values(adopts)] * 3
