"""What stands at Autograd for each operator: `kernels` decides, and `inplace_writes` and `views` follow memory that is shared."""
