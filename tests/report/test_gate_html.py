from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from labkit.report.gate_html import gate_html
from labkit.report.gate_pictures import difference_uri, steps_svg
from tests.report.gate_factory import gate_result


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(html)
    return parser.found


def test_the_page_fetches_nothing_and_plays_every_clip() -> None:
    html = gate_html(gate_result(damage=0.05))
    sources = [str(about["src"]) for tag, about in tags(html) if "src" in about]
    assert sources and all(source.startswith("data:") for source in sources)
    assert not re.search(r"https?://", html.replace("http://www.w3.org", ""))
    assert sum(tag == "audio" for tag, _ in tags(html)) == 3
    assert "by codebook 0.050, 0.060, 0.010, 0.080" in html
    assert sum(tag == "img" for tag, _ in tags(html)) == 3 and "<rect" in html


def test_a_sentence_shows_each_of_its_scores_before_and_now() -> None:
    result = gate_result(damage=0.05)
    html = gate_html(result)
    shown = re.findall(r"<dt>([^<]*)</dt><dd><small>([^<]*) →</small> ([^<]*)</dd>", html)
    assert shown == [score for clip in result.clips for score in clip.scores]


def test_the_failed_recipe_stands_first_and_text_is_escaped() -> None:
    html = gate_html(gate_result(damage=0.05))
    captions = re.findall(r"<caption>(.*?)</caption>", html)
    assert captions == ["hurt", "ort-fp32"]
    assert "&lt;one&gt;" in html and "<one>" not in html
    assert html.count('<tr class="fail">') == sum(
        line.verdict.outcome == "fail" for line in gate_result(damage=0.05).lines
    )


def test_a_gate_without_clips_or_lines_has_a_page_too() -> None:
    empty = replace(gate_result(clips=False), lines=())
    assert "Hear it" not in gate_html(empty) and "What was compared" in gate_html(empty)


def test_equal_clips_differ_nowhere_and_louder_ones_are_red() -> None:
    from base64 import b64decode
    from io import BytesIO

    from PIL import Image

    def pixels(uri: str) -> np.ndarray:
        return np.asarray(Image.open(BytesIO(b64decode(uri.partition(",")[2]))).convert("RGB")).astype(int)

    tone = (0.1 * np.sin(2 * np.pi * 1000 * np.arange(24000) / 24000)).astype(np.float32)
    equal, louder = pixels(difference_uri(tone, tone)), pixels(difference_uri(tone, 4 * tone))
    assert equal.min() > 235  # white, but for the picture's compression
    red = louder[..., 0] - louder[..., 2]
    assert red.max() > 80 and red.min() > -40


def test_a_strip_has_a_bar_where_tokens_differ() -> None:
    svg = steps_svg([0.0, 0.25, 3.0])
    assert svg.count("<rect") == 2 and 'viewBox="0 0 3 28"' in svg
