"""Tangents that tensors carry for forward mode: `levels`, `carried`, which reads and writes them, and `results` of rules."""
