"""What is said about a call inside vmap, where the shapes are those of one example."""

from __future__ import annotations

from rows import refused

test_a_call_of_examples_is_refused = refused("""
turnout.vmap(lambda x, y: turnout.mm(x, y))(ones(2, 3, 4), ones(2, 3, 4))
    ShapeError: mm: examples of shapes [3, 4] and [3, 4] do not match
turnout.vmap(lambda x, y: turnout.matmul(x, y))(ones(2, 3), ones(2, 4))
    ShapeError: matmul: examples of shapes [3] and [4] do not match
turnout.vmap(lambda x: turnout.addmm(x, turnout.eye(2), turnout.eye(2)))(ones(3, 1, 2, 2))
    ShapeError: addmm: an example's 'self' of shape [1, 2, 2] has more than 2 dimensions
turnout.vmap(lambda x: x.t())(ones(2, 1, 1, 1))
    ShapeError: t: takes at most 2 dimensions, got examples of 3; use transpose or permute
turnout.vmap(lambda x: x.permute(0))(ones(2, 3, 4))
    ShapeError: permute: [0] must name each of the 2 dimensions of an example
turnout.vmap(lambda x: x.expand(4))(ones(2, 3, 4))
    ShapeError: expand: examples of shape [3, 4] have more dimensions than the wanted [4]
turnout.vmap(lambda x: x.expand(-1, 3))(ones(2, 3))
    ShapeError: expand: [-1, 3]: a new dimension needs a length
turnout.vmap(lambda x: x.select(0, 0))(ones(2))
    DimError: select: an example without dimensions has none to take parts of
turnout.vmap(lambda x: x.repeat(2))(ones(2, 3, 4))
    ShapeError: repeat: repeats [2] must name each dimension of an example's shape [3, 4]
turnout.vmap(lambda x: turnout.cat([x, x]))(ones(2))
    ShapeError: cat: tensors without dimensions cannot be joined
""")
