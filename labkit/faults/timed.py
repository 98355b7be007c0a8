"""Child: replay the reference's tokens, timed; slowed or grown on purpose. `python -m labkit.faults.timed FOLDER`

The lab's own driver and clocks. A slow-down is a real busy loop inside of an utterance's clocks, and more memory is
memory that is really written to, so both arrive through everything that a real one would come through.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from labkit.measure.memory import own_peak_rss_bytes
from labkit.run.clips import load_references
from labkit.run.tasks import Job, Reporter, child_main
from labkit.scenarios.base import Driver, FirstAudio, IntArray, Take, timed
from labkit.scenarios.drivers import driver_for, open_recipe

INJECTED = "injected.json"


class Slowed:
    """A driver that after each utterance burns `share` of the processor time that the utterance took.

    Of what it takes at that moment: a slow minute of the machine makes the loop longer, too.
    """

    def __init__(self, driver: Driver, share: float) -> None:
        self._driver, self._share = driver, share

    def speak(self, text: str, codes: IntArray | None) -> Take:
        started = time.process_time()
        take = self._driver.speak(text, codes)
        now = time.process_time()
        until = now + self._share * (now - started)
        while time.process_time() < until:
            pass
        return take

    def first_audio(self, text: str, codes: IntArray | None) -> FirstAudio:
        return self._driver.first_audio(text, codes)


def injected(folder: Path) -> Mapping[str, float]:
    """`slow_share` and `ballast_bytes` of this process; nothing when it is an ordinary one."""
    file = folder / INJECTED
    found: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def work(job: Job, reporter: Reporter, spawned_at: float) -> None:
    """One warm-up of each sentence, then all of them once for every repetition."""
    extra = injected(job.folder)
    pipeline = open_recipe(job.spec)
    ballast = np.ones(int(extra.get("ballast_bytes", 0)), np.uint8)
    driver: Driver = driver_for(pipeline, job.spec)
    if share := extra.get("slow_share"):
        driver = Slowed(driver, share)
    references = load_references(job)
    for repetition in range(-job.spec.warmups, job.spec.repeats):
        for text in job.texts:
            _, values = timed(driver, text.text, references[text.id].codes)
            if repetition >= 0:
                reporter.event(
                    "sample", repetition=repetition, item=text.id, cpu_s=values["cpu_s"],
                    cpu_yardsticks=values["cpu_yardsticks"], latency_s=values["latency_s"], steps=values["steps"],
                )  # fmt: skip
    reporter.event("memory", rss_peak_bytes=own_peak_rss_bytes(), ballast_bytes=ballast.size)
    pipeline.close()


if __name__ == "__main__":
    child_main("timed", work)
