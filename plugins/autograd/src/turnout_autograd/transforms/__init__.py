"""Functional transforms: `levels` on the tape, `linearized` runs, and what `turnout.func` offers made of them."""
