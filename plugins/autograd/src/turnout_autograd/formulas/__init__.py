"""Functions that the formulas of `declarations` call: one file for each family of operators, all written with operators.

A gradient can be differentiated again, batched, traced and cast because of that. A function is named after its operator with
`_grad`; every public name of these files may stand in a formula.
"""
