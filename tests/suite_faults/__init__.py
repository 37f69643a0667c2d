"""Faults in the product, on which a selection of the tests is measured: how many of them it finds.

`faults.toml` holds them as text: 40 drawn by a seeded mutation of the syntax tree, and 20 written by hand.
`python tests/suite_faults` says what can be done.
"""
