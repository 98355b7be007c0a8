from __future__ import annotations

import pytest

from labkit.bench.arms import Arm, sound_arm, step_arm
from labkit.bench.own import usable_cores
from labkit.bench.worker_process import WorkerProcess
from labkit.errors import LabError, UnavailableError
from labkit.spec import Recipe
from labkit.voices import Voice

CORE = usable_cores()[-1:]
TORCH, UPSTREAM = Recipe(name="torch-fp32"), Recipe(name="upstream", pipeline="upstream")


def silent(line: str) -> None:
    pass


def test_a_worker_probes_answers_mistakes_and_dies_loudly() -> None:
    with WorkerProcess(CORE) as worker:
        assert worker.call("bandwidth", buffer_bytes=1 << 20, rounds=1)["bytes_per_s"] > 1e8
        assert worker.call("peak")["rss_peak_bytes"] > 1e6
        with pytest.raises(LabError, match="steps: TypeError"):
            worker.call("steps")
        worker._process.kill()
        worker._process.wait()
        with pytest.raises(LabError, match="ended with code -9"):
            worker.call("bandwidth", buffer_bytes=1)


def test_a_silent_worker_is_ended() -> None:
    with WorkerProcess(CORE, timeout_s=0.05) as worker, pytest.raises(LabError, match=r"after 0\.05 s"):
        worker.call("bandwidth", buffer_bytes=1 << 30, rounds=1000)


def test_an_arm_takes_timed_steps(tiny_voice: Voice) -> None:
    arm = step_arm(TORCH, tiny_voice, CORE, silent)
    try:
        held = arm.load()
        assert held["step_weights_bytes"] > 0 and held["rss_peak_bytes"] > held["rss_before_bytes"]
        arm.ready(16, 6)
        taken = arm.take(3)
        assert (arm.peak_rss_bytes() or 0) >= held["rss_peak_bytes"]
    finally:
        arm.close()
    assert {len(times) for times in taken.values()} == {3}
    assert all(
        whole > network > 0
        for whole, network in zip(taken["step_wall_s"], taken["network_wall_s"], strict=True)
    )


def test_an_arm_makes_timed_sound(tiny_voice: Voice) -> None:
    arm: Arm = sound_arm(TORCH, tiny_voice, CORE, silent)
    try:
        assert arm.load()["step_weights_bytes"] is None
        arm.ready(9, 3)
        taken = arm.take(2)
    finally:
        arm.close()
    parts = zip(taken["decoder_cpu_s"], taken["vocoder_cpu_s"], strict=True)
    assert [sum(both) for both in parts] == pytest.approx(taken["network_cpu_s"])


def test_upstream_without_its_environment_says_so(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_UPSTREAM_PYTHON", "/nowhere/python")
    for opening in (step_arm, sound_arm):
        with pytest.raises(UnavailableError, match="make_upstream_env"):
            opening(UPSTREAM, tiny_voice, CORE, silent)
