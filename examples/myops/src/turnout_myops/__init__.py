"""The operator `myops::swish(x, beta)`, x * sigmoid(beta * x).

`swish`   its kernel on NumPy's arrays, and its rules for shapes, gradients and batches
`plugin`  its schema, and activation
"""
