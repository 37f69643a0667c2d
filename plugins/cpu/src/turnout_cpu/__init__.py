"""The CPU backend, on NumPy: `plugin` (activation), `backend` (memory), `kernels` (the table), `pool` (threads)."""
