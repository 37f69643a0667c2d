"""The contexts of autocast: nesting, decorators, exceptions, threads and tasks, and what they cost where there is none."""

from __future__ import annotations

import asyncio

import pytest

import turnout
from outcomes import in_threads, refused
from turnout import amp, config
from turnout.state import DISPATCH
from turnout_autocast.contexts import LOWER_PRECISIONS


def ones(*shape, **options):
    return turnout.ones(*shape, device="cpu", **options)


def product():
    return (ones(2, 2) @ ones(2, 2)).dtype


def test_matmul_runs_in_bfloat16_on_the_cpu_and_in_the_given_dtype():
    with turnout.autocast("cpu"):
        assert product() is turnout.bfloat16
    with turnout.autocast("cpu", dtype=turnout.float16):
        assert product() is turnout.float16
    assert product() is turnout.float32


def test_contexts_nest_and_an_inner_one_can_switch_off_and_on_again():
    with turnout.autocast("cpu", turnout.float16):
        with turnout.autocast("cpu", enabled=False):
            assert product() is turnout.float32
            assert not amp.is_autocast_enabled("cpu")
            with turnout.autocast("cpu"):
                assert product() is turnout.float16, "the dtype is that of the context around"
        with turnout.autocast("cpu", turnout.bfloat16):
            assert product() is turnout.bfloat16
            assert amp.get_autocast_dtype("cpu") is turnout.bfloat16
        assert product() is turnout.float16
        assert amp.is_autocast_enabled("cpu")
    assert amp.get_autocast_dtype("cpu") is turnout.bfloat16
    assert not amp.is_autocast_enabled("cpu")


def test_one_object_can_be_entered_again_inside_itself():
    context = turnout.autocast("cpu")
    with context, context:
        assert product() is turnout.bfloat16
    assert product() is turnout.float32


def test_as_a_decorator_it_is_on_in_the_function_alone():
    @turnout.autocast("cpu", turnout.float16)
    def decorated(depth):
        """Its own documentation."""
        return product() if depth == 0 else decorated(depth - 1)

    assert decorated(2) is turnout.float16
    assert decorated.__doc__ == "Its own documentation."
    assert product() is turnout.float32


def test_an_exception_leaves_everything_as_it_was():
    before = DISPATCH.get()
    with pytest.raises(KeyError), turnout.autocast("cpu"), turnout.autocast("cpu", turnout.float16):
        raise KeyError("inside")
    assert DISPATCH.get() == before
    with turnout.autocast("cpu"):
        inside = DISPATCH.get()
        refused(turnout.TurnoutError, lambda: ones(2, 3) @ ones(2, 3))
        assert DISPATCH.get() == inside
        assert product() is turnout.bfloat16
    assert DISPATCH.get() == before


def test_another_thread_has_no_autocast_and_a_task_keeps_its_own():
    with turnout.autocast("cpu"):
        assert in_threads(product) == [turnout.float32]

    async def task(dtype):
        with turnout.autocast("cpu", dtype, enabled=dtype is not None):
            for _ in range(5):
                await asyncio.sleep(0)
                assert product() is (dtype or turnout.float32)

    async def main():
        await asyncio.gather(task(turnout.float16), task(None), task(turnout.bfloat16))

    asyncio.run(main())


def test_a_dtype_that_is_no_lower_precision_is_an_error_and_changes_nothing():
    before = DISPATCH.get()
    with pytest.raises(turnout.errors.DTypeError) as raised, turnout.autocast("cpu", turnout.float32):
        pass
    assert str(raised.value) == (
        "autocast: float32 is not a lower precision for 'cpu'\n"
        "  to fix  use turnout.bfloat16 or turnout.float16, or enabled=False to run in the dtypes of the tensors"
    )
    assert DISPATCH.get() == before


def test_the_option_offers_each_lower_precision():
    (manifest,) = (each for each in turnout.plugins.catalog().manifests if each.name == "autocast")
    assert manifest.options["dtype"].choices == ("", *(dtype.name for dtype in LOWER_PRECISIONS))


def test_a_device_type_that_is_no_text_is_an_error():
    assert refused(turnout.errors.CallError, turnout.autocast, 3) == "autocast: device_type must be a str such as 'cpu', got int"


@pytest.mark.parametrize("enabled", [True, False])
def test_a_device_that_nobody_provides_is_an_error(enabled):
    with pytest.raises(turnout.errors.DeviceError, match="device 'missing_chip': there is no such device"):
        turnout.autocast("missing_chip", enabled=enabled)


def test_where_autocast_is_not_enabled_the_device_need_not_be_there():
    with turnout.autocast("cuda", enabled=False):
        assert product() is turnout.float32


def test_a_key_that_configuration_disables_is_an_error_that_names_the_setting():
    config.set({"keys.disable": ["AutocastCPU"]})
    try:
        with pytest.raises(turnout.errors.DisabledError) as raised, turnout.autocast("cpu"):
            pass
        assert "AutocastCPU" in str(raised.value)
        assert "keys.disable" in str(raised.value)
    finally:
        config.unset("keys.disable")
    with turnout.autocast("cpu"):
        assert product() is turnout.bfloat16


def test_each_backend_has_its_own_switch_and_its_own_lists():
    def dtypes():
        x = turnout.ones(2, 2, device="meta", dtype=turnout.float16)
        return (x @ x.float()).dtype if amp.is_autocast_enabled("meta") else None, x.exp().dtype, product()

    with turnout.autocast("meta"):
        assert dtypes() == (turnout.float16, turnout.float32, turnout.float32)
        with turnout.autocast("cpu"):
            assert dtypes() == (turnout.float16, turnout.float32, turnout.bfloat16)
    with turnout.autocast("cpu"):
        assert dtypes() == (None, turnout.float16, turnout.bfloat16)


def _plan(name, x, y):
    op = turnout.registry.find_operator(f"aten::{name}")
    return op.plan(op.key_set(([x, y], 0) if name == "cat" else op.bind((x, y), {})))


def test_operators_on_no_list_fall_through_inside_a_context():
    x = ones(2)
    with turnout.autocast("cpu"):
        assert _plan("add.Tensor", x, x).steps[0].verdict == "fallthrough"
        assert _plan("mm", x, x).steps[0].verdict == "chosen"
        assert (x + x).dtype is turnout.float32
        assert turnout.mm(ones(2, 2), ones(2, 2), out=turnout.empty(2, 2)).dtype is turnout.float32


def test_where_the_plugin_is_disabled_a_context_says_so():
    turnout.plugins.deactivate("autocast")
    config.set({"plugins.disable": ["autocast"]})
    try:
        with pytest.raises(turnout.errors.DisabledError) as raised, turnout.autocast("cpu"):
            pass
        assert "plugins.disable" in str(raised.value)
    finally:
        config.unset("plugins.disable")


def test_an_unknown_name_of_amp_is_an_attribute_error():
    assert refused(AttributeError, lambda: amp.autocst) == "module 'turnout.amp' has no attribute 'autocst'"


def test_is_autocast_enabled_says_no_where_there_is_no_backend():
    assert not turnout.amp.is_autocast_enabled("nowhere")
