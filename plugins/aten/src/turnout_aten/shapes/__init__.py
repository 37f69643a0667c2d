"""The shape functions of the standard structured operators, one module per family, each with a table `SHAPES` of its own.

A table maps the structured out variant to its shape function. That takes the functional arguments in schema order and answers as
`turnout_aten.shapes.specs` describes; Scalar overloads call the one of the operator they delegate to, with a number in a
tensor's place. Start with `promotion` and `extents`, which the others use. The build writes down which family has which operator,
so that a family is imported when the first kernel of one of its operators is bound.
"""
