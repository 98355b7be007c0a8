"""The conversation with the worker, in this environment: it starts without upstream's package."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labkit.upstream.client import UpstreamError, UpstreamProcess


@pytest.fixture
def peer() -> Iterator[UpstreamProcess]:
    with UpstreamProcess(Path(sys.executable)) as process:
        yield process


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's /proc")
def test_a_command_is_answered_by_another_process(peer: UpstreamProcess) -> None:
    reply = peer.call("memory")
    assert reply.fields["peak_rss_bytes"] >= reply.fields["rss_bytes"] > 1_000_000
    assert reply.arrays == {} and peer.pid != os.getpid()


def test_an_error_over_there_is_raised_here_and_the_conversation_goes_on(peer: UpstreamProcess) -> None:
    with pytest.raises(UpstreamError, match=r"'load' failed with ModuleNotFoundError.*ChatTTS"):
        peer.call("load", asset="nowhere", sizes={}, threads=1, cores=None)
    with pytest.raises(UpstreamError, match="bench_prefill"):
        peer.call("bench_steps", count=1)
    with pytest.raises(UpstreamError, match="unexpected keyword argument 'extra'"):
        peer.call("memory", {"extra": np.zeros(3)})
    assert peer.call("memory").fields["rss_bytes"] != 0


def test_silence_ends_the_worker(peer: UpstreamProcess) -> None:
    with pytest.raises(UpstreamError, match=r"did not answer 'memory' within 0\.001 s"):
        peer.call("memory", timeout_s=0.001)
    with pytest.raises(UpstreamError, match="'memory'"):
        peer.call("memory")


def test_a_killed_worker_is_reported_with_its_code(peer: UpstreamProcess) -> None:
    peer.call("memory")
    os.kill(peer.pid, signal.SIGKILL)
    with pytest.raises(UpstreamError, match=rf"ended with code -{signal.SIGKILL.value} during 'memory'"):
        peer.call("memory")


def test_a_program_that_is_no_worker_shows_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho this is not a worker >&2\nexit 3\n")
    program.chmod(0o755)
    with (
        UpstreamProcess(program) as process,
        pytest.raises(UpstreamError, match=r"(?s)ended with code 3.*this is not a worker"),
    ):
        process.call("hello")


def test_leaving_removes_process_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with UpstreamProcess(Path(sys.executable)) as process:
        pid = process.pid
        process.call("memory")
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
