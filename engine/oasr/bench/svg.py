"""Two charts as inline SVG: a latency histogram and throughput by batch size.

Colours are the page's CSS variables, so that both follow a light or dark theme; every figure that a bar
shows is also in a table or in the bar's own title.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from oasr.bench.percentiles import Histogram, Spread, round_step
from oasr.bench.summary import figure

WIDTH, HEIGHT = 560, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 14, 44
_PLOT_W, _PLOT_H = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM


def histogram(latencies_s: Sequence[float], marks: Sequence[tuple[str, float]], name: str) -> str:
    """Rows by latency; `marks` are (label, seconds) lines across the chart, such as the percentiles."""
    bars = Histogram.of(latencies_s).bars
    low, high = bars[0][0], bars[-1][1]
    # Room above the highest bar for the names of the marks.
    top = _ceiling(1.35 * max(count for _, _, count in bars))

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * _PLOT_W

    parts = [
        *_y_axis(top, "rows"),
        *_x_labels([(x(at), f"{at:g}") for at in _ticks(low, high)], "latency, s"),
    ]
    for start, end, count in bars:
        height = count / top * _PLOT_H
        title = f"{start:g} to {end:g} s: {count} row{'' if count == 1 else 's'}"
        # A gap of one unit keeps neighbouring bars apart.
        parts.append(_bar((x(start) + 0.5, x(end) - x(start) - 1), height, title))
    for level, (label, value) in enumerate(marks):
        at = x(value)
        shift, anchor = (5, "start") if at < _LEFT + _PLOT_W / 2 else (-5, "end")
        parts.append(
            f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_TOP + _PLOT_H}"/>'
            f'<text class="mark" x="{at + shift:.1f}" y="{_TOP + 10 + 14 * level}" text-anchor="{anchor}">'
            f"{escape(label)}</text>"
        )
    told = ", ".join(f"{label} {figure(value)} s" for label, value in marks)
    return _chart(name, f"{len(latencies_s)} rows between {low:g} and {high:g} s; {told}", parts)


def throughput(runs: Sequence[tuple[int, Spread]], name: str) -> str:
    """A bar a batch size as high as its median RTFx, with a line from the least to the greatest."""
    top = _ceiling(1.12 * max(spread.max for _, spread in runs))
    step = _PLOT_W / len(runs)
    width = min(90.0, 0.6 * step)
    parts = _y_axis(top, "RTFx")
    labels = []
    for number, (size, spread) in enumerate(runs):
        middle = _LEFT + (number + 0.5) * step
        low, high = (_TOP + _PLOT_H * (1 - value / top) for value in (spread.min, spread.max))
        labels.append((middle, str(size)))
        least, median, greatest = map(figure, (spread.min, spread.median, spread.max))
        title = f"batch size {size}: RTFx {median} ({least}–{greatest})"
        parts.append(_bar((middle - width / 2, width), spread.median / top * _PLOT_H, title))
        parts.append(
            f'<path class="range" d="M{middle - 7:.1f} {high:.1f}h14M{middle:.1f} {high:.1f}V{low:.1f}'
            f'M{middle - 7:.1f} {low:.1f}h14"/>'
            f'<text class="value" x="{middle:.1f}" y="{high - 6:.1f}" text-anchor="middle">'
            f"{median}</text>"
        )
    parts += _x_labels(labels, "batch size")
    told = "; ".join(f"batch size {size}: {figure(spread.median)}" for size, spread in runs)
    return _chart(name, f"Median RTFx. {told}", parts)


def _chart(name: str, description: str, parts: Sequence[str]) -> str:
    # A name of its own for assistive technology; the parts inside would be read out one by one.
    label = escape(f"{name}. {description}", quote=True)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _bar(span: tuple[float, float], height: float, title: str) -> str:
    left, width = span
    return (
        f'<rect class="bar" x="{left:.1f}" y="{_TOP + _PLOT_H - height:.1f}" width="{max(width, 0.5):.1f}" '
        f'height="{height:.1f}"><title>{escape(title)}</title></rect>'
    )


def _y_axis(top: float, unit: str) -> list[str]:
    parts = []
    for value in _ticks(0, top):
        y = _TOP + _PLOT_H * (1 - value / top)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    middle = _TOP + _PLOT_H / 2
    parts.append(
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">'
        f"{escape(unit)}</text>"
    )
    return parts


def _x_labels(labels: Sequence[tuple[float, str]], unit: str) -> list[str]:
    y = _TOP + _PLOT_H + 17
    parts = [f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{escape(text)}</text>' for x, text in labels]
    middle = _LEFT + _PLOT_W / 2
    return [*parts, f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(unit)}</text>']


def _ceiling(value: float) -> float:
    """The top of an axis that holds `value`: four or more ticks of a round step."""
    # Of a list that failed whole every RTFx is 0, and an axis has to have a length.
    value = value or 1.0
    step = round_step(value / 5)
    return step * -(-value // step)


def _ticks(low: float, high: float) -> list[float]:
    """Round values within [low, high], at most seven."""
    step = round_step((high - low) / 6)
    first = -(-low // step)
    # A tick that lies on the edge is kept, rounding or not.
    count = int((high - first * step) / step + 1e-9) + 1
    return [round((first + i) * step, 10) for i in range(count)]
