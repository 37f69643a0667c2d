"""What stands at Forward for each operator: `kernels` decides; `transposed` is the rule of those that have only a gradient."""
