"""Stands in for the worker: answers like one, then hangs, crashes or ends as the environment tells it. No torch."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

MARK = "GPU_CHECK "
VALUES = {"batch": 1, "load_s": 1.0, "device_step_s": 0.001, "device_roofline_share": 0.5, "roofline_share": 0.4,
          "bandwidth_bytes_per_s": 4e12, "cold_start_s": 3.0, "parity_hidden_relative": 1e-5, "parity_top1_share": 1.0,
          "parity_mel_relative": 1e-5, "parity_audio_relative": 1e-5, "vram_allocator_peak_bytes": 2**30}  # fmt: skip
SAMPLE = {"phase": "measured", "repetition": 0, "item": "x1", "order": 0, "ended": True, "flags": [], "audio": None,
          "values": {"steps_per_s": 900.0, "ttft_s": 0.05}, "reasons": {}, "series": {"step_s": [0.0011]}}  # fmt: skip


def tell(kind: str, **values: object) -> None:
    print(MARK + json.dumps({"kind": kind, **values}), flush=True)


job = json.loads(Path(sys.argv[1]).read_text())
if job["case"] is None:
    sys.exit(0)
how = os.environ["GPU_CHECK_STUB"]
print("a library says something")
tell("hello", torch="0", cuda="13.0", gpu={"name": "NVIDIA Stub", "memory_bytes": 1})
tell("begin", batch=1)
tell("measured", batch=1)
bad = {"parity_mel_relative": float("nan")} if how == "nan" else {}
tell("result", batch=1, values=VALUES | bad, reasons={}, samples=[SAMPLE], placement={"gpt": {"cuda:0": 4}})
tell("begin", batch=8)
if how == "hang":
    time.sleep(60)
if how == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
tell("failure", status="oom", type="OutOfMemoryError", message="CUDA out of memory", remedy="", traceback="")
sys.exit(1)
