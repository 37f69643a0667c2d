"""Rows of a backend's table: an array kernel with what its wrappers may do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[..., Any]

ALWAYS = "always"  # inputs of one dtype give that dtype, for every dtype that the kernel accepts
SAME = "same"  # the result is used only if it has the inputs' dtype; otherwise the general path converts
BOOL = "bool"  # inputs of one dtype give bool (comparisons)


class Row:
    """An array kernel with options.

    allocates  ALWAYS, SAME or BOOL: opts in to the fast path, in which the kernel allocates the result. If it raises
               NotImplementedError, the call takes the general path
    pointwise  an output may be the same array as an input
    simple     the kernel as a function of the required arguments only. The fast path calls it when the other arguments have
               their defaults: it saves a Python frame (`numpy.add` for `add` with alpha=1: 50 ns of 560)
    limit      `simple` serves arrays of up to this many elements (0: any); for larger ones `fn` may use several threads
    limit_of_halves  the same for two-byte elements (0: as `limit`)
    bools      False: a bool in place of a number takes the general path, because the shape function may refuse it
    refuses    dtypes (as NumPy kinds) that take the general path, because the shape function refuses them but the kernel does not
    ranks      the ndim of each tensor, None for any; a call with other ranks takes the general path
    halves     False: a number beside float16 takes the general path, in which the kernel does not round the number first
    few        the kernel for calls whose first tensor and first output have up to `limit_of_few` elements, in place of `fn`
    sized_by   the name of the tensor that all these limits are about, if it is not the first one
    quiet      the array library warns of nothing that the kernel does, or only from frames that `wrapper_module` and its filter
               cover: the kernel moves elements, or calls ufuncs by itself. The planned path calls it outside `kernel_context`
    steps      what the kernel computes, bit by bit, for row-major tensors of one float dtype, as (function of the array module,
               operand, ...). An operand is the name of an argument, the number of an earlier step, a float, COUNT or FREEDOM. A
               function of two operands that has one reduces over `dim`. The text of calls and of plans, and a compiled call path,
               run them (`kernels.stepping`); `fn` serves all other calls
    limit_of_steps  they serve results of up to this many elements (0: any), and so large second factors of products
    prepares   `prepares(outs, *arguments)` makes what a plan calls in place of the kernel, of what the shape function said of the
               outputs and the first call's arguments: a function of the same arguments and outputs, for all calls with arrays of
               the same shapes, strides and dtypes, and equal other arguments (so a float 0.0 may come as -0.0; no argument is
               complex). None where the kernel itself must serve them; NotImplemented, of a row over another one, where the row
               below would. Outputs are row-major
    moves      in a word, what a kernel does that only moves, finds or orders elements: "join" for `cat`, "pick" and "put" by a
               list of indices, "select" and "gather" by one, "flip", "lower" and "upper" for triangles, "add up" for running
               sums, "find largest" for `argmax`, "largest" for `max` along a dim, "sort", "order first" for `topk`, "any", "all",
               "class loss" and "class slope" for `nll_loss` and its gradient,
               and without a tensor "uniform" and "normal" random numbers of the device's generator (`composites.endings`).
               A compiled call path does that for few elements of row-major arrays; `fn` serves all other calls
    over       makes the kernel, from one that may get any call, for a row over another one: compiled kernels that look at their
               arguments themselves need no frame that asks whether they serve a call
    """

    __slots__ = (
        "allocates", "bools", "few", "fn", "halves", "limit", "limit_of_few", "limit_of_halves", "limit_of_steps", "moves",
        "over", "pointwise", "prepares", "quiet", "ranks", "refuses", "simple", "sized_by", "steps",
    )  # fmt: skip

    def __init__(
        self, fn: Call, allocates: str = "", *, pointwise: bool = False, simple: Call | None = None, limit: int = 0,
        bools: bool = True, refuses: str = "", ranks: tuple[int | None, ...] = (), halves: bool = True,
        quiet: bool = False, few: Call | None = None, limit_of_few: int = 0,
        steps: tuple[tuple[Any, ...], ...] = (), limit_of_steps: int = 0, limit_of_halves: int = 0,
        over: Callable[[Call], Call] | None = None, moves: str = "", prepares: Call | None = None,
        sized_by: str = "",
    ) -> None:  # fmt: skip
        self.limit = limit
        self.limit_of_halves = limit_of_halves or limit
        self.fn = fn
        self.allocates = allocates
        self.pointwise = pointwise
        self.simple = simple
        self.bools = bools
        self.refuses = refuses
        self.ranks = ranks
        self.halves = halves
        self.quiet = quiet
        self.few = few
        self.limit_of_few = limit_of_few
        self.steps = steps
        self.limit_of_steps = limit_of_steps
        self.over = over
        self.moves = moves
        self.prepares = prepares
        self.sized_by = sized_by

    def function_for(self, *arrays: str, kernel: str = "kernel", few: str = "few") -> str:
        """The function that serves arrays of these names, as source: `kernel`, or `few` where they are small."""
        if self.few is None:
            return kernel
        return f"({few} if {' and '.join(f'{array}.size <= {self.limit_of_few}' for array in arrays)} else {kernel})"
