"""`turnout.array_api`: the namespace of the Python array API standard, written with the functions of turnout-aten.

`namespace/` has a file for each section of the standard. Start with `promotion`: the rules for dtypes, Python numbers and axes.
"""
