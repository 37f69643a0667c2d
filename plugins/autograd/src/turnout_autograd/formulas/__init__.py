"""Functions that the formulas of `declarations` call, a family of operators a file, written in operators.

A gradient can be differentiated again, batched, traced and cast because of that. A function is named after its operator with
`_grad`; every public name of these files may stand in a formula.
"""
