"""Stage `data`: have the teacher speak the planned corpus, shard by shard.

Interrupted, it resumes at the first missing shard. Clips that fail a check are dropped and counted with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from labkit.training.corpus import Clip, Item, defect, level, trim, write_shard

SHARD_ITEMS = 48

Speak = Callable[[str, str, float], np.ndarray]  # text, voice, tempo -> audio [N]


def speak_item(item: Item, speak: Speak) -> tuple[Clip | None, dict | None]:
    """The finished clip, or the record of why it was dropped.

    The teacher always hears a full stop, which rounds off the end, whether or not the text shows one.
    """
    audio = trim(speak(item.text.rstrip(".") + ".", item.voice, item.tempo))
    reason = defect(audio, len(item.words))
    if reason is not None:
        return None, {"index": item.index, "text": item.text, "voice": item.voice, "reason": reason}
    return Clip(item, level(audio)), None


def generate(
    items: Sequence[Item],
    folder: Path,
    speak: Speak,
    *,
    worker: int = 0,
    workers: int = 1,
    log: Callable[[str], None] = print,
) -> None:
    """Write every shard of `items` that is not yet in `folder`; of `workers` processes, each takes its own shards."""
    folder.mkdir(parents=True, exist_ok=True)
    started, spoken = time.monotonic(), 0.0
    count = (len(items) + SHARD_ITEMS - 1) // SHARD_ITEMS
    for number in range(worker, count, workers):
        path = folder / f"shard-{number:04d}.npz"
        if path.exists():
            continue
        results = [
            speak_item(item, speak) for item in items[number * SHARD_ITEMS : (number + 1) * SHARD_ITEMS]
        ]
        clips = [clip for clip, _ in results if clip is not None]
        dropped = [drop for _, drop in results if drop is not None]
        write_shard(path, clips, dropped)
        spoken += sum(len(clip.audio) for clip in clips) / 24_000
        log(
            f"data: shard {number + 1}/{count}, {spoken:.0f} s of speech in {time.monotonic() - started:.0f} s, "
            f"dropped {len(dropped)}"
        )
