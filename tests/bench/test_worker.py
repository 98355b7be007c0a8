from __future__ import annotations

import os

import pytest

from labkit.bench.arms import LabArm, WorkerProcess, open_arm
from labkit.errors import LabError, UnavailableError
from labkit.spec import Recipe
from labkit.voices import Voice

CORE = sorted(os.sched_getaffinity(0))[-1] if hasattr(os, "sched_getaffinity") else 0


def test_a_worker_probes_answers_mistakes_and_dies_loudly() -> None:
    with WorkerProcess(CORE) as worker:
        assert worker.call("bandwidth", buffer_bytes=1 << 20, rounds=1)["bytes_per_s"] > 1e8
        with pytest.raises(LabError, match="steps: TypeError"):
            worker.call("steps")
        worker._process.kill()
        worker._process.wait()
        with pytest.raises(LabError, match="ended with code -9"):
            worker.call("bandwidth", buffer_bytes=1)


def test_an_arm_takes_timed_steps(tiny_voice: Voice) -> None:
    arm = LabArm(Recipe(name="torch-fp32"), str(tiny_voice.folder), CORE)
    try:
        held = arm.load()
        assert held["step_weights_bytes"] > 0 and held["rss_peak_bytes"] > held["rss_before_bytes"]
        arm.prefill(16, 6)
        taken = arm.steps(3)
    finally:
        arm.close()
    assert {len(times) for times in taken.values()} == {3}
    assert all(
        whole > network > 0
        for whole, network in zip(taken["step_wall_s"], taken["network_wall_s"], strict=True)
    )


def test_upstream_without_its_environment_says_so(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_UPSTREAM_PYTHON", "/nowhere/python")
    with pytest.raises(UnavailableError, match="make_upstream_env"):
        open_arm(Recipe(name="upstream", pipeline="upstream"), tiny_voice, CORE)
