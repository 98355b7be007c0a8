"""A gate's result as one self-contained page: the worst clips side by side, then every verdict.

It arranges; the looks are in `gate.html.j2` and, shared with the sweep's page, in `page.css`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, select_autoescape

from labkit.report.audio import SAMPLE_RATE, opus_uri, spectrogram_uri
from labkit.report.gate_markdown import cells
from labkit.report.gate_pictures import difference_uri, steps_svg
from labkit.report.gate_result import FAMILIES, Beside, GateResult, Line, headline


def gate_html(result: GateResult) -> str:
    """The page as text."""
    page = Environment(
        loader=PackageLoader("labkit.report", "."), autoescape=select_autoescape(default=True), trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("gate.html.j2")  # fmt: skip
    order = list(dict.fromkeys(line.recipe for line in result.sorted_lines()))
    recipes = sorted(result.by_recipe(), key=lambda pair: order.index(pair[0]))
    confidence = result.lines[0].verdict.confidence if result.lines else 0.99
    return page.render(
        result=result,
        made=f"{datetime.now():%Y-%m-%d %H:%M}",
        headline=headline(result),
        confidence=f"{100 * confidence:g} %",
        families=FAMILIES,
        marks={"fail": "✗", "pass": "✓", "inconclusive": "?", "not comparable": "–"},
        tables=[(_title(recipe, lines), _rows(lines)) for recipe, lines in recipes],
        arm=_rows(result.arm),
        clips=[_clip(clip) for clip in result.clips],
    )


def _title(recipe: str, lines: list[Line]) -> str:
    base = lines[0].base
    return recipe if base == recipe else f"{recipe}, held to {base} of the baseline"


def _rows(lines: Iterable[Line]) -> list[dict[str, str]]:
    rows = []
    for line in lines:
        _, tier, label, base, head, change, bound, limit, n, _ = cells(line)
        rows.append(
            {
                "tone": line.word.split()[0], "family": FAMILIES[line.family], "tier": tier, "label": label,
                "base": base, "head": head, "change": change, "bound": bound, "limit": limit, "n": n, "word": line.word,
                "why": "; ".join(line.verdict.reasons),
            }
        )  # fmt: skip
    return rows


def _clip(clip: Beside) -> dict[str, Any]:
    base, head = (np.nan_to_num(samples) for samples in (clip.base, clip.head))
    seconds = max(len(base), len(head)) / SAMPLE_RATE
    return {
        **{name: getattr(clip, name) for name in ("recipe", "item", "text", "family", "why", "base_name", "scores")},
        "base_s": f"{len(base) / SAMPLE_RATE:.1f}", "head_s": f"{len(head) / SAMPLE_RATE:.1f}",
        "base_audio": opus_uri(base), "head_audio": opus_uri(head),
        "base_picture": spectrogram_uri(base, seconds=seconds), "head_picture": spectrogram_uri(head, seconds=seconds),
        "difference": difference_uri(base, head),
        "free_audio": opus_uri(np.nan_to_num(clip.free)) if clip.free is not None and clip.free.size else "",
        "books": ", ".join(f"{value:.3f}" for value in clip.kl_books),
        "strip": steps_svg(clip.kl_steps) if clip.kl_steps else "",
    }  # fmt: skip
