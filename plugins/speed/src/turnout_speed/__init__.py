"""The call path, compiled.

`plugin.toml` names the functions of other packages that are replaced, and `replacements` what stands in their place. Start with
the head of `_calls.c`, which says when a call is taken there.
"""
