"""Reverse-mode gradients for every operator that has a formula."""
