"""The code generator: native function yaml in, Python text out.

`python -m turnout_aten.generation` writes the committed files of `turnout.generated` and checks them (`--check`); with `--yaml`
and `--out` it writes one file for a third party's operators. Start at `files.py`, which says what each file holds;
`catalogue.py` decides names and what is public, `source.py` turns schemas into function text, and one module writes
each kind of file.
"""
