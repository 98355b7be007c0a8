"""How fast a clip is spoken, and the control token that says so to the voice: `[speed_0]` to `[speed_9]`."""

from __future__ import annotations

import math

PACE_STEP = 1.12  # one step of [speed_n] is 12 % in tempo; [speed_5] is the teacher's own pace
SLOWEST, OWN, FASTEST = 0, 5, 9


def tempo_of(pace: int) -> float:
    """The teacher's tempo for [speed_`pace`]: 1.0 at 5, a factor 1.12 for each step."""
    return PACE_STEP ** (pace - OWN)


def speed_token(tempo: float) -> str:
    """The control token of a clip spoken at `tempo`: the nearest step, within 0 .. 9."""
    pace = round(OWN + math.log(tempo) / math.log(PACE_STEP))
    return f"[speed_{min(FASTEST, max(SLOWEST, pace))}]"
