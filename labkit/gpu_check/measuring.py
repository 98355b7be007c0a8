"""One case at one batch size, measured: parity, timed repetitions, the bare device, memory, the share of the bandwidth.

It knows numbers and how they are taken, through the lab's own synthesis. Every null has its reason.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

from labkit.engines.base import CompilingStage
from labkit.gpu_check.cases import Work
from labkit.gpu_check.jobs import Job, tell
from labkit.gpu_check.parity import Answers, compare
from labkit.gpu_check.speaking import answers, prepared
from labkit.gpu_check.vram import ALLOCATOR
from labkit.measure.clocks import read_clocks, seconds_since
from labkit.measure.roofline import roofline_share, step_bytes
from labkit.synthesis import speak, stream
from labkit.synthesis.request import pad_left

DEVICE_STEPS = 64  # queued without waiting, to time the device alone


def measure(job: Job, stages: Any, batch: int, load_s: float) -> dict[str, Any]:
    """One batch size: parity first, which warms up as well, then the timed repetitions, then the bare device."""
    values: dict[str, float | int | None] = {"batch": batch, "load_s": load_s}
    reasons: dict[str, str] = {}
    first = batch == (job.case.batches[0] if job.case else batch)
    checked = check_parity(job, stages, batch)
    values |= checked[0]
    reasons |= checked[1]
    values["cold_start_s"] = seconds_since(job.spawned_at) if first else None
    if not first:
        reasons["cold_start_s"] = "told by the first batch size of this process"
    samples = take_samples(stages, job.work, batch)
    device_step_s = values["device_step_s"] = time_device_steps(stages, job.work, batch)
    values |= {f"gpt_{name}": size for name, size in stages.gpt.memory().items()}
    values |= {f"gpt_{name}": value for name, value in figures(stages.gpt).items()}
    step_s = median(
        [s for sample in samples if sample["phase"] == "measured" for s in sample["series"]["step_s"]]
    )
    memory = _memory(job.device)
    tell(
        "measured", batch=batch
    )  # the parent stops watching the memory: the probe's buffers are not the case's
    for found in (memory, _roofline(job, stages, batch, step_s, device_step_s)):
        values |= found[0]
        reasons |= found[1]
    placement = {name: getattr(stages, name).placement() for name in ("gpt", "decoder", "vocoder")}
    return {"values": values, "reasons": reasons, "samples": samples, "placement": placement}


def check_parity(job: Job, stages: Any, batch: int) -> tuple[dict[str, float | None], dict[str, str]]:
    """Differences from the CPU's fp32 answers; null and why when there are none."""
    file = job.reference_file(batch)
    own = answers(stages, job.work, batch)
    if not file.exists():
        names = compare(own, own)
        return dict.fromkeys(names), dict.fromkeys(names, "the CPU's answers could not be made")
    theirs = Answers.load(file)
    # decoder and vocoder read the same input as on the CPU, so that their own rounding alone is seen
    mel = stages.decoder(theirs.features[None])
    audio = stages.vocoder(theirs.mel)
    return dict(compare(Answers(own.logits, own.hidden, own.features, mel, audio), theirs)), {}


def take_samples(stages: Any, work: Work, batch: int) -> list[dict[str, Any]]:
    """One warm-up and the measured repetitions, as the schema's samples."""
    rows, codes = prepared(stages, work, batch), work.codes(batch)
    samples: list[dict[str, Any]] = []
    for order in range(1 + work.repeats):
        before = read_clocks()
        spoken = speak(stages, rows, replay=codes)
        spent = read_clocks() - before
        timings = spoken[0].timings
        audio_s = sum(len(each.audio) for each in spoken) / stages.voice.config.audio.sample_rate
        values: dict[str, float | int | None] = {
            "latency_s": spent.wall_s, "cpu_s": spent.cpu_s, "audio_s": audio_s, "rtf": spent.wall_s / audio_s,
            "rtfx": audio_s / spent.wall_s, "steps": work.steps, "prefill_s": timings.prefill_s,
            "decode_s": timings.decode_s, "steps_per_s": len(timings.step_s) / timings.decode_s,
            "decoder_s": sum(each.timings.decoder_s for each in spoken),
            "vocoder_s": sum(each.timings.vocoder_s for each in spoken), "ttft_s": None,
        }  # fmt: skip
        reasons = {"ttft_s": "a stream speaks one utterance"}
        if batch == 1:
            values["ttft_s"], reasons = next(stream(stages, rows[0], replay=codes[0])).elapsed_s, {}
        samples.append({
            "phase": "measured" if order else "warmup", "repetition": max(0, order - 1), "item": f"x{batch}",
            "order": order, "ended": True, "flags": [], "audio": None, "values": values, "reasons": reasons,
            "series": {"step_s": list(timings.step_s)},
        })  # fmt: skip
    return samples


def time_device_steps(stages: Any, work: Work, batch: int) -> float:
    """Seconds of one step when steps are queued without reading any result: the device without the host's borders."""
    gpt = stages.gpt
    ids, mask = pad_left(work.rows(batch, stages.voice.config.gpt.num_text_tokens))
    gpt.reset(batch, work.capacity)
    gpt.prefill(ids, mask, None)
    codes = gpt.put(np.stack(work.codes(batch))[:, 0])
    count = min(DEVICE_STEPS, work.steps - 1)
    gpt.advance(codes)
    gpt.synchronize()
    started = time.perf_counter()
    for _ in range(count):
        gpt.advance(codes)
    gpt.synchronize()
    return (time.perf_counter() - started) / count


def figures(gpt: Any) -> dict[str, float]:
    """What a stage that compiles or records itself counted; empty for another."""
    return gpt.figures() if isinstance(gpt, CompilingStage) else {}


def _memory(device: str) -> tuple[dict[str, int | None], dict[str, str]]:
    values: dict[str, int | None] = {ALLOCATOR: None, "rss_peak_own_bytes": None}
    reasons = {ALLOCATOR: "the run used no GPU", "rss_peak_own_bytes": "psutil is not installed"}
    if device.startswith("cuda"):
        import torch

        values[ALLOCATOR] = torch.cuda.max_memory_allocated(torch.device(device))
    try:
        from labkit.measure.memory import own_peak_rss_bytes

        values["rss_peak_own_bytes"] = own_peak_rss_bytes()
        reasons["rss_peak_own_bytes"] = "this system keeps no high-water mark"
    except ImportError:
        pass
    return values, {name: why for name, why in reasons.items() if values[name] is None}


def _roofline(
    job: Job, stages: Any, batch: int, step_s: float, device_step_s: float
) -> tuple[dict[str, float | int | None], dict[str, str]]:
    """Bandwidth over a buffer of the size that a step reads, and the shares that the step reached."""
    sizes = stages.gpt.memory()
    context = job.work.prompt + job.work.steps / 2
    read = step_bytes(sizes["step_weights_bytes"], batch * sizes["kv_row_position_bytes"], context)
    names = ("bandwidth_bytes_per_s", "bandwidth_buffer_bytes", "roofline_share", "device_roofline_share")
    try:
        speed, size = _bandwidth(job, read)
    except RuntimeError as error:  # the probe's failure is not the case's
        why = f"the bandwidth probe failed: {error}"
        return {"step_read_bytes": read, **dict.fromkeys(names)}, dict.fromkeys(names, why)
    shares = [roofline_share(read, seconds, speed) for seconds in (step_s, device_step_s)]
    values: dict[str, float | int | None] = {"step_read_bytes": read}
    values |= dict(zip(names, (speed, size, *(share.share for share in shares)), strict=True))
    return values, {n: s.reason for n, s in zip(names[2:], shares, strict=True) if s.share is None}


def _bandwidth(job: Job, size: int) -> tuple[float, int]:
    if job.on_gpu:
        import torch

        from labkit.gpu_check.bandwidth import device_bandwidth

        return device_bandwidth(size, torch.device(job.device))
    from labkit.measure.bandwidth import read_bandwidth

    probe = read_bandwidth(size, threads=job.threads)
    return probe.bytes_per_s, probe.buffer_bytes
