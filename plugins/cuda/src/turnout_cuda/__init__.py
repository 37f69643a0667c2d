"""The CUDA backend. Start at `backend` (memory, devices) and `table` (which operators have kernels of ours).

| modules | hold |
|---|---|
| `plugin`, `backend`, `module`, `floats` | activation; memory and devices; CuPy as the kernel library wants it; two-byte floats |
| `devices`, `streams`, `memory` | `turnout.cuda`: devices, streams and events, memory |
| `graphs`, `recordings`, `replays` | recorded work, what it keeps and draws, and traced graphs that are recorded |
| `programs`, `table`, `prepared` | the CUDA C of `kernels/`, compiled for a dtype; the rows of all families; what plans start |
| `pointwise`, `reductions`, `softmax`, `normalisation`, `statistics`, `pooling`, `images` | families of kernels in CUDA C |
| `sorting`, `indexing`, `selection`, `scattering`, `losses`, `faults` | the same: order, and places that an index or mask names |
| `foreach`, `lists`, `optimisers` | operators on lists of tensors, and steps of optimisers |
| `matrix_products`, `biased_products`, `convolutions` | cuBLAS, cuBLASLt, cuDNN |
| `attention`, `random` | attention; random numbers, and dropout |
| `direct_convolutions` | those of few products |
| `gradients` | gradients of composed operators that are one node here |
"""
