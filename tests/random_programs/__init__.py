"""Programs drawn from a seed, one kind in each module; the suites that run them are in `aten`, `plugins` and `oracle`."""
