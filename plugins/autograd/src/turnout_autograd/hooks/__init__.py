"""Hooks on tensors, on several tensors at once, and on what nodes save."""
