"""Quantized tensors for Turnout. Start at `tensors`.

`tensors`  the class of the tensors: int8 codes, a scale and a zero point
`kernels`  a table of what each operator does with them; all others are errors
`public`   the module `turnout.quantized`
`plugin`   activation: the operators of the namespace `quantized`, and a fallback for each backend
"""
