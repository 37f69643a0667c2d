"""The device `torchlike` of Turnout. `plugin.toml` says what the package provides; `plugin.py` registers it."""
