"""Made by `python -m turnout.codegen`: what is generated for operators, by the first letter of their names."""
