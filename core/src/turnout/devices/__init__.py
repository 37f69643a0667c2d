"""Devices: their names, and the backends behind them.

| module | holds |
|---|---|
| `devices` | `Device`, an interned (type, index) pair; which backend a device type belongs to; the default device |
| `backend` | `Backend`, what dispatch needs of a package that brings a device |
"""

from __future__ import annotations

from turnout.devices.backend import Backend as Backend

from turnout.devices.devices import (  # isort: skip
    Device as Device, active_device_types as active_device_types, default_device as default_device, device as device,
    register_device_type as register_device_type, unregister_device_type as unregister_device_type,
)  # fmt: skip
