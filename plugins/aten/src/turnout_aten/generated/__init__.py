"""Made by `python -m turnout.codegen`; nobody edits these files."""
