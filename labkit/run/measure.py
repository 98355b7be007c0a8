"""Child: the measured process. `python -m labkit.run.measure FOLDER`

Order matters: load, cold start, warm-ups and repetitions, then the line is drawn (the event `measured`), and only
after it come the bandwidth probe, validity and the replay for fidelity, which must cost the run neither time nor
memory. Audio goes to disk between takes, so that kept clips do not pile up in the measured memory.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from statistics import median
from typing import Any

from labkit.errors import InvalidAudioError
from labkit.measure.clocks import seconds_since
from labkit.measure.gpu import process_vram_bytes
from labkit.measure.memory import own_peak_rss_bytes
from labkit.measure.roofline import roofline_share, step_bytes
from labkit.measure.samples import SampleRecorder
from labkit.run.clips import REPLAYED, SPOKEN, ReferenceSpeech, keep_clip, kept_clips, load_references
from labkit.run.tasks import Job, Reporter, child_main
from labkit.scenarios import run_scenario
from labkit.scenarios.drivers import driver_for, open_recipe


def work(job: Job, reporter: Reporter, spawned_at: float) -> None:
    """Measure one recipe; everything learned goes up as it is learned."""
    reporter.stage("load")
    pipeline = open_recipe(job.spec)
    reporter.values({"load_s": pipeline.load_s})
    if (size := getattr(pipeline, "size_on_disk_bytes", None)) is not None:  # a recipe without artifacts
        reporter.values({"size_on_disk_bytes": size})
    references = load_references(job)
    reporter.stage("cold start")
    measure_cold_start(job, pipeline, references, spawned_at, reporter)
    reporter.stage("speak")
    recorder = SampleRecorder(on_sample=lambda sample: reporter.event("sample", record=asdict(sample)))
    run_scenario(
        job.spec.scenario, pipeline, job.spec, job.texts, references, recorder,
        keep=lambda item, take: keep_clip(job, SPOKEN, item, take),
    )  # fmt: skip
    measure_memory(job, pipeline, reporter)
    reporter.event("measured")
    reporter.event("placement", stages=pipeline.placement())
    reporter.stage("bandwidth")
    measure_roofline(job, pipeline, recorder, reporter)
    if job.judged and job.spec.scenario != "replay":
        reporter.stage("fidelity")
        replay_references(job, pipeline, references)
    pipeline.close()
    reporter.stage("validity")
    check_validity(job, reporter)


def measure_cold_start(
    job: Job, pipeline: Any, references: dict[str, ReferenceSpeech], spawned_at: float, reporter: Reporter
) -> None:
    """From the moment the parent asked for this process to the first audio of the first text."""
    first = job.texts[0]
    codes = references[first.id].codes if job.spec.scenario == "replay" else None
    driver = driver_for(pipeline, job.spec)
    answer = driver.first_audio(first.text, codes)
    if answer.seconds is None:
        # without a stream, the first audio is the whole first utterance
        driver.speak(first.text, codes)
    reporter.values({"cold_start_s": seconds_since(spawned_at)})


def measure_memory(job: Job, pipeline: Any, reporter: Reporter) -> None:
    """What this process and its device hold at most, and what the stages say they hold."""
    device = process_vram_bytes(os.getpid(), job.spec.device)
    values: dict[str, float | int | None] = {
        "rss_peak_own_bytes": own_peak_rss_bytes(),
        "vram_nvml_bytes": device.value,
    }
    reasons = {
        "rss_peak_own_bytes": "this system keeps no high-water mark",
        "vram_nvml_bytes": device.reason,
    }
    values |= getattr(pipeline, "figures", dict)()  # only the lab's own stages compile themselves
    for stage, sizes in pipeline.memory().items():
        values |= {f"{stage}_{name}": size for name, size in sizes.items()}
    reporter.values(values, {name: reason for name, reason in reasons.items() if values[name] is None})


def measure_roofline(job: Job, pipeline: Any, recorder: SampleRecorder, reporter: Reporter) -> None:
    """Reading speed at the size that a step reads, and the share of it that the median step reached."""
    from labkit.measure.bandwidth import read_bandwidth

    sizes = pipeline.memory().get("gpt", {})
    steps = recorder.measured("steps")
    # a row's cache grows from its prompt by one position a step; the prompt's few positions are left out
    context = sum(steps) / len(steps) / 2 if steps else 0
    read = step_bytes(sizes.get("step_weights_bytes", 0), sizes.get("kv_row_position_bytes", 0), context)
    if not job.spec.device.startswith("cpu"):
        reason = "the memory of the device is not probed"
        reporter.values(
            dict.fromkeys(("bandwidth_bytes_per_s", "roofline_share")),
            dict.fromkeys(("bandwidth_bytes_per_s", "roofline_share"), reason),
        )
        return
    probe = read_bandwidth(read, threads=job.spec.threads)
    step_s = recorder.series("step_s")
    share = roofline_share(read, median(step_s) if step_s else None, probe.bytes_per_s)
    values: dict[str, float | int | None] = {
        "bandwidth_bytes_per_s": probe.bytes_per_s,
        "bandwidth_buffer_bytes": probe.buffer_bytes,
        "roofline_share": share.share,
    }
    if read:
        values["step_read_bytes"] = read
    reporter.values(values, {} if share.share is not None else {"roofline_share": share.reason})
    if share.impossible:
        reporter.note(
            f"impossible: roofline share {share.share:.2f} is above 1; the probe under-read this machine's memory "
            f"({probe.bytes_per_s / 1e9:.1f} GB/s over {probe.buffer_bytes / 2**20:.0f} MiB)"
        )


def replay_references(job: Job, pipeline: Any, references: dict[str, ReferenceSpeech]) -> None:
    """Say the reference's codes, so that the audio can be compared token by token."""
    driver = driver_for(pipeline, job.spec)
    for text in job.texts:
        keep_clip(job, REPLAYED, text.id, driver.speak(text.text, references[text.id].codes))


def check_validity(job: Job, reporter: Reporter) -> None:
    """Flags of every kept clip. Audio that is no audio at all makes the run invalid, for any voice."""
    from labkit.quality.validity import FATAL, check

    broken = []
    for clip in kept_clips(job, SPOKEN):
        found = check(clip.audio, ended=clip.ended, codes=clip.codes)
        reporter.event("flags", item=clip.item, flags=list(found.flags))
        if found.fatal:
            broken.append(f"{clip.item}: {', '.join(sorted(FATAL & set(found.flags)))}")
    if broken:
        raise InvalidAudioError(
            f"{len(broken)} of {len(job.texts)} clips hold no speech ({'; '.join(broken[:3])})"
        )


if __name__ == "__main__":
    child_main("measure", work)
