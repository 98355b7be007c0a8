"""The program of one arm: `python -m labkit.bench.worker CORE[,CORE…]`, one JSON request and one reply a line.

It is pinned to its cores before any backend is loaded, so that no thread pool starts elsewhere. Requests are
`{"command": name, …arguments}`; replies `{"ok": true, …}` or `{"ok": false, "message": …}`. What backends print
goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from labkit.engines.base import CompilingStage
from labkit.measure.clocks import Reading, read_clocks
from labkit.measure.memory import own_peak_rss_bytes
from labkit.spec import Recipe, StageName, parse_recipes

Reply = dict[str, Any]


class Worker:
    """Some stages of one recipe, with its GPT in the middle of an utterance; or llama.cpp with the same GPT."""

    def __init__(self) -> None:
        self._stages: dict[StageName, Any] = {}
        self._config: Any = None
        self._codes: Any = None
        self._hidden: Any = None
        self._taken = 0
        self._llama: Any = None

    def load(self, recipe: str, voice: str, threads: int, stages: list[StageName]) -> Reply:
        """Load some stages of a recipe; what they hold, and the peak of this process while loading."""
        from labkit.artifacts import prepare
        from labkit.pipeline import load_stages
        from labkit.voices import resolve_voice

        before = own_peak_rss_bytes()
        found = resolve_voice(voice)
        self._config = found.config
        made = prepare(_recipe(recipe), found)
        artifacts = {stage: artifact for stage, artifact in made.items() if stage in stages}
        self._stages, seconds = load_stages(artifacts, threads=threads)
        held = {name: stage.memory() for name, stage in self._stages.items()}
        compiling = [stage for stage in self._stages.values() if isinstance(stage, CompilingStage)]
        return {
            "load_s": sum(seconds.values()),
            "build_s": sum(artifact.build_s or 0.0 for artifact in artifacts.values()),
            "compile_s": sum(stage.figures()["compile_s"] for stage in compiling),
            "size_on_disk_bytes": sum(artifact.size_bytes for artifact in artifacts.values()),
            "rss_before_bytes": before,
            "rss_peak_bytes": own_peak_rss_bytes(),
            "weights_bytes": sum(sizes.get("weights_bytes", 0) for sizes in held.values()),
            "huge_page_bytes": sum(sizes.get("huge_page_bytes", 0) for sizes in held.values()),
            "step_weights_bytes": held.get("gpt", {}).get("step_weights_bytes"),
            "kv_row_position_bytes": held.get("gpt", {}).get("kv_row_position_bytes"),
        }

    def prefill(self, length: int, takes: int, seed: int = 0) -> Reply:
        """Read a prompt of `length` random text ids, with room for `takes` steps of random codes."""
        config, gpt = self._config.gpt, self._stages["gpt"]
        random = np.random.Generator(np.random.Philox(seed))
        ids = random.integers(0, config.num_text_tokens, (1, length), dtype=np.int64)
        self._codes = random.integers(0, config.end_code, (takes, 1, config.num_codebooks), dtype=np.int64)
        self._taken = 0
        gpt.reset(1, length + takes)
        before = read_clocks()
        gpt.prefill(ids, np.ones_like(ids, dtype=np.bool_), None)
        spent = read_clocks() - before
        return {"prefill_wall_s": spent.wall_s, "prefill_cpu_s": spent.cpu_s}

    def steps(self, count: int) -> Reply:
        """Take `count` steps: seconds of the network alone, and with the draw of the next codes."""
        from labkit.model.sampling import CODE_SAMPLING, RowNoise, draw, stack_noise

        network: list[Reading] = []
        whole: list[Reading] = []
        noise = [RowNoise(0, 0)]
        for _ in range(count):
            history = self._codes[: self._taken + 1].transpose(1, 0, 2)
            before = read_clocks()
            logits = self._stages["gpt"].step(self._codes[self._taken]).logits
            network.append(read_clocks() - before)
            drawn = stack_noise(noise, self._taken, *logits.shape[1:])
            draw(logits, history, CODE_SAMPLING, drawn, step=self._taken, end=logits.shape[2] - 1)
            whole.append(read_clocks() - before)
            self._taken += 1
        return _seconds("network", network) | _seconds("step", whole)

    def hidden(self, length: int, takes: int, seed: int = 0) -> Reply:
        """Random hidden states of `length` steps, to make sound of."""
        random = np.random.Generator(np.random.Philox(seed))
        self._hidden = random.standard_normal((1, length, self._config.gpt.hidden), dtype=np.float32)
        return {}

    def sound(self, count: int) -> Reply:
        """Make that sound `count` times: seconds of decoder and vocoder, together and each."""
        mels: list[Reading] = []
        whole: list[Reading] = []
        for _ in range(count):
            before = read_clocks()
            mel = self._stages["decoder"](self._hidden)
            mels.append(read_clocks() - before)
            self._stages["vocoder"](mel)
            whole.append(read_clocks() - before)
        return {
            **_seconds("network", whole),
            "decoder_cpu_s": [mel.cpu_s for mel in mels],
            "vocoder_cpu_s": [both.cpu_s - mel.cpu_s for mel, both in zip(mels, whole, strict=True)],
        }

    def llama_load(self, kind: str, voice: str, threads: int) -> Reply:
        """Open llama.cpp on the voice's GPT; see `labkit.bench.llama`."""
        from labkit.bench.llama import Llama

        self._llama = Llama(kind, Path(voice), threads)
        return {**self._llama.figures, "rss_peak_bytes": own_peak_rss_bytes()}

    def llama_prefill(self, length: int, takes: int) -> Reply:
        """Read a prompt of ids; each take begins after it anew, in the middle of what `takes` steps would reach."""
        before = read_clocks()
        self._llama.prefill(length + takes // 2)
        spent = read_clocks() - before
        return {"prefill_wall_s": spent.wall_s, "prefill_cpu_s": spent.cpu_s}

    def llama_steps(self, count: int) -> Reply:
        """Take `count` steps: the mean seconds of them, with the draw and the server's own work."""
        before = read_clocks()
        self._llama.steps(count)
        spent = read_clocks() - before
        mean = [Reading(spent.wall_s / count, spent.cpu_s / count)]
        return _seconds("network", mean) | _seconds("step", mean)

    def llama_write(self, kind: str, voice: str) -> Reply:
        """Write the file that `llama_load` opens, in a process whose memory nobody measures."""
        from labkit.bench.llama_file import write_llama

        return {"file": str(write_llama(Path(voice), kind))}

    def bandwidth(self, buffer_bytes: int, threads: int = 1, rounds: int = 8) -> Reply:
        """Reading speed over a buffer of the given size."""
        from labkit.measure.bandwidth import read_bandwidth

        return {"bytes_per_s": read_bandwidth(buffer_bytes, threads=threads, rounds=rounds).bytes_per_s}

    def peak(self) -> Reply:
        """The most that this process ever held."""
        return {"rss_peak_bytes": own_peak_rss_bytes()}


def main() -> None:
    """Serve until the parent closes the pipe."""
    cores = {int(core) for core in sys.argv[1].split(",")}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
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


def _seconds(name: str, readings: list[Reading]) -> dict[str, list[float]]:
    return {
        f"{name}_wall_s": [reading.wall_s for reading in readings],
        f"{name}_cpu_s": [reading.cpu_s for reading in readings],
    }


def _recipe(text: str) -> Recipe:
    (recipe,) = parse_recipes(text, place="bench").values()
    return recipe


if __name__ == "__main__":
    main()
