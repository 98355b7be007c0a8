"""One self-contained HTML page about recorded runs: nothing is fetched, it can be mailed or attached to a CI job.

It arranges what the rest of this package makes. The page's looks are in `page.html.j2` beside this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape

from labkit.errors import StoreError, UserError
from labkit.report import plots
from labkit.report.audio import SAMPLE_RATE, opus_uri, read_clip, spectrogram_uri
from labkit.report.noise import caution
from labkit.report.opinions import ballots
from labkit.report.said import texts_said
from labkit.report.style import recipe_colours, svg
from labkit.report.summary import Group, Line, Summary, headline, quality_group, speed_group, summarize
from labkit.results.frames import long_frame
from labkit.results.schema import RunDocument
from labkit.results.store import Store, write_atomic
from labkit.results.units import METRICS, base_name, format_value

MAX_TEXTS = 8  # per table: a page of hundreds of players is listened to by nobody
TILES = (
    ("Fastest", "rtf_p50", min),
    ("Smallest on disk", "size_on_disk_bytes", min),
    ("Least memory", "rss_peak_bytes", min),
    ("Best P808 score", "dnsmos_p808_mean", max),
)


@dataclass(frozen=True)
class Take:
    """One clip on the page, or why there is none."""

    recipe: str
    colour: str
    audio: str = ""
    picture: str = ""
    seconds: float = 0.0
    scores: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Shelf:
    """One text said by every recipe of a group."""

    item: str
    text: str
    takes: tuple[Take, ...]


def build_report(
    store: Store, *, sweep: str | None = None, out: Path | None = None, baseline: str | None = None
) -> Path:
    """Write the page about a sweep (or about all runs) and return its path.

    `out` defaults to `<store>/reports/<sweep>.html`. `baseline` defaults to the sweep's own, then to torch-fp32.
    Raises `UserError` when there is no run to report on or none of that baseline, `StoreError` when the page cannot
    be written.
    """
    documents, damaged = store.scan()
    documents = [document for document in documents if sweep is None or document.sweep == sweep]
    if not documents:
        known = sorted({d.sweep for d in store.scan()[0] if d.sweep})
        raise UserError(
            f"no runs of sweep {sweep!r} are in {store.folder}; recorded sweeps: {', '.join(known) or 'none'}."
            if sweep
            else f"no runs are in {store.folder}; `labkit sweep sweeps/demo.yaml` makes some."
        )
    recipes = sorted({document.spec.recipe.name for document in documents})
    if baseline is not None and baseline not in recipes:
        raise UserError(f"baseline {baseline!r} has no run here; recipes with one: {', '.join(recipes)}.")
    asked = store.read_sweep(sweep) if sweep else None
    summary = summarize(documents, baseline=baseline or (asked.baseline if asked else None))
    html = render(store, summary, title=sweep or "all runs", about=asked.description if asked else "",
                  damaged=[item.reason for item in damaged])  # fmt: skip
    target = out or store.folder / "reports" / f"{sweep or 'all'}.html"
    try:
        write_atomic(target, html.encode())
    except OSError as error:
        raise StoreError(
            f"the report {target} cannot be written ({error}); choose another file with --out."
        ) from error
    return target


def render(
    store: Store, summary: Summary, *, title: str, about: str = "", damaged: Sequence[str] = ()
) -> str:
    """The page as text."""
    colours = recipe_colours(line.recipe for line in summary.lines)
    newest = max((line.document for line in summary.lines), key=lambda document: document.run_id)
    heard, unseen = ballots(store, {line.document.run_id for line in summary.lines}, colours)
    page = Environment(
        loader=PackageLoader("labkit.report", "."), autoescape=select_autoescape(default=True), trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("page.html.j2")  # fmt: skip
    return page.render(
        title=title,
        about=about,
        made=f"{datetime.now():%Y-%m-%d %H:%M}",
        headline=headline(summary),
        caution=caution(line.document for line in summary.lines),
        summary=summary,
        colours=colours,
        tiles=list(_tiles(summary)),
        figures=list(_figures(summary, colours)),
        ballots=heard,
        unseen_votes=unseen,
        shelves=[(group, _shelves(store, group, colours)) for group in _heard_first(summary)],
        troubles=[line for line in summary.lines if line.document.failure],
        damaged=damaged,
        environment=list(_flat(newest.environment)),
        notes=list(dict.fromkeys(note for line in summary.lines for note in line.document.notes)),
        machines=sorted({line.document.machine_class for line in summary.lines}),
        glossary=[METRICS[name] for column in summary.columns if (name := base_name(column)) in METRICS],
    )


def _tiles(summary: Summary) -> Iterator[dict[str, str]]:
    """The best recipe by each measure, with the baseline's number beside it."""
    for label, column, best in TILES:
        group = quality_group(summary) if column.endswith("_mean") else speed_group(summary)
        lines = [line for line in (group.ok if group else ()) if line.number(column) is not None]
        if len(lines) < 2:
            continue
        winner = best(lines, key=lambda line: line.number(column) or 0.0)
        base = next((line for line in lines if line.recipe == summary.baseline and line is not winner), None)
        yield {
            "label": label,
            "value": ("RTF " if column == "rtf_p50" else "") + format_value(column, winner.number(column)),
            "recipe": winner.recipe,
            "beside": f"{summary.baseline}: {format_value(column, base.number(column))}" if base else "",
        }


def _figures(summary: Summary, colours: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Inline pictures with the words a screen reader gets."""
    quality, speed = quality_group(summary), speed_group(summary)
    if quality:
        long = long_frame(line.document for line in quality.ok)
        figure = plots.quality_speed(quality.wide, long, colours=colours)
        if figure:
            yield {
                "svg": svg(figure),
                "caption": f"{quality.title}: each point is a recipe; bars are 95 % intervals over texts; the dashed "
                "line joins the recipes that no other beats in both.",
            }
    if speed:
        figure = plots.stage_bars(long_frame(line.document for line in speed.ok))
        if figure:
            yield {
                "svg": svg(figure),
                "caption": f"{speed.title}: measured samples only, warm-ups apart.",
            }
        figure = plots.size_bars(speed.wide, colours=colours)
        if figure:
            yield {
                "svg": svg(figure),
                "caption": "Files the stages load, and the peak of the run's process tree.",
            }


def _heard_first(summary: Summary) -> list[Group]:
    """Groups with kept audio, free-running clips first."""
    groups = [
        g for g in summary.groups if any(sample.audio for line in g.lines for sample in line.document.samples)
    ]
    return sorted(groups, key=lambda group: group.scenario != "single")


def _shelves(store: Store, group: Group, colours: Mapping[str, str]) -> list[Shelf]:
    """Texts in order of the corpus, each with one clip per recipe (the first kept repetition)."""
    texts = texts_said(group.lines[0].document)
    items = list(dict.fromkeys(s.item for line in group.lines for s in line.document.samples if s.audio))
    return [
        Shelf(item, texts.get(item, item), _takes(store, group.lines, item, colours))
        for item in items[:MAX_TEXTS]
    ]


def _takes(store: Store, lines: Sequence[Line], item: str, colours: Mapping[str, str]) -> tuple[Take, ...]:
    """One clip of each recipe that spoke; the ones that did not are told about elsewhere on the page."""
    lines = [line for line in lines if line.document.samples]
    clips = {line.recipe: _clip(store, line.document, item) for line in lines}
    longest = max(
        (len(clip) / SAMPLE_RATE for clip in clips.values() if not isinstance(clip, str)), default=0.0
    )
    takes = []
    for line in lines:
        clip, colour = clips[line.recipe], colours[line.recipe]
        if isinstance(clip, str):
            takes.append(Take(line.recipe, colour, reason=clip))
            continue
        takes.append(
            Take(
                line.recipe, colour, opus_uri(clip), spectrogram_uri(clip, seconds=longest), len(clip) / SAMPLE_RATE,
                _scores(line.document, item),
            )
        )  # fmt: skip
    return tuple(takes)


def _clip(store: Store, document: RunDocument, item: str) -> Any:
    """Samples of the first kept clip of a text, or the reason why there are none."""
    name = next((sample.audio for sample in document.samples if sample.item == item and sample.audio), None)
    if name is None:
        return "no audio was kept for this text"
    try:
        return read_clip(store.audio_file(document.run_id, name))
    except Exception as error:  # soundfile raises its own RuntimeErrors; a lost clip must not lose the page
        return f"the clip {name} cannot be read: {error}"


def _scores(document: RunDocument, item: str) -> str:
    """The headline scores of a clip in one line, what a transcript heard, and anything odd that was found in it."""
    scores = {score.metric: score for score in document.quality if score.item == item}
    words = []
    for name in ("dnsmos_p808", "wer", "log_mel_db"):
        if name in scores and scores[name].value is not None:
            remark = f" ({scores[name].reason})" if scores[name].reason else ""
            words.append(f"{METRICS[name].label} {format_value(name, scores[name].value)}{remark}")
    kept = [sample for sample in document.samples if sample.item == item and sample.audio]
    return " · ".join([*words, *dict.fromkeys(flag for sample in kept for flag in sample.flags)])


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{label} · ")
        elif name.endswith("_bytes") and isinstance(value, int | float):
            yield label.removesuffix(" bytes"), format_value(name, value)
        elif value not in (None, "", [], ()):
            yield label, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
