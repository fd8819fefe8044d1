"""The attention viewer: what is drawn is what was given, for any pattern, and nothing is written to standard error."""

import io
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from autograder import plots
from autograder.plots import AttentionViewer, View, attention_figure, views

H, Tq, Tk, Dv = 2, 3, 5, 4
TOKENS = ["If", " the", " file", "\n", "$x$"]
FULL = ["pattern", "raw scores", "masked scores", "weights", "blended values"]


def view(tokens=TOKENS, seed=0) -> View:
    draw = np.random.default_rng(seed)
    mask = np.tri(Tq, Tk, Tk - Tq, dtype=bool)
    scores = draw.normal(size=(H, Tq, Tk))
    exponentials = np.exp(scores) * mask
    return View(tokens, exponentials / exponentials.sum(-1, keepdims=True), scores, mask, draw.normal(size=(H, Tk, Dv)))


def bare(seed=0) -> View:
    return View(TOKENS, view(seed=seed).pattern)  # two rows, drawn faster


def panel(figure, name, column=0):
    return [axes for axes in figure.axes if axes.get_label() == name][column]


def heights(axes):
    return [bar.get_height() for bar in axes.containers[0]]


def test_every_step_of_a_query_is_drawn():
    seen = view()
    figure = attention_figure(seen, head=1, query=0)
    assert [axes.get_label() for axes in figure.axes if axes.get_label() in FULL] == FULL
    assert np.array_equal(panel(figure, "pattern").images[0].get_array(), seen.pattern[1])
    assert heights(panel(figure, "raw scores")) == pytest.approx(seen.scores[1, 0])
    assert heights(panel(figure, "masked scores")) == pytest.approx(seen.scores[1, 0, :3])
    assert [text.get_text() for text in panel(figure, "masked scores").texts] == ["\N{MINUS SIGN}∞"] * 2
    assert heights(panel(figure, "weights")) == pytest.approx(seen.pattern[1, 0])
    blended = panel(figure, "blended values").images[0].get_array().data
    assert blended[:, -1] == pytest.approx((seen.pattern @ seen.v)[1, 0])
    assert blended[:, 2] == pytest.approx(seen.pattern[1, 0, 2] * seen.v[1, 2])
    assert panel(figure, "pattern").get_title() == "query 0: ·file"  # the first of the last three positions


def test_a_bare_pattern_is_enough_and_a_tensor_will_do():
    torch = pytest.importorskip("torch")
    pattern = torch.rand(H, 4, 3, dtype=torch.bfloat16, requires_grad=True)
    figure = attention_figure(View(["a", "b", "c"], pattern))
    assert [axes.get_label() for axes in figure.axes if axes.get_label() in FULL] == ["pattern", "weights"]
    assert panel(figure, "pattern").get_title() == "query 3: (3)"  # more queries than keys: they have numbers


def test_two_sentences_share_scales_and_differing_words_are_marked():
    figure = attention_figure(view(), view(["If", " the", " list", "\n", "$x$"], seed=1), query=1)
    for row in FULL:
        assert panel(figure, row, 0).get_ylim() == panel(figure, row, 1).get_ylim()
    labels = panel(figure, "pattern").get_xticklabels()
    assert [label.get_text() for label in labels] == ["If", "·the", "·file", "↵", "$x$"]
    assert [label.get_fontweight() == "bold" for label in labels] == [False, False, True, False, False]


def test_no_token_makes_matplotlib_warn(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attention_figure(view(["$x", "中", "\x00", "\ufffd", "_^{"])).savefig(io.BytesIO())
    assert capfd.readouterr().err == ""
    assert plots._visible("中") == "U+4E2D"


def test_a_long_text_is_drawn_with_fewer_labels():
    long = View([str(i) for i in range(200)], np.full((1, 200, 200), 1 / 200))
    assert len(panel(attention_figure(long), "weights").get_xticks()) == 40  # each fifth


def test_the_viewer_holds_a_picture_and_changes_it():
    pytest.importorskip("ipywidgets")
    viewer = AttentionViewer([bare(), bare(2)], layer=-1, head=1)
    assert (viewer.layer, viewer.head, viewer.query) == (1, 1, 2)
    widget = viewer.widget()
    layer, head, query = widget.children[0].children
    assert [len(slider.options) for slider in (layer, head, query)] == [2, H, Tq]
    before = bytes(widget.children[1].value)
    query.value = 0
    assert viewer.query == 0
    assert bytes(widget.children[1].value) != before


@pytest.fixture
def notebook(monkeypatch):
    """Let the viewer believe that it is shown in a notebook."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=True)))


def test_shown_outside_a_notebook():
    assert set(AttentionViewer(bare())._repr_mimebundle_()) == {"text/plain", "image/png"}


def test_in_a_notebook_the_widget_is_shown_and_the_picture_kept_for_print(request):
    pytest.importorskip("ipywidgets")
    request.getfixturevalue("notebook")
    shown = AttentionViewer(bare())._repr_mimebundle_()
    assert set(shown) == {"text/plain", "image/png", "application/vnd.jupyter.widget-view+json"}


def test_in_a_notebook_without_ipywidgets_it_is_a_picture(notebook, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert set(AttentionViewer(bare())._repr_mimebundle_()) == {"text/plain", "image/png"}


def test_what_the_model_recorded():
    torch = pytest.importorskip("torch")
    shapes = {"pattern": (2, H, Tk, Tk), "scores": (2, H, Tk, Tk), "v": (2, H, Tk, Dv)}
    record = {f"h.{layer}.attn.{name}": torch.rand(shape) for layer in range(3) for name, shape in shapes.items()}
    found = views(record, TOKENS, text=1)
    assert len(found) == 3 and np.array_equal(found[2].pattern, record["h.2.attn.pattern"][1])
    assert found[0].mask[0].tolist() == np.tri(Tk, dtype=bool).tolist()
    padding = torch.tensor([[[False, True, True, True, True]]])
    assert views(record, TOKENS, mask=padding)[0].mask.shape == (H, Tk, Tk)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: View(TOKENS, np.ones((1, 1, Tk, Tk))), r"pattern has the shape \(1, 1, 5, 5\): expected \(H, Tq, Tk\)"),
        (lambda: View(["a"], np.ones((1, 2, 3))), "1 tokens for a pattern with Tk = 3 keys"),
        (lambda: View(["a"], np.ones((1, 1, 1)), scores=np.ones((1, 1, 2))), r"scores have the shape \(1, 1, 2\)"),
        (lambda: View(["a"], np.ones((1, 1, 1)), v=np.ones((1, 2, 2))), r"v has the shape \(1, 2, 2\)"),
        (lambda: View(["a"], np.ones((1, 1, 1)), readers=["x", "y"]), "2 readers for a pattern with Tq = 1"),
        (lambda: attention_figure(view(), head=2), "head = 2: expected 0 to 1"),
        (lambda: attention_figure(view(), query=3), "query = 3: expected 0 to 2"),
        (lambda: attention_figure(), "0 sentences: expected one or two"),
        (lambda: AttentionViewer([view()], layer=1), "layer = 1: expected 0 to 0"),
        (lambda: AttentionViewer([view()], [view()] * 2), r"sentences with \[1, 2\] layers"),
        (lambda: views({}, TOKENS), "no pattern is recorded"),
    ],
)
def test_what_does_not_fit_is_named(make, complaint):
    with pytest.raises(ValueError, match=complaint):
        make()
