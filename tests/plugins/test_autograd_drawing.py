"""`turnout.autograd.graph.draw`: what is in the drawing, that it is the same each time, its limit, and the SVG made of it."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest

import turnout
from outcomes import refused
from turnout import autograd
from turnout.dtypes import dtype_named
from turnout.registry import REGISTRY
from turnout_aten import trees
from turnout_aten.nn import functional
from turnout_autograd.drawing.graph_drawing import draw as drawn_by
from turnout_conformance.cases import CASES, calls


def leaf(*shape):
    return turnout.ones(shape, requires_grad=True)


def tracked(data, dtype):
    made = turnout.tensor(data, dtype=dtype_named(dtype))
    return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made


def boxes(text):
    """The title and rows of each box by its name."""
    found = {}
    for name, label in re.findall(r"^  (\w+) \[label=<(.*)>, fillcolor=", text, re.MULTILINE):
        title, *rows = re.split(r"<br[^>]*>", label)
        found[name] = [html.unescape(re.sub(r"<[^>]*>", "", part)) for part in (title, *rows)]
        found[name] = [part for part in found[name] if part]
    return found


def arrows(text):
    return re.findall(r"^  (\w+ -> \w+.*)$", text, re.MULTILINE)


class Square(autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


class Once(Square):
    @staticmethod
    @autograd.once_differentiable
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


# ---- the text


def test_a_small_graph_as_dot():
    x, w = leaf(2), leaf()
    scaled = x * w
    text = autograd.graph.draw(scaled.exp(), names={"x": x, "w": w, "scaled": scaled})
    small = '<br align="left"/><font point-size="10" color="#444444">'
    assert text == (
        'digraph "gradients" {\n'
        '  graph [rankdir=TB, bgcolor="white", pad=0.2, nodesep=0.3, ranksep=0.4]\n'
        '  node [shape=box, style="rounded,filled", fontname="Helvetica,Arial,sans-serif", fontsize=12, '
        'margin="0.12,0.07", height=0.3]\n'
        '  edge [color="#666666", fontcolor="#666666", fontname="Helvetica,Arial,sans-serif", fontsize=9, arrowsize=0.7]\n'
        f'  n0 [label=<<b>aten::exp</b>{small}saved result: float32 [2]<br align="left"/></font>>, '
        'fillcolor="#eef1f6", color="#7d8ba0"]\n'
        f'  n1 [label=<<b>scaled = aten::mul.Tensor</b>{small}saved other: float32 []<br align="left"/>'
        'saved self: float32 [2]<br align="left"/></font>>, fillcolor="#eef1f6", color="#7d8ba0"]\n'
        f'  n2 [label=<<b>leaf x</b>{small}float32 [2] on cpu<br align="left"/></font>>, '
        'fillcolor="#dcf0de", color="#4c8f57"]\n'
        f'  n3 [label=<<b>leaf w</b>{small}float32 [] on cpu<br align="left"/></font>>, '
        'fillcolor="#dcf0de", color="#4c8f57"]\n'
        f'  out0 [label=<<b>output</b>{small}float32 [2] on cpu<br align="left"/></font>>, '
        'fillcolor="#d9e8fb", color="#3f74b5"]\n'
        "  n1 -> n0\n  n2 -> n1\n  n3 -> n1\n  n0 -> out0\n"
        "}\n"
    )


def test_the_same_program_gives_the_same_text():
    def text():
        w = leaf(3)
        rows = turnout.zeros(2, 3)
        rows[0] = Square.apply(w)
        return autograd.graph.draw([rows.sum(), (w * w).sort()[0]], names={"w": w, "rows": rows})

    assert text() == text()


def test_several_outputs_share_what_is_behind_them():
    w = leaf(3)
    shared = w.exp()
    text = autograd.graph.draw((shared.sum(), shared * w, w), names={"w": w})
    assert [title for title, *_ in boxes(text).values()] == [
        "aten::sum",
        "aten::mul.Tensor",
        "leaf w",
        "aten::exp",
        "output 0",
        "output 1",
        "output w",
    ]
    assert arrows(text) == ["n3 -> n0", "n3 -> n1", "n2 -> n1", "n2 -> n3", "n0 -> out0", "n1 -> out1", "n2 -> out2"]


def test_arguments_that_are_the_same_tensor_are_two_edges_and_results_are_numbered():
    w = leaf(2, 2)
    parts = (w * w).unbind()
    text = autograd.graph.draw(parts[1], names={"first": parts[0], "second": parts[1]})
    assert boxes(text)["n0"] == ["first = aten::unbind.int", "with self_shape=[2, 2], dim=0"]
    assert boxes(text)["out0"] == ["output second", "float32 [2] on cpu"]
    assert arrows(text) == ["n1 -> n0", "n2 -> n1", "n2 -> n1", 'n0 -> out0 [label="result 1"]']


def test_saved_lists_numbers_texts_and_dtypes_are_shown():
    index = turnout.tensor([0, 1])
    picked = leaf(2, 2)[index, index]
    assert boxes(autograd.graph.draw(picked))["n0"][1:] == [
        "saved indices[0]: int64 [2]",
        "saved indices[1]: int64 [2]",
        "with self_shape=[2, 2]",
    ]
    assert boxes(autograd.graph.draw(functional.gelu(leaf(2))))["n0"][1:] == [
        "saved self: float32 [2]",
        "with approximate='none'",
    ]
    assert boxes(autograd.graph.draw(functional.softmax(leaf(2), 0)))["n0"][1:] == [
        "saved result: float32 [2]",
        "with self_dtype=float32, dim=0",
    ]


def test_numbers_that_do_not_fit_in_a_row_go_on_in_the_next():
    y = functional.conv2d(turnout.ones(1, 1, 4, 4), leaf(2, 1, 3, 3), turnout.ones(2))
    assert boxes(autograd.graph.draw(y))["n0"] == [
        "aten::convolution",
        "saved input: float32 [1, 1, 4, 4]",
        "saved weight: float32 [2, 1, 3, 3]",
        "with dilation=[1, 1], groups=1, output_padding=[0],",
        "padding=[0, 0], stride=[1, 1], transposed=False",
    ]


def test_the_nodes_of_every_operator_can_be_drawn_with_all_that_they_saved():
    drawn = 0
    for case in CASES:
        dtype = next((dtype for dtype in ("float64", "complex128") if dtype in case.dtypes), None)
        if not case.differentiable or dtype is None:
            continue
        args, kwargs = next(iter(calls(case, dtype, tracked)))
        results = trees.flatten(REGISTRY.find(f"aten::{case.op}")(*args, **kwargs))[0]
        results = [each for each in results if isinstance(each, turnout.Tensor) and each.requires_grad]
        if results:
            found = boxes(autograd.graph.draw(results))
            assert all(each.grad_fn is None or each.grad_fn.op_name in found["n0"][0] for each in results[:1]), case
            assert not any("=..." in row or "[..." in row for rows in found.values() for row in rows), case
            drawn += 1
    assert drawn > 600


def test_what_was_freed_or_changed_since_is_said():
    x, factor = leaf(2), turnout.ones(2)
    y = (x * factor).exp()
    loss = Square.apply(y).sum()
    factor.add_(1)
    assert boxes(autograd.graph.draw(loss))["n3"] == ["aten::mul.Tensor", "saved other: float32 [2], changed in place since"]
    factor = turnout.ones(2)
    y = (x * factor).exp()
    loss = Square.apply(y).sum()
    loss.backward()
    text = autograd.graph.draw(loss)
    assert [rows[1:] for name, rows in boxes(text).items() if name in ("n1", "n2", "n3")] == [
        ["autograd.Function", "saved tensors: freed"],
        ["saved result: freed"],
        ["saved other: freed"],
    ]
    result = x.exp()
    result.detach().add_(1)
    assert boxes(autograd.graph.draw(result))["n0"] == ["aten::exp", "saved result: float32 [2], changed in place since"]


def test_hooks_and_retained_gradients_are_counted():
    x = leaf(2)
    x.register_hook(lambda grad: grad)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    y = x.exp()
    ((accumulation, _index),) = y.grad_fn.next_functions
    accumulation.register_prehook(lambda grads: None)
    accumulation.register_hook(lambda inputs, outputs: None)
    y.register_hook(lambda grad: grad)
    y.register_hook(lambda grad: grad)
    y.grad_fn.register_prehook(lambda grads: None)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.retain_grad()
    found = boxes(autograd.graph.draw(y))
    assert found["n0"][2:] == ["hooks: 2 on the gradient of its result, 1 before, 1 after", "retains the gradient of its result"]
    assert found["n1"][2:] == ["hooks: 1 on its gradient, 1 before, 2 after accumulation"]


def test_a_write_into_a_view_shows_the_write_and_the_view():
    w = leaf(3, 4)
    base = w * 2
    row = base[1]
    row.mul_(w.sum())
    base[0, 1:3] = 1.0
    text = autograd.graph.draw([base, row], names={"base": base, "row": row})
    found = boxes(text)
    assert found["n0"] == [
        "CopySlices",
        "aten::fill.Scalar, into the view",
        "aten::select.int(0, 0)",
        "aten::slice.Tensor(0, 1, 3, 1)",
    ]
    assert found["n1"] == ["aten::select.int", "with self_shape=[3, 4], dim=0, index=1"]
    assert found["n2"] == [
        "CopySlices",
        "aten::mul.Tensor, into the view",
        "aten::select.int(0, 1)",
        "saved other: float32 []",
        "saved self: float32 [4]",
    ]
    assert arrows(text)[:2] == ["n2 -> n0", "n0 -> n1"]
    base.sum().backward()
    assert boxes(autograd.graph.draw(base))["n1"] == [
        "CopySlices",
        "a write that was freed, into the view",
        "aten::select.int(0, 1)",
    ]


def test_a_name_is_not_given_to_the_node_of_values_that_were_overwritten():
    base = leaf(3) * 2
    first = base[0]
    base.add_(1)
    assert "first" not in autograd.graph.draw(base, names={"first": first})


def test_functions_and_gradients_that_nobody_wrote_are_of_their_own_kind():
    x = leaf(2)
    with turnout.library.Library("drawing", "DEF") as library:
        library.define("mystery(Tensor x) -> Tensor")
        library.impl("mystery", lambda x: x.clone(), "CPU")
        text = autograd.graph.draw(turnout.ops.drawing.mystery(Square.apply(x)))
    assert boxes(text)["n0"] == ["drawing::mystery", "its gradient is not implemented"]
    saved = ["saved tensors[0]: float32 [2]", "saved tensors[1]: float32 [2]"]
    assert boxes(text)["n1"] == ["Square", "autograd.Function", *saved]
    (gradient,) = autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    assert boxes(autograd.graph.draw(gradient))["n0"] == ["Once", "a gradient that cannot be differentiated again"]


def test_inside_transforms_the_inputs_of_the_level_are_where_it_ends():
    seen = []

    def function(v):
        result = (v * 2).sum()
        seen.append(boxes(autograd.graph.draw(result, names={"v": v, "result": result})))
        return result

    turnout.func.grad(function)(turnout.ones(3))
    turnout.vmap(turnout.func.grad(function))(turnout.ones(2, 3))
    assert seen[0]["n2"] == seen[1]["n2"] == ["v = an input of a gradient transform"]
    assert seen[0]["out0"] == ["output result", "float32 [] on cpu"]
    assert seen[1]["out0"] == ["output result", "float32 [2] on cpu"]


def test_under_detect_anomaly_each_box_has_the_line_of_the_program():
    x = leaf(2, 3)
    with autograd.detect_anomaly():
        squared = Square.apply(x)
        loss = functional.cross_entropy(squared, turnout.tensor([0, 1]))
        rows = turnout.zeros(2)
        rows[0] = loss
    found = boxes(autograd.graph.draw(rows))
    lines = {rows[0]: rows[-1] for rows in found.values()}
    first = test_under_detect_anomaly_each_box_has_the_line_of_the_program.__code__.co_firstlineno
    here = "test_autograd_drawing.py"
    assert lines["Square"] == f"{here}:{first + 3}  squared = Square.apply(x)"
    of_loss = f"{here}:{first + 4}  loss = functional.cross_ent..."
    assert lines["aten::_log_softmax"] == lines["aten::nll_loss_forward"] == of_loss
    assert lines["CopySlices"] == f"{here}:{first + 6}  rows[0] = loss"


# ---- the limit


def test_a_chain_of_twenty_thousand_nodes_is_drawn_up_to_the_limit():
    y = start = leaf(1)
    for _ in range(20_000):
        y = y + 1
    text = autograd.graph.draw(y, limit=3)
    assert list(boxes(text)) == ["n0", "n1", "n2", "rest", "out0"]
    assert boxes(text)["rest"] == ["...", "19,997 nodes and 1 leaf more, beyond limit=3"]
    assert arrows(text) == ["n1 -> n0", "n2 -> n1", "rest -> n2", "n0 -> out0"]
    assert boxes(autograd.graph.draw(y))["rest"] == ["...", "19,700 nodes and 1 leaf more, beyond limit=300"]
    whole = autograd.graph.draw(y, limit=30_000, names={"start": start})
    assert "\n  n19999 -> n19998\n  n20000 -> n19999\n" in whole
    assert "<b>leaf start</b>" in whole
    assert "rest" not in boxes(whole)


def test_the_rest_is_one_box_with_one_arrow_to_each_box_it_leads_to():
    a, b = leaf(1), leaf(1)
    text = autograd.graph.draw([(a * b).exp(), a * b], limit=2)
    assert boxes(text)["rest"] == ["...", "1 node and 2 leaves more, beyond limit=2"]
    assert arrows(text) == ["rest -> n0", "rest -> n1", "n0 -> out0", "n1 -> out1"]
    text = autograd.graph.draw([a.exp(), b.exp()], limit=1)
    assert boxes(text)["rest"] == ["...", "1 node and 2 leaves more, beyond limit=1"]
    assert arrows(text) == ["rest -> n0", "n0 -> out0", "rest -> out1"]


# ---- SVG


def texts(image):
    """Every text of an SVG file, and how often it is there."""
    root = ElementTree.fromstring(image)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    found = root.iter("{http://www.w3.org/2000/svg}text")
    return Counter("".join(each.itertext()).replace("\N{NO-BREAK SPACE}", " ") for each in found)


def test_an_svg_is_well_formed_and_has_each_text_once():
    x, w = leaf(2), leaf()
    scaled = x * w
    loss = scaled.exp().sum()
    image = autograd.graph.draw(loss, names={"x": x, "w": w, "scaled": scaled, "loss": loss}, format="svg")
    assert texts(image) == Counter(
        [
            *("leaf x", "float32 [2] on cpu", "leaf w", "float32 [] on cpu", "float32 [] on cpu"),
            *("scaled = aten::mul.Tensor", "saved other: float32 []", "saved self: float32 [2]"),
            *("aten::exp", "saved result: float32 [2]", "aten::sum", "with self_shape=[2]", "output loss"),
        ]
    )
    assert image == autograd.graph.draw(loss, names={"x": x, "w": w, "scaled": scaled, "loss": loss}, format="svg")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ('<b>&amp;"]; }', 'leaf <b>&amp;"]; }'),
        ("weißß \N{GREEK SMALL LETTER ALPHA} \\n \\G", "leaf weißß \N{GREEK SMALL LETTER ALPHA} \\n \\G"),
        ("two\nlines\0\ud800", "leaf two\\nlines\\x00\\ud800"),
        ("long" * 100, f"leaf {'long' * 13}..."),
    ],
)
def test_any_name_is_shown_as_it_is(name, shown):
    x = leaf(2)
    found = texts(autograd.graph.draw(x * 2, names={name: x}, format="svg"))
    assert found[shown] == 1


def test_without_pygraphviz_svg_says_what_to_install_and_dot_needs_nothing(monkeypatch):
    # None in sys.modules is how Python marks a module that must not be imported.
    monkeypatch.setitem(__import__("sys").modules, "pygraphviz", None)
    y = leaf(2) * 2
    assert autograd.graph.draw(y).startswith("digraph")
    assert refused(autograd.DrawingError, lambda: autograd.graph.draw(y, format="svg")) == (
        'draw: the format "svg" needs pygraphviz, which is not installed\n'
        '  to fix  `pip install pygraphviz`; the format "dot" needs nothing'
    )


@pytest.mark.parametrize(
    ("failure", "said"), [("raise ValueError('a\\nb')", "b"), ("import os; os._exit(1)", "it did not say why")]
)
def test_when_graphviz_fails_the_error_says_what_it_said(monkeypatch, tmp_path, failure, said):
    (tmp_path / "pygraphviz.py").write_text(failure)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    text = refused(autograd.DrawingError, lambda: autograd.graph.draw(leaf(2) * 2, format="svg"))
    assert text == f"draw: Graphviz could not lay out the drawing: {said}"


# ---- errors


def test_what_cannot_be_drawn_is_refused():
    call, argument = turnout.errors.CallError, turnout.errors.ArgumentError
    x = leaf(2)
    untracked = (
        "draw: outputs[1] does not require a gradient and was not computed from a tensor that does\n"
        "  to fix  requires_grad=True on an input; nothing is recorded under turnout.no_grad()"
    )
    draw = autograd.graph.draw
    for kind, attempt, message in (
        (call, lambda: draw([]), "draw: no outputs were given"),
        (call, lambda: draw("x"), "draw: outputs must be a tensor, got str"),
        (call, lambda: draw([x, 3]), "draw: outputs[1] must be a tensor, got int"),
        (call, lambda: draw(x, names={"a": 1.0}), "draw: names['a'] must be a tensor, got float"),
        (argument, lambda: draw(x, format="png"), "draw: the format must be 'dot' or 'svg', got 'png'"),
        (argument, lambda: draw(x, limit=0), "draw: limit must be an integer above 0, got 0"),
        (autograd.GradientError, lambda: draw([x, x.detach()]), untracked),
    ):
        assert refused(kind, attempt) == message


def test_it_is_a_function_of_turnout_autograd():
    assert autograd.graph.draw is drawn_by
