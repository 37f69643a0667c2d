"""Texts of errors: of declarations in yaml, and of tensors."""
