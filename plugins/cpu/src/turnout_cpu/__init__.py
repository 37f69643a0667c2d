"""The CPU backend: tensors held by NumPy arrays."""
