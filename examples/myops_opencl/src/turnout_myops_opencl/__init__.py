"""The kernel of `myops::swish` for the device `opencl`.

`swish.cl`  the kernel, in OpenCL C
`swish`     compiles it for a device and starts it
`plugin`    activation
"""
