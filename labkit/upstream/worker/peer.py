"""Upstream's pipeline behind a few commands, each stage timed where upstream lets one stand.

It goes around `Chat.infer`, which deletes quiet samples, changes the parameters it is given and generates
the first of several sentences twice. `_infer_code` and `_decode_to_wavs` are what `infer` spends its time
in; calling them with fresh parameters gives the work without those traps. Every command returns `(fields,
arrays)`.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import logging
import os
import platform
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .bench import StepBench, clocks, since
from .draws import Draws
from .probes import Probes

Arrays = dict[str, np.ndarray]
Reply = tuple[dict[str, Any], Arrays]
PACKAGES = ("chattts", "torch", "transformers", "vector_quantize_pytorch", "vocos", "torchaudio", "numpy")


class Peer:
    """One loaded `ChatTTS.Chat`, its probes, and the step benchmark in progress, if any."""

    def __init__(self) -> None:
        self.chat: Any = None
        self.bench: StepBench | None = None

    def hello(self) -> Reply:
        """Which versions answer here."""
        versions = {name: importlib.metadata.version(name) for name in PACKAGES}
        return {"pid": os.getpid(), "python": platform.python_version(), "versions": versions}, {}

    def load(self, asset: str, sizes: dict[str, Any], threads: int, cores: list[int] | None) -> Reply:
        """Load a voice from its asset folder at the given sizes, on `cores` alone if some are named.

        Calls `_load`: `load` would compare the files with the published checkpoint's checksums.
        """
        if cores is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)
        torch.set_num_threads(threads)
        started = time.perf_counter()
        package = importlib.import_module("ChatTTS")
        imported = time.perf_counter()
        log = logging.getLogger("ChatTTS")
        log.setLevel(logging.ERROR)
        self.chat = package.Chat(log)
        configure(self.chat.config, sizes)
        files = dataclasses.asdict(self.chat.config.path)
        paths = {name: os.path.join(asset, file.removeprefix("asset/")) for name, file in files.items()}
        if not self.chat._load(device=torch.device("cpu"), **paths):
            raise RuntimeError(f"upstream did not load {asset}; its log says which part is missing")
        # transformers 5 keeps the files' float16; upstream's other parts compute in float32, and so does
        # the lab
        self.chat.gpt.gpt.float()
        loaded = time.perf_counter()
        self.probes = Probes(self.chat)
        return {"import_s": imported - started, "load_s": loaded - imported, **memory()}, {}

    def memory(self) -> Reply:
        """Resident bytes of this process now and at most."""
        return memory(), {}

    def tokenize(self, texts: list[str], prompt: str, speaker: str | None) -> Reply:
        """Code prompts as strings, and as left-padded ids [B, S] with their mask [B, S]."""
        prompts = self.chat.speaker.decorate_code_prompts(list(texts), prompt, None, speaker)
        ids, mask, _ = self.chat.tokenizer.encode(prompts, self.chat.config.gpt.num_vq)
        return {"prompts": prompts}, {"ids": ids[:, :, 0].numpy(), "mask": mask.numpy().astype(bool)}

    def tokenize_refine(self, texts: list[str], prompt: str) -> Reply:
        """The refine stage's prompts as strings and ids, as in `tokenize`."""
        prompts = self.chat.speaker.decorate_text_prompts(list(texts), prompt)
        ids, mask, _ = self.chat.tokenizer.encode(prompts, self.chat.config.gpt.num_vq)
        return {"prompts": prompts}, {"ids": ids[:, :, 0].numpy(), "mask": mask.numpy().astype(bool)}

    def speak(
        self,
        texts: list[str],
        prompt: str,
        speaker: str | None,
        sampling: dict[str, Any],
        audio_path: str | None = "hidden",
        record_logits: bool = False,
        noise: np.ndarray | None = None,
        codes: np.ndarray | None = None,
    ) -> Reply:
        """Generate codes for a batch, then audio by the path `hidden` or `codes` (None: no audio).

        noise: [S, B*4, V] and codes: [S, B*4] as in `Draws`. Returns per row i `codes_i` [T, 4], `hidden_i`
        [T, D], `audio_i` [N]; with `record_logits`, raw `logits` [S, B, 4, V]; and the mels [B, 100, F] as
        `mel`. A row that ends at once ends the batch: then no row has codes and nothing is decoded.
        """
        params = self.chat.InferCodeParams(
            prompt=prompt, spk_emb=speaker, show_tqdm=False, ensure_non_empty=False, **sampling
        )
        self.probes.start(record_logits)
        with Draws(noise, codes) as draws:
            results = list(self.chat._infer_code(list(texts), False, self.chat.device, True, params))
        fields: dict[str, Any] = {"lengths": [], "gpt_wall_s": draws.wall_s(), "gpt_cpu_s": draws.cpu_s()}
        arrays: Arrays = {"logits": self.probes.logits("code")} if record_logits else {}
        for result in results:
            fields["lengths"] = [len(ids) for ids in result.ids]
            for row, (ids, hidden) in enumerate(zip(result.ids, result.hiddens, strict=True)):
                arrays |= {f"codes_{row}": ids.numpy().copy(), f"hidden_{row}": hidden.numpy().copy()}
            if audio_path is not None:
                hidden_path = audio_path == "hidden"
                audio = self.chat._decode_to_wavs(result.hiddens if hidden_path else result.ids, hidden_path)
                arrays |= {f"audio_{row}": samples for row, samples in enumerate(audio)}
                arrays["mel"] = self.probes.mel
        return {**fields, "stage_s": self.probes.seconds, **memory()}, arrays

    def refine(
        self, texts: list[str], prompt: str, sampling: dict[str, Any], noise: np.ndarray | None = None
    ) -> Reply:
        """The refine-text stage: per row `ids_i` [T], and raw `logits` [S, B, text vocabulary]. noise: [S,
        B, V].
        """
        params = self.chat.RefineTextParams(
            prompt=prompt, show_tqdm=False, ensure_non_empty=False, **sampling
        )
        self.probes.start(record_logits=True)
        with Draws(noise):
            result = self.chat._refine_text(list(texts), self.chat.device, params)
        ids = {f"ids_{row}": ids.numpy().copy() for row, ids in enumerate(result.ids)}
        return {}, {**ids, "logits": self.probes.logits("text")}

    def decode(self, hidden: np.ndarray) -> Reply:
        """Hidden states [B, T, D] -> `mel` [B, 100, 2T] through the Decoder."""
        with torch.inference_mode():
            mel = self.chat.decoder(torch.tensor(hidden).transpose(1, 2).contiguous())
        return {}, {"mel": mel.numpy()}

    def decode_codes(self, codes: np.ndarray) -> Reply:
        """Codes [B, T, 4] -> `mel` [B, 100, 2T] through the DVAE."""
        with torch.inference_mode():
            mel = self.chat.dvae(torch.tensor(codes).transpose(1, 2).contiguous())
        return {}, {"mel": mel.numpy()}

    def encode(self, audio: np.ndarray) -> Reply:
        """24 kHz audio [N] -> its log-mel [100, F] and its codes [4, T] through the DVAE's encoder."""
        wave = torch.tensor(audio)
        with torch.inference_mode():
            mel = self.chat.dvae.preprocessor_mel(wave)
            return {}, {"mel": mel.numpy(), "codes": self.chat.dvae.sample_audio(wave).numpy()}

    def vocode(self, mel: np.ndarray) -> Reply:
        """Log-mel [B, 100, F] -> `audio` [B, N]."""
        return {}, {"audio": self.chat._vocos_decode(torch.tensor(mel))}

    def speaker_to_string(self, vector: np.ndarray) -> Reply:
        return {"text": self.chat.speaker._encode(torch.tensor(vector))}, {}

    def speaker_from_string(self, text: str) -> Reply:
        return {}, {"vector": self.chat.speaker._decode(text)}

    def sample_to_string(self, codes: np.ndarray) -> Reply:
        return {"text": self.chat.speaker.encode_prompt(torch.tensor(codes))}, {}

    def sample_from_string(self, text: str) -> Reply:
        return {}, {"codes": self.chat.speaker.decode_prompt(text).numpy()}

    def bench_prefill(self, context: int, steps: int, batch: int = 1, seed: int = 0) -> Reply:
        """Read a prompt of `context` tokens; keep room for `steps` steps that `bench_steps` takes and
        times.
        """
        self.bench = StepBench(self.chat, context=context, steps=steps, batch=batch, seed=seed)
        return self.bench.prefill(), {}

    def bench_steps(self, count: int) -> Reply:
        """Take `count` decode steps; wall and CPU seconds of each, whole and for the network alone."""
        if self.bench is None:
            raise RuntimeError("bench_steps needs a bench_prefill before it")
        return self.bench.take(count), {}

    def bench_sound(self, steps: int, count: int, seed: int = 0) -> Reply:
        """Make audio of `steps` steps' random hidden states `count` times; seconds of each time, whole and by
        stage.
        """
        width = self.chat.config.gpt.hidden_size
        random = np.random.Generator(np.random.Philox(seed))
        hidden = torch.from_numpy(random.standard_normal((1, width, steps), dtype=np.float32))
        taken: dict[str, list[float]] = {}
        for _ in range(count):
            with torch.inference_mode():
                started = clocks()
                mel = self.chat.decoder(hidden)
                between = since(started)
                self.chat._vocos_decode(mel)
                whole = since(started)
            found = {
                "network_wall_s": whole[0],
                "network_cpu_s": whole[1],
                "decoder_cpu_s": between[1],
                "vocoder_cpu_s": whole[1] - between[1],
            }
            for name, seconds in found.items():
                taken.setdefault(name, []).append(seconds)
        return taken, {}


def configure(config: Any, sizes: Mapping[str, Any]) -> None:
    """Set upstream's configuration object to the sizes of a voice; new parts, since its defaults are
    shared.
    """
    config.gpt = type(config.gpt)(**sizes["gpt"])
    config.embed = type(config.embed)(**sizes["embed"])
    config.decoder = type(config.decoder)(**sizes["decoder"])
    stack = type(config.dvae.decoder)
    config.dvae = type(config.dvae)(
        encoder=stack(**sizes["dvae"]["encoder"]),
        decoder=stack(**sizes["dvae"]["decoder"]),
        vq=type(config.dvae.vq)(**sizes["dvae"]["vq"]),
    )
    vocos = config.vocos
    config.vocos = type(vocos)(
        backbone=type(vocos.backbone)(init_args=type(vocos.backbone.init_args)(**sizes["vocos"])),
        head=type(vocos.head)(init_args=type(vocos.head.init_args)(dim=sizes["vocos"]["dim"])),
    )


def memory() -> dict[str, int | None]:
    """Resident bytes now and at most, from Linux's /proc; null where there is none."""
    names = {"VmRSS": "rss_bytes", "VmHWM": "peak_rss_bytes"}
    found: dict[str, int | None] = dict.fromkeys(names.values())
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                name, _, value = line.partition(":")
                if name in names:
                    found[names[name]] = int(value.split()[0]) * 1024
    return found
