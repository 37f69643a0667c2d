"""The CUDA backend: `plugin` (activation), `backend` (memory, devices), `module` (CuPy as the kernel library wants it)."""
