"""The program of one lab arm: `python -m labkit.bench.worker CORE`, one JSON request and one reply a line.

It is pinned to its core before any backend is loaded, so that no thread pool starts elsewhere. Requests are
`{"command": name, …arguments}`; replies `{"ok": true, …}` or `{"ok": false, "message": …}`. What backends print
goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from labkit.measure.clocks import Reading, read_clocks
from labkit.measure.memory import own_peak_rss_bytes
from labkit.spec import parse_recipes


class Worker:
    """One recipe with its GPT in the middle of an utterance."""

    def __init__(self) -> None:
        self._pipeline: Any = None
        self._codes: Any = None
        self._taken = 0

    def load(self, recipe: str, voice: str) -> dict[str, Any]:
        """Load the whole recipe; what it holds, and the peak of this process while loading."""
        from labkit.pipeline import open_pipeline
        from labkit.voices import resolve_voice

        before = own_peak_rss_bytes()
        self._pipeline = open_pipeline(_recipe(recipe), resolve_voice(voice), threads=1)
        held = self._pipeline.memory()
        return {
            "load_s": self._pipeline.load_s,
            "size_on_disk_bytes": sum(artifact.size_bytes for artifact in self._pipeline.artifacts.values()),
            "rss_before_bytes": before,
            "rss_peak_bytes": own_peak_rss_bytes(),
            "weights_bytes": sum(sizes.get("weights_bytes", 0) for sizes in held.values()),
            "step_weights_bytes": held["gpt"].get("step_weights_bytes"),
            "kv_row_position_bytes": held["gpt"].get("kv_row_position_bytes"),
        }

    def prefill(self, context: int, steps: int, seed: int = 0) -> dict[str, Any]:
        """Read a prompt of `context` random text ids, with room for `steps` steps of random codes."""
        config = self._pipeline.voice.config.gpt
        random = np.random.Generator(np.random.Philox(seed))
        ids = random.integers(0, config.num_text_tokens, (1, context), dtype=np.int64)
        self._codes = random.integers(0, config.end_code, (steps, 1, config.num_codebooks), dtype=np.int64)
        self._taken = 0
        self._pipeline.gpt.reset(1, context + steps)
        before = read_clocks()
        self._pipeline.gpt.prefill(ids, np.ones_like(ids, dtype=np.bool_), None)
        spent = read_clocks() - before
        return {"prefill_wall_s": spent.wall_s, "prefill_cpu_s": spent.cpu_s}

    def steps(self, count: int) -> dict[str, Any]:
        """Take `count` steps: seconds of the network alone, and with the draw of the next codes."""
        from labkit.model.sampling import CODE_SAMPLING, RowNoise, draw, stack_noise

        network: list[Reading] = []
        whole: list[Reading] = []
        noise = [RowNoise(0, 0)]
        for _ in range(count):
            history = self._codes[: self._taken + 1].transpose(1, 0, 2)
            before = read_clocks()
            logits = self._pipeline.gpt.step(self._codes[self._taken]).logits
            network.append(read_clocks() - before)
            drawn = stack_noise(noise, self._taken, *logits.shape[1:])
            draw(logits, history, CODE_SAMPLING, drawn, step=self._taken, end=logits.shape[2] - 1)
            whole.append(read_clocks() - before)
            self._taken += 1
        return {
            "network_wall_s": [reading.wall_s for reading in network],
            "network_cpu_s": [reading.cpu_s for reading in network],
            "step_wall_s": [reading.wall_s for reading in whole],
            "step_cpu_s": [reading.cpu_s for reading in whole],
        }

    def bandwidth(self, buffer_bytes: int, rounds: int = 8) -> dict[str, Any]:
        """Reading speed over a buffer of the given size."""
        from labkit.measure.bandwidth import read_bandwidth

        return {"bytes_per_s": read_bandwidth(buffer_bytes, rounds=rounds).bytes_per_s}


def main() -> None:
    """Serve until the parent closes the pipe."""
    core = int(sys.argv[1])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a backend prints must not break the protocol
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"ok": True, **getattr(worker, request.pop("command"))(**request)}
        except Exception as error:  # the parent words it
            reply = {"ok": False, "type": type(error).__name__, "message": str(error)}
        replies.write(json.dumps(reply) + "\n")


def _recipe(text: str) -> Any:
    (recipe,) = parse_recipes(text, place="bench").values()
    return recipe


if __name__ == "__main__":
    main()
