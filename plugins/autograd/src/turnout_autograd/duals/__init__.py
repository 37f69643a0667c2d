"""Tangents that tensors carry for forward mode: `levels`, and `carried`, which reads and writes them."""
