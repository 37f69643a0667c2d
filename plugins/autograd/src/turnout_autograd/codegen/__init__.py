"""`derivatives.yaml` into `generated/`: `entries` reads and checks, `writing` writes, `__main__` is the command."""
