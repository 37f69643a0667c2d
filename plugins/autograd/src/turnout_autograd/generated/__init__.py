"""Made by `python -m turnout_autograd.codegen`."""
