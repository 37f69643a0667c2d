"""The kernel library of the NumPy-like backends, parameterised by the array module."""
