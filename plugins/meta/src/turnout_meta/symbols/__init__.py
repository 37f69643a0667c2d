"""Sizes whose values are not known.

| module | holds |
|---|---|
| `expressions` | integer polynomials in symbols, quotients and remainders |
| `scope` | the symbols of one mode, and what is known of them |
| `sizes` | `SymInt` and `SymBool`, which programs compute with, and `check` |
| `errors` | the texts of errors |
"""
