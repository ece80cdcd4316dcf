"""The HTML report: self-contained, well-formed, and showing what was measured."""

import re
from html.parser import HTMLParser

import pytest
from helpers.bench_reports import make_report, measured
from oasr.bench import page
from oasr.errors import OptionsError

VOID = {"meta", "line", "path", "rect"}


class Outline(HTMLParser):
    """Tags in order, checked for nesting; the texts of table cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cells, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], "unclosed tags"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.fixture
def report():
    return make_report(measured(batch_size=1), measured((1.0, 1.2, 1.1), batch_size=8))


def test_the_page_is_whole_and_well_formed(report):
    outline = Outline(page.render(report))
    assert outline.tags.count("svg") == 3  # throughput, and a histogram a batch size
    assert "12.0 (10.9–13.3)" in outline.cells and "21.8 (20.0–24.0)" in outline.cells
    assert "environment: commit" in outline.cells and "a" * 64 in outline.cells


def test_nothing_is_loaded_from_elsewhere(report):
    text = page.render(report)
    outline = Outline(text)
    assert not {"script", "img", "link", "iframe", "object", "base", "form"} & set(outline.tags)
    assert not [a for a in outline.attributes if a[1] in ("src", "href", "srcset", "action")]
    assert not re.search(r"url\(|@import|@font-face", text)
    addresses = set(re.findall(r"[a-z]+://[^\"' ]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address that is fetched


def test_what_a_reader_cannot_see_is_said(report):
    outline = Outline(page.render(report))
    labels = [value for tag, name, value in outline.attributes if (tag, name) == ("svg", "aria-label")]
    assert labels[0].startswith("RTFx. Median RTFx. batch size 1: 12.0; batch size 8: 21.8")
    assert "p50" in labels[1] and "batch size 1" in labels[1]
    assert [v for t, n, v in outline.attributes if (t, n) == ("svg", "role")] == ["img"] * 3
    assert ("html", "lang", "en") in outline.attributes
    assert {v for t, n, v in outline.attributes if (t, n) == ("th", "scope")} == {"col", "row", "rowgroup"}
    assert outline.tags.count("caption") == outline.tags.count("table") == 2


def test_both_themes_keep_text_readable():
    text = page.render(make_report())
    light, dark = re.findall(r":root \{(.*?)\}", text, flags=re.DOTALL)
    assert "prefers-color-scheme: dark" in text and "color-scheme: light dark" in light
    for theme in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", theme))
        pairs = [("ink", "paper"), ("soft", "paper"), ("mark", "paper"), ("ink", "warn")]
        assert min(contrast(colours[a], colours[b]) for a, b in pairs) >= 4.5  # WCAG 2.1, 1.4.3
        assert contrast(colours["bar"], colours["paper"]) >= 3  # 1.4.11


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours as WCAG 2.1 defines it."""

    def luminance(colour):
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_text_of_others_is_text(report):
    report["command"] = "oasr bench '<script>alert(1)</script>.jsonl' & \"x\""
    report["model"]["name"] = "<b>m</b>"
    outline = Outline(page.render(report))
    assert "script" not in outline.tags and "b" not in outline.tags


def test_bars_are_as_high_as_their_counts(report):
    text = page.render(report)
    latency = text[text.index("Latency of a row, batch size 1</figcaption>") :].partition("</svg>")[0]
    bars = re.findall(r'height="([\d.]+)"><title>[\d.]+ to [\d.]+ s: (\d+) row', latency)
    assert sum(int(count) for _, count in bars) == 24
    scales = {round(float(height) / int(count), 1) for height, count in bars if int(count)}
    assert len(scales) == 1


def test_every_mark_stays_inside_its_chart(report):
    for chart in re.findall(r"<svg.*?</svg>", page.render(report), flags=re.DOTALL):
        assert "nan" not in chart and "inf" not in chart
        xs = [float(x) for x in re.findall(r'\b(?:x|x1|x2)="([-\d.]+)"', chart)]
        ys = [float(y) for y in re.findall(r'\b(?:y|y1|y2)="([-\d.]+)"', chart)]
        assert min(xs) >= 0 and max(xs) <= 560 and min(ys) >= 0 and max(ys) <= 260


def test_a_page_replaces_a_page_and_nothing_else(report, tmp_path):
    path = tmp_path / "report.html"
    page.check(path)
    page.write(path, report)
    page.check(path)
    page.write(path, make_report())
    assert path.read_text("utf-8") == page.render(make_report())
    other = tmp_path / "list.jsonl"
    other.write_text('{"audio": "a.wav"}\n')
    for wrong, words in (
        (other, "no page"),
        (tmp_path, "ordinary file"),
        (tmp_path / "x" / "y", "no such folder"),
    ):
        with pytest.raises(OptionsError, match=words):
            page.check(wrong)


def test_a_report_without_latencies_still_makes_a_page():
    empty = make_report(measured(passes=(measured().passes[0],)))
    for one in (empty["runs"][0], *empty["runs"][0]["passes"]):
        one["latency_s"] = None
    assert Outline(page.render(empty)).tags.count("svg") == 1
