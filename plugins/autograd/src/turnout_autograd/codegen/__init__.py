"""`derivatives.yaml` into `generated/kernels.py`: `entries` reads and checks, `writing` writes, `__main__` is the command."""
