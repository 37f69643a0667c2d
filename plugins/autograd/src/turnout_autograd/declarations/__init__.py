"""The derivatives of the standard operators: a yaml file for each family of operators; `entries` and `tangents` read them.

An entry is a schema (`name`) and, per differentiable argument, a Python expression for the gradient with respect to it.
Expressions are written in operators (methods, or stubs such as `slice__Tensor`) and in the functions of `formulas`, which are
written in operators too: so they differentiate again. They may use

    grad            the gradient of the first differentiable output
    grads           those of all outputs, None where there is none
    result          the output; with several their names, or result0, result1, ...
    the arguments   `x.shape`, `x.dtype`, `x.device` and `x.geometry` (shape, strides, offset) save only that much of x,
                    `xs.shapes` that much of a list of tensors

`a, b: f(..., grad_input_mask)` gives several gradients at once; grad_input_mask says which are wanted. `arg: non_differentiable`,
`arg: not_implemented("why")`, and `output_differentiability: [True, False]` mean what they say.

The derivative along tangents, for forward mode, stands beside the gradients: `result: ...`, or the names of the outputs that have
one. It may use

    x_t           the tangent of x, an argument that has a gradient
    x_p           its value; other arguments have their names
    result        as above

`auto_linear` applies the operator to the tangents; it is refused where a gradient reads what it is a gradient of.
`auto_element_wise` takes each tangent's factor from the gradient; it is for operators that are tagged `pointwise`. Otherwise an
expression is a sum: a term is left out where the tangent that it reads is None. A term that needs several tangents passes them to
a function of the room `tangents`, which takes None for those that are not there. A tangent is then fitted to its output. In-place
and out variants have the functional rule.

A gradient is then fitted to its argument (summed over broadcast dims, cast, moved) unless the entry says `exact: True`, which
promises that the expression has the argument's shape, dtype and device.

`unless: {x: flag}` does not save x in calls with that flag, which may then write into x; the expression gets None.

An in-place variant has the entry of its functional variant unless it has one of its own. Where the output of that entry is not
differentiable, what the variant writes is constant: self gets zeros.

# differs from torch: `logical_and_` gives zeros as the gradient of the values that it overwrites; PyTorch passes the gradient on.

After a change, run `python -m turnout_autograd.generation`; the build does it too.
"""
