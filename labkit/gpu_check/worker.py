"""Child: one case, or the CPU's answers for one voice. `python -m labkit.gpu_check.worker JOB.json`

It needs torch and NumPy alone, and speaks through the lab's own engine and synthesis. What it learns goes up as one
line of JSON each, at once: `begin`, `measured` and `result` for every batch size, `failure` when it cannot go on.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path
from typing import Any

from labkit.errors import SpecError, UnavailableError
from labkit.gpu_check.cases import BATCHES, Choice
from labkit.gpu_check.jobs import Job, tell
from labkit.gpu_check.measuring import figures, measure
from labkit.gpu_check.speaking import answers, load_stages


def main(job: Job) -> None:
    """Carry the job out; only what is no fault of the case's own leaves as an exception."""
    choices = (
        {stage: Choice() for stage in ("gpt", "decoder", "vocoder")}
        if job.case is None
        else job.case.choices()
    )
    started = time.perf_counter()
    stages = load_stages(choices, job.voice, "cpu" if job.case is None else job.device, job.threads)
    load_s = time.perf_counter() - started - figures(stages.gpt).get("compile_s", 0.0)
    if job.case is None:
        for batch in BATCHES:
            answers(stages, job.work, batch).save(job.reference_file(batch))
        return
    tell("hello", **about_device(job.device))
    for batch in job.case.batches:
        if job.on_gpu:
            _forget_memory(job.device)
        tell("begin", batch=batch)
        tell("result", batch=batch, **measure(job, stages, batch, load_s))


def about_device(device: str) -> dict[str, Any]:
    """What torch says of the card, for machines where NVML says nothing."""
    import torch

    facts: dict[str, Any] = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": None}
    if device.startswith("cuda"):
        found = torch.cuda.get_device_properties(torch.device(device))
        facts["gpu"] = {"name": found.name, "memory_bytes": found.total_memory}
    return facts


def _forget_memory(device: str) -> None:
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(torch.device(device))


def _status_of(error: BaseException) -> str:
    if isinstance(error, UnavailableError | SpecError):
        return "unavailable"  # an engine or a precision that this device does not have
    return "oom" if type(error).__name__ == "OutOfMemoryError" else "failed"


if __name__ == "__main__":
    try:
        main(Job.read(Path(sys.argv[1])))
    except Exception as error:
        tell(
            "failure",
            status=_status_of(error),
            type=type(error).__name__,
            message=str(error).strip() or type(error).__name__,
            remedy=getattr(error, "remedy", ""),
            traceback=traceback.format_exc(),
        )
        sys.exit(1)
