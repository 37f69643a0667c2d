"""Composite kernels of the standard operators: written in operators, so that one serves every backend.

`native_functions.yaml` names them: `composites.matrix_products.matmul`. CompositeImplicitAutograd ones are differentiated through
what they call; CompositeExplicitAutograd ones have a derivative of their own. New tensors take device and dtype from the
arguments. Few of them call a backend's own methods: note 0034 lists these.

| modules | hold |
|---|---|
| `copies`, `conversions`, `factories`, `view_copies`, `view_gradients` | copies, dtypes and fills, new tensors, copies of views |
| `reshaping`, `splitting`, `joining`, `arrangements`, `padding` | elements in another shape or order, parts, and parts together |
| `indexing`, `scattering`, `embeddings`, `sorting`, `histograms` | reads and writes by index, rows of tables, searches, counts |
| `pointwise`, `activations`, `complex`, `special` | element by element |
| `reductions`, `statistics`, `quantiles`, `segment_reductions`, `norms`, `matrix_norms` | over dims |
| `matrix_products`, `einsum`, `solvers`, `decompositions`, `pseudo_inverses` | matrices |
| `convolutions`, `pooling`, `images`, `grid_sampling` | images |
| `normalisation`, `softmax`, `attention`, `recurrent`, `layers` | layers of networks |
| `value_losses`, `class_losses`, `ctc_loss` | losses |
| `fourier`, `spectrograms`, `windows`, `numerical_gradients` | signals |
| `random`, `distributions` | random numbers |
| `foreach`, `optimisers` | lists of tensors |
| `properties`, `assertions`, `aliases` | answers about a tensor, checks of numbers, second names |
| `endings`, `layouts`, `out_variants` | shared by all: the last call, where results lie in memory, outputs |
"""
