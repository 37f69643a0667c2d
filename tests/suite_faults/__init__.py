"""Faults in the product, on which a selection of the tests is measured: how many of them it finds.

| file | holds |
|---|---|
| `faults.toml` | the faults as text, 40 that were drawn and 20 written by hand |
| `drawn` | how the 40 were drawn: seeded mutation of the syntax tree |
| `places` | a fault is put into its file, and what is built of the file is built anew; all of it can be undone |
| `__main__` | the commands: `python tests/suite_faults --help` |
"""
