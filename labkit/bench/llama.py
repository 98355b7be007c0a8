"""llama.cpp, through the server that the package `xllamacpp` brings, taking decode steps of a voice's GPT.

It knows the server's few settings that matter here. A take is one request: its prompt is in the cache but for the last
id, which is read anew, so `count` steps are that one and `count - 1` drawn ones. The cache of keys and values is in
half precision, as llama.cpp has it by default.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

from labkit.bench.llama_file import build_seconds, model_file, step_weight_bytes
from labkit.errors import UnavailableError

_PACKAGES = ("xllamacpp", "gguf")
_FIRST_ID = 300  # behind the vocabulary's bytes and controls
_HALF_BYTES = 2


def require_llama() -> None:
    """`UnavailableError` with the remedy when a package is missing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UnavailableError(
            f"llama.cpp cannot run: {' and '.join(missing)} not installed.",
            "Install them: pip install 'labkit[peers]'.",
        )


class Llama:
    """A server in this process, with one slot. `figures`: what an arm tells of itself after loading."""

    def __init__(self, kind: str, voice: Path, threads: int) -> None:
        import xllamacpp

        from labkit.measure.clocks import read_clocks
        from labkit.model.config import VoiceConfig

        file = model_file(voice, kind)
        config = VoiceConfig.from_folder(voice).gpt
        self._rows = config.num_codebooks * config.num_code_tokens
        before = read_clocks()
        self._server = xllamacpp.Server(_settings(xllamacpp.CommonParams(), file, config.positions, threads))
        head = {"hidden": config.hidden, "intermediate": config.intermediate, "head_rows": self._rows}
        self.figures: dict[str, Any] = {
            "load_s": (read_clocks() - before).wall_s,
            "build_s": build_seconds(file),
            "size_on_disk_bytes": file.stat().st_size,
            "step_weights_bytes": step_weight_bytes(kind, layers=config.layers, **head),
            "kv_row_position_bytes": 2 * config.layers * config.hidden * _HALF_BYTES,
            "version": importlib.metadata.version("xllamacpp"),
            "built_for": xllamacpp.get_system_info().strip(" |"),
        }
        self._prompt: list[int] = []

    def prefill(self, length: int) -> None:
        """Read a prompt of `length` ids."""
        free = self._rows - _FIRST_ID
        self._prompt = [_FIRST_ID + i % free for i in range(length)]
        self._ask(1)

    def steps(self, count: int) -> None:
        """Take `count` steps after the prompt; RuntimeError when the server took another number of them."""
        timings = self._ask(count)
        if timings["prompt_n"] != 1 or timings["predicted_n"] != count:
            raise RuntimeError(
                f"llama.cpp read {timings['prompt_n']} and drew {timings['predicted_n']} where 1 and {count} were asked"
            )

    def _ask(self, count: int) -> dict[str, Any]:
        reply = self._server.handle_completions(
            {
                "prompt": self._prompt,
                "n_predict": count,
                "cache_prompt": True,
                "ignore_eos": True,
                "temperature": 0.0,
                "top_k": 1,
                "samplers": ["top_k"],
            }
        )
        if "timings" not in reply:
            raise RuntimeError(f"llama.cpp refused a request: {reply}")
        timings: dict[str, Any] = reply["timings"]
        return timings


def _settings(params: Any, file: Path, positions: int, threads: int) -> Any:
    params.model.path = str(file)
    params.n_ctx = positions
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = 0
    params.fit_params = params.warmup = params.ui = False
    return params
