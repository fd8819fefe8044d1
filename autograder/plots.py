"""Draw where attention reads: the pattern of a head, and one reader's row of it step by step.

    view = View(tokens, pattern)                                    any (H, Tq, Tk) pattern; scores, mask and v if you have them
    attention_figure(view, head=2, query=5)                         one figure, for print
    attention_figure(view, other, head=2, query=5)                  two sentences side by side
    AttentionViewer(views(record, tokens), layer=3, head=1)         pick layer, head and query; last in a cell, it shows itself

Arrays may be tensors or anything NumPy reads. A viewer is interactive where ipywidgets is installed, and carries the
picture of its first choice in any case, so that a printed notebook shows it too.
"""

import base64
import importlib.util
import io
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

BAR, DIFFERENT, MASKED = "#3b6ea5", "#c1440e", "#d9d9d9"
VISIBLE = {" ": "·", "\n": "↵", "\t": "→", "\r": "←"}
LABELLED = 48  # more keys than this, and only every n-th carries its token


@dataclass
class View:
    """One sentence, as the heads of one layer read it. Without `readers` the queries are the last Tq of the Tk positions.

    tokens   Tk texts                   scores  (H,Tq,Tk), scaled, before any mask
    pattern  (H,Tq,Tk)                  mask    broadcasts to (H,Tq,Tk), True = may attend
    readers  Tq texts, one a query      v       (H,Tk,Dv)
    """

    tokens: list[str]
    pattern: Any
    scores: Any = None
    mask: Any = None
    v: Any = None
    readers: list[str] | None = None

    def __post_init__(self) -> None:
        self.pattern = _array(self.pattern)
        if self.pattern.ndim != 3:
            raise ValueError(f"pattern has the shape {self.pattern.shape}: expected (H, Tq, Tk), the heads of one sentence")
        H, Tq, Tk = self.pattern.shape
        if len(self.tokens) != Tk:
            raise ValueError(f"{len(self.tokens)} tokens for a pattern with Tk = {Tk} keys: expected one a key")
        if self.readers is None:
            self.readers = [f"({i})" for i in range(Tq)] if Tq > Tk else list(self.tokens[Tk - Tq :])
        if len(self.readers) != Tq:
            raise ValueError(f"{len(self.readers)} readers for a pattern with Tq = {Tq} queries: expected one a query")
        if self.scores is not None:
            self.scores = _array(self.scores)
            if self.scores.shape != self.pattern.shape:
                raise ValueError(f"scores have the shape {self.scores.shape}: expected the pattern's, {self.pattern.shape}")
        if self.mask is not None:
            self.mask = np.broadcast_to(_array(self.mask), self.pattern.shape).astype(bool)
        if self.v is not None:
            self.v = _array(self.v)
            if self.v.ndim != 3 or self.v.shape[:2] != (H, Tk):
                raise ValueError(f"v has the shape {self.v.shape}: expected (H, Tk, Dv) with H = {H} and Tk = {Tk}")


def views(record: dict[str, Any], tokens: list[str], mask: Any = None, text: int = 0) -> list[View]:
    """A view for each layer, from what the model recorded about one text of the batch. Without `mask` it is the causal one."""
    found = []
    while (name := f"h.{len(found)}.attn") + ".pattern" in record:
        pattern, scores, v = (record[f"{name}.{tensor}"][text] for tensor in ("pattern", "scores", "v"))
        causal = np.tri(*pattern.shape[-2:], pattern.shape[-1] - pattern.shape[-2], dtype=bool)
        found.append(View(tokens, pattern, scores, causal if mask is None else mask, v))
    if not found:
        raise ValueError(f"no pattern is recorded: expected h.0.attn.pattern among {sorted(record)[:5]} ...")
    return found


def attention_figure(*sentences: View, head: int = 0, query: int = -1, title: str = "") -> Figure:
    """Draw one head's pattern and, below, how one query arrives at what it reads; a second sentence stands beside the first.

    From top to bottom: pattern, raw scores, masked scores, weights, blended values (each value times its weight, and their
    sum z). What a view does not hold is left out. Where two sentences differ in three words or fewer, these are marked.
    """
    if not 1 <= len(sentences) <= 2:
        raise ValueError(f"{len(sentences)} sentences: expected one or two views")
    for view in sentences:
        H, Tq, _ = view.pattern.shape
        if not -H <= head < H:
            raise ValueError(f"head = {head}: expected 0 to {H - 1}")
        if not -Tq <= query < Tq:
            raise ValueError(f"query = {query}: expected 0 to {Tq - 1}")
    rows = _rows(sentences)
    heights = [{"pattern": 2.9, "blended values": 1.5}.get(row, 0.95) for row in rows]
    figure = Figure(figsize=(4.8 if len(sentences) == 1 else 7.8, sum(heights) + 1.6), dpi=100, layout="constrained")
    grid = figure.subplots(len(rows), len(sentences), squeeze=False, height_ratios=heights)
    for column, view in enumerate(sentences):
        strip = _Strip(view, head, query, _different(sentences), wide="blended values" in rows)
        for row, axes in zip(rows, grid[:, column], strict=True):
            axes.set_label(row)
            axes.set_xticks([])
            strip.draw(row, axes)
        for place in (0, -1):
            strip.name_keys(grid[place, column], total=rows[place] == "blended values")
        grid[0, column].set_title(strip.reader, fontsize=9, parse_math=False)
    for row, line in zip(rows, grid, strict=True):
        _align(figure, row, list(line))
    _share_height([axes for row, line in zip(rows, grid, strict=True) if row.endswith("scores") for axes in line])
    figure.suptitle(title or f"head {head}", fontsize=10)
    return figure


class AttentionViewer:
    """Attention of one sentence, or of two side by side, in any layer and head, for any query.

    Each sentence is a list of views, one a layer (a single view will do). As the last line of a cell it shows itself.
    """

    def __init__(self, *sentences: View | list[View], layer: int = 0, head: int = 0, query: int = -1):
        self.sentences = [[sentence] if isinstance(sentence, View) else list(sentence) for sentence in sentences]
        depths = {len(sentence) for sentence in self.sentences}
        if len(depths) != 1 or 0 in depths:
            raise ValueError(f"sentences with {sorted(depths)} layers: expected one or two sentences with equally many")
        n_layer = depths.pop()
        if not -n_layer <= layer < n_layer:
            raise ValueError(f"layer = {layer}: expected 0 to {n_layer - 1}")
        self.layer, self.head = layer % n_layer, head
        queries = min(len(sentence[0].readers) for sentence in self.sentences)
        self.query = query + queries if query < 0 else query
        self.figure()  # an impossible choice is refused here, not when the cell is shown

    def figure(self) -> Figure:
        """The picture of the present choice."""
        title = f"layer {self.layer}, head {self.head}"
        chosen = [sentence[self.layer] for sentence in self.sentences]
        return attention_figure(*chosen, head=self.head, query=self.query, title=title)

    def png(self) -> bytes:
        return _png(self.figure())

    def widget(self):
        """The sliders above the picture. Raises ImportError where ipywidgets is not installed."""
        import ipywidgets

        first = self.sentences[0]
        queries = min(len(sentence[0].readers) for sentence in self.sentences)
        picture = ipywidgets.Image(value=self.png(), format="png")

        def slider(name: str, options: list[tuple[str, int]]):
            made = ipywidgets.SelectionSlider(options=options, value=getattr(self, name), description=name)
            made.continuous_update = False

            def chosen(change) -> None:
                setattr(self, name, change["new"])
                picture.value = self.png()

            made.observe(chosen, names="value")
            return made

        choices = {
            "layer": [(str(layer), layer) for layer in range(len(first))],
            "head": [(str(head), head) for head in range(first[0].pattern.shape[0])],
            "query": [(f"{query} {_visible(first[0].readers[query])}", query) for query in range(queries)],
        }
        return ipywidgets.VBox([ipywidgets.HBox([slider(name, options) for name, options in choices.items()]), picture])

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        bundle = {"text/plain": f"attention, layer {self.layer}, head {self.head}, query {self.query}"}
        bundle["image/png"] = base64.b64encode(self.png()).decode()
        if _interactive():
            bundle = {**self.widget()._repr_mimebundle_(), **bundle}
        return bundle


def _interactive() -> bool:
    """Whether this is a notebook with ipywidgets installed."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel") and importlib.util.find_spec("ipywidgets") is not None


class _Strip:
    """Draws the rows of one sentence's column."""

    def __init__(self, view: View, head: int, query: int, different: list[int], wide: bool):
        self.view, self.head, self.different = view, head, different
        self.query = query % len(view.readers)
        self.n_key = len(view.tokens)
        self.keys = np.arange(self.n_key)
        self.right = self.n_key + (1.5 if wide else -0.5)  # two columns more where the sum of the values stands
        self.reader = f"query {self.query}: {_visible(view.readers[self.query])}"

    def draw(self, row: str, axes: Axes) -> None:
        {
            "pattern": self._pattern,
            "raw scores": self._raw_scores,
            "masked scores": self._masked_scores,
            "weights": self._weights,
            "blended values": self._blended,
        }[row](axes)
        axes.set_xlim(-0.5, self.right)
        axes.tick_params(labelsize=7, length=2)

    def _row(self, tensor: np.ndarray) -> np.ndarray:
        return tensor[self.head, self.query]

    def _pattern(self, axes: Axes) -> None:
        pattern = self.view.pattern[self.head]
        axes.imshow(pattern, cmap="Blues", vmin=0, vmax=max(float(pattern.max()), 1e-9), aspect="auto", interpolation="nearest")
        axes.add_patch(Rectangle((-0.5, self.query - 0.5), self.n_key, 1, fill=False, edgecolor=DIFFERENT, linewidth=1.5))
        step = -(-len(self.view.readers) // (LABELLED // 2))
        readers = list(range(0, len(self.view.readers), step))
        axes.set_yticks(readers, [_visible(self.view.readers[i]) for i in readers], parse_math=False)
        axes.set_ylim(len(self.view.readers) - 0.5, -0.5)

    def _raw_scores(self, axes: Axes) -> None:
        axes.bar(self.keys, self._row(self.view.scores), color=BAR)
        axes.axhline(0, color="black", linewidth=0.5)

    def _masked_scores(self, axes: Axes) -> None:
        allowed = self._row(self.view.mask)
        axes.bar(self.keys[allowed], self._row(self.view.scores)[allowed], color=BAR)
        axes.axhline(0, color="black", linewidth=0.5)
        for key in self.keys[~allowed]:
            axes.axvspan(key - 0.5, key + 0.5, facecolor=MASKED, edgecolor="none")
            axes.text(key, 0.85, "\N{MINUS SIGN}∞", ha="center", va="center", fontsize=7, transform=axes.get_xaxis_transform())

    def _weights(self, axes: Axes) -> None:
        weights = self._row(self.view.pattern)
        axes.bar(self.keys, weights, color=BAR)
        if self.n_key <= 16:
            for key in self.keys[weights >= 0.05]:
                axes.text(key, weights[key], f"{weights[key]:.2f}".lstrip("0"), ha="center", va="bottom", fontsize=7)

    def _blended(self, axes: Axes) -> None:
        blended = self._row(self.view.pattern)[:, None] * self.view.v[self.head]  # (Tk,Dv)
        drawn = np.full((blended.shape[1], self.n_key + 2), np.nan)
        drawn[:, : self.n_key], drawn[:, -1] = blended.T, blended.sum(0)
        axes.imshow(drawn, cmap="RdBu_r", aspect="auto", interpolation="nearest")

    def name_keys(self, axes: Axes, total: bool = False) -> None:
        """The tokens below; those in which the sentences differ are marked."""
        step = -(-self.n_key // LABELLED)
        places = list(range(0, self.n_key, step))
        names = [_visible(self.view.tokens[place]) for place in places]
        if total:
            places, names = [*places, self.n_key + 1], [*names, "sum = z"]
        axes.set_xticks(places, names, rotation=90, fontsize=7, parse_math=False)
        for place, label in zip(places, axes.get_xticklabels(), strict=True):
            if place in self.different:
                label.set(color=DIFFERENT, fontweight="bold")


NAMES = {
    "pattern": "query (who reads)",
    "raw scores": "raw score\n(no unit)",
    "masked scores": "masked\n(no unit)",
    "weights": "weight\n(share of 1)",
    "blended values": "weight x value\n(channel of v)",
}


def _rows(sentences: tuple[View, ...]) -> list[str]:
    """What all sentences have."""
    held = {
        "pattern": True,
        "raw scores": all(view.scores is not None for view in sentences),
        "masked scores": all(view.scores is not None and view.mask is not None for view in sentences),
        "weights": True,
        "blended values": all(view.v is not None for view in sentences),
    }
    return [row for row in NAMES if held[row]]


def _align(figure: Figure, row: str, line: list[Axes]) -> None:
    """The same scale for both sentences; names and ticks once."""
    line[0].set_ylabel(NAMES[row], fontsize=7)
    if row in ("pattern", "blended values"):
        largest = max(float(np.nanmax(np.abs(axes.images[0].get_array().filled(0)))) for axes in line) or 1e-9
        for axes in line:
            axes.images[0].set_clim(0 if row == "pattern" else -largest, largest)
        bar = figure.colorbar(line[0].images[0], ax=line, pad=0.02, fraction=0.05)
        bar.ax.tick_params(labelsize=7)
        bar.set_label("weight (share of 1)" if row == "pattern" else "weight x value", fontsize=7)
    elif row == "weights":
        _share_height(line, room=1.15)  # for the numbers on the bars


def _share_height(line: list[Axes], room: float = 1.0) -> None:
    if line:
        lows, highs = zip(*(axes.get_ylim() for axes in line), strict=True)
        for axes in line:
            axes.set_ylim(min(lows), max(highs) * room)


def _different(sentences: tuple[View, ...]) -> list[int]:
    texts = [view.tokens for view in sentences]
    if len(texts) < 2 or len(texts[0]) != len(texts[1]):
        return []
    places = [place for place, (one, other) in enumerate(zip(*texts, strict=True)) if one != other]
    return places if len(places) <= 3 else []


def _array(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):  # a tensor: from any device, of any dtype
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() else value
    return np.asarray(value)


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


@cache
def _drawable() -> frozenset[int]:
    """The characters that matplotlib's font can draw; for any other it would warn, on standard error."""
    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    return frozenset(font.get_charmap())


def _visible(token: str) -> str:
    """A token as a label: blanks made visible, what the font lacks by its number."""
    shown = "".join(VISIBLE.get(letter, letter) for letter in token)
    return "".join(letter if letter.isprintable() and ord(letter) in _drawable() else f"U+{ord(letter):04X}" for letter in shown)
