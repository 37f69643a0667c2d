"""What is said about a call inside vmap, where the shapes are those of one example."""

from __future__ import annotations

from rows import refused

test_a_call_of_examples_is_refused = refused("""
turnout.vmap(lambda x, y: turnout.mm(x, y))(ones(2, 3, 4), ones(2, 3, 4))
    ShapeError: mm: shapes [3, 4] and [3, 4] do not match: 4 against 3
turnout.vmap(lambda x, y: turnout.matmul(x, y))(ones(2, 3), ones(2, 4))
    ShapeError: matmul: shapes [3] and [4] do not match: 3 against 4
turnout.vmap(lambda x: turnout.addmm(x, turnout.eye(2), turnout.eye(2)))(ones(3, 1, 2, 2))
    ShapeError: addmm: 'self' of shape [1, 2, 2] does not expand to the product's [2, 2]
turnout.vmap(lambda x: x.t())(ones(2, 1, 1, 1))
    ShapeError: t: takes at most 2 dimensions, got shape [1, 1, 1]; use transpose or permute
turnout.vmap(lambda x: x.permute(0))(ones(2, 3, 4))
    ShapeError: permute: [0] must name each of the 2 dimensions of shape [3, 4]
turnout.vmap(lambda x: x.expand(4))(ones(2, 3, 4))
    ShapeError: expand: shape [3, 4] has more dimensions than the requested [4]
turnout.vmap(lambda x: x.expand(-1, 3))(ones(2, 3))
    ShapeError: expand: [-1, 3]: a new dimension needs a length, got -1 at dim 0
turnout.vmap(lambda x: x.select(0, 0))(ones(2))
    DimError: select: a 0-dim tensor has no dimension to select from
turnout.vmap(lambda x: turnout.ops.aten.slice(x, 0, 0, 1))(ones(2))
    DimError: slice: a 0-dim tensor has no dimension to slice
turnout.vmap(lambda x: x.unbind())(ones(2))
    DimError: unbind: a 0-dim tensor has no dimension to unbind
turnout.vmap(lambda x: x.split(1))(ones(2))
    ShapeError: split: a 0-dim tensor has no dimension to split
turnout.vmap(lambda x: x.split([1]))(ones(0))
    ShapeError: split_with_sizes: a 0-dim tensor has no dimension to split
turnout.vmap(lambda x: x.repeat(2))(ones(2, 3, 4))
    ShapeError: repeat: repeats [2] must name each dimension of an example's shape [3, 4]
turnout.vmap(lambda x: turnout.cat([x, x]))(ones(2))
    ShapeError: cat: tensors[0] has no dimension to join along; use stack
turnout.vmap(lambda x, y: turnout.cat([y, x]))(ones(2), ones(2, 3))
    ShapeError: cat: tensors[1] has no dimension to join along; use stack
turnout.vmap(lambda x: turnout.cat([turnout.tensor(1.0), x]))(ones(2, 3))
    ShapeError: cat: tensors[0] has no dimension to join along; use stack
turnout.vmap(lambda x, y: turnout.cat([x, y], 1))(ones(2, 3, 4), ones(2, 5, 4))
    ShapeError: cat: shapes [3, 4] and [5, 4] must be equal apart from dim 1
turnout.vmap(lambda x, y: turnout.cat([x, y]))(ones(2, 3), ones(2, 3, 4))
    ShapeError: cat: shapes [3] and [3, 4] must be equal apart from dim 0
turnout.vmap(lambda x: turnout.nn.functional.unfold(x, 2))(ones(3, 2, 2))
    ShapeError: im2col: 'self' must have 3 or 4 dimensions, none but the batch empty; got shape [2, 2]
turnout.vmap(lambda x: turnout.nn.functional.max_pool2d(x, 2))(ones(3, 2, 2))
    ShapeError: max_pool2d: 'self' must have 3 or 4 dimensions, none but the batch empty; got shape [2, 2]
turnout.vmap(lambda x: turnout.nn.functional.lp_pool3d(x, 2, 2))(ones(3, 2, 2, 2))
    ShapeError: avg_pool3d: 'self' must have 4 or 5 dimensions, none but the batch empty; got shape [2, 2, 2]
turnout.vmap(lambda a, b: turnout.linalg.lstsq(a, b))(ones(3, 2), ones(3, 2))
    ShapeError: linalg.lstsq: 'self' must have at least 2 dimensions, got shape [2]
turnout.vmap(lambda x: x.index_select(0, x.to(turnout.int64)))(ones(3, 2, 2))
    DimError: index_select: 'index' must have one dimension, got shape [2, 2]
turnout.vmap(lambda x, m: x[m], (0, None))(ones(2, 3), turnout.tensor([True, False]))
    DimError: index: a mask of shape [2] does not fit shape [3] at dim 0
turnout.vmap(lambda x: turnout.layer_norm(x, [2, 3]))(ones(2, 3))
    ShapeError: native_layer_norm: normalized_shape [2, 3] must be the last dims of shape [3]
""")
