"""The figures of `bench peers` as ordinary run documents, one for each recipe, race and number of threads.

What a race does stands in the place of the corpus, and each round is a repetition. llama.cpp is no recipe of the lab:
it has no document, and its figures are in the file that the command writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from labkit.bench.own import BASE
from labkit.bench.peers import SOUND, TITLES, two_threads
from labkit.results.schema import Failure, Measures, RunDocument, Sample
from labkit.results.store import new_run_id
from labkit.spec import Recipe, RunSpec, default_recipes
from labkit.voices import Voice

SWEEP = "bench-peers"
Figures = dict[str, Any]
_MEASURES = (
    "load_s",
    "build_s",
    "compile_s",
    "rss_run_peak_bytes",
    "size_on_disk_bytes",
    "huge_page_bytes",
    "step_read_bytes",
    "bandwidth_bytes_per_s",
    "roofline_share",
)
_NAMES = {"rss_run_peak_bytes": "rss_peak_bytes"}
_STEPS_PER_SECOND = 24_000 / 512
"""Each step is two frames of 256 samples at 24 kHz."""


def run_documents(race: str, figures: Figures, voice: Voice, voice_name: str) -> Iterator[RunDocument]:
    """A document for each arm that is a recipe, whether it ran or not."""
    from labkit.environment import describe_environment, machine_class

    environment = describe_environment()
    known = default_recipes()
    doubled = {two_threads(name): name for name in known}
    for name, row in figures["arms"].items():
        recipe = known.get(doubled.get(name, name))
        if recipe is None:
            continue
        started = datetime.now(UTC)
        spec = _spec(race, figures, recipe, voice_name, threads=2 if name in doubled else 1)
        ran = "network_cpu_s" in row
        yield RunDocument(
            run_id=new_run_id(recipe.name, started),
            started_at=started.isoformat(),
            spec=spec,
            work_hash=spec.work_hash(),
            sweep=SWEEP,
            status="ok" if ran else row["status"],
            failure=None if ran else Failure(kind="BenchArm", message=row["reason"], stage="load"),
            environment=environment,
            weights_hash=voice.weights_hash,
            machine_class=machine_class(environment),
            measures=_measures(row) if ran else Measures(),
            samples=tuple(_samples(race, figures, row, spec.corpus)) if ran else (),
            notes=(
                f"bench peers: {TITLES[race]}, {figures['rounds']} rounds interleaved with "
                f"{', '.join(other for other in figures['arms'] if other != name)}; "
                f"ratios to {row.get('base') or BASE} hold within these rounds alone",
            ),
        )


def _spec(race: str, figures: Figures, recipe: Recipe, voice: str, threads: int) -> RunSpec:
    return RunSpec(
        recipe=recipe,
        voice=voice,
        scenario="replay",
        corpus=re.sub(r"\W+", "-", f"{TITLES[race]} {figures['length']}"),
        threads=threads,
        repeats=figures["rounds"],
        quality=False,
    )


def _measures(row: Figures) -> Measures:
    values = {_NAMES.get(name, name): row.get(name) for name in _MEASURES if name in row}
    reasons = {name: "this arm does not tell" for name, value in values.items() if value is None}
    return Measures(values=values, reasons=reasons)


def _samples(race: str, figures: Figures, row: Figures, item: str) -> Iterator[Sample]:
    for number, times in enumerate(row["rounds"]):
        values: dict[str, float | int | None] = {
            "latency_s": sum(times["network_wall_s"]),
            "cpu_s": sum(times["network_cpu_s"]),
        }
        series: dict[str, list[float]] = {}
        if race == SOUND:
            audio_s = figures["length"] / _STEPS_PER_SECOND
            values |= {name: sum(times[name]) for name in ("decoder_cpu_s", "vocoder_cpu_s")}
            values |= {"audio_s": audio_s, "sound_rtf": values["latency_s"] / audio_s}
        else:
            values |= {"steps": figures["takes"], "decode_s": values["latency_s"]}
            series = {"step_s": times["network_wall_s"], "step_cpu_s": times["network_cpu_s"]}
        yield Sample(
            phase="measured",
            repetition=number,
            item=item,
            order=number,
            values=values,
            series=series,
        )
