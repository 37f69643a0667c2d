"""The Meta backend: `plugin` (activation), `backend` (arrays without data), `kernels` (which operators it has)."""
